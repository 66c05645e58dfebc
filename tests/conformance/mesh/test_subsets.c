/* SPDX-License-Identifier: Apache-2.0
 * Meshes of some tasks of a job, beside that of all and on the same listeners: formed at once and
 * in any order, with derived keys, and with the numbers of the job in their errors. */
#include "tests/conformance/mesh/world.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"

#define PAIRS_MAX (WORLD_TASKS_MAX * (WORLD_TASKS_MAX - 1) / 2)

/* A mesh of two tasks, seen from both. */
struct pair {
    uint32_t tasks[2];
    struct mesh *meshes[2];
    cadre_status status[2];
};

static const struct world_layout apart = {
    .name = "2 hosts of 2 and 1 of 1", .replicas = {1, 1, 1, 1, 1}, .hosts = {0, 0, 1, 1, 2}};

static void pair_post(struct world *world, struct pair *pair, uint32_t end, uint64_t which)
{
    struct cadre_error error;
    const struct mesh_member members[2] = {
        world->members[pair->tasks[0]], world->members[pair->tasks[1]]};
    struct mesh_config config = world_config(world, pair->tasks[end]);
    config.rank = end;
    config.members = members;
    config.member_count = 2;
    config.numbers = pair->tasks;
    mesh_key_derive(world->key, &which, 1, config.key, &config.nonce);
    assert_ok(mesh_host_ops.form_post(&config, &pair->meshes[end], &error), &error);
    pair->status[end] = CADRE_PENDING;
}

/* Looks at all in this order again and again. */
static void pairs_form(struct pair *pairs, size_t count)
{
    struct cadre_error error;
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(WORLD_PATIENCE_US);
    for (size_t left = 2 * count; left > 0;) {
        for (size_t i = 0; i < 2 * count; i++) {
            struct pair *pair = &pairs[i / 2];
            if (pair->status[i % 2] == CADRE_PENDING) {
                pair->status[i % 2] = mesh_host_ops.form_test(pair->meshes[i % 2], &error);
                left -= pair->status[i % 2] == CADRE_OK;
            }
            if (pair->status[i % 2] != CADRE_OK && pair->status[i % 2] != CADRE_PENDING) {
                fail_msg("tasks %u and %u: %s", pair->tasks[0], pair->tasks[1], error.text);
            }
        }
        assert_true(clock_monotonic_us() < end_us);
        poll(NULL, 0, left > 0); /* forming retries after pauses */
    }
}

struct taker {
    struct mesh *mesh;
    uint32_t value;
    cadre_status status;
    struct cadre_error error;
};

static void *take(void *user)
{
    struct taker *taker = user;
    const struct mesh_buffer buffer = {
        .data = &taker->value, .bytes = sizeof taker->value, .dtype = MESH_U32};
    taker->status = mesh_host_ops.broadcast(taker->mesh, 0, 0, &buffer, 1, NULL, &taker->error);
    return NULL;
}

/* From the first to the second of the two. */
static void pair_works(struct pair *pair)
{
    struct taker taker = {.mesh = pair->meshes[1]};
    struct taker giver = {.mesh = pair->meshes[0], .value = pair->tasks[0] * 16 + pair->tasks[1]};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, &taker), 0);
    take(&giver);
    pthread_join(thread, NULL);
    assert_ok(giver.status, &giver.error);
    assert_ok(taker.status, &taker.error);
    assert_int_equal(taker.value, pair->tasks[0] * 16 + pair->tasks[1]);
}

static void close_pairs(struct pair *pairs, size_t count)
{
    for (size_t i = 0; i < 2 * count; i++) {
        mesh_host_ops.close(pairs[i / 2].meshes[i % 2]);
    }
}

static size_t all_pairs(const struct world *world, struct pair *pairs)
{
    size_t count = 0;
    for (uint32_t high = 1; high < world->task_count; high++) {
        for (uint32_t low = 0; low < high; low++) {
            pairs[count++] = (struct pair){.tasks = {low, high}};
        }
    }
    return count;
}

static void every_two_tasks(void **state)
{
    (void)state;
    struct world world;
    struct pair pairs[PAIRS_MAX];
    world_open(&world, &apart);
    world_form(&world);
    size_t count = all_pairs(&world, pairs);
    for (size_t i = 0; i < 2 * count; i++) { /* the ends of a pair in opposite orders */
        size_t at = i < count ? i : 2 * count - 1 - i;
        pair_post(&world, &pairs[at], i < count ? 1 : 0, at);
    }
    pairs_form(pairs, count);
    for (size_t i = 0; i < count; i++) {
        pair_works(&pairs[i]);
    }
    world_run_ok(&world, world_sum_of_ones, NULL); /* that of all still works */
    for (size_t i = 0; i < count; i++) {
        pair_works(&pairs[count - 1 - i]);
    }
    close_pairs(pairs, count);
    world_run_ok(&world, world_sum_of_ones, NULL);
    world_close(&world);
}

/* Keys and nonces of other numbers are other ones, and the same numbers give the same. */
static void keys_differ(void **state)
{
    (void)state;
    const uint8_t key[MESH_KEY_BYTES] = {1, 2, 3};
    const uint64_t which[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    uint8_t keys[5][MESH_KEY_BYTES];
    uint64_t nonces[5];
    for (size_t i = 0; i < 4; i++) {
        mesh_key_derive(key, which[i], 2, keys[i], &nonces[i]);
    }
    mesh_key_derive(key, which[0], 1, keys[4], &nonces[4]);
    for (size_t i = 0; i < 5; i++) {
        assert_memory_not_equal(keys[i], key, sizeof key);
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(keys[i], keys[j], sizeof keys[i]);
            assert_true(nonces[i] != nonces[j]);
        }
    }
    uint8_t again[MESH_KEY_BYTES];
    uint64_t nonce;
    mesh_key_derive(key, which[3], 2, again, &nonce);
    assert_memory_equal(again, keys[3], sizeof again);
    assert_true(nonce == nonces[3]);
}

static void errors_have_numbers_of_the_job(void **state)
{
    (void)state;
    struct world world;
    struct pair pair = {.tasks = {3, 4}};
    world_open(&world, &apart);
    world_form(&world);
    pair_post(&world, &pair, 0, 1);
    pair_post(&world, &pair, 1, 1);
    pairs_form(&pair, 1);
    mesh_host_ops.close(pair.meshes[0]);
    struct taker taker = {.mesh = pair.meshes[1]};
    take(&taker);
    assert_int_equal(taker.status, CADRE_ABORTED);
    assert_non_null(strstr(taker.error.text, "the task of rank 3"));
    mesh_host_ops.close(pair.meshes[1]);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_tasks),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(errors_have_numbers_of_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
