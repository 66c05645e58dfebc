/* SPDX-License-Identifier: Apache-2.0
 * What a task wrote, line by line. */
#include "common/json/json.h"
#include "common/json/json_value.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

/* Tasks may write any bytes: each that is no UTF-8 becomes U+FFFD. */
static json_t *text_of_bytes(const char *bytes, size_t size)
{
    static const char unknown[] = "\xef\xbf\xbd";
    json_t *whole = json_stringn(bytes, size);
    char *clean = whole == NULL ? malloc(size * (sizeof unknown - 1) + 1) : NULL;
    size_t used = 0;
    for (size_t i = 0; clean != NULL && i < size;) {
        size_t length = utf8_printable(bytes + i, size - i);
        bool control = length == 0 && (unsigned char)bytes[i] < 0x80;
        length = control ? 1 : length;
        memcpy(clean + used, length > 0 ? bytes + i : unknown,
            length > 0 ? length : sizeof unknown - 1);
        used += length > 0 ? length : sizeof unknown - 1;
        i += length > 0 ? length : 1;
    }
    whole = clean != NULL ? json_stringn(clean, used) : whole;
    free(clean);
    return whole;
}

static json_t *of_stream(cadre_log_stream stream)
{
    return stream == CADRE_STDOUT   ? json_string("stdout")
           : stream == CADRE_STDERR ? json_string("stderr")
                                    : json_null();
}

json_t *json_of_text_line(uint64_t job, const cadre_log *log, const char *text_line, size_t size)
{
    bool whole = size > 0 && text_line[size - 1] == '\n';
    json_t *text = text_of_bytes(text_line, whole ? size - 1 : size);
    json_t *json = text != NULL ? json_object() : NULL;
    json_object_set_new(json, "job", json_number(job));
    json_object_set_new(json, "task", json_number(log->task));
    json_object_set_new(json, "stream", of_stream(log->stream));
    json_object_set_new(json, "received_us", json_number(log->received_us));
    json_object_set_new(json, "offset", json_number(log->offset));
    json_object_set_new(json, "left_out", json_number(log->left_out));
    json_object_set_new(json, "text", text);
    json_object_set_new(json, "partial", json_boolean(!whole));
    return json;
}
