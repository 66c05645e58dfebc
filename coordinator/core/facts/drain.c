/* SPDX-License-Identifier: Apache-2.0
 * Workers that drain: they get no new tasks, and their tasks are moved elsewhere by a halt before a
 * step (protocol, rule 20). Members that do not reach it in time are lost. A client's drain belongs
 * to a name, until a client ends it; a daemon's own to that incarnation. events/ calls this. */
#include "coordinator/core/facts/drain.h"

#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

void drain_note(struct core *core, struct job *job, bool draining)
{
    struct list *drained = &core->drained;
    uint32_t at = LIST_NONE;
    uint32_t before = drained->last;
    if (draining && !job->draining) {
        while (before != LIST_NONE && core->jobs[before].id.n > job->id.n) {
            at = before;
            before = drained->nodes[before].prev;
        }
        list_insert(drained, at, job_index(core, job));
    } else if (!draining && job->draining) {
        list_remove(drained, job_index(core, job));
    }
    job->draining = draining;
    CADRE_ASSERT(!draining || drained->count > 0);
}

bool ps_job_drains(const struct core *core, const struct job *job)
{
    uint32_t first = ps_job_first_slot(&job->ps_job, ROLE_SERVER);
    const struct task *chief = job_task(core, job, 0);
    bool drains = task_is_usable(chief) && task_drains(core, job, chief);
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->ps_job.servers < job->tasks);
    for (uint32_t i = 0; i < job->ps_job.servers && !drains; i++) {
        const struct task *server = job_task(core, job, first + i);
        drains = task_is_usable(server) && task_drains(core, job, server);
    }
    return drains;
}

/* Its members wait for a halt; other tasks are dismissed at once. */
static void task_group_drains(struct core *core, struct job *job, struct task_group *task_group)
{
    bool ps_job = ps_job_is_set(&job->ps_job);
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_REGROUP;
    bool goes_on = runs || (ps_job && job->phase == PHASE_JOIN);
    bool draining = job->draining || task_group->members > 0;
    uint32_t slot = task_group->first;
    CADRE_ASSERT(task_group->worker != NONE);
    CADRE_ASSERT(core->workers[task_group->worker].draining);
    while (slot != NONE && goes_on && job->outcome == 0) {
        const struct task *task = job_task(core, job, slot);
        uint32_t next = task->next;
        bool goes =
            ps_job ? task_is_ps_task(task) && task->role != ROLE_SERVER : task->rank == NONE;
        if (task_is_usable(task) && goes) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
        draining = draining || (task_is_usable(task) && task->role == ROLE_SERVER);
        slot = next;
    }
    drain_note(core, job, draining);
    job_due(core, job, DUE_CONTROL);
}

/* The worker takes no more tasks, and its tasks are to be moved elsewhere. */
static void drain_begins(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    struct task_group_ref ref = w->task_groups;
    CADRE_ASSERT(w->leaves || w->drained);
    if (w->draining) {
        return;
    }
    w->draining = true;
    worker_offer(core, worker);
    while (ref.job != NONE) {
        struct job *job = &core->jobs[ref.job];
        struct task_group *task_group = job_task_group(core, job, ref.task_group);
        ref = task_group->next;
        task_group_drains(core, job, task_group);
    }
}

void worker_draining(struct core *core, uint32_t worker)
{
    CADRE_ASSERT(core->workers[worker].state == WORKER_CONNECTED);
    core->workers[worker].leaves = true;
    drain_begins(core, worker);
}

void drain_ends(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->draining || (!w->leaves && !w->drained));
    if (!w->draining || w->leaves || w->drained) {
        return;
    }
    w->draining = false;
    worker_offer(core, worker);
    for (struct task_group_ref ref = w->task_groups; ref.job != NONE;) {
        struct job *job = &core->jobs[ref.job];
        ref = job_task_group(core, job, ref.task_group)->next;
        job_due(core, job, DUE_CONTROL);
    }
}

/* Keeps the client's drain of this name; a newer one replaces the older. */
static void drain_keep(struct core *core, const struct core_drained *drained)
{
    const struct core_drained *known = drain_of(core, drained->worker);
    size_t at = known != NULL ? (size_t)(known - core->drains) : core->drain_count++;
    CADRE_ASSERT(at < core->options.limits.workers_max);
    core->drains[at] = *drained;
}

bool drain_has_room(const struct core *core, const char *worker)
{
    CADRE_ASSERT(core->drain_count <= core->options.limits.workers_max);
    return core->drain_count < core->options.limits.workers_max || drain_of(core, worker) != NULL;
}

void drain_record(struct core *core, const struct core_drained *drained, enum core_record_type type)
{
    struct core_record *record = &action_add(core, CORE_ACTION_RECORD)->record;
    CADRE_ASSERT(type == CORE_RECORD_DRAINED || type == CORE_RECORD_UNDRAINED);
    record->type = type;
    record->sync = true;
    record->drained = *drained;
}

void drain_asked(struct core *core, const struct core_drained *drained)
{
    uint32_t worker = worker_by_name(core, drained->worker);
    CADRE_ASSERT(drain_has_room(core, drained->worker));
    drain_keep(core, drained);
    drain_record(core, drained, CORE_RECORD_DRAINED);
    if (worker != NONE) {
        core->workers[worker].drained = true;
        drain_begins(core, worker);
    }
}

void drain_restore(struct core *core, const struct core_drained *drained)
{
    if (core->drain_count < core->options.limits.workers_max) { /* it may be lower than it was */
        drain_keep(core, drained);
    }
}

void drain_restored(struct core *core, struct job *job)
{
    for (uint32_t i = 0; i < job->task_groups; i++) {
        struct task_group *task_group = job_task_group(core, job, i);
        if (task_group->worker != NONE && core->workers[task_group->worker].draining) {
            task_group_drains(core, job, task_group);
        }
    }
}

bool drain_possible(struct core *core, struct job *job, bool *ret_stuck)
{
    uint32_t leaving = 0;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    *ret_stuck = false;
    if (ps_job_is_set(&job->ps_job)) { /* all its state is in these tasks: no task stays */
        drain_note(core, job, ps_job_drains(core, job));
        *ret_stuck = job->draining;
        return false;
    }
    for (uint32_t i = 0; i < job->task_groups; i++) {
        const struct task_group *task_group = job_task_group(core, job, i);
        bool drains = task_group->worker != NONE && core->workers[task_group->worker].draining;
        leaving += drains ? task_group->members : 0;
    }
    CADRE_ASSERT(leaving <= job->roster);
    if (leaving == 0) {
        drain_note(core, job, false);
        return false;
    }
    uint32_t left = job->roster - leaving;
    bool possible =
        left > 0 && (left >= job->tasks_min || job->tasks_min - left <= offers_free(core, job));
    *ret_stuck = !possible; /* with no task left the state would be lost */
    return possible;
}

/* Rule 20: the drain's deadline is over, so its members are lost. */
void drain_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t first = NONE;
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_DRAIN));
    if (job->phase == PHASE_JOIN) {
        tasks_stop_leaving(core, job);
    }
    if (job->phase != PHASE_RUN) {
        return;
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank != NONE && task_drains(core, job, task)) {
            first = first == NONE ? slot : first;
        }
    }
    if (first == NONE) {
        return;
    }
    task_name(core, job, first, &text);
    text_add(&text, ", which drains, had to go before step ");
    text_add_u64(&text, job->halt_at);
    text_add(&text, " was begun, within ");
    text_time(&text, core->options.grace_us);
    for (uint32_t slot = first; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank != NONE && task_drains(core, job, task)) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    job->excused = true;
    generation_abort(core, job, sentence, false);
}
