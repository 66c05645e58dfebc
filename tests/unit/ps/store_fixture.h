/* SPDX-License-Identifier: Apache-2.0
 * Stores for tests: opened, filled, pushed to in one call, compared. */
#ifndef CADRE_TESTS_PS_STORE_FIXTURE_H
#define CADRE_TESTS_PS_STORE_FIXTURE_H

#include "tests/lib/test.h"
#include "worker/library/ps/store/store.h"

/* Of generation 1, in the memory `fd`, or its own (-1). */
struct store *fixture_store_open(int fd);
int fixture_store_memory(void); /* an empty memfd */

/* With numbers that are exact in binary. */
struct optimizer_rule fixture_store_rule(enum optimizer_kind kind);
/* With that rule, unless it is OPTIMIZER_NONE. */
uint32_t fixture_store_create(struct store *store, const char *name, cadre_dtype dtype,
    uint64_t rows, uint64_t row_elements, enum optimizer_kind optimizer);

/* Begins, gives all values, ends; CADRE_PENDING and errors are the beginning's. In blocks of
 * `block_rows` rows when it is dense; 0: all at once. */
cadre_status fixture_store_push_blocks(struct store *store, uint32_t thread,
    const struct push *push, const void *values, uint64_t block_rows, struct cadre_error *error);
/* The same, at once; it must succeed. */
void fixture_store_push(struct store *store, const struct push *push, const void *values);

/* A sum of all that can be read: rows, slots, versions, updates, steps, notes. */
uint64_t fixture_store_digest(const struct store *store);

#endif
