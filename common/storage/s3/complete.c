/* SPDX-License-Identifier: Apache-2.0
 * The one document that is sent: the parts of which an upload consists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/s3/answers.h"

#define HEAD        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define TAIL        "</CompleteMultipartUpload>"
#define PART_BYTES  80 /* of a part, without its ETag */
#define QUOTE       "&quot;"
#define ESCAPED_MAX 6 /* bytes of one that is escaped */

/* Appends a character as XML has it. */
static char *escape(char *to, char c)
{
    static const struct {
        char c;
        const char *escaped;
    } escapes[] = {{'"', QUOTE}, {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}};
    for (size_t i = 0; i < CADRE_COUNT_OF(escapes); i++) {
        if (c == escapes[i].c) {
            size_t length = strlen(escapes[i].escaped);
            memcpy(to, escapes[i].escaped, length);
            return to + length;
        }
    }
    *to = c;
    return to + 1;
}

static char *add_etag(char *to, const char *etag)
{
    bool quoted = strchr(etag, '"') != NULL;
    to = quoted ? to : escape(to, '"');
    for (; *etag != '\0'; etag++) {
        to = escape(to, *etag);
    }
    return quoted ? to : escape(to, '"');
}

char *s3_complete_body(const char *const *etags, uint32_t count, size_t *ret_size)
{
    size_t room = sizeof HEAD + sizeof TAIL;
    for (uint32_t i = 0; i < count; i++) {
        room += PART_BYTES + ESCAPED_MAX * (strlen(etags[i]) + 2);
    }
    char *body = fault_point("storage.memory") ? NULL : malloc(room);
    if (body == NULL) {
        return NULL;
    }
    char *at = body;
    memcpy(at, HEAD, sizeof HEAD - 1);
    at += sizeof HEAD - 1;
    for (uint32_t i = 0; i < count; i++) {
        at += snprintf(
            at, room - (size_t)(at - body), "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
        at = add_etag(at, etags[i]);
        at += snprintf(at, room - (size_t)(at - body), "</ETag></Part>");
    }
    memcpy(at, TAIL, sizeof TAIL);
    at += sizeof TAIL - 1;
    *ret_size = (size_t)(at - body);
    return body;
}
