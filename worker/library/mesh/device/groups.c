/* SPDX-License-Identifier: Apache-2.0
 * Groups of devices beside the replicas' own: the ranks of a replica in each, and why one could not
 * be formed. A device is at most once in a group across replicas and once in one within, so its
 * number is that of its slots; a replica has the group within as its first one, and those across by
 * their numbers, from 1 on. Called by the runtime through mesh_device.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/library/mesh/device/comm_init.h"

static uint32_t group_index_of(const struct mesh_device_group *group)
{
    return group->kind == MESH_DEVICE_WITHIN ? 0 : group->number;
}

static bool is_replicas(const struct mesh_device_group *group)
{
    return group->kind == MESH_DEVICE_ACROSS && group->number == 0;
}

static struct comms_rank rank_of(const struct device_mesh *mesh,
    const struct mesh_device_group *group, uint32_t local, uint32_t number)
{
    uint32_t device = group->devices[local * group->each + number]->index;
    bool within = group->kind == MESH_DEVICE_WITHIN;
    return (struct comms_rank){
        .slot = mesh->local_count + (within ? DEVICES_MAX : 0) + device,
        .rank = within ? number : mesh->device_replicas[local].global,
        .device = device,
    };
}

/* The replica's state in the group. NULL: no memory. */
static struct device_replica_group *groups_make(
    const struct device_replica *device_replica, const struct mesh_device_group *group)
{
    bool within = group->kind == MESH_DEVICE_WITHIN;
    uint32_t count = within ? group->each : 1;
    struct device_replica_group *made = calloc(1, sizeof *made + count * sizeof made->ranks[0]);
    for (uint32_t i = 0; made != NULL && i < count; i++) {
        made->ranks[made->rank_count++] =
            rank_of(device_replica->mesh, group, device_replica->local, within ? i : group->number);
    }
    return made;
}

/* The ranks that local replica 0 posts for all of its task. NULL: no memory. */
static struct comms_rank *make_posts(
    const struct device_mesh *mesh, const struct mesh_device_group *group)
{
    struct comms_rank *posts = calloc(mesh->local_count, sizeof *posts);
    for (uint32_t i = 0; posts != NULL && i < mesh->local_count; i++) {
        posts[i] = rank_of(mesh, group, i, group->number);
    }
    return posts;
}

static cadre_status groups_form(struct device_replica *device_replica,
    const struct mesh_device_group *group, const struct mesh_note *note,
    struct device_replica_group *made, struct cadre_error *error)
{
    struct device_mesh *mesh = device_replica->mesh;
    bool within = group->kind == MESH_DEVICE_WITHIN;
    struct comms_rank *posts = within ? NULL : make_posts(mesh, group);
    if (posts == NULL && !within) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for communicators");
    }
    struct comm_init comm_init = {
        .device_replica = device_replica,
        .device =
            group->devices[device_replica->local * group->each + (within ? 0 : group->number)],
        .world = within ? group->each : mesh->replica_count,
        .by_itself = within,
        .posts = within ? made->ranks : posts,
        .post_count = within                       ? made->rank_count
                      : device_replica->local == 0 ? mesh->local_count
                                                   : 0,
        .ranks = made->ranks,
        .rank_count = made->rank_count,
        .note = *note,
        .timeout_us = note->timeout_us > 0 ? note->timeout_us : device_mesh_host(mesh)->timeout_us,
    };
    cadre_status status = device_comm_init(&comm_init, made->reason, sizeof made->reason, error);
    free(posts);
    return status;
}

bool mesh_device_formed(
    struct mesh *mesh, uint32_t local_replica, const struct mesh_device_group *group)
{
    struct device_mesh *own = device_mesh_of(mesh);
    if (mesh->ops != &mesh_device_ops || local_replica >= own->local_count || is_replicas(group)) {
        return true;
    }
    const struct device_replica *device_replica = &own->device_replicas[local_replica];
    return !device_replica->connected || device_replica->groups[group_index_of(group)] != NULL;
}

cadre_status mesh_device_form(struct mesh *mesh, uint32_t local_replica,
    const struct mesh_device_group *group, const struct mesh_note *note, struct cadre_error *error)
{
    if (mesh_device_formed(mesh, local_replica, group)) {
        return CADRE_OK;
    }
    struct device_replica *device_replica = &device_mesh_of(mesh)->device_replicas[local_replica];
    struct device_replica_group *made = groups_make(device_replica, group);
    cadre_status status = made == NULL ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                             "no memory for communicators")
                                       : groups_form(device_replica, group, note, made, error);
    if (status != CADRE_OK) {
        if (status == CADRE_RESOURCE_EXHAUSTED) { /* the others continue */
            mesh_host_ops.abort(device_replica->mesh->host, error->text);
        }
        free(made);
        return status;
    }
    for (uint32_t i = 0; made->reason[0] != '\0' && i < made->rank_count; i++) {
        comms_drop(device_replica->mesh->comms, made->ranks[i].slot);
    }
    device_replica->groups[group_index_of(group)] = made;
    return CADRE_OK;
}

cadre_status mesh_device_group_comm(struct mesh *mesh, uint32_t local_replica,
    const struct mesh_device_group *group, uint32_t device, void **ret_comm,
    struct cadre_error *error)
{
    struct device_mesh *own = device_mesh_of(mesh);
    *ret_comm = NULL;
    if (mesh->ops != &mesh_device_ops || local_replica >= own->local_count ||
        !own->device_replicas[local_replica].connected || is_replicas(group)) {
        return mesh_device_comm(mesh, local_replica, ret_comm, error);
    }
    struct device_replica *device_replica = &own->device_replicas[local_replica];
    const struct device_replica_group *formed = device_replica->groups[group_index_of(group)];
    if (formed == NULL || formed->reason[0] != '\0') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the replicas' other GPUs have no NCCL communicator: %s",
            formed != NULL ? formed->reason : "it was not formed");
    }
    uint32_t at = group->kind == MESH_DEVICE_WITHIN ? device : 0;
    if (at >= formed->rank_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "device %" PRIu32 " of a communicator of %" PRIu32, at, formed->rank_count);
    }
    return device_comm_raw(device_replica, formed->ranks[at].slot, ret_comm, error);
}

cadre_status device_groups_test(struct device_replica *device_replica, struct cadre_error *error)
{
    for (uint32_t g = 0; g < DEVICES_MAX; g++) {
        const struct device_replica_group *group = device_replica->groups[g];
        for (uint32_t i = 0; group != NULL && group->reason[0] == '\0' && i < group->rank_count;
             i++) {
            cadre_status status =
                comms_test(device_replica->mesh->comms, group->ranks[i].slot, error);
            if (status != CADRE_OK && status != CADRE_PENDING) {
                return status;
            }
        }
    }
    return CADRE_OK;
}

void device_groups_finish(struct device_replica *device_replica)
{
    for (uint32_t g = 0; g < DEVICES_MAX; g++) {
        free(device_replica->groups[g]);
    }
}
