/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/leader_choice.h"

#include "common/pure/assert.h"

static bool is_good(const struct term *seen, const struct leader_answer *answer)
{
    return answer->leads && answer->term.cluster != 0 &&
           term_judge(seen, &answer->term) == TERM_GOOD;
}

bool leader_is_newer(const struct term *seen, const struct leader_answer *answer)
{
    return is_good(seen, answer) && answer->term.start > seen->start;
}

size_t leader_choose(
    const struct term *seen, const struct leader_answer *answers, size_t count, size_t current)
{
    size_t chosen = current;
    uint64_t highest = 0;
    CADRE_ASSERT(current < count);
    for (size_t i = 0; i < count; i++) {
        const struct leader_answer *answer = &answers[i];
        if (is_good(seen, answer) &&
            (answer->term.start > highest || (answer->term.start == highest && i == current))) {
            chosen = i;
            highest = answer->term.start;
        }
    }
    return chosen;
}
