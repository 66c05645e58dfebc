/* SPDX-License-Identifier: Apache-2.0
 * What put.c uses of uploads besides storage.h. */
#ifndef CADRE_STORAGE_UPLOAD_H
#define CADRE_STORAGE_UPLOAD_H

#include "common/storage/storage.h"

/* Writes all the bytes in pieces of `piece_bytes`, several at a time, as the parts from 1 on;
 * *ret_count of them. The upload is one of a store. */
cadre_status storage_upload_bytes(struct storage_upload *upload, const void *bytes, size_t size,
    size_t piece_bytes, uint32_t *ret_count, struct cadre_error *error);

#endif
