/* SPDX-License-Identifier: Apache-2.0
 * Batches that are copied to the devices of the replicas, while the step before computes. */
#ifndef CADRE_RUNTIME_BATCH_DEVICE_H
#define CADRE_RUNTIME_BATCH_DEVICE_H

#include "worker/library/runtime/input/input.h"

/* Begins it for all replicas that are on devices: their tensors become tensors of the device, which
 * copies them in the order of its copy stream; compute waits for batch->staged. Strings stay. The
 * source of a copy is kept as long as it is read. `user`: the distributed dataset. An input_stage.
 */
cadre_status batch_to_devices(
    void *user, struct distributed_batch *batch, struct cadre_error *error);

#endif
