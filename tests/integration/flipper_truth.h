/* SPDX-License-Identifier: Apache-2.0
 * What a replica of the flipper holds when no bit of it has flipped, kept a second time: so it is
 * known whether a flip is still there. */
#ifndef CADRE_TEST_FLIPPER_TRUTH_H
#define CADRE_TEST_FLIPPER_TRUTH_H

#include <stdint.h>

#define WEIGHTS  64
#define REPLICAS 8 /* that are known of, at most */

struct flipper_values {
    uint64_t *weights;
    double *average;
    int64_t *scratch;
};

/* A step, of whatever it is that holds them. */
void flipper_advance(const struct flipper_values *values, const int64_t *sums);

/* What this replica holds at `position` is what it should be: nothing flipped since it began, or it
 * was passed from another task. Of a position that is known already, nothing changes. */
void truth_learn(uint32_t replica, uint64_t position, const struct flipper_values *values);
/* The step at `position` was applied; undone and done again, it comes to the same. */
void truth_advance(uint32_t replica, uint64_t position, const int64_t *sums);

enum truth { TRUTH_UNKNOWN, TRUTH_EQUAL, TRUTH_OTHER };
enum truth truth_compare(uint32_t replica, uint64_t position, const struct flipper_values *values);

#endif
