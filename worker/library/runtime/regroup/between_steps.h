/* SPDX-License-Identifier: Apache-2.0
 * Collectives outside of steps survive the loss of a peer. The results of the last one are kept, so
 * that a task that was frozen in it, while others had completed it, gets the same: its function is
 * called once more with a mesh that plays the results back. */
#ifndef CADRE_RUNTIME_BETWEEN_STEPS_H
#define CADRE_RUNTIME_BETWEEN_STEPS_H

#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/strategy/strategy.h"

#define STRATEGY_CALL_TEXT_BYTES 160

/* A collective outside of steps, done again in the next generation when a peer is lost. So
 * `function` may be called several times; between two calls everything may have changed, above all
 * roster.rank (the chief's value counts), replica_count and mesh: it reads them each time, and
 * begins from the same values as the first time. Where others had completed it, it is called once
 * more with a mesh that returns their results, without a difference to the function. An all_gather
 * in it names its sizes; reduce_scatter is not possible. INVALID_ARGUMENT (all replicas disagree)
 * is returned and harms nothing; any other error is final. What belongs to this task alone is
 * checked before. A task that arrives makes it alone, as one that is warm does.
 *
 * `what` names it in the errors of tasks that do something else: "cadre_reduce(CADRE_SUM) of f32
 * [2, 3]", cut off after STRATEGY_CALL_TEXT_BYTES - 1. A call of the mesh without a note gets it.
 */
cadre_status strategy_between_steps(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, struct cadre_error *error);

/* The same, but that a task that arrives takes part in it: the others make it too, in the
 * generation that it joins. */
cadre_status strategy_between_steps_all(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, struct cadre_error *error);

/* --- the record --- */

/* Makes an empty log; *ret_log is the caller's to close. */
cadre_status between_steps_open(struct between_steps_log **ret_log, struct cadre_error *error);
/* Frees it. Accepts NULL. */
void between_steps_close(struct between_steps_log *log);

/* Whether it has the results of the last one. */
bool between_steps_known(const struct between_steps_log *log);

/* A step is applied: no task can lack what was before it. */
void between_steps_forget(cadre_strategy *strategy);

/* The next strategy_between_steps ends with a broadcast of these bytes, from and into the same
 * address in the host's memory: the log refers to them instead of keeping them twice. NULL: with
 * none. */
void between_steps_share(cadre_strategy *strategy, const void *value, size_t bytes);
/* Before the bytes are changed other than by a step: copies them, if the log refers to them. */
void between_steps_settle(cadre_strategy *strategy, const void *value);
/* Before the bytes are freed: drops the results, if the log refers to them. */
void between_steps_drop(cadre_strategy *strategy, const void *value);

/* The source's side of passing the last one on: its size in bytes. */
uint64_t between_steps_bytes(const struct between_steps_log *log);
/* Copies a range of it; a transfer's `read`. */
cadre_status between_steps_read(
    void *log, size_t offset, void *into, size_t bytes, struct cadre_error *error);
/* The taker's side: takes a range of it; a transfer's `write`. */
cadre_status between_steps_write(void *log, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error);
/* What was taken is played back to the next strategy_between_steps. */
void between_steps_replay(struct between_steps_log *log);

#endif
