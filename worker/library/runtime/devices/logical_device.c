/* SPDX-License-Identifier: Apache-2.0
 * Which logical devices a replica has, and functions that run on them: device 0 is the replica's
 * own thread, each other one a thread that is started at its first use. Replica functions call it.
 */
#include "worker/library/runtime/devices/logical_device.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/step/outputs.h"

/* Of one local replica, and used by its thread only. */
struct logical_threads {
    struct replica_pool *pool; /* NULL: none was started yet */
    bool running;              /* a function on them */
};

struct logical_devices {
    cadre_device_assignment *assignment; /* owned */
    struct device **devices;             /* owned; [local replica][logical device] */
    struct logical_threads threads[];    /* of each local replica */
};

static void logical_device_drop(struct logical_devices *logical)
{
    if (logical != NULL) {
        free(logical->assignment);
        free(logical->devices);
        free(logical);
    }
}

void logical_devices_close(cadre_strategy *strategy)
{
    struct devices_part *part = strategy->devices_part;
    struct logical_devices *logical = part == NULL ? NULL : part->logical;
    if (logical != NULL) {
        for (uint32_t i = 0; i < strategy->local_replicas; i++) {
            replica_pool_close(logical->threads[i].pool);
            CADRE_ASSERT(!logical->threads[i].running);
        }
        logical_device_drop(logical);
        part->logical = NULL;
    }
}

static cadre_status set_assignment(
    cadre_strategy *strategy, const cadre_device_assignment *assignment, struct cadre_error *error)
{
    if (assignment->replicas != strategy->local_replicas) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the assignment is for %u replicas and this task has %u; build it with as many",
            assignment->replicas, strategy->local_replicas);
    }
    if (strategy->devices_part->logical != NULL || outputs_has_last(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s; set one assignment, before the first step",
            strategy->devices_part->logical != NULL ? "the strategy has an assignment of devices"
                                                    : "the first step was taken already");
    }
    struct logical_devices *logical =
        calloc(1, sizeof *logical + strategy->local_replicas * sizeof logical->threads[0]);
    if (logical != NULL) {
        logical->assignment = device_assignment_copy(assignment);
        logical->devices = calloc(
            (size_t)assignment->replicas * assignment->logical_devices, sizeof(struct device *));
    }
    if (logical == NULL || logical->assignment == NULL || logical->devices == NULL) {
        logical_device_drop(logical);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the replicas' logical devices");
    }
    cadre_status status = logical_gpus_open(strategy, assignment, logical->devices, error);
    if (status != CADRE_OK) {
        logical_device_drop(logical);
        return status;
    }
    strategy->devices_part->logical = logical;
    return CADRE_OK;
}

cadre_status cadre_strategy_set_device_assignment(
    cadre_strategy *strategy, const cadre_device_assignment *assignment)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = argument_require(assignment, __func__, "assignment", &error);
    }
    if (status == CADRE_OK) {
        status = set_assignment(strategy, assignment, &error);
    }
    return api_return(status, &error);
}

uint32_t cadre_logical_devices(const cadre_replica *replica)
{
    if (replica == NULL) {
        return 0;
    }
    const struct logical_devices *logical = replica->strategy->devices_part->logical;
    return logical == NULL ? 1 : logical->assignment->logical_devices;
}

struct device *const *logical_devices_all(const cadre_strategy *strategy)
{
    return strategy->devices_part->logical == NULL ? NULL
                                                   : strategy->devices_part->logical->devices;
}

struct device *logical_device_of(const cadre_replica *replica, uint32_t logical_device)
{
    uint32_t count = cadre_logical_devices(replica);
    if (logical_device == 0 || logical_device >= count) {
        return logical_device == 0 ? replica->device : NULL;
    }
    CADRE_ASSERT(replica->local < replica->strategy->devices_part->logical->assignment->replicas);
    return replica->strategy->devices_part->logical
        ->devices[replica->local * count + logical_device];
}

cadre_status logical_device_check(
    const cadre_replica *replica, uint32_t logical_device, struct cadre_error *error)
{
    uint32_t count = cadre_logical_devices(replica);
    if (logical_device >= count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "logical device %u was named, and replica %u has %u; name one from 0 to %u",
            logical_device, replica->id, count, count - 1);
    }
    return CADRE_OK;
}

cadre_status cadre_logical_device_name(
    const cadre_replica *replica, uint32_t logical_device, char ret_name[CADRE_DEVICE_NAME_BYTES])
{
    struct cadre_error error = {0};
    cadre_device_spec spec;
    cadre_status status = argument_require(ret_name, __func__, "ret_name", &error);
    if (status == CADRE_OK) {
        status = step_require(replica, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = logical_device_check(replica, logical_device, &error);
    }
    if (status == CADRE_OK) {
        const cadre_strategy *strategy = replica->strategy;
        status = device_name_parse(strategy->devices.pointers[replica->local], &spec, &error);
        if (status == CADRE_OK && strategy->devices_part->logical != NULL) {
            const cadre_device_assignment *assignment = strategy->devices_part->logical->assignment;
            spec.index =
                (int32_t)assignment
                    ->devices[replica->local * assignment->logical_devices + logical_device];
        }
    }
    if (status == CADRE_OK) {
        device_name_text(&spec, ret_name);
    }
    return api_return(status, &error);
}

/* --- functions --- */

struct logical_call {
    cadre_replica *replica;
    cadre_logical_function function;
    void *user;
    uint32_t only;               /* this one; UINT32_MAX: all */
    struct cadre_error errors[]; /* of each */
};

static void call_one(uint32_t logical_device, void *user)
{
    struct logical_call *call = user;
    CADRE_ASSERT(logical_device < cadre_logical_devices(call->replica));
    struct cadre_error *error = &call->errors[logical_device];
    error->code = CADRE_OK;
    if (call->only != UINT32_MAX && call->only != logical_device) {
        return;
    }
    const struct device *device = logical_device_of(call->replica, logical_device);
    if (device != NULL && device->ops->bind(device->index, error) != CADRE_OK) {
        return;
    }
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    cadre_status status =
        argument_status(call->function(call->replica, logical_device, call->user));
    if (status != CADRE_OK) {
        const char *message = cadre_error_message();
        cadre_error_set(error, status, "logical device %u of replica %u: %s", logical_device,
            call->replica->id, message[0] != '\0' ? message : "its function left no message");
    }
}

/* One round of the replica's threads. */
static cadre_status run_round(
    const cadre_replica *replica, struct logical_call *call, struct cadre_error *error)
{
    struct logical_devices *logical = replica->strategy->devices_part->logical;
    CADRE_ASSERT(logical != NULL);
    CADRE_ASSERT(replica->local < logical->assignment->replicas);
    struct logical_threads *threads = &logical->threads[replica->local];
    if (threads->running) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "a function on the logical devices of replica %u was to run inside of another one; run "
            "it after that, from the replica's function",
            replica->id);
    }
    if (threads->pool == NULL) {
        CADRE_TRY(replica_pool_open(logical->assignment->logical_devices, &threads->pool, error));
    }
    threads->running = true;
    replica_pool_run(threads->pool, call_one, call);
    threads->running = false;
    return CADRE_OK;
}

static cadre_status logical_device_run(cadre_replica *replica, uint32_t only,
    cadre_logical_function function, void *user, struct cadre_error *error)
{
    uint32_t devices = cadre_logical_devices(replica);
    CADRE_ASSERT(only == UINT32_MAX || only < devices);
    struct logical_call *call = malloc(sizeof *call + devices * sizeof call->errors[0]);
    if (call == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a call");
    }
    call->replica = replica;
    call->function = function;
    call->user = user;
    call->only = only;
    cadre_status status = CADRE_OK;
    if (only == 0 || devices == 1) {
        devices = 1;
        call_one(0, call);
    } else {
        status = run_round(replica, call, error);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < devices; i++) {
        if (call->errors[i].code != CADRE_OK) {
            *error = call->errors[i];
            status = error->code;
        }
    }
    free(call);
    return status;
}

static cadre_status run_public(const char *name, cadre_replica *replica, uint32_t only,
    cadre_logical_function function, void *user)
{
    struct cadre_error error = {0};
    cadre_status status = step_require_own_thread(replica, name, &error);
    if (status == CADRE_OK && function == NULL) {
        status = argument_require(NULL, name, "function", &error);
    }
    if (status == CADRE_OK && only != UINT32_MAX) {
        status = logical_device_check(replica, only, &error);
    }
    if (status == CADRE_OK) {
        status = logical_device_run(replica, only, function, user, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_logical_run(
    cadre_replica *replica, uint32_t logical_device, cadre_logical_function function, void *user)
{
    uint32_t only = logical_device == UINT32_MAX ? UINT32_MAX - 1 : logical_device;
    return run_public(__func__, replica, only, function, user);
}

cadre_status cadre_logical_run_all(
    cadre_replica *replica, cadre_logical_function function, void *user)
{
    return run_public(__func__, replica, UINT32_MAX, function, user);
}
