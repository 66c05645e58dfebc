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

static void encode_task(struct encoder *encoder, Cadre__V1__TaskInfo *wire,
    Cadre__V1__TaskExit *end, const struct task_info *task)
{
    cadre__v1__task_info__init(wire);
    wire->slot = task->slot;
    wire->incarnation = task->incarnation;
    wire->state = (Cadre__V1__TaskState)task->state;
    wire->worker = (char *)task->worker;
    wire->pid = task->pid;
    if (task->has_exit) {
        encode_task_exit(encoder, end, &task->exit);
        wire->exit = end;
    }
    wire->uses_cadre = task->uses_cadre;
    wire->log_bytes = task->log_bytes;
}

static void encode_tasks(
    struct encoder *encoder, Cadre__V1__JobInfo *wire, const struct job_info *info)
{
    Cadre__V1__TaskInfo **list = encoder_array(encoder, info->task_count, sizeof *list);
    Cadre__V1__TaskInfo *tasks = encoder_array(encoder, info->task_count, sizeof *tasks);
    Cadre__V1__TaskExit *exits = encoder_array(encoder, info->task_count, sizeof *exits);
    if (list == NULL || tasks == NULL || exits == NULL) {
        return;
    }
    for (size_t i = 0; i < info->task_count; i++) {
        encode_task(encoder, &tasks[i], &exits[i], &info->tasks[i]);
        list[i] = &tasks[i];
    }
    wire->tasks = list;
    wire->n_tasks = info->task_count;
}

void encode_job_info(struct encoder *encoder, Cadre__V1__JobInfo *wire, const struct job_info *info)
{
    cadre__v1__job_info__init(wire);
    wire->id = info->id.n;
    wire->name = (char *)info->name;
    wire->program = (char *)info->program;
    wire->state = (Cadre__V1__JobState)info->state;
    wire->code = (int32_t)info->code;
    wire->message = encoder_text(encoder, info->message);
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
        wire->progress = encoder_array(encoder, 1, sizeof *wire->progress);
        if (wire->progress != NULL) {
            encode_progress(encoder, wire->progress, &info->progress);
        }
    }
    if (info->has_evaluation) {
        wire->evaluation = encoder_array(encoder, 1, sizeof *wire->evaluation);
        if (wire->evaluation != NULL) {
            encode_progress(encoder, wire->evaluation, &info->evaluation);
        }
    }
    if (ps_job_is_set(&info->ps_job)) {
        wire->ps_job = encoder_array(encoder, 1, sizeof *wire->ps_job);
        if (wire->ps_job != NULL) {
            encode_ps_job(wire->ps_job, &info->ps_job);
        }
    }
    if (job_limits_any(&info->limits)) {
        wire->limits = encoder_array(encoder, 1, sizeof *wire->limits);
        if (wire->limits != NULL) {
            encode_job_limits(wire->limits, &info->limits);
        }
    }
    encode_tasks(encoder, wire, info);
    encode_shards_list(encoder, wire, info);
}

/* A job whose ten thousand tasks all left a last line would not fit a message: how they ended
 * matters more. */
static void omit_exit_texts(Cadre__V1__JobInfo *wire)
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
static void decode_tasks(
    struct decoder *decoder, const Cadre__V1__JobInfo *wire, struct job_info *ret_info)
{
    if (!decode_count(decoder, "JobInfo.tasks", wire->n_tasks, LIMIT_TASKS_PER_JOB)) {
        return;
    }
    struct task_info *tasks = decode_array(decoder, wire->n_tasks, sizeof *tasks);
    if (tasks == NULL) {
        return;
    }
    decoder->list = "JobInfo.tasks";
    for (size_t i = 0; i < wire->n_tasks; i++) {
        const Cadre__V1__TaskInfo *from = wire->tasks[i];
        decoder->entry = i;
        tasks[i] = (struct task_info){
            .slot = decode_u32(decoder, "TaskInfo.slot", from->slot, 0, LIMIT_TASKS_PER_JOB - 1),
            .incarnation = from->incarnation,
            .state = (enum task_state)decode_i32(
                decoder, "TaskInfo.state", (int32_t)from->state, TASK_WAITING, INT32_MAX),
            .worker = decode_name_or_empty(decoder, "TaskInfo.worker", from->worker),
            .pid = decode_u32(decoder, "TaskInfo.pid", from->pid, 0, INT32_MAX),
            .has_exit = from->exit != NULL,
            .uses_cadre = from->uses_cadre,
            .log_bytes = from->log_bytes,
        };
        tasks[i].role = ps_job_role(&ret_info->ps_job, tasks[i].slot);
        tasks[i].index = ps_job_role_index(&ret_info->ps_job, tasks[i].slot);
        if (from->exit != NULL) {
            decode_task_exit(decoder, from->exit, &tasks[i].exit);
        }
    }
    decoder->list = NULL;
    ret_info->tasks = tasks;
    ret_info->task_count = wire->n_tasks;
}

void decode_job_info(
    struct decoder *decoder, const Cadre__V1__JobInfo *wire, struct job_info *ret_info)
{
    *ret_info = (struct job_info){
        .id = decode_job_id(decoder, "JobInfo.id", wire->id),
        .name = decode_name(decoder, "JobInfo.name", wire->name),
        .program = decode_path(decoder, "JobInfo.program", wire->program),
        .state = (enum job_state)decode_i32(
            decoder, "JobInfo.state", (int32_t)wire->state, JOB_QUEUED, INT32_MAX),
        .code = (cadre_status)decode_i32(
            decoder, "JobInfo.code", wire->code, CADRE_OK, CADRE_UNAUTHENTICATED),
        .message = decode_text(decoder, "JobInfo.message", wire->message),
        .workers = decode_u32(decoder, "JobInfo.workers", wire->workers, 1, LIMIT_TASKS_PER_JOB),
        .workers_min =
            decode_u32(decoder, "JobInfo.workers_min", wire->workers_min, 0, wire->workers),
        .roster = decode_u32(decoder, "JobInfo.roster", wire->roster, 0, LIMIT_TASKS_PER_JOB),
        .restarts = wire->restarts,
        .replicas =
            decode_u32(decoder, "JobInfo.replicas", wire->replicas, 0, LIMIT_REPLICAS_PER_TASK),
        .priority = wire->priority,
        .submitted_us = wire->submitted_us,
        .started_us = wire->started_us,
        .ended_us = wire->ended_us,
        .position = decode_position(decoder, "JobInfo.position", wire->position),
        .verified_position =
            decode_position(decoder, "JobInfo.verified_position", wire->verified_position),
        .verified_digest = wire->verified_digest,
        .generation = wire->generation,
        .checkpoint = decode_path_or_empty(decoder, "JobInfo.checkpoint", wire->checkpoint),
        .exit_code = decode_i32(decoder, "JobInfo.exit_code", wire->exit_code, 0, 255),
        .has_progress = wire->progress != NULL,
        .has_evaluation = wire->evaluation != NULL,
        .ps_job = decode_ps_job(decoder, wire->ps_job),
        .limits = decode_job_limits(decoder, wire->limits),
    };
    if (wire->evaluation != NULL) {
        decode_progress(decoder, wire->evaluation, &ret_info->evaluation);
    }
    if (wire->progress != NULL) {
        decode_progress(decoder, wire->progress, &ret_info->progress);
    }
    decode_tasks(decoder, wire, ret_info);
    decode_shards_list(decoder, wire, ret_info);
}

cadre_status wire_pack_job_info(
    const struct job_info *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__JobInfo wire;
    encode_job_info(&encoder, &wire, message);
    omit_exit_texts(&wire);
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_job_info(const void *bytes, size_t size, struct wire_arena *arena,
    struct job_info *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__JobInfo *wire =
        decoder_open(&decoder, &cadre__v1__job_info__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        decode_job_info(&decoder, wire, ret_message);
    }
    return decoder.status;
}

/* ---- ListJobsResponse ---- */

cadre_status wire_pack_list_jobs_response(
    const struct list_jobs_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__ListJobsResponse wire = CADRE__V1__LIST_JOBS_RESPONSE__INIT;
    Cadre__V1__JobInfo **list = encoder_array(&encoder, message->count, sizeof *list);
    Cadre__V1__JobInfo *jobs = encoder_array(&encoder, message->count, sizeof *jobs);
    if (list != NULL && jobs != NULL) {
        for (size_t i = 0; i < message->count; i++) {
            encode_job_info(&encoder, &jobs[i], &message->jobs[i]);
            list[i] = &jobs[i];
        }
        wire.jobs = list;
        wire.n_jobs = message->count;
    }
    wire.more = message->more;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_list_jobs_response(const void *bytes, size_t size,
    struct wire_arena *arena, struct list_jobs_response *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__ListJobsResponse *wire = decoder_open(
        &decoder, &cadre__v1__list_jobs_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL ||
        !decode_count(&decoder, "ListJobsResponse.jobs", wire->n_jobs, LIMIT_JOBS_LISTED)) {
        return decoder.status;
    }
    struct job_info *jobs = decode_array(&decoder, wire->n_jobs, sizeof *jobs);
    for (size_t i = 0; i < wire->n_jobs && jobs != NULL; i++) {
        decode_job_info(&decoder, wire->jobs[i], &jobs[i]);
    }
    *ret_message =
        (struct list_jobs_response){.jobs = jobs, .count = wire->n_jobs, .more = wire->more};
    return decoder.status;
}

/* ---- SubmitResponse, JobRequest ---- */

cadre_status wire_pack_submit_response(
    const struct submit_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__SubmitResponse wire = CADRE__V1__SUBMIT_RESPONSE__INIT;
    wire.id = message->id.n;
    wire.queued_before = message->queued_before;
    wire.note = encoder_text(&encoder, message->note);
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_submit_response(const void *bytes, size_t size, struct wire_arena *arena,
    struct submit_response *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__SubmitResponse *wire = decoder_open(
        &decoder, &cadre__v1__submit_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        *ret_message = (struct submit_response){
            .id = decode_job_id(&decoder, "SubmitResponse.id", wire->id),
            .queued_before = wire->queued_before,
            .note = decode_text(&decoder, "SubmitResponse.note", wire->note),
        };
    }
    return decoder.status;
}

cadre_status wire_pack_job_request(
    const struct job_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__JobRequest wire = CADRE__V1__JOB_REQUEST__INIT;
    wire.id = message->id.n;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_job_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct job_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__JobRequest *wire =
        decoder_open(&decoder, &cadre__v1__job_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->id = decode_job_id(&decoder, "JobRequest.id", wire->id);
    }
    return decoder.status;
}
