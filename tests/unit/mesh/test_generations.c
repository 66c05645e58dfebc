/* SPDX-License-Identifier: Apache-2.0
 * One generation after the other on the same listeners: while meshes of older ones are still open,
 * with tasks that died, and with some that come back from an older generation. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/mesh.h"

#define TASKS           3
#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)

static struct mesh_listener *listeners[TASKS];
static struct mesh_member members[TASKS];

static int open_listeners(void **state)
{
    (void)state;
    struct cadre_error error;
    for (int i = 0; i < TASKS; i++) {
        members[i].replicas = 1;
        assert_ok(mesh_listener_open("127.0.0.1", NULL, &listeners[i], members[i].address, &error),
            &error);
    }
    return 0;
}

static int close_listeners(void **state)
{
    (void)state;
    for (int i = 0; i < TASKS; i++) {
        mesh_listener_close(listeners[i]);
    }
    return 0;
}

static struct mesh *post(uint64_t generation, uint32_t rank, uint32_t count)
{
    struct mesh_config config = {.generation = generation,
        .nonce = generation * 31,
        .rank = rank,
        .members = members,
        .member_count = count,
        .listener = listeners[rank],
        .form_deadline_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US)};
    struct mesh *mesh;
    struct cadre_error error;
    memset(config.key, (int)generation, sizeof config.key);
    assert_ok(mesh_host_ops.form_post(&config, &mesh, &error), &error);
    return mesh;
}

/* All of them at once, when their descriptors are readable. */
static void form(struct mesh *meshes[], uint32_t count)
{
    uint32_t formed = 0;
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US);
    while (formed < count) {
        struct pollfd polls[TASKS];
        struct cadre_error error;
        nfds_t waiting = 0;
        formed = 0;
        for (uint32_t i = 0; i < count; i++) {
            cadre_status status = meshes[i]->ops->form_test(meshes[i], &error);
            if (status == CADRE_PENDING) {
                polls[waiting++] =
                    (struct pollfd){.fd = meshes[i]->ops->form_fd(meshes[i]), .events = POLLIN};
            } else {
                assert_ok(status, &error);
                formed++;
            }
        }
        assert_true(clock_monotonic_us() < end_us);
        if (waiting > 0) {
            poll(polls, waiting, 1000);
        }
    }
}

static void *add_one(void *user)
{
    struct mesh *mesh = user;
    int64_t one = 1;
    struct mesh_buffer buffer = {.data = &one, .bytes = sizeof one, .dtype = MESH_I64};
    struct cadre_error error;
    cadre_status status = mesh->ops->all_reduce(mesh, 0, MESH_SUM, &buffer, 1, NULL, &error);
    return (void *)(intptr_t)(status == CADRE_OK ? one : -(int64_t)status);
}

/* Each task adds one; *ret_sums: what it got, or minus the status. */
static void add_up(struct mesh *meshes[], uint32_t count, int64_t ret_sums[])
{
    pthread_t threads[TASKS];
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_one, meshes[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        ret_sums[i] = (intptr_t)sum;
    }
}

static void check_sums(struct mesh *meshes[], uint32_t count)
{
    int64_t sums[TASKS];
    add_up(meshes, count, sums);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(sums[i], count);
    }
}

static void close_all(struct mesh *meshes[], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        meshes[i]->ops->close(meshes[i]);
    }
}

static void generations_follow_each_other_while_older_ones_stand(void **state)
{
    (void)state;
    struct mesh *generations[5][TASKS];
    for (uint64_t g = 0; g < 5; g++) {
        uint32_t count = g % 2 == 0 ? TASKS : TASKS - 1;
        for (uint32_t rank = 0; rank < count; rank++) {
            generations[g][rank] = post(g + 1, rank, count);
        }
        form(generations[g], count);
        check_sums(generations[g], count);
        if (g > 0) {
            check_sums(generations[g - 1], g % 2 == 0 ? TASKS - 1 : TASKS); /* it still works */
        }
    }
    for (uint64_t g = 0; g < 5; g++) {
        close_all(generations[g], g % 2 == 0 ? TASKS : TASKS - 1);
    }
}

static void who_is_ahead_waits_for_who_is_not(void **state)
{
    (void)state;
    struct mesh *old[TASKS];
    struct mesh *new[TASKS];
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        old[rank] = post(10, rank, TASKS);
    }
    form(old, TASKS);
    new[2] = post(11, 2, TASKS);
    new[1] = post(11, 1, TASKS);
    struct cadre_error error;
    for (int turn = 0; turn < 20; turn++) {
        assert_int_equal(new[1]->ops->form_test(new[1], &error), CADRE_PENDING);
        assert_int_equal(new[2]->ops->form_test(new[2], &error), CADRE_PENDING);
    }
    assert_int_equal(new[1]->ops->form_missing(new[1]), 0);
    check_sums(old, TASKS);
    new[0] = post(11, 0, TASKS);
    form(new, TASKS);
    assert_int_equal(new[1]->ops->form_missing(new[1]), UINT32_MAX);
    check_sums(new, TASKS);
    close_all(old, TASKS);
    check_sums(new, TASKS);
    close_all(new, TASKS);
}

static void one_from_the_past_is_refused(void **state)
{
    (void)state;
    struct mesh *new[2];
    struct cadre_error error;
    for (uint32_t rank = 0; rank < 2; rank++) {
        new[rank] = post(21, rank, 2);
    }
    struct mesh *stale = post(20, 2, TASKS); /* calls both, of a roster that is over */
    for (int turn = 0; turn < 20; turn++) {
        assert_int_equal(stale->ops->form_test(stale, &error), CADRE_PENDING);
    }
    form(new, 2);
    assert_int_equal(stale->ops->form_test(stale, &error), CADRE_PENDING);
    check_sums(new, 2);
    close_all(&stale, 1);
    check_sums(new, 2);
    close_all(new, 2);
}

/* A plan may name a task that has died by then: an abort ends the forming at once, and the next one
 * does not wait for it. */
static void a_dead_address_costs_nothing(void **state)
{
    (void)state;
    struct mesh *with_dead[2];
    struct mesh *without[2];
    struct cadre_error error;
    char alive[MESH_ADDRESS_BYTES];
    memcpy(alive, members[0].address, sizeof alive);
    struct mesh_listener *dead;
    assert_ok(mesh_listener_open("127.0.0.1", NULL, &dead, members[0].address, &error), &error);
    mesh_listener_close(dead);
    with_dead[0] = post(30, 1, TASKS);
    with_dead[1] = post(30, 2, TASKS);
    for (int turn = 0; turn < 20; turn++) {
        assert_int_equal(with_dead[0]->ops->form_test(with_dead[0], &error), CADRE_PENDING);
        assert_int_equal(with_dead[1]->ops->form_test(with_dead[1], &error), CADRE_PENDING);
    }
    uint64_t begin_us = clock_monotonic_us();
    for (int i = 0; i < 2; i++) {
        with_dead[i]->ops->abort(with_dead[i], "a task was killed");
        struct pollfd ready = {.fd = with_dead[i]->ops->form_fd(with_dead[i]), .events = POLLIN};
        assert_int_equal(
            poll(&ready, 1, (int)(speed_scaled_us(WAIT_TIMEOUT_US) / CADRE_US_PER_MS)), 1);
        assert_error(with_dead[i]->ops->form_test(with_dead[i], &error), CADRE_ABORTED, &error,
            "a task was killed");
    }
    close_all(with_dead, 2);
    memcpy(members[0].address, alive, sizeof alive);
    for (uint32_t rank = 0; rank < 2; rank++) {
        without[rank] = post(31, rank, 2);
    }
    form(without, 2);
    assert_true(clock_monotonic_us() - begin_us < speed_scaled_us(CADRE_US_PER_S));
    check_sums(without, 2);
    close_all(without, 2);
}

/* What a task receives about the one that it waits for. */
struct received {
    uint32_t rank;
    uint64_t waited_us;
    atomic_uint times;
};

static void receive(void *user, uint32_t rank, uint64_t waited_us)
{
    struct received *received = user;
    received->rank = rank;
    received->waited_us = waited_us;
    atomic_fetch_add(&received->times, 1);
}

static struct received received[TASKS];

static bool all_have_received(void *data)
{
    (void)data;
    return atomic_load(&received[0].times) > 0 && atomic_load(&received[2].times) > 0;
}

static void *add_late(void *user)
{
    (void)test_wait(all_have_received, NULL, WAIT_TIMEOUT_US); /* it is the late one */
    return add_one(user);
}

static void who_is_late_is_named(void **state)
{
    (void)state;
    struct mesh *meshes[TASKS];
    struct cadre_error error;
    pthread_t threads[TASKS];
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        struct mesh_config config = {.generation = 40,
            .rank = rank,
            .members = members,
            .member_count = TASKS,
            .listener = listeners[rank],
            .form_deadline_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US),
            .stalled = receive,
            .stalled_user = &received[rank]};
        assert_ok(mesh_host_ops.form_post(&config, &meshes[rank], &error), &error);
    }
    form(meshes, TASKS);
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        assert_int_equal(
            pthread_create(&threads[rank], NULL, rank == 1 ? add_late : add_one, meshes[rank]), 0);
    }
    for (uint32_t rank = 0; rank < TASKS; rank++) {
        pthread_join(threads[rank], NULL);
        assert_int_equal(received[rank].times > 0, rank != 1);
        assert_int_equal(received[rank].rank, rank == 1 ? 0 : 1);
        assert_true(rank == 1 || received[rank].waited_us >= CADRE_US_PER_S);
    }
    close_all(meshes, TASKS);
}

/* --- an abort at any step --- */

#define NUMBERS 4096 /* just small enough for one thread to do it all; some tiles of work */
#define ABORTS  3000

struct adder {
    struct mesh *mesh;
    uint32_t local;
    bool wrong; /* a result had a wrong value */
    pthread_t thread;
};

static void *add_until_aborted(void *user)
{
    struct adder *adder = user;
    int64_t numbers[NUMBERS];
    struct mesh_buffer buffer = {.data = numbers, .bytes = sizeof numbers, .dtype = MESH_I64};
    struct cadre_error error;
    while (true) {
        for (int i = 0; i < NUMBERS; i++) {
            numbers[i] = 1;
        }
        if (adder->mesh->ops->all_reduce(
                adder->mesh, adder->local, MESH_SUM, &buffer, 1, NULL, &error) != CADRE_OK) {
            return NULL;
        }
        for (int i = 0; i < NUMBERS; i++) {
            adder->wrong = adder->wrong || numbers[i] != 2;
        }
    }
}

static void who_is_aborted_gets_the_sum_or_an_error(void **state)
{
    (void)state;
    const struct mesh_member two = {.replicas = 2};
    for (unsigned i = 0; i < ABORTS; i++) {
        struct mesh_config config = {.generation = 1, .members = &two, .member_count = 1};
        struct adder adders[2];
        struct mesh *mesh;
        struct cadre_error error;
        assert_ok(mesh_host_ops.form_post(&config, &mesh, &error), &error);
        assert_ok(mesh->ops->form_test(mesh, &error), &error);
        for (uint32_t local = 0; local < 2; local++) {
            adders[local] = (struct adder){.mesh = mesh, .local = local};
            assert_int_equal(
                pthread_create(&adders[local].thread, NULL, add_until_aborted, &adders[local]), 0);
        }
        uint64_t until_us = clock_monotonic_us() + i % 97;
        while (clock_monotonic_us() < until_us) {
        }
        mesh->ops->abort(mesh, "the test says so");
        for (uint32_t local = 0; local < 2; local++) {
            pthread_join(adders[local].thread, NULL);
            assert_false(adders[local].wrong);
        }
        mesh->ops->close(mesh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generations_follow_each_other_while_older_ones_stand),
        cmocka_unit_test(who_is_ahead_waits_for_who_is_not),
        cmocka_unit_test(one_from_the_past_is_refused),
        cmocka_unit_test(a_dead_address_costs_nothing),
        cmocka_unit_test(who_is_late_is_named),
        cmocka_unit_test(who_is_aborted_gets_the_sum_or_an_error),
    };
    return cmocka_run_group_tests(tests, open_listeners, close_listeners);
}
