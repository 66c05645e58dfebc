/* SPDX-License-Identifier: Apache-2.0
 * Another task of the host that posts addresses of its buffers which it does not share: each
 * collective checks the whole span before it reads or writes there. The test plays that task on the
 * control page, by hand. */
#include <pthread.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "tests/unit/mesh/formed.h"
#include "worker/library/arena/arena.h"
#include "worker/library/mesh/wire/host.h"

#define TASKS      2
#define ELEMENTS   20000 /* more than travels with a post */
#define BYTES      (ELEMENTS * sizeof(float))
#define TIMEOUT_US (60 * CADRE_US_PER_S)
#define FORM_US    (60 * CADRE_US_PER_S)

struct world {
    struct mesh_listener *listeners[TASKS];
    struct mesh_member members[TASKS];
    struct mesh *meshes[TASKS];
    uint64_t generation;
    float *memory; /* of the task under test, in the arena; large enough for an all_gather */
    float *theirs; /* where the other task's buffers may be */
};

static struct world world;

static void form(void)
{
    struct cadre_error error;
    world.generation++;
    for (uint32_t i = 0; i < TASKS; i++) {
        struct mesh_config config = {.generation = world.generation,
            .rank = i,
            .members = world.members,
            .member_count = TASKS,
            .listener = world.listeners[i],
            .collective_timeout_us = TIMEOUT_US,
            .form_deadline_us = clock_monotonic_us() + speed_scaled_us(FORM_US)};
        assert_ok(mesh_host_ops.form_post(&config, &world.meshes[i], &error), &error);
    }
    await_formed(world.meshes, TASKS);
}

/* The collective of the task under test. `span_bytes`: its use of the other's span. */
struct call {
    const char *name;
    size_t span_bytes;
    bool written; /* it writes to the other's buffer, too */
    cadre_status (*run)(struct mesh *mesh, struct cadre_error *error);
};

static cadre_status all_reduce(struct mesh *mesh, struct cadre_error *error)
{
    struct mesh_buffer buffer = {.data = world.memory, .bytes = BYTES, .dtype = MESH_F32};
    return mesh_host_ops.all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, error);
}

static cadre_status broadcast(struct mesh *mesh, struct cadre_error *error)
{
    struct mesh_buffer buffer = {.data = world.memory, .bytes = BYTES, .dtype = MESH_F32};
    return mesh_host_ops.broadcast(mesh, 0, 1, &buffer, 1, NULL, error);
}

static cadre_status all_gather(struct mesh *mesh, struct cadre_error *error)
{
    return mesh_host_ops.all_gather(
        mesh, 0, world.memory, BYTES, NULL, world.memory + ELEMENTS, NULL, error);
}

static cadre_status reduce_scatter(struct mesh *mesh, struct cadre_error *error)
{
    struct mesh_buffer part = {.data = world.memory + 2 * ELEMENTS,
        .bytes = BYTES,
        .dtype = MESH_F32,
        .from = world.memory};
    return mesh_host_ops.reduce_scatter(mesh, 0, MESH_SUM, &part, NULL, error);
}

struct caller {
    const struct call *call;
    cadre_status status;
    struct cadre_error error;
};

static void *run(void *argument)
{
    struct caller *caller = argument;
    caller->status = caller->call->run(world.meshes[0], &caller->error);
    return NULL;
}

static bool has_posted(void *data)
{
    struct group *group = data;
    return group_reached(&group->slots[0].posts[1].stamp, GROUP_STEP);
}

/* The other task comes to the first collective with the same call, and posts that its buffer is
 * there. It is in each following step already. */
static void play(struct group *group, uint64_t data, uint64_t from)
{
    struct group_post *post = &group->slots[1].posts[1];
    const struct group_post *first = &group->slots[0].posts[1];
    assert_true(test_wait(has_posted, group, TIMEOUT_US));
    post->kind = first->kind;
    post->op = first->op;
    post->dtype = first->dtype;
    post->flags = 0;
    post->root = first->root;
    post->count = first->count;
    post->bytes = first->bytes;
    post->layout = first->layout;
    post->key = first->key;
    atomic_store(&post->payload.spans[0].data, data);
    atomic_store(&post->payload.spans[0].from, from);
    group_raise(group, 1, &group->slots[1].done, 16 * GROUP_STEP);
    group_raise(group, 1, &post->stamp, GROUP_STEP);
}

static void try(const struct call *call, uint64_t data, uint64_t from, bool taken)
{
    struct caller caller = {.call = call};
    pthread_t thread;
    form();
    assert_int_equal(pthread_create(&thread, NULL, run, &caller), 0);
    play(&((struct host_mesh *)world.meshes[1])->group, data, from);
    pthread_join(thread, NULL);
    if (taken) {
        assert_ok(caller.status, &caller.error);
    } else {
        print_message("%s, data at %#llx, from %#llx\n", call->name, (unsigned long long)data,
            (unsigned long long)from);
        assert_error(caller.status, CADRE_DATA_LOSS, &caller.error,
            "replica 1 gave collective 1 an address outside of what its task shares");
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        mesh_host_ops.close(world.meshes[i]);
    }
}

static void test_spans(void **state)
{
    (void)state;
    static const struct call calls[] = {
        {"all_reduce", BYTES, true, all_reduce},
        {"broadcast", BYTES, false, broadcast},
        {"all_gather", BYTES, false, all_gather},
        {"reduce_scatter", TASKS * BYTES, false, reduce_scatter},
    };
    uint64_t good = 0;
    assert_true(arena_locate(world.theirs, TASKS * BYTES, &good));
    for (size_t i = 0; i < CADRE_COUNT_OF(calls); i++) {
        const struct call *call = &calls[i];
        const uint64_t last = arena_bytes() - call->span_bytes;
        const uint64_t outside[] = {last + sizeof(float), arena_bytes() - sizeof(float),
            arena_bytes(), arena_bytes() + 4096, UINT64_MAX - call->span_bytes + 1, UINT64_MAX - 3};
        try(call, good, good, true);
        try(call, good, last, true);
        for (size_t j = 0; j < CADRE_COUNT_OF(outside); j++) {
            try(call, good, outside[j], false);
            if (call->written) {
                try(call, outside[j], good, false);
            }
        }
    }
}

/* The root writes to each other task's buffer. */
static cadre_status broadcast_own(struct mesh *mesh, struct cadre_error *error)
{
    struct mesh_buffer buffer = {.data = world.memory, .bytes = BYTES, .dtype = MESH_F32};
    return mesh_host_ops.broadcast(mesh, 0, 0, &buffer, 1, NULL, error);
}

static void test_root_writes(void **state)
{
    (void)state;
    static const struct call call = {"broadcast of its own", BYTES, true, broadcast_own};
    uint64_t good = 0;
    assert_true(arena_locate(world.theirs, BYTES, &good));
    try(&call, good, 0, true);
    try(&call, arena_bytes() - BYTES + sizeof(float), 0, false);
    try(&call, arena_bytes(), 0, false);
    try(&call, UINT64_MAX - BYTES + 1, 0, false);
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error;
    if (arena_open(&error) != CADRE_OK) {
        return 1;
    }
    world.memory = arena_get(3 * BYTES);
    world.theirs = arena_get(3 * BYTES);
    for (uint32_t i = 0; i < TASKS; i++) {
        world.members[i].replicas = 1;
        if (mesh_listener_open("127.0.0.1", NULL, &world.listeners[i], world.members[i].address,
                &error) != CADRE_OK) {
            return 1;
        }
    }
    return world.memory != NULL && world.theirs != NULL ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    arena_give(world.memory, 3 * BYTES);
    arena_give(world.theirs, 3 * BYTES);
    for (uint32_t i = 0; i < TASKS; i++) {
        mesh_listener_close(world.listeners[i]);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_root_writes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
