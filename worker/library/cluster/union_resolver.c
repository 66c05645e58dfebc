/* SPDX-License-Identifier: Apache-2.0
 * Several resolvers as one. */
#include <stdlib.h>
#include <string.h>

#include "worker/library/cluster/resolver.h"

/* Whether all that have the job have it as a list. */
static bool is_list(const cadre_cluster_resolver *const resolvers[], size_t count, const char *name)
{
    bool list = true;
    for (size_t i = 0; list && i < count; i++) {
        const struct cluster_job *job = cluster_spec_find(resolvers[i]->spec, name);
        list = job == NULL || cluster_job_is_list(job);
    }
    return list;
}

static cadre_status union_resolver_merge(const cadre_cluster_resolver *const resolvers[],
    size_t count, cadre_cluster_spec *spec, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const cadre_cluster_spec *from = resolvers[i]->spec;
        for (size_t at = 0; at < from->job_count; at++) {
            const struct cluster_job *job = &from->jobs[at];
            struct cluster_job *merged;
            CADRE_TRY(cluster_spec_job(spec, job->name, &merged, error));
            uint32_t base = is_list(resolvers, count, job->name) ? merged->task_count : 0;
            for (uint32_t t = 0; t < job->task_count; t++) {
                const struct cluster_task *task = &job->tasks[t];
                CADRE_TRY(cluster_spec_add(spec, merged, base + task->index, task->address, error));
            }
        }
    }
    return CADRE_OK;
}

static cadre_status make_union(const cadre_cluster_resolver *const resolvers[], size_t count,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    static const char function[] = "cadre_cluster_resolver_union";
    CADRE_TRY(cluster_require(ret_resolver, function, "ret_resolver", error));
    *ret_resolver = NULL;
    CADRE_TRY(cluster_require(resolvers, function, "resolvers", error));
    if (count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a union of no cluster resolvers is not possible; give at least one");
    }
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(cluster_require(resolvers[i], function, "a resolver", error));
    }
    cadre_cluster_spec *spec;
    CADRE_TRY(cluster_spec_new(&spec, error));
    cadre_status status = union_resolver_merge(resolvers, count, spec, error);
    if (status != CADRE_OK) {
        cadre_cluster_spec_release(spec);
        return status;
    }
    const char *task_type = NULL; /* those of the first that has them */
    uint32_t task_id = CADRE_TASK_NONE;
    for (size_t i = count; i-- > 0;) {
        const cadre_cluster_resolver *resolver = resolvers[i];
        task_type = resolver->task_type != NULL ? resolver->task_type : task_type;
        task_id = resolver->task_id != CADRE_TASK_NONE ? resolver->task_id : task_id;
    }
    status = resolver_new(spec, task_type, task_id, ret_resolver, error);
    if (status == CADRE_OK) {
        (*ret_resolver)->gpu_first = resolvers[0]->gpu_first;
        (*ret_resolver)->gpu_count = resolvers[0]->gpu_count;
    }
    return status;
}

cadre_status cadre_cluster_resolver_union(const cadre_cluster_resolver *const resolvers[],
    size_t count, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    return cluster_api_return(make_union(resolvers, count, ret_resolver, &error), &error);
}
