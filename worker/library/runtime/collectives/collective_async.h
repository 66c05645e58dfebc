/* SPDX-License-Identifier: Apache-2.0
 * Collectives that go on while the replica computes: each local replica has a thread for them,
 * started when it first needs one.
 *
 *   replica's thread     start A      start B       computes        wait A      all-reduce C
 *                            └───┐        └──┐                        ▲              │ waits for B
 *   its communication thread     A ══════════ B ════════════          │              ▼
 *
 * They are done in the order in which they were started, and what the replica calls directly waits
 * for them: so the calls of the mesh have one order, that of the program. The outcome of one counts for
 * the step when the replica's own thread takes it up: at a wait, at the next collective, or when
 * its function has returned. */
#ifndef CADRE_RUNTIME_COLLECTIVE_ASYNC_H
#define CADRE_RUNTIME_COLLECTIVE_ASYNC_H

#include "worker/library/runtime/strategy/strategy.h"

/* cadre_all_reduce_start: the handle is the queue's. */
cadre_status collective_start(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    cadre_collective **ret_handle, struct cadre_error *error);
/* cadre_collective_wait: waits for it and ends it. */
cadre_status collective_wait_for(cadre_collective *handle, struct cadre_error *error);

#endif
