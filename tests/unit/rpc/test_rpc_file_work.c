/* SPDX-License-Identifier: Apache-2.0
 * Work on files: in a thread, then on the loop, always both; and the wait for the last of it. */
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/file_work.h"
#include "common/rpc/loop.h"
#include "tests/lib/test.h"

#define PIECES 8

struct piece {
    struct file_work work;
    struct file_work_pool *file_pool;
    unsigned left; /* so often it goes on */
    unsigned acted;
    unsigned done;
    pthread_t thread;
};

static void act(void *user)
{
    struct piece *piece = user;
    piece->thread = pthread_self();
    piece->acted++;
}

static void after(void *user)
{
    struct piece *piece = user;
    assert_false(piece->work.running);
    assert_int_equal(piece->acted, ++piece->done);
    assert_false(pthread_equal(piece->thread, pthread_self()));
    if (piece->left-- > 0) {
        file_work_start(&piece->work, piece->file_pool, act, after, piece);
    }
}

static void each_piece_ends_on_the_loop(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_work_pool file_pool = {0};
    struct piece pieces[PIECES] = {0};
    assert_ok(rpc_loop_open(&file_pool.loop, &error), &error);
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i].file_pool = &file_pool;
        pieces[i].left = i;
        file_work_start(&pieces[i].work, &file_pool, act, after, &pieces[i]);
        assert_int_equal(file_pool.count, i + 1);
        assert_true(pieces[i].work.running);
    }
    assert_int_equal(pieces[0].done, 0); /* not before the loop runs */
    file_work_pool_wait(&file_pool);
    assert_int_equal(file_pool.count, 0);
    for (unsigned i = 0; i < PIECES; i++) {
        assert_int_equal(pieces[i].done, i + 1);
    }
    file_work_pool_wait(&file_pool); /* there is nothing to wait for */
    rpc_loop_close(file_pool.loop);
}

static void a_stop_does_not_end_the_wait(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_work_pool file_pool = {0};
    struct piece piece = {.file_pool = &file_pool, .left = 2};
    assert_ok(rpc_loop_open(&file_pool.loop, &error), &error);
    file_work_start(&piece.work, &file_pool, act, after, &piece);
    rpc_loop_stop(file_pool.loop);
    file_work_pool_wait(&file_pool);
    assert_int_equal(piece.done, 3);
    rpc_loop_close(file_pool.loop);
}

/* ---- in threads of their own ---- */

static pthread_barrier_t all_at_once;
static atomic_uint at_work;
static atomic_uint most_at_work;

struct waiting {
    struct file_work work;
    bool meets; /* the others, so they must be at work at one time */
    unsigned done;
};

static void wait_in_thread(void *user)
{
    const struct waiting *waiting = user;
    unsigned now = atomic_fetch_add(&at_work, 1) + 1;
    unsigned most = atomic_load(&most_at_work);
    while (most < now && !atomic_compare_exchange_weak(&most_at_work, &most, now)) {
    }
    if (waiting->meets) {
        pthread_barrier_wait(&all_at_once);
    }
    atomic_fetch_sub(&at_work, 1);
}

static void after_wait(void *user)
{
    ((struct waiting *)user)->done++;
}

/* As many as may are at work at one time, and the rest follows; work on files goes on meanwhile. */
static void what_waits_for_a_network_waits_apart(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_work_pool file_pool = {0};
    struct waiting works[3 * FILE_WORKS_APART] = {0};
    struct piece piece = {.file_pool = &file_pool};
    assert_ok(rpc_loop_open(&file_pool.loop, &error), &error);
    assert_int_equal(pthread_barrier_init(&all_at_once, NULL, FILE_WORKS_APART + 1), 0);
    for (unsigned i = 0; i < CADRE_COUNT_OF(works); i++) {
        works[i].meets = i < FILE_WORKS_APART;
        file_work_start_apart(&works[i].work, &file_pool, wait_in_thread, after_wait, &works[i]);
    }
    assert_int_equal(file_pool.apart, FILE_WORKS_APART);
    assert_int_equal(file_pool.count, CADRE_COUNT_OF(works));
    bool never = false;
    file_work_start(&piece.work, &file_pool, act, after, &piece);
    while (piece.done == 0) { /* although all others wait */
        (void)rpc_loop_run_until(file_pool.loop, &never, clock_monotonic_us() + 1000);
    }
    assert_int_equal(works[0].done, 0);
    pthread_barrier_wait(&all_at_once);
    file_work_pool_wait(&file_pool);
    for (unsigned i = 0; i < CADRE_COUNT_OF(works); i++) {
        assert_int_equal(works[i].done, 1);
    }
    assert_int_equal(most_at_work, FILE_WORKS_APART);
    assert_int_equal(file_pool.apart, 0);
    pthread_barrier_destroy(&all_at_once);
    rpc_loop_close(file_pool.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_piece_ends_on_the_loop),
        cmocka_unit_test(a_stop_does_not_end_the_wait),
        cmocka_unit_test(what_waits_for_a_network_waits_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
