/* SPDX-License-Identifier: Apache-2.0
 * Replicas on devices in a step: binding a thread, the wait at the end of the function, rest
 * after a failure. step/, collectives/ and devices_hooks.c call it. */
#include "worker/library/runtime/devices/replica_device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cadre/gpu.h"
#include "cadre/logical_device.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/mesh/mesh_device.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/devices/logical_device.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"

#define IDLE_TIMEOUT_S 10 /* for the work on a device when a step has failed */

cadre_status replica_devices_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->mesh_devices == NULL);
    uint32_t count = 0;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        count += strategy->replicas[i].device != NULL ? 1 : 0;
    }
    if (count == 0) {
        return CADRE_OK;
    }
    strategy->mesh_devices = calloc(strategy->local_replicas, sizeof strategy->mesh_devices[0]);
    if (strategy->mesh_devices == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %u devices", count);
    }
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        strategy->mesh_devices[i] = strategy->replicas[i].device;
    }
    return CADRE_OK;
}

void replica_devices_close(cadre_strategy *strategy)
{
    free(strategy->mesh_devices);
    strategy->mesh_devices = NULL;
}

cadre_status replica_device_bind(const cadre_replica *replica, struct cadre_error *error)
{
    const struct device *device = replica->device;
    if (device == NULL) {
        return CADRE_OK;
    }
    cadre_status status = device->ops->bind(device->index, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "replica %u", replica->id);
}

/* The first of its devices whose work failed; NULL: none. */
static const struct device *failed_device(const cadre_replica *replica)
{
    for (uint32_t i = 0; replica->device != NULL && i < cadre_logical_devices(replica); i++) {
        struct cadre_error ignored;
        const struct device *device = logical_device_of(replica, i);
        cadre_status status = device->ops->stream_test(device->compute, &ignored);
        /* Other codes are of this call: a stream that the program captures is no lost device. */
        if (status == CADRE_INTERNAL) {
            return device;
        }
    }
    return NULL;
}

bool replica_device_failed(const cadre_replica *replica)
{
    return failed_device(replica) != NULL;
}

void replica_device_returned(cadre_replica *replica, cadre_status status)
{
    struct cadre_error cause;
    if (replica->device != NULL &&
        mesh_device_comm_returned(
            replica->strategy->mesh, replica->local, status == CADRE_OK, &cause) != CADRE_OK &&
        replica->collective_failed.code == CADRE_OK) {
        replica->collective_failed = cause;
    }
}

/* --- waiting --- */

static cadre_status replica_device_settle(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    (void)user;
    const cadre_replica *replica = &strategy->replicas[local];
    CADRE_ASSERT(local < strategy->local_replicas);
    if (replica->device == NULL) {
        return CADRE_OK;
    }
    struct cadre_error cause;
    struct device *const *all = logical_devices_all(strategy);
    uint32_t each = cadre_logical_devices(replica);
    CADRE_ASSERT(each > 0);
    cadre_status status = mesh_device_synchronize_all(
        strategy->mesh, local, all != NULL ? &all[local * each + 1] : NULL, each - 1, &cause);
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    if (strategy_is_peer_failure(status)) {
        *error = cause;
        return status;
    }
    const struct device *failed = failed_device(replica);
    return failed != NULL
               ? cadre_error_set(error, status, "replica %u: work on its GPU %u failed: %s",
                     replica->id, failed->index, cause.text)
               : cadre_error_set(error, status, "replica %u: %s", replica->id, cause.text);
}

cadre_status replica_device_synchronize(cadre_replica *replica, struct cadre_error *error)
{
    return replica_device_settle(replica->strategy, replica->local, NULL, error);
}

cadre_status replica_devices_synchronize(cadre_strategy *strategy, struct cadre_error *error)
{
    return strategy->mesh_devices == NULL || strategy->mesh == NULL
               ? CADRE_OK
               : strategy_each_replica(strategy, replica_device_settle, NULL, error);
}

/* --- after a failure --- */

/* The work of a device that writes the memory of variables cannot be taken back, and a step that
 * may still be writing cannot be undone. */
static void end_process(const struct device *device)
{
    struct cadre_error error;
    char who[32] = "a communicator of NCCL";
    if (device != NULL) {
        snprintf(who, sizeof who, "GPU %u", device->index);
    }
    cadre_error_set(&error, CADRE_INTERNAL,
        "%s goes on with work of a step that was given up %d s ago, and nothing in this process "
        "can end that: the process ends itself (SIGKILL); a worker starts the task again",
        who, IDLE_TIMEOUT_S);
    show_failure(&error);
    raise(SIGKILL);
}

/* Whether all streams that the program or the mesh use on one device come to rest; a failed one is
 * at rest. */
static bool streams_rest(struct device *device, uint64_t end_us)
{
    CADRE_ASSERT(device != NULL);
    void *const streams[] = {device->comm, device->compute};
    bool rest = true;
    for (uint32_t k = 0; rest && k < 2; k++) {
        uint64_t now_us = clock_monotonic_us();
        uint64_t left_us = now_us < end_us ? end_us - now_us : 1; /* 0: for ever */
        struct cadre_error ignored;
        rest = device_wait_stream(device, streams[k], left_us, NULL, NULL, &ignored) !=
               CADRE_DEADLINE_EXCEEDED;
    }
    return rest;
}

/* The first device that does not; NULL: all rest. */
static const struct device *who_hangs(const cadre_strategy *strategy, uint64_t end_us)
{
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        for (uint32_t d = 0; replica->device != NULL && d < cadre_logical_devices(replica); d++) {
            struct device *device = logical_device_of(replica, d);
            if (!streams_rest(device, end_us)) {
                return device;
            }
        }
    }
    return NULL;
}

void replica_devices_await_idle(cadre_strategy *strategy, bool aborted)
{
    if (strategy->mesh_devices == NULL) {
        return;
    }
    const uint64_t timeout_us =
        fault_point("replica.rest") ? CADRE_US_PER_S / 4 : IDLE_TIMEOUT_S * CADRE_US_PER_S;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint64_t end_us = clock_monotonic_us() + timeout_us;
    bool rest = !aborted || mesh_device_await_idle(strategy->mesh, timeout_us);
    const struct device *hangs = who_hangs(strategy, end_us);
    if (hangs != NULL || !rest) {
        end_process(hangs);
    }
}

bool replica_devices_lost(const cadre_strategy *strategy, struct cadre_error *error)
{
    for (uint32_t i = 0; strategy->mesh_devices != NULL && i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        const struct device *failed = failed_device(replica);
        if (failed != NULL) {
            struct cadre_error before = *error;
            cadre_error_set(error,
                strategy_is_peer_failure(before.code) ? CADRE_INTERNAL : before.code,
                "%s; GPU %u takes no more work of this process, which cannot go on: start it again",
                before.text, failed->index);
            return true;
        }
    }
    return false;
}

/* --- public --- */

int32_t cadre_replica_gpu(const cadre_replica *replica)
{
    return replica == NULL || replica->device == NULL ? -1 : (int32_t)replica->device->index;
}

void *cadre_replica_stream(const cadre_replica *replica)
{
    return replica == NULL || replica->device == NULL ? NULL : replica->device->compute;
}
