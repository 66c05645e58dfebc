/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/membership.h"

#include <poll.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/mesh/mesh_device.h"

/* A member that computes between two steps comes when it needs the others, so the others wait for
 * it as long as in a collective. */
#define STALL_FIRST_US CADRE_US_PER_S
#define STALL_AGAIN_US (5 * CADRE_US_PER_S)

cadre_status membership_listen(const struct environment *environment,
    struct mesh_listener **ret_listener, char ret_address[MESH_ADDRESS_BYTES],
    struct cadre_error *error)
{
    *ret_listener = NULL;
    ret_address[0] = '\0';
    if (!environment->attached) {
        return CADRE_OK;
    }
    cadre_status status = mesh_listener_open(
        environment->mesh_host, &environment->mesh_ports, ret_listener, ret_address, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "open this task's mesh listener");
}

cadre_status membership_open(struct session *session, struct task_identity identity,
    struct task **ret_task, struct cadre_error *error)
{
    CADRE_ASSERT(session != NULL);
    CADRE_ASSERT(identity.replicas > 0);
    identity.slot = session->slot;
    identity.incarnation = session->incarnation;
    *ret_task = NULL;
    return task_open(session, &identity, ret_task, error);
}

cadre_status membership_post(const struct membership *membership, const struct task_roster *roster,
    struct mesh **ret_mesh, struct cadre_error *error)
{
    CADRE_ASSERT(roster->member_count > 0);
    CADRE_ASSERT(roster->rank < roster->member_count);
    CADRE_ASSERT(*ret_mesh == NULL);
    uint64_t timeout_us = membership->environment->collective_timeout_us;
    struct mesh_config config = {
        .generation = roster->generation.number,
        .nonce = roster->generation.nonce,
        .rank = roster->rank,
        .members = roster->members,
        .member_count = roster->member_count,
        .listener = roster->member_count > 1 ? membership->listener : NULL,
        .form_deadline_us = timeout_us > 0 ? clock_monotonic_us() + timeout_us : CADRE_TIME_NEVER,
        .collective_timeout_us = timeout_us,
        .stalled = membership->stalled,
        .stalled_user = membership->user,
        .devices = membership->devices,
    };
    memcpy(config.key, roster->key, sizeof config.key);
    /* Others may have devices where this task has none; their points tell it to all. */
    bool host = membership->devices == NULL && roster->member_count == 1;
    const struct mesh_ops *peer = host ? &mesh_host_ops : &mesh_device_ops;
    CADRE_TRY(peer->form_post(&config, ret_mesh, error));
    mesh_device_expect(*ret_mesh, roster->member_count == 1);
    return CADRE_OK;
}

static void report_missing(
    const struct membership *membership, const struct mesh *mesh, uint64_t waited_us)
{
    uint32_t rank = mesh->ops->form_missing(mesh);
    if (rank != UINT32_MAX && membership->stalled != NULL) {
        membership->stalled(membership->user, rank, waited_us);
    }
}

cadre_status membership_wait(
    const struct membership *membership, struct mesh *mesh, struct cadre_error *error)
{
    CADRE_ASSERT(mesh != NULL);
    uint64_t since_us = clock_monotonic_us();
    uint64_t report_at_us = since_us + STALL_FIRST_US;
    cadre_status status;
    while ((status = mesh->ops->form_test(mesh, error)) == CADRE_PENDING) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= report_at_us) {
            report_at_us = now_us + STALL_AGAIN_US;
            report_missing(membership, mesh, now_us - since_us);
        }
        struct pollfd waited = {.fd = mesh->ops->form_fd(mesh), .events = POLLIN};
        uint64_t left_us = report_at_us > now_us ? report_at_us - now_us : 0;
        poll(&waited, 1, (int)(left_us / CADRE_US_PER_MS) + 1); /* form_test returns the outcome */
    }
    return status;
}
