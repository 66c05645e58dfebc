/* SPDX-License-Identifier: Apache-2.0
 * The invariants of several coordinators, beside those of one. */
#include "replicas.h"

typedef unsigned long long ull;

void check_copy(struct sim *sim, uint32_t r)
{
    const struct replica *replica = replica_of(sim, r);
    const struct etcd *store = &sim->replicas->store;
    uint64_t index = replica->copy.index;
    const struct log_hash hash = store_hash_at(store, index);
    if (replica->held != index) {
        broken(sim, "ONE_LINE", "the copy of c%u at entry %llu holds the records of %llu", r,
            (ull)index, (ull)replica->held);
    } else if ((index > store->head.index && !sim->replicas->restored) ||
               !log_hash_equal(&hash, &replica->copy.hash)) {
        broken(sim, "ONE_LINE", "the copy of c%u at entry %llu is no prefix of the log", r,
            (ull)index);
    }
}

void check_leads(struct sim *sim, uint32_t r)
{
    const struct replica *replica = replica_of(sim, r);
    if (replica->copy.index != sim->replicas->store.head.index) {
        return; /* another has taken over */
    }
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        const struct stored *has = sim->jobs[i].durable;
        const struct stored *log = replicas_stored(sim, i);
        if (has->known != log->known || has->ended != log->ended || has->done != log->done ||
            !generation_equal(has->generation, log->generation) ||
            has->watermark != log->watermark || has->incarnation_max != log->incarnation_max ||
            has->has_control != log->has_control ||
            has->checkpoint_count != log->checkpoint_count) {
            broken(sim, "ONE_LINE",
                "c%u leads with a copy in which job %u is at generation %llu, released up to %llu; "
                "in the log at %llu, up to %llu",
                r, i, (ull)has->generation.number, (ull)has->watermark, (ull)log->generation.number,
                (ull)log->watermark);
        }
    }
}

void check_gives_up(struct sim *sim, const struct core_action *action)
{
    const struct replica *replica = replica_entered(sim);
    bool lost = action->type == CORE_ACTION_RECORD &&
                action->record.type == CORE_RECORD_TASK_EXIT &&
                action->record.task_exit.state == TASK_LOST;
    if (lost && replica->lapsed && coordinator_now(sim) > replica->lapsed_us) {
        broken(sim, "GIVEN_UP", "c%u gives up task %llu/%u while it may not send",
            sim->replicas->entered, (ull)action->record.job.n, action->record.task_exit.slot);
    }
}

/* What an old leader may send, too. */
static bool is_harmless(const struct delayed_send *sent)
{
    const struct agent_down *down = sent->kind == DELAYED_DOWN ? &sent->message->down : NULL;
    return down != NULL && down->type == AGENT_DOWN_RELAY &&
           (down->relay_down.down.type == TASK_DOWN_RELEASE ||
               down->relay_down.down.type == TASK_DOWN_ABORT);
}

static void check_entry(struct sim *sim, uint32_t r, const struct delayed_send *sent)
{
    const struct replica *replica = replica_of(sim, r);
    if (sent->ticket == 0 && !is_harmless(sent)) {
        broken(sim, "SAID", "c%u sends what it may not send before it is known that it leads", r);
    }
    if (sent->ticket == 0) {
        return;
    }
    const struct offered_entry *entry = &sim->replicas->ledger[replica->tickets[sent->ticket] - 1];
    if (entry->kind == LEADERSHIP_CONFIRM ? replica->guarded_at <= entry->decided_at
                                          : entry->index == 0) {
        broken(sim, "SAID", "c%u sends what waits for ticket %llu, which is not in the log", r,
            (ull)sent->ticket);
    }
}

void check_said(struct sim *sim, uint32_t r, const struct delayed_send *sent)
{
    struct replicas *all = sim->replicas;
    const struct replica *replica = replica_of(sim, r);
    check_entry(sim, r, sent);
    if (replica->sends_late || !sim->scenario.clocks_in_bound) {
        return;
    }
    if (replica->term < all->term_sent) {
        broken(sim, "BOTH", "c%u sends in term %llu, in term %llu was sent before", r,
            (ull)replica->term, (ull)all->term_sent);
    }
    all->term_sent = replica->term;
}

/* Of the newest generation, to which it belongs. */
static bool is_kept(struct sim *sim, struct task_ref ref)
{
    const struct job *job = job_by_id(sim, ref.job);
    uint32_t index = job == NULL ? SIM_NONE : job->processes[ref.slot];
    if (index == SIM_NONE || sim->processes[index].ref.incarnation != ref.incarnation) {
        return false;
    }
    const struct stored *log = job->stored;
    const struct core_restore_task *task = &log->tasks[ref.slot];
    bool member = task->incarnation == ref.incarnation && task->rank != SIM_NONE && !task->gone &&
                  !task->lost;
    return member && !log->ending && !log->ended && !log->done && log->generation.number > 0 &&
           generation_equal(sim->processes[index].core.generation, log->generation);
}

void check_kept(struct sim *sim, uint32_t agent, const struct message *message)
{
    const struct agent_down *down = &message->down;
    if (message->guarded || message->term >= sim->replicas->term_newest) {
        return;
    }
    bool resets =
        down->type == AGENT_DOWN_RELAY && (down->relay_down.down.type == TASK_DOWN_RESET ||
                                              down->relay_down.down.type == TASK_DOWN_SUPERSEDED);
    struct task_ref ref = resets ? down->relay_down.task : (struct task_ref){0};
    ref = down->type == AGENT_DOWN_STOP && down->stop.one ? down->stop.task : ref;
    if (ref.job.n != 0 && is_kept(sim, ref)) {
        broken(sim, "KEEP", "w%u: term %llu resets or stops task %llu/%u of the newest generation",
            agent, (ull)message->term, (ull)ref.job.n, ref.slot);
    }
}

void check_term(struct sim *sim, uint32_t index, const struct message *message)
{
    struct process *process = &sim->processes[index];
    if (message->term < process->term) {
        broken(sim, "TERM_DOWN",
            "job %llu task %u gets a message of term %llu, after one of term %llu",
            (ull)process->ref.job.n, process->ref.slot, (ull)message->term, (ull)process->term);
    }
    process->term = message->term;
}

void check_replicas_end(struct sim *sim)
{
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        const struct replica *replica = replica_of(sim, r);
        uint64_t head = sim->replicas->store.head.index;
        if (replica->runs && replica->copy.index > head) {
            broken(sim, "ONE_LINE", "the copy of c%u is at entry %llu, the log at %llu", r,
                (ull)replica->copy.index, (ull)head);
        }
        if (sim->scenario.snapshot_bytes > 0 && replica->copy.index < head) {
            broken(sim, "TRIM", "the copy of c%u is at entry %llu, and does not come to %llu", r,
                (ull)replica->copy.index, (ull)head);
        }
    }
}
