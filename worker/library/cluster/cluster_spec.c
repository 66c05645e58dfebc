/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a cluster by job and index; resolvers and TF_CONFIG fill them in. */
#include "worker/library/cluster/cluster_spec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

cadre_status cluster_require(
    const void *pointer, const char *function, const char *name, struct cadre_error *error)
{
    return pointer != NULL ? CADRE_OK
                           : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                                 "%s was called with %s NULL", function, name);
}

cadre_status cluster_api_return(cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        error->code = status;
        cadre_error_publish(error);
    }
    return status;
}

cadre_status cluster_spec_new(cadre_cluster_spec **ret_spec, struct cadre_error *error)
{
    *ret_spec = calloc(1, sizeof **ret_spec);
    return *ret_spec != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a cluster spec");
}

void cadre_cluster_spec_release(cadre_cluster_spec *spec)
{
    if (spec == NULL) {
        return;
    }
    for (size_t i = 0; i < spec->job_count; i++) {
        for (uint32_t t = 0; t < spec->jobs[i].task_count; t++) {
            free(spec->jobs[i].tasks[t].address);
        }
        free(spec->jobs[i].tasks);
    }
    free(spec);
}

const struct cluster_job *cluster_spec_find(const cadre_cluster_spec *spec, const char *job)
{
    for (size_t i = 0; i < spec->job_count; i++) {
        if (strcmp(spec->jobs[i].name, job) == 0) {
            return &spec->jobs[i];
        }
    }
    return NULL;
}

/* Of a name or an address: bytes that can be shown, without spaces, of which there is at least one.
 */
static bool is_word(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    bool shown = length > 0 && length < size;
    for (size_t i = 0; shown && i < length; i++) {
        shown = text[i] > ' ' && text[i] <= '~';
    }
    return shown;
}

cadre_status cluster_spec_job(cadre_cluster_spec *spec, const char *name,
    struct cluster_job **ret_job, struct cadre_error *error)
{
    for (size_t i = 0; i < spec->job_count; i++) {
        if (strcmp(spec->jobs[i].name, name) == 0) {
            *ret_job = &spec->jobs[i];
            return CADRE_OK;
        }
    }
    if (!is_word(name, CADRE_CLUSTER_NAME_BYTES)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "'%.*s' is no name for a job of a cluster; give 1 to %d printable bytes without spaces",
            CLUSTER_TEXT_SHOWN, name, CADRE_CLUSTER_NAME_BYTES - 1);
    }
    if (spec->job_count == CADRE_CLUSTER_JOBS_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "job '%s' would be the cluster's job number %d; at most %d are possible", name,
            CADRE_CLUSTER_JOBS_MAX + 1, CADRE_CLUSTER_JOBS_MAX);
    }
    *ret_job = &spec->jobs[spec->job_count++];
    memcpy((*ret_job)->name, name, strlen(name) + 1);
    return CADRE_OK;
}

/* The offset in `tasks` where `index` is or belongs. */
static uint32_t task_offset_of(const struct cluster_job *job, uint32_t index)
{
    uint32_t low = 0;
    uint32_t high = job->task_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (job->tasks[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static cadre_status cluster_spec_grow(struct cluster_job *job, struct cadre_error *error)
{
    if (job->task_count < job->task_capacity) {
        return CADRE_OK;
    }
    uint32_t capacity = job->task_capacity == 0 ? 8 : 2 * job->task_capacity;
    struct cluster_task *grown = realloc(job->tasks, capacity * sizeof *grown);
    if (grown == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %" PRIu32 " tasks of job '%s'", capacity, job->name);
    }
    job->tasks = grown;
    job->task_capacity = capacity;
    return CADRE_OK;
}

cadre_status cluster_spec_add(cadre_cluster_spec *spec, struct cluster_job *job, uint32_t index,
    const char *address, struct cadre_error *error)
{
    uint32_t at = task_offset_of(job, index);
    if (at < job->task_count && job->tasks[at].index == index) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "job '%s' has two tasks with the index %" PRIu32 ", %s and %.*s", job->name, index,
            job->tasks[at].address, CLUSTER_TEXT_SHOWN, address);
    }
    if (!is_word(address, CADRE_CLUSTER_ADDRESS_BYTES) || index == CADRE_TASK_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "task %" PRIu32 " of job '%s' has the address '%.*s'; give HOST:PORT in 1 to %d "
            "printable bytes",
            index, job->name, CLUSTER_TEXT_SHOWN, address, CADRE_CLUSTER_ADDRESS_BYTES - 1);
    }
    if (spec->task_count == CADRE_CLUSTER_TASKS_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the cluster has more than %d tasks, which is the most that is possible",
            CADRE_CLUSTER_TASKS_MAX);
    }
    CADRE_TRY(cluster_spec_grow(job, error));
    char *copy = strdup(address);
    if (copy == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an address");
    }
    memmove(&job->tasks[at + 1], &job->tasks[at], (job->task_count - at) * sizeof job->tasks[0]);
    job->tasks[at] = (struct cluster_task){.index = index, .address = copy};
    job->task_count++;
    spec->task_count++;
    return CADRE_OK;
}

bool cluster_job_is_list(const struct cluster_job *job)
{
    return job->task_count == 0 || job->tasks[job->task_count - 1].index == job->task_count - 1;
}

const char *cluster_job_address(const struct cluster_job *job, uint32_t index)
{
    uint32_t at = task_offset_of(job, index);
    return at < job->task_count && job->tasks[at].index == index ? job->tasks[at].address : NULL;
}

/* NOT_FOUND when there is none. */
static cadre_status cluster_spec_address(const cadre_cluster_spec *spec, const char *job,
    uint32_t index, const char **ret_address, struct cadre_error *error)
{
    const struct cluster_job *found = cluster_spec_find(spec, job);
    *ret_address = found == NULL ? NULL : cluster_job_address(found, index);
    if (found == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "the cluster has no job '%.*s'", CLUSTER_TEXT_SHOWN, job);
    }
    return *ret_address != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_NOT_FOUND,
                     "job '%s' of the cluster has no task with the index %" PRIu32, job, index);
}

cadre_status cluster_spec_copy(
    const cadre_cluster_spec *spec, cadre_cluster_spec **ret_copy, struct cadre_error *error)
{
    cadre_status status = cluster_spec_new(ret_copy, error);
    for (size_t i = 0; status == CADRE_OK && i < spec->job_count; i++) {
        const struct cluster_job *job = &spec->jobs[i];
        struct cluster_job *made = NULL;
        status = cluster_spec_job(*ret_copy, job->name, &made, error);
        for (uint32_t t = 0; status == CADRE_OK && t < job->task_count; t++) {
            const struct cluster_task *task = &job->tasks[t];
            status = cluster_spec_add(*ret_copy, made, task->index, task->address, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_cluster_spec_release(*ret_copy);
        *ret_copy = NULL;
    }
    return status;
}

/* --- public --- */

static cadre_status add_task(cadre_cluster_spec *spec, const char *job, uint32_t index,
    const char *address, struct cadre_error *error)
{
    static const char function[] = "cadre_cluster_spec_add_task";
    CADRE_TRY(cluster_require(spec, function, "spec", error));
    CADRE_TRY(cluster_require(job, function, "job", error));
    CADRE_TRY(cluster_require(address, function, "address", error));
    size_t jobs = spec->job_count;
    struct cluster_job *made = NULL;
    CADRE_TRY(cluster_spec_job(spec, job, &made, error));
    cadre_status status = cluster_spec_add(spec, made, index, address, error);
    if (status != CADRE_OK && spec->job_count > jobs) {
        free(made->tasks);
        *made = (struct cluster_job){.task_count = 0};
        spec->job_count = jobs;
    }
    return status;
}

cadre_status cadre_cluster_spec_add_task(
    cadre_cluster_spec *spec, const char *job, uint32_t index, const char *address)
{
    struct cadre_error error = {0};
    return cluster_api_return(add_task(spec, job, index, address, &error), &error);
}

size_t cadre_cluster_spec_num_jobs(const cadre_cluster_spec *spec)
{
    return spec == NULL ? 0 : spec->job_count;
}

const char *cadre_cluster_spec_job(const cadre_cluster_spec *spec, size_t at)
{
    return spec == NULL || at >= spec->job_count ? NULL : spec->jobs[at].name;
}

uint32_t cadre_cluster_spec_num_tasks(const cadre_cluster_spec *spec, const char *job)
{
    const struct cluster_job *found =
        spec == NULL || job == NULL ? NULL : cluster_spec_find(spec, job);
    return found == NULL ? 0 : found->task_count;
}

uint32_t cadre_cluster_spec_task_index(const cadre_cluster_spec *spec, const char *job, uint32_t at)
{
    const struct cluster_job *found =
        spec == NULL || job == NULL ? NULL : cluster_spec_find(spec, job);
    return found == NULL || at >= found->task_count ? CADRE_TASK_NONE : found->tasks[at].index;
}

cadre_status cadre_cluster_spec_task_address(
    const cadre_cluster_spec *spec, const char *job, uint32_t index, const char **ret_address)
{
    struct cadre_error error = {0};
    static const char function[] = "cadre_cluster_spec_task_address";
    cadre_status status = cluster_require(spec, function, "spec", &error);
    if (status == CADRE_OK) {
        status = cluster_require(job, function, "job", &error);
    }
    if (status == CADRE_OK) {
        status = cluster_require(ret_address, function, "ret_address", &error);
    }
    if (status == CADRE_OK) {
        status = cluster_spec_address(spec, job, index, ret_address, &error);
    }
    return cluster_api_return(status, &error);
}

static bool jobs_equal(const struct cluster_job *a, const struct cluster_job *b)
{
    bool equal = b != NULL && a->task_count == b->task_count;
    for (uint32_t i = 0; equal && i < a->task_count; i++) {
        equal = a->tasks[i].index == b->tasks[i].index &&
                strcmp(a->tasks[i].address, b->tasks[i].address) == 0;
    }
    return equal;
}

bool cluster_spec_equal(const cadre_cluster_spec *a, const cadre_cluster_spec *b)
{
    if (a == NULL || b == NULL || a->job_count != b->job_count) {
        return a == b;
    }
    bool equal = true;
    for (size_t i = 0; equal && i < a->job_count; i++) {
        equal = jobs_equal(&a->jobs[i], cluster_spec_find(b, a->jobs[i].name));
    }
    return equal;
}
