/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/preprocessing/vocabulary_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/storage/storage.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/token_table.h"

struct lines {
    const char *at;
    const char *end;
};

/* The next line of what is left, which is not empty. */
static cadre_string take_text_line(struct lines *lines)
{
    size_t left = (size_t)(lines->end - lines->at);
    const char *newline = memchr(lines->at, '\n', left);
    size_t size = newline == NULL ? left : (size_t)(newline - lines->at);
    cadre_string text_line = {.bytes = lines->at, .size = size};
    lines->at += size + (newline != NULL);
    if (newline != NULL && text_line.size > 0 && text_line.bytes[text_line.size - 1] == '\r') {
        text_line.size--;
    }
    return text_line;
}

static int64_t count_lines(struct lines lines)
{
    int64_t count = 0;
    for (; lines.at < lines.end; count++) {
        take_text_line(&lines);
    }
    return count;
}

/* Decimal digits with a sign or without, and nothing else. */
static cadre_status parse_integer(const cadre_string *text_line, int64_t number, const char *path,
    int64_t *ret_value, struct cadre_error *error)
{
    char digits[32] = "";
    char *rest = digits;
    bool fits = text_line->size < sizeof digits;
    if (fits) {
        memcpy(digits, text_line->bytes, text_line->size);
    }
    errno = 0;
    long long value = strtoll(digits, &rest, 10);
    if (!fits || rest != digits + text_line->size || errno != 0 ||
        strchr("-+0123456789", digits[0]) == NULL) {
        char text[TOKEN_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s, line %" PRId64 ": %s is no integer of 64 bits", path, number,
            token_text(CADRE_STRING, text_line, 0, text));
    }
    *ret_value = value;
    return CADRE_OK;
}

static cadre_status take_tokens(struct lines lines, const char *path, cadre_string *strings,
    int64_t *integers, struct cadre_error *error)
{
    for (int64_t i = 0; lines.at < lines.end; i++) {
        cadre_string text_line = take_text_line(&lines);
        if (text_line.size == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s, line %" PRId64 " is empty, and a token is not; remove the line", path, i + 1);
        }
        if (integers != NULL) {
            CADRE_TRY(parse_integer(&text_line, i + 1, path, &integers[i], error));
        } else {
            strings[i] = text_line;
        }
    }
    return CADRE_OK;
}

cadre_status vocabulary_file_read(
    const char *path, cadre_dtype dtype, cadre_tensor **ret_tokens, struct cadre_error *error)
{
    *ret_tokens = NULL;
    if (dtype != CADRE_STRING && dtype != CADRE_I64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tokens of %s cannot be read as %s; they are CADRE_STRING or CADRE_I64", path,
            cadre_dtype_name(dtype));
    }
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    cadre_status status = storage_is_object(path)
                              ? storage_get(NULL, path, VOCABULARY_BYTES_MAX, &bytes, &size, error)
                              : file_read(path, VOCABULARY_BYTES_MAX, &bytes, &size, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error,
            status == CADRE_OUT_OF_RANGE ? CADRE_RESOURCE_EXHAUSTED : status,
            "the vocabulary cannot be read");
    }
    struct lines lines = {.at = bytes, .end = bytes + size};
    int64_t count = count_lines(lines);
    if (dtype == CADRE_I64) {
        CADRE_TRY(tensor_create(CADRE_I64, 1, &count, ret_tokens, error));
        status = take_tokens(lines, path, NULL, cadre_tensor_data(*ret_tokens), error);
        if (status != CADRE_OK) {
            cadre_tensor_release(*ret_tokens);
            *ret_tokens = NULL;
        }
        return status;
    }
    CADRE_FREE_AT_EXIT cadre_string *strings =
        fault_point("preprocessing.malloc") ? NULL : calloc((size_t)count + 1, sizeof *strings);
    if (strings == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %" PRId64 " tokens of %s", count, path);
    }
    CADRE_TRY(take_tokens(lines, path, strings, NULL, error));
    return tensor_from_data(CADRE_STRING, 1, &count, strings, ret_tokens, error);
}
