/* SPDX-License-Identifier: Apache-2.0
 * What put.c, upload.c and writer.c use of each other besides storage.h. */
#ifndef CADRE_STORAGE_UPLOAD_H
#define CADRE_STORAGE_UPLOAD_H

#include "common/base/sha256.h"
#include "common/storage/storage.h"

/* Writes all the bytes in pieces of `piece_bytes`, several at a time, as the parts from 1 on;
 * *ret_count of them. The upload is one of a store. */
cadre_status storage_upload_bytes(struct storage_upload *upload, const void *bytes, size_t size,
    size_t piece_bytes, uint32_t *ret_count, struct cadre_error *error);
/* storage_put() of bytes of which the hash is known: one request's, 64 MiB at most. */
cadre_status storage_put_hashed(struct storage_client *client, const char *path, const void *bytes,
    size_t size, const struct sha256 *hash, struct cadre_error *error);
/* storage_upload_part() of bytes of which the hash is known. */
cadre_status storage_upload_hashed(struct storage_upload *upload, uint32_t number,
    const void *bytes, size_t size, const struct sha256 *hash, struct cadre_error *error);

#endif
