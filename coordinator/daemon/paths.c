/* SPDX-License-Identifier: Apache-2.0
 * Where things lie in the state directory:
 *     ledger.db  lock  blobs/<sha256>  jobs/<id>/logs/<slot>[.base] jobs/<id>/outputs/<slot>/<path>
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/daemon.h"

char *path_of_blob(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES])
{
    return sha256_path(daemon->blob_dir, sha256);
}

char *path_of_log(const struct daemon *daemon, struct job_id job, uint32_t slot)
{
    char *path = NULL;
    int length = asprintf(&path, "%s/%" PRIu64 "/logs/%" PRIu32, daemon->job_dir, job.n, slot);
    return length >= 0 ? path : NULL;
}

char *path_of_outputs(const struct daemon *daemon, struct job_id job)
{
    char *path = NULL;
    return asprintf(&path, "%s/%" PRIu64 "/outputs", daemon->job_dir, job.n) >= 0 ? path : NULL;
}

void paths_forget_job(struct daemon *daemon, struct job_id job)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    struct cadre_error error = {0};
    if (asprintf(&path, "%s/%" PRIu64, daemon->job_dir, job.n) < 0) {
        path = NULL;
        return;
    }
    if (tree_remove(path, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "jobs", "the files of a forgotten job stay",
            LOG_U64("job", job.n), LOG_STR("reason", error.text));
    }
}
