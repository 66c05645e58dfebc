/* SPDX-License-Identifier: Apache-2.0
 * The control page by itself: words that are waited for, spinning and asleep, the other ways in
 * which a wait ends, and pages that are not mapped. */
#include "worker/library/mesh/wire/group.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"

#define CHUNK_BYTES ((size_t)8192)
#define ROUNDS      2000

/* A thread that waits for the done word of slot 1. */
struct waiter {
    struct group *group;
    uint32_t value;
    struct group_wait_limits wait_limits;
    cadre_status status;
    uint64_t ended_us;
    pthread_t thread;
};

static void *wait_for(void *argument)
{
    struct waiter *waiter = argument;
    waiter->status = group_wait(
        waiter->group, 1, &waiter->group->slots[1].done, waiter->value, &waiter->wait_limits);
    waiter->ended_us = clock_monotonic_us();
    return NULL;
}

static void start(struct waiter *waiter)
{
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for, waiter), 0);
}

/* Until the waiter sleeps, so that it has to be woken. */
static void await_sleep(const struct group *group)
{
    while (atomic_load(&group->slots[1].sleepers) == 0) {
        sched_yield();
    }
}

static struct group group_of(uint32_t slots, bool shared)
{
    struct group group;
    struct cadre_error error;
    assert_ok(group_open(&group, slots, shared ? CHUNK_BYTES : 0, shared, &error), &error);
    return group;
}

static void test_places(void **state)
{
    (void)state;
    struct group group = group_of(3, true);
    for (uint32_t slot = 0; slot < 3; slot++) {
        for (unsigned parity = 0; parity < 2; parity++) {
            uint8_t *stage = group_stage(&group, slot, parity);
            assert_int_equal(
                (uintptr_t)&group.slots[slot].posts[parity] % GROUP_CACHE_LINE_BYTES, 0);
            assert_true(stage >= (uint8_t *)&group.slots[3]);
            memset(stage, (int)(slot * 2 + parity), CHUNK_BYTES);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        memset(group_result(&group, i), 100 + (int)i, 2 * CHUNK_BYTES);
    }
    assert_true(group_result(&group, 2) + 2 * CHUNK_BYTES == (uint8_t *)group.head + group.bytes);
    for (uint32_t slot = 0; slot < 3; slot++) {
        assert_int_equal(group_stage(&group, slot, 1)[CHUNK_BYTES - 1], slot * 2 + 1);
    }
    group_close(&group);
}

struct racer {
    struct group *group;
    uint32_t slot;
    uint32_t *counters; /* one a slot, by no other until all are there */
    bool wrong;
};

static void *race(void *argument)
{
    struct racer *racer = argument;
    struct group *group = racer->group;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        struct group_wait_limits wait_limits = {.timeout_us = 0};
        racer->counters[racer->slot] = round;
        group_raise(group, racer->slot, &group->slots[racer->slot].done, round * 2 * GROUP_STEP);
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            const _Atomic uint32_t *word = &group->slots[slot].done;
            racer->wrong |=
                group_wait(group, slot, word, round * 2 * GROUP_STEP, &wait_limits) != 0;
            racer->wrong |= racer->counters[slot] != round;
        }
        /* No thread writes before all have read. */
        group_raise(
            group, racer->slot, &group->slots[racer->slot].done, (round * 2 + 1) * GROUP_STEP);
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            const _Atomic uint32_t *word = &group->slots[slot].done;
            racer->wrong |=
                group_wait(group, slot, word, (round * 2 + 1) * GROUP_STEP, &wait_limits) != 0;
        }
    }
    return NULL;
}

/* With a CPU for each and without, privately and over a memory file. */
static void test_meeting(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 5};
    for (unsigned i = 0; i < 4; i++) {
        uint32_t slots = sizes[i % 2];
        struct group group = group_of(slots, i >= 2);
        struct racer racers[5];
        pthread_t threads[5];
        uint32_t counters[5] = {0};
        for (uint32_t slot = 0; slot < slots; slot++) {
            racers[slot] = (struct racer){.group = &group, .slot = slot, .counters = counters};
            assert_int_equal(pthread_create(&threads[slot], NULL, race, &racers[slot]), 0);
        }
        for (uint32_t slot = 0; slot < slots; slot++) {
            pthread_join(threads[slot], NULL);
            assert_false(racers[slot].wrong);
        }
        group_close(&group);
    }
}

static void test_sleep(void **state)
{
    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        struct group group = group_of(2, shared == 1);
        struct waiter waiter = {.group = &group, .value = GROUP_STEP};
        start(&waiter);
        await_sleep(&group);
        group_raise(&group, 1, &group.slots[1].done, GROUP_STEP);
        pthread_join(waiter.thread, NULL);
        assert_int_equal(waiter.status, CADRE_OK);
        group_close(&group);
    }
}

/* Also when the count of sleepers was spoilt, by a process that does not keep the rules. */
static void test_break(void **state)
{
    (void)state;
    for (unsigned spoilt = 0; spoilt < 2; spoilt++) {
        struct group group = group_of(2, true);
        struct waiter waiter = {.group = &group, .value = GROUP_STEP};
        uint32_t rank;
        cadre_status code;
        char text[GROUP_TEXT_BYTES];
        start(&waiter);
        await_sleep(&group);
        if (spoilt == 1) {
            atomic_store(&group.slots[1].sleepers, 0);
        }
        group_break(&group, 7, CADRE_DEADLINE_EXCEEDED, "the first reason");
        group_break(&group, 8, CADRE_ABORTED, "another one");
        pthread_join(waiter.thread, NULL);
        assert_int_equal(waiter.status, CADRE_ABORTED);
        assert_true(group_is_broken(&group));
        assert_true(group_reason(&group, &rank, &code, text));
        assert_int_equal(rank, 7);
        assert_int_equal(code, CADRE_DEADLINE_EXCEEDED);
        assert_string_equal(text, "the first reason");
        assert_false(group_touch_begin(&group, 0));
        /* A replica that came counts as there. */
        atomic_store(&group.slots[0].done, GROUP_STEP);
        assert_int_equal(
            group_wait(&group, 0, &group.slots[0].done, GROUP_STEP, &waiter.wait_limits), CADRE_OK);
        group_close(&group);
    }
}

static void test_reason_is_missing(void **state)
{
    (void)state;
    struct group group = group_of(1, true);
    uint32_t rank;
    cadre_status code;
    char text[GROUP_TEXT_BYTES];
    atomic_store(&group.head->broken, GROUP_BREAKING); /* and its breaker died */
    assert_false(group_reason(&group, &rank, &code, text));
    memset(group.head->text, 'x', sizeof group.head->text);
    group.head->code = 999999;
    atomic_store(&group.head->broken, GROUP_BROKEN);
    assert_true(group_reason(&group, &rank, &code, text));
    assert_int_equal(code, CADRE_ABORTED);
    assert_int_equal(strlen(text), GROUP_TEXT_BYTES - 1);
    group_close(&group);
}

/* Slot 2 is left: a sleeper on slot 1 is woken, unless slot 2 had come that far. */
static void test_leave(void **state)
{
    (void)state;
    struct group group = group_of(3, false);
    struct waiter waiter = {.group = &group, .value = 2 * GROUP_STEP};
    atomic_store(&group.slots[2].done, GROUP_STEP);
    start(&waiter);
    await_sleep(&group);
    group_leave(&group, 2, 1);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.status, CADRE_UNAVAILABLE);
    assert_int_equal(waiter.wait_limits.leaver, 2);
    waiter = (struct waiter){.group = &group, .value = GROUP_STEP};
    start(&waiter);
    await_sleep(&group);
    group_raise(&group, 1, &group.slots[1].done, GROUP_STEP);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.status, CADRE_OK);
    group_close(&group);
}

static void test_deadline(void **state)
{
    (void)state;
    struct group group = group_of(2, false);
    uint64_t began_us = clock_monotonic_us();
    struct group_wait_limits wait_limits = {.timeout_us = 20 * CADRE_US_PER_MS};
    assert_int_equal(group_wait(&group, 1, &group.slots[1].done, GROUP_STEP, &wait_limits),
        CADRE_DEADLINE_EXCEEDED);
    assert_true(clock_monotonic_us() - began_us >= 20 * CADRE_US_PER_MS);
    group_close(&group);
}

struct received {
    struct group *group;
    uint32_t slot;
    uint64_t waited_us;
};

static void on_stall(void *user, uint32_t slot, uint64_t waited_us)
{
    struct received *received = user;
    received->slot = slot;
    received->waited_us = waited_us;
    group_raise(received->group, 1, &received->group->slots[1].done, GROUP_STEP);
}

static void test_stall(void **state)
{
    (void)state;
    struct group group = group_of(2, false);
    struct received received = {.group = &group};
    struct group_wait_limits wait_limits = {.stalled = on_stall, .user = &received};
    assert_int_equal(
        group_wait(&group, 1, &group.slots[1].done, GROUP_STEP, &wait_limits), CADRE_OK);
    assert_int_equal(received.slot, 1);
    assert_true(received.waited_us >= CADRE_US_PER_S);
    group_close(&group);
}

/* A replica is in others' buffers for a while, or was killed there. */
static void test_settle(void **state)
{
    (void)state;
    struct group group = group_of(2, true);
    assert_true(group_touch_begin(&group, 1));
    group_break(&group, 0, CADRE_ABORTED, "a reason");
    uint64_t began_us = clock_monotonic_us();
    group_touch_settle(&group, 0); /* in vain, and not for ever */
    assert_true(clock_monotonic_us() - began_us >= 50 * CADRE_US_PER_MS);
    group_touch_settle(&group, 1); /* oneself does not count */
    group_touch_end(&group, 1);
    group_touch_settle(&group, 0);
    group_close(&group);
}

static void test_foreign_pages(void **state)
{
    (void)state;
    struct group mine = group_of(2, true);
    struct group theirs;
    struct cadre_error error;
    assert_ok(group_map(&theirs, 2, CHUNK_BYTES, dup(mine.fd), &error), &error);
    group_raise(&mine, 1, &mine.slots[1].done, 6);
    assert_true(group_reached(&theirs.slots[1].done, 6));
    group_close(&theirs);
    assert_error(group_map(&theirs, 3, CHUNK_BYTES, dup(mine.fd), &error), CADRE_DATA_LOSS, &error,
        "no control page of 3 replicas");
    group_close(&theirs);
    int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(loose, (off_t)mine.bytes), 0); /* could be cut under our feet */
    assert_error(group_map(&theirs, 2, CHUNK_BYTES, loose, &error), CADRE_DATA_LOSS, &error,
        "no control page of 2 replicas");
    group_close(&theirs);
    assert_error(group_map(&theirs, 2, CHUNK_BYTES, open("/dev/null", O_RDWR | O_CLOEXEC), &error),
        CADRE_DATA_LOSS, &error, "no control page");
    group_close(&theirs);
    group_close(&mine);
    group_close(&(struct group){.fd = -1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_break),
        cmocka_unit_test(test_reason_is_missing),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_foreign_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
