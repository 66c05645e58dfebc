/* SPDX-License-Identifier: Apache-2.0
 * Published checkpoints as files: "checkpoints/<name>" for the manifest and for the tensors, put
 * together from their blocks, or where they lie in a shared folder. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_ARTIFACTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_ARTIFACTS_H

#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "coordinator/daemon/base/daemon.h"

#define ARTIFACTS_FOLDER "checkpoints/"

/* Where the bytes of one of the two files lie. */
struct artifact_file {
    uint64_t bytes;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    char *path;                        /* one file; NULL: */
    struct checkpoint_content content; /* its blocks, in order */
};

void artifact_file_free(struct artifact_file *file); /* accepts {0} */

/* The kept checkpoints of a job, as of one moment: for a thread, which asks no engine. */
struct artifacts {
    struct job_id job;
    const char *blob_dir; /* the daemon's */
    char *shared_folder;
    struct core_checkpoint *items; /* oldest first */
    size_t count;
};

/* On the loop; then artifacts_free() is the caller's, which accepts {0}. */
cadre_status artifacts_of(struct daemon *daemon, struct job_id job, struct artifacts *ret_artifacts,
    struct cadre_error *error);
void artifacts_free(struct artifacts *artifacts);

/* Everything below is done in a thread: it reads files. */

/* What a manifest at the coordinator mentions. */
struct artifact_references {
    struct sha256 *hashes; /* its blocks' among them; free() is the caller's */
    size_t count;
    uint64_t bytes; /* of the two files; 0: not asked for */
};

/* Of one that is not shared, which was understood when it was published: without `with_bytes` only
 * its hashes are looked for, which is much faster. DATA_LOSS, NOT_FOUND: it is not what was
 * published; UNAVAILABLE, RESOURCE_EXHAUSTED: it cannot be read now. */
cadre_status artifacts_read_references(const struct daemon *daemon,
    const struct core_checkpoint *checkpoint, bool with_bytes, struct artifact_references *ret,
    struct cadre_error *error);

/* OK: everything that the part, which is not shared, names is here, and is found again after a loss
 * of power. *ret_content is the caller's to free, on an error as well. */
cadre_status artifacts_check_part(const struct daemon *daemon, const struct task_part *part,
    struct artifact_references *ret, struct checkpoint_content *ret_content,
    struct cadre_error *error);

/* The two files of each that can be read from here. */
void artifacts_each(const struct artifacts *artifacts,
    void (*visit)(void *user, const char *name, uint64_t bytes), void *user);

/* `path` of the job's outputs becomes a reference to a file of the kept checkpoint that has this
 * manifest, made as `temporary`: the file is the one that is called as the last part of `path`.
 * NOT_FOUND: it is none, or not of that size. */
cadre_status artifacts_link(const struct artifacts *artifacts,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *temporary,
    const char *path, struct cadre_error *error);

/* What the file `path` of a job's outputs refers to, without the folder, or NULL: it refers to
 * nothing; malloc'ed. */
char *artifacts_link_target(const char *path);

/* The file `name`, without the folder. NOT_FOUND; FAILED_PRECONDITION says in which shared folder
 * it lies. */
cadre_status artifacts_find(const struct artifacts *artifacts, const char *name,
    struct artifact_file *ret_file, struct cadre_error *error);

#endif
