/* SPDX-License-Identifier: Apache-2.0
 * A resolver: a spec, and which of its tasks this process is. */
#ifndef CADRE_WORKER_CLUSTER_RESOLVER_H
#define CADRE_WORKER_CLUSTER_RESOLVER_H

#include "worker/library/cluster/cluster_spec.h"

struct cadre_cluster_resolver {
    cadre_cluster_spec *spec; /* owned, as the text */
    char *task_type;          /* NULL: not known */
    uint32_t task_id;
    uint32_t gpu_first;
    uint32_t gpu_count;
};

/* Takes `spec` over, also on error. */
cadre_status resolver_new(cadre_cluster_spec *spec, const char *task_type, uint32_t task_id,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error);

/* A copy, the caller's to release. */
cadre_status resolver_copy(const cadre_cluster_resolver *resolver,
    cadre_cluster_resolver **ret_copy, struct cadre_error *error);

/* From a TF_CONFIG document. */
cadre_status resolver_tf_config(
    const char *text, cadre_cluster_resolver **ret_resolver, struct cadre_error *error);

/* From the variables that Slurm set. */
cadre_status resolver_slurm(const cadre_slurm_options *options,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error);

/* --- Clusters as JSON: the content of TF_CONFIG, and a spec alone. --- */

struct tf_config {
    cadre_cluster_spec *spec; /* never NULL */
    char *task_type;          /* NULL: not given */
    uint32_t task_id;         /* CADRE_TASK_NONE: the same */
};

/* INVALID_ARGUMENT names the key in the document. The result is the caller's to clear, also after
 * an error. */
cadre_status tf_config_parse(
    const char *text, size_t bytes, struct tf_config *ret_config, struct cadre_error *error);
/* Frees it. */
void tf_config_clear(struct tf_config *config);

/* Reads `{"worker": ["host:port"], ...}`. */
cadre_status cluster_spec_parse(
    const char *text, size_t bytes, cadre_cluster_spec **ret_spec, struct cadre_error *error);

#endif
