/* SPDX-License-Identifier: Apache-2.0
 * The table of the mesh for devices, and the lifetime of one mesh: forming its host mesh, failing
 * it, closing it. The worker's library calls it through mesh_device_ops. */
#include "worker/library/mesh/mesh_device.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/library/mesh/device/device_mesh.h"

/* How long closing a mesh takes at most: in order, and after a fault. */
#define CLOSE_US       (5 * CADRE_US_PER_S)
#define CLOSE_FAULT_US (2 * CADRE_US_PER_S)

void *scratch_reserve(struct scratch *scratch, size_t count, size_t bytes)
{
    size_t wanted = (count > 0 ? count : 1) * bytes;
    if (scratch->bytes < wanted) {
        void *memory = malloc(2 * wanted);
        if (memory == NULL) {
            return NULL;
        }
        free(scratch->memory);
        *scratch = (struct scratch){.memory = memory, .bytes = 2 * wanted};
    }
    return scratch->memory;
}

cadre_dtype device_mesh_dtype(enum mesh_dtype dtype)
{
    static const cadre_dtype dtypes[] = {
        [MESH_F64] = CADRE_F64,
        [MESH_F32] = CADRE_F32,
        [MESH_F16] = CADRE_F16,
        [MESH_BF16] = CADRE_BF16,
        [MESH_I64] = CADRE_I64,
        [MESH_I32] = CADRE_I32,
        [MESH_I16] = CADRE_I16,
        [MESH_I8] = CADRE_I8,
        [MESH_U32] = CADRE_U32,
        [MESH_U16] = CADRE_U16,
        [MESH_U8] = CADRE_U8,
    };
    return dtypes[dtype];
}

void device_mesh_await_fault(struct device_replica *device_replica)
{
    struct host_mesh *host = device_mesh_host(device_replica->mesh);
    if (!mesh_fault_raised(host)) {
        struct pollfd fault = {.fd = host->fault.event_fd, .events = POLLIN};
        (void)poll(&fault, 1, FAULT_RELAY_MS);
    }
}

cadre_status device_mesh_fail(struct device_replica *device_replica, cadre_status status,
    const char *doing, const struct cadre_error *reason, struct cadre_error *error)
{
    struct host_mesh *host = device_mesh_host(device_replica->mesh);
    if (device_replica->device != NULL) {
        /* What the call has enqueued may still run, with memory that the program now frees in the
         * order of compute. */
        struct device *device = device_replica->device;
        (void)device_order(device, device->comm, device->compute, NULL);
    }
    if (status == CADRE_UNAVAILABLE) {
        device_mesh_await_fault(device_replica);
    }
    if (!mesh_fault_raised(host)) {
        /* INVALID_ARGUMENT would mean that the mesh is usable. */
        status = status == CADRE_INVALID_ARGUMENT ? CADRE_INTERNAL : status;
        mesh_fault_raise(host, status, "replica %" PRIu32 " %s: %.300s", device_replica->global,
            doing, reason->text);
    }
    return mesh_fault_error(host, true, error);
}

cadre_status device_mesh_stop(void *user, struct cadre_error *error)
{
    struct device_replica *device_replica = user;
    struct host_mesh *host = device_mesh_host(device_replica->mesh);
    if (mesh_fault_raised(host)) {
        return mesh_fault_error(host, true, error);
    }
    if (!device_replica->connected) {
        return CADRE_OK;
    }
    cadre_status status = comms_test(device_replica->mesh->comms, device_replica->local, error);
    return status == CADRE_OK || status == CADRE_PENDING ? device_groups_test(device_replica, error)
                                                         : status;
}

/* --- forming --- */

static void device_close(struct mesh *mesh);

static cadre_status device_form_post(
    const struct mesh_config *config, struct mesh **ret_mesh, struct cadre_error *error)
{
    *ret_mesh = NULL;
    struct device_mesh *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a mesh");
    }
    made->mesh.ops = &mesh_device_ops;
    snprintf(made->reason, sizeof made->reason, "it was not connected");
    pthread_mutex_init(&made->lock, NULL);
    cadre_status status = mesh_host_ops.form_post(config, &made->host, error);
    if (status != CADRE_OK) {
        device_close(&made->mesh);
        return status;
    }
    const struct host_mesh *host = device_mesh_host(made);
    made->replica_count = host->replica_count;
    made->local_count = host->local_count;
    made->plain = host->task_count == 1;
    made->device_replicas = calloc(made->local_count, sizeof *made->device_replicas);
    if (made->device_replicas == NULL) {
        device_close(&made->mesh);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a mesh");
    }
    for (uint32_t i = 0; i < made->local_count; i++) {
        struct device *device = config->devices != NULL ? config->devices[i] : NULL;
        made->device_replicas[i] = (struct device_replica){
            .mesh = made, .local = i, .global = host->first_replica + i, .device = device};
        made->plain = made->plain && device == NULL;
    }
    *ret_mesh = &made->mesh;
    return CADRE_OK;
}

void mesh_device_expect(struct mesh *mesh, bool devices)
{
    if (mesh->ops == &mesh_device_ops) {
        device_mesh_of(mesh)->plain = !devices;
    }
}

static cadre_status device_form_test(struct mesh *mesh, struct cadre_error *error)
{
    return mesh_host_ops.form_test(device_mesh_of(mesh)->host, error);
}

static int device_form_fd(struct mesh *mesh)
{
    return mesh_host_ops.form_fd(device_mesh_of(mesh)->host);
}

static uint32_t device_form_missing(const struct mesh *mesh)
{
    return mesh_host_ops.form_missing(((const struct device_mesh *)mesh)->host);
}

/* --- the end --- */

/* The ender receives the fault through its descriptor. */
static void device_abort(struct mesh *mesh, const char *reason)
{
    mesh_host_ops.abort(device_mesh_of(mesh)->host, reason);
}

static void finish_replica(struct device_replica *device_replica, bool ended, uint64_t until_us)
{
    bool at_rest = ended;
    if (device_replica->device != NULL && device_replica->pack != NULL && ended) {
        device_replica->device->ops->memory_give(
            device_replica->device->index, device_replica->pack, device_replica->device->comm);
    }
    if (device_replica->device != NULL && ended) {
        uint64_t now_us = clock_monotonic_us();
        at_rest = device_wait_stream(device_replica->device, device_replica->device->comm,
                      until_us > now_us ? until_us - now_us : 1, NULL, NULL,
                      NULL) != CADRE_DEADLINE_EXCEEDED;
    }
    device_track_finish(device_replica);
    device_staged_finish(device_replica, at_rest);
    device_groups_finish(device_replica);
    mesh_layout_finish(&device_replica->layout);
    free(device_replica->vectors.memory);
    free(device_replica->pieces.memory);
    free(device_replica->buffers.memory);
    free(device_replica->sizes.memory);
}

static void device_close(struct mesh *mesh)
{
    if (mesh == NULL) {
        return;
    }
    struct device_mesh *own = device_mesh_of(mesh);
    bool good = own->host != NULL && !mesh_fault_raised(device_mesh_host(own));
    comms_end(own->comms, good);
    /* Before the wait, so that the others receive that this task will not come any more. */
    mesh_host_ops.close(own->host);
    uint64_t until_us = clock_monotonic_us() + (good ? CLOSE_US : CLOSE_FAULT_US);
    bool ended = comms_close(own->comms, until_us);
    for (uint32_t i = 0; own->device_replicas != NULL && i < own->local_count; i++) {
        finish_replica(&own->device_replicas[i], ended, until_us);
    }
    free(own->device_replicas);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

const struct mesh_ops mesh_device_ops = {
    .name = "device",
    .form_post = device_form_post,
    .form_test = device_form_test,
    .form_fd = device_form_fd,
    .form_missing = device_form_missing,
    .all_reduce = device_mesh_all_reduce,
    .reduce_scatter = device_mesh_reduce_scatter,
    .broadcast = device_mesh_broadcast,
    .all_gather = device_mesh_all_gather,
    .barrier = device_mesh_barrier,
    .abort = device_abort,
    .close = device_close,
};
