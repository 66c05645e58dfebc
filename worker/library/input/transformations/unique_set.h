/* SPDX-License-Identifier: Apache-2.0
 * The different byte strings that were seen, in the order in which they came. */
#ifndef CADRE_WORKER_INPUT_TRANSFORMATIONS_UNIQUE_SET_H
#define CADRE_WORKER_INPUT_TRANSFORMATIONS_UNIQUE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct unique_key {
    uint64_t hash;
    size_t at; /* of its bytes in `bytes` */
    size_t count;
};

/* Zeroed: empty. */
struct unique_set {
    struct unique_key *keys; /* in the order of coming */
    size_t count;
    size_t key_capacity;
    uint64_t *table; /* number of a key + 1, or 0; a power of two of them */
    size_t table_count;
    uint8_t *bytes;
    size_t used;
    size_t capacity;
    size_t checked; /* bytes that were held when the machine's memory was looked at */
};

/* Copies the bytes when they are new. RESOURCE_EXHAUSTED: no memory for them, or the machine's is
 * about to end. */
cadre_status unique_set_add(struct unique_set *set, const void *bytes, size_t count, bool *ret_new,
    struct cadre_error *error);

void unique_set_clear(struct unique_set *set);

#endif
