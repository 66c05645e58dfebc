/* SPDX-License-Identifier: Apache-2.0
 * The peer for devices under the suite of all peers, whose bodies do not know of devices: a table
 * in front of it copies each buffer to memory of the replica's device (as far from its alignment as
 * it was), calls, synchronizes, and copies the result back. PEER_CONNECTS: the communicators are
 * made after forming; else data are staged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/conformance/mesh/world.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/mesh_device.h"

#define SKEW 64u /* what of an address is kept */

struct shim {
    struct mesh mesh; /* first */
    struct mesh *inner;
    uint32_t replica_count;
    struct device *devices[WORLD_REPLICAS_MAX];
};

static struct shim *shim_of(struct mesh *mesh)
{
    return (struct shim *)mesh;
}

static const struct mesh_ops *const inner = &mesh_device_ops;
static const struct mesh_ops shim_ops;

static cadre_status form_post(
    const struct mesh_config *config, struct mesh **ret_mesh, struct cadre_error *error)
{
    struct shim *shim = calloc(1, sizeof *shim);
    struct mesh_config own = *config;
    uint32_t first = 0;
    *ret_mesh = NULL;
    CADRE_ASSERT(shim != NULL);
    shim->mesh.ops = &shim_ops;
    for (uint32_t rank = 0; rank < config->member_count && rank < WORLD_TASKS_MAX; rank++) {
        first += rank < config->rank ? config->members[rank].replicas : 0;
        shim->replica_count += config->members[rank].replicas;
    }
    bool possible = config->member_count <= WORLD_TASKS_MAX &&
                    config->rank < config->member_count &&
                    shim->replica_count <= WORLD_REPLICAS_MAX;
    for (uint32_t i = 0; possible && i < config->members[config->rank].replicas; i++) {
        uint32_t index = (first + i) % device_count();
        CADRE_ASSERT(device_open(index, &shim->devices[i], error) == CADRE_OK);
    }
    own.devices = possible ? shim->devices : NULL;
    cadre_status status = inner->form_post(&own, &shim->inner, error);
    if (status != CADRE_OK) {
        free(shim);
        return status;
    }
    *ret_mesh = &shim->mesh;
    return CADRE_OK;
}

static cadre_status form_test(struct mesh *mesh, struct cadre_error *error)
{
    return inner->form_test(shim_of(mesh)->inner, error);
}

static int form_fd(struct mesh *mesh)
{
    return inner->form_fd(shim_of(mesh)->inner);
}

static uint32_t form_missing(const struct mesh *mesh)
{
    return inner->form_missing(((const struct shim *)mesh)->inner);
}

static void abort_mesh(struct mesh *mesh, const char *reason)
{
    inner->abort(shim_of(mesh)->inner, reason);
}

static void close_mesh(struct mesh *mesh)
{
    if (mesh != NULL) {
        inner->close(shim_of(mesh)->inner);
        free(mesh);
    }
}

/* One buffer that was copied to the device. */
struct moved {
    void *host;
    void *memory;
    void *there;
    size_t bytes;
};

#define MOVED_MAX 2048u

struct trip {
    struct mesh *mesh;
    struct device *device;
    size_t count;
    struct moved moved[MOVED_MAX];
};

static struct trip *begin(struct mesh *mesh, uint32_t local)
{
    struct trip *trip = malloc(sizeof *trip);
    CADRE_ASSERT(trip != NULL);
    trip->mesh = shim_of(mesh)->inner;
    trip->device = shim_of(mesh)->devices[local];
    trip->count = 0;
    return trip;
}

/* Where `bytes` at `host` are on the device. What no call may have stays what it is. */
static void *take(struct trip *trip, const void *host, size_t bytes)
{
    if (host == NULL || bytes == 0 || bytes > (size_t)1 << 30) {
        return (void *)(uintptr_t)host;
    }
    struct device *device = trip->device;
    struct moved *moved = &trip->moved[trip->count++];
    CADRE_ASSERT(trip->count <= MOVED_MAX);
    moved->host = (void *)(uintptr_t)host;
    moved->bytes = bytes;
    CADRE_ASSERT(device->ops->memory_get(
                     device->index, bytes + SKEW, device->comm, &moved->memory, NULL) == CADRE_OK);
    moved->there = (uint8_t *)moved->memory + (uintptr_t)host % SKEW;
    CADRE_ASSERT(device->ops->copy(moved->there, host, bytes, device->comm, NULL) == CADRE_OK);
    return moved->there;
}

/* Copies all of it back, when the call succeeded: what was only read must be as it was. */
static cadre_status end(
    struct trip *trip, uint32_t local, cadre_status status, struct cadre_error *error)
{
    struct device *device = trip->device;
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(trip->mesh, local, error);
    }
    for (size_t i = 0; i < trip->count; i++) {
        struct moved *moved = &trip->moved[i];
        if (status == CADRE_OK) {
            CADRE_ASSERT(device->ops->copy(moved->host, moved->there, moved->bytes, device->comm,
                             NULL) == CADRE_OK);
        }
        device->ops->memory_give(device->index, moved->memory, device->comm);
    }
    if (device != NULL) { /* the caller's memory has been read, and written */
        CADRE_ASSERT(device_wait_stream(device, device->comm, 0, NULL, NULL, NULL) == CADRE_OK);
    }
    free(trip);
    return status;
}

static struct mesh_buffer *take_all(
    struct trip *trip, const struct mesh_buffer *buffers, size_t count)
{
    struct mesh_buffer *there = calloc(count + 1, sizeof *there);
    CADRE_ASSERT(there != NULL);
    for (size_t i = 0; i < count; i++) {
        there[i] = buffers[i];
        there[i].on = trip->device;
        there[i].from = take(trip, buffers[i].from, buffers[i].bytes);
        there[i].data = take(trip, buffers[i].data, buffers[i].bytes);
    }
    return there;
}

static bool exists(struct mesh *mesh, uint32_t local)
{
    return local < WORLD_REPLICAS_MAX && shim_of(mesh)->devices[local] != NULL;
}

static cadre_status all_reduce(struct mesh *mesh, uint32_t local, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct trip *trip = begin(mesh, local);
    struct mesh_buffer *there = take_all(trip, buffers, count);
    cadre_status status = inner->all_reduce(trip->mesh, local, op, there, count, note, error);
    free(there);
    return end(trip, local, status, error);
}

static cadre_status reduce_scatter(struct mesh *mesh, uint32_t local, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error)
{
    struct trip *trip = begin(mesh, local);
    struct mesh_buffer there = *part;
    there.on = trip->device;
    there.from = take(trip, part->from, part->bytes * shim_of(mesh)->replica_count);
    there.data = take(trip, part->data, part->bytes);
    return end(
        trip, local, inner->reduce_scatter(trip->mesh, local, op, &there, note, error), error);
}

static cadre_status broadcast(struct mesh *mesh, uint32_t local, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct trip *trip = begin(mesh, local);
    struct mesh_buffer *there = take_all(trip, buffers, count);
    cadre_status status = inner->broadcast(trip->mesh, local, root, there, count, note, error);
    free(there);
    return end(trip, local, status, error);
}

static cadre_status all_gather(struct mesh *mesh, uint32_t local, const void *data, size_t bytes,
    const size_t *sizes, void *into, const struct mesh_note *note, struct cadre_error *error)
{
    struct trip *trip = begin(mesh, local);
    struct mesh_note there = {.on = trip->device};
    size_t total = 0;
    if (note != NULL) {
        there = *note;
        there.on = trip->device;
    }
    for (uint32_t i = 0; i < shim_of(mesh)->replica_count; i++) {
        total += sizes != NULL ? sizes[i] : bytes;
    }
    const void *from = take(trip, data, bytes);
    void *to = take(trip, into, total);
    return end(trip, local,
        inner->all_gather(trip->mesh, local, from, bytes, sizes, to, &there, error), error);
}

static cadre_status barrier(
    struct mesh *mesh, uint32_t local, const struct mesh_note *note, struct cadre_error *error)
{
    cadre_status status = inner->barrier(shim_of(mesh)->inner, local, note, error);
    return status == CADRE_OK && exists(mesh, local)
               ? mesh_device_synchronize(shim_of(mesh)->inner, local, error)
               : status;
}

static const struct mesh_ops shim_ops = {
    .name = "device, under the suite",
    .form_post = form_post,
    .form_test = form_test,
    .form_fd = form_fd,
    .form_missing = form_missing,
    .all_reduce = all_reduce,
    .reduce_scatter = reduce_scatter,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .barrier = barrier,
    .abort = abort_mesh,
    .close = close_mesh,
};

#if PEER_CONNECTS
#define DEVICES_NEEDED 5u /* those of the layouts that are few */
#else
#define DEVICES_NEEDED 1u /* replicas share them */
#endif

/* Before main: the suite's has no devices. */
__attribute__((constructor)) static void require_devices(void)
{
    char reason[600];
    if (device_count() < DEVICES_NEEDED) {
        snprintf(reason, sizeof reason, "%s: %u needed, %u here%s%s",
            device_count() > 0 ? "too few GPUs" : "no GPU here", DEVICES_NEEDED, device_count(),
            device_count() > 0 ? "" : ": ", device_absence_reason());
        test_skip(reason);
    }
}

#if PEER_CONNECTS
static cadre_status connect_one(struct seat *seat)
{
    struct mesh *mesh = shim_of(seat->mesh)->inner;
    cadre_status status = mesh_device_connect(mesh, seat->local, WORLD_PATIENCE_US, &seat->error);
    SEAT_CHECK(seat, status != CADRE_OK || mesh_device_reason(mesh)[0] == '\0');
    return status;
}

static void connect_all(struct world *world)
{
    world_run_ok(world, connect_one, NULL);
}

const struct world_peer world_peer = {
    .ops = &shim_ops, .loose = true, .few = true, .formed = connect_all};
#else
const struct world_peer world_peer = {.ops = &shim_ops, .few = true};
#endif
