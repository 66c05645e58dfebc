/* SPDX-License-Identifier: Apache-2.0
 * Whether the files of a checkpoint are whole, and the newest whole one of a folder, or of what
 * begins with "s3://bucket/key/" in an object store (common/storage/storage.h). Whole: its manifest
 * can be read, and every byte of its tensors has the hash in the manifest. Everything is read, so
 * one process of a job decides, once. */
#ifndef CADRE_CHECKPOINT_CHOOSE_H
#define CADRE_CHECKPOINT_CHOOSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

struct storage_client;

struct checkpoint_choice {
    uint64_t position;
    char *path; /* of its manifest, in the folder; owned */
    /* Which newer one is not whole, what is wrong with it, and which is taken; "": it is the
     * newest. */
    char note[LIMIT_TEXT_BYTES];
};

/* Whether `path` is a folder, or a link to one; of an object store: whether it names no file of a
 * checkpoint. */
bool checkpoint_is_folder(const char *path);

/* Looks through the manifests and tensors there (name.h), highest step first. NOT_FOUND:
 * there is none; DATA_LOSS: none is whole, with the fault of the newest; PERMISSION_DENIED and
 * RESOURCE_EXHAUSTED, and of an object store UNAVAILABLE, end the search, because they do not
 * depend on the checkpoint. Thread-safe. */
cadre_status checkpoint_choose(
    const char *folder, struct checkpoint_choice *ret_choice, struct cadre_error *error);
/* The same, for one that others will read: the bytes of the tensors are not read, and their number
 * counts. `client` has the credentials (NULL: the process's). */
cadre_status checkpoint_choose_by_size(struct storage_client *client, const char *folder,
    struct checkpoint_choice *ret_choice, struct cadre_error *error);
/* Frees the path; accepts {0}. */
void checkpoint_choice_free(struct checkpoint_choice *choice);

/* Whether the folder holds a checkpoint, whole or not, and the step of the newest. One of files
 * that cannot be looked into holds none; of an object store that is an error, because it may answer
 * at another time. */
cadre_status checkpoint_exists(
    const char *folder, bool *ret_exists, uint64_t *ret_position, struct cadre_error *error);

/* How far it is; any thread may read it meanwhile. */
struct checkpoint_counts {
    atomic_ullong done_bytes;
    atomic_ullong whole_bytes; /* 0: not known yet */
};

/* Checks a published checkpoint, given by the path of its manifest and the hash of that; `client`
 * has the credentials for it (NULL: the process's). Everything is read, and counted in `counts`.
 * DATA_LOSS: the manifest, the tensors or a byte of them has changed, or one of the two is missing.
 * NOT_FOUND: both are, as where a folder is not mounted; UNAVAILABLE: it cannot be read now. */
cadre_status checkpoint_check(struct storage_client *client, const char *path,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], struct checkpoint_counts *counts,
    struct cadre_error *error);

/* The checkpoint whose manifest is, or should be, at `path` was named and is not whole: adds to the
 * error which one beside it is, if there is one. Other errors than DATA_LOSS, NOT_FOUND and
 * INVALID_ARGUMENT stay as they are. Returns the error's code. */
cadre_status checkpoint_suggest_other(const char *path, struct cadre_error *error);

#endif
