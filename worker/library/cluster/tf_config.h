/* SPDX-License-Identifier: Apache-2.0
 * Clusters as JSON: the content of TF_CONFIG, and a spec alone. */
#ifndef CADRE_WORKER_CLUSTER_TF_CONFIG_H
#define CADRE_WORKER_CLUSTER_TF_CONFIG_H

#include "worker/library/cluster/cluster_spec.h"

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
