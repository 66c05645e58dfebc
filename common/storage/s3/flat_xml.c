/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/flat_xml.h"

#include <string.h>

#include "common/pure/assert.h"

/* Behind "<name>", or NULL. */
static const char *find_begin(const char *text, const char *end, const char *name)
{
    size_t length = strlen(name);
    const char *at = memchr(text, '<', (size_t)(end - text));
    while (at != NULL) {
        at++;
        if ((size_t)(end - at) > length && memcmp(at, name, length) == 0 && at[length] == '>') {
            return at + length + 1;
        }
        at = memchr(at, '<', (size_t)(end - at));
    }
    return NULL;
}

bool s3_xml_text(const char *text, size_t size, const char *name, char *ret_value, size_t room)
{
    CADRE_ASSERT(room > 0);
    const char *end = text + size;
    const char *begin = find_begin(text, end, name);
    const char *stop = begin != NULL ? memchr(begin, '<', (size_t)(end - begin)) : NULL;
    size_t length = strlen(name);
    ret_value[0] = '\0';
    if (stop == NULL || (size_t)(end - stop) < length + 3 || stop[1] != '/' ||
        memcmp(stop + 2, name, length) != 0 || stop[length + 2] != '>') {
        return false;
    }
    size_t bytes = (size_t)(stop - begin);
    if (bytes >= room || memchr(begin, '&', bytes) != NULL || memchr(begin, '\0', bytes) != NULL) {
        return false;
    }
    memcpy(ret_value, begin, bytes);
    ret_value[bytes] = '\0';
    return true;
}
