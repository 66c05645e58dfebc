/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/secret_file.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/storage/s3/secret.h"

static cadre_status read_all(
    int fd, const char *path, struct s3_secret_text *text, struct cadre_error *error)
{
    while (text->size < text->room - 1) {
        ssize_t got = read(fd, text->bytes + text->size, text->room - 1 - text->size);
        if (got == 0) {
            return CADRE_OK;
        }
        if (got < 0 && errno != EINTR) {
            return cadre_error_errno(error, errno, "%s", path);
        }
        text->size += got > 0 ? (size_t)got : 0;
    }
    return CADRE_OK;
}

cadre_status s3_secret_file_read(const char *path, size_t limit_bytes,
    struct s3_secret_text *ret_text, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t size = 0;
    *ret_text = (struct s3_secret_text){.bytes = NULL};
    CADRE_TRY(file_open_regular(path, &fd, &size, error));
    if (size > limit_bytes) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%s has %" PRIu64 " bytes, more than %zu: is it the right file?", path, size,
            limit_bytes);
    }
    struct s3_secret_text text = {.room = (size_t)size + 1};
    text.bytes = s3_secret_new(text.room);
    if (text.bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read %s", path);
    }
    cadre_status status = read_all(fd, path, &text, error);
    if (status != CADRE_OK) {
        s3_secret_text_free(&text);
    }
    *ret_text = text;
    return status;
}

void s3_secret_text_free(struct s3_secret_text *text)
{
    s3_secret_free(text->bytes, text->room);
    *text = (struct s3_secret_text){.bytes = NULL};
}
