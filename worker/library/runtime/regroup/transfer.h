/* SPDX-License-Identifier: Apache-2.0
 * Bytes from one task to all others: in chunks, with a digest of the whole at the end. */
#ifndef CADRE_RUNTIME_TRANSFER_H
#define CADRE_RUNTIME_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/runtime/strategy/strategy.h"

struct transfer {
    const char *what; /* for messages: "the state" */
    uint32_t source;  /* the rank that sends */
    uint64_t bytes;   /* at the source: how many */
    /* At the source: copies a range of them. */
    cadre_status (*read)(
        void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error);
    /* At the others: takes a range of `total` bytes; the first begins at 0, the next where it
     * ended; one of 0 bytes when there are none. NULL: this task takes nothing. */
    cadre_status (*write)(void *user, uint64_t total, size_t offset, const void *from, size_t bytes,
        struct cadre_error *error);
    void *user;
};

/* A part of a strategy_function: every local replica of every task calls it, with the same `what`
 * and `source`; local replica 0 reads or writes. ABORTED also when the bytes that came are not
 * those that were sent. */
cadre_status transfer_run(cadre_strategy *strategy, uint32_t local, const struct transfer *transfer,
    struct cadre_error *error);

#endif
