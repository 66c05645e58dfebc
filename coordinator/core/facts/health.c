/* SPDX-License-Identifier: Apache-2.0
 * Stalls: a step that does not end although no task died. Tasks that wait for long report for which
 * task; the one that most wait for, and that waits for none, is shown, and replaced after
 * job.stall_us. Such reports count until all have applied the step in question; a hang of a task's
 * own replicas is reported by that task while it lasts. For a job's only task no other one waits:
 * its step is slow when it has not ended so long after it was released and begun. task_lifecycle.c,
 * reports.c and timers.c call this. */
#include "coordinator/core/facts/health.h"

#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

#define CHAIN_MAX        64                 /* of tasks that wait for one another */
#define HANG_REPORTED_US UINT64_C(20000000) /* a hang is reported each 5 s */

static bool stall_counts(const struct job *job, const struct task *task)
{
    CADRE_ASSERT(task->stall_stamp <= job->stall_stamp);
    return task_is_usable(task) && task->rank != NONE && task->stall_stamp == job->stall_stamp;
}

static void stall_renew(const struct job *job, struct task *task)
{
    if (task->stall_stamp != job->stall_stamp) {
        task->stall_stamp = job->stall_stamp;
        task->waits_for = NONE;
        task->waited_by = 0;
    }
}

static uint64_t slow_after(const struct core *core, const struct job *job)
{
    uint64_t times_us = core->options.slow_factor * job->median_us;
    return times_us > core->options.slow_us ? times_us : core->options.slow_us;
}

static void stall_begins(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_RUN);
    job->stalled = true;
    job->stall_since_us = job->progress_us;
    job->stall_slot = NONE;
    job->waited_slot = NONE;
    job->stall_position = 0;
    job->hang_slot = NONE;
    deadline_set(core, job, DEADLINE_SLOW, job->progress_us + slow_after(core, job));
    if (job->stall_us > 0) {
        deadline_set(core, job, DEADLINE_STALL, job->progress_us + job->stall_us);
    }
    CADRE_ASSERT(deadline_armed(job, DEADLINE_SLOW));
}

/* Whether a task reports that it waits for one of its own replicas. */
static bool facts_health_hangs(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->hang_reported_us <= core->now_us);
    CADRE_ASSERT(job->hang_slot == NONE || job->hang_slot < job->tasks);
    if (job->hang_slot == NONE || core->now_us - job->hang_reported_us > HANG_REPORTED_US) {
        return false;
    }
    const struct task *task = job_task(core, job, job->hang_slot);
    return task->rank != NONE && task_is_usable(task);
}

/* The first task that reports a hang counts, while it does. */
static void hang_reported(
    struct core *core, struct job *job, uint32_t slot, const struct task_stall *stall)
{
    bool news = !facts_health_hangs(core, job);
    CADRE_ASSERT(job->stalled);
    CADRE_ASSERT(stall->hang.at != HANG_NONE);
    if (!news && job->hang_slot != slot) {
        return;
    }
    job->hang_slot = slot;
    job->hang_position = stall->position;
    job->hang_reported_us = core->now_us;
    job->hang = stall->hang;
    if (job->stall_us > 0 && !deadline_armed(job, DEADLINE_STALL)) { /* an only task's */
        deadline_set(core, job, DEADLINE_STALL, job->stall_since_us + job->stall_us);
    }
    if (job->slow) {
        job_due(core, job, DUE_CHANGED);
    }
}

/* False: it changed nothing. */
static bool stall_taken(
    struct core *core, struct job *job, uint32_t slot, const struct task_stall *stall)
{
    struct task *task = job_task(core, job, slot);
    /* Rule 13. */
    if (job->phase != PHASE_RUN || job->outcome != 0 || task->rank == NONE ||
        !generation_equal(stall->generation, job->generation) || stall->slot >= job->tasks) {
        return false;
    }
    if (ps_job_is_set(&job->ps_job) && stall->slot != slot) {
        return false; /* a ps task takes part in no step */
    }
    if (stall->position < job->applied.least) {
        return false; /* that wait is over */
    }
    if (!job->stalled) {
        job->stall_stamp++;
        stall_begins(core, job);
    } else if (stall->position > job->stall_position) {
        /* The job got further: older reports are void. */
        job->stall_stamp++;
        job->stall_slot = NONE;
        job->waited_slot = NONE;
    }
    if (stall->position > job->stall_position) {
        job->stall_position = stall->position;
    }
    if (stall->hang.at != HANG_NONE) {
        hang_reported(core, job, slot, stall);
        return true;
    }
    struct task *other = job_task(core, job, stall->slot);
    stall_renew(job, task);
    stall_renew(job, other);
    if (task->waits_for == stall->slot) {
        return true;
    }
    if (task->waits_for != NONE && task->waits_for != slot) {
        job_task(core, job, task->waits_for)->waited_by--;
    }
    task->waits_for = stall->slot;
    if (stall->slot == slot) {
        return true; /* it waits for the release */
    }
    other->waited_by++;
    const struct task *most = job->stall_slot == NONE ? NULL : job_task(core, job, job->stall_slot);
    if (most == NULL || other->waited_by > most->waited_by) {
        job->stall_slot = stall->slot;
    }
    if (job->slow) {
        job_due(core, job, DUE_CHANGED);
    }
    CADRE_ASSERT(job->stall_slot < job->tasks);
    CADRE_ASSERT(job->stall_position >= stall->position);
    CADRE_ASSERT(other->waited_by > 0 && other->waited_by <= job->roster);
    return true;
}

/* A member whose worker has not arrived for the next step. */
static uint32_t holds_release(const struct core *core, const struct job *job)
{
    uint32_t found = NONE;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    for (uint32_t i = 0; i < job->task_groups && found == NONE; i++) {
        const struct task_group *task_group = job_task_group(core, job, i);
        if (task_group->members == 0 || task_group->up_to > job->released) {
            continue;
        }
        for (uint32_t slot = task_group->first; slot != NONE && found == NONE;) {
            const struct task *task = job_task(core, job, slot);
            bool waits = stall_counts(job, task) && task->waits_for != NONE;
            found = task->rank != NONE && task_is_usable(task) && !waits ? slot : NONE;
            slot = task->next;
        }
    }
    CADRE_ASSERT(found == NONE || job_task(core, job, found)->rank != NONE);
    return found;
}

/* A member that reports no wait, in a released step where others wait in a collective of their GPUs
 * so that it is not known for which task. */
static uint32_t holds_step(const struct core *core, const struct job *job)
{
    uint32_t found = NONE;
    bool waited = false;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    for (uint32_t slot = 0; slot < job->tasks && job->stall_position < job->released; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool waits = stall_counts(job, task) && task->waits_for != NONE;
        bool member = task->rank != NONE && task_is_usable(task);
        waited = waited || (member && waits);
        found = member && !waits && found == NONE ? slot : found;
    }
    CADRE_ASSERT(found == NONE || job_task(core, job, found)->rank != NONE);
    return waited ? found : NONE;
}

/* The task at the end of the chain of waits; NONE: not known. */
static uint32_t facts_health_culprit(const struct core *core, const struct job *job)
{
    uint32_t slot = job->stall_slot;
    CADRE_ASSERT(job->stall_slot == NONE || job->stall_slot < job->tasks);
    if (facts_health_hangs(core, job)) {
        return job->hang_slot;
    }
    for (uint32_t i = 0; i < CHAIN_MAX && slot != NONE; i++) {
        const struct task *task = job_task(core, job, slot);
        if (task->rank == NONE || !task_is_usable(task)) {
            return NONE;
        }
        if (!stall_counts(job, task) || task->waits_for == NONE) {
            return slot;
        }
        if (task->waits_for == slot) {
            return holds_release(core, job);
        }
        slot = task->waits_for;
    }
    if (slot != NONE) {
        return NONE;
    }
    slot = holds_release(core, job);
    return slot == NONE && job->stall_slot == NONE ? holds_step(core, job) : slot;
}

void health_stall(struct core *core, struct job *job, uint32_t slot, const struct task_stall *stall)
{
    uint32_t culprit = stall_taken(core, job, slot, stall) ? facts_health_culprit(core, job) : NONE;
    if (culprit != NONE) {
        job->waited_slot = culprit;
    }
    CADRE_ASSERT(job->waited_slot == NONE || job->waited_slot < job->tasks);
}

/* Others have waited for the slot's task since the stall began; NONE: it is not known for which. */
static void waited_for(struct core *core, struct job *job, uint32_t slot)
{
    CADRE_ASSERT(job->stall_since_us <= core->now_us);
    CADRE_ASSERT(slot == NONE || slot < job->tasks);
    if (slot != NONE) {
        job_task(core, job, slot)->waited_us += core->now_us - job->stall_since_us;
    }
}

void health_progress(struct core *core, struct job *job, uint64_t steps)
{
    CADRE_ASSERT(job->progress_us <= core->now_us);
    if (steps > 0 && job->progress_us > 0) {
        uint64_t took_us = (core->now_us - job->progress_us) / steps;
        uint64_t by_us = job->median_us / 16 + 1;
        if (job->median_us == 0) {
            job->median_us = took_us;
        } else if (took_us > job->median_us) {
            job->median_us += by_us;
        } else if (took_us < job->median_us) {
            job->median_us -= by_us < job->median_us ? by_us : job->median_us;
        }
    }
    job->progress_us = core->now_us;
    bool earlier = steps > 0 && job->applied.least <= job->stall_position;
    if (!job->stalled || earlier) {
        return; /* late reports of steps before the one that tasks wait in */
    }
    waited_for(core, job, job->waited_slot);
    job->stall_stamp++;
    job->stall_slot = NONE;
    job->waited_slot = NONE;
    job->stalled = false;
    if (job->slow) {
        job->slow = false;
        job_due(core, job, DUE_CHANGED);
    }
    deadline_clear(core, job, DEADLINE_SLOW);
    deadline_clear(core, job, DEADLINE_STALL);
    if (job->halt_kind == HALT_REGROUP && job->reported > 0) {
        health_halted(core, job);
    }
    CADRE_ASSERT(!job->stalled && job->stall_slot == NONE);
}

/* All members report that they wait: for one another, or for a release that they hold back
 * themselves. That does not end by itself; but a member that waits while others have finished may
 * wait for its last checkpoint. */
static bool all_wait(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->roster > 0);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool waits = stall_counts(job, task) && task->waits_for != NONE;
        bool saves = job->finished > 0 && !task->finished && task->waits_for == slot;
        if (task->rank != NONE && (!waits || saves)) {
            return false;
        }
    }
    return true;
}

static void text_all_wait(const struct core *core, const struct job *job, struct text *text)
{
    bool each_for_itself = job->stall_position < job->released;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    for (uint32_t slot = 0; slot < job->tasks && each_for_itself; slot++) {
        const struct task *task = job_task(core, job, slot);
        each_for_itself = task->rank == NONE || task->waits_for == slot;
    }
    text_add(
        text, each_for_itself
                  ? ": its GPUs wait for one another in a collective; they must reach each other"
                  : ": its tasks wait for one another; all must make the same calls");
}

/* Between steps a task may do what it likes, also when the next one is released; and before its
 * first step it is not known how long one takes. */
static bool is_alone_in_step(const struct job *job)
{
    bool alone = job->roster == 1 && !job->plain && !ps_job_is_set(&job->ps_job);
    bool begun = job->released > job->applied.least && job->wanted > job->applied.least;
    return alone && begun && job->phase == PHASE_RUN && job->outcome == 0 && job->median_us > 0;
}

void health_step_begun(struct core *core, struct job *job)
{
    job->step_begun_us = core->now_us;
    if (is_alone_in_step(job) && !job->stalled && !deadline_armed(job, DEADLINE_SLOW)) {
        deadline_set(core, job, DEADLINE_SLOW, core->now_us + slow_after(core, job));
    }
}

static void stall_begins_alone(struct job *job)
{
    CADRE_ASSERT(is_alone_in_step(job) && !job->stalled);
    job->stall_stamp++;
    job->stalled = true;
    job->stall_since_us = job->step_begun_us;
    job->stall_slot = NONE;
    job->waited_slot = NONE;
    job->stall_position = job->applied.least;
    job->hang_slot = NONE;
}

void health_slow_timeout(struct core *core, struct job *job)
{
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_SLOW));
    if (!job->stalled && is_alone_in_step(job)) {
        uint64_t due_us = job->step_begun_us + slow_after(core, job);
        if (core->now_us < due_us) { /* it was armed in an earlier step */
            deadline_set(core, job, DEADLINE_SLOW, due_us);
            return;
        }
        stall_begins_alone(job);
    }
    if (job->phase == PHASE_RUN && job->stalled) {
        job->slow = true;
        job_due(core, job, DUE_CHANGED);
    }
}

void health_halted(struct core *core, struct job *job)
{
    bool first = job->reported == 1;
    CADRE_ASSERT(job->halt_kind == HALT_REGROUP);
    CADRE_ASSERT(job->reported > 0);
    if (job->stall_us > 0 && (first || !deadline_armed(job, DEADLINE_STALL))) {
        deadline_set(core, job, DEADLINE_STALL, core->now_us + job->stall_us);
        job->progress_us = core->now_us;
    }
}

/* The first member that has not reached a halt at which others are frozen. */
static uint32_t misses_halt(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->halt_kind == HALT_REGROUP);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank != NONE && !task->reported) {
            return slot;
        }
    }
    return NONE;
}

/* The first step that has not ended. A hanging task took part in all steps before its own, but
 * their arrivals may still be missing. */
static uint64_t step_of(const struct core *core, const struct job *job)
{
    bool ahead = facts_health_hangs(core, job) && job->hang_position > job->applied.least;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    return ahead ? job->hang_position : job->applied.least;
}

/* "replica 3 of task 1 on worker b and 1 other of its replicas have not come to collective 2" */
static void text_hang(const struct core *core, const struct job *job, struct text *text)
{
    const struct task_hang *hang = &job->hang;
    CADRE_ASSERT(hang->at != HANG_NONE);
    CADRE_ASSERT(job->hang_slot < job->tasks);
    if (hang->at == HANG_MERGE) {
        text_add(text, "the function of cadre_merge_call in ");
        task_name(core, job, job->hang_slot, text);
        text_add(text, " has not returned");
        return;
    }
    text_add(text, "replica ");
    text_add_u64(text, hang->replica);
    text_add(text, " of ");
    task_name(core, job, job->hang_slot, text);
    if (hang->others > 0) {
        text_add(text, " and ");
        text_count(text, hang->others, "other", "others");
        text_add(text, " of its replicas");
    }
    text_add(text, hang->others > 0 ? " have not " : " has not ");
    if (hang->at == HANG_COLLECTIVE) {
        text_add(text, "come to collective ");
        text_add_u64(text, hang->collective);
    } else if (hang->at == HANG_MEETING) {
        text_add(text, "come to cadre_merge_call");
    } else {
        text_add(text,
            hang->others > 0 ? "returned from their functions" : "returned from its function");
    }
}

void health_stall_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool halted = job->halt_kind == HALT_REGROUP && job->reported > 0;
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_STALL));
    if (job->phase != PHASE_RUN || (!job->stalled && !halted)) {
        return;
    }
    uint32_t slot = halted ? misses_halt(core, job) : facts_health_culprit(core, job);
    if (slot == NONE && (halted || !all_wait(core, job))) {
        deadline_set(core, job, DEADLINE_STALL, core->now_us + job->stall_us);
        return;
    }
    if (slot == NONE) {
        text_add(&text, "step ");
        text_add_u64(&text, job->applied.least);
        text_add(&text, " did not end for ");
        text_time(&text, core->now_us - job->progress_us);
        text_all_wait(core, job, &text);
        generation_abort(core, job, sentence, false);
        return;
    }
    if (!halted && facts_health_hangs(core, job)) {
        text_hang(core, job, &text);
        text_add(&text, " in step ");
    } else {
        task_name(core, job, slot, &text);
        text_add(&text, " did not come to step ");
    }
    text_add_u64(&text, halted ? job->halt_at : step_of(core, job));
    text_add(&text, " for ");
    text_time(&text, core->now_us - job->progress_us);
    waited_for(core, job, slot);
    task_dismiss(core, job, slot, DISMISSED_SILENT);
    generation_abort(core, job, sentence, false);
    CADRE_ASSERT(job->outcome != 0 || generation_is_broken(job));
}

struct core_stall health_stall_of(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->stall_since_us <= core->now_us);
    CADRE_ASSERT(!job->slow || job->stalled);
    if (job->phase != PHASE_RUN || !job->stalled || job->outcome != 0) {
        return (struct core_stall){.slot = NONE};
    }
    return (struct core_stall){.waited_us = core->now_us - job->stall_since_us,
        .step = step_of(core, job),
        .slot = facts_health_culprit(core, job),
        .slow = job->slow};
}

/* Adds which task holds up the step, and how many wait for it. */
static void text_blame(
    const struct core *core, const struct job *job, uint32_t slot, struct text *text)
{
    const struct task *task = job_task(core, job, slot);
    uint32_t by = stall_counts(job, task) ? task->waited_by : 0;
    CADRE_ASSERT(by < job->roster);
    text_add(text, ": ");
    if (facts_health_hangs(core, job)) {
        text_hang(core, job, text);
        if (by > 0) {
            text_add(text, "; ");
            text_count(text, by, "other task waits for it", "other tasks wait for it");
        }
        return;
    }
    task_name(core, job, slot, text);
    text_add(text, job->roster > 1 ? " is waited for" : " is still in it");
    if (by > 0) {
        text_add(text, " by ");
        text_count(text, by, "other", "others");
    }
}

bool health_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    const struct core_stall stall = health_stall_of(core, job);
    if (!stall.slow) {
        return false;
    }
    text_add(&text, "step ");
    text_add_u64(&text, stall.step);
    text_add(&text, " has not ended for ");
    text_add_u64(&text, stall.waited_us / 1000000);
    text_add(&text, " s (median ");
    if (job->median_us < 100000) {
        text_add_u64(&text, job->median_us / 1000);
        text_add(&text, " ms)");
    } else {
        text_add_u64(&text, job->median_us / 1000000);
        text_add(&text, ".");
        text_add_u64(&text, job->median_us / 100000 % 10);
        text_add(&text, " s)");
    }
    if (stall.slot != NONE) {
        text_blame(core, job, stall.slot, &text);
    } else if (all_wait(core, job)) {
        text_all_wait(core, job, &text);
    }
    CADRE_ASSERT(job->slow);
    return true;
}
