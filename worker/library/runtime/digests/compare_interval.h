/* SPDX-License-Identifier: Apache-2.0
 * How often the replicas' states are compared: as often as costs eight thousandths of the time of
 * the steps, measured by the chief each time, so that the whole costs a hundredth at most: the rest
 * is for what its clock does not measure (other replicas that take longer, caches). Both
 * measurements vary, so an account is kept: where hashing took more than its share, the next
 * comparison is put off until that is paid. Pure: the clock is passed in. */
#ifndef CADRE_RUNTIME_COMPARE_INTERVAL_H
#define CADRE_RUNTIME_COMPARE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is measured yet, and each step is compared. */
struct compare_interval {
    uint64_t fixed;    /* as the user set it; 0: measured */
    uint64_t steps;    /* between two comparisons; 0: not measured yet */
    uint64_t hash_us;  /* that the last one took, of those that count */
    uint64_t position; /* where the last one was */
    uint64_t ended_us; /* when; 0: in another generation, or never */
    uint64_t first_us; /* of the first one, ever */
    uint64_t reported; /* the steps that people have read; 0: not yet */
    uint64_t reported_us;
    /* The account, of all generations of this process. */
    uint64_t comparisons; /* those that count */
    uint64_t hashing_us;  /* that they took */
    uint64_t training_us; /* between two of a generation, hashing apart */
    uint64_t owed_us;     /* of what hashing took; steps pay it with their share */
};

/* The state at `position` was hashed meanwhile. Returns the number of steps to the next comparison.
 * `whole`: all of it was hashed, for a generation that begins or a checkpoint. The cost of that is
 * no measure of the others, so it does not count. */
uint64_t compare_interval_hashed(struct compare_interval *interval, uint64_t position, bool whole,
    uint64_t begun_us, uint64_t ended_us);

/* The steps that follow are another generation's; the time in between does not count. */
void compare_interval_reset(struct compare_interval *interval);

/* The time of hashing, of the comparisons that count, as a part of the time of all steps. */
double compare_interval_cost(const struct compare_interval *interval);

/* Whether to print the interval now: when it is measured for a second of training, and when it has
 * become another one by far, at most once a minute. Never one that the user has set, nor while the
 * state is so small that a hash takes less than a millisecond. */
bool compare_interval_should_log(struct compare_interval *interval, uint64_t now_us);

#endif
