/* SPDX-License-Identifier: Apache-2.0
 * Turns of a coordinator that leads. The rules are those of coordinator/engine/shared_log.c: a turn
 * with a message that may not be sent by an old leader is an entry of the log, with or without
 * records, and its messages wait for it; releases and aborts wait only where an earlier message of
 * their job does. */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "replicas.h"

#define AGAIN_US 5000 /* a turn that may not be sent now is looked at again */

/* ---- what waits ---- */

static bool is_task_end(const struct core_action *action)
{
    return action->type == CORE_ACTION_STOP_TASK || action->type == CORE_ACTION_FORGET_JOB ||
           (action->type == CORE_ACTION_RECORD && action->record.type == CORE_RECORD_TASK_EXIT);
}

/* A mutant lets it leave as a release does. */
static bool is_let_go(struct sim *sim, const struct core_action *action)
{
    bool destroys = action->type == CORE_ACTION_NOTIFY_TASK || action->type == CORE_ACTION_REFUSE;
    return (destroys && mutant_goes_on(sim, MUTANT_RESET_AT_ONCE)) ||
           (is_task_end(action) && mutant_goes_on(sim, MUTANT_TASK_END_AT_ONCE));
}

static bool is_harmless(struct sim *sim, const struct core_action *action)
{
    return outdated_is_message(action, CORE_MESSAGE_RELEASE) ||
           outdated_is_message(action, CORE_MESSAGE_ABORT) ||
           action->type == CORE_ACTION_JOB_CHANGED || action->type == CORE_ACTION_JOB_ENDED ||
           is_let_go(sim, action);
}

static bool awaits_entry(struct sim *sim, const struct core_action *action)
{
    return action->type == CORE_ACTION_RECORD ? action->record.sync : !is_harmless(sim, action);
}

static bool turn_awaits_entry(struct sim *sim)
{
    const struct core_actions *turn = &sim->coordinator.turn;
    bool awaits = false;
    for (size_t i = 0; i < turn->count && !awaits; i++) {
        awaits = awaits_entry(sim, &turn->items[i]);
    }
    return awaits;
}

static struct job_id job_of(const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_NOTIFY_JOB:
        return action->notify_job.job;
    case CORE_ACTION_NOTIFY_TASK:
        return action->notify_task.task.job;
    case CORE_ACTION_STOP_TASK:
        return action->stop_task.task.job;
    case CORE_ACTION_START_TASKS:
        return action->start_tasks.job;
    case CORE_ACTION_FORGET_JOB:
        return action->forget_job.job;
    case CORE_ACTION_ANSWER:
        return action->answer.job;
    case CORE_ACTION_RECORD:
        return action->record.job;
    case CORE_ACTION_START_JOB:
    case CORE_ACTION_STOP_JOB:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
        return action->job;
    case CORE_ACTION_WELCOME:
    case CORE_ACTION_REFUSE:
        break;
    }
    return (struct job_id){0};
}

static struct replica_job *its_job(struct sim *sim, struct replica *replica, struct job_id id)
{
    const struct job *job = job_by_id(sim, id);
    return job != NULL ? &replica->jobs[job - sim->jobs] : NULL;
}

uint64_t replica_awaits(struct sim *sim, const struct core_action *action)
{
    struct replica *replica = replica_entered(sim);
    struct replica_job *job = its_job(sim, replica, job_of(action));
    if (is_harmless(sim, action)) {
        bool behind =
            replica->welcomed > replica->logged || (job != NULL && job->waited > replica->logged);
        return behind && !mutant_goes_on(sim, MUTANT_RELEASE_OVERTAKES) ? replica->waited : 0;
    }
    if (job != NULL) {
        job->waited = replica->waited;
    }
    if (action->type == CORE_ACTION_WELCOME) {
        replica->welcomed = replica->waited;
    }
    return replica->waited;
}

/* ---- an entry ---- */

/* What is kept of a job from now on; the log has it when the entry is there. */
static void keep_record(struct sim *sim, const struct entry *entry)
{
    if (entry->job != SIM_NONE) {
        if (entry->record.type == CORE_RECORD_TASK_EXIT &&
            replica_is_newest(sim, sim->replicas->entered)) {
            check_lost(sim, &sim->jobs[entry->job], &entry->record);
        }
        stored_apply(sim->jobs[entry->job].stored, entry);
        if (entry->record.type == CORE_RECORD_JOB && entry->record.job.n > sim->disk.job_max) {
            sim->disk.job_max = entry->record.job.n;
        }
        return;
    }
    store_keep_worker(sim, &entry->record);
}

static struct entry entry_with(struct sim *sim, const struct core_record *record)
{
    bool worker = record->type == CORE_RECORD_DRAINED || record->type == CORE_RECORD_UNDRAINED ||
                  record->type == CORE_RECORD_CULPRIT;
    const struct job *job = worker ? NULL : job_by_id(sim, record->job);
    CADRE_ASSERT(worker || job != NULL);
    return (struct entry){.job = worker ? SIM_NONE : (uint32_t)(job - sim->jobs),
        .record = *record,
        .at_us = sim->now_us};
}

static void add_record(struct sim *sim, const struct entry *entry)
{
    struct replicas *all = sim->replicas;
    all->records =
        grown(all->records, &all->record_capacity, all->record_count + 1, sizeof(*all->records));
    all->records[all->record_count++] = *entry;
}

static void add_records(struct sim *sim, const struct core_record *const *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct entry entry = entry_with(sim, records[i]);
        add_record(sim, &entry);
    }
}

static void add_lagging(struct sim *sim, struct replica *replica)
{
    struct lagging *lagging = &replica->lagging;
    const struct core_record **records = calloc(lagging->count + 1, sizeof(*records));
    CADRE_ASSERT(records != NULL);
    lagging_list(lagging, records);
    add_records(sim, records, lagging->count);
    free((void *)records);
    lagging_clear(lagging);
}

/* What was kept of the jobs that the turn records or sends something of. */
static void add_lagging_of_turn(struct sim *sim, struct replica *replica)
{
    const struct core_actions *turn = &sim->coordinator.turn;
    struct lagging *lagging = &replica->lagging;
    const struct core_record **records = calloc(lagging->count + 1, sizeof(*records));
    CADRE_ASSERT(records != NULL);
    for (size_t i = 0; i < turn->count; i++) {
        const struct core_action *action = &turn->items[i];
        struct replica_job *job =
            is_harmless(sim, action) ? NULL : its_job(sim, replica, job_of(action));
        if (job != NULL) {
            lagging_list_of(lagging, &job->lagging, records);
            add_records(sim, records, lagging_count_of(lagging, &job->lagging));
            lagging_take_of(lagging, &job->lagging);
        }
    }
    free((void *)records);
}

static void add_turn(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    for (size_t i = 0; i < c->turn.count; i++) {
        if (c->turn.items[i].type == CORE_ACTION_RECORD) {
            struct entry entry = entry_with(sim, &c->turn.items[i].record);
            entry.placements = c->placements[i];
            c->placements[i] = (struct placements){0};
            keep_record(sim, &entry);
            add_record(sim, &entry);
        }
    }
}

static void offer(struct sim *sim, struct replica *replica, uint32_t first, bool waits)
{
    struct replicas *all = sim->replicas;
    uint32_t count = all->record_count - first;
    enum leadership_ticket_kind kind = !waits      ? LEADERSHIP_LAGGING
                                       : count > 0 ? LEADERSHIP_SYNC
                                                   : LEADERSHIP_CONFIRM;
    all->ledger =
        grown(all->ledger, &all->ledger_capacity, all->ledger_count + 1, sizeof(*all->ledger));
    all->ledger[all->ledger_count++] = (struct offered_entry){.replica = all->entered,
        .leadership = sim->coordinator.incarnation,
        .kind = kind,
        .first = first,
        .count = count,
        .decided_at = sim->events};
    uint64_t ticket = replica->ticket_next++;
    replica->tickets = grown(replica->tickets, &replica->ticket_capacity, (uint32_t)ticket + 1,
        sizeof(*replica->tickets));
    replica->tickets[ticket] = all->ledger_count;
    replica->waited = waits ? ticket : replica->waited;
    replica_event(sim, all->entered,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_OFFER,
            .ticket = {
                .ticket = ticket, .kind = kind, .bytes = count > 0 ? ENTRY_BYTES * count : 0}});
}

static void note_waited(struct sim *sim, struct replica *replica)
{
    const struct core_actions *turn = &sim->coordinator.turn;
    for (size_t i = 0; i < turn->count; i++) {
        const struct core_action *action = &turn->items[i];
        bool waits = action->type == CORE_ACTION_RECORD && action->record.sync;
        struct replica_job *job = waits ? its_job(sim, replica, action->record.job) : NULL;
        if (job != NULL) {
            job->waited = replica->waited;
        }
    }
}

/* Records that no message waits for, of which the newest of each job is in the job's next entry. */
static void keep_lagging(struct sim *sim, struct replica *replica)
{
    const struct core_actions *turn = &sim->coordinator.turn;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->items[i].type != CORE_ACTION_RECORD) {
            continue;
        }
        const struct core_record *record = &turn->items[i].record;
        const struct entry entry = entry_with(sim, record);
        CADRE_ASSERT(entry.job != SIM_NONE && !record->sync);
        keep_record(sim, &entry);
        CADRE_ASSERT(lagging_add(&replica->lagging, record, &replica->jobs[entry.job].lagging));
        if (!replica->lagging_armed) {
            replica->lagging_armed = true;
            replica->lagging_us = sim->now_us + sim->scenario.sync_us;
            schedule(sim, sim->scenario.sync_us, ON_SYNC, 0, sim->coordinator.incarnation, 0);
        }
    }
}

static void append(struct sim *sim, struct replica *replica, bool waits)
{
    uint32_t first = sim->replicas->record_count;
    bool behind = waits && mutant_goes_on(sim, MUTANT_TAIL_BEHIND);
    if (waits && !behind) {
        add_lagging_of_turn(sim, replica);
        add_turn(sim);
    } else if (waits) {
        add_turn(sim);
    } else {
        add_lagging(sim, replica);
    }
    replica->lagging_armed = replica->lagging.count > 0;
    offer(sim, replica, first, waits);
}

static void commit(struct sim *sim, struct replica *replica)
{
    if (turn_awaits_entry(sim)) {
        append(sim, replica, true);
        note_waited(sim, replica);
        return;
    }
    keep_lagging(sim, replica);
    if (replica->lagging_armed && sim->now_us >= replica->lagging_us) {
        append(sim, replica, false);
    }
}

/* ---- the end of a turn ---- */

static void look_again(struct sim *sim, uint64_t after_us)
{
    schedule(sim, after_us, ON_TURN_END, 0, sim->coordinator.incarnation, 0);
}

static void hold_turn(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    struct replica *replica = replica_entered(sim);
    if (!replica->lapsed) {
        replica->lapsed = true;
        replica->lapsed_us = coordinator_now(sim);
    }
    if (!c->hold.held && !mutant_goes_on(sim, MUTANT_SUSPENDED_TIMERS)) {
        struct cadre_error why = {.code = CADRE_UNAVAILABLE};
        hold_suspends(&c->hold, clock_shows(&c->clock, sim->now_us), &why);
        trace(sim, "c%u is suspended", sim->replicas->entered);
    }
}

void replica_suspends(struct sim *sim, uint32_t r)
{
    bool enters = sim->replicas->entered == SIM_NONE;
    if (enters) {
        replica_enters(sim, r);
    }
    hold_turn(sim);
    coordinator_open_turn(sim);
    if (enters) {
        replica_leaves(sim);
    }
}

/* Whether the turn may be sent; else it is held. */
static bool may_end(struct sim *sim, struct replica *replica)
{
    struct coordinator *c = &sim->coordinator;
    uint64_t now_us = clock_shows(&c->clock, sim->now_us);
    struct leadership_view view;
    leadership_show(replica->core, &view);
    bool leads = view.state == LEADERSHIP_LEADING || view.state == LEADERSHIP_SUSPENDED;
    if (!leads || leadership_tickets_free(replica->core) == 0) {
        look_again(sim, AGAIN_US);
        return false;
    }
    (void)mutant_goes_on(sim, MUTANT_TIME_UNCHECKED); /* of what follows */
    if (replica->sends_late || replica_may_send(sim, replica)) {
        if (c->hold.held) {
            sim->away_us += sim->now_us - sim->replicas->led_us;
        }
        hold_ends(&c->hold, now_us);
        replica->lapsed = false;
        return true;
    }
    hold_turn(sim);
    look_again(sim, 4 * AGAIN_US);
    return false;
}

/* It is paused between its look at the time to send and the sending. */
static bool pauses(struct sim *sim, struct replica *replica)
{
    if (!replica->pauses_late || replica->pause.on || sim->coordinator.turn.count == 0) {
        return false;
    }
    replica->pauses_late = false;
    replica->sends_late = true;
    uint64_t length_us = draw(sim, 1000, 3 * sim->scenario.log_lease_us);
    pause_replica(sim, sim->replicas->entered, length_us);
    look_again(sim, length_us); /* behind the end of the pause, before all that waited */
    return true;
}

void replica_turn_ends(struct sim *sim)
{
    struct replica *replica = replica_entered(sim);
    if (!may_end(sim, replica) || pauses(sim, replica)) {
        return;
    }
    commit(sim, replica);
    if (!replica->leads) {
        return;
    }
    check_drains(sim);
    sim->replicas->led_us = sim->now_us;
    send_turn(sim, &sim->coordinator.turn);
    replica_sends_logged(sim, sim->replicas->entered);
    replica->sends_late = false;
    coordinator_turn_ended(sim);
}
