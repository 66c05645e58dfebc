/* SPDX-License-Identifier: Apache-2.0
 * A hash of the whole state, field by field and in the order of the lists: no address, padding or
 * hash order is in it. The simulator compares it between runs. */
#include "coordinator/core/state/state.h"

#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static uint64_t core_fold(uint64_t digest, uint64_t value)
{
    return prng_mix(digest ^ value) + value;
}

static uint64_t fold_string(uint64_t digest, const char *string)
{
    for (size_t i = 0; string[i] != '\0'; i++) {
        digest = core_fold(digest, (unsigned char)string[i]);
    }
    return core_fold(digest, 256);
}

static uint64_t fold_all(uint64_t digest, const uint64_t *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        digest = core_fold(digest, fields[i]);
    }
    return digest;
}

/* Leaves 0 out, which the value is where states are not compared. */
static uint64_t fold_some(uint64_t digest, uint64_t value)
{
    return value == 0 ? digest : core_fold(digest, value);
}

static uint64_t fold_task(uint64_t digest, const struct task *task)
{
    const uint64_t flags[] = {task_is_usable(task), task->placement_unrecorded, task->stop_unsent,
        task->end_unrecorded, task->joined, task->joined, task->joining != JOINING_NOT,
        task->finished, task->reported, task->collected, task->state == TASK_EXITED,
        task->refill == REFILL_NOW, task->refill == REFILL_NEXT_PLAN, task->clean, task->begun,
        task->adopted, task_is_ps_task(task)};
    const uint64_t fields[] = {(uint64_t)task->state, task->task_group, task->next, task->prev,
        task->incarnation, task->pid, task->rank, task->replicas,
        (uint64_t)(int64_t)task->exit_code, (uint64_t)(int64_t)task->exit_signal,
        (uint64_t)task->dismissed, (uint64_t)task->reason, task->stream, task->position,
        task->join_stream, task->stall_stamp, task->waits_for, task->waited_by, task->attempts,
        task->attempts_generation, task->home.n, task->kept, task->predecessor, task->backed.number,
        task->backed.by};
    uint64_t bits = 0;
    for (size_t i = 0; i < CADRE_COUNT_OF(flags); i++) {
        bits |= flags[i] << i;
    }
    digest = core_fold(digest, bits);
    digest = fold_all(digest, fields, CADRE_COUNT_OF(fields));
    digest = fold_some(digest, task->digest);
    digest = fold_some(digest, task->nested);
    digest = fold_some(digest, task->waited_us);
    return fold_string(digest, task->mesh_address);
}

static uint64_t fold_task_group(uint64_t digest, const struct task_group *task_group)
{
    digest = core_fold(digest, task_group->worker_id.n);
    digest = core_fold(digest, task_group->worker == NONE);
    digest = core_fold(digest, task_group->tasks);
    digest = core_fold(digest, task_group->members);
    digest = core_fold(digest, task_group->up_to);
    digest = core_fold(digest, task_group->applied);
    return core_fold(digest, (uint64_t)task_group->again << 1 | task_group->arrived);
}

static uint64_t fold_consumption(uint64_t digest, const struct consumption *consumption)
{
    const uint64_t fields[] = {consumption->steps, consumption->samples, consumption->consumed[0],
        consumption->consumed[1], consumption->expected[0], consumption->expected[1],
        consumption->provable, consumption->files};
    return fold_all(digest, fields, CADRE_COUNT_OF(fields));
}

static uint64_t fold_cursor(uint64_t digest, const struct cursor *cursor)
{
    const uint64_t fields[] = {
        cursor->stream, cursor->epoch, cursor->first, cursor->begin, cursor->steps};
    return fold_some(fold_all(digest, fields, CADRE_COUNT_OF(fields)), cursor->nested);
}

static uint64_t fold_sample_audits(uint64_t digest, const struct job *job)
{
    for (uint32_t i = 0; i < SAMPLE_AUDITS_MAX; i++) {
        const struct sample_audit *sample_audit = &job->sample_audits[i];
        digest = fold_cursor(digest, &sample_audit->cursor);
        digest = fold_consumption(digest, &sample_audit->consumption);
        digest = fold_consumption(digest, &sample_audit->ahead);
        digest = core_fold(digest, sample_audit->at);
        digest = core_fold(digest, sample_audit->ahead_at);
        digest = core_fold(digest, sample_audit->recorded);
    }
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        const struct stream_position *stream = &job->streams[i];
        digest = core_fold(digest, stream->stream);
        digest = core_fold(digest, stream->epoch);
        digest = core_fold(digest, stream->steps);
        digest = core_fold(digest, stream->applied);
    }
    return core_fold(digest, job->streams_recorded);
}

static uint64_t fold_checkpoint(uint64_t digest, const struct core_checkpoint *checkpoint)
{
    const uint64_t fields[] = {checkpoint->generation.number, checkpoint->generation.nonce,
        checkpoint->position, checkpoint->shared, checkpoint->manifest_bytes};
    digest = fold_all(digest, fields, CADRE_COUNT_OF(fields));
    digest = fold_some(digest, checkpoint->digest);
    return fold_string(digest, checkpoint->path);
}

static uint64_t fold_timeline(uint64_t digest, const struct job *job)
{
    for (uint32_t i = 0; i < job->step_range_count; i++) {
        const struct step_range *s = &job->step_ranges[i];
        digest = fold_cursor(digest, &s->cursor);
        digest = core_fold(digest, s->through);
        digest = core_fold(digest, s->applied);
        digest = core_fold(digest, s->task_group);
        digest = core_fold(digest, s->ahead);
    }
    for (uint32_t i = 0; i < ENDS_MAX; i++) {
        digest = core_fold(digest, job->ends[i].stream);
        digest = core_fold(digest, job->ends[i].epoch);
    }
    return core_fold(digest, job->step_range_count);
}

static uint64_t fold_verified(uint64_t digest, const struct job *job)
{
    const uint64_t fields[] = {job->verified.position, job->verified.digest, job->verified_recorded,
        job->verified_next_us, job->diverged, job->diverged_last.number,
        job->diverged_last.position};
    uint64_t known = 0;
    for (size_t i = 0; i < CADRE_COUNT_OF(fields); i++) {
        known |= fields[i];
    }
    return known == 0 ? digest : fold_all(digest, fields, CADRE_COUNT_OF(fields));
}

static uint64_t fold_job(uint64_t digest, const struct core *core, const struct job *job)
{
    const uint64_t fields[] = {job->id.n, (uint64_t)job->state, (uint64_t)job->phase,
        (uint64_t)(int64_t)job->priority, job->tasks, job->tasks_min, job->max_restarts,
        job->wait_us, job->stall_us, job->task_groups, job->initial, job->incarnation_max, job->due,
        job->touched, job->underfilled, job->draining, job->silent, job->silent_slot,
        job->early_slot, job->generation.number, job->generation.nonce, job->parent.number,
        job->parent.nonce, job->resume, job->roster, job->source, job->restarted, job->restart_all,
        job->finished, job->finished_slot, job->finished_position, job->arrived.least,
        job->arrived.holders, job->applied.least, job->applied.holders, job->unarrived, job->wanted,
        job->wanted_slot, job->released, job->raised, job->halt_at, (uint64_t)job->halt_kind,
        job->halt_stream, job->has_checkpoint, job->published, job->has_part, job->part_compared,
        job->counted, job->excused, job->guess, job->waits_us, job->restarts, job->aborted_us,
        (uint64_t)job->followed.code, job->progress_us, job->median_us, job->stall_stamp,
        job->stall_since_us, job->stall_slot, job->waited_slot, job->stall_position, job->stalled,
        job->slow, job->hang_slot, job->hang_position, job->hang_reported_us,
        (uint64_t)job->hang.at, job->hang.collective, job->hang.replica, job->hang.others,
        job->fresh, job->lost, job->dismissed, job->agains, job->outdated, job->stopped,
        job->uncollected, (uint64_t)job->outcome, (uint64_t)job->code,
        (uint64_t)(int64_t)job->exit_code, job->checkpoint_at, job->checkpoint_asked,
        (uint64_t)job->preempt, job->requeues, job->saves, job->ps_job.workers, job->ps_job.servers,
        job->ps_job.evaluators, job->ps_job.backups, job->ps_task_counts[ROLE_WORKER],
        job->ps_task_counts[ROLE_SERVER], job->ps_task_counts[ROLE_EVALUATOR], job->recalls,
        (uint64_t)job->ps_shutdown, job->members_held, job->members_next_us, job->gpus,
        job->time_limit_us, job->over_time_limit, job->cut_us, job->restarts_without_step,
        job->formed};
    digest = fold_all(digest, fields, CADRE_COUNT_OF(fields));
    digest = fold_all(digest, job->deadlines, DEADLINES);
    digest = fold_some(digest, job->plain);
    digest = fold_some(digest, job->behind);
    digest = fold_some(digest, job->regains);
    digest = fold_some(digest, job->grows);
    digest = fold_some(digest, job->plain ? job->joiner_us : 0);
    digest = fold_timeline(digest, job);
    digest = fold_sample_audits(digest, job);
    digest = fold_checkpoint(digest, &job->checkpoint);
    digest = fold_checkpoint(digest, &job->part);
    digest = fold_verified(digest, job);
    digest = fold_string(digest, job->reason);
    digest = fold_string(digest, job->note);
    digest = fold_string(digest, job->preempt_text);
    digest = fold_string(digest, job->text);
    digest = fold_string(digest, job->left);
    for (uint32_t i = 0; i < job->task_groups; i++) {
        digest = fold_task_group(digest, job_task_group(core, job, i));
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        digest = fold_task(digest, job_task(core, job, slot));
    }
    return digest;
}

static uint64_t fold_worker(uint64_t digest, const struct worker *worker)
{
    digest = core_fold(digest, worker->id.n);
    digest = core_fold(digest, (uint64_t)worker->state);
    digest = core_fold(digest, worker->link.n);
    digest = core_fold(digest, worker->boot_nonce);
    digest = core_fold(digest, worker->last_seen_us);
    digest = core_fold(digest, worker->slots);
    digest = core_fold(digest, worker->slots_used);
    digest = core_fold(digest, worker->leftovers);
    digest = core_fold(digest, worker->slot_gpus);
    digest = core_fold(digest, worker->orphan_us);
    digest = core_fold(digest,
        (uint64_t)worker->drained << 5 | (uint64_t)(worker->absence == ABSENCE_SILENT) << 4 |
            (uint64_t)worker->overdue << 3 | (uint64_t)(worker->absence == ABSENCE_EXPECTED) << 2 |
            (uint64_t)worker->leaves << 1 | worker->draining);
    return fold_string(digest, worker->name);
}

uint64_t core_digest(const struct core *core)
{
    const uint64_t fields[] = {core->prng.state, core->now_us, core->worker_last, core->job_last,
        core->paused_us, core->workers_lost, core->slots_total[0], core->slots_free[0],
        core->placement_due, core->stray_count, core->deadlines.count};
    uint64_t digest = 0;
    for (size_t i = 0; i < CADRE_COUNT_OF(fields); i++) {
        digest = core_fold(digest, fields[i]);
    }
    for (uint32_t i = core->workers_live.first; i != LIST_NONE;
         i = core->workers_live.nodes[i].next) {
        digest = fold_worker(digest, &core->workers[i]);
    }
    for (uint32_t i = core->jobs_live.first; i != LIST_NONE; i = core->jobs_live.nodes[i].next) {
        digest = fold_job(digest, core, &core->jobs[i]);
    }
    for (uint32_t i = core->queue.first; i != LIST_NONE; i = core->queue.nodes[i].next) {
        digest = core_fold(digest, core->jobs[i].id.n);
    }
    for (uint32_t i = 0; i < core->culprit_count; i++) {
        digest = core_fold(digest, core->culprits[i].times);
    }
    for (uint32_t i = 0; i < core->stray_count; i++) {
        const struct stray *stray = &core->strays[(core->stray_first + i) % STRAYS_MAX];
        digest = core_fold(digest, stray->link.n);
        digest = core_fold(digest, stray->task.job.n);
        digest = core_fold(digest, stray->task.slot);
        digest = core_fold(digest, stray->task.incarnation);
    }
    return digest;
}
