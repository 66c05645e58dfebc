/* SPDX-License-Identifier: Apache-2.0
 * Files with secrets: their content is in one buffer only, which is in no core dump. */
#ifndef CADRE_STORAGE_S3_SECRET_FILE_H
#define CADRE_STORAGE_S3_SECRET_FILE_H

#include <stddef.h>

#include "common/base/error.h"

struct s3_secret_text {
    char *bytes; /* a zero byte that is not counted follows */
    size_t size;
    size_t room;
};

/* A whole regular file of at most `limit_bytes`. On success *ret_text is to be freed, on error it
 * is zeroed. NOT_FOUND, PERMISSION_DENIED, OUT_OF_RANGE: larger; the message names the path. */
cadre_status s3_secret_file_read(const char *path, size_t limit_bytes,
    struct s3_secret_text *ret_text, struct cadre_error *error);
/* Wipes it. A zeroed one is fine. */
void s3_secret_text_free(struct s3_secret_text *text);

#endif
