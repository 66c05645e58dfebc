/* SPDX-License-Identifier: Apache-2.0
 * A process of the host that writes anything anywhere on the control page, at any time: a task that
 * shares the page with it may get wrong sums or errors, but neither crashes nor hangs. A call may
 * return before the others have written to its buffers, which therefore stay allocated here. The
 * writer is a thread, with a mapping of its own. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "tests/unit/mesh/formed.h"
#include "worker/library/arena/arena.h"
#include "worker/library/mesh/wire/host.h"

#define TASKS           3
#define ELEMENTS        20000
#define TIMEOUT_US      (30 * CADRE_US_PER_MS)
#define FORM_US         (20 * CADRE_US_PER_S)
#define WAIT_TIMEOUT_US (10 * CADRE_US_PER_S) /* no wait takes so long, with any content */

struct world {
    struct mesh_listener *listeners[TASKS];
    struct mesh_member members[TASKS];
    struct mesh *meshes[TASKS];
    uint64_t generation;
    float *memory[TASKS]; /* in the arena */
    float *private_memory[TASKS];
};

static void form(struct world *world)
{
    struct cadre_error error;
    world->generation++;
    for (uint32_t i = 0; i < TASKS; i++) {
        struct mesh_config config = {.generation = world->generation,
            .rank = i,
            .members = world->members,
            .member_count = TASKS,
            .listener = world->listeners[i],
            .collective_timeout_us = TIMEOUT_US,
            .form_deadline_us = clock_monotonic_us() + speed_scaled_us(FORM_US)};
        assert_ok(mesh_host_ops.form_post(&config, &world->meshes[i], &error), &error);
    }
    await_formed(world->meshes, TASKS);
}

static void leave(struct world *world)
{
    for (uint32_t i = 0; i < TASKS; i++) {
        mesh_host_ops.close(world->meshes[i]);
    }
}

/* Where the vandal writes, and what. */
struct harm {
    size_t at;
    size_t bytes;
};

struct vandal {
    uint8_t *page;
    size_t page_bytes;
    struct harm harm; /* bytes 0: anywhere */
    uint64_t seed;
    atomic_bool stop;
};

static void *scribble(void *argument)
{
    struct vandal *vandal = argument;
    struct prng prng = {.state = vandal->seed};
    static const uint64_t nasty[] = {0, 1, 2, 0xff, UINT64_MAX, UINT64_MAX / 2, 4096, 1ull << 40};
    while (!atomic_load(&vandal->stop)) {
        uint64_t value = prng_uniform(&prng, 2) == 0
                             ? prng_next(&prng)
                             : nasty[prng_uniform(&prng, CADRE_COUNT_OF(nasty))];
        size_t span = vandal->harm.bytes > 0 ? vandal->harm.bytes : vandal->page_bytes - 8;
        size_t at = vandal->harm.bytes > 0 ? vandal->harm.at : 0;
        for (size_t i = 0; i < 8 && i < span; i++) {
            size_t place = at + (vandal->harm.bytes > 0 ? i : prng_uniform(&prng, span));
            ((volatile uint8_t *)vandal->page)[place] = (uint8_t)(value >> (8 * i));
        }
        if (prng_uniform(&prng, 4) == 0) {
            sched_yield();
        }
    }
    return NULL;
}

/* One victim: collectives of every kind, in shared and private memory, until one fails. */
struct victim {
    struct world *world;
    uint32_t task;
    cadre_status status;
    struct cadre_error error;
    uint64_t slowest_us;
};

static cadre_status one(struct victim *victim, uint32_t round)
{
    struct mesh *mesh = victim->world->meshes[victim->task];
    struct cadre_error *error = &victim->error;
    float *memory = round % 2 == 0 ? victim->world->memory[victim->task]
                                   : victim->world->private_memory[victim->task];
    struct mesh_buffer buffers[3] = {
        {.data = memory, .bytes = ELEMENTS * 2, .dtype = MESH_F32},
        {.data = memory + ELEMENTS / 2, .bytes = 40, .dtype = MESH_F16},
        {.data = memory + ELEMENTS / 2 + 10, .bytes = round % 3 == 0 ? 16 : 30000},
    };
    switch (round % 7) {
    case 0:
    case 1:
        return mesh_host_ops.all_reduce(mesh, 0, MESH_SUM, buffers, 3, NULL, error);
    case 2:
        return mesh_host_ops.broadcast(mesh, 0, round % TASKS, buffers, 1, NULL, error);
    case 3:
        return mesh_host_ops.all_gather(mesh, 0, memory, 20000, NULL, memory + 5000, NULL, error);
    case 4:
        buffers[0] = (struct mesh_buffer){
            .data = memory, .bytes = 16000, .dtype = MESH_BF16, .from = memory + 4000};
        return mesh_host_ops.reduce_scatter(mesh, 0, MESH_MAX, buffers, NULL, error);
    case 5:
        return mesh_host_ops.all_reduce(mesh, 0, MESH_MIN, buffers + 1, 1, NULL, error);
    default:
        return mesh_host_ops.barrier(mesh, 0, NULL, error);
    }
}

static void *suffer(void *argument)
{
    struct victim *victim = argument;
    for (uint32_t round = 0; round < 100; round++) {
        uint64_t began_us = clock_monotonic_us();
        victim->status = one(victim, round);
        uint64_t took_us = clock_monotonic_us() - began_us;
        victim->slowest_us = took_us > victim->slowest_us ? took_us : victim->slowest_us;
        if (victim->status != CADRE_OK && victim->status != CADRE_INVALID_ARGUMENT) {
            break;
        }
    }
    return NULL;
}

/* One generation under that harm. */
static void endure(struct world *world, struct harm harm, uint64_t seed)
{
    struct victim victims[TASKS];
    pthread_t threads[TASKS];
    pthread_t thread;
    form(world);
    const struct group *group = &((struct host_mesh *)world->meshes[0])->group;
    struct vandal vandal = {
        .page_bytes = (size_t)((uint8_t *)&group->slots[TASKS] - (uint8_t *)group->head),
        .harm = harm,
        .seed = seed};
    vandal.page = mmap(NULL, group->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, group->fd, 0);
    assert_ptr_not_equal(vandal.page, MAP_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, scribble, &vandal), 0);
    for (uint32_t i = 0; i < TASKS; i++) {
        victims[i] = (struct victim){.world = world, .task = i};
        assert_int_equal(pthread_create(&threads[i], NULL, suffer, &victims[i]), 0);
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(victims[i].slowest_us < speed_scaled_us(WAIT_TIMEOUT_US));
        if (victims[i].status != CADRE_OK) {
            assert_true(strlen(victims[i].error.text) > 0);
        }
    }
    atomic_store(&vandal.stop, true);
    pthread_join(thread, NULL);
    munmap(vandal.page, group->bytes);
    leave(world);
}

static struct world the_world;

#define OF_HEAD(field)                                                                             \
    {                                                                                              \
        offsetof(struct group_head, field), sizeof(((struct group_head *)0)->field)                \
    }
#define OF_SLOT(field)                                                                             \
    {                                                                                              \
        4096 + sizeof(struct group_slot) + offsetof(struct group_slot, field),                     \
            sizeof(((struct group_slot *)0)->field)                                                \
    }
#define OF_POST(field)                                                                             \
    {4096 + sizeof(struct group_slot) + offsetof(struct group_post, field),                        \
        sizeof(((struct group_post *)0)->field)},                                                  \
    {                                                                                              \
        4096 + sizeof(struct group_slot) + sizeof(struct group_post) +                             \
            offsetof(struct group_post, field),                                                    \
            sizeof(((struct group_post *)0)->field)                                                \
    }

/* Every field of slot 1, one after the other. */
static void test_every_field(void **state)
{
    (void)state;
    static const struct harm harms[] = {OF_HEAD(broken), OF_HEAD(leaves), OF_HEAD(code),
        OF_HEAD(rank), OF_HEAD(text), OF_HEAD(verdict), OF_HEAD(verdict_text), OF_SLOT(done),
        OF_SLOT(attached), OF_SLOT(sleepers), OF_SLOT(touching), OF_SLOT(left), OF_SLOT(text),
        OF_POST(stamp), OF_POST(kind), OF_POST(op), OF_POST(dtype), OF_POST(flags), OF_POST(root),
        OF_POST(tag), OF_POST(count), OF_POST(bytes), OF_POST(layout), OF_POST(key),
        OF_POST(payload.spans[0].data), OF_POST(payload.spans[0].from),
        OF_POST(payload.spans[1].data), OF_POST(payload.spans[2].from)};
    for (size_t i = 0; i < CADRE_COUNT_OF(harms); i++) {
        endure(&the_world, harms[i], i + 1);
    }
}

static void test_anywhere(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        endure(&the_world, (struct harm){.bytes = 0}, seed);
    }
}

/* The reason on the page names a task that the mesh does not have. */
static void test_a_breaker_of_no_rank(void **state)
{
    (void)state;
    form(&the_world);
    struct group_head *head = ((struct host_mesh *)the_world.meshes[0])->group.head;
    head->rank = UINT32_MAX;
    atomic_store(&head->broken, GROUP_BROKEN);
    for (uint32_t i = 0; i < TASKS; i++) {
        struct cadre_error error;
        cadre_status status = mesh_host_ops.barrier(the_world.meshes[i], 0, NULL, &error);
        if (status == CADRE_OK) {
            assert_int_equal(i, TASKS - 1); /* all had come, before it looked at the page */
            continue;
        }
        assert_int_equal(status, CADRE_ABORTED);
        assert_non_null(strstr(error.text, "another task of this host ended the mesh"));
    }
    leave(&the_world);
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error;
    if (arena_open(&error) != CADRE_OK) {
        return 1;
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        struct mesh_member *member = &the_world.members[i];
        member->replicas = 1;
        the_world.memory[i] = arena_get(ELEMENTS * sizeof(float));
        the_world.private_memory[i] = calloc(ELEMENTS, sizeof(float));
        if (the_world.memory[i] == NULL || the_world.private_memory[i] == NULL ||
            mesh_listener_open(
                "127.0.0.1", NULL, &the_world.listeners[i], member->address, &error) != CADRE_OK) {
            return 1;
        }
        memset(the_world.memory[i], 0, ELEMENTS * sizeof(float));
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TASKS; i++) {
        arena_give(the_world.memory[i], ELEMENTS * sizeof(float));
        free(the_world.private_memory[i]);
        mesh_listener_close(the_world.listeners[i]);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_breaker_of_no_rank),
        cmocka_unit_test(test_every_field),
        cmocka_unit_test(test_anywhere),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
