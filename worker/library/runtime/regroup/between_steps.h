/* SPDX-License-Identifier: Apache-2.0
 * Collectives outside of steps survive the loss of a peer. What the last one gave is kept, so that
 * a task that was frozen in it, while others had completed it, gets the same: its function is
 * called once more with a mesh that plays the results back. */
#ifndef CADRE_RUNTIME_BETWEEN_STEPS_H
#define CADRE_RUNTIME_BETWEEN_STEPS_H

#include "worker/library/runtime/regroup/regroup_part.h"
#include "worker/library/runtime/replica/each_replica.h"
#include "worker/library/runtime/strategy/strategy.h"

/* An outside collective: the same, done again with the next generation when a peer is lost. So
 * `function` may be called several times; between two calls everything may have changed, above all
 * roster.rank (who is chief, whose value counts), replica_count and mesh: it reads them each time,
 * and begins from the values it began with the first time. Where others had completed it, it is
 * called once more with a mesh that gives what they got; it must not be able to tell. An all_gather
 * in it names its sizes; reduce_scatter is not possible. INVALID_ARGUMENT (all replicas disagree)
 * is returned and harms nothing; any other error is final. What belongs to this task alone is
 * checked before. A task that arrives makes it alone, as one that is warm does.
 *
 * `what` is how it reads to tasks that do something else: "cadre_reduce(CADRE_SUM) of f32 [2, 3]",
 * cut off behind STRATEGY_CALL_TEXT_BYTES - 1. A call of the mesh that brings no text of its own is
 * noted so. */
#define STRATEGY_CALL_TEXT_BYTES 160
cadre_status strategy_between_steps(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, struct cadre_error *error);

/* The same, but that a task that arrives meets the others in it: they make it too, in the
 * generation that let it in. */
cadre_status strategy_between_steps_all(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, struct cadre_error *error);

/* --- the log of it --- */

cadre_status between_steps_open(struct between_steps_log **ret_log, struct cadre_error *error);
void between_steps_close(struct between_steps_log *log); /* NULL is allowed */

/* Whether it is known what the last one gave. */
bool between_steps_known(const struct between_steps_log *log);

/* A step is applied: nobody can ask for what was before it. */
void between_steps_forget(cadre_strategy *strategy);

/* The next strategy_between_steps ends with a broadcast of these bytes, from and into where they
 * lie in the host's memory: the log refers to them instead of keeping them twice. NULL: with none.
 * Before they are changed other than by a step they are settled, before they go they are dropped.
 */
void between_steps_share(cadre_strategy *strategy, const void *value, size_t bytes);
void between_steps_settle(cadre_strategy *strategy, const void *value);
void between_steps_drop(cadre_strategy *strategy, const void *value);

/* The source's side and the taker's of passing the last one on. What is taken is played back to the
 * next strategy_between_steps. The size is that of the source. */
uint64_t between_steps_bytes(const struct between_steps_log *log);
cadre_status between_steps_read(
    void *log, size_t offset, void *into, size_t bytes, struct cadre_error *error);
cadre_status between_steps_write(void *log, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error);
void between_steps_replay(struct between_steps_log *log);

#endif
