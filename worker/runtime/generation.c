/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/generation.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/runtime/input.h"
#include "worker/runtime/sync.h"

/* A member that computes between two steps comes when it needs the others: it is waited for as long
 * as in a collective. */
#define STALL_FIRST_US CADRE_US_PER_S
#define STALL_AGAIN_US (5 * CADRE_US_PER_S)

/* --- the mesh --- */

static void on_stall(void *user, uint32_t rank, uint64_t waited_us)
{
    const cadre_strategy *strategy = user;
    if (strategy->roster.slots != NULL) {
        task_stall(strategy->task, strategy->roster.slots[rank], waited_us);
    }
}

static cadre_status wait_formed(
    cadre_strategy *strategy, struct mesh *mesh, struct cadre_error *error)
{
    uint64_t since_us = clock_monotonic_us();
    uint64_t tell_us = since_us + STALL_FIRST_US;
    cadre_status status;
    while ((status = mesh->ops->form_test(mesh, error)) == CADRE_PENDING) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= tell_us) {
            tell_us = now_us + STALL_AGAIN_US;
            uint32_t rank = mesh->ops->form_missing(mesh);
            if (rank != UINT32_MAX) {
                on_stall(strategy, rank, now_us - since_us);
            }
        }
        struct pollfd waited = {.fd = mesh->ops->form_fd(mesh), .events = POLLIN};
        uint64_t left_us = tell_us > now_us ? tell_us - now_us : 0;
        poll(&waited, 1, (int)(left_us / CADRE_US_PER_MS) + 1); /* the test says more */
    }
    return status;
}

static cadre_status post(cadre_strategy *strategy, const struct task_roster *roster,
    struct mesh **ret_mesh, struct cadre_error *error)
{
    uint64_t timeout_us = strategy->environment->collective_timeout_us;
    struct mesh_config config = {
        .generation = roster->generation.number,
        .nonce = roster->generation.nonce,
        .rank = roster->rank,
        .members = roster->members,
        .member_count = roster->member_count,
        .listener = roster->member_count > 1 ? strategy->listener : NULL,
        .form_deadline_us = timeout_us > 0 ? clock_monotonic_us() + timeout_us : CADRE_TIME_NEVER,
        .collective_timeout_us = timeout_us,
        .stalled = on_stall,
        .stalled_user = strategy,
    };
    memcpy(config.key, roster->key, sizeof config.key);
    return mesh_host_ops.form_post(&config, ret_mesh, error);
}

static cadre_status form(cadre_strategy *strategy, struct cadre_error *error)
{
    struct mesh *mesh = NULL;
    cadre_status status = post(strategy, &strategy->roster, &mesh, error);
    if (status != CADRE_OK) {
        return status;
    }
    task_attach_mesh(strategy->task, mesh);
    status = wait_formed(strategy, mesh, error);
    if (status != CADRE_OK) {
        task_attach_mesh(strategy->task, NULL);
        mesh->ops->close(mesh);
        return status;
    }
    strategy->mesh = mesh;
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

/* --- the roster --- */

/* All tasks have equally many replicas, as the split of a batch and the replica ids assume. */
static cadre_status check_roster(
    const cadre_strategy *strategy, const struct task_roster *roster, struct cadre_error *error)
{
    for (uint32_t i = 0; i < roster->member_count; i++) {
        if (roster->members[i].replicas != strategy->local_replicas) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "task %u has %u replicas, this one has %u; all tasks of a job need equally many",
                roster->slots[i], roster->members[i].replicas, strategy->local_replicas);
        }
    }
    return CADRE_OK;
}

/* Takes `roster` over. Replica ids change here and nowhere else. */
static void take_roster(cadre_strategy *strategy, const struct task_roster *roster)
{
    bool same = strategy->layout > 0 && roster->rank == strategy->roster.rank &&
                roster->member_count == strategy->roster.member_count;
    strategy->layout += same ? 0 : 1;
    task_roster_clear(&strategy->roster);
    strategy->roster = *roster;
    strategy->replica_count = roster->member_count * strategy->local_replicas;
    strategy->replica_first = roster->rank * strategy->local_replicas;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        strategy->replicas[i].id = strategy->replica_first + i;
    }
    strategy->cursor_end = 0; /* the new generation has been told of no run */
}

/* Whether a fault on the way into a generation is answered with the next one. */
static bool is_passing(cadre_status code)
{
    return strategy_is_peers(code) || code == CADRE_UNAUTHENTICATED;
}

static cadre_status come_into(cadre_strategy *strategy, struct cadre_error *error)
{
    cadre_status status = form(strategy, error);
    if (status == CADRE_OK) {
        status = sync_state(strategy, error);
    }
    return status;
}

cadre_status generation_next(cadre_strategy *strategy, struct cadre_error *error)
{
    for (;;) {
        struct task_roster roster = {0};
        cadre_status status = task_await_plan(strategy->task, &roster, error);
        if (status != CADRE_OK) {
            return status;
        }
        generation_leave(strategy);
        struct generation generation = roster.generation;
        status = check_roster(strategy, &roster, error);
        if (status != CADRE_OK) {
            task_roster_clear(&roster);
        } else {
            take_roster(strategy, &roster);
            status = come_into(strategy, error);
        }
        if (status == CADRE_OK) {
            return distributed_reopen(strategy, error);
        }
        if (!is_passing(status)) {
            return status;
        }
        cadre_error_wrap(
            error, status, "join the job's generation %llu", (unsigned long long)generation.number);
        task_sync_failed(strategy->task, generation, error->text);
    }
}

/* --- the first --- */

/* Until it joins, a warm task's collectives are its own. */
static cadre_status be_alone(cadre_strategy *strategy, struct cadre_error *error)
{
    struct task_roster roster = {.source = SOURCE_NONE, .member_count = 1};
    roster.members = calloc(1, sizeof *roster.members);
    if (roster.members == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a roster");
    }
    roster.members[0].replicas = strategy->local_replicas;
    strategy->state = STATE_WARM;
    strategy->warm_tasks = task_warm_tasks(strategy->task);
    take_roster(strategy, &roster);
    return form(strategy, error);
}

cadre_status generation_alone(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error)
{
    struct mesh_member self = {.replicas = strategy->local_replicas};
    const struct task_roster alone = {.source = SOURCE_NONE, .member_count = 1, .members = &self};
    const struct task_roster roster = strategy->roster;
    struct mesh *const mesh = strategy->mesh;
    const uint32_t replica_count = strategy->replica_count;
    struct mesh *own = NULL;
    cadre_status status = post(strategy, &alone, &own, error);
    if (status == CADRE_OK) {
        status = wait_formed(strategy, own, error);
    }
    if (status == CADRE_OK) {
        strategy->roster = alone;
        strategy->mesh = own;
        strategy->replica_count = strategy->local_replicas;
        status = strategy_each_replica(strategy, function, user, error);
        strategy->roster = roster;
        strategy->mesh = mesh;
        strategy->replica_count = replica_count;
    }
    if (own != NULL) {
        own->ops->close(own);
    }
    return status;
}

cadre_status generation_open(cadre_strategy *strategy, struct cadre_error *error)
{
    bool warm = false;
    cadre_status status = task_await_place(strategy->task, &warm, error);
    if (status != CADRE_OK) {
        return status;
    }
    return warm ? be_alone(strategy, error) : generation_next(strategy, error);
}
