/* SPDX-License-Identifier: Apache-2.0
 * The datasets of learner.c. */
#ifndef TESTS_INTEGRATION_LEARNER_INPUT_H
#define TESTS_INTEGRATION_LEARNER_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/cadre.h"

struct learner_input {
    int64_t samples;
    int64_t batch;
    const char *source;
    const char *data; /* a folder; NULL: a range */
    const char *via;  /* how the lines of its files come together */
    bool leaves_out;  /* the last file */
    bool endless;
    uint64_t steps; /* of an epoch; 0: all that there are */
    cadre_shard_policy shard;
};

/* "off", "auto", "file", or DATA. */
cadre_shard_policy learner_shard(const char *text);

/* `input` lives as long as the strategy. */
cadre_status learner_distribute(cadre_strategy *strategy, struct learner_input *input,
    const char *name, cadre_distributed_dataset **ret_distributed);

#endif
