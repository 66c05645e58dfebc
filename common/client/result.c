/* SPDX-License-Identifier: Apache-2.0
 * Converts model structs to the public ones of cadre/client.h and allocates results; query.c,
 * follow.c and deploy/cadre/run.c call it. */
#include "common/client/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

struct result {
    struct wire_arena *arena;
    void *arrays[RESULT_ARRAYS];
    _Alignas(max_align_t) unsigned char body[];
};

static struct result *result_of(void *body)
{
    return (struct result *)(void *)((char *)body - offsetof(struct result, body));
}

void *result_new(size_t bytes, struct wire_arena *arena)
{
    struct result *result = calloc(1, sizeof *result + bytes);
    if (result == NULL) {
        return NULL;
    }
    result->arena = arena;
    return result->body;
}

void *result_array(void *body, unsigned slot, size_t count, size_t item_bytes)
{
    struct result *result = result_of(body);
    CADRE_ASSERT(slot < RESULT_ARRAYS);
    CADRE_ASSERT(result->arrays[slot] == NULL);
    result->arrays[slot] = calloc(count + 1, item_bytes);
    return result->arrays[slot];
}

void cadre_result_release(void *body)
{
    if (body == NULL) {
        return;
    }
    struct result *result = result_of(body);
    for (size_t i = 0; i < RESULT_ARRAYS; i++) {
        free(result->arrays[i]);
    }
    wire_arena_free(result->arena);
    free(result);
}

void result_discard(void *body)
{
    if (body != NULL) {
        result_of(body)->arena = NULL;
        cadre_result_release(body);
    }
}

/* ---- states ---- */

_Static_assert((int)CADRE_JOB_QUEUED == (int)JOB_QUEUED, "public states are the model's");
_Static_assert((int)CADRE_JOB_SUCCEEDED == (int)JOB_SUCCEEDED, "public states are the model's");
_Static_assert((int)CADRE_JOB_PREEMPTED == (int)JOB_PREEMPTED, "public states are the model's");
_Static_assert((int)CADRE_TASK_WAITING == (int)TASK_WAITING, "public states are the model's");
_Static_assert((int)CADRE_TASK_LOST == (int)TASK_LOST, "public states are the model's");

/* `name`, or "unknown (NUMBER)" for a number without a name in this version. */
static const char *known_or_number(const char *name, int number)
{
    static _Thread_local char texts[8][32];
    static _Thread_local unsigned next;
    if (strcmp(name, "unknown") != 0) {
        return name;
    }
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "unknown (%d)", number);
    return text;
}

const char *cadre_job_state_name(cadre_job_state state)
{
    return known_or_number(job_state_name((enum job_state)state), (int)state);
}

const char *cadre_task_state_name(cadre_task_state state)
{
    return known_or_number(task_state_name((enum task_state)state), (int)state);
}

bool cadre_job_state_is_final(cadre_job_state state)
{
    return job_state_is_final((enum job_state)state);
}

/* ---- views ---- */

static void view_progress(
    const struct progress *progress, cadre_job_metric *metrics, cadre_job_progress *ret_progress)
{
    for (size_t i = 0; i < progress->metric_count; i++) {
        metrics[i] = (cadre_job_metric){
            .name = progress->metrics[i].name, .value = progress->metrics[i].value};
    }
    *ret_progress = (cadre_job_progress){.stream = progress->stream,
        .epoch = progress->epoch,
        .epochs = progress->epochs,
        .step = progress->step,
        .steps = progress->steps,
        .samples_per_s = progress->samples_per_s,
        .left_s = progress->left_s,
        .metrics = metrics,
        .metric_count = progress->metric_count};
}

static const char *fetch_name(enum fetch_kind kind)
{
    static const char *const names[] = {[FETCH_NONE] = "",
        [FETCH_FILES] = "files",
        [FETCH_CHECKPOINT] = "checkpoint",
        [FETCH_CHECK] = "check",
        [FETCH_READ] = "read"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

static cadre_usage view_usage(const struct resource_usage *usage)
{
    return (cadre_usage){.has_cpu = usage->has_cpu,
        .cpu_thousandths = usage->cpu_thousandths,
        .has_memory = usage->has_memory,
        .memory_bytes = usage->memory_bytes,
        .has_memory_peak = usage->has_memory_peak,
        .memory_peak_bytes = usage->memory_peak_bytes,
        .has_gpu = usage->has_gpu,
        .gpu_percent = usage->gpu_percent,
        .has_gpu_memory = usage->has_gpu_memory,
        .gpu_memory_bytes = usage->gpu_memory_bytes};
}

static void view_task(const struct task_info *info, cadre_job_task *ret_task)
{
    *ret_task = (cadre_job_task){.task = info->slot,
        .incarnation = info->incarnation,
        .state = (cadre_task_state)info->state,
        .worker = info->worker,
        .pid = info->pid,
        .has_exit = info->has_exit,
        .exit_code = info->has_exit ? info->exit.code : 0,
        .exit_signal = info->has_exit ? info->exit.signal : 0,
        .exit_text = info->has_exit ? info->exit.text : "",
        .uses_cadre = info->uses_cadre,
        .log_bytes = info->log_bytes,
        .type = role_name(info->role),
        .index = info->index,
        .fetch = {.what = fetch_name(info->fetch.kind),
            .done_bytes = info->fetch.done_bytes,
            .whole_bytes = info->fetch.whole_bytes,
            .elapsed_us = info->fetch.elapsed_us},
        .usage = view_usage(&info->usage),
        .waited_us = info->waited_us};
}

size_t view_metric_count(const struct job_info *info)
{
    return (info->has_progress ? info->progress.metric_count : 0) +
           (info->has_evaluation ? info->evaluation.metric_count : 0);
}

void view_job(const struct job_info *info, cadre_job_metric *metrics, cadre_job_task *tasks,
    cadre_job *ret_job)
{
    *ret_job = (cadre_job){.id = info->id.n,
        .name = info->name,
        .program = info->program,
        .state = (cadre_job_state)info->state,
        .code = info->code,
        .message = info->message,
        .workers = info->workers,
        .replicas = info->replicas,
        .priority = info->priority,
        .submitted_us = info->submitted_us,
        .started_us = info->started_us,
        .ended_us = info->ended_us,
        .position = info->position,
        .generation = info->generation,
        .checkpoint = info->checkpoint,
        .exit_code = info->exit_code,
        .has_progress = info->has_progress,
        .progress = {.stream = ""},
        .tasks = tasks,
        .task_count = info->task_count,
        .workers_min = info->workers_min != 0 ? info->workers_min : info->workers,
        .roster = info->roster,
        .restarts = info->restarts,
        .worker_tasks = info->ps_job.workers,
        .servers = info->ps_job.servers,
        .evaluators = info->ps_job.evaluators,
        .has_evaluation = info->has_evaluation,
        .evaluation = {.stream = ""},
        .memory_bytes = info->limits.memory_bytes,
        .cpu_thousandths = info->limits.cpu_thousandths,
        .pids = info->limits.pids,
        .time_limit_us = info->limits.time_limit_us,
        .verified_position = info->verified_position,
        .verified_digest = info->verified_digest,
        .wait = {.task = info->wait.slot,
            .worker = info->wait.waited_us > 0 ? info->wait.worker : "",
            .waited_us = info->wait.waited_us}};
    if (info->has_evaluation) {
        size_t before = info->has_progress ? info->progress.metric_count : 0;
        view_progress(&info->evaluation, metrics + before, &ret_job->evaluation);
    }
    if (info->has_progress) {
        view_progress(&info->progress, metrics, &ret_job->progress);
    }
    for (size_t i = 0; i < info->task_count; i++) {
        view_task(&info->tasks[i], &tasks[i]);
    }
}

/* The views of all datasets, and of their files, which have room at `files`. */
static void view_shards(
    const struct job_info *info, cadre_job_file *files, cadre_job_shards *ret_shards)
{
    for (size_t i = 0; i < info->shards_count; i++) {
        const struct shards_report *from = &info->shards[i];
        ret_shards[i] = (cadre_job_shards){.dataset = from->name,
            .policy = from->policy,
            .epoch = from->epoch,
            .step = from->step,
            .readers = from->readers,
            .file_count = from->files,
            .files_read = from->files_read,
            .files = files,
            .shown = from->shown_count};
        for (size_t k = 0; k < from->shown_count; k++) {
            const struct shard_file *file = &from->shown[k];
            bool is_read = file->rank == SHARD_NO_TASK;
            *files++ = (cadre_job_file){.name = file->name,
                .is_read = is_read,
                .rank = is_read ? 0 : file->rank,
                .read = file->read,
                .total = file->total};
        }
    }
}

static size_t count_files(const struct job_info *info)
{
    size_t count = 0;
    for (size_t i = 0; i < info->shards_count; i++) {
        count += info->shards[i].shown_count;
    }
    return count;
}

cadre_job *view_job_new(const struct job_info *info, struct wire_arena *arena)
{
    size_t metric_count = view_metric_count(info);
    cadre_job *job = result_new(sizeof *job, NULL);
    cadre_job_metric *metrics =
        job != NULL ? result_array(job, 0, metric_count, sizeof *metrics) : NULL;
    cadre_job_task *tasks =
        job != NULL ? result_array(job, 1, info->task_count, sizeof *tasks) : NULL;
    cadre_job_shards *shards =
        job != NULL ? result_array(job, 2, info->shards_count, sizeof *shards) : NULL;
    cadre_job_file *files =
        job != NULL ? result_array(job, 3, count_files(info), sizeof *files) : NULL;
    if (metrics == NULL || tasks == NULL || shards == NULL || files == NULL) {
        cadre_result_release(job);
        return NULL;
    }
    result_of(job)->arena = arena;
    view_job(info, metrics, tasks, job);
    view_shards(info, files, shards);
    job->shards = shards;
    job->shards_count = info->shards_count;
    return job;
}

void view_worker(const struct worker_info *info, cadre_gpu *gpus, cadre_worker *ret_worker)
{
    for (size_t i = 0; i < info->gpus.count; i++) {
        const struct gpu *gpu = &info->gpus.devices[i];
        gpus[i] = (cadre_gpu){.name = gpu->name,
            .uuid = gpu->uuid,
            .bus = gpu->bus,
            .memory_bytes = gpu->memory_bytes,
            .compute_major = gpu->compute_major,
            .compute_minor = gpu->compute_minor,
            .unused = gpu->unused};
    }
    *ret_worker = (cadre_worker){.id = info->id.n,
        .name = info->name,
        .host = info->host,
        .version = info->version,
        .slots = info->slots,
        .slots_used = info->slots_used,
        .cpus = info->cpus,
        .memory_bytes = info->memory_bytes,
        .draining = info->draining,
        .connected = info->connected,
        .expected = info->expected,
        .drained_by = info->drained_by,
        .drained_why = info->drained_why,
        .joined_us = info->joined_us,
        .gpus = gpus,
        .gpu_count = info->gpus.count,
        .gpus_omitted = info->gpus.omitted,
        .gpus_usable = info->gpus.usable,
        .gpu_driver = info->gpus.driver,
        .gpu_runtime = info->gpus.runtime,
        .nccl = info->gpus.nccl,
        .gpu_reason = info->gpus.reason,
        .certificate_ends_us = info->certificate_ends_us,
        .usage = view_usage(&info->usage)};
}
