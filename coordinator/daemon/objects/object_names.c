/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/objects/object_names.h"

#include <inttypes.h>
#include <string.h>

char *object_name_of_blob(const struct objects *objects, const uint8_t sha256[SHA256_BYTES])
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    memcpy(hash.bytes, sha256, SHA256_BYTES);
    sha256_hex(&hash, hex);
    return objects_path(objects, "blobs/%s", hex);
}

char *object_name_of_job(const struct objects *objects, struct job_id job)
{
    return objects_path(objects, "jobs/%" PRIu64, job.n);
}

static char *path_beneath(
    const struct objects *objects, struct job_id job, const char *folder, const char *name)
{
    return name != NULL ? objects_path(objects, "jobs/%" PRIu64 "/%s/%s", job.n, folder, name)
                        : objects_path(objects, "jobs/%" PRIu64 "/%s", job.n, folder);
}

char *object_name_of_output(const struct objects *objects, struct job_id job, const char *name)
{
    return path_beneath(objects, job, "outputs", name);
}

char *object_name_of_reference(const struct objects *objects, struct job_id job, const char *name)
{
    return path_beneath(objects, job, "references", name);
}

char *object_name_of_settled(const struct objects *objects, struct job_id job, uint32_t file)
{
    return objects_path(objects, "jobs/%" PRIu64 "/files/%" PRIu32, job.n, file);
}

char *object_name_of_log(
    const struct objects *objects, struct job_id job, uint32_t slot, const char *name)
{
    return name != NULL
               ? objects_path(objects, "jobs/%" PRIu64 "/logs/%" PRIu32 "/%s", job.n, slot, name)
               : objects_path(objects, "jobs/%" PRIu64 "/logs/%" PRIu32, job.n, slot);
}

char *object_name_of_log_head(const struct objects *objects, struct job_id job, uint32_t slot)
{
    return objects_path(objects, "jobs/%" PRIu64 "/log-heads/%" PRIu32, job.n, slot);
}

char *object_name_of_series(const struct objects *objects, struct job_id job, const char *name)
{
    return path_beneath(objects, job, "series", name);
}
