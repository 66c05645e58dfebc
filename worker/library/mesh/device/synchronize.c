/* SPDX-License-Identifier: Apache-2.0
 * The end of a step on a replica's device (protocol, rule 10), and idle devices after an abort. The
 * runtime calls it through mesh_device.h before it applies a step. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "worker/library/mesh/device/device_mesh.h"

/* When `stalled` is called for a task that waits in a collective of its devices, as in the host
 * mesh. */
#define STALL_US       CADRE_US_PER_S
#define STALL_AGAIN_US (5 * CADRE_US_PER_S)

/* A replica that waits at the end of its step. */
struct synchronizing {
    struct device_replica *device_replica;
    uint64_t begun_us;
    uint64_t report_at_us; /* after begun_us */
};

/* Whether only other tasks hold this one up: each of its replicas is here, and its device in a
 * collective. A task whose device is still at its own work is the one that the others wait for, and
 * reports nothing. */
static bool all_wait(const struct device_mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->local_count; i++) {
        if (!atomic_load(&mesh->device_replicas[i].waits)) {
            return false;
        }
    }
    return mesh->local_count < mesh->replica_count;
}

static cadre_status synchronize_look(void *user, struct cadre_error *error)
{
    struct synchronizing *settling = user;
    struct device_replica *device_replica = settling->device_replica;
    const struct host_mesh *host = device_mesh_host(device_replica->mesh);
    uint64_t waited_us = clock_monotonic_us() - settling->begun_us;
    CADRE_TRY(device_mesh_stop(device_replica, error));
    if (waited_us < settling->report_at_us) {
        return CADRE_OK;
    }
    atomic_store(&device_replica->waits, device_track_waits(device_replica));
    if (device_replica->local == 0 && host->stalled != NULL && all_wait(device_replica->mesh)) {
        settling->report_at_us = waited_us + STALL_AGAIN_US;
        host->stalled(host->stalled_user, host->rank, waited_us);
    }
    return CADRE_OK;
}

/* The time is over; the message of the replica whose device did not come counts, if there is
 * one. */
static void synchronize_overdue(struct device_replica *device_replica, uint64_t timeout_us)
{
    struct host_mesh *host = device_mesh_host(device_replica->mesh);
    bool waits = device_track_waits(device_replica);
    if (waits) {
        device_mesh_await_fault(device_replica);
    }
    if (mesh_fault_raised(host)) {
        return;
    }
    if (waits) {
        mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
            "the device of replica %" PRIu32 " waited in a collective for those of others for "
            "%" PRIu64 " ms",
            device_replica->global, timeout_us / CADRE_US_PER_MS);
    } else {
        mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
            "the device of replica %" PRIu32 " (task of rank %" PRIu32 ") did not come to a "
            "collective of its step within %" PRIu64 " ms: what it was given before is not done",
            device_replica->global, host->rank, timeout_us / CADRE_US_PER_MS);
    }
}

static cadre_status finish_stream(struct device_replica *device_replica, struct device *device,
    void *stream, uint64_t timeout_us, struct cadre_error *error)
{
    struct cadre_error reason;
    struct synchronizing settling = {.device_replica = device_replica,
        .begun_us = clock_monotonic_us(),
        .report_at_us = STALL_US};
    cadre_status status =
        device_wait_stream(device, stream, timeout_us, synchronize_look, &settling, &reason);
    atomic_store(&device_replica->waits, false);
    if (status == CADRE_OK) {
        return status;
    }
    if (status == CADRE_DEADLINE_EXCEEDED) {
        synchronize_overdue(device_replica, timeout_us);
    }
    return device_mesh_fail(device_replica, status, "lost its work", &reason, error);
}

cadre_status mesh_device_synchronize(
    struct mesh *mesh, uint32_t local_replica, struct cadre_error *error)
{
    return mesh_device_synchronize_all(mesh, local_replica, NULL, 0, error);
}

cadre_status mesh_device_synchronize_all(struct mesh *mesh, uint32_t local_replica,
    struct device *const others[], uint32_t count, struct cadre_error *error)
{
    if (mesh->ops != &mesh_device_ops) {
        return CADRE_OK;
    }
    struct device_mesh *own = device_mesh_of(mesh);
    struct host_mesh *host = device_mesh_host(own);
    if (local_replica >= own->local_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "local replica %" PRIu32 " of a task that has %" PRIu32, local_replica,
            own->local_count);
    }
    struct device_replica *device_replica = &own->device_replicas[local_replica];
    if (device_replica->device == NULL) {
        return CADRE_OK;
    }
    if (mesh_fault_raised(host)) {
        return mesh_fault_error(host, false, error);
    }
    CADRE_TRY(finish_stream(device_replica, device_replica->device, device_replica->device->comm,
        host->timeout_us, error));
    CADRE_TRY(finish_stream(
        device_replica, device_replica->device, device_replica->device->compute, 0, error));
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(finish_stream(device_replica, others[i], others[i]->compute, 0, error));
    }
    /* Rule 10: an aborted communicator lets its kernels end, with any result, so its state is read
     * after the streams are done. */
    struct cadre_error reason;
    cadre_status status = device_mesh_stop(device_replica, &reason);
    return status == CADRE_OK
               ? status
               : device_mesh_fail(device_replica, status, "lost its communicator", &reason, error);
}

cadre_status mesh_device_comm_returned(
    struct mesh *mesh, uint32_t local_replica, bool well, struct cadre_error *error)
{
    struct device_mesh *own = device_mesh_of(mesh);
    if (mesh->ops != &mesh_device_ops || local_replica >= own->local_count ||
        !own->device_replicas[local_replica].lent) {
        return CADRE_OK;
    }
    struct device_replica *device_replica = &own->device_replicas[local_replica];
    struct cadre_error reason;
    cadre_status status = well ? CADRE_OK : device_mesh_stop(device_replica, &reason);
    device_replica->lent = false;
    comms_return(own->comms);
    return status == CADRE_OK
               ? status
               : device_mesh_fail(device_replica, status, "lost its communicator", &reason, error);
}

bool mesh_device_await_idle(struct mesh *mesh, uint64_t timeout_us)
{
    if (mesh->ops != &mesh_device_ops) {
        return true;
    }
    struct device_mesh *own = device_mesh_of(mesh);
    uint64_t until_us = clock_monotonic_us() + timeout_us;
    bool rest = comms_wait(own->comms, until_us);
    for (uint32_t i = 0; i < own->local_count; i++) {
        struct device *device = own->device_replicas[i].device;
        void *const streams[] = {
            device != NULL ? device->comm : NULL, device != NULL ? device->compute : NULL};
        for (size_t k = 0; device != NULL && k < 2; k++) {
            uint64_t now_us = clock_monotonic_us();
            uint64_t left_us = until_us > now_us ? until_us - now_us : 1; /* 0 is for ever */
            /* How it ended does not matter any more. */
            rest = device_wait_stream(device, streams[k], left_us, NULL, NULL, NULL) !=
                       CADRE_DEADLINE_EXCEEDED &&
                   rest;
        }
    }
    return rest;
}

cadre_status device_comm_raw(struct device_replica *device_replica, uint32_t slot, void **ret_comm,
    struct cadre_error *error)
{
    struct host_mesh *host = device_mesh_host(device_replica->mesh);
    if (mesh_fault_raised(host)) { /* the ender may not have ended them yet */
        return mesh_fault_error(host, false, error);
    }
    struct device_comm *comm = comms_enter(device_replica->mesh->comms, slot);
    if (comm == NULL) {
        return cadre_error_set(error, CADRE_ABORTED, "the communicator was ended");
    }
    *ret_comm = device_replica->device->ops->comm->raw(comm);
    if (!device_replica->lent) {
        device_replica->lent = true;
        comms_lend(device_replica->mesh->comms);
    }
    comms_leave(device_replica->mesh->comms, slot);
    return CADRE_OK;
}

cadre_status mesh_device_comm(
    struct mesh *mesh, uint32_t local_replica, void **ret_comm, struct cadre_error *error)
{
    *ret_comm = NULL;
    if (mesh->ops != &mesh_device_ops) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "there is no NCCL communicator on the host");
    }
    struct device_mesh *own = device_mesh_of(mesh);
    if (local_replica >= own->local_count || !own->device_replicas[local_replica].connected) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the replicas' GPUs have no NCCL communicator: %s", mesh_device_reason(mesh));
    }
    return device_comm_raw(&own->device_replicas[local_replica], local_replica, ret_comm, error);
}
