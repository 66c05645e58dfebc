/* SPDX-License-Identifier: Apache-2.0
 * From a plan to a generation: roster, mesh, state, inputs, devices. regroup.c, join.c and
 * strategy_lifecycle/ call it. */
#include "worker/library/runtime/regroup/generation.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/connect_devices.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/task/membership.h"
#include "worker/library/runtime/task/roster_spread.h"

/* --- the mesh --- */

static void on_stall(void *user, uint32_t rank, uint64_t waited_us)
{
    const cadre_strategy *strategy = user;
    CADRE_ASSERT(strategy->roster.slots == NULL || rank < strategy->roster.member_count);
    if (strategy->roster.slots != NULL) {
        task_stall(strategy->task, strategy->roster.slots[rank], waited_us);
    }
}

static struct membership membership_of(cadre_strategy *strategy)
{
    return (struct membership){.environment = strategy->environment,
        .listener = strategy->listener,
        .devices = strategy->mesh_devices,
        .stalled = on_stall,
        .user = strategy};
}

static cadre_status regroup_generation_form(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->mesh == NULL);
    const struct membership membership = membership_of(strategy);
    struct mesh *mesh = NULL;
    cadre_status status = membership_post(&membership, &strategy->roster, &mesh, error);
    if (status != CADRE_OK) {
        return status;
    }
    task_attach_mesh(strategy->task, mesh);
    status = membership_wait(&membership, mesh, error);
    if (status != CADRE_OK) {
        task_detach_mesh(strategy->task, mesh);
        mesh->ops->close(mesh);
        return status;
    }
    strategy->mesh = mesh;
    return CADRE_OK;
}

cadre_status generation_repair(cadre_strategy *strategy, struct cadre_error *error)
{
    generation_close_mesh(strategy);
    CADRE_TRY(regroup_generation_form(strategy, error));
    return connect_devices(strategy, error);
}

void generation_close_mesh(cadre_strategy *strategy)
{
    if (strategy->mesh != NULL) {
        task_detach_mesh(strategy->task, strategy->mesh);
        strategy->mesh->ops->close(strategy->mesh);
        strategy->mesh = NULL;
        strategy->connected = false;
    }
}

/* --- the roster --- */

/* All tasks have equally many replicas, because the split of a batch and the replica ids assume it.
 */
static cadre_status check_roster(
    const cadre_strategy *strategy, const struct task_roster *roster, struct cadre_error *error)
{
    for (uint32_t i = 0; i < roster->member_count; i++) {
        if (roster->members[i].replicas != strategy->local_replicas) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "task %u has %u replicas, this one has %u; all tasks of a job must have as many",
                roster->slots[i], roster->members[i].replicas, strategy->local_replicas);
        }
    }
    return CADRE_OK;
}

/* Takes `roster` over. Replica ids change here and nowhere else. */
static void take_roster(cadre_strategy *strategy, const struct task_roster *roster)
{
    CADRE_ASSERT(roster->member_count > 0);
    CADRE_ASSERT(roster->rank < roster->member_count);
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
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
}

/* Whether the next generation follows a fault on the way into this one. */
static bool is_passing(cadre_status code)
{
    return strategy_is_peer_failure(code) || code == CADRE_UNAUTHENTICATED;
}

static cadre_status come_into(cadre_strategy *strategy, struct cadre_error *error)
{
    cadre_status status = regroup_generation_form(strategy, error);
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
        generation_close_mesh(strategy);
        struct generation generation = roster.generation;
        const struct membership membership = membership_of(strategy);
        status = roster_spread(&membership, strategy->task, &roster, error);
        if (status == CADRE_OK) {
            status = check_roster(strategy, &roster, error);
        }
        if (status != CADRE_OK) {
            task_roster_clear(&roster);
        } else {
            take_roster(strategy, &roster);
            status = come_into(strategy, error);
        }
        if (status == CADRE_OK) {
            CADRE_TRY(hooks_reopen(strategy, error));
            status = connect_devices(strategy, error);
            if (status == CADRE_OK || !strategy_is_peer_failure(status)) {
                return status;
            }
            /* The generation has begun: its first collective has failed. */
            task_peer_error(strategy->task, generation, error->text);
            continue;
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
    CADRE_ASSERT(strategy->mesh == NULL);
    struct task_roster roster = {.source = SOURCE_NONE, .member_count = 1};
    roster.members = calloc(1, sizeof *roster.members);
    if (roster.members == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a roster");
    }
    roster.members[0].replicas = strategy->local_replicas;
    strategy->state = STATE_WARM;
    strategy->warm_tasks = task_warm_tasks(strategy->task);
    take_roster(strategy, &roster);
    return regroup_generation_form(strategy, error);
}

cadre_status generation_alone(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->mesh != NULL);
    struct mesh_member self = {.replicas = strategy->local_replicas};
    const struct task_roster alone = {.source = SOURCE_NONE, .member_count = 1, .members = &self};
    const struct task_roster roster = strategy->roster;
    struct mesh *const mesh = strategy->mesh;
    const bool connected = strategy->connected;
    const uint32_t replica_count = strategy->replica_count;
    const struct membership membership = membership_of(strategy);
    struct mesh *own = NULL;
    cadre_status status = membership_post(&membership, &alone, &own, error);
    if (status == CADRE_OK) {
        status = membership_wait(&membership, own, error);
    }
    if (status == CADRE_OK) {
        strategy->roster = alone;
        strategy->mesh = own;
        strategy->connected = false;
        strategy->replica_count = strategy->local_replicas;
        status = strategy_each_replica(strategy, function, user, error);
        strategy->roster = roster;
        strategy->mesh = mesh;
        strategy->connected = connected;
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
    cadre_status status = task_await_assignment(strategy->task, &warm, error);
    if (status != CADRE_OK) {
        return status;
    }
    return warm ? be_alone(strategy, error) : generation_next(strategy, error);
}
