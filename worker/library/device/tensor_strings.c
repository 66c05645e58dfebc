/* SPDX-License-Identifier: Apache-2.0
 * The elements of string tensors; see tensor.h. */
#include "worker/library/device/tensor.h"

#include <inttypes.h>
#include <string.h>

void strings_clear(cadre_string *strings, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        strings[i] = (cadre_string){.bytes = "", .size = 0};
    }
}

cadre_status strings_measure(
    const cadre_string *strings, int64_t count, size_t *ret_bytes, struct cadre_error *error)
{
    size_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (strings[i].bytes == NULL && strings[i].size > 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "string %" PRId64 " has %zu bytes at NULL", i, strings[i].size);
        }
        if (strings[i].size > TENSOR_TEXT_BYTES_MAX - total) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the strings up to number %" PRId64 " have more bytes than can be addressed", i);
        }
        total += strings[i].size;
    }
    *ret_bytes = total;
    return CADRE_OK;
}

char *strings_copy(cadre_string *to, const cadre_string *from, int64_t count, char *text)
{
    for (int64_t i = 0; i < count; i++) {
        if (from[i].size > 0) {
            memcpy(text, from[i].bytes, from[i].size);
        }
        to[i] = (cadre_string){.bytes = text, .size = from[i].size};
        text += from[i].size;
    }
    return text;
}
