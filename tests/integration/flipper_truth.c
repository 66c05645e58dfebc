/* SPDX-License-Identifier: Apache-2.0
 * A step that fails goes back by one, so what is known is that of the last two positions. */
#include "tests/integration/flipper_truth.h"

#include <stdbool.h>
#include <string.h>

#define ODD UINT64_C(6364136223846793005)

struct known {
    bool known;
    uint64_t position;
    uint64_t weights[WEIGHTS];
    double average[WEIGHTS];
    int64_t scratch[WEIGHTS];
};

/* Each is written by the thread of its replica, and by the program's between steps. */
static struct known all[REPLICAS][2];

static struct known *place_of(uint32_t replica, uint64_t position)
{
    return &all[replica % REPLICAS][position % 2];
}

static bool is_known(const struct known *known, uint64_t position)
{
    return known->known && known->position == position;
}

void flipper_advance(const struct flipper_values *values, const int64_t *sums)
{
    for (int k = 0; k < WEIGHTS; k++) {
        values->weights[k] = values->weights[k] * ODD + (uint64_t)sums[k];
        values->average[k] = 0.9 * values->average[k] + 1e-9 * (double)sums[k];
        values->scratch[k] = sums[k];
    }
}

void truth_learn(uint32_t replica, uint64_t position, const struct flipper_values *values)
{
    struct known *known = place_of(replica, position);
    if (is_known(known, position)) {
        return;
    }
    known->known = true;
    known->position = position;
    memcpy(known->weights, values->weights, sizeof known->weights);
    memcpy(known->average, values->average, sizeof known->average);
    memcpy(known->scratch, values->scratch, sizeof known->scratch);
}

void truth_advance(uint32_t replica, uint64_t position, const int64_t *sums)
{
    const struct known *before = place_of(replica, position);
    struct known *after = place_of(replica, position + 1);
    if (!is_known(before, position)) {
        return;
    }
    *after = *before;
    after->position = position + 1;
    flipper_advance(&(struct flipper_values){after->weights, after->average, after->scratch}, sums);
}

enum truth truth_compare(uint32_t replica, uint64_t position, const struct flipper_values *values)
{
    const struct known *known = place_of(replica, position);
    if (!is_known(known, position)) {
        return TRUTH_UNKNOWN;
    }
    bool equal = memcmp(known->weights, values->weights, sizeof known->weights) == 0 &&
                 memcmp(known->average, values->average, sizeof known->average) == 0 &&
                 memcmp(known->scratch, values->scratch, sizeof known->scratch) == 0;
    return equal ? TRUTH_EQUAL : TRUTH_OTHER;
}
