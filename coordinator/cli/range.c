/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/job_options.h"

#include <errno.h>
#include <stdlib.h>

#include "common/model/limits.h"

/* A number of digits only, from `least` to `most`; *text moves behind it. */
static bool take_number(const char **text, uint64_t least, uint64_t most, uint64_t *ret_number)
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
    *ret_number = number;
    return true;
}

bool range_parse(const char *text, uint32_t limit, uint32_t *ret_least, uint32_t *ret_most)
{
    uint64_t least = 0;
    if (!take_number(&text, 1, limit, &least)) {
        return false;
    }
    uint64_t most = least;
    if (*text == ':') {
        text++;
        if (!take_number(&text, least, limit, &most)) {
            return false;
        }
    }
    *ret_least = (uint32_t)least;
    *ret_most = (uint32_t)most;
    return *text == '\0';
}

bool step_range_parse(const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
    uint64_t first = 0;
    uint64_t last = 0;
    bool open = *text == ':';
    if ((!open && !take_number(&text, 0, LIMIT_POSITION, &first)) || *text != ':') {
        return false;
    }
    text++;
    if (open && *text == '\0') {
        return false; /* no number at all */
    }
    if (*text != '\0' && !take_number(&text, first > 0 ? first : 1, LIMIT_POSITION, &last)) {
        return false;
    }
    *ret_first = first;
    *ret_last = last;
    return *text == '\0';
}

bool trace_steps_parse(
    const char *text, bool *ret_from_first, uint64_t *ret_first, uint64_t *ret_steps)
{
    uint64_t end = 0;
    *ret_first = 0;
    *ret_from_first = *text != '+';
    if (!*ret_from_first) {
        text++;
        return take_number(&text, 1, LIMIT_TRACE_STEPS, ret_steps) && *text == '\0';
    }
    if (!take_number(&text, 0, LIMIT_POSITION - LIMIT_TRACE_STEPS, ret_first) || *text != ':') {
        return false;
    }
    text++;
    bool good = take_number(&text, *ret_first + 1, *ret_first + LIMIT_TRACE_STEPS, &end);
    *ret_steps = end - *ret_first;
    return good && *text == '\0';
}

bool restore_point_parse(const char *text, uint64_t *ret_job, uint64_t *ret_step)
{
    *ret_step = 0;
    if (!take_number(&text, 1, UINT64_MAX, ret_job)) {
        return false;
    }
    if (*text == '@') {
        text++;
        if (!take_number(&text, 1, INT64_MAX, ret_step)) {
            return false;
        }
    }
    return *text == '\0';
}
