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

static cadre_status merge(const cadre_cluster_resolver *const resolvers[], size_t count,
    cadre_cluster_spec *spec, struct cadre_error *error)
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

/* What the first that has it says. */
static cadre_cluster_values values_of(
    const cadre_cluster_resolver *const resolvers[], size_t count, const char *master)
{
    cadre_cluster_values values = {.task_id = CADRE_TASK_NONE,
        .master = master,
        .environment = resolvers[0]->environment,
        .num_accelerators = resolvers[0]->accelerators};
    for (size_t i = count; i-- > 0;) {
        const cadre_cluster_resolver *resolver = resolvers[i];
        values.task_type = resolver->task_type != NULL ? resolver->task_type : values.task_type;
        values.task_id = resolver->task_id != CADRE_TASK_NONE ? resolver->task_id : values.task_id;
        values.rpc_layer = resolver->rpc_layer != NULL ? resolver->rpc_layer : values.rpc_layer;
    }
    return values;
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
            "a union of no cluster resolvers was asked for; give at least one");
    }
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(cluster_require(resolvers[i], function, "a resolver", error));
    }
    cadre_cluster_spec *spec;
    CADRE_TRY(cluster_spec_new(&spec, error));
    cadre_status status = merge(resolvers, count, spec, error);
    if (status != CADRE_OK) {
        cadre_cluster_spec_release(spec);
        return status;
    }
    char *master = NULL;
    struct cadre_error unknown; /* then it has none until somebody says which task is meant */
    resolver_master(resolvers[0], NULL, CADRE_TASK_NONE, NULL, &master, &unknown);
    cadre_cluster_values values = values_of(resolvers, count, master);
    status = resolver_new(RESOLVER_UNION, spec, &values, ret_resolver, error);
    if (status == CADRE_OK) {
        (*ret_resolver)->gpu_first = resolvers[0]->gpu_first;
        (*ret_resolver)->gpu_count = resolvers[0]->gpu_count;
    }
    free(master);
    return status;
}

cadre_status cadre_cluster_resolver_union(const cadre_cluster_resolver *const resolvers[],
    size_t count, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    return cluster_border(make_union(resolvers, count, ret_resolver, &error), &error);
}
