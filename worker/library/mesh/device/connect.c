/* SPDX-License-Identifier: Apache-2.0
 * The replicas' own communicator, which all calls in devices' memory go through: the offer,
 * connecting, and why not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/library/mesh/device/comm_init.h"

#define KEY_CONNECT UINT64_C(0x636f6e6e656374)

uint64_t mesh_device_offer(struct device *const devices[], uint32_t count, const char **ret_reason)
{
    static char reason[sizeof((struct device_driver *)0)->collectives_from];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    *ret_reason = "";
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] == NULL) {
            *ret_reason = "a replica of this task is on the host";
            return 0;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (devices[k]->index == devices[i]->index) {
                *ret_reason = "two replicas of this task are on one device";
                return 0;
            }
        }
    }
    if (count == 0) {
        *ret_reason = "this task has no replica on a device";
        return 0;
    }
    struct device_driver driver = {.collectives = 0};
    const struct device_ops *ops = devices[0]->ops;
    ops->driver(&driver);
    if (ops->comm == NULL || driver.collectives == 0) {
        pthread_mutex_lock(&lock);
        if (reason[0] == '\0') { /* the first text stays: others may be reading it */
            snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1,
                driver.collectives_from[0] != '\0' ? driver.collectives_from
                                                   : "the plugin has no NCCL");
        }
        *ret_reason = reason;
        pthread_mutex_unlock(&lock);
        return 0;
    }
    return (uint64_t)DEVICE_ABI << 32 | driver.collectives;
}

/* Decides, once: the first replica here decides for all, since all have the same result. */
static void connect_decide(struct device_mesh *mesh, const char *reason)
{
    pthread_mutex_lock(&mesh->lock);
    if (!atomic_load(&mesh->decided)) {
        snprintf(mesh->reason, sizeof mesh->reason, "%s", reason);
        atomic_store(&mesh->decided, true);
    }
    pthread_mutex_unlock(&mesh->lock);
}

/* The ranks of this task; one of each local replica, in the slot of its number. Local replica 0
 * posts them. */
static struct comms_rank *ranks_of(const struct device_mesh *mesh)
{
    struct comms_rank *ranks = calloc(mesh->local_count, sizeof *ranks);
    for (uint32_t i = 0; ranks != NULL && i < mesh->local_count; i++) {
        const struct device_replica *device_replica = &mesh->device_replicas[i];
        ranks[i] = (struct comms_rank){.slot = i,
            .rank = device_replica->global,
            .device = device_replica->device != NULL ? device_replica->device->index : 0};
    }
    return ranks;
}

static cadre_status connect_connect(struct device_replica *device_replica, uint64_t timeout_us,
    char *ret_reason, size_t size, struct cadre_error *error)
{
    struct device_mesh *mesh = device_replica->mesh;
    struct comms_rank *ranks = ranks_of(mesh);
    if (ranks == NULL) {
        mesh_host_ops.abort(mesh->host, "a replica has no memory to connect its device");
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to connect devices");
    }
    snprintf(device_replica->text, sizeof device_replica->text,
        "replica %" PRIu32 " connects its device", device_replica->global);
    struct comm_init comm_init = {
        .device_replica = device_replica,
        .device = device_replica->device,
        .world = mesh->replica_count,
        .posts = ranks,
        .post_count = device_replica->local == 0 ? mesh->local_count : 0,
        .ranks = &ranks[device_replica->local],
        .rank_count = 1,
        .note = {.key = KEY_CONNECT, .text = device_replica->text},
        .timeout_us = timeout_us,
    };
    cadre_status status = device_comm_init(&comm_init, ret_reason, size, error);
    free(ranks);
    return status;
}

cadre_status mesh_device_connect(
    struct mesh *mesh, uint32_t local_replica, uint64_t timeout_us, struct cadre_error *error)
{
    struct device_mesh *own = device_mesh_of(mesh);
    if (mesh->ops != &mesh_device_ops || local_replica >= own->local_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "local replica %" PRIu32 " cannot be connected: this is no mesh for devices, or has no "
            "such replica",
            local_replica);
    }
    struct device_replica *device_replica = &own->device_replicas[local_replica];
    char reason[CADRE_ERROR_TEXT_BYTES / 2] = "";
    CADRE_TRY(connect_connect(device_replica, timeout_us, reason, sizeof reason, error));
    if (reason[0] != '\0' && device_replica->local == 0) {
        comms_end(own->comms, false);
    }
    device_replica->connected = reason[0] == '\0';
    connect_decide(own, reason);
    return CADRE_OK;
}

const char *mesh_device_reason(const struct mesh *mesh)
{
    return mesh->ops == &mesh_device_ops ? ((const struct device_mesh *)mesh)->reason : "";
}
