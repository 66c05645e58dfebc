/* SPDX-License-Identifier: Apache-2.0
 * The end of a step on a replica's device, and the rest after an abort. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "worker/mesh/device/device_mesh.h"

static cadre_status finish_stream(struct seat *seat, struct device *device, void *stream,
    uint64_t timeout_us, struct cadre_error *error)
{
    struct host_mesh *host = device_mesh_host(seat->mesh);
    struct cadre_error reason;
    cadre_status status =
        device_wait_stream(device, stream, timeout_us, device_mesh_stop, seat, &reason);
    if (status == CADRE_OK) {
        return status;
    }
    if (status == CADRE_DEADLINE_EXCEEDED && !mesh_fault_raised(host)) {
        mesh_fault_raise(host, status,
            "the collectives of replica %" PRIu32 " on its device were not done within %" PRIu64
            " ms",
            seat->global, timeout_us / CADRE_US_PER_MS);
    }
    return device_mesh_fail(seat, status, "lost its work", &reason, error);
}

cadre_status mesh_device_settle(
    struct mesh *mesh, uint32_t local_replica, struct cadre_error *error)
{
    return mesh_device_settle_all(mesh, local_replica, NULL, 0, error);
}

cadre_status mesh_device_settle_all(struct mesh *mesh, uint32_t local_replica,
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
    struct seat *seat = &own->seats[local_replica];
    if (seat->device == NULL) {
        return CADRE_OK;
    }
    if (mesh_fault_raised(host)) {
        return mesh_fault_error(host, false, error);
    }
    CADRE_TRY(finish_stream(seat, seat->device, seat->device->comm, host->timeout_us, error));
    CADRE_TRY(finish_stream(seat, seat->device, seat->device->compute, 0, error));
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(finish_stream(seat, others[i], others[i]->compute, 0, error));
    }
    /* A communicator that was aborted lets its kernels end, with any result. */
    struct cadre_error reason;
    cadre_status status = device_mesh_stop(seat, &reason);
    return status == CADRE_OK
               ? status
               : device_mesh_fail(seat, status, "lost its communicator", &reason, error);
}

cadre_status mesh_device_returned(
    struct mesh *mesh, uint32_t local_replica, bool well, struct cadre_error *error)
{
    struct device_mesh *own = device_mesh_of(mesh);
    if (mesh->ops != &mesh_device_ops || local_replica >= own->local_count ||
        !own->seats[local_replica].lent) {
        return CADRE_OK;
    }
    struct seat *seat = &own->seats[local_replica];
    struct cadre_error reason;
    cadre_status status = well ? CADRE_OK : device_mesh_stop(seat, &reason);
    seat->lent = false;
    comms_return(own->comms);
    return status == CADRE_OK
               ? status
               : device_mesh_fail(seat, status, "lost its communicator", &reason, error);
}

bool mesh_device_rest(struct mesh *mesh, uint64_t timeout_us)
{
    if (mesh->ops != &mesh_device_ops) {
        return true;
    }
    struct device_mesh *own = device_mesh_of(mesh);
    uint64_t until_us = clock_monotonic_us() + timeout_us;
    bool rest = comms_wait(own->comms, until_us);
    for (uint32_t i = 0; i < own->local_count; i++) {
        struct device *device = own->seats[i].device;
        void *const streams[] = {
            device != NULL ? device->comm : NULL, device != NULL ? device->compute : NULL};
        for (size_t k = 0; device != NULL && k < 2; k++) {
            uint64_t now_us = clock_monotonic_us();
            uint64_t left_us = until_us > now_us ? until_us - now_us : 1; /* 0 is for ever */
            /* How it ended matters no more. */
            rest = device_wait_stream(device, streams[k], left_us, NULL, NULL, NULL) !=
                       CADRE_DEADLINE_EXCEEDED &&
                   rest;
        }
    }
    return rest;
}

cadre_status device_comm_raw(
    struct seat *seat, uint32_t slot, void **ret_comm, struct cadre_error *error)
{
    struct host_mesh *host = device_mesh_host(seat->mesh);
    struct device_comm *comm = comms_enter(seat->mesh->comms, slot);
    if (comm == NULL) {
        return mesh_fault_raised(host)
                   ? mesh_fault_error(host, false, error)
                   : cadre_error_set(error, CADRE_ABORTED, "the communicator is gone");
    }
    *ret_comm = seat->device->ops->comm->raw(comm);
    if (!seat->lent) {
        seat->lent = true;
        comms_lend(seat->mesh->comms);
    }
    comms_leave(seat->mesh->comms, slot);
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
    if (local_replica >= own->local_count || !own->seats[local_replica].connected) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the replicas' GPUs have no NCCL communicator: %s", mesh_device_reason(mesh));
    }
    return device_comm_raw(&own->seats[local_replica], local_replica, ret_comm, error);
}
