/* SPDX-License-Identifier: Apache-2.0
 * Jobs and their tasks, from model structs to the public ones. */
#include "common/view/result.h"
#include "common/view/view.h"

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

/* Metrics of a job, of its progress and then of its evaluation. */
static size_t view_metric_count(const struct job_info *info)
{
    return (info->has_progress ? info->progress.metric_count : 0) +
           (info->has_evaluation ? info->evaluation.metric_count : 0);
}

/* Metrics and tasks are written to the given arrays, with room for as many as `info` has. */
static void view_job(const struct job_info *info, cadre_job_metric *metrics, cadre_job_task *tasks,
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
        .outputs_folder = info->outputs_folder != NULL ? info->outputs_folder : "",
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
    cadre_job *job = result_new(sizeof *job, arena);
    cadre_job_metric *metrics =
        job != NULL ? result_array(job, 0, metric_count, sizeof *metrics) : NULL;
    cadre_job_task *tasks =
        job != NULL ? result_array(job, 1, info->task_count, sizeof *tasks) : NULL;
    cadre_job_shards *shards =
        job != NULL ? result_array(job, 2, info->shards_count, sizeof *shards) : NULL;
    cadre_job_file *files =
        job != NULL ? result_array(job, 3, count_files(info), sizeof *files) : NULL;
    if (metrics == NULL || tasks == NULL || shards == NULL || files == NULL) {
        result_discard(job);
        return NULL;
    }
    view_job(info, metrics, tasks, job);
    view_shards(info, files, shards);
    job->shards = shards;
    job->shards_count = info->shards_count;
    return job;
}

static size_t count_metrics(const struct list_jobs_response *response)
{
    size_t count = 0;
    for (size_t i = 0; i < response->count; i++) {
        count += view_metric_count(&response->jobs[i]);
    }
    return count;
}

cadre_job_list *view_jobs_new(const struct list_jobs_response *response, struct wire_arena *arena)
{
    cadre_job_list *list = result_new(sizeof *list, arena);
    cadre_job *jobs = list != NULL ? result_array(list, 0, response->count, sizeof *jobs) : NULL;
    cadre_job_metric *metrics =
        list != NULL ? result_array(list, 1, count_metrics(response), sizeof *metrics) : NULL;
    if (jobs == NULL || metrics == NULL) {
        result_discard(list);
        return NULL;
    }
    for (size_t i = 0; i < response->count; i++) {
        struct job_info info = response->jobs[i];
        info.task_count = 0;
        info.shards_count = 0;
        view_job(&info, metrics, NULL, &jobs[i]);
        metrics += view_metric_count(&info);
    }
    *list = (cadre_job_list){.jobs = jobs, .count = response->count, .more = response->more};
    return list;
}
