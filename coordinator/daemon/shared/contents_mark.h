/* SPDX-License-Identifier: Apache-2.0
 * CONTENTS/cluster: which cluster's contents a folder holds. Written once; jobs of two clusters
 * have the same numbers, so that two that share a folder would write over each other's files. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_CONTENTS_MARK_H
#define CADRE_COORDINATOR_DAEMON_SHARED_CONTENTS_MARK_H

#include "common/base/error.h"
#include "coordinator/leadership/log_store.h"

/* The cluster that the folder names; 0: none yet. The errors are those of nonce_file_read(). */
cadre_status contents_mark_read(
    const char *contents, struct log_nonce *ret_cluster, struct cadre_error *error);
/* OK: it names this cluster, or none. FAILED_PRECONDITION: another. */
cadre_status contents_mark_check(
    const char *contents, struct log_nonce cluster, struct cadre_error *error);
/* The folder names this cluster from now on, durably. FAILED_PRECONDITION: it names another. */
cadre_status contents_mark_take(
    const char *contents, struct log_nonce cluster, struct cadre_error *error);
/* For a coordinator that leads alone. FAILED_PRECONDITION: the folder names a cluster of several.
 */
cadre_status contents_mark_check_alone(const char *contents, struct cadre_error *error);

#endif
