/* SPDX-License-Identifier: Apache-2.0
 * Tasks and replicas as groups of threads. */
#include "tests/conformance/mesh/world.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

const struct world_layout world_layouts[] = {
    {.name = "one task of 1", .replicas = {1}},
    {.name = "one task of 2", .few = true, .replicas = {2}},
    {.name = "one task of 4", .replicas = {4}},
    {.name = "one task of 5", .replicas = {5}},
    {.name = "2 tasks of 1", .replicas = {1, 1}},
    {.name = "2 tasks of 2", .threads = true, .replicas = {2, 2}},
    {.name = "4 tasks of 1", .replicas = {1, 1, 1, 1}},
    {.name = "5 tasks of 1", .replicas = {1, 1, 1, 1, 1}},
    {.name = "1 + 3", .replicas = {1, 3}},
    {.name = "3 + 1", .few = true, .replicas = {3, 1}},
    {.name = "2 + 3", .replicas = {2, 3}},
    {.name = "1 + 2 + 3", .threads = true, .replicas = {1, 2, 3}},
    {.name = "2 hosts of 1", .replicas = {1, 1}, .hosts = {0, 1}},
    {.name = "3 hosts of 1", .threads = true, .replicas = {1, 1, 1}, .hosts = {0, 1, 2}},
    {.name = "3 and 2 on 2 hosts", .few = true, .replicas = {3, 2}, .hosts = {0, 1}},
    {.name = "1 + 1 and 1 on 2 hosts", .replicas = {1, 1, 1}, .hosts = {0, 0, 1}},
    {.name = "2 + 1 and 1 + 2, mixed",
        .threads = true,
        .replicas = {2, 1, 1, 2},
        .hosts = {0, 1, 0, 1}},
    {.name = "5 hosts, ragged", .replicas = {1, 2, 1, 1, 1, 1}, .hosts = {0, 1, 2, 3, 4, 1}},
};
const size_t world_layout_count = sizeof world_layouts / sizeof world_layouts[0];

/* Host by host, rank by rank. */
static void seat_replicas(struct world *world)
{
    uint32_t seated = 0;
    for (uint32_t host = 0; seated < world->replica_count; host++) {
        uint32_t global = 0;
        for (uint32_t task = 0; task < world->task_count; task++) {
            for (uint32_t i = 0; i < world->members[task].replicas; i++, global++) {
                if (world->layout->hosts[task] == host) {
                    world->seats.replicas[seated++] = global;
                    world->seats.slots[host]++;
                }
            }
        }
        world->seats.host_count++;
    }
}

void world_open(struct world *world, const struct world_layout *layout)
{
    struct cadre_error error;
    *world = (struct world){.ops = world_peer.ops, .layout = layout, .generation = 1};
    pthread_mutex_init(&world->lock, NULL);
    for (size_t i = 0; i < sizeof world->key; i++) {
        world->key[i] = (uint8_t)(i * 37 + 11);
    }
    while (layout->replicas[world->task_count] > 0) {
        uint32_t task = world->task_count++;
        world->members[task].replicas = layout->replicas[task];
        world->replica_count += layout->replicas[task];
    }
    assert_true(world->replica_count <= WORLD_REPLICAS_MAX);
    for (uint32_t task = 0; world->task_count > 1 && task < world->task_count; task++) {
        char address[32];
        snprintf(address, sizeof address, "127.0.0.%" PRIu32, layout->hosts[task] + 1);
        assert_ok(mesh_listener_open(
                      address, NULL, &world->listeners[task], world->members[task].address, &error),
            &error);
    }
    seat_replicas(world);
}

struct mesh_config world_config(const struct world *world, uint32_t task)
{
    struct mesh_config config = {
        .generation = world->generation,
        .nonce = world->generation * 1000003,
        .rank = task,
        .members = world->members,
        .member_count = world->task_count,
        .listener = world->listeners[task],
        .form_deadline_us = clock_monotonic_us() + speed_scaled_us(WORLD_PATIENCE_US),
        .collective_timeout_us = world->timeout_us,
        .stalled = world->stalled,
        .stalled_user = world->stalled_users[task],
    };
    memcpy(config.key, world->key, sizeof config.key);
    return config;
}

cadre_status world_poll(struct world *world, uint32_t task, struct cadre_error *error)
{
    while (true) {
        cadre_status status = world->ops->form_test(world->meshes[task], error);
        if (status != CADRE_PENDING) {
            return status;
        }
        struct pollfd ready = {.fd = world->ops->form_fd(world->meshes[task]), .events = POLLIN};
        assert_true(
            poll(&ready, 1, (int)(speed_scaled_us(WORLD_PATIENCE_US) / CADRE_US_PER_MS)) > 0);
    }
}

void world_finish_forming(struct world *world)
{
    struct cadre_error error;
    uint32_t formed = 0;
    while (formed < world->task_count) {
        struct pollfd ready[WORLD_TASKS_MAX];
        nfds_t waiting = 0;
        formed = 0;
        for (uint32_t task = 0; task < world->task_count; task++) {
            cadre_status status = world->ops->form_test(world->meshes[task], &error);
            if (status == CADRE_OK) {
                formed++;
            } else if (status == CADRE_PENDING) {
                int fd = world->ops->form_fd(world->meshes[task]);
                ready[waiting++] = (struct pollfd){.fd = fd, .events = POLLIN};
            } else {
                fail_msg("%s: task %u: %s", world->layout->name, task, error.text);
            }
        }
        if (waiting > 0) {
            assert_true(poll(ready, waiting,
                            (int)(speed_scaled_us(WORLD_PATIENCE_US) / CADRE_US_PER_MS)) > 0);
        }
    }
}

void world_form(struct world *world)
{
    struct cadre_error error;
    world->generation++;
    for (uint32_t task = 0; task < world->task_count; task++) {
        struct mesh_config config = world_config(world, task);
        assert_ok(world->ops->form_post(&config, &world->meshes[task], &error), &error);
    }
    world_finish_forming(world);
    if (world_peer.formed != NULL) {
        world_peer.formed(world);
    }
}

void world_close_meshes(struct world *world)
{
    for (uint32_t task = 0; task < world->task_count; task++) {
        world->ops->close(world->meshes[task]);
        world->meshes[task] = NULL;
    }
}

void world_close(struct world *world)
{
    world_close_meshes(world);
    for (uint32_t task = 0; task < world->task_count; task++) {
        mesh_listener_close(world->listeners[task]);
    }
    pthread_mutex_destroy(&world->lock);
}

struct start {
    struct seat *seat;
    world_body *body;
};

static void *run_seat(void *argument)
{
    struct start *start = argument;
    start->seat->status = start->body(start->seat);
    return NULL;
}

void world_run(struct world *world, world_body *body, const void *data, struct seat *seats,
    void (*meanwhile)(struct world *world))
{
    pthread_t threads[WORLD_REPLICAS_MAX];
    struct start starts[WORLD_REPLICAS_MAX];
    uint32_t global = 0;
    atomic_store(&world->counter, 0);
    for (uint32_t task = 0; task < world->task_count; task++) {
        for (uint32_t local = 0; local < world->members[task].replicas; local++, global++) {
            seats[global] = (struct seat){
                .world = world,
                .mesh = world->meshes[task],
                .ops = world->ops,
                .task = task,
                .local = local,
                .global = global,
                .data = data,
            };
            starts[global] = (struct start){.seat = &seats[global], .body = body};
            assert_int_equal(pthread_create(&threads[global], NULL, run_seat, &starts[global]), 0);
        }
    }
    if (meanwhile != NULL) {
        meanwhile(world);
    }
    for (uint32_t i = 0; i < global; i++) {
        pthread_join(threads[i], NULL);
    }
    if (world->failure[0] != '\0') {
        fail_msg("%s: %s", world->layout->name, world->failure);
    }
}

void world_run_ok(struct world *world, world_body *body, const void *data)
{
    struct seat seats[WORLD_REPLICAS_MAX];
    world_run(world, body, data, seats, NULL);
    for (uint32_t i = 0; i < world->replica_count; i++) {
        if (seats[i].status != CADRE_OK) {
            fail_msg("%s: replica %u: %s", world->layout->name, i, seats[i].error.text);
        }
    }
}

cadre_status seat_fail(struct seat *seat, const char *condition, const char *file, int line)
{
    struct world *world = seat->world;
    pthread_mutex_lock(&world->lock);
    if (world->failure[0] == '\0') {
        snprintf(world->failure, sizeof world->failure, "%s:%d: replica %u: not true: %s (%.200s)",
            file, line, seat->global, condition, seat->error.text);
    }
    pthread_mutex_unlock(&world->lock);
    /* The others must not wait for this replica. */
    seat->ops->abort(seat->mesh, "a check of the test failed");
    return CADRE_INTERNAL;
}

static bool is_wanted(const struct world_layout *layout)
{
#ifdef __SANITIZE_THREAD__
    return layout->few || (layout->threads && !world_peer.few);
#else
    return layout->few || !world_peer.few;
#endif
}

unsigned world_rounds(unsigned count)
{
    return world_peer.few ? count / 4 : count;
}

void world_each(void (*test)(struct world *world), bool several_tasks_only)
{
    for (size_t i = 0; i < world_layout_count; i++) {
        bool skipped = several_tasks_only && world_layouts[i].replicas[1] == 0;
        if (skipped || !is_wanted(&world_layouts[i])) {
            continue;
        }
        struct world world;
        world_open(&world, &world_layouts[i]);
        test(&world);
        world_close(&world);
    }
}

static double number_of(enum mesh_dtype dtype, const void *bits)
{
    float narrow;
    double wide;
    switch (dtype) {
    case MESH_F64:
        memcpy(&wide, bits, sizeof wide);
        return wide;
    case MESH_F32:
        memcpy(&narrow, bits, sizeof narrow);
        return (double)narrow;
    default:
        mesh_widen(dtype, &narrow, bits, 1);
        return (double)narrow;
    }
}

bool world_same(const struct world *world, enum mesh_op op, enum mesh_dtype dtype, const void *got,
    const void *wanted)
{
    static const double units[] = {
        [MESH_F64] = 0x1p-52, [MESH_F32] = 0x1p-23, [MESH_F16] = 0x1p-10, [MESH_BF16] = 0x1p-7};
    bool loose = world_peer.loose && dtype <= MESH_BF16 && (op == MESH_SUM || op == MESH_PROD);
    if (!loose) {
        return memcmp(got, wanted, mesh_dtype_bytes(dtype)) == 0;
    }
    double a = number_of(dtype, got);
    double b = number_of(dtype, wanted);
    double size =
        op == MESH_SUM ? 64.0 : 0x1p-8; /* of an input; of a product that is nearly none */
    /* Which order of a product leaves the range of 16 bits on its way is its own matter. */
    bool left = op == MESH_PROD && dtype == MESH_F16 && world->replica_count > 2;
    return left || (isnan(a) && isnan(b)) || a == b ||
           fabs(a - b) <= 2 * world->replica_count * units[dtype] * fmax(fabs(b), size);
}

cadre_status world_sum_of_ones(struct seat *seat)
{
    double one = 1.0;
    struct mesh_buffer buffer = {.data = &one, .bytes = sizeof one, .dtype = MESH_F64};
    cadre_status status =
        seat->ops->all_reduce(seat->mesh, seat->local, MESH_SUM, &buffer, 1, NULL, &seat->error);
    SEAT_CHECK(seat, status != CADRE_OK || one == (double)seat->world->replica_count);
    return status;
}
