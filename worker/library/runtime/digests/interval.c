/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/digests/interval.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define COST_ONE_IN 100

/* What a comparison costs besides the hash: more is told in one collective, and to the
 * coordinator. */
#define HASH_US_LEAST 10

#define STEPS_MOST (UINT64_C(1) << 30)

#define TELL_AFTER_US (1 * CADRE_US_PER_S)
#define TELL_AGAIN_US (60 * CADRE_US_PER_S)
#define TELL_TIMES    4 /* more often, or less, than was told */

uint64_t interval_hashed(struct compare_interval *interval, uint64_t position, bool whole,
    uint64_t begun_us, uint64_t ended_us)
{
    CADRE_ASSERT(begun_us <= ended_us);
    uint64_t took_us = ended_us - begun_us;
    bool measured = !whole && interval->ended_us > 0 && position > interval->position;
    if (interval->first_us == 0) {
        interval->first_us = begun_us;
    }
    if (measured) {
        uint64_t hash_us = took_us > HASH_US_LEAST ? took_us : HASH_US_LEAST;
        uint64_t steps_us = begun_us > interval->ended_us ? begun_us - interval->ended_us : 1;
        uint64_t steps = position - interval->position;
        double wanted = (double)hash_us * COST_ONE_IN * (double)steps / (double)steps_us;
        interval->steps = wanted < 1                    ? 1
                          : wanted > (double)STEPS_MOST ? STEPS_MOST
                                                        : (uint64_t)wanted + 1;
    }
    interval->hash_us = whole ? interval->hash_us : took_us;
    interval->position = position;
    interval->ended_us = ended_us;
    if (interval->fixed > 0) {
        return interval->fixed;
    }
    return interval->steps > 0 ? interval->steps : 1;
}

void interval_broken(struct compare_interval *interval)
{
    interval->ended_us = 0;
}

bool interval_is_news(struct compare_interval *interval, uint64_t now_us)
{
    if (interval->fixed > 0 || interval->steps == 0 ||
        now_us < interval->first_us + TELL_AFTER_US) {
        return false;
    }
    bool other = interval->steps >= interval->told * TELL_TIMES ||
                 interval->told >= interval->steps * TELL_TIMES;
    bool rests = interval->told > 0 && now_us < interval->told_us + TELL_AGAIN_US;
    if (!other || rests) {
        return false;
    }
    interval->told = interval->steps;
    interval->told_us = now_us;
    return true;
}
