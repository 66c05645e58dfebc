/* SPDX-License-Identifier: Apache-2.0
 * The rules for a training cluster, and what follows from them for one task: those of
 * tf.distribute's multi_worker_util. The public functions of cadre/cluster.h are at the end. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/cluster/cluster_spec.h"

static const char *const known[] = {"chief", "worker", "ps", "evaluator"};

static bool is_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool cluster_rules_is(const char *task_type, const char *name)
{
    return strcmp(task_type, name) == 0;
}

static cadre_status check_jobs(const cadre_cluster_spec *spec, struct cadre_error *error)
{
    for (size_t i = 0; i < spec->job_count; i++) {
        const struct cluster_job *job = &spec->jobs[i];
        if (!is_known(job->name)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the cluster has a job '%s'; its jobs may be chief, worker, ps and evaluator",
                job->name);
        }
        if ((cluster_rules_is(job->name, "chief") || cluster_rules_is(job->name, "evaluator")) &&
            job->task_count > 1) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the cluster has %" PRIu32 " tasks in its job '%s'; it may have one at most",
                job->task_count, job->name);
        }
    }
    return CADRE_OK;
}

cadre_status cluster_spec_check(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, struct cadre_error *error)
{
    CADRE_TRY(check_jobs(spec, error));
    if (task_type == NULL || task_type[0] == '\0') {
        return CADRE_OK;
    }
    if (!is_known(task_type)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "'%.*s' is no type of a task; it may be chief, worker, ps or evaluator",
            CLUSTER_TEXT_SHOWN, task_type);
    }
    const struct cluster_job *job = cluster_spec_find(spec, task_type);
    if (job == NULL && cluster_rules_is(task_type, "evaluator")) {
        return CADRE_OK; /* it is in no training cluster */
    }
    if (job == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this task is of type '%s', and the cluster has no such job; add it, or give another "
            "type",
            task_type);
    }
    if (task_id >= job->task_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this task has the index %" PRId64 " of job '%s', which has %" PRIu32
            " tasks; give 0 to %" PRId64,
            task_id == CADRE_TASK_NONE ? -1 : (int64_t)task_id, task_type, job->task_count,
            (int64_t)job->task_count - 1);
    }
    return CADRE_OK;
}

static uint32_t tasks_of(const cadre_cluster_spec *spec, const char *name)
{
    const struct cluster_job *job = cluster_spec_find(spec, name);
    return job == NULL ? 0 : job->task_count;
}

static cadre_status check_trains(
    const char *task_type, const char *property, struct cadre_error *error)
{
    if (task_type != NULL &&
        (cluster_rules_is(task_type, "chief") || cluster_rules_is(task_type, "worker") ||
            cluster_rules_is(task_type, "evaluator"))) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "a task of type '%.*s' does not have %s; only a chief, a worker and an evaluator have one",
        CLUSTER_TEXT_SHOWN, task_type == NULL ? "" : task_type, property);
}

cadre_status cluster_worker_count(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t *ret_count, struct cadre_error *error)
{
    *ret_count = 0;
    CADRE_TRY(cluster_spec_check(spec, task_type, 0, error));
    CADRE_TRY(check_trains(task_type, "a number of workers", error));
    if (cluster_rules_is(task_type, "evaluator")) {
        uint32_t count = tasks_of(spec, "evaluator");
        *ret_count = count > 0 ? count : 1; /* itself */
    } else {
        *ret_count = tasks_of(spec, "chief") + tasks_of(spec, "worker");
    }
    return CADRE_OK;
}

cadre_status cluster_id_in_cluster(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, uint32_t *ret_id, struct cadre_error *error)
{
    *ret_id = 0;
    CADRE_TRY(cluster_spec_check(spec, task_type, task_id, error));
    CADRE_TRY(check_trains(task_type, "an id in the cluster", error));
    if (cluster_rules_is(task_type, "worker")) {
        *ret_id = task_id + tasks_of(spec, "chief");
    } else if (cluster_rules_is(task_type, "evaluator")) {
        *ret_id = task_id;
    }
    return CADRE_OK;
}

/* Of chief and workers; "" when there are none. */
static const char *first_worker(const cadre_cluster_spec *spec)
{
    if (cluster_spec_find(spec, "chief") != NULL) {
        return "/job:chief/replica:0/task:0";
    }
    return cluster_spec_find(spec, "worker") != NULL ? "/job:worker/replica:0/task:0" : "";
}

/* --- public --- */

static cadre_status cluster_rules_require(const cadre_cluster_spec *spec, const void *ret_value,
    const char *function, struct cadre_error *error)
{
    CADRE_TRY(cluster_require(spec, function, "spec", error));
    return cluster_require(ret_value, function, "the result", error);
}

cadre_status cadre_cluster_spec_validate(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t task_id)
{
    struct cadre_error error = {0};
    cadre_status status = cluster_require(spec, "cadre_cluster_spec_validate", "spec", &error);
    if (status == CADRE_OK) {
        status = cluster_spec_check(spec, task_type, task_id, &error);
    }
    return cluster_api_return(status, &error);
}

cadre_status cadre_cluster_is_chief(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t task_id, bool *ret_is_chief)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_rules_require(spec, ret_is_chief, "cadre_cluster_is_chief", &error);
    if (status == CADRE_OK) {
        status = cluster_spec_check(spec, task_type, task_id, &error);
    }
    if (status == CADRE_OK) {
        const char *type = task_type == NULL ? "" : task_type;
        bool leads = cluster_rules_is(type, "worker") && task_id == 0 &&
                     cluster_spec_find(spec, "chief") == NULL;
        *ret_is_chief =
            leads || cluster_rules_is(type, "chief") || cluster_rules_is(type, "evaluator");
    }
    return cluster_api_return(status, &error);
}

cadre_status cadre_cluster_worker_count(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t *ret_count)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_rules_require(spec, ret_count, "cadre_cluster_worker_count", &error);
    if (status == CADRE_OK) {
        status = cluster_worker_count(spec, task_type, ret_count, &error);
    }
    return cluster_api_return(status, &error);
}

cadre_status cadre_cluster_id_in_cluster(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t task_id, uint32_t *ret_id)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_rules_require(spec, ret_id, "cadre_cluster_id_in_cluster", &error);
    if (status == CADRE_OK) {
        status = cluster_id_in_cluster(spec, task_type, task_id, ret_id, &error);
    }
    return cluster_api_return(status, &error);
}

cadre_status cadre_cluster_collective_leader(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, const char **ret_leader)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_rules_require(spec, ret_leader, "cadre_cluster_collective_leader", &error);
    if (status == CADRE_OK && spec->job_count == 0) {
        *ret_leader = "";
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        status = cluster_spec_check(spec, task_type, task_id, &error);
    }
    if (status == CADRE_OK) {
        bool evaluates = task_type != NULL && cluster_rules_is(task_type, "evaluator");
        *ret_leader = evaluates ? "" : first_worker(spec);
    }
    return cluster_api_return(status, &error);
}
