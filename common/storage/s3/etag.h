/* SPDX-License-Identifier: Apache-2.0
 * The ETag that an object has which was written in parts, where the parts have the MD5 of their
 * bytes, as Amazon, Ceph, MinIO and Swift make them. Pure but for libcrypto. */
#ifndef CADRE_STORAGE_S3_ETAG_H
#define CADRE_STORAGE_S3_ETAG_H

#include <stdbool.h>
#include <stdint.h>

#define S3_UPLOAD_ETAG_BYTES 48 /* 32 digits, "-", a number, quotes */

/* `etags` are those of the parts 1 to `count`, with or without quotes; the result has quotes.
 * False: one is no MD5, or libcrypto has none of it. */
bool s3_upload_etag(const char *const *etags, uint32_t count, char ret_etag[S3_UPLOAD_ETAG_BYTES]);

#endif
