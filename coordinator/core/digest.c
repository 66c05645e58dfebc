/* SPDX-License-Identifier: Apache-2.0
 * A hash of the whole state, field by field and in the order of the lists: no address, padding or
 * hash order gets in. */
#include "coordinator/core/state.h"

static uint64_t fold(uint64_t digest, uint64_t value)
{
    return prng_mix(digest ^ value) + value;
}

static uint64_t fold_string(uint64_t digest, const char *string)
{
    for (size_t i = 0; string[i] != '\0'; i++) {
        digest = fold(digest, (unsigned char)string[i]);
    }
    return fold(digest, 256);
}

static uint64_t fold_task(uint64_t digest, const struct task *task)
{
    digest = fold(digest, (uint64_t)task->state);
    digest = fold(digest, task->party);
    digest = fold(digest, task->incarnation);
    digest = fold(digest, task->pid);
    digest = fold(digest, task->rank);
    digest = fold(digest, task->replicas);
    digest = fold(digest, (uint64_t)(int64_t)task->exit_code);
    digest = fold(digest, (uint64_t)(int64_t)task->exit_signal);
    digest = fold(digest, (uint64_t)(task->joined | task->finished << 1 | task->collected << 2 |
                                     task->has_exit << 3 | task->froze << 4));
    return fold_string(digest, task->mesh_address);
}

static uint64_t fold_party(uint64_t digest, const struct party *party)
{
    digest = fold(digest, party->worker_id.n);
    digest = fold(digest, party->worker == NONE);
    digest = fold(digest, party->tasks);
    digest = fold(digest, party->members);
    digest = fold(digest, party->up_to);
    digest = fold(digest, party->applied);
    return fold(digest, party->again);
}

static uint64_t fold_line(uint64_t digest, const struct job *job)
{
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        const struct stretch *s = &job->stretches[i];
        digest = fold(digest, s->cursor.stream);
        digest = fold(digest, s->cursor.epoch);
        digest = fold(digest, s->cursor.first);
        digest = fold(digest, s->cursor.begin);
        digest = fold(digest, s->cursor.steps);
        digest = fold(digest, s->through);
        digest = fold(digest, s->applied);
        digest = fold(digest, s->party);
        digest = fold(digest, s->ahead);
    }
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        digest = fold(digest, job->ends[i].stream);
        digest = fold(digest, job->ends[i].epoch);
    }
    return fold(digest, job->stretch_count);
}

static uint64_t fold_job(uint64_t digest, const struct core *core, const struct job *job)
{
    const uint64_t fields[] = {job->id.n, (uint64_t)job->state, (uint64_t)job->phase,
        (uint64_t)(int64_t)job->priority, job->tasks, job->parties, job->incarnation_max, job->due,
        job->touched, job->running, job->joined, job->gone, job->collected, job->silent,
        job->silent_slot, job->early_slot, job->finished, job->finished_slot,
        job->finished_position, job->generation.number, job->generation.nonce, job->parent.number,
        job->parent.nonce, job->resume, job->roster, job->arrived.least, job->arrived.holders,
        job->applied.least, job->applied.holders, job->wanted, job->wanted_slot, job->released,
        job->has_checkpoint, job->checkpoint_slot, job->checkpoint_position,
        (uint64_t)job->deadline, job->lost, job->agains, job->stopped, job->uncollected,
        (uint64_t)job->outcome, (uint64_t)job->code, (uint64_t)(int64_t)job->exit_code};
    for (size_t i = 0; i < CADRE_COUNT_OF(fields); i++) {
        digest = fold(digest, fields[i]);
    }
    digest = fold_line(digest, job);
    digest = fold_string(digest, job->checkpoint_path);
    digest = fold_string(digest, job->text);
    digest = fold_string(digest, job->left);
    for (uint32_t i = 0; i < job->parties; i++) {
        digest = fold_party(digest, job_party(core, job, i));
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        digest = fold_task(digest, job_task(core, job, slot));
    }
    return digest;
}

static uint64_t fold_worker(uint64_t digest, const struct worker *worker)
{
    digest = fold(digest, worker->id.n);
    digest = fold(digest, (uint64_t)worker->state);
    digest = fold(digest, worker->link.n);
    digest = fold(digest, worker->boot_nonce);
    digest = fold(digest, worker->heard_us);
    digest = fold(digest, worker->slots);
    digest = fold(digest, worker->slots_used);
    digest = fold(digest, worker->draining);
    return fold_string(digest, worker->name);
}

uint64_t core_digest(const struct core *core)
{
    const uint64_t fields[] = {core->prng.state, core->now_us, core->worker_last, core->job_last,
        core->slots_total, core->slots_free, core->place_due, core->stray_count,
        core->deadlines.count};
    uint64_t digest = 0;
    for (size_t i = 0; i < CADRE_COUNT_OF(fields); i++) {
        digest = fold(digest, fields[i]);
    }
    for (uint32_t i = core->workers_live.first; i != LIST_NONE;
         i = core->workers_live.nodes[i].next) {
        digest = fold_worker(digest, &core->workers[i]);
    }
    for (uint32_t i = core->jobs_live.first; i != LIST_NONE; i = core->jobs_live.nodes[i].next) {
        digest = fold_job(digest, core, &core->jobs[i]);
    }
    for (uint32_t i = core->queue.first; i != LIST_NONE; i = core->queue.nodes[i].next) {
        digest = fold(digest, core->jobs[i].id.n);
    }
    for (uint32_t i = 0; i < core->stray_count; i++) {
        const struct stray *stray = &core->strays[(core->stray_first + i) % STRAYS_MAX];
        digest = fold(digest, stray->link.n);
        digest = fold(digest, stray->task.job.n);
        digest = fold(digest, stray->task.slot);
        digest = fold(digest, stray->task.incarnation);
    }
    return digest;
}
