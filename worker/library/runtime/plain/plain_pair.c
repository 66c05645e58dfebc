/* SPDX-License-Identifier: Apache-2.0
 * The connections between two tasks of a group. They are made when both want to exchange a message
 * for the first time. plain_message.c calls it.
 *
 * A task that sends to one and receives from another connects with both at once, in two threads,
 * because each of the two may wait for what the other direction brings about. Both meshes are
 * formed on one listener, so what one of them accepts may belong to the other, which is not woken
 * by it: it looks again soon. */
#include <poll.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/plain/plain.h"

#define LOOK_AGAIN_MS 5
#define WHICH_PAIR    2

static cadre_status pair_post(
    struct cadre_plain_group *group, uint32_t partner, struct cadre_error *error)
{
    struct plain_pair *pair = &group->pairs[partner];
    uint32_t low = partner < group->rank ? partner : group->rank;
    uint32_t high = partner < group->rank ? group->rank : partner;
    const struct mesh_member members[2] = {group->members[low], group->members[high]};
    const uint32_t numbers[2] = {plain_group_number(group, low), plain_group_number(group, high)};
    const struct plain_mesh_of of = {.members = members,
        .numbers = numbers,
        .count = 2,
        .rank = group->rank == high,
        .key = group->key,
        .which = {WHICH_PAIR, low, high}};
    uint8_t key[MESH_KEY_BYTES]; /* of which nothing is made */
    return plain_mesh_post(group->plain, &of, key, &pair->mesh, error);
}

cadre_status plain_pairs_post(struct cadre_plain_group *group, const uint32_t *partners,
    uint32_t count, struct cadre_error *error)
{
    if (group->pairs == NULL) {
        group->pairs = calloc(group->size, sizeof *group->pairs);
    }
    if (group->pairs == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the connections to %u tasks", group->size);
    }
    for (uint32_t i = 0; i < count; i++) {
        CADRE_ASSERT(partners[i] < group->size);
        if (group->pairs[partners[i]].mesh == NULL) {
            CADRE_TRY(pair_post(group, partners[i], error));
        }
    }
    return CADRE_OK;
}

cadre_status plain_pair_form(struct plain_pair *pair, bool alone, struct cadre_error *error)
{
    struct mesh *mesh = pair->mesh;
    cadre_status status = CADRE_OK;
    if (pair->formed) {
        return CADRE_OK;
    }
    while ((status = mesh->ops->form_test(mesh, error)) == CADRE_PENDING) {
        struct pollfd wait = {.fd = mesh->ops->form_fd(mesh), .events = POLLIN};
        poll(&wait, 1, alone ? -1 : LOOK_AGAIN_MS);
    }
    pair->formed = status == CADRE_OK;
    return status;
}

void plain_pairs_close(struct cadre_plain_group *group)
{
    for (uint32_t rank = 0; group->pairs != NULL && rank < group->size; rank++) {
        plain_mesh_close(group->plain, group->pairs[rank].mesh);
    }
    free(group->pairs);
    group->pairs = NULL;
}
