/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/cluster/resolver.h"

#include <stdlib.h>
#include <string.h>

#include "worker/library/cluster/slurm.h"
#include "worker/library/cluster/tf_config.h"

#define RPC_LAYER_SLURM "grpc"

/* A copy of `text`; NULL stays NULL. The old one is freed once there is a new one. */
static cadre_status keep(char **kept, const char *text, struct cadre_error *error)
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
        free(resolver->rpc_layer);
        free(resolver->master);
        free(resolver->environment);
        free(resolver);
    }
}

cadre_status resolver_new(enum resolver_kind kind, cadre_cluster_spec *spec,
    const cadre_cluster_values *values, cadre_cluster_resolver **ret_resolver,
    struct cadre_error *error)
{
    static const cadre_cluster_values nothing = {.task_id = CADRE_TASK_NONE};
    const cadre_cluster_values *given = values == NULL ? &nothing : values;
    cadre_cluster_resolver *resolver = calloc(1, sizeof *resolver);
    *ret_resolver = NULL;
    if (resolver == NULL) {
        cadre_cluster_spec_release(spec);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a cluster resolver");
    }
    resolver->kind = kind;
    resolver->spec = spec;
    resolver->task_id = given->task_id;
    resolver->accelerators = given->num_accelerators;
    cadre_status status = keep(&resolver->task_type, given->task_type, error);
    if (status == CADRE_OK) {
        status = keep(&resolver->rpc_layer, given->rpc_layer, error);
    }
    if (status == CADRE_OK) {
        status = keep(&resolver->master, given->master, error);
    }
    if (status == CADRE_OK) {
        status = keep(&resolver->environment, given->environment, error);
    }
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
    cadre_cluster_values values = {.task_type = resolver->task_type,
        .task_id = resolver->task_id,
        .rpc_layer = resolver->rpc_layer,
        .master = resolver->master,
        .environment = resolver->environment,
        .num_accelerators = resolver->accelerators};
    CADRE_TRY(resolver_new(resolver->kind, spec, &values, ret_copy, error));
    (*ret_copy)->gpu_first = resolver->gpu_first;
    (*ret_copy)->gpu_count = resolver->gpu_count;
    return CADRE_OK;
}

/* --- where it comes from --- */

cadre_status resolver_tf_config(const char *text, const cadre_cluster_overrides *overrides,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    static const cadre_cluster_overrides nothing = CADRE_CLUSTER_OVERRIDES_NONE;
    const cadre_cluster_overrides *over = overrides == NULL ? &nothing : overrides;
    struct tf_config config;
    *ret_resolver = NULL;
    cadre_status status = tf_config_parse(text, strlen(text), &config, error);
    if (status == CADRE_OK) {
        cadre_cluster_values values = {
            .task_type = over->task_type != NULL ? over->task_type : config.task_type,
            .task_id = over->task_id != CADRE_TASK_NONE ? over->task_id : config.task_id,
            .rpc_layer = over->rpc_layer != NULL ? over->rpc_layer : config.rpc_layer,
            .master = config.session_master,
            .environment = over->environment};
        status = resolver_new(RESOLVER_TF_CONFIG, config.spec, &values, ret_resolver, error);
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
    struct slurm_place place;
    *ret_resolver = NULL;
    CADRE_TRY(slurm_resolve(&variables, given, &place, error));
    cadre_cluster_values values = {.task_type = place.task_type,
        .task_id = place.task_id,
        .rpc_layer = given->rpc_layer == NULL ? RPC_LAYER_SLURM : given->rpc_layer,
        .num_accelerators = place.gpus};
    CADRE_TRY(resolver_new(RESOLVER_SLURM, place.spec, &values, ret_resolver, error));
    (*ret_resolver)->gpu_first = place.gpu_first;
    (*ret_resolver)->gpu_count = place.gpus;
    return CADRE_OK;
}

/* --- the master --- */

static cadre_status master_of(const cadre_cluster_resolver *resolver, const char *task_type,
    uint32_t task_id, const char *rpc_layer, char **ret_master, struct cadre_error *error)
{
    if (task_type == NULL || task_id == CADRE_TASK_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the master of the cluster is asked for, and the %s of this task is not known; give it",
            task_type == NULL ? "type" : "index");
    }
    const char *address;
    CADRE_TRY(cluster_spec_address(resolver->spec, task_type, task_id, &address, error));
    bool layered = rpc_layer != NULL && rpc_layer[0] != '\0';
    size_t bytes = strlen(address) + (layered ? strlen(rpc_layer) + 3 : 0) + 1;
    *ret_master = malloc(bytes);
    if (*ret_master == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an address");
    }
    char *end = *ret_master;
    if (layered) {
        end = stpcpy(stpcpy(end, rpc_layer), "://");
    }
    stpcpy(end, address);
    return CADRE_OK;
}

/* A cluster of one task at most has no master but the program itself. */
static bool is_alone(const cadre_cluster_spec *spec)
{
    return spec->job_count == 0 || (spec->job_count == 1 && spec->jobs[0].task_count == 1);
}

cadre_status resolver_master(const cadre_cluster_resolver *resolver, const char *task_type,
    uint32_t task_id, const char *rpc_layer, char **ret_master, struct cadre_error *error)
{
    const char *layer = rpc_layer != NULL ? rpc_layer : resolver->rpc_layer;
    bool asked = task_type != NULL && task_id != CADRE_TASK_NONE;
    const char *type = task_type != NULL ? task_type : resolver->task_type;
    uint32_t id = task_id != CADRE_TASK_NONE ? task_id : resolver->task_id;
    const char *given = resolver->master == NULL ? "" : resolver->master;
    *ret_master = NULL;
    switch (resolver->kind) {
    case RESOLVER_TF_CONFIG:
        if (resolver->master == NULL && !is_alone(resolver->spec)) {
            return master_of(resolver, type, id, layer, ret_master, error);
        }
        break;
    case RESOLVER_SLURM:
        if (type != NULL && id != CADRE_TASK_NONE) {
            return master_of(resolver, type, id, layer, ret_master, error);
        }
        break;
    case RESOLVER_SIMPLE:
    case RESOLVER_UNION:
        if (asked) {
            return master_of(resolver, type, id, layer, ret_master, error);
        }
        break;
    }
    return keep(ret_master, given, error);
}

/* --- public: making --- */

cadre_status cadre_cluster_resolver_tf_config(const char *text,
    const cadre_cluster_overrides *overrides, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    const char *config = text != NULL ? text : getenv("TF_CONFIG");
    cadre_status status =
        cluster_require(ret_resolver, "cadre_cluster_resolver_tf_config", "ret_resolver", &error);
    if (status == CADRE_OK) {
        status =
            resolver_tf_config(config == NULL ? "{}" : config, overrides, ret_resolver, &error);
    }
    return cluster_border(status, &error);
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
    return cluster_border(status, &error);
}

static cadre_status make_simple(const cadre_cluster_spec *spec, const cadre_cluster_values *values,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    cadre_cluster_spec *copy;
    CADRE_TRY(cluster_require(spec, "cadre_cluster_resolver_simple", "spec", error));
    CADRE_TRY(
        cluster_require(ret_resolver, "cadre_cluster_resolver_simple", "ret_resolver", error));
    *ret_resolver = NULL;
    CADRE_TRY(cluster_spec_copy(spec, &copy, error));
    return resolver_new(RESOLVER_SIMPLE, copy, values, ret_resolver, error);
}

cadre_status cadre_cluster_resolver_simple(const cadre_cluster_spec *spec,
    const cadre_cluster_values *values, cadre_cluster_resolver **ret_resolver)
{
    struct cadre_error error = {0};
    return cluster_border(make_simple(spec, values, ret_resolver, &error), &error);
}

/* --- public: looking --- */

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

const char *cadre_cluster_resolver_rpc_layer(const cadre_cluster_resolver *resolver)
{
    return resolver == NULL || resolver->rpc_layer == NULL ? "" : resolver->rpc_layer;
}

const char *cadre_cluster_resolver_environment(const cadre_cluster_resolver *resolver)
{
    return resolver == NULL || resolver->environment == NULL ? "" : resolver->environment;
}

uint32_t cadre_cluster_resolver_num_accelerators(const cadre_cluster_resolver *resolver)
{
    return resolver == NULL ? 0 : resolver->accelerators;
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
        status = keep(&resolver->task_type, task_type, &error);
    }
    if (status == CADRE_OK) {
        resolver->task_id = task_id;
    }
    return cluster_border(status, &error);
}

cadre_status cadre_cluster_resolver_set_rpc_layer(
    cadre_cluster_resolver *resolver, const char *rpc_layer)
{
    struct cadre_error error = {0};
    cadre_status status =
        cluster_require(resolver, "cadre_cluster_resolver_set_rpc_layer", "resolver", &error);
    if (status == CADRE_OK) {
        status = keep(&resolver->rpc_layer, rpc_layer, &error);
    }
    return cluster_border(status, &error);
}

cadre_status cadre_cluster_resolver_master(const cadre_cluster_resolver *resolver,
    const char *task_type, uint32_t task_id, const char *rpc_layer, char **ret_master)
{
    static const char function[] = "cadre_cluster_resolver_master";
    struct cadre_error error = {0};
    cadre_status status = cluster_require(resolver, function, "resolver", &error);
    if (status == CADRE_OK) {
        status = cluster_require(ret_master, function, "ret_master", &error);
    }
    if (status == CADRE_OK) {
        status = resolver_master(resolver, task_type, task_id, rpc_layer, ret_master, &error);
    }
    return cluster_border(status, &error);
}
