/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/contents_mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/shared/nonce_file.h"

static const struct log_nonce none;

cadre_status contents_mark_read(
    const char *contents, struct log_nonce *ret_cluster, struct cadre_error *error)
{
    return nonce_file_read(contents, NONCE_FILE_CLUSTER, ret_cluster, error);
}

/* Of two that come at once one succeeds: a file of this cluster's own name is written, and gets
 * the name that counts only if no file has it. */
static cadre_status write_once(
    const char *contents, struct log_nonce cluster, struct cadre_error *error)
{
    char name[64];
    CADRE_FREE_AT_EXIT char *own = NULL;
    CADRE_FREE_AT_EXIT char *mark = NULL;
    snprintf(
        name, sizeof name, "%s.%d.%016" PRIx64, NONCE_FILE_CLUSTER, (int)getpid(), cluster.low);
    if (asprintf(&own, "%s/%s", contents, name) < 0 ||
        asprintf(&mark, "%s/%s", contents, NONCE_FILE_CLUSTER) < 0) {
        own = mark = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    CADRE_TRY(nonce_file_write(contents, name, cluster, error));
    bool made = link(own, mark) == 0;
    int why = errno;
    nonce_file_remove(contents, name);
    if (!made && why != EEXIST) {
        return cadre_error_errno(error, why, "cannot make %s", mark);
    }
    return folder_sync(contents, error);
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
        CADRE_TRY(write_once(contents, cluster, error));
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
