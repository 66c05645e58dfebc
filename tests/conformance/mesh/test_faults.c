/* SPDX-License-Identifier: Apache-2.0
 * The end of a mesh, in each way: abort, a task that exits, a replica that never comes. Every
 * blocked call returns with the reason, and the next generation forms on the same listeners. */
#include "tests/conformance/mesh/world.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define LARGE_BYTES (WORLD_LARGE(786433) * sizeof(float))

enum kind { REDUCE_SMALL, REDUCE_LARGE, BROADCAST_SMALL, BROADCAST_LARGE, GATHER, BARRIER, KINDS };

/* One collective of that kind; `memory` is this replica's. */
static cadre_status collective(struct seat *seat, enum kind kind, float *memory)
{
    bool large = kind == REDUCE_LARGE || kind == BROADCAST_LARGE;
    struct mesh_buffer buffer = {
        .data = memory, .bytes = large ? LARGE_BYTES : 64, .dtype = MESH_F32};
    size_t sizes[WORLD_REPLICAS_MAX];
    void *gathered = NULL;
    cadre_status status = CADRE_OK;
    switch (kind) {
    case REDUCE_SMALL:
    case REDUCE_LARGE:
        return seat->ops->all_reduce(
            seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    case BROADCAST_SMALL:
    case BROADCAST_LARGE:
        return seat->ops->broadcast(seat->mesh, seat->local, 0, &buffer, 1, NULL, &seat->error);
    case GATHER:
        status = mesh_gather_any(seat->mesh, seat->local, seat->world->replica_count, memory, 100,
            &gathered, sizes, &seat->error);
        free(gathered);
        return status;
    default:
        return seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error);
    }
}

/* All but the last replica call the collective; that one does what the test names, once the others
 * have called. */
struct plan {
    enum kind kind;
    cadre_status (*last)(struct seat *seat);
};

static cadre_status all_but_last(struct seat *seat)
{
    const struct plan *plan = seat->data;
    struct world *world = seat->world;
    if (seat->global + 1 == world->replica_count) {
        while (atomic_load(&world->counter) + 1 < world->replica_count) {
            sched_yield();
        }
        return plan->last(seat);
    }
    float *memory = calloc(LARGE_BYTES, 1);
    SEAT_CHECK(seat, memory != NULL);
    atomic_fetch_add(&world->counter, 1);
    cadre_status status = collective(seat, plan->kind, memory);
    free(memory); /* no thread may touch it any more: the address sanitizer checks */
    return status;
}

static cadre_status abort_now(struct seat *seat)
{
    seat->ops->abort(seat->mesh, "the test says so");
    seat->ops->abort(seat->mesh, "a second reason, which is not kept");
    return seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error);
}

static void expect_all(
    struct world *world, struct seat *seats, cadre_status status, const char *part)
{
    for (uint32_t i = 0; i < world->replica_count; i++) {
        assert_error(seats[i].status, status, &seats[i].error, part);
    }
}

/* For ever after, on every task. */
static cadre_status once_more(struct seat *seat)
{
    return seat->ops->barrier(seat->mesh, seat->local, NULL, &seat->error);
}

static void reform(struct world *world)
{
    world_close_meshes(world);
    world_form(world);
    world_run_ok(world, world_sum_of_ones, NULL);
}

static void aborts(struct world *world)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_form(world);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct plan plan = {.kind = (enum kind)kind, .last = abort_now};
        world_run(world, all_but_last, &plan, seats, NULL);
        expect_all(world, seats, CADRE_ABORTED, "the test says so");
        world_run(world, once_more, NULL, seats, NULL);
        expect_all(world, seats, CADRE_ABORTED, "the test says so");
        reform(world);
    }
}

/* Every replica runs collectives until the mesh has ended. */
static cadre_status run_until_gone(struct seat *seat)
{
    enum kind kind = *(const enum kind *)seat->data;
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        float *memory = calloc(LARGE_BYTES, 1);
        SEAT_CHECK(seat, memory != NULL);
        status = collective(seat, kind, memory);
        free(memory);
        atomic_fetch_add(&seat->world->counter, 1);
    }
    return status;
}

static void abort_after_some(struct world *world)
{
    while (atomic_load(&world->counter) < 3 * world->replica_count) {
        sched_yield();
    }
    world->ops->abort(world->meshes[world->task_count - 1], "enough");
}

static void aborts_under_way(struct world *world)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_form(world);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        enum kind which = (enum kind)kind;
        world_run(world, run_until_gone, &which, seats, abort_after_some);
        for (uint32_t i = 0; i < world->replica_count; i++) {
            assert_int_equal(seats[i].status, CADRE_ABORTED);
        }
        reform(world);
    }
}

static void abort_while_forming(struct world *world)
{
    struct cadre_error error;
    world->generation++;
    struct mesh_config config = world_config(world, 0);
    assert_ok(world->ops->form_post(&config, &world->meshes[0], &error), &error);
    assert_int_equal(world->ops->form_test(world->meshes[0], &error), CADRE_PENDING);
    world->ops->abort(world->meshes[0], "no time to form");
    assert_error(world_poll(world, 0, &error), CADRE_ABORTED, &error, "no time to form");
    assert_error(world_poll(world, 0, &error), CADRE_ABORTED, &error, "no time to form");
    reform(world);
}

static cadre_status go_away(struct seat *seat)
{
    seat->ops->close(seat->mesh);
    seat->world->meshes[seat->task] = NULL;
    return CADRE_OK;
}

/* The task of the last replica closes its mesh while the others wait in a collective. */
static void deaths(struct world *world)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    if (world->members[world->task_count - 1].replicas > 1) {
        return; /* its other replicas would still be inside, which is no way to use a mesh */
    }
    world_form(world);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct plan plan = {.kind = (enum kind)kind, .last = go_away};
        char who[64];
        snprintf(who, sizeof who, "the task of rank %u closed its mesh before collective",
            world->task_count - 1);
        world_run(world, all_but_last, &plan, seats, NULL);
        for (uint32_t i = 0; i + 1 < world->replica_count; i++) {
            assert_error(seats[i].status, CADRE_ABORTED, &seats[i].error, who);
        }
        reform(world);
    }
}

/* On one host it is enough that one task calls. Between hosts all do that are left. */
static cadre_status without_last_task(struct seat *seat)
{
    uint32_t last = seat->world->task_count - 1;
    bool calls = seat->world->seats.host_count == 1 ? seat->task == 0 : seat->task < last;
    return calls ? once_more(seat) : CADRE_OK;
}

/* A task that closes its mesh when all is done disturbs no other until the next call. */
static void orderly_halt(struct world *world)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_form(world);
    world_run_ok(world, world_sum_of_ones, NULL);
    uint32_t leaver = world->task_count - 1;
    world->ops->close(world->meshes[leaver]);
    world->meshes[leaver] = NULL;
    world_run(world, without_last_task, NULL, seats, NULL);
    for (uint32_t i = 0; i < world->members[0].replicas; i++) {
        assert_error(seats[i].status, CADRE_ABORTED, &seats[i].error, "closed its mesh");
    }
    reform(world);
}

/* Many rounds in which tasks close right after the last collective, while slower ones are still in
 * it. */
static cadre_status reduce_and_report(struct seat *seat)
{
    cadre_status status = world_sum_of_ones(seat);
    if (status == CADRE_OK && seat->world->members[seat->task].replicas == 1) {
        return go_away(seat);
    }
    return status;
}

static void closing_races(struct world *world)
{
    for (unsigned round = 0; round < world_rounds(20); round++) {
        world_form(world);
        world_run_ok(world, reduce_and_report, NULL);
        world_close_meshes(world);
    }
}

static cadre_status stay_away(struct seat *seat)
{
    (void)seat;
    return CADRE_OK;
}

/* A replica that comes too late may find the others' part of the collective still in the
 * connection: that one may succeed, or not match, but it is the last. */
static cadre_status late_or_once_more(struct seat *seat)
{
    cadre_status status = once_more(seat);
    bool alone = seat->global + 1 == seat->world->replica_count &&
                 seat->world->members[seat->task].replicas == 1;
    return alone && (status == CADRE_OK || status == CADRE_INVALID_ARGUMENT) ? once_more(seat)
                                                                             : status;
}

/* The message for those in the task of the last replica, or for those in other tasks of its
 * host. */
static void name_the_last(const struct world *world, const struct seat *seat, char ret_name[64])
{
    if (seat->task == world->task_count - 1) {
        snprintf(ret_name, 64, "replica %u (local", world->replica_count - 1);
    } else {
        snprintf(ret_name, 64, "the task of rank %u", world->task_count - 1);
    }
}

static bool all_blame_the_last(const struct world *world, const struct seat *seats)
{
    char name[64];
    for (uint32_t i = 0; i + 1 < world->replica_count; i++) {
        name_the_last(world, &seats[i], name);
        if (seats[i].status != CADRE_DEADLINE_EXCEEDED ||
            strstr(seats[i].error.text, name) == NULL) {
            return false;
        }
    }
    return true;
}

/* Forms and runs until only that replica is late: on a busy machine any thread may be, so each
 * attempt has twice the time, a few times. */
static void run_without_the_last(
    struct world *world, const struct plan *plan, struct seat seats[WORLD_REPLICAS_MAX])
{
    world->timeout_us = 100 * CADRE_US_PER_MS;
    world_form(world);
    world_run(world, all_but_last, plan, seats, NULL);
    while (!all_blame_the_last(world, seats) && world->timeout_us < 3 * CADRE_US_PER_S) {
        world_close_meshes(world);
        world->timeout_us *= 2;
        world_form(world);
        world_run(world, all_but_last, plan, seats, NULL);
    }
}

static void deadlines(struct world *world)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    char name[64];
    static const enum kind kinds[] = {REDUCE_SMALL, BROADCAST_LARGE, GATHER};
    for (size_t kind = 0; kind < CADRE_COUNT_OF(kinds) && world->replica_count > 1; kind++) {
        struct plan plan = {.kind = kinds[kind], .last = stay_away};
        run_without_the_last(world, &plan, seats);
        for (uint32_t i = 0; i + 1 < world->replica_count; i++) {
            name_the_last(world, &seats[i], name);
            assert_error(
                seats[i].status, CADRE_DEADLINE_EXCEEDED, &seats[i].error, "did not come to");
            assert_error(seats[i].status, CADRE_DEADLINE_EXCEEDED, &seats[i].error, name);
        }
        world_run(world, late_or_once_more, NULL, seats, NULL);
        for (uint32_t i = 0; i + 1 < world->replica_count; i++) {
            assert_error(seats[i].status, CADRE_ABORTED, &seats[i].error, "did not come to");
        }
        cadre_status last = seats[world->replica_count - 1].status;
        assert_true(last == CADRE_ABORTED || last == CADRE_DEADLINE_EXCEEDED);
        world_close_meshes(world);
    }
}

/* The next generation can be posted by some while the others have not left the old one. */
static void early_connections(struct world *world)
{
    struct cadre_error error;
    world_form(world);
    struct mesh *old = world->meshes[0];
    world->generation++;
    for (uint32_t task = 1; task < world->task_count; task++) {
        world->ops->close(world->meshes[task]);
        struct mesh_config config = world_config(world, task);
        assert_ok(world->ops->form_post(&config, &world->meshes[task], &error), &error);
        assert_int_equal(world->ops->form_test(world->meshes[task], &error), CADRE_PENDING);
    }
    world->ops->abort(old, "superseded");
    struct mesh_config config = world_config(world, 0);
    assert_ok(world->ops->form_post(&config, &world->meshes[0], &error), &error);
    world_finish_forming(world);
    world->ops->close(old);
    world_run_ok(world, world_sum_of_ones, NULL);
}

#define TEST(name, several)                                                                        \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        world_each(name, several);                                                                 \
    }

TEST(aborts, false)
TEST(aborts_under_way, false)
TEST(abort_while_forming, true)
TEST(deaths, true)
TEST(orderly_halt, true)
TEST(closing_races, true)
TEST(deadlines, false)
TEST(early_connections, true)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aborts),
        cmocka_unit_test(test_aborts_under_way),
        cmocka_unit_test(test_abort_while_forming),
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_orderly_halt),
        cmocka_unit_test(test_closing_races),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_early_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
