/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/devices/devices.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/devices/logical_device.h"
#include "worker/library/runtime/devices/replica_device.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->devices.count == strategy->local_replicas);
    CADRE_ASSERT(strategy->devices_part == NULL);
    strategy->devices_part = calloc(1, sizeof *strategy->devices_part);
    if (strategy->devices_part == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the replicas' devices");
    }
    CADRE_TRY(gpus_open(strategy, error));
    return replica_devices_open(strategy, error);
}

/* Not before, because the mesh uses them until it is closed. */
static void free_part(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->mesh == NULL);
    replica_devices_close(strategy);
    device_list_clear(&strategy->devices);
    device_list_clear(&strategy->parameter);
    free(strategy->devices_part);
    strategy->devices_part = NULL;
}

static void devices_hooks_returned(cadre_replica *replica, const struct cadre_error *failure)
{
    replica_device_returned(replica, failure == NULL ? CADRE_OK : failure->code);
}

/* Waits for what it has enqueued, which must be without an error before the step is committed. */
static cadre_status devices_hooks_complete(cadre_replica *replica, struct cadre_error *error)
{
    if (replica->device == NULL) {
        return CADRE_OK;
    }
    cadre_status status = replica_device_synchronize(replica, error);
    if (status != CADRE_OK && replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = *error;
    }
    return status;
}

static bool devices_hooks_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    replica_devices_await_idle(strategy, aborted);
    return !replica_devices_lost(strategy, cause);
}

const struct strategy_hooks devices_hooks = {
    .name = "devices",
    .open = open_part,
    .close = logical_devices_close,
    .free = free_part,
    .bind = replica_device_bind,
    .returned = devices_hooks_returned,
    .complete = devices_hooks_complete,
    .is_cause = replica_device_failed,
    .undo = devices_hooks_undo,
};
