/* SPDX-License-Identifier: Apache-2.0
 * A job with its tasks and its progress; the list of jobs. */
#include "common/json/json.h"
#include "common/json/json_value.h"

static json_t *of_progress(const cadre_job_progress *progress)
{
    json_t *metrics = json_object();
    for (size_t i = 0; i < progress->metric_count; i++) {
        json_object_set_new(
            metrics, progress->metrics[i].name, json_finite(progress->metrics[i].value));
    }
    json_t *json = json_object();
    json_object_set_new(json, "stream", json_text(progress->stream));
    json_object_set_new(json, "epoch", json_number(progress->epoch));
    json_object_set_new(json, "epochs", json_number(progress->epochs));
    json_object_set_new(json, "step", json_number(progress->step));
    json_object_set_new(json, "steps", json_number(progress->steps));
    json_object_set_new(json, "samples_per_s", json_finite(progress->samples_per_s));
    json_object_set_new(
        json, "left_s", progress->left_s >= 0 ? json_finite(progress->left_s) : json_null());
    json_object_set_new(json, "metrics", metrics);
    return json;
}

static json_t *of_fetch(const cadre_job_fetch *fetch)
{
    if (fetch->what == NULL || fetch->what[0] == '\0') {
        return json_null();
    }
    json_t *json = json_object();
    json_object_set_new(json, "what", json_text(fetch->what));
    json_object_set_new(json, "done_bytes", json_number(fetch->done_bytes));
    json_object_set_new(json, "whole_bytes", json_number(fetch->whole_bytes));
    json_object_set_new(json, "elapsed_us", json_number(fetch->elapsed_us));
    return json;
}

static json_t *of_task(const cadre_job *job, const cadre_job_task *task)
{
    json_t *json = json_object();
    json_object_set_new(json, "task", json_number(task->task));
    if (job->servers > 0) {
        json_object_set_new(json, "type", json_text(task->type));
        json_object_set_new(json, "index", json_number(task->index));
    }
    json_object_set_new(json, "state", json_text(cadre_task_state_name(task->state)));
    json_object_set_new(json, "worker", json_text(task->worker));
    json_object_set_new(json, "incarnation", json_number(task->incarnation));
    json_object_set_new(json, "pid", json_number(task->pid));
    bool exited = task->has_exit && task->exit_signal == 0;
    json_object_set_new(json, "exit_code", exited ? json_integer(task->exit_code) : json_null());
    json_object_set_new(json, "exit_signal",
        task->has_exit && task->exit_signal != 0 ? json_integer(task->exit_signal) : json_null());
    json_object_set_new(json, "exit_text", json_text(task->exit_text));
    json_object_set_new(json, "uses_cadre", json_boolean(task->uses_cadre));
    json_object_set_new(json, "log_bytes", json_number(task->log_bytes));
    json_object_set_new(json, "fetch", of_fetch(&task->fetch));
    json_object_set_new(json, "usage", json_usage(&task->usage));
    json_object_set_new(json, "waited_us", json_number(task->waited_us));
    return json;
}

static json_t *of_wait(const cadre_job_wait *wait)
{
    if (wait->waited_us == 0) {
        return json_null();
    }
    json_t *json = json_object();
    json_object_set_new(json, "task", json_number(wait->task));
    json_object_set_new(json, "worker", json_text(wait->worker));
    json_object_set_new(json, "waited_us", json_number(wait->waited_us));
    return json;
}

static json_t *of_tasks(const cadre_job *job)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < job->task_count; i++) {
        json_array_append_new(tasks, of_task(job, &job->tasks[i]));
    }
    return tasks;
}

json_t *json_of_job(const cadre_job *job)
{
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(job->id));
    json_object_set_new(json, "name", json_text(job->name));
    json_object_set_new(json, "program", json_text(job->program));
    json_object_set_new(json, "state", json_text(cadre_job_state_name(job->state)));
    json_object_set_new(json, "final", json_boolean(cadre_job_state_is_final(job->state)));
    json_object_set_new(json, "code", json_text(cadre_status_name(job->code)));
    json_object_set_new(json, "message", json_text(job->message));
    json_object_set_new(json, "exit_code", json_integer(job->exit_code));
    json_object_set_new(json, "workers", json_number(job->workers));
    json_object_set_new(json, "workers_min", json_number(job->workers_min));
    json_object_set_new(json, "roster", json_number(job->roster));
    json_object_set_new(json, "restarts", json_number(job->restarts));
    json_object_set_new(json, "replicas", json_number(job->replicas));
    json_object_set_new(json, "priority", json_integer(job->priority));
    json_object_set_new(json, "memory_bytes", json_number(job->memory_bytes));
    json_object_set_new(json, "cpu_thousandths", json_number(job->cpu_thousandths));
    json_object_set_new(json, "pids", json_number(job->pids));
    json_object_set_new(json, "time_limit_us", json_number(job->time_limit_us));
    json_object_set_new(json, "submitted_us", json_number(job->submitted_us));
    json_object_set_new(json, "started_us", json_number(job->started_us));
    json_object_set_new(json, "ended_us", json_number(job->ended_us));
    json_object_set_new(json, "position", json_number(job->position));
    json_object_set_new(json, "verified",
        job->verified_digest != 0 ? json_verified(job->verified_position, job->verified_digest)
                                  : json_null());
    json_object_set_new(json, "wait", of_wait(&job->wait));
    json_object_set_new(json, "generation", json_number(job->generation));
    json_object_set_new(json, "checkpoint", json_text(job->checkpoint));
    json_object_set_new(json, "outputs_folder", json_text(job->outputs_folder));
    json_object_set_new(
        json, "progress", job->has_progress ? of_progress(&job->progress) : json_null());
    if (job->servers > 0) {
        json_t *ps_job = json_object();
        json_object_set_new(ps_job, "workers", json_number(job->worker_tasks));
        json_object_set_new(ps_job, "servers", json_number(job->servers));
        json_object_set_new(ps_job, "evaluators", json_number(job->evaluators));
        json_object_set_new(json, "ps_job", ps_job);
        json_object_set_new(
            json, "evaluation", job->has_evaluation ? of_progress(&job->evaluation) : json_null());
    }
    if (job->task_count > 0) {
        json_object_set_new(json, "tasks", of_tasks(job));
    }
    return json;
}

json_t *json_of_jobs(const cadre_job_list *list)
{
    json_t *jobs = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(jobs, json_of_job(&list->jobs[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "jobs", jobs);
    json_object_set_new(json, "more", json_boolean(list->more));
    return json;
}
