/* SPDX-License-Identifier: Apache-2.0
 * The roster, from rank to rank. Each edge of the tree is a mesh of two on the task's listener,
 * which is formed, used for one broadcast, and closed:
 *
 *     post all edges ─▶ parent's: form, receive ─▶ each child's: form, send ─▶ close all
 *
 * Edges are posted first, so that the generation's end aborts each of them, whichever is waited
 * for. */
#include "worker/library/runtime/task/roster_spread.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/model/limits.h"
#include "common/model/roster_tree.h"
#include "common/pure/assert.h"

#define WHICH_ROSTER 3 /* of mesh_key_derive; 1 and 2: groups and pairs of plain programs */

struct edge {
    struct task *task;
    struct mesh *mesh;
    uint32_t slot; /* of the task at the other end */
};

struct edges {
    uint32_t count;
    struct edge items[1 + ROSTER_FAN_OUT];
};

static void on_stall(void *user, uint32_t rank, uint64_t waited_us)
{
    (void)rank; /* of the two */
    const struct edge *edge = user;
    task_stall(edge->task, edge->slot, waited_us);
}

/* The parent's rank is the lower one of an edge. */
static cadre_status edge_post(const struct membership *membership, struct task *task,
    const struct task_roster *roster, uint32_t other, struct edges *edges,
    struct cadre_error *error)
{
    uint32_t low = other < roster->rank ? other : roster->rank;
    uint32_t high = other < roster->rank ? roster->rank : other;
    const uint64_t which[] = {WHICH_ROSTER, low, high};
    const uint32_t numbers[2] = {low, high};
    struct mesh_member members[2] = {roster->members[low], roster->members[high]};
    uint64_t timeout_us = membership->environment->collective_timeout_us;
    struct mesh_config config = {
        .generation = roster->generation.number,
        .rank = roster->rank == high,
        .members = members,
        .member_count = 2,
        .numbers = numbers,
        .listener = membership->listener,
        .form_deadline_us = timeout_us > 0 ? clock_monotonic_us() + timeout_us : CADRE_TIME_NEVER,
        .collective_timeout_us = timeout_us,
    };
    members[0].replicas = 1; /* one thread of each takes part */
    members[1].replicas = 1;
    mesh_key_derive(roster->key, which, 3, config.key, &config.nonce);
    struct edge *edge = &edges->items[edges->count];
    *edge = (struct edge){.task = task, .slot = roster->slots[other]};
    cadre_status status = mesh_host_ops.form_post(&config, &edge->mesh, error);
    explicit_bzero(config.key, sizeof config.key);
    if (status == CADRE_OK) {
        task_attach_mesh(task, edge->mesh);
        edges->count++;
    }
    return status;
}

static cadre_status post_all(const struct membership *membership, struct task *task,
    const struct task_roster *roster, struct edges *edges, struct cadre_error *error)
{
    if (roster->rank > 0) {
        CADRE_TRY(edge_post(membership, task, roster, roster_parent(roster->rank), edges, error));
    }
    uint32_t first = roster_first_child(roster->rank);
    uint32_t end = first + ROSTER_FAN_OUT;
    for (uint32_t child = first; child < end && child < roster->member_count; child++) {
        CADRE_TRY(edge_post(membership, task, roster, child, edges, error));
    }
    return CADRE_OK;
}

/* From the parent, which is rank 0 of the two, to the child. */
static cadre_status pass(const struct membership *membership, struct edge *edge,
    const struct task_roster *roster, struct cadre_error *error)
{
    const struct membership wait = {
        .stalled = membership->stalled != NULL ? on_stall : NULL, .user = edge};
    const struct mesh_buffer buffers[] = {
        {.data = roster->members,
            .bytes = roster->member_count * sizeof *roster->members,
            .dtype = MESH_U8},
        {.data = roster->slots,
            .bytes = roster->member_count * sizeof *roster->slots,
            .dtype = MESH_U8},
    };
    CADRE_TRY(membership_wait(&wait, edge->mesh, error));
    return edge->mesh->ops->broadcast(edge->mesh, 0, 0, buffers, 2, NULL, error);
}

/* What a parent sent: it holds the generation's key, so this finds mistakes, not attacks. */
static cadre_status check(const struct task_roster *roster, const struct mesh_member *own,
    uint32_t slot, struct cadre_error *error)
{
    const struct mesh_member *received = &roster->members[roster->rank];
    bool good = roster->slots[roster->rank] == slot && received->replicas == own->replicas &&
                strncmp(received->address, own->address, MESH_ADDRESS_BYTES) == 0;
    for (uint32_t rank = 0; good && rank < roster->member_count; rank++) {
        const struct mesh_member *member = &roster->members[rank];
        good = memchr(member->address, '\0', MESH_ADDRESS_BYTES) != NULL && member->replicas > 0 &&
               member->replicas <= LIMIT_REPLICAS_PER_TASK &&
               roster->slots[rank] < LIMIT_TASKS_PER_JOB;
    }
    return good ? CADRE_OK
                : cadre_error_set(error, CADRE_INTERNAL,
                      "the roster that task %u passed on is not the one of this task's plan",
                      roster->slots[roster_parent(roster->rank)]);
}

static cadre_status receive_and_pass_on(const struct membership *membership,
    struct task_roster *roster, struct edges *edges, struct cadre_error *error)
{
    uint32_t at = 0;
    if (roster->rank > 0) {
        const struct mesh_member own = roster->members[roster->rank];
        uint32_t slot = roster->slots[roster->rank];
        CADRE_TRY(pass(membership, &edges->items[at++], roster, error));
        CADRE_TRY(check(roster, &own, slot, error));
    }
    for (; at < edges->count; at++) {
        CADRE_TRY(pass(membership, &edges->items[at], roster, error));
    }
    return CADRE_OK;
}

cadre_status roster_spread(const struct membership *membership, struct task *task,
    struct task_roster *roster, struct cadre_error *error)
{
    struct edges edges = {0};
    if (!roster->part) {
        return CADRE_OK;
    }
    CADRE_ASSERT(roster->rank < roster->member_count);
    cadre_status status = post_all(membership, task, roster, &edges, error);
    if (status == CADRE_OK) {
        status = receive_and_pass_on(membership, roster, &edges, error);
    }
    for (uint32_t i = 0; i < edges.count; i++) {
        task_detach_mesh(task, edges.items[i].mesh);
        edges.items[i].mesh->ops->close(edges.items[i].mesh);
    }
    roster->part = status != CADRE_OK;
    return status == CADRE_OK
               ? CADRE_OK
               : cadre_error_wrap(error, status, "receive and pass on the roster of %u tasks",
                     roster->member_count);
}
