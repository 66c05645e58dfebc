/* SPDX-License-Identifier: Apache-2.0
 * JobSpec, what a client submits: the strictest checks, because it is written by people. The
 * checkpoint that a job goes on from. What a client receives of jobs: JobInfo and its parts. */
#include <string.h>

#include "common/pure/object_path.h"
#include "common/wire/check.h"
#include "common/wire/rows.h"

/* The numbers of the enums are those of the model. */
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

static bool ps_job_is_given(const void *model)
{
    return ps_job_is_set(model);
}

ROWS(PsJob) = {
    NUMBER(PsJob, workers, 1, LIMIT_TASKS_PER_JOB),
    NUMBER(PsJob, servers, 1, LIMIT_TASKS_PER_JOB),
    NUMBER(PsJob, evaluators, 0, PS_JOB_EVALUATORS_MAX),
    BOOL(PsJob, backups),
};
TABLE_WITH(PsJob, ps_job, .is_given = ps_job_is_given);

static bool limits_are_given(const void *model)
{
    return job_limits_any(model);
}

ROWS(JobLimits) = {
    NUMBER_OR_ZERO(JobLimits, memory_bytes, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX),
    NUMBER_OR_ZERO(JobLimits, cpu_thousandths, LIMIT_CPU_MIN, LIMIT_CPU_MAX),
    NUMBER_OR_ZERO(JobLimits, pids, LIMIT_PIDS_MIN, LIMIT_PIDS_MAX),
    NUMBER(JobLimits, time_limit_us, 0, LIMIT_TIME_US),
};
TABLE_WITH(JobLimits, job_limits, .is_given = limits_are_given);

/* ---- JobSpec ---- */

WIRE_MODEL(JobFile, struct job_file);

ROWS(JobFile) = {
    TEXT(JobFile, name, decode_path),
    NUMBER(JobFile, size_bytes, 0, LIMIT_BLOB_BYTES),
    BOOL(JobFile, executable),
    BYTES(JobFile, sha256),
    TEXT(JobFile, url, decode_url_or_empty),
    TEXT(JobFile, version, decode_name_or_empty),
};
static TABLE(JobFile, job_file);

/* The ps_job fits the job, and its number of tasks is the job's. */
static void check_ps_job(struct decoder *decoder, const struct job_spec *spec)
{
    const char *fault = ps_job_fault(&spec->ps_job, spec->strategy);
    if (fault != NULL) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "ps_job", "is wrong: the job %s", fault);
        return;
    }
    bool all =
        spec->workers == ps_job_task_count(&spec->ps_job) && spec->workers_min == spec->workers;
    if (ps_job_is_set(&spec->ps_job) && !all) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "workers",
            "is %u, at least %u; a job of these types has %llu tasks, no more and no fewer",
            spec->workers, spec->workers_min, (unsigned long long)ps_job_task_count(&spec->ps_job));
    }
}

/* All names must be files of one folder. */
static void check_files(struct decoder *decoder, const struct job_spec *spec)
{
    const char **names = decode_array(decoder, spec->file_count + 1, sizeof *names);
    if (names == NULL) {
        return;
    }
    names[0] = spec->program.name;
    for (size_t i = 0; i < spec->file_count; i++) {
        names[i + 1] = spec->files[i].name;
    }
    const char *first;
    const char *second;
    if (check_names_clash(names, spec->file_count + 1, &first, &second)) {
        if (strcmp(first, second) == 0) {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "files",
                "has \"%.200s\" twice (the program counts too); give each file a name of its own",
                first);
        } else {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "files",
                "has \"%.150s\" both as a file and as the folder of \"%.150s\"; rename one", first,
                second);
        }
    }
}

static void check_restore(struct decoder *decoder, const struct job_spec *spec)
{
    const struct checkpoint_ref *from = &spec->restore_checkpoint;
    if (!spec->has_restore_checkpoint) {
        return;
    }
    if (!from->shared || !object_path_is(from->path)) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "restore_checkpoint",
            "is \"%.200s\"; it must be shared, and an object, s3://BUCKET/KEY", from->path);
    }
}

/* Of a program more is known before it is fetched: whether it is executable, for one. */
static void check_program(struct decoder *decoder, const struct job_spec *spec)
{
    if (job_file_is_object(&spec->program)) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "program",
            "has a url: only files may be objects that workers fetch themselves");
    }
}

static void spec_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    check_restore(decoder, model);
    check_program(decoder, model);
    check_ps_job(decoder, model);
    check_files(decoder, model);
}

ROWS(CheckpointRef) = {
    POSITION(CheckpointRef, position),
    BOOL(CheckpointRef, shared),
    TEXT(CheckpointRef, path, decode_manifest),
    NUMBER(CheckpointRef, manifest_bytes, 1, LIMIT_MANIFEST_BYTES),
    BYTES(CheckpointRef, manifest_sha256),
};
TABLE(CheckpointRef, checkpoint_ref);

ROWS(JobSpec) = {
    TEXT(JobSpec, name, decode_name),
    TEXTS(JobSpec, arguments, argument_count, decode_argument, LIMIT_ARGUMENTS),
    TEXTS(JobSpec, environment, environment_count, decode_assignment, LIMIT_ARGUMENTS),
    NUMBER(JobSpec, workers, 1, LIMIT_TASKS_PER_JOB),
    NUMBER(JobSpec, replicas, 0, LIMIT_REPLICAS_PER_TASK),
    TEXT(JobSpec, strategy, decode_name_or_empty),
    COPY(JobSpec, priority),
    NUMBER_UP_TO(JobSpec, workers_min, workers),
    NUMBER(JobSpec, max_restarts, 0, LIMIT_RESTARTS),
    SPAN(JobSpec, wait_us),
    SPAN(JobSpec, stall_us),
    POSITION(JobSpec, checkpoint_every),
    NUMBER(JobSpec, checkpoints_kept, 0, LIMIT_CHECKPOINTS_KEPT),
    TEXT(JobSpec, checkpoint_folder, decode_folder_or_empty),
    TEXT(JobSpec, outputs_folder, decode_outputs_folder_or_empty),
    COPY_AS(JobSpec, restore_from, restore_from.n),
    POSITION(JobSpec, restore_step),
    MESSAGE_IF(JobSpec, restore_checkpoint, CheckpointRef, has_restore_checkpoint),
    NUMBER(JobSpec, gpus, 0, LIMIT_GPUS_PER_WORKER),
    BOOL(JobSpec, terminal),
    BYTES_IF(JobSpec, request_id, has_request_id),
    MESSAGE_OR_NONE(JobSpec, ps_job, PsJob),
    MESSAGE_OR_NONE(JobSpec, limits, JobLimits),
    MESSAGE(JobSpec, program, JobFile),
    MESSAGES(JobSpec, files, JobFile, files, file_count, LIMIT_FILES_PER_JOB),
};
TABLE_WITH(JobSpec, job_spec, .limit_bytes = LIMIT_SPEC_BYTES, .after_take = spec_after_take);

/* ---- JobInfo ---- */

WIRE_MODEL(TaskInfo, struct task_info);

/* Unknown states, of this and of JobInfo, are taken as they are, because a coordinator of a newer
 * version may send them, and its clients go on. */
ROWS(TaskInfo) = {
    SLOT(TaskInfo, slot),
    COPY(TaskInfo, incarnation),
    SIGNED(TaskInfo, state, TASK_WAITING, INT32_MAX),
    TEXT(TaskInfo, worker, decode_name_or_empty),
    NUMBER(TaskInfo, pid, 0, INT32_MAX),
    MESSAGE_IF(TaskInfo, exit, TaskExit, has_exit),
    BOOL(TaskInfo, uses_cadre),
    COPY(TaskInfo, log_bytes),
    MESSAGE_OR_NONE(TaskInfo, fetch, TaskFetch),
    MESSAGE_OR_NONE(TaskInfo, usage, ResourceUsage),
    SPAN(TaskInfo, waited_us),
};
static TABLE(TaskInfo, task_info);

static bool wait_is_given(const void *model)
{
    const struct job_wait *wait = model;
    return wait->waited_us != 0;
}

WIRE_MODEL(JobWait, struct job_wait);

ROWS(JobWait) = {
    SLOT(JobWait, slot),
    TEXT(JobWait, worker, decode_name_or_empty),
    SPAN(JobWait, waited_us),
};
static TABLE_WITH(JobWait, job_wait, .is_given = wait_is_given);

/* A job whose ten thousand tasks all left a last line would not fit a message: exit codes are kept,
 * texts are dropped. */
static void info_after_fill(void *wire, const void *model)
{
    (void)model;
    Cadre__V1__JobInfo *info = wire;
    if (info->n_tasks == 0 ||
        protobuf_c_message_get_packed_size(&info->base) <= LIMIT_FRAME_BYTES) {
        return;
    }
    for (size_t i = 0; i < info->n_tasks; i++) {
        if (info->tasks[i]->exit != NULL) {
            info->tasks[i]->exit->text = NULL;
        }
    }
}

static void info_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)decoder;
    (void)wire;
    struct job_info *info = model;
    struct task_info *tasks = (struct task_info *)info->tasks;
    for (size_t i = 0; i < info->task_count; i++) {
        tasks[i].role = ps_job_role(&info->ps_job, tasks[i].slot);
        tasks[i].index = ps_job_role_index(&info->ps_job, tasks[i].slot);
    }
}

ROWS(JobInfo) = {
    JOB(JobInfo, id, id.n),
    TEXT(JobInfo, name, decode_name),
    TEXT(JobInfo, program, decode_path),
    SIGNED(JobInfo, state, JOB_QUEUED, INT32_MAX),
    SIGNED(JobInfo, code, CADRE_OK, CADRE_UNAUTHENTICATED),
    TEXT_FOR_PEOPLE(JobInfo, message, decode_text),
    NUMBER(JobInfo, workers, 1, LIMIT_TASKS_PER_JOB),
    NUMBER_UP_TO(JobInfo, workers_min, workers),
    NUMBER(JobInfo, roster, 0, LIMIT_TASKS_PER_JOB),
    COPY(JobInfo, restarts),
    NUMBER(JobInfo, replicas, 0, LIMIT_REPLICAS_PER_TASK),
    COPY(JobInfo, priority),
    COPY(JobInfo, submitted_us),
    COPY(JobInfo, started_us),
    COPY(JobInfo, ended_us),
    POSITION(JobInfo, position),
    POSITION(JobInfo, verified_position),
    COPY(JobInfo, verified_digest),
    COPY(JobInfo, generation),
    TEXT(JobInfo, checkpoint, decode_path_or_empty),
    TEXT(JobInfo, outputs_folder, decode_outputs_folder_or_empty),
    SIGNED(JobInfo, exit_code, 0, 255),
    MESSAGE_OR_NONE(JobInfo, ps_job, PsJob),
    MESSAGE_OR_NONE(JobInfo, limits, JobLimits),
    MESSAGE_IF(JobInfo, evaluation, Progress, has_evaluation),
    MESSAGE_IF(JobInfo, progress, Progress, has_progress),
    MESSAGE_OR_NONE(JobInfo, wait, JobWait),
    MESSAGES(JobInfo, tasks, TaskInfo, tasks, task_count, LIMIT_TASKS_PER_JOB),
    MESSAGES(JobInfo, shards, DatasetShards, shards, shards_count, LIMIT_STREAMS),
};
TABLE_WITH(JobInfo, job_info, .limit_bytes = LIMIT_FRAME_BYTES, .after_fill = info_after_fill,
    .after_take = info_after_take);

ROWS(ListJobsResponse) = {
    MESSAGES(ListJobsResponse, jobs, JobInfo, jobs, count, LIMIT_JOBS_LISTED),
    BOOL(ListJobsResponse, more),
};
TABLE_WITH(ListJobsResponse, list_jobs_response, .limit_bytes = LIMIT_FRAME_BYTES);

/* ---- SubmitResponse, JobRequest ---- */

ROWS(SubmitResponse) = {
    JOB(SubmitResponse, id, id.n),
    COPY(SubmitResponse, queued_before),
    TEXT_FOR_PEOPLE(SubmitResponse, note, decode_text),
};
TABLE_WITH(SubmitResponse, submit_response, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(JobRequest) = {
    JOB(JobRequest, id, id.n),
};
TABLE_WITH(JobRequest, job_request, .limit_bytes = LIMIT_FRAME_BYTES);
