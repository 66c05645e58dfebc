/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/step/run.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/local_device.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/step/merge_call.h"
#include "worker/library/runtime/step/outputs.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/values/value_memory.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/trace/trace.h"

static cadre_status released_output(
    const cadre_replica *replica, uint32_t output, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "replica %u: its function released output %u, whose reference cadre_run takes; leave that "
        "one, or retain the tensor before releasing it",
        replica->id, output);
}

static cadre_status call_function(
    struct run *run, cadre_replica *replica, struct cadre_error *error)
{
    static const struct cadre_error none;
    cadre_tensor *inputs[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
    CADRE_ASSERT(
        run->order.input == NULL || run->order.input->components <= CADRE_ELEMENT_TENSORS_MAX);
    for (uint32_t i = 0; run->order.input != NULL && i < run->order.input->components; i++) {
        inputs[i] = *per_replica_at(run->order.input, i, replica->local);
    }
    replica->inputs = inputs;
    /* An earlier failure on this thread does not belong to this function. */
    cadre_error_publish(&none);
    struct tensor_return_slots targets;
    tensor_return_slots_enter(&targets, replica->outputs, CADRE_OUTPUTS_MAX);
    cadre_status status =
        argument_status(run->function(replica, inputs, replica->outputs, run->user));
    uint32_t released = tensor_return_slots_leave(&targets);
    replica->inputs = NULL;
    if (status == CADRE_OK) {
        return released == CADRE_OUTPUTS_MAX ? CADRE_OK : released_output(replica, released, error);
    }
    if (replica->all_know) {
        *error = replica->collective_failed;
        return error->code;
    }
    const char *message = cadre_error_message();
    if (message[0] == '\0') {
        return cadre_error_set(error, status,
            "replica %u: its function returned %s and left no message; give one with cadre_fail",
            replica->id, cadre_status_name(status));
    }
    return cadre_error_set(error, status, "replica %u: %s", replica->id, message);
}

bool run_lost_peers(const cadre_replica *replica)
{
    return strategy_is_peer_failure(replica->collective_failed.code);
}

/* Its function, and what follows it in each part. */
static cadre_status run_function(struct run *run, cadre_replica *replica)
{
    const cadre_strategy *strategy = replica->strategy;
    struct cadre_error missed;
    enum tensor_memory_kind memory = value_memory_enter(strategy);
    uint8_t processor = local_device_prefer(replica->processor);
    cadre_status status = hooks_bind(strategy, replica, &replica->error);
    if (status == CADRE_OK) {
        struct trace_mark mark = trace_begin();
        status = call_function(run, replica, &replica->error);
        trace_end(mark, TRACE_FUNCTION, replica->local);
    }
    local_device_prefer(processor);
    value_memory_leave(memory);
    hooks_returned(strategy, replica, status == CADRE_OK ? NULL : &replica->error);
    if (status == CADRE_OK && replica->collective_failed.code != CADRE_OK) {
        replica->error = replica->collective_failed; /* the function did not look */
        status = replica->error.code;
    }
    if (merge_returned(replica, status == CADRE_OK ? NULL : &replica->error, &missed) != CADRE_OK) {
        replica->error = missed;
        status = missed.code;
    }
    return status;
}

/* Others may be waiting for this one in a collective that it will never enter, unless it failed in
 * one that failed on all of them. */
static cadre_status release_others(struct run *run, cadre_replica *replica, cadre_status status)
{
    struct mesh *mesh = replica->strategy->mesh;
    struct cadre_error counts;
    bool release =
        status != CADRE_OK && !replica->all_know && !task_halted(replica->strategy->task);
    if (!release && !run_lost_peers(replica) && step_replica_end(replica, &counts) != CADRE_OK) {
        release = true;
        if (status == CADRE_OK) {
            replica->error = counts;
            status = counts.code;
        }
    }
    if (release) {
        atomic_store(&run->aborted, true);
        mesh->ops->abort(mesh, replica->error.text);
    }
    return status;
}

void run_replica(uint32_t local, void *user)
{
    struct run *run = user;
    cadre_strategy *strategy = run->order.strategy;
    cadre_replica *replica = &strategy->replicas[local];
    CADRE_ASSERT(local < strategy->local_replicas);
    CADRE_ASSERT(!replica->active);
    replica->error.code = CADRE_OK;
    replica->error.text[0] = '\0'; /* emptied, without writing half a kilobyte in each step */
    replica->active = true;
    replica->outputs_taken = false;
    atomic_store_explicit(&replica->doing, REPLICA_RUNNING, memory_order_relaxed);
    context_replica_enter(replica, strategy);
    cadre_status status = run_function(run, replica);
    if (status == CADRE_OK) {
        status = outputs_take(replica, run->order.n_outputs, &replica->error);
    }
    if (status == CADRE_OK) {
        status = hooks_complete(strategy, replica, &replica->error);
    }
    context_replica_leave();
    replica->active = false;
    replica->status = release_others(run, replica, status);
    atomic_store_explicit(&replica->doing, REPLICA_IDLE, memory_order_relaxed);
}
