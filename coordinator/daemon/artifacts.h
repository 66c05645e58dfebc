/* SPDX-License-Identifier: Apache-2.0
 * Published checkpoints as files: "checkpoints/<name>" for the manifest and for the tensors, put
 * together from their blocks, or where they lie in a shared folder. */
#ifndef CADRE_COORDINATOR_DAEMON_ARTIFACTS_H
#define CADRE_COORDINATOR_DAEMON_ARTIFACTS_H

#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "coordinator/daemon/daemon.h"

#define ARTIFACTS_FOLDER "checkpoints/"

/* Where the bytes of one of the two files lie. */
struct artifact_file {
    uint64_t bytes;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    char *path;                        /* one file; NULL: */
    struct checkpoint_content content; /* its blocks, in order */
};

void artifact_file_free(struct artifact_file *file); /* accepts {0} */

/* Reads and checks the manifest of a checkpoint; *ret_content is the caller's to free. */
cadre_status artifacts_manifest(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, struct checkpoint_content *ret_content,
    struct cadre_error *error);

/* Every hash that the manifest mentions, its blocks' among them; much faster than to understand it,
 * which was done when it was published. *ret_hashes is the caller's to free. */
cadre_status artifacts_mentioned(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, struct sha256 **ret_hashes, size_t *ret_count,
    struct cadre_error *error);

/* OK: everything that the part names is here, and `worker` (NULL: it has no certificate) may name
 * it. A shared one lies elsewhere. */
cadre_status artifacts_check_part(struct daemon *daemon, const char *worker, struct job_id job,
    const struct task_part *part, struct cadre_error *error);

/* What the kept checkpoints of a job hold in the coordinator: as many bytes as their files have. */
uint64_t artifacts_bytes(struct daemon *daemon, struct job_id job);

/* The two files of each kept checkpoint of the job that can be read from here. */
void artifacts_each(struct daemon *daemon, struct job_id job,
    void (*visit)(void *user, const char *name, uint64_t bytes), void *user);

/* `path` of the job's outputs becomes a reference to a file of the kept checkpoint that has this
 * manifest: the file is the one that is called as the last part of `path`. NOT_FOUND: it is none,
 * or not of that size. */
cadre_status artifacts_refer(struct daemon *daemon, struct job_id job,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *path,
    struct cadre_error *error);

/* What the file `path` of a job's outputs refers to, without the folder, or NULL: it refers to
 * nothing; malloc'ed. */
char *artifacts_reference(const char *path);

/* The file `name`, without the folder. NOT_FOUND; FAILED_PRECONDITION says in which shared folder
 * it lies. */
cadre_status artifacts_find(struct daemon *daemon, struct job_id job, const char *name,
    struct artifact_file *ret_file, struct cadre_error *error);

#endif
