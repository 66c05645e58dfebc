/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/contents_mark.h"

#include <inttypes.h>

#include "coordinator/daemon/shared/nonce_file.h"

static const struct log_nonce none;

cadre_status contents_mark_read(
    const char *contents, struct log_nonce *ret_cluster, struct cadre_error *error)
{
    return nonce_file_read(contents, NONCE_FILE_CLUSTER, ret_cluster, error);
}

cadre_status contents_mark_check(
    const char *contents, struct log_nonce cluster, struct cadre_error *error)
{
    struct log_nonce marked;
    CADRE_TRY(contents_mark_read(contents, &marked, error));
    if (!log_nonce_equal(marked, none) && !log_nonce_equal(marked, cluster)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "--contents %s is the folder of another cluster, %016" PRIx64 "%016" PRIx64
            ", and this coordinator is of %016" PRIx64 "%016" PRIx64
            ": name the folder of this cluster, or correct --ha",
            contents, marked.high, marked.low, cluster.high, cluster.low);
    }
    return CADRE_OK;
}

cadre_status contents_mark_take(
    const char *contents, struct log_nonce cluster, struct cadre_error *error)
{
    struct log_nonce marked;
    CADRE_TRY(contents_mark_read(contents, &marked, error));
    if (log_nonce_equal(marked, none)) {
        CADRE_TRY(nonce_file_write_once(contents, NONCE_FILE_CLUSTER, cluster, error));
    }
    return contents_mark_check(contents, cluster, error);
}

cadre_status contents_mark_check_alone(const char *contents, struct cadre_error *error)
{
    struct log_nonce marked;
    CADRE_TRY(contents_mark_read(contents, &marked, error));
    if (log_nonce_equal(marked, none)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "--contents %s is the folder of a cluster with several coordinators: start this one with "
        "--ha, name another folder, or remove %s/%s if that cluster is gone for good",
        contents, contents, NONCE_FILE_CLUSTER);
}
