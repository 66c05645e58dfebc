/* SPDX-License-Identifier: Apache-2.0
 * Work on files: in a thread, then on the loop, always both; and the wait for the last of it. */
#include <pthread.h>

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

static void run_pieces(unsigned own_threads)
{
    struct cadre_error error = {0};
    struct file_work_pool file_pool = {0};
    struct piece pieces[PIECES] = {0};
    assert_ok(rpc_loop_open(&file_pool.loop, &error), &error);
    if (own_threads > 0) {
        assert_ok(file_work_pool_start(&file_pool, own_threads, &error), &error);
    }
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
    file_work_pool_close(&file_pool);
    rpc_loop_close(file_pool.loop);
}

static void each_piece_ends_on_the_loop(void **state)
{
    (void)state;
    run_pieces(0);
}

static void with_threads_of_its_own_too(void **state)
{
    (void)state;
    run_pieces(1);
    run_pieces(3);
}

struct block {
    struct file_work work;
    pthread_barrier_t *barrier;
};

static void meet(void *user)
{
    struct block *block = user;
    pthread_barrier_wait(block->barrier);
}

static void note_end(void *user)
{
    (void)user;
}

/* More than libuv has wait for one another, and libuv's do other work meanwhile. */
static void its_threads_work_at_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct file_work_pool file_pool = {0};
    struct file_work_pool other = {0};
    struct block blocks[PIECES] = {0};
    struct piece piece = {.file_pool = &other};
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, PIECES), 0);
    assert_ok(rpc_loop_open(&file_pool.loop, &error), &error);
    other.loop = file_pool.loop;
    assert_ok(file_work_pool_start(&file_pool, PIECES, &error), &error);
    for (unsigned i = 0; i + 1 < PIECES; i++) {
        blocks[i].barrier = &barrier;
        file_work_start(&blocks[i].work, &file_pool, meet, note_end, &blocks[i]);
    }
    file_work_start(&piece.work, &other, act, after, &piece);
    file_work_pool_wait(&other);
    assert_int_equal(piece.done, 1);
    assert_int_equal(file_pool.count, PIECES - 1);
    blocks[PIECES - 1].barrier = &barrier;
    file_work_start(&blocks[PIECES - 1].work, &file_pool, meet, note_end, &blocks[PIECES - 1]);
    file_work_pool_wait(&file_pool);
    file_work_pool_close(&file_pool);
    pthread_barrier_destroy(&barrier);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_piece_ends_on_the_loop),
        cmocka_unit_test(with_threads_of_its_own_too), cmocka_unit_test(its_threads_work_at_once),
        cmocka_unit_test(a_stop_does_not_end_the_wait)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
