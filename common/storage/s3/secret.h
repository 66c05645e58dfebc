/* SPDX-License-Identifier: Apache-2.0
 * Memory for secrets: not in core dumps, and wiped before it is given back. */
#ifndef CADRE_STORAGE_S3_SECRET_H
#define CADRE_STORAGE_S3_SECRET_H

#include <stddef.h>

/* Zeroed, whole pages of its own; NULL: no memory. To be given back with the same `bytes`. */
void *s3_secret_new(size_t bytes);
/* NULL is fine. */
void s3_secret_free(void *memory, size_t bytes);

/* Wipes what lies elsewhere, as on the stack: no compiler leaves it out. */
void s3_secret_wipe(void *memory, size_t bytes);

#endif
