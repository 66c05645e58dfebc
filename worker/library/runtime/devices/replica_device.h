/* SPDX-License-Identifier: Apache-2.0
 * Replicas on devices in a step: what their threads are bound to, and when their work is done.
 *
 *   function ── launches, collectives ──▶ compute, comm        no thread waits
 *   its end  ── settle: all of it is done, without an error    the one wait of a step
 *   commit   ── apply functions launch ──▶ compute             goes on into the next step
 *   failed   ── rest: streams are at rest, communicators freed then variables get their old values
 */
#ifndef CADRE_RUNTIME_REPLICA_DEVICE_H
#define CADRE_RUNTIME_REPLICA_DEVICE_H

#include <stdbool.h>

#include "worker/library/runtime/strategy/strategy.h"

/* Makes the list of the replicas' devices for the mesh, when the devices are open. Nothing where
 * all are on the host. */
cadre_status replica_devices_open(cadre_strategy *strategy, struct cadre_error *error);
/* Frees it. */
void replica_devices_close(cadre_strategy *strategy);

/* Makes the replica's device the calling thread's current one; nothing for one on the host. It is
 * not set back: between steps the thread that calls cadre_run is left with the device of local
 * replica 0, as after a cudaSetDevice of its own. */
cadre_status replica_device_bind(const cadre_replica *replica, struct cadre_error *error);

/* The replica's function has returned `status`, and uses no NCCL communicator any more. An error of
 * a lost communicator is not a failure of its own: then collective_failed is set. */
void replica_device_returned(cadre_replica *replica, cadre_status status);

/* Waits until all that the replica has enqueued is done, in its thread. What it has started must be
 * on its streams before (collective_queue_wait). CADRE_OK for one on the host. */
cadre_status replica_device_synchronize(cadre_replica *replica, struct cadre_error *error);

/* The same for all local replicas, between steps: the work that apply functions have launched. */
cadre_status replica_devices_synchronize(cadre_strategy *strategy, struct cadre_error *error);

/* After a step that is not to count, with no replica running: returns when the devices do not use
 * the memory of the local replicas any more. `aborted`: the mesh was, and its communicators end
 * too. A device that does not come to rest ends the process by SIGKILL, after a message, because
 * nothing else can end its work. */
void replica_devices_await_idle(cadre_strategy *strategy, bool aborted);

/* Whether the replica's device failed in work of its own; an end that another one's failure caused
 * does not count. */
bool replica_device_failed(const cadre_replica *replica);

/* Whether a device of a local replica takes no more work (after an illegal access it is lost to the
 * process): then *error says so, after its former text, and the failure is to be final. */
bool replica_devices_lost(const cadre_strategy *strategy, struct cadre_error *error);

#endif
