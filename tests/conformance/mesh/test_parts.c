/* SPDX-License-Identifier: Apache-2.0
 * Meshes of some tasks of a job, beside that of all and on the same listeners: formed at once and
 * in any order, with derived keys, and with the numbers of the job in their errors. */
#include "tests/conformance/mesh/world.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"

#define PARTS_MAX (WORLD_TASKS_MAX * (WORLD_TASKS_MAX - 1) / 2)

/* A mesh of two tasks, seen from both. */
struct part {
    uint32_t tasks[2];
    struct mesh *meshes[2];
    cadre_status status[2];
};

static const struct world_layout apart = {
    .name = "2 hosts of 2 and 1 of 1", .replicas = {1, 1, 1, 1, 1}, .hosts = {0, 0, 1, 1, 2}};

static void part_post(struct world *world, struct part *part, uint32_t end, uint64_t which)
{
    struct cadre_error error;
    const struct mesh_member members[2] = {
        world->members[part->tasks[0]], world->members[part->tasks[1]]};
    struct mesh_config config = world_config(world, part->tasks[end]);
    config.rank = end;
    config.members = members;
    config.member_count = 2;
    config.numbers = part->tasks;
    mesh_key_derive(world->key, &which, 1, config.key, &config.nonce);
    assert_ok(mesh_host_ops.form_post(&config, &part->meshes[end], &error), &error);
    part->status[end] = CADRE_PENDING;
}

/* Looks at all in this order again and again. */
static void parts_form(struct part *parts, size_t count)
{
    struct cadre_error error;
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(WORLD_PATIENCE_US);
    for (size_t left = 2 * count; left > 0;) {
        for (size_t i = 0; i < 2 * count; i++) {
            struct part *part = &parts[i / 2];
            if (part->status[i % 2] == CADRE_PENDING) {
                part->status[i % 2] = mesh_host_ops.form_test(part->meshes[i % 2], &error);
                left -= part->status[i % 2] == CADRE_OK;
            }
            if (part->status[i % 2] != CADRE_OK && part->status[i % 2] != CADRE_PENDING) {
                fail_msg("tasks %u and %u: %s", part->tasks[0], part->tasks[1], error.text);
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
static void part_works(struct part *part)
{
    struct taker taker = {.mesh = part->meshes[1]};
    struct taker giver = {.mesh = part->meshes[0], .value = part->tasks[0] * 16 + part->tasks[1]};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, &taker), 0);
    take(&giver);
    pthread_join(thread, NULL);
    assert_ok(giver.status, &giver.error);
    assert_ok(taker.status, &taker.error);
    assert_int_equal(taker.value, part->tasks[0] * 16 + part->tasks[1]);
}

static void close_parts(struct part *parts, size_t count)
{
    for (size_t i = 0; i < 2 * count; i++) {
        mesh_host_ops.close(parts[i / 2].meshes[i % 2]);
    }
}

static size_t all_pairs(const struct world *world, struct part *parts)
{
    size_t count = 0;
    for (uint32_t high = 1; high < world->task_count; high++) {
        for (uint32_t low = 0; low < high; low++) {
            parts[count++] = (struct part){.tasks = {low, high}};
        }
    }
    return count;
}

static void every_two_tasks(void **state)
{
    (void)state;
    struct world world;
    struct part parts[PARTS_MAX];
    world_open(&world, &apart);
    world_form(&world);
    size_t count = all_pairs(&world, parts);
    for (size_t i = 0; i < 2 * count; i++) { /* the ends of a pair in opposite orders */
        size_t at = i < count ? i : 2 * count - 1 - i;
        part_post(&world, &parts[at], i < count ? 1 : 0, at);
    }
    parts_form(parts, count);
    for (size_t i = 0; i < count; i++) {
        part_works(&parts[i]);
    }
    world_run_ok(&world, world_sum_of_ones, NULL); /* that of all still works */
    for (size_t i = 0; i < count; i++) {
        part_works(&parts[count - 1 - i]);
    }
    close_parts(parts, count);
    world_run_ok(&world, world_sum_of_ones, NULL);
    world_close(&world);
}

/* Of another key nobody is admitted, and keys of other numbers are other ones. */
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
    struct part part = {.tasks = {3, 4}};
    world_open(&world, &apart);
    world_form(&world);
    part_post(&world, &part, 0, 1);
    part_post(&world, &part, 1, 1);
    parts_form(&part, 1);
    mesh_host_ops.close(part.meshes[0]);
    struct taker taker = {.mesh = part.meshes[1]};
    take(&taker);
    assert_int_equal(taker.status, CADRE_ABORTED);
    assert_non_null(strstr(taker.error.text, "the task of rank 3"));
    mesh_host_ops.close(part.meshes[1]);
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
