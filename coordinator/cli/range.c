/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/range.h"

#include <errno.h>
#include <stdlib.h>

/* A number of digits only, from `least` to `most`; *text moves behind it. */
static bool take_number(const char **text, uint32_t least, uint32_t most, uint32_t *ret_number)
{
    char *end = NULL;
    if (**text < '0' || **text > '9') {
        return false;
    }
    errno = 0;
    unsigned long long number = strtoull(*text, &end, 10);
    if (errno != 0 || number < least || number > most) {
        return false;
    }
    *text = end;
    *ret_number = (uint32_t)number;
    return true;
}

bool range_parse(const char *text, uint32_t limit, uint32_t *ret_least, uint32_t *ret_most)
{
    if (!take_number(&text, 1, limit, ret_least)) {
        return false;
    }
    *ret_most = *ret_least;
    if (*text == ':') {
        text++;
        if (!take_number(&text, *ret_least, limit, ret_most)) {
            return false;
        }
    }
    return *text == '\0';
}
