/* SPDX-License-Identifier: Apache-2.0
 * Jobs from submit to the queue, and their places in memory. The tasks of a job are contiguous;
 * when the arrays are used up to their end but have room, they are moved together. */
#include "coordinator/core/parts.h"

static const struct {
    uint16_t may_become; /* bits of enum job_state */
} job_moves[] = {
    [JOB_QUEUED] = {1 << JOB_STARTING | 1 << JOB_CANCELLED | 1 << JOB_FAILED},
    [JOB_STARTING] = {1 << JOB_RUNNING | 1 << JOB_ENDING | 1 << JOB_QUEUED},
    [JOB_RUNNING] = {1 << JOB_ENDING | 1 << JOB_QUEUED},
    [JOB_ENDING] = {1 << JOB_SUCCEEDED | 1 << JOB_FAILED | 1 << JOB_CANCELLED | 1 << JOB_PREEMPTED},
    [JOB_SUCCEEDED] = {0},
    [JOB_FAILED] = {0},
    [JOB_CANCELLED] = {0},
    [JOB_PREEMPTED] = {0},
};

void job_move(struct core *core, struct job *job, enum job_state state)
{
    CADRE_ASSERT((job_moves[job->state].may_become >> state & 1) != 0);
    job->state = state;
    job_due(core, job, DUE_CHANGED);
}

uint32_t job_index(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job >= core->jobs && job < core->jobs + core->options.limits.jobs_max);
    return (uint32_t)(job - core->jobs);
}

struct job *job_find(const struct core *core, struct job_id id)
{
    uint32_t index = map_get(&core->jobs_by_id, id.n);
    return index == MAP_NONE ? NULL : &core->jobs[index];
}

void job_due(struct core *core, struct job *job, uint32_t due)
{
    CADRE_ASSERT(job->id.n != 0);
    job->due |= due;
    if (job->touched_step != core->steps) {
        job->touched_step = core->steps;
        if (core->recent_step != core->steps) {
            core->recent_step = core->steps;
            core->recent_count = 0;
        }
        if (core->recent_count < RECENT_MAX) {
            core->recent[core->recent_count] = job_index(core, job);
        }
        core->recent_count++;
    }
    if (!job->touched) {
        job->touched = true;
        list_append(&core->touched, job_index(core, job));
    }
}

bool job_fits(const struct core *core, uint32_t tasks, char sentence[LIMIT_TEXT_BYTES])
{
    const struct core_limits *limits = &core->options.limits;
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    if (core->jobs_free.count == 0) {
        text_add(&text, "the coordinator holds ");
        text_add_u64(&text, limits->jobs_max);
        text_add(&text,
            " jobs that have not ended, which is its limit: try again when one has, or raise "
            "--jobs-max");
        return false;
    }
    if (tasks > limits->tasks_max - core->tasks_live) {
        text_add(&text, "the job asks for ");
        text_add_u64(&text, tasks);
        text_add(&text, " tasks and the coordinator holds ");
        text_add_u64(&text, core->tasks_live);
        text_add(&text, " of at most ");
        text_add_u64(&text, limits->tasks_max);
        text_add(&text, ": try again when a job has ended, or raise --tasks-max");
        return false;
    }
    return true;
}

/* Moves all live tasks to the front of the arrays, in their order. */
static void tasks_compact(struct core *core)
{
    uint32_t to = 0;
    const struct list *live = &core->jobs_live;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        struct job *job = &core->jobs[i];
        CADRE_ASSERT(job->first >= to);
        memmove(core->tasks + to, core->tasks + job->first, sizeof(*core->tasks) * job->tasks);
        memmove(
            core->parties + to, core->parties + job->first, sizeof(*core->parties) * job->tasks);
        memmove(
            core->members + to, core->members + job->first, sizeof(*core->members) * job->tasks);
        job->first = to;
        to += job->tasks;
    }
    CADRE_ASSERT(to == core->tasks_live);
    core->tasks_used = to;
}

struct job *job_create(struct core *core, struct job_id id, const struct core_job_spec *spec)
{
    uint32_t tasks = spec->tasks;
    uint32_t tasks_max = core->options.limits.tasks_max;
    CADRE_ASSERT(tasks > 0 && tasks <= tasks_max - core->tasks_live);
    CADRE_ASSERT(spec->tasks_min > 0 && spec->tasks_min <= tasks);
    CADRE_ASSERT(spec->gpus <= LIMIT_GPUS_PER_WORKER);
    CADRE_ASSERT(id.n > core->job_last);
    if (tasks > tasks_max - core->tasks_used) {
        tasks_compact(core);
    }
    uint32_t index = list_take(&core->jobs_free);
    CADRE_ASSERT(index != LIST_NONE);
    struct job *job = &core->jobs[index];
    memset(job, 0, offsetof(struct job, stretches));
    job->id = id;
    job->state = JOB_QUEUED;
    job->phase = PHASE_JOIN;
    job->priority = spec->priority;
    job->tasks = tasks;
    job->tasks_min = spec->tasks_min;
    job->max_restarts = spec->max_restarts;
    job->wait_us = spec->wait_us == 0 ? core->options.wait_us : spec->wait_us;
    job->stall_us = spec->stall_us == 0 ? core->options.stall_us : spec->stall_us;
    job->crew = spec->crew;
    job->gpus = spec->gpus;
    job->time_limit_us = spec->time_limit_us;
    job->first = core->tasks_used;
    job->waiting = tasks;
    job->early_slot = NONE;
    job->fresh = NONE;
    job->fresh_last = NONE;
    job->lost = NONE;
    job->dismissed = NONE;
    job->stall_slot = NONE;
    job->hang_slot = NONE;
    job->source = SOURCE_NONE;
    job->halt_at = POSITION_NONE;
    job->checkpoint_at = POSITION_NONE;
    for (uint32_t i = 0; i < DEADLINES; i++) {
        job->deadlines[i] = UINT64_MAX;
    }
    memset(core->parties + job->first, 0, sizeof(*core->parties) * tasks);
    memset(core->members + job->first, 0, sizeof(*core->members) * tasks);
    memset(core->tasks + job->first, 0, sizeof(*core->tasks) * tasks);
    for (uint32_t slot = 0; slot < tasks; slot++) {
        task_clear(job_task(core, job, slot));
    }
    crew_open(core, job);
    core->tasks_used += tasks;
    core->tasks_live += tasks;
    core->job_last = id.n;
    list_append(&core->jobs_live, index);
    map_add(&core->jobs_by_id, id.n, index);
    queue_add(core, job);
    core->place_due = true;
    return job;
}

/* Gives up what is left of its places; tasks that were not collected in time give their slots back
 * too. */
static void job_leaves(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->party == NONE) {
            continue;
        }
        uint32_t worker = job_party(core, job, task->party)->worker;
        if (worker != NONE && !task->collected) {
            CADRE_ASSERT(core->workers[worker].slots_used > 0);
            core->workers[worker].slots_used--;
            worker_offer(core, worker);
        }
        party_leave(core, job, slot);
    }
}

void job_forget(struct core *core, struct job *job)
{
    uint32_t index = job_index(core, job);
    CADRE_ASSERT(job_state_is_final(job->state));
    job_leaves(core, job);
    deadlines_clear(core, job);
    CADRE_ASSERT(!job->wanting);
    drain_note(core, job, false);
    if (job->touched) {
        list_remove(&core->touched, index);
    }
    map_remove(&core->jobs_by_id, job->id.n, index);
    list_remove(&core->jobs_live, index);
    list_insert(&core->jobs_free, core->jobs_free.first, index); /* its memory is used already */
    CADRE_ASSERT(core->tasks_live >= job->tasks);
    core->tasks_live -= job->tasks;
    if (job->first + job->tasks == core->tasks_used) {
        core->tasks_used = job->first;
    }
    job->id.n = 0;
}

void call_answer(struct core *core, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *sentence)
{
    if (call.n == 0) {
        return;
    }
    struct core_action *action = action_add(core, CORE_ACTION_ANSWER);
    struct text text = text_begin(action->answer.text, sizeof(action->answer.text));
    action->answer.call = call;
    action->answer.code = code;
    action->answer.job = job;
    action->answer.queued_before = queued_before;
    text_add(&text, sentence);
}

/* "a job has 1 to 16384 tasks, not 0"; false: nothing is wrong. */
static bool spec_is_wrong(const struct core_job_spec *spec, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    if (!crew_fits(spec)) {
        text_add(&text, "a job with parameter servers has as many tasks as its crew, which are ");
        text_add_u64(&text, crew_tasks(&spec->crew));
        text_add(&text, ", and at least one worker");
        return true;
    }
    if (spec->tasks == 0 || spec->tasks > LIMIT_TASKS_PER_JOB) {
        text_add(&text, "a job has 1 to ");
        text_add_u64(&text, LIMIT_TASKS_PER_JOB);
        text_add(&text, " tasks, not ");
        text_add_u64(&text, spec->tasks);
        return true;
    }
    if (spec->tasks_min == 0 || spec->tasks_min > spec->tasks) {
        text_add(&text, "a job of at most ");
        text_count(&text, spec->tasks, "task", "tasks");
        text_add(&text, " needs between 1 and that many, not ");
        text_add_u64(&text, spec->tasks_min);
        return true;
    }
    return false;
}

void job_submit(struct core *core, const struct core_submit *submit)
{
    const struct job_id none = {0};
    char sentence[LIMIT_TEXT_BYTES];
    if (spec_is_wrong(&submit->spec, sentence)) {
        call_answer(core, submit->call, CADRE_INVALID_ARGUMENT, none, 0, sentence);
        return;
    }
    if (!job_fits(core, submit->spec.tasks, sentence)) {
        call_answer(core, submit->call, CADRE_RESOURCE_EXHAUSTED, none, 0, sentence);
        return;
    }
    struct job_id id = {.n = core->job_last + 1};
    struct job *job = job_create(core, id, &submit->spec);
    struct core_record *record = record_add(core, job, CORE_RECORD_JOB, true);
    record->submitted.spec = submit->spec;
    record->submitted.restores = submit->restores;
    if (submit->restores) {
        job->has_checkpoint = true;
        job->checkpoint = submit->checkpoint;
        record->submitted.checkpoint = submit->checkpoint;
    }
    struct text note = text_begin(job->note, sizeof(job->note));
    text_add(&note, submit->note != NULL ? submit->note : "");
    call_answer(core, submit->call, CADRE_OK, id, queue_before(core, job), job->note);
    job_due(core, job, DUE_CHANGED);
}

void job_cancel(struct core *core, const struct core_cancel *cancel)
{
    struct job *job = job_find(core, cancel->job);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_add(&text, "job ");
    text_add_u64(&text, cancel->job.n);
    if (job == NULL) {
        bool was = cancel->job.n > 0 && cancel->job.n <= core->job_last;
        text_add(&text, was ? " has ended already" : " does not exist: `cadre jobs` lists them");
        call_answer(core, cancel->call, was ? CADRE_FAILED_PRECONDITION : CADRE_NOT_FOUND,
            cancel->job, 0, sentence);
        return;
    }
    if (job->state == JOB_ENDING) {
        text_add(&text, " is ending already");
        call_answer(core, cancel->call, CADRE_FAILED_PRECONDITION, cancel->job, 0, sentence);
        return;
    }
    ending_cancel(core, job);
    call_answer(core, cancel->call, CADRE_OK, cancel->job, 0, "");
}
