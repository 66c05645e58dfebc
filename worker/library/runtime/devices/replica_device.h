/* SPDX-License-Identifier: Apache-2.0
 * Replicas on devices, as a step sees them: what their threads are bound to, and when their work is
 * done.
 *
 *   function ── launches, collectives ──▶ compute, comm        nobody waits
 *   its end  ── settle: all of it is done, without an error    the one wait of a step
 *   commit   ── apply functions launch ──▶ compute             goes on into the next step
 *   failed   ── rest: streams are at rest, communicators gone  then variables get their old values
 */
#ifndef CADRE_RUNTIME_REPLICA_DEVICE_H
#define CADRE_RUNTIME_REPLICA_DEVICE_H

#include <stdbool.h>

#include "worker/library/runtime/strategy/strategy.h"

/* What a strategy keeps of its replicas' devices, once they have theirs: the list for the mesh.
 * Nothing where all are on the host. */
cadre_status replica_devices_open(cadre_strategy *strategy, struct cadre_error *error);
void replica_devices_close(cadre_strategy *strategy);

/* Makes the replica's device the calling thread's current one; nothing for one on the host. Nobody
 * puts back what it was: between steps the thread that calls cadre_run is left with the device of
 * local replica 0, as after a cudaSetDevice of its own. */
cadre_status replica_device_bind(const cadre_replica *replica, struct cadre_error *error);

/* The replica's function has returned `status`, and uses no communicator of NCCL's any more. What
 * it made of one that was lost is no failure of its own: then collective_failed says so. */
void replica_device_returned(cadre_replica *replica, cadre_status status);

/* Waits until all that the replica has enqueued is done, in its thread. What it has started must be
 * on its streams before (collective_queue_wait). CADRE_OK for one on the host. */
cadre_status replica_device_synchronize(cadre_replica *replica, struct cadre_error *error);

/* The same of all local replicas, between steps: what apply functions have launched. */
cadre_status replica_devices_synchronize(cadre_strategy *strategy, struct cadre_error *error);

/* After a step that is not to count, with no replica running: returns when nothing touches the
 * memory of the local replicas any more. `aborted`: the mesh was, and its communicators end too. A
 * device that does not come to rest ends the process, for nothing else can end what it does: by
 * SIGKILL, after a line that says so. */
void replica_devices_await_idle(cadre_strategy *strategy, bool aborted);

/* Whether the replica's device failed in work of its own: what another one's failure was the end of
 * is no failure of this one's. */
bool replica_device_failed(const cadre_replica *replica);

/* Whether a device of a local replica takes no more work (after an illegal access it is lost to the
 * process): then *error says so, behind what it said before, and the failure is to be final. */
bool replica_devices_lost(const cadre_strategy *strategy, struct cadre_error *error);

#endif
