/* SPDX-License-Identifier: Apache-2.0
 * Cluster resolvers: from TF_CONFIG, from Slurm, or from a spec, and the public functions on
 * them. */
#include "worker/library/cluster/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "worker/library/cluster/slurm.h"

/* A copy of `text`; NULL stays NULL. The old one is freed once there is a new one. */
static cadre_status resolver_keep(char **kept, const char *text, struct cadre_error *error)
{
    char *copy = text == NULL ? NULL : strdup(text);
    if (text != NULL && copy == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a text of a cluster resolver");
    }
    free(*kept);
    *kept = copy;
    return CADRE_OK;
}

void cadre_cluster_resolver_release(cadre_cluster_resolver *resolver)
{
    if (resolver != NULL) {
        cadre_cluster_spec_release(resolver->spec);
        free(resolver->task_type);
        free(resolver);
    }
}

cadre_status resolver_new(cadre_cluster_spec *spec, const char *task_type, uint32_t task_id,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    cadre_cluster_resolver *resolver = calloc(1, sizeof *resolver);
    *ret_resolver = NULL;
    if (resolver == NULL) {
        cadre_cluster_spec_release(spec);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a cluster resolver");
    }
    resolver->spec = spec;
    resolver->task_id = task_id;
    cadre_status status = resolver_keep(&resolver->task_type, task_type, error);
    if (status != CADRE_OK) {
        cadre_cluster_resolver_release(resolver);
        return status;
    }
    *ret_resolver = resolver;
    return CADRE_OK;
}

cadre_status resolver_copy(const cadre_cluster_resolver *resolver,
    cadre_cluster_resolver **ret_copy, struct cadre_error *error)
{
    cadre_cluster_spec *spec;
    *ret_copy = NULL;
    CADRE_TRY(cluster_spec_copy(resolver->spec, &spec, error));
    CADRE_TRY(resolver_new(spec, resolver->task_type, resolver->task_id, ret_copy, error));
    (*ret_copy)->gpu_first = resolver->gpu_first;
    (*ret_copy)->gpu_count = resolver->gpu_count;
    return CADRE_OK;
}

/* --- the sources --- */

cadre_status resolver_tf_config(
    const char *text, cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    struct tf_config config;
    *ret_resolver = NULL;
    cadre_status status = tf_config_parse(text, strlen(text), &config, error);
    if (status == CADRE_OK) {
        status = resolver_new(config.spec, config.task_type, config.task_id, ret_resolver, error);
        config.spec = NULL;
    }
    tf_config_clear(&config);
    return status;
}

cadre_status resolver_slurm(const cadre_slurm_options *options,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    static const cadre_slurm_options defaults = {.port_base = 0};
    const cadre_slurm_options *given = options == NULL ? &defaults : options;
    struct slurm_variables variables = slurm_variables_read();
    struct slurm_task slurm_task_found;
    *ret_resolver = NULL;
    CADRE_TRY(slurm_resolve(&variables, given, &slurm_task_found, error));
    CADRE_TRY(resolver_new(slurm_task_found.spec, slurm_task_found.task_type,
        slurm_task_found.task_id, ret_resolver, error));
    (*ret_resolver)->gpu_first = slurm_task_found.gpu_first;
    (*ret_resolver)->gpu_count = slurm_task_found.gpus;
    return CADRE_OK;
}

/* --- public: making --- */

cadre_status cadre_cluster_resolver_tf_config(
    const char *text, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    const char *config = text != NULL ? text : getenv("TF_CONFIG");
    cadre_status status =
        cluster_require(ret_resolver, "cadre_cluster_resolver_tf_config", "ret_resolver", &error);
    if (status == CADRE_OK) {
        status = resolver_tf_config(config == NULL ? "{}" : config, ret_resolver, &error);
    }
    return cluster_api_return(status, &error);
}

cadre_status cadre_cluster_resolver_slurm(
    const cadre_slurm_options *options, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_require(ret_resolver, "cadre_cluster_resolver_slurm", "ret_resolver", &error);
    if (status == CADRE_OK) {
        status = resolver_slurm(options, ret_resolver, &error);
    }
    return cluster_api_return(status, &error);
}

static cadre_status make_simple(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    cadre_cluster_spec *copy;
    CADRE_TRY(cluster_require(spec, "cadre_cluster_resolver_simple", "spec", error));
    CADRE_TRY(
        cluster_require(ret_resolver, "cadre_cluster_resolver_simple", "ret_resolver", error));
    *ret_resolver = NULL;
    CADRE_TRY(cluster_spec_copy(spec, &copy, error));
    return resolver_new(copy, task_type, task_id, ret_resolver, error);
}

cadre_status cadre_cluster_resolver_simple(const cadre_cluster_spec *spec, const char *task_type,
    uint32_t task_id, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    return cluster_api_return(make_simple(spec, task_type, task_id, ret_resolver, &error), &error);
}

/* --- public: reading --- */

const cadre_cluster_spec *cadre_cluster_resolver_spec(const cadre_cluster_resolver *resolver)
{
    return resolver == NULL ? NULL : resolver->spec;
}

const char *cadre_cluster_resolver_task_type(const cadre_cluster_resolver *resolver)
{
    return resolver == NULL ? NULL : resolver->task_type;
}

uint32_t cadre_cluster_resolver_task_id(const cadre_cluster_resolver *resolver)
{
    return resolver == NULL ? CADRE_TASK_NONE : resolver->task_id;
}

void cadre_cluster_resolver_gpus(
    const cadre_cluster_resolver *resolver, uint32_t *ret_first, uint32_t *ret_count)
{
    *ret_first = resolver == NULL ? 0 : resolver->gpu_first;
    *ret_count = resolver == NULL ? 0 : resolver->gpu_count;
}

cadre_status cadre_cluster_resolver_set_task(
    cadre_cluster_resolver *resolver, const char *task_type, uint32_t task_id)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_require(resolver, "cadre_cluster_resolver_set_task", "resolver", &error);
    if (status == CADRE_OK) {
        status = resolver_keep(&resolver->task_type, task_type, &error);
    }
    if (status == CADRE_OK) {
        resolver->task_id = task_id;
    }
    return cluster_api_return(status, &error);
}
