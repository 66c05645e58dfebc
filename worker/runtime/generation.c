/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/generation.h"

#include <poll.h>
#include <string.h>

#include "common/base/clock.h"

#define FORM_US      (60 * CADRE_US_PER_S)
#define FORM_POLL_MS 20

static cadre_status wait_formed(struct mesh *mesh, struct cadre_error *error)
{
    cadre_status status;
    while ((status = mesh->ops->form_test(mesh, error)) == CADRE_PENDING) {
        int fd = mesh->ops->form_fd(mesh);
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        poll(&waited, 1, FORM_POLL_MS); /* whatever it says, the test says more */
    }
    return status;
}

static cadre_status form(cadre_strategy *strategy, struct cadre_error *error)
{
    const struct task_roster *roster = &strategy->roster;
    struct mesh_config config = {
        .generation = roster->generation.number,
        .nonce = roster->generation.nonce,
        .rank = roster->rank,
        .members = roster->members,
        .member_count = roster->member_count,
        .listener = roster->member_count > 1 ? strategy->listener : NULL,
        .form_deadline_us = clock_monotonic_us() + FORM_US,
        .collective_timeout_us = strategy->environment->collective_timeout_us,
    };
    memcpy(config.key, roster->key, sizeof config.key);
    struct mesh *mesh = NULL;
    cadre_status status = mesh_host_ops.form_post(&config, &mesh, error);
    if (status != CADRE_OK) {
        return status;
    }
    task_attach_mesh(strategy->task, mesh);
    status = wait_formed(mesh, error);
    if (status != CADRE_OK) {
        task_attach_mesh(strategy->task, NULL);
        mesh->ops->close(mesh);
        return status;
    }
    strategy->mesh = mesh;
    return CADRE_OK;
}

/* All tasks have equally many replicas, as the split of a batch and the replica ids assume. */
static cadre_status check_roster(const cadre_strategy *strategy, struct cadre_error *error)
{
    const struct task_roster *roster = &strategy->roster;
    for (uint32_t i = 0; i < roster->member_count; i++) {
        if (roster->members[i].replicas != strategy->local_replicas) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "task %u has %u replicas, this one has %u; all tasks of a job need equally many", i,
                roster->members[i].replicas, strategy->local_replicas);
        }
    }
    if (roster->resume != 0) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "the coordinator wants this task to go on at step %llu, and taking over the state of "
            "another task is not there yet; submit the job again",
            (unsigned long long)roster->resume);
    }
    return CADRE_OK;
}

cadre_status generation_join(cadre_strategy *strategy, struct cadre_error *error)
{
    cadre_status status = task_await_plan(strategy->task, &strategy->roster, error);
    if (status != CADRE_OK) {
        return status;
    }
    status = check_roster(strategy, error);
    if (status == CADRE_OK) {
        status = form(strategy, error);
    }
    if (status != CADRE_OK) {
        task_sync_failed(strategy->task, error->text);
        return cadre_error_wrap(error, status, "join the job's generation %llu",
            (unsigned long long)strategy->roster.generation.number);
    }
    strategy->replica_count = strategy->roster.member_count * strategy->local_replicas;
    strategy->replica_first = strategy->roster.rank * strategy->local_replicas;
    task_synced(strategy->task);
    return CADRE_OK;
}

cadre_status generation_repair(cadre_strategy *strategy, struct cadre_error *error)
{
    generation_leave(strategy);
    return form(strategy, error);
}

void generation_leave(cadre_strategy *strategy)
{
    if (strategy->mesh != NULL) {
        task_attach_mesh(strategy->task, NULL);
        strategy->mesh->ops->close(strategy->mesh);
        strategy->mesh = NULL;
    }
}
