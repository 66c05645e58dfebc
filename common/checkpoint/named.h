/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint that is named by the path of its manifest, of a file or of an object
 * (common/storage/storage.h): what the manifest says, and its file of tensors. Thread-safe. */
#ifndef CADRE_CHECKPOINT_NAMED_H
#define CADRE_CHECKPOINT_NAMED_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/checkpoint/content.h"

struct storage_client;

struct checkpoint_named {
    char *path; /* of the manifest */
    char *text; /* the manifest, of text_bytes */
    size_t text_bytes;
    uint8_t sha256[LIMIT_SHA256_BYTES]; /* of it */
    struct checkpoint_content content;
    char *tensors; /* the path of their file, beside the manifest */
};

/* Reads the manifest, with the credentials of `client` (NULL: the process's). Errors name it:
 * NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED and more as storage_get(); INVALID_ARGUMENT: it is
 * no manifest. Released with checkpoint_named_free(), on an error as well. */
cadre_status checkpoint_named_read(struct storage_client *client, const char *path,
    struct checkpoint_named *ret_named, struct cadre_error *error);

/* Whether the file of tensors is there and has as many bytes as the manifest says; it is not read.
 * DATA_LOSS: it has more or fewer. */
cadre_status checkpoint_named_check_size(
    struct storage_client *client, const struct checkpoint_named *named, struct cadre_error *error);

/* Writes the tensors to `fd`, a block after the other, each compared with its hash before. `each`
 * is called before each block. DATA_LOSS names the block that is damaged. */
cadre_status checkpoint_named_copy_tensors(struct storage_client *client,
    const struct checkpoint_named *named, int fd, void (*each)(void *user), void *user,
    struct cadre_error *error);

/* Accepts {0}. */
void checkpoint_named_free(struct checkpoint_named *named);

#endif
