/* SPDX-License-Identifier: Apache-2.0
 * A resolver: a spec, who this process is in it, and whose rules say what its master is. */
#ifndef CADRE_WORKER_CLUSTER_RESOLVER_H
#define CADRE_WORKER_CLUSTER_RESOLVER_H

#include "worker/library/cluster/cluster_spec.h"

/* Whose rules hold for cadre_cluster_resolver_master. */
enum resolver_kind { RESOLVER_TF_CONFIG = 1, RESOLVER_SLURM, RESOLVER_SIMPLE, RESOLVER_UNION };

struct cadre_cluster_resolver {
    enum resolver_kind kind;
    cadre_cluster_spec *spec; /* owned, as the texts */
    char *task_type;          /* NULL: not known */
    uint32_t task_id;
    char *rpc_layer;   /* NULL: none */
    char *master;      /* given; NULL: none. Of a union: the first resolver's. */
    char *environment; /* NULL: none */
    uint32_t accelerators;
    uint32_t gpu_first;
    uint32_t gpu_count;
};

/* Takes `spec` over, also on error. `values` may be NULL. */
cadre_status resolver_new(enum resolver_kind kind, cadre_cluster_spec *spec,
    const cadre_cluster_values *values, cadre_cluster_resolver **ret_resolver,
    struct cadre_error *error);

cadre_status resolver_copy(const cadre_cluster_resolver *resolver,
    cadre_cluster_resolver **ret_copy, struct cadre_error *error);

/* Of a TF_CONFIG document. */
cadre_status resolver_tf_config(const char *text, const cadre_cluster_overrides *overrides,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error);

/* Of what Slurm set. */
cadre_status resolver_slurm(const cadre_slurm_options *options,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error);

/* The address of the master; *ret_master is the caller's to free. */
cadre_status resolver_master(const cadre_cluster_resolver *resolver, const char *task_type,
    uint32_t task_id, const char *rpc_layer, char **ret_master, struct cadre_error *error);

#endif
