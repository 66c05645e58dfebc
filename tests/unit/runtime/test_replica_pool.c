/* SPDX-License-Identifier: Apache-2.0
 * The threads of the replicas: each calls once a round, all at the same time, and what one round
 * wrote the next one sees, whether they look for the next round or sleep until it comes. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/replica/handoff.h"
#include "worker/library/runtime/replica/replica_pool.h"

#define ROUNDS 300

struct tally {
    uint32_t count;
    uint32_t rounds[64]; /* by each replica, of its own */
    atomic_uint inside;
    bool meet; /* all are in the round at the same time */
};

static void add_one(uint32_t local, void *user)
{
    struct tally *tally = user;
    tally->rounds[local]++;
    if (tally->meet) {
        uint32_t goal = tally->rounds[local] * tally->count;
        atomic_fetch_add(&tally->inside, 1);
        while (atomic_load(&tally->inside) < goal) {
            sched_yield();
        }
    }
}

static void each_replica_is_called_once_a_round(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct replica_pool *pool;
        struct cadre_error error;
        struct tally tally = {.count = counts[i], .meet = counts[i] <= 8};
        assert_int_equal(replica_pool_open(counts[i], &pool, &error), CADRE_OK);
        for (uint32_t round = 1; round <= ROUNDS; round++) {
            replica_pool_run(pool, add_one, &tally);
            for (uint32_t local = 0; local < counts[i]; local++) {
                assert_int_equal(tally.rounds[local], round);
            }
        }
        replica_pool_close(pool);
    }
    replica_pool_close(NULL);
}

/* Threads that have not begun to wait yet, and threads that sleep. */
static void a_pool_can_be_closed_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct replica_pool *pool;
        struct cadre_error error;
        struct tally tally = {.count = 4};
        assert_int_equal(replica_pool_open(4, &pool, &error), CADRE_OK);
        if (i % 2 == 0) {
            replica_pool_run(pool, add_one, &tally);
        }
        replica_pool_close(pool);
    }
}

struct pair {
    struct handoff there;
    struct handoff back;
    uint32_t most; /* patience of both */
    uint64_t sum;  /* written by the thread whose turn it is */
};

static void *answer(void *user)
{
    struct pair *pair = user;
    struct handoff_spin_budget patience = {.most = pair->most, .now = pair->most};
    for (uint32_t seen = 0; seen < ROUNDS;) {
        seen = handoff_await_change(&pair->there, seen, &patience);
        pair->sum += seen;
        handoff_increment(&pair->back);
    }
    return NULL;
}

/* Asleep at once, and polling for so long that no thread ever sleeps. */
static void turns_are_handed_over(void **state)
{
    (void)state;
    static const uint32_t most[] = {0, 1, 100, 100000000};
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        struct pair *pair = aligned_alloc(_Alignof(struct pair), sizeof *pair);
        assert_non_null(pair);
        *pair = (struct pair){.most = most[i]};
        struct handoff_spin_budget patience = {.most = most[i], .now = most[i]};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, answer, pair), 0);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            pair->sum += round;
            assert_int_equal(handoff_increment(&pair->there), round);
            assert_int_equal(handoff_await_change(&pair->back, round, &patience), round + 1);
        }
        pthread_join(thread, NULL);
        assert_int_equal(pair->sum, ROUNDS * ROUNDS); /* 0 .. n - 1 and 1 .. n */
        free(pair);
    }
}

struct counted {
    struct handoff left;
    atomic_uint begun;
};

static void *count_down(void *user)
{
    struct counted *counted = user;
    atomic_fetch_add(&counted->begun, 1);
    handoff_decrement(&counted->left);
    return NULL;
}

static void the_last_one_wakes(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct counted *counted = aligned_alloc(_Alignof(struct counted), sizeof *counted);
        assert_non_null(counted);
        *counted = (struct counted){.left = {.value = 4}};
        pthread_t threads[4];
        struct handoff_spin_budget patience = {.most = round % 2 == 0 ? 0 : 1000};
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, count_down, counted), 0);
        }
        handoff_await_zero(&counted->left, &patience);
        assert_int_equal(atomic_load(&counted->begun), 4);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        free(counted);
    }
}

static void none_looks_who_has_no_cpu(void **state)
{
    (void)state;
    assert_int_equal(handoff_spin_budget(1 << 20).most, 0);
    assert_true(handoff_spin_budget(1).most > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_replica_is_called_once_a_round),
        cmocka_unit_test(a_pool_can_be_closed_at_once),
        cmocka_unit_test(turns_are_handed_over),
        cmocka_unit_test(the_last_one_wakes),
        cmocka_unit_test(none_looks_who_has_no_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
