/* SPDX-License-Identifier: Apache-2.0
 * A replica's device behind the collectives that it has started: the wait for all of them, and the
 * NCCL communicator of the replicas. */
#include "cadre/gpu.h"
#include "worker/library/device/argument.h"
#include "worker/library/mesh/mesh_device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/devices/replica_device.h"
#include "worker/library/runtime/regroup/connect_devices.h"

cadre_status cadre_replica_synchronize(cadre_replica *replica)
{
    struct cadre_error error;
    cadre_status status = step_require_own_thread(replica, __func__, &error);
    if (status == CADRE_OK) {
        collective_queue_wait(replica);
        status = replica_device_synchronize(replica, &error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}

static cadre_status nccl_comm(cadre_replica *replica, void **ret_comm, struct cadre_error *error)
{
    static const char function[] = "cadre_replica_nccl_comm";
    CADRE_TRY(argument_require(ret_comm, function, "ret_comm", error));
    *ret_comm = NULL;
    CADRE_TRY(step_require_own_thread(replica, function, error));
    if (replica->device == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called by replica %u, which is on the CPU; call cadre_replica_gpu first",
            function, replica->id);
    }
    collective_queue_wait(replica);
    cadre_status status = step_admit(replica->strategy, replica->local, error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
        return status;
    }
    if (!replica->strategy->connected) {
        char reason[CADRE_ERROR_TEXT_BYTES / 2];
        connect_devices_reason(replica->strategy, reason, sizeof reason);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called where the GPUs of the job have no NCCL communicator: %s", function,
            reason);
    }
    status = mesh_device_comm(replica->strategy->mesh, replica->local, ret_comm, error);
    if (strategy_is_peer_failure(status)) {
        step_record_refusal(replica, error);
    }
    return status;
}

cadre_status cadre_replica_nccl_comm(cadre_replica *replica, void **ret_comm)
{
    struct cadre_error error;
    return api_return(nccl_comm(replica, ret_comm, &error), &error);
}
