/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a cluster by job and index, and the rules for a training cluster. */
#ifndef CADRE_WORKER_CLUSTER_SPEC_H
#define CADRE_WORKER_CLUSTER_SPEC_H

#include "cadre/cluster_resolver.h"
#include "common/base/error.h"

/* Long values are cut in messages. */
#define CLUSTER_TEXT_SHOWN 64

struct cluster_task {
    uint32_t index;
    char *address; /* owned */
};

struct cluster_job {
    char name[CADRE_CLUSTER_NAME_BYTES];
    struct cluster_task *tasks; /* owned; by ascending index */
    uint32_t task_count;
    uint32_t task_capacity;
};

struct cadre_cluster_spec {
    struct cluster_job jobs[CADRE_CLUSTER_JOBS_MAX];
    size_t job_count;
    uint32_t task_count; /* of all jobs */
};

/* An empty one, the caller's to release. */
cadre_status cluster_spec_new(cadre_cluster_spec **ret_spec, struct cadre_error *error);

/* The job of that name; NULL when there is none. */
const struct cluster_job *cluster_spec_find(const cadre_cluster_spec *spec, const char *job);

/* The job of that name, made when there is none: it may stay without tasks. */
cadre_status cluster_spec_job(cadre_cluster_spec *spec, const char *name,
    struct cluster_job **ret_job, struct cadre_error *error);

/* Adds a task. ALREADY_EXISTS when the index is taken. */
cadre_status cluster_spec_add(cadre_cluster_spec *spec, struct cluster_job *job, uint32_t index,
    const char *address, struct cadre_error *error);

/* Whether its indices have no gaps: then it is a list. */
bool cluster_job_is_list(const struct cluster_job *job);

/* The address of a task; NULL when the job has no task of that index. */
const char *cluster_job_address(const struct cluster_job *job, uint32_t index);

/* Whether both have the same tasks, in any order of the jobs. */
bool cluster_spec_equal(const cadre_cluster_spec *a, const cadre_cluster_spec *b);

/* A copy, the caller's to release. */
cadre_status cluster_spec_copy(
    const cadre_cluster_spec *spec, cadre_cluster_spec **ret_copy, struct cadre_error *error);

/* The rules of cadre_cluster_spec_validate. */
cadre_status cluster_spec_check(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, struct cadre_error *error);
/* As cadre_cluster_worker_count. */
cadre_status cluster_worker_count(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t *ret_count, struct cadre_error *error);
/* As cadre_cluster_id_in_cluster. */
cadre_status cluster_id_in_cluster(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, uint32_t *ret_id, struct cadre_error *error);

/* INVALID_ARGUMENT when `pointer`, the argument `name` of `function`, is NULL. */
cadre_status cluster_require(
    const void *pointer, const char *function, const char *name, struct cadre_error *error);

/* Ends a public function: leaves the message of a failure with the calling thread. */
cadre_status cluster_api_return(cadre_status status, struct cadre_error *error);

#endif
