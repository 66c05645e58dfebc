/* SPDX-License-Identifier: Apache-2.0
 * Collectives outside of steps survive the loss of a peer. What the last one gave is kept, so that
 * a task that was frozen in it, while others had completed it, gets the same: its function is
 * called once more with a mesh that plays the results back. */
#ifndef CADRE_RUNTIME_OUTSIDE_H
#define CADRE_RUNTIME_OUTSIDE_H

#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/regroup/transfer.h"

cadre_status outside_open(struct outside_log **ret_log, struct cadre_error *error);
void outside_close(struct outside_log *log); /* NULL is allowed */

/* Whether it is known what the last one gave. */
bool outside_known(const struct outside_log *log);

/* A step is applied: nobody can ask for what was before it. */
void outside_forget(cadre_strategy *strategy);

/* The next strategy_outside ends with a broadcast of the variable's value, from and into its
 * components: the log refers to it instead of keeping it twice (not when the first one is on a
 * device). Before the value is changed other than by a step it is settled, before the variable goes
 * it is dropped. */
void outside_share(cadre_strategy *strategy, const cadre_variable *variable);
void outside_settle(cadre_strategy *strategy, const cadre_variable *variable);
void outside_drop(cadre_strategy *strategy, const cadre_variable *variable);

/* The source's side and the taker's of passing the last one on. What is taken is played back to the
 * next strategy_outside. The size is that of the source. */
uint64_t outside_bytes(const struct outside_log *log);
cadre_status outside_read(
    void *log, size_t offset, void *into, size_t bytes, struct cadre_error *error);
cadre_status outside_write(void *log, uint64_t total, size_t offset, const void *from, size_t bytes,
    struct cadre_error *error);
void outside_play(struct outside_log *log);

#endif
