/* SPDX-License-Identifier: Apache-2.0
 * Broadcast and barrier in replica context; and the barrier of tasks. */
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_device.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/strategy/strategy_registry.h"

enum { KIND_BROADCAST = 1, KIND_BARRIER, KIND_NOTHING }; /* in keys */

static uint64_t key_of(uint64_t kind)
{
    return collective_key(0x62726f6164636173, kind); /* differs from other collectives' */
}

static cadre_status check_root(
    const cadre_strategy *strategy, uint32_t root, struct cadre_error *error)
{
    if (root >= strategy->replica_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "replica %u was named as the source of a broadcast among %u replicas; name one from 0 "
            "to %u",
            root, strategy->replica_count, strategy->replica_count - 1);
    }
    return CADRE_OK;
}

static cadre_status do_broadcast(cadre_replica *replica, uint32_t root, struct device *device,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct mesh *mesh = replica->strategy->mesh;
    CADRE_ASSERT(root < replica->strategy->replica_count);
    CADRE_TRY(collective_send_piggyback(replica->strategy, replica->local, note, error));
    CADRE_TRY(collective_device_begin(device, error));
    CADRE_TRY(collective_explain(
        mesh->ops->broadcast(mesh, replica->local, root, buffers, count, note, error), error));
    return collective_device_end(device, error);
}

static cadre_status collective_broadcast_broadcast(cadre_replica *replica, uint32_t root,
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error)
{
    struct mesh_buffer *buffers;
    struct device *device;
    CADRE_TRY(check_root(replica->strategy, root, error));
    CADRE_TRY(collective_check(tensors, count, error));
    CADRE_TRY(collective_same_device(replica, tensors, count, &device, error));
    CADRE_TRY(collective_list_room(&replica->list, count, &buffers, error));
    uint64_t key = collective_key(key_of(KIND_BROADCAST), root);
    for (size_t i = 0; i < count; i++) {
        if (cadre_tensor_dtype(tensors[i]) == CADRE_STRING) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor %zu holds strings, which cannot be broadcast; use a number type", i);
        }
        buffers[i] = (struct mesh_buffer){.data = cadre_tensor_data(tensors[i]),
            .bytes = cadre_tensor_bytes(tensors[i]),
            .dtype = MESH_U8,
            .on = device};
        key = collective_key_tensor(key, tensors[i], UINT32_MAX);
    }
    const struct step_call call = {.function = "cadre_broadcast",
        .key = key,
        .root = root,
        .tensor_count = count,
        .first = count > 0 ? tensors[0] : NULL,
        .on_device = device != NULL};
    struct step_note note;
    CADRE_TRY(collective_enter(replica, &call, &note, error));
    cadre_status status = do_broadcast(replica, root, device, buffers, count, &note.mesh, error);
    return step_collective_end(replica, status, error);
}

cadre_status collective_broadcast(cadre_replica *replica, uint32_t root,
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error)
{
    cadre_status status = step_require_own_thread(replica, "cadre_broadcast", error);
    if (status == CADRE_OK) {
        status = collective_broadcast_broadcast(replica, root, tensors, count, error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return status;
}

cadre_status cadre_broadcast(
    cadre_replica *replica, uint32_t root, cadre_tensor *const tensors[], size_t count)
{
    struct cadre_error error;
    return api_return(collective_broadcast(replica, root, tensors, count, &error), &error);
}

/* --- meetings without data --- */

cadre_status collective_implicit(cadre_replica *replica, struct cadre_error *error)
{
    const struct step_call call = {
        .function = "no collective", .key = key_of(KIND_NOTHING), .root = -1};
    return collective_meet_in_step(replica, &call, NULL, 0, error);
}

static cadre_status barrier_in_step(cadre_replica *replica, struct cadre_error *error)
{
    const struct step_call call = {
        .function = "cadre_barrier", .key = key_of(KIND_BARRIER), .root = -1};
    return collective_meet_in_step(replica, &call, NULL, 0, error);
}

static cadre_status barrier_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    (void)user;
    return collective_explain(
        strategy->mesh->ops->barrier(strategy->mesh, local, NULL, error), error);
}

/* No strategy is current: there is none, or several without a scope. */
static cadre_status refuse_barrier(struct cadre_error *error)
{
    uint32_t at = 0;
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION, "%s",
        strategy_registry_next(&at) != NULL
            ? "cadre_barrier was called with several strategies open and outside of the scope of "
              "one; enter the scope of the one whose tasks are to wait (cadre_scope_enter)"
            : "there is no task to wait for: make a strategy before cadre_barrier");
}

cadre_status cadre_barrier(void)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error;
    cadre_replica *replica = context_replica();
    if (replica != NULL) {
        return api_return(barrier_in_step(replica, &error), &error);
    }
    cadre_strategy *strategy = strategy_current();
    if (strategy == NULL) {
        return api_return(refuse_barrier(&error), &error);
    }
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = strategy_between_steps(strategy, __func__, barrier_on_replica, NULL, &error);
    }
    return api_return(status, &error);
}
