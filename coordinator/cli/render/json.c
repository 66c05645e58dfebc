/* SPDX-License-Identifier: Apache-2.0
 * The results of libcadre-client as JSON for --json of the verbs. */
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/utf8.h"

static json_t *json_number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* JSON has no infinity and no NaN. */
static json_t *render_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_text(const char *value)
{
    json_t *json = json_string(value);
    return json != NULL ? json : json_null(); /* not UTF-8, which the wire checks exclude */
}

static json_t *of_progress(const cadre_job_progress *progress)
{
    json_t *metrics = json_object();
    for (size_t i = 0; i < progress->metric_count; i++) {
        json_object_set_new(
            metrics, progress->metrics[i].name, render_json_real(progress->metrics[i].value));
    }
    json_t *json = json_object();
    json_object_set_new(json, "stream", json_text(progress->stream));
    json_object_set_new(json, "epoch", json_number(progress->epoch));
    json_object_set_new(json, "epochs", json_number(progress->epochs));
    json_object_set_new(json, "step", json_number(progress->step));
    json_object_set_new(json, "steps", json_number(progress->steps));
    json_object_set_new(json, "samples_per_s", render_json_real(progress->samples_per_s));
    json_object_set_new(
        json, "left_s", progress->left_s >= 0 ? render_json_real(progress->left_s) : json_null());
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

static json_t *of_shards(const cadre_job_shards *shards)
{
    json_t *files = json_array();
    for (size_t i = 0; i < shards->shown; i++) {
        const cadre_job_file *file = &shards->files[i];
        json_t *json = json_object();
        json_object_set_new(json, "name", json_text(file->name));
        json_object_set_new(json, "rank", file->is_read ? json_null() : json_number(file->rank));
        json_object_set_new(json, "read", json_number(file->read));
        json_object_set_new(json, "total",
            file->total > 0 || file->is_read ? json_number(file->total) : json_null());
        json_array_append_new(files, json);
    }
    json_t *json = json_object();
    json_object_set_new(json, "dataset", json_text(shards->dataset));
    json_object_set_new(json, "policy", json_text(shards->policy));
    json_object_set_new(json, "epoch", json_number(shards->epoch));
    json_object_set_new(json, "step", json_number(shards->step));
    json_object_set_new(json, "readers", json_number(shards->readers));
    json_object_set_new(json, "file_count", json_number(shards->file_count));
    json_object_set_new(json, "files_read", json_number(shards->files_read));
    json_object_set_new(json, "files", files);
    return json;
}

json_t *json_of_shards(const cadre_job *job)
{
    json_t *datasets = json_array();
    for (size_t i = 0; i < job->shards_count; i++) {
        json_array_append_new(datasets, of_shards(&job->shards[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(job->id));
    json_object_set_new(json, "datasets", datasets);
    return json;
}

/* A digest is text, because many JSON parsers cannot hold a number of 64 bits. */
static json_t *of_verified(uint64_t position, uint64_t digest)
{
    char digits[24];
    json_t *json = json_object();
    snprintf(digits, sizeof digits, "%016" PRIx64, digest);
    json_object_set_new(json, "position", json_number(position));
    json_object_set_new(json, "digest", json_text(digits));
    return json;
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
        job->verified_digest != 0 ? of_verified(job->verified_position, job->verified_digest)
                                  : json_null());
    json_object_set_new(json, "generation", json_number(job->generation));
    json_object_set_new(json, "checkpoint", json_text(job->checkpoint));
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

json_t *json_of_cancelled(
    const char *word, cadre_status status, const char *message, const cadre_job *job)
{
    json_t *json = json_object();
    json_object_set_new(json, "argument", json_text(word));
    json_object_set_new(json, "code", json_text(cadre_status_name(status)));
    json_object_set_new(json, "message", json_text(message));
    json_object_set_new(json, "job", job != NULL ? json_of_job(job) : json_null());
    return json;
}

json_t *json_of_cancellations(json_t *answers)
{
    json_t *json = json_object();
    json_object_set_new(json, "cancelled", answers);
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

static json_t *of_epoch(const cadre_verified_epoch *epoch)
{
    json_t *json = json_object();
    json_object_set_new(json, "stream", json_number(epoch->stream));
    json_object_set_new(json, "name", json_text(epoch->name));
    json_object_set_new(json, "epoch", json_number(epoch->epoch));
    json_object_set_new(json, "steps", json_number(epoch->steps));
    json_object_set_new(json, "steps_whole", json_number(epoch->steps_whole));
    json_object_set_new(json, "samples", json_number(epoch->samples));
    json_object_set_new(json, "source_samples", json_number(epoch->source_samples));
    json_object_set_new(json, "verdict", json_text(cadre_verdict_name(epoch->verdict)));
    json_object_set_new(json, "text", json_text(epoch->text));
    return json;
}

static json_t *of_generation(const cadre_verified_generation *generation)
{
    json_t *json = json_object();
    json_object_set_new(json, "number", json_number(generation->number));
    json_object_set_new(json, "first", json_number(generation->first));
    json_object_set_new(json, "end", json_number(generation->end));
    json_object_set_new(json, "tasks", json_number(generation->tasks));
    json_object_set_new(json, "restarted", json_boolean(generation->restarted));
    json_object_set_new(json, "planned_us", json_number(generation->planned_us));
    return json;
}

json_t *json_of_verification(const cadre_verification *verification)
{
    json_t *epochs = json_array();
    json_t *generations = json_array();
    json_t *verified = json_array();
    for (size_t i = 0; i < verification->state_count; i++) {
        const cadre_verified_state *state = &verification->states[i];
        json_array_append_new(verified, of_verified(state->position, state->digest));
    }
    for (size_t i = 0; i < verification->epoch_count; i++) {
        json_array_append_new(epochs, of_epoch(&verification->epochs[i]));
    }
    for (size_t i = 0; i < verification->generation_count; i++) {
        json_array_append_new(generations, of_generation(&verification->generations[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(verification->job));
    json_object_set_new(json, "name", json_text(verification->job_name));
    json_object_set_new(json, "state", json_text(cadre_job_state_name(verification->state)));
    json_object_set_new(
        json, "conclusion", json_text(conclusion_name(conclusion_of(verification))));
    json_object_set_new(json, "committed", json_number(verification->committed));
    json_object_set_new(json, "steps_proved", json_number(verification->steps_proved));
    json_object_set_new(json, "tiled", json_boolean(verification->tiled));
    json_object_set_new(json, "tiling", json_text(verification->tiling));
    json_object_set_new(json, "exact", json_number(verification->exact));
    json_object_set_new(json, "as_defined", json_number(verification->as_defined));
    json_object_set_new(json, "differing", json_number(verification->differing));
    json_object_set_new(json, "not_provable", json_number(verification->not_provable));
    json_object_set_new(json, "epochs", epochs);
    json_object_set_new(json, "generations", generations);
    json_object_set_new(json, "more", json_boolean(verification->more));
    json_object_set_new(json, "verified", verified);
    return json;
}

static json_t *of_compared(const cadre_verification *job)
{
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(job->job));
    json_object_set_new(json, "name", json_text(job->job_name));
    json_object_set_new(json, "program", json_text(job->program));
    json_object_set_new(json, "state", json_text(cadre_job_state_name(job->state)));
    json_object_set_new(json, "committed", json_number(job->committed));
    json_object_set_new(json, "more", json_boolean(job->more));
    return json;
}

static json_t *of_point(const struct comparison_point *point)
{
    if (point->difference == DIFFERENCE_NONE) {
        return json_null();
    }
    json_t *json = json_object();
    json_object_set_new(json, "what", json_text(difference_name(point->difference)));
    json_object_set_new(json, "position", json_number(point->position));
    json_object_set_new(json, "stream", json_number(point->stream));
    json_object_set_new(json, "name", json_text(point->name));
    json_object_set_new(json, "epoch", json_number(point->epoch));
    json_object_set_new(json, "step", json_number(point->step));
    json_object_set_new(json, "steps", json_number(point->steps));
    json_object_set_new(json, "text", json_text(point->text));
    return json;
}

json_t *json_of_comparison(const struct comparison *comparison)
{
    json_t *jobs = json_array();
    json_array_append_new(jobs, of_compared(comparison->jobs[0]));
    json_array_append_new(jobs, of_compared(comparison->jobs[1]));
    json_t *json = json_object();
    json_object_set_new(json, "jobs", jobs);
    json_object_set_new(json, "outcome", json_text(comparison_outcome_name(comparison->outcome)));
    json_object_set_new(json, "epochs", json_number(comparison->epochs));
    json_object_set_new(json, "steps", json_number(comparison->steps));
    json_object_set_new(json, "begin", json_number(comparison->begin));
    json_object_set_new(json, "end", json_number(comparison->end));
    json_object_set_new(json, "difference", of_point(&comparison->point));
    json_object_set_new(json, "states", json_number(comparison->states));
    json_object_set_new(
        json, "state", comparison->states > 0 ? json_number(comparison->state) : json_null());
    return json;
}

static const char *worker_state(const cadre_worker *worker)
{
    if (!worker->connected) {
        return worker->expected ? "expected" : "away";
    }
    return worker->draining ? "draining" : "ready";
}

static json_t *json_of_gpus(const cadre_worker *worker)
{
    json_t *gpus = json_array();
    for (size_t i = 0; i < worker->gpu_count; i++) {
        const cadre_gpu *gpu = &worker->gpus[i];
        json_t *json = json_object();
        json_object_set_new(json, "name", json_text(gpu->name));
        json_object_set_new(json, "uuid", json_text(gpu->uuid));
        json_object_set_new(json, "bus", json_text(gpu->bus));
        json_object_set_new(json, "memory_bytes", json_number(gpu->memory_bytes));
        json_object_set_new(json, "compute_major", json_number(gpu->compute_major));
        json_object_set_new(json, "compute_minor", json_number(gpu->compute_minor));
        json_object_set_new(json, "unused", json_text(gpu->unused));
        json_array_append_new(gpus, json);
    }
    return gpus;
}

json_t *json_of_workers(const cadre_worker_list *list)
{
    json_t *workers = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const cadre_worker *worker = &list->workers[i];
        json_t *json = json_object();
        json_object_set_new(json, "id", json_number(worker->id));
        json_object_set_new(json, "name", json_text(worker->name));
        json_object_set_new(json, "state", json_text(worker_state(worker)));
        json_object_set_new(json, "drained_by", json_text(worker->drained_by));
        json_object_set_new(json, "drained_why", json_text(worker->drained_why));
        json_object_set_new(json, "host", json_text(worker->host));
        json_object_set_new(json, "version", json_text(worker->version));
        json_object_set_new(json, "slots", json_number(worker->slots));
        json_object_set_new(json, "slots_used", json_number(worker->slots_used));
        json_object_set_new(json, "cpus", json_number(worker->cpus));
        json_object_set_new(json, "memory_bytes", json_number(worker->memory_bytes));
        json_object_set_new(json, "joined_us", json_number(worker->joined_us));
        json_object_set_new(json, "gpus", json_of_gpus(worker));
        json_object_set_new(json, "gpus_usable", json_number(worker->gpus_usable));
        json_object_set_new(json, "gpus_omitted", json_number(worker->gpus_omitted));
        json_object_set_new(json, "gpu_driver", json_text(worker->gpu_driver));
        json_object_set_new(json, "gpu_runtime", json_text(worker->gpu_runtime));
        json_object_set_new(json, "nccl", json_number(worker->nccl));
        json_object_set_new(json, "gpu_reason", json_text(worker->gpu_reason));
        json_object_set_new(json, "certificate_ends_us", json_number(worker->certificate_ends_us));
        json_array_append_new(workers, json);
    }
    json_t *json = json_object();
    json_object_set_new(json, "workers", workers);
    return json;
}

json_t *json_of_outputs(const cadre_output_list *list)
{
    json_t *outputs = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *json = json_object();
        json_object_set_new(json, "path", json_text(list->outputs[i].path));
        json_object_set_new(json, "size_bytes", json_number(list->outputs[i].size_bytes));
        json_array_append_new(outputs, json);
    }
    json_t *json = json_object();
    json_object_set_new(json, "outputs", outputs);
    json_object_set_new(json, "more", json_boolean(list->more));
    return json;
}

/* Tasks may write any bytes: each that is no UTF-8 becomes U+FFFD. */
static json_t *text_of_bytes(const char *bytes, size_t size)
{
    static const char unknown[] = "\xef\xbf\xbd";
    json_t *whole = json_stringn(bytes, size);
    char *clean = whole == NULL ? malloc(size * (sizeof unknown - 1) + 1) : NULL;
    size_t used = 0;
    for (size_t i = 0; clean != NULL && i < size;) {
        size_t length = utf8_printable(bytes + i, size - i);
        bool control = length == 0 && (unsigned char)bytes[i] < 0x80;
        length = control ? 1 : length;
        memcpy(clean + used, length > 0 ? bytes + i : unknown,
            length > 0 ? length : sizeof unknown - 1);
        used += length > 0 ? length : sizeof unknown - 1;
        i += length > 0 ? length : 1;
    }
    whole = clean != NULL ? json_stringn(clean, used) : whole;
    free(clean);
    return whole;
}

static json_t *json_of_stream(cadre_log_stream stream)
{
    return stream == CADRE_STDOUT   ? json_string("stdout")
           : stream == CADRE_STDERR ? json_string("stderr")
                                    : json_null();
}

json_t *json_of_text_line(uint64_t job, const cadre_log *log, const char *text_line, size_t size)
{
    bool whole = size > 0 && text_line[size - 1] == '\n';
    json_t *text = text_of_bytes(text_line, whole ? size - 1 : size);
    json_t *json = text != NULL ? json_object() : NULL;
    json_object_set_new(json, "job", json_number(job));
    json_object_set_new(json, "task", json_number(log->task));
    json_object_set_new(json, "stream", json_of_stream(log->stream));
    json_object_set_new(json, "received_us", json_number(log->received_us));
    json_object_set_new(json, "offset", json_number(log->offset));
    json_object_set_new(json, "left_out", json_number(log->left_out));
    json_object_set_new(json, "text", text);
    json_object_set_new(json, "partial", json_boolean(!whole));
    return json;
}

json_t *json_of_drained(const char *worker, const uint32_t *tasks)
{
    json_t *json = json_object();
    json_object_set_new(json, "worker", json_text(worker));
    json_object_set_new(json, "tasks", tasks != NULL ? json_number(*tasks) : json_null());
    return json;
}

json_t *json_of_submitted(const cadre_submitted *submitted)
{
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(submitted->job));
    json_object_set_new(json, "queued_before", json_number(submitted->queued_before));
    json_object_set_new(json, "note", json_text(submitted->note));
    return json;
}

json_t *json_of_version(const cadre_coordinator_version *version)
{
    json_t *coordinator = NULL;
    if (version != NULL) {
        coordinator = json_object();
        json_object_set_new(coordinator, "version", json_text(version->version));
        json_object_set_new(coordinator, "agent_protocol", json_number(version->agent_protocol));
        json_object_set_new(coordinator, "task_frame", json_number(version->task_frame));
        json_object_set_new(coordinator, "started_us", json_number(version->started_us));
        json_object_set_new(coordinator, "jobs_live", json_number(version->jobs_live));
        json_object_set_new(coordinator, "workers", json_number(version->workers));
    }
    json_t *json = json_object();
    json_object_set_new(json, "client", json_text(CADRE_VERSION));
    json_object_set_new(json, "coordinator", coordinator != NULL ? coordinator : json_null());
    return json;
}

static bool print_as(json_t *json, size_t form, FILE *out)
{
    if (json == NULL) {
        return false;
    }
    /* JSON escapes the control characters of ASCII only; others act on a terminal too. */
    size_t form_here = isatty(fileno(out)) != 0 ? form | JSON_ENSURE_ASCII : form;
    int rc = json_dumpf(json, out, form_here | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(json);
    return rc == 0;
}

bool json_print(json_t *json, FILE *out)
{
    return print_as(json, JSON_INDENT(2), out);
}

bool json_print_compact(json_t *json, FILE *out)
{
    return print_as(json, JSON_COMPACT, out);
}
