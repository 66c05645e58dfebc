/* SPDX-License-Identifier: Apache-2.0
 * What a client is told about jobs: SubmitResponse, JobInfo, ListJobsResponse. */
#include "common/wire/codec.h"

_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_QUEUED == JOB_QUEUED, "same numbers");
_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_STARTING == JOB_STARTING, "same numbers");
_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_RUNNING == JOB_RUNNING, "same numbers");
_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_ENDING == JOB_ENDING, "same numbers");
_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_SUCCEEDED == JOB_SUCCEEDED, "same numbers");
_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_FAILED == JOB_FAILED, "same numbers");
_Static_assert((int)CADRE__V1__JOB_STATE__JOB_STATE_PREEMPTED == JOB_PREEMPTED, "same numbers");
_Static_assert((int)CADRE__V1__TASK_STATE__TASK_STATE_WAITING == TASK_WAITING, "same numbers");
_Static_assert((int)CADRE__V1__TASK_STATE__TASK_STATE_STARTING == TASK_STARTING, "same numbers");
_Static_assert((int)CADRE__V1__TASK_STATE__TASK_STATE_RUNNING == TASK_RUNNING, "same numbers");
_Static_assert((int)CADRE__V1__TASK_STATE__TASK_STATE_EXITED == TASK_EXITED, "same numbers");
_Static_assert((int)CADRE__V1__TASK_STATE__TASK_STATE_LOST == TASK_LOST, "same numbers");

/* ---- JobInfo ---- */

static void fill_task(struct packer *packer, Cadre__V1__TaskInfo *wire, Cadre__V1__TaskExit *end,
    const struct task_info *task)
{
    cadre__v1__task_info__init(wire);
    wire->slot = task->slot;
    wire->incarnation = task->incarnation;
    wire->state = (Cadre__V1__TaskState)task->state;
    wire->worker = (char *)task->worker;
    wire->pid = task->pid;
    if (task->has_exit) {
        fill_task_exit(packer, end, &task->exit);
        wire->exit = end;
    }
    wire->uses_cadre = task->uses_cadre;
    wire->log_bytes = task->log_bytes;
}

static void fill_tasks(struct packer *packer, Cadre__V1__JobInfo *wire, const struct job_info *info)
{
    Cadre__V1__TaskInfo **list = packer_array(packer, info->task_count, sizeof *list);
    Cadre__V1__TaskInfo *tasks = packer_array(packer, info->task_count, sizeof *tasks);
    Cadre__V1__TaskExit *exits = packer_array(packer, info->task_count, sizeof *exits);
    if (list == NULL || tasks == NULL || exits == NULL) {
        return;
    }
    for (size_t i = 0; i < info->task_count; i++) {
        fill_task(packer, &tasks[i], &exits[i], &info->tasks[i]);
        list[i] = &tasks[i];
    }
    wire->tasks = list;
    wire->n_tasks = info->task_count;
}

void fill_job_info(struct packer *packer, Cadre__V1__JobInfo *wire, const struct job_info *info)
{
    cadre__v1__job_info__init(wire);
    wire->id = info->id.n;
    wire->name = (char *)info->name;
    wire->program = (char *)info->program;
    wire->state = (Cadre__V1__JobState)info->state;
    wire->code = (int32_t)info->code;
    wire->message = packer_text(packer, info->message);
    wire->workers = info->workers;
    wire->workers_min = info->workers_min;
    wire->roster = info->roster;
    wire->restarts = info->restarts;
    wire->replicas = info->replicas;
    wire->priority = info->priority;
    wire->submitted_us = info->submitted_us;
    wire->started_us = info->started_us;
    wire->ended_us = info->ended_us;
    wire->position = info->position;
    wire->verified_position = info->verified_position;
    wire->verified_digest = info->verified_digest;
    wire->generation = info->generation;
    wire->checkpoint = (char *)info->checkpoint;
    wire->exit_code = info->exit_code;
    if (info->has_progress) {
        wire->progress = packer_array(packer, 1, sizeof *wire->progress);
        if (wire->progress != NULL) {
            fill_progress(packer, wire->progress, &info->progress);
        }
    }
    if (info->has_evaluation) {
        wire->evaluation = packer_array(packer, 1, sizeof *wire->evaluation);
        if (wire->evaluation != NULL) {
            fill_progress(packer, wire->evaluation, &info->evaluation);
        }
    }
    if (crew_is(&info->crew)) {
        wire->crew = packer_array(packer, 1, sizeof *wire->crew);
        if (wire->crew != NULL) {
            fill_crew(wire->crew, &info->crew);
        }
    }
    if (job_limits_any(&info->limits)) {
        wire->limits = packer_array(packer, 1, sizeof *wire->limits);
        if (wire->limits != NULL) {
            fill_job_limits(wire->limits, &info->limits);
        }
    }
    fill_tasks(packer, wire, info);
    fill_shards_list(packer, wire, info);
}

/* A job whose ten thousand tasks all left a last line would not fit a message: how they ended
 * matters more. */
static void drop_exit_texts(Cadre__V1__JobInfo *wire)
{
    if (protobuf_c_message_get_packed_size(&wire->base) <= LIMIT_FRAME_BYTES) {
        return;
    }
    for (size_t i = 0; i < wire->n_tasks; i++) {
        if (wire->tasks[i]->exit != NULL) {
            wire->tasks[i]->exit->text = NULL;
        }
    }
}

/* States that are not known here are taken as they are: a coordinator of a later version tells of
 * them, and its clients go on. */
static void take_tasks(
    struct taker *taker, const Cadre__V1__JobInfo *wire, struct job_info *ret_info)
{
    if (!take_count(taker, "JobInfo.tasks", wire->n_tasks, LIMIT_TASKS_PER_JOB)) {
        return;
    }
    struct task_info *tasks = take_array(taker, wire->n_tasks, sizeof *tasks);
    if (tasks == NULL) {
        return;
    }
    taker->list = "JobInfo.tasks";
    for (size_t i = 0; i < wire->n_tasks; i++) {
        const Cadre__V1__TaskInfo *from = wire->tasks[i];
        taker->entry = i;
        tasks[i] = (struct task_info){
            .slot = take_u32(taker, "TaskInfo.slot", from->slot, 0, LIMIT_TASKS_PER_JOB - 1),
            .incarnation = from->incarnation,
            .state = (enum task_state)take_i32(
                taker, "TaskInfo.state", (int32_t)from->state, TASK_WAITING, INT32_MAX),
            .worker = take_name_or_empty(taker, "TaskInfo.worker", from->worker),
            .pid = take_u32(taker, "TaskInfo.pid", from->pid, 0, INT32_MAX),
            .has_exit = from->exit != NULL,
            .uses_cadre = from->uses_cadre,
            .log_bytes = from->log_bytes,
        };
        tasks[i].role = crew_role(&ret_info->crew, tasks[i].slot);
        tasks[i].index = crew_index(&ret_info->crew, tasks[i].slot);
        if (from->exit != NULL) {
            take_task_exit(taker, from->exit, &tasks[i].exit);
        }
    }
    taker->list = NULL;
    ret_info->tasks = tasks;
    ret_info->task_count = wire->n_tasks;
}

void take_job_info(struct taker *taker, const Cadre__V1__JobInfo *wire, struct job_info *ret_info)
{
    *ret_info = (struct job_info){
        .id = take_job_id(taker, "JobInfo.id", wire->id),
        .name = take_name(taker, "JobInfo.name", wire->name),
        .program = take_path(taker, "JobInfo.program", wire->program),
        .state = (enum job_state)take_i32(
            taker, "JobInfo.state", (int32_t)wire->state, JOB_QUEUED, INT32_MAX),
        .code = (cadre_status)take_i32(
            taker, "JobInfo.code", wire->code, CADRE_OK, CADRE_UNAUTHENTICATED),
        .message = take_text(taker, "JobInfo.message", wire->message),
        .workers = take_u32(taker, "JobInfo.workers", wire->workers, 1, LIMIT_TASKS_PER_JOB),
        .workers_min = take_u32(taker, "JobInfo.workers_min", wire->workers_min, 0, wire->workers),
        .roster = take_u32(taker, "JobInfo.roster", wire->roster, 0, LIMIT_TASKS_PER_JOB),
        .restarts = wire->restarts,
        .replicas = take_u32(taker, "JobInfo.replicas", wire->replicas, 0, LIMIT_REPLICAS_PER_TASK),
        .priority = wire->priority,
        .submitted_us = wire->submitted_us,
        .started_us = wire->started_us,
        .ended_us = wire->ended_us,
        .position = take_position(taker, "JobInfo.position", wire->position),
        .verified_position =
            take_position(taker, "JobInfo.verified_position", wire->verified_position),
        .verified_digest = wire->verified_digest,
        .generation = wire->generation,
        .checkpoint = take_path_or_empty(taker, "JobInfo.checkpoint", wire->checkpoint),
        .exit_code = take_i32(taker, "JobInfo.exit_code", wire->exit_code, 0, 255),
        .has_progress = wire->progress != NULL,
        .has_evaluation = wire->evaluation != NULL,
        .crew = take_crew(taker, wire->crew),
        .limits = take_job_limits(taker, wire->limits),
    };
    if (wire->evaluation != NULL) {
        take_progress(taker, wire->evaluation, &ret_info->evaluation);
    }
    if (wire->progress != NULL) {
        take_progress(taker, wire->progress, &ret_info->progress);
    }
    take_tasks(taker, wire, ret_info);
    take_shards_list(taker, wire, ret_info);
}

cadre_status wire_pack_job_info(
    const struct job_info *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__JobInfo wire;
    fill_job_info(&packer, &wire, message);
    drop_exit_texts(&wire);
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_job_info(const void *bytes, size_t size, struct wire_arena *arena,
    struct job_info *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__JobInfo *wire =
        taker_open(&taker, &cadre__v1__job_info__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        take_job_info(&taker, wire, ret_message);
    }
    return taker.status;
}

/* ---- ListJobsResponse ---- */

cadre_status wire_pack_list_jobs_response(
    const struct list_jobs_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__ListJobsResponse wire = CADRE__V1__LIST_JOBS_RESPONSE__INIT;
    Cadre__V1__JobInfo **list = packer_array(&packer, message->count, sizeof *list);
    Cadre__V1__JobInfo *jobs = packer_array(&packer, message->count, sizeof *jobs);
    if (list != NULL && jobs != NULL) {
        for (size_t i = 0; i < message->count; i++) {
            fill_job_info(&packer, &jobs[i], &message->jobs[i]);
            list[i] = &jobs[i];
        }
        wire.jobs = list;
        wire.n_jobs = message->count;
    }
    wire.more = message->more;
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_list_jobs_response(const void *bytes, size_t size,
    struct wire_arena *arena, struct list_jobs_response *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__ListJobsResponse *wire = taker_open(
        &taker, &cadre__v1__list_jobs_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL ||
        !take_count(&taker, "ListJobsResponse.jobs", wire->n_jobs, LIMIT_JOBS_LISTED)) {
        return taker.status;
    }
    struct job_info *jobs = take_array(&taker, wire->n_jobs, sizeof *jobs);
    for (size_t i = 0; i < wire->n_jobs && jobs != NULL; i++) {
        take_job_info(&taker, wire->jobs[i], &jobs[i]);
    }
    *ret_message =
        (struct list_jobs_response){.jobs = jobs, .count = wire->n_jobs, .more = wire->more};
    return taker.status;
}

/* ---- SubmitResponse, JobRequest ---- */

cadre_status wire_pack_submit_response(
    const struct submit_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__SubmitResponse wire = CADRE__V1__SUBMIT_RESPONSE__INIT;
    wire.id = message->id.n;
    wire.queued_before = message->queued_before;
    wire.note = packer_text(&packer, message->note);
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_submit_response(const void *bytes, size_t size, struct wire_arena *arena,
    struct submit_response *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__SubmitResponse *wire =
        taker_open(&taker, &cadre__v1__submit_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        *ret_message = (struct submit_response){
            .id = take_job_id(&taker, "SubmitResponse.id", wire->id),
            .queued_before = wire->queued_before,
            .note = take_text(&taker, "SubmitResponse.note", wire->note),
        };
    }
    return taker.status;
}

cadre_status wire_pack_job_request(
    const struct job_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__JobRequest wire = CADRE__V1__JOB_REQUEST__INIT;
    wire.id = message->id.n;
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_job_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct job_request *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__JobRequest *wire =
        taker_open(&taker, &cadre__v1__job_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->id = take_job_id(&taker, "JobRequest.id", wire->id);
    }
    return taker.status;
}
