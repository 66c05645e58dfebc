/* SPDX-License-Identifier: Apache-2.0
 * The cluster that the program sets for itself, and the cluster of its job. */
#include <inttypes.h>
#include <string.h>

#include "cadre/cluster_resolver.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_status cluster_use_use(
    const cadre_cluster_resolver *resolver, struct cadre_error *error)
{
    static const char function[] = "cadre_cluster_resolver_use";
    const struct environment *environment = program_environment();
    uint32_t at = 0;
    CADRE_TRY(context_require_cross(function, error));
    CADRE_TRY(cluster_require(resolver, function, "resolver", error));
    if (environment == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called before cadre_init; call it between cadre_init and the strategy",
            function);
    }
    if (!environment->by_hand) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a task of job %" PRIu64
            ", whose tasks the worker daemon has started; call it only where "
            "cadre_cluster_resolver_cadre finds no job",
            function, environment->job);
    }
    if (strategy_registry_next(&at) != NULL || program_cluster_joined()) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called after the strategy was made; call it between cadre_init and the "
            "strategy",
            function);
    }
    return program_set_cluster(resolver, error);
}

cadre_status cadre_cluster_resolver_use(const cadre_cluster_resolver *resolver)
{
    struct cadre_error error = {0};
    return api_return(cluster_use_use(resolver, &error), &error);
}

/* --- the job that runs --- */

/* The workers by their rank, with the addresses of their meshes. */
static cadre_status cluster_use_describe(
    const cadre_strategy *strategy, cadre_cluster_spec *spec, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->roster.member_count > 0);
    struct cluster_job *job;
    CADRE_TRY(cluster_spec_job(spec, "worker", &job, error));
    for (uint32_t rank = 0; rank < strategy->roster.member_count; rank++) {
        const char *address = strategy->roster.members[rank].address;
        CADRE_TRY(cluster_spec_add(spec, job, rank, address, error));
    }
    return CADRE_OK;
}

static cadre_status find_job(cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    static const char function[] = "cadre_cluster_resolver_cadre";
    uint32_t at = 0;
    CADRE_TRY(cluster_require(ret_resolver, function, "ret_resolver", error));
    *ret_resolver = NULL;
    const cadre_strategy *strategy = strategy_registry_next(&at);
    if (program_environment() == NULL || strategy == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called without a strategy, and before it the job's tasks are not known; call "
            "it while the strategy is open",
            function);
    }
    if (program_cluster() != NULL) {
        return resolver_copy(program_cluster()->resolver, ret_resolver, error);
    }
    cadre_cluster_spec *spec;
    const char *task_type = NULL;
    uint32_t task_id = CADRE_TASK_NONE;
    CADRE_TRY(cluster_spec_new(&spec, error));
    if (program_environment()->attached && strategy->state != STATE_WARM) {
        task_type = "worker";
        task_id = strategy->roster.rank;
        cadre_status status = cluster_use_describe(strategy, spec, error);
        if (status != CADRE_OK) {
            cadre_cluster_spec_release(spec);
            return status;
        }
    }
    return resolver_new(spec, task_type, task_id, ret_resolver, error);
}

cadre_status cadre_cluster_resolver_cadre(cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    return api_return(find_job(ret_resolver, &error), &error);
}
