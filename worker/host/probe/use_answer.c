/* SPDX-License-Identifier: Apache-2.0
 * What a child says of the use of GPUs; see use_child.h. */
#include <string.h>

#include "worker/host/probe/use_child.h"

struct use_answer {
    const char *at;
    const char *end;
};

static bool take_byte(struct use_answer *answer, char byte)
{
    bool there = answer->at < answer->end && *answer->at == byte;
    answer->at += there;
    return there;
}

/* Digits up to `most`, or "-". */
static bool take_value(
    struct use_answer *answer, uint64_t most, bool *ret_known, uint64_t *ret_value)
{
    *ret_value = 0;
    *ret_known = !take_byte(answer, '-');
    const char *first = answer->at;
    while (*ret_known && answer->at < answer->end && *answer->at >= '0' && *answer->at <= '9') {
        uint64_t digit = (uint64_t)(*answer->at - '0');
        if (*ret_value > (most - digit) / 10) {
            return false;
        }
        *ret_value = *ret_value * 10 + digit;
        answer->at++;
    }
    return !*ret_known || answer->at > first;
}

static bool take_sample(struct use_answer *answer, struct gpu_sample *ret_sample)
{
    uint64_t percent = 0;
    bool taken = take_value(answer, 100, &ret_sample->has_percent, &percent) &&
                 take_byte(answer, ',') &&
                 take_value(answer, INT64_MAX, &ret_sample->has_memory, &ret_sample->memory_bytes);
    ret_sample->percent = (uint32_t)percent;
    return taken;
}

cadre_status use_answer_read(const char *bytes, size_t size, struct gpu_sample ret_samples[],
    uint32_t count, struct cadre_error *error)
{
    struct use_answer answer = {.at = bytes, .end = bytes + size};
    for (uint32_t i = 0; i < count; i++) {
        if ((i > 0 && !take_byte(&answer, ' ')) || !take_sample(&answer, &ret_samples[i])) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "GPU %u of %u has no PERCENT,BYTES at byte %zu", i, count,
                (size_t)(answer.at - bytes));
        }
    }
    if (answer.at < answer.end) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "more follows the values of %u GPUs", count);
    }
    return CADRE_OK;
}
