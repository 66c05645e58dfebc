/* SPDX-License-Identifier: Apache-2.0
 * The pauses of retry.h. Called by common/storage/s3/run.c. */
#include "common/storage/transport/retry.h"

#include "common/pure/assert.h"

#define DOUBLINGS_MAX   16
#define SLOW_DOWN_TIMES 4

_Static_assert(RETRY_FIRST_US << DOUBLINGS_MAX >= RETRY_MOST_US, "pauses grow to the longest one");

struct retry retry_begin(uint64_t now_us, uint64_t limit_us, uint64_t seed)
{
    uint64_t deadline_us = UINT64_MAX - now_us < limit_us ? UINT64_MAX : now_us + limit_us;
    return (struct retry){.deadline_us = deadline_us, .prng = {prng_mix(seed)}};
}

bool retry_again(struct retry *retry, uint64_t now_us, bool slow_down, uint64_t *ret_at_us)
{
    unsigned doublings = retry->failures < DOUBLINGS_MAX ? retry->failures : DOUBLINGS_MAX;
    uint64_t most_us = (RETRY_FIRST_US << doublings) * (slow_down ? SLOW_DOWN_TIMES : 1);
    most_us = most_us < RETRY_MOST_US ? most_us : RETRY_MOST_US;
    uint64_t pause_us = most_us / 2 + prng_uniform(&retry->prng, most_us / 2 + 1);
    CADRE_ASSERT(pause_us <= RETRY_MOST_US);
    retry->failures++;
    if (now_us >= retry->deadline_us || pause_us >= retry->deadline_us - now_us) {
        return false;
    }
    *ret_at_us = now_us + pause_us;
    return true;
}
