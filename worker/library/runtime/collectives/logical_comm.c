/* SPDX-License-Identifier: Apache-2.0
 * NCCL communicators of logical devices: formed as a collective of the step that uses them first,
 * then kept as long as the generation. */
#include "cadre/logical_device.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/mesh/mesh_device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/devices/logical_device.h"
#include "worker/library/runtime/regroup/connect_devices.h"

#define KEY_LOGICAL_COMM UINT64_C(0x6c6f676963616c)

static const char function_name[] = "cadre_logical_nccl_comm";

static cadre_status logical_comm_check(const cadre_replica *replica, uint32_t logical_device,
    cadre_logical_group group, struct cadre_error *error)
{
    CADRE_TRY(step_require_own_thread(replica, function_name, error));
    CADRE_TRY(logical_device_check(replica, logical_device, error));
    if (group != CADRE_LOGICAL_ACROSS_REPLICAS && group != CADRE_LOGICAL_WITHIN_REPLICA) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given %d, which is not a group; name CADRE_LOGICAL_ACROSS_REPLICAS or "
            "CADRE_LOGICAL_WITHIN_REPLICA",
            function_name, (int)group);
    }
    if (replica->device == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called by replica %u, which is on the CPU; call cadre_replica_gpu first",
            function_name, replica->id);
    }
    if (!replica->strategy->connected) {
        char reason[CADRE_ERROR_TEXT_BYTES / 2];
        connect_devices_reason(replica->strategy, reason, sizeof reason);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the GPUs of this job are not connected, and have no NCCL communicators: %s", reason);
    }
    return CADRE_OK;
}

static struct mesh_device_group group_of(
    const cadre_replica *replica, uint32_t logical_device, cadre_logical_group group)
{
    struct device *const *all = logical_devices_all(replica->strategy);
    bool within = group == CADRE_LOGICAL_WITHIN_REPLICA;
    CADRE_ASSERT(logical_device < cadre_logical_devices(replica));
    return (struct mesh_device_group){
        .kind = within ? MESH_DEVICE_WITHIN : MESH_DEVICE_ACROSS,
        .number = within ? 0 : logical_device,
        .each = cadre_logical_devices(replica),
        .devices = all != NULL ? all : replica->strategy->mesh_devices,
    };
}

/* As one of the step's collectives. */
static cadre_status logical_comm_form(
    cadre_replica *replica, const struct mesh_device_group *group, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct step_note note;
    uint64_t which = (uint64_t)group->kind << 32 | group->number;
    const struct step_call call = {
        .function = group->kind == MESH_DEVICE_WITHIN
                        ? "cadre_logical_nccl_comm(CADRE_LOGICAL_WITHIN_REPLICA)"
                        : "cadre_logical_nccl_comm(CADRE_LOGICAL_ACROSS_REPLICAS)",
        .key = collective_key(collective_key(KEY_LOGICAL_COMM, which), group->each),
        .root = -1,
    };
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    cadre_status status = collective_send_piggyback(strategy, replica->local, &note.mesh, error);
    if (status == CADRE_OK) {
        status = collective_explain(
            mesh_device_form(strategy->mesh, replica->local, group, &note.mesh, error), error);
    }
    return step_collective_end(replica, status, error);
}

static cadre_status logical_comm_get(cadre_replica *replica, uint32_t logical_device,
    cadre_logical_group which, void **ret_comm, struct cadre_error *error)
{
    CADRE_TRY(logical_comm_check(replica, logical_device, which, error));
    const struct mesh_device_group group = group_of(replica, logical_device, which);
    struct mesh *mesh = replica->strategy->mesh;
    collective_queue_wait(replica);
    if (!mesh_device_formed(mesh, replica->local, &group)) {
        CADRE_TRY(logical_comm_form(replica, &group, error));
    }
    cadre_status status = step_admit(replica->strategy, replica->local, error);
    bool admitted = status == CADRE_OK;
    if (admitted) {
        status =
            mesh_device_group_comm(mesh, replica->local, &group, logical_device, ret_comm, error);
    }
    if (!admitted || strategy_is_peer_failure(status)) {
        step_record_refusal(replica, error);
    }
    return status;
}

cadre_status cadre_logical_nccl_comm(
    cadre_replica *replica, uint32_t logical_device, cadre_logical_group group, void **ret_comm)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_comm, __func__, "ret_comm", &error);
    if (status == CADRE_OK) {
        *ret_comm = NULL;
        status = logical_comm_get(replica, logical_device, group, ret_comm, &error);
    }
    return api_return(status, &error);
}
