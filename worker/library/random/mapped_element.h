/* SPDX-License-Identifier: Apache-2.0
 * The element that a map function is called for: what its random numbers are a function of. */
#ifndef CADRE_WORKER_MAPPED_ELEMENT_H
#define CADRE_WORKER_MAPPED_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/random.h"
#include "common/base/error.h"

struct mapped_element {
    uint64_t epoch;
    bool repeated; /* samples come several times in an epoch */
    /* The ids of its samples, in the order of its rows; where `find` is set, once it was called. */
    const uint64_t *ids;
    size_t count;
    cadre_status (*find)(struct mapped_element *self, struct cadre_error *error);
};

/* Around the call: `element` is the thread's from now on. Returns the one before, which is to be
 * entered again behind the call. NULL: none. */
struct mapped_element *mapped_enter(struct mapped_element *element);

/* cadre_random_for_element. */
cadre_status mapped_random(uint64_t seed, const char *name, uint64_t row, cadre_random *ret_random,
    struct cadre_error *error);

#endif
