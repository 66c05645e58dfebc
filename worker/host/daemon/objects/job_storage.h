/* SPDX-License-Identifier: Apache-2.0
 * A client of object stores with the settings and credentials that a job's environment has, for
 * what this daemon does there on the job's behalf.
 *
 * This daemon may reach, on the host and from it, what the job's user may not. So a job names a
 * store by http:// or https://, at no address of a metadata service, and its keys; nothing that it
 * names is asked for credentials. Those of the host are used where its operator says so. */
#ifndef CADRE_WORKER_DAEMON_OBJECTS_JOB_STORAGE_H
#define CADRE_WORKER_DAEMON_OBJECTS_JOB_STORAGE_H

#include "common/base/error.h"
#include "common/base/sha256.h"
#include "common/model/job.h"
#include "common/storage/storage.h"
#include "worker/host/isolate/isolation.h"

struct job_storage {
    char **variables; /* "NAME=value", copies */
    size_t count;
    struct storage_variables source;
    struct storage_client *client;
    struct isolation_user user;
};

/* For jobs without keys of their own: the credentials that the host's metadata services, or those
 * of its container, give to this daemon. Not set: they have none. At the start, before all else.
 */
void job_storage_use_host_credentials(bool use);

/* Variables that name files of credentials are left out: this daemon may read what the job's user
 * may not. That of authorities' certificates is read as `user`, the job's. On success the storage
 * is the caller's to close, and stays where it is meanwhile. */
cadre_status job_storage_open(struct job_storage *storage, const struct job_spec *spec,
    const struct isolation_user *user, struct cadre_error *error);
/* Who the job is for a store: a hash of the settings and keys that its environment has, or, where
 * it has no keys, of `otherwise`. It tells nothing of them. */
cadre_status job_storage_identity(const struct job_spec *spec, const char *otherwise,
    struct sha256 *ret_hash, struct cadre_error *error);

/* Adds to the hash what decides which object a path names, beside the path: where the store is. */
cadre_status job_storage_hash_address(
    const struct job_storage *storage, struct sha256_stream *hash, struct cadre_error *error);
/* Calls that wait fail soon; any thread. */
void job_storage_stop(struct job_storage *storage);
/* Credentials are wiped. A zeroed one is allowed. */
void job_storage_close(struct job_storage *storage);

#endif
