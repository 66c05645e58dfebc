/* SPDX-License-Identifier: Apache-2.0
 * Collectives that go on while the replica computes: each local replica has a thread for them,
 * started when it first needs one.
 *
 *   replica's thread     start A      start B       computes        wait A      all-reduce C
 *                            └───┐        └──┐                        ▲              │ waits for B
 *   its communication thread     A ══════════ B ════════════          │              ▼
 *
 * They are done in the order in which they were started, and what the replica calls directly waits
 * for them: so the mesh sees one order of calls, that of the program. What one of them comes to
 * counts for the step only when the replica's own thread takes it up: at a wait, at the next
 * collective, or when its function has returned. */
#ifndef CADRE_RUNTIME_COLLECTIVE_ASYNC_H
#define CADRE_RUNTIME_COLLECTIVE_ASYNC_H

#include "worker/library/runtime/strategy/strategy.h"

#define COLLECTIVE_STARTED_MAX 64 /* unfinished ones of a replica; whoever starts more waits */

/* cadre_all_reduce_start and cadre_collective_wait, for what is made of them. */
cadre_status collective_start(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    cadre_collective **ret_handle, struct cadre_error *error);
cadre_status collective_wait_for(cadre_collective *handle, struct cadre_error *error);

/* In the replica's thread: returns when all that it has started is done, and takes up what they
 * came to. collective_enter does so; whoever uses the mesh in a step without it must. */
void collective_queue_wait(cadre_replica *replica);

/* The replica's function has returned: what it started is waited for, and the handles that it
 * forgot end. After a failure of its own (NULL: none) what is unfinished is ended by aborting the
 * mesh, since nobody knows whether the others come to it. */
void collective_queue_end(cadre_replica *replica, const struct cadre_error *failure);

/* The replica runs nothing, and never will: its thread ends. */
void collective_queue_close(cadre_replica *replica);

#endif
