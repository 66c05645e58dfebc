/* SPDX-License-Identifier: Apache-2.0
 * Published checkpoints as files: "checkpoints/<name>" for the manifest and for the tensors, put
 * together from their blocks, or read from a shared folder. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_ARTIFACTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_ARTIFACTS_H

#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "coordinator/daemon/base/daemon.h"

#define ARTIFACTS_FOLDER "checkpoints/"

/* The location of one of the two files. */
struct artifact_file {
    uint64_t bytes;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    bool is_content;                   /* it is the content of this hash, maybe in a store */
    char *path;                        /* one file; NULL: */
    struct checkpoint_content content; /* its blocks, in order */
};

/* Accepts {0}. */
void artifact_file_free(struct artifact_file *file);

/* A copy of the kept checkpoints of a job, for a thread, which may not query the engine. */
struct artifacts {
    struct job_id job;
    const char *blob_dir; /* the daemon's, and so is: */
    struct object_cache *cache;
    char *shared_folder;
    struct core_checkpoint *items; /* oldest first */
    size_t count;
};

/* On the loop; artifacts_free() follows, on an error as well. */
cadre_status artifacts_of(struct daemon *daemon, struct job_id job, struct artifacts *ret_artifacts,
    struct cadre_error *error);
/* Accepts {0}. */
void artifacts_free(struct artifacts *artifacts);

/* Whether it lies in an object store, for which only the job and the client have credentials. */
bool artifacts_is_stored(
    const struct artifacts *artifacts, const struct core_checkpoint *checkpoint);

/* Everything below is done in a thread: it reads files. */

/* What a manifest at the coordinator mentions. */
struct artifact_references {
    struct sha256 *hashes; /* its blocks' among them; free() is the caller's */
    size_t count;
    uint64_t bytes; /* of the two files; 0: not requested */
};

/* The references of a published checkpoint that is not shared. Without `with_bytes` the text is
 * only scanned for hashes, which is much faster than parsing it. DATA_LOSS, NOT_FOUND: it is not
 * what was published; UNAVAILABLE, RESOURCE_EXHAUSTED: it cannot be read now. */
cadre_status artifacts_read_references(const struct daemon *daemon,
    const struct core_checkpoint *checkpoint, bool with_bytes, struct artifact_references *ret,
    struct cadre_error *error);

/* OK: each content that the part, which is not shared, names is here and synced. The caller frees
 * *ret_content, on an error as well. */
cadre_status artifacts_check_part(const struct daemon *daemon, const struct task_part *part,
    struct artifact_references *ret, struct checkpoint_content *ret_content,
    struct cadre_error *error);

/* Calls `visit` with the two files of each checkpoint that this host can read. */
void artifacts_each(const struct artifacts *artifacts,
    void (*visit)(void *user, const char *name, uint64_t bytes), void *user);

/* `path` of the job's outputs becomes a reference to a file of the kept checkpoint that has this
 * manifest, made as `temporary`: the file with the name of the last part of `path`. NOT_FOUND:
 * there is none of that name and size. */
cadre_status artifacts_link(const struct artifacts *artifacts,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *temporary,
    const char *path, struct cadre_error *error);
/* Whether it may become one: OK or NOT_FOUND, likewise. */
cadre_status artifacts_check_link(const struct artifacts *artifacts,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *path,
    struct cadre_error *error);

/* `path` refers to the checkpoint's file `name` from now on, whether or not there is one. */
cadre_status artifacts_put_link(
    const char *name, const char *temporary, const char *path, struct cadre_error *error);

/* What the file `path` of a job's outputs refers to, without the folder, or NULL: it refers to
 * nothing; malloc'ed. */
char *artifacts_link_target(const char *path);

/* The file `name`, without the folder. NOT_FOUND; FAILED_PRECONDITION: it is in a shared folder,
 * which the error names. */
cadre_status artifacts_find(const struct artifacts *artifacts, const char *name,
    struct artifact_file *ret_file, struct cadre_error *error);
/* NOT_FOUND: the job keeps no file `name`; also of one that went after artifacts_find().
 * FAILED_PRECONDITION names the object store where its checkpoints are. */
cadre_status artifacts_none(
    const struct artifacts *artifacts, const char *name, struct cadre_error *error);

#endif
