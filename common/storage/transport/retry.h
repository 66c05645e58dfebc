/* SPDX-License-Identifier: Apache-2.0
 * When a request that failed is sent again: after pauses that grow from RETRY_FIRST_US to
 * RETRY_MOST_US, each drawn from its upper half so that many clients do not return together, and
 * never after the deadline. Pure: times are those of one clock, passed in. */
#ifndef CADRE_STORAGE_TRANSPORT_RETRY_H
#define CADRE_STORAGE_TRANSPORT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pure/prng.h"

#define RETRY_FIRST_US UINT64_C(100000)
#define RETRY_MOST_US  UINT64_C(10000000)

struct retry {
    uint64_t deadline_us;
    unsigned failures; /* so far */
    struct prng prng;
};

/* `limit_us` from now until the deadline; `seed` differs from client to client. */
struct retry retry_begin(uint64_t now_us, uint64_t limit_us, uint64_t seed);

/* An attempt failed, now. True: the next one is due at *ret_at_us. False: that would be after the
 * deadline. `slow_down`: the server asks for fewer requests, so this pause is four times as long.
 */
bool retry_again(struct retry *retry, uint64_t now_us, bool slow_down, uint64_t *ret_at_us);

#endif
