/* SPDX-License-Identifier: Apache-2.0
 * Making streams: the key is of the seed, the name and who draws; the counter is a place in the
 * stream. */
#ifndef CADRE_WORKER_RANDOM_H
#define CADRE_WORKER_RANDOM_H

#include <stdint.h>

#include "cadre/random.h"

/* Who draws, so that no two kinds of streams are the same. */
enum random_domain { RANDOM_OF_REPLICA = 1, RANDOM_OF_STEP, RANDOM_OF_SAMPLE, RANDOM_OF_SPLIT };

/* `major` and `minor`: which of the drawer's streams, as a step and a replica. */
cadre_random random_stream(enum random_domain random_domain, uint64_t seed, const char *name,
    uint64_t major, uint64_t minor);

#endif
