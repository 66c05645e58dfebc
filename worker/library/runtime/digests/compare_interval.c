/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/digests/compare_interval.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define COST_ONE_IN 125

/* Time that is not paid yet puts the next comparison off to so many times its distance at most. */
#define PUT_OFF_TIMES 2

/* The cost of a comparison besides the hash: more bytes in one collective, and in the messages to
 * the coordinator. */
#define HASH_US_LEAST 10

#define STEPS_MOST (UINT64_C(1) << 30)

#define REPORT_AFTER_US (1 * CADRE_US_PER_S)
#define REPORT_AGAIN_US (60 * CADRE_US_PER_S)
#define REPORT_RATIO    4 /* more often, or less, than was reported */
#define REPORT_HASH_US  (1 * CADRE_US_PER_MS) /* what takes less is not reported */

/* Books what the steps since the last comparison pay, and what this one cost: 0, if `hash_us` is of
 * one that does not count. */
static void compare_interval_account(
    struct compare_interval *interval, uint64_t steps_us, uint64_t hash_us)
{
    uint64_t paid_us = steps_us / COST_ONE_IN;
    interval->owed_us -= paid_us < interval->owed_us ? paid_us : interval->owed_us;
    interval->owed_us += hash_us;
    interval->training_us += steps_us;
    interval->hashing_us += hash_us;
    interval->comparisons += hash_us > 0 ? 1 : 0;
}

/* How many steps last so long that `us` is the share of their time. */
static uint64_t steps_that_pay(uint64_t us, double step_us)
{
    double wanted = (double)us * COST_ONE_IN / step_us;
    return wanted < 1 ? 1 : wanted > (double)STEPS_MOST ? STEPS_MOST : (uint64_t)wanted + 1;
}

/* The steps to the next comparison, after one that counts. */
static uint64_t compare_interval_measure(
    struct compare_interval *interval, uint64_t steps, uint64_t steps_us, uint64_t took_us)
{
    CADRE_ASSERT(steps > 0);
    uint64_t hash_us = took_us > HASH_US_LEAST ? took_us : HASH_US_LEAST;
    double step_us = (double)(steps_us > 0 ? steps_us : 1) / (double)steps;
    compare_interval_account(interval, steps_us, hash_us);
    interval->steps = steps_that_pay(hash_us, step_us);
    uint64_t next = steps_that_pay(interval->owed_us, step_us);
    return next < PUT_OFF_TIMES * interval->steps ? next : PUT_OFF_TIMES * interval->steps;
}

uint64_t compare_interval_hashed(struct compare_interval *interval, uint64_t position, bool whole,
    uint64_t begun_us, uint64_t ended_us)
{
    CADRE_ASSERT(begun_us <= ended_us);
    uint64_t steps = position > interval->position ? position - interval->position : 0;
    uint64_t steps_us = begun_us > interval->ended_us ? begun_us - interval->ended_us : 0;
    uint64_t next = interval->steps > 0 ? interval->steps : 1;
    if (interval->first_us == 0) {
        interval->first_us = begun_us;
    }
    if (interval->ended_us > 0 && steps > 0 && whole) {
        compare_interval_account(interval, steps_us, 0);
    } else if (interval->ended_us > 0 && steps > 0) {
        next = compare_interval_measure(interval, steps, steps_us, ended_us - begun_us);
    }
    interval->hash_us = whole ? interval->hash_us : ended_us - begun_us;
    interval->position = position;
    interval->ended_us = ended_us;
    return interval->fixed > 0 ? interval->fixed : next;
}

double compare_interval_cost(const struct compare_interval *interval)
{
    return interval->training_us > 0 ? (double)interval->hashing_us / (double)interval->training_us
                                     : 0;
}

void compare_interval_reset(struct compare_interval *interval)
{
    interval->ended_us = 0;
}

bool compare_interval_should_log(struct compare_interval *interval, uint64_t now_us)
{
    if (interval->fixed > 0 || interval->steps == 0 || interval->hash_us < REPORT_HASH_US ||
        now_us < interval->first_us + REPORT_AFTER_US) {
        return false;
    }
    bool other = interval->steps >= interval->reported * REPORT_RATIO ||
                 interval->reported >= interval->steps * REPORT_RATIO;
    bool rests = interval->reported > 0 && now_us < interval->reported_us + REPORT_AGAIN_US;
    if (!other || rests) {
        return false;
    }
    interval->reported = interval->steps;
    interval->reported_us = now_us;
    return true;
}
