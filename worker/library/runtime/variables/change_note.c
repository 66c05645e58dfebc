/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/change_note.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/replica/collective_key.h"

uint64_t change_key_bytes(uint64_t key, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (; size >= sizeof key; at += sizeof key, size -= sizeof key) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        key = collective_key(key, word);
    }
    for (; size > 0; at++, size--) {
        key = collective_key(key, *at);
    }
    return key;
}

uint64_t change_key(const char *function, const cadre_variable *variable)
{
    uint64_t key = collective_key_text(0, function);
    return variable == NULL ? key : collective_key_text(key, variable->name);
}

const char *change_text(const char *function, const cadre_variable *variable, const char *value,
    char text[CHANGE_TEXT_BYTES])
{
    char name[VARIABLE_SHORT_BYTES];
    CADRE_ASSERT(function != NULL);
    if (variable == NULL) {
        snprintf(text, CHANGE_TEXT_BYTES, "%s()", function);
        return text;
    }
    snprintf(text, CHANGE_TEXT_BYTES, "%s('%s'%s%s)", function,
        variable_short_name(variable->name, name), value == NULL ? "" : ", ",
        value == NULL ? "" : value);
    return text;
}
