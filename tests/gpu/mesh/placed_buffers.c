/* SPDX-License-Identifier: Apache-2.0
 * See placed_buffers.h. */
#include "tests/gpu/mesh/placed_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

uint32_t placed_devices[WORLD_REPLICAS_MAX];

/* By task, because a mesh borrows them for its lifetime. */
static struct device *devices[WORLD_TASKS_MAX][WORLD_REPLICAS_MAX];

void placed_default_devices(void)
{
    for (uint32_t i = 0; i < WORLD_REPLICAS_MAX; i++) {
        placed_devices[i] = i;
    }
}

static cadre_status form_post(
    const struct mesh_config *config, struct mesh **ret_mesh, struct cadre_error *error)
{
    struct mesh_config own = *config;
    uint32_t first = 0;
    for (uint32_t rank = 0; rank < config->rank; rank++) {
        first += config->members[rank].replicas;
    }
    for (uint32_t i = 0; i < config->members[config->rank].replicas; i++) {
        struct device **device = &devices[config->rank][i];
        *device = NULL;
        if (placed_devices[first + i] != PLACED_ON_HOST) {
            CADRE_TRY(device_open(placed_devices[first + i], device, error));
        }
    }
    own.devices = devices[config->rank];
    return mesh_device_ops.form_post(&own, ret_mesh, error);
}

/* The table itself, but for how a mesh is formed. */
static struct mesh_ops ops;
const struct world_peer world_peer = {.ops = &ops};

__attribute__((constructor)) static void make_table(void)
{
    ops = mesh_device_ops;
    ops.form_post = form_post;
    placed_default_devices();
}

struct device *placed_device(const struct seat *seat)
{
    return devices[seat->task][seat->local];
}

static void wait_for(struct device *device)
{
    CADRE_ASSERT(device_wait_stream(device, device->comm, 0, NULL, NULL, NULL) == CADRE_OK);
}

struct mesh_buffer placed_buffer(
    const struct seat *seat, enum mesh_dtype dtype, const void *data, size_t bytes)
{
    struct device *device = placed_device(seat);
    struct mesh_buffer buffer = {.bytes = bytes, .dtype = dtype, .on = device};
    if (device == NULL) {
        buffer.data = malloc(bytes + 1);
        CADRE_ASSERT(buffer.data != NULL);
        memcpy(buffer.data, data, bytes);
        return buffer;
    }
    CADRE_ASSERT(device->ops->memory_get(
                     device->index, bytes + 1, device->comm, &buffer.data, NULL) == CADRE_OK);
    CADRE_ASSERT(device->ops->copy(buffer.data, data, bytes, device->comm, NULL) == CADRE_OK);
    wait_for(device);
    return buffer;
}

void placed_buffer_drop(const struct seat *seat, struct mesh_buffer *buffer)
{
    struct device *device = placed_device(seat);
    if (device == NULL) {
        free(buffer->data);
    } else {
        device->ops->memory_give(device->index, buffer->data, device->comm);
    }
    buffer->data = NULL;
}

void placed_buffer_read(const struct seat *seat, const struct mesh_buffer *buffer, void *into)
{
    struct device *device = placed_device(seat);
    if (device == NULL) {
        memcpy(into, buffer->data, buffer->bytes);
        return;
    }
    CADRE_ASSERT(
        device->ops->copy(into, buffer->data, buffer->bytes, device->comm, NULL) == CADRE_OK);
    wait_for(device);
}

cadre_status placed_connect(struct seat *seat)
{
    return mesh_device_connect(seat->mesh, seat->local, WORLD_PATIENCE_US, &seat->error);
}

cadre_status placed_sum(struct seat *seat, size_t count)
{
    float *ones = malloc(count * sizeof *ones);
    CADRE_ASSERT(ones != NULL);
    for (size_t i = 0; i < count; i++) {
        ones[i] = (float)(i % 100);
    }
    struct mesh_buffer buffer = placed_buffer(seat, MESH_F32, ones, count * sizeof *ones);
    cadre_status status =
        seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    if (status == CADRE_OK) {
        status = mesh_device_synchronize(seat->mesh, seat->local, &seat->error);
    }
    bool same = true;
    if (status == CADRE_OK) {
        placed_buffer_read(seat, &buffer, ones);
        for (size_t i = 0; i < count; i++) {
            same = same && ones[i] == (float)(i % 100) * (float)seat->world->replica_count;
        }
    }
    placed_buffer_drop(seat, &buffer);
    free(ones);
    SEAT_CHECK(seat, same);
    return status;
}

cadre_status placed_sum_small(struct seat *seat)
{
    return placed_sum(seat, 300);
}

static cadre_status connect_well(struct seat *seat)
{
    cadre_status status = placed_connect(seat);
    SEAT_CHECK(seat, status != CADRE_OK || mesh_device_reason(seat->mesh)[0] == '\0');
    return status;
}

void placed_connect_all(struct world *world)
{
    world_form(world);
    world_run_ok(world, connect_well, NULL);
}
