/* SPDX-License-Identifier: Apache-2.0
 * A descriptor that is watched while gRPC waits, and one that a thread waits for. */
#include "common/rpc/watch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"

struct seen {
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t came;
    int count;
    pthread_t thread;
    struct rpc_watch *watch;
    struct rpc_loop *loop; /* to be woken, or NULL */
    bool posted;
};

static void seen_posted(void *user)
{
    *(bool *)user = true;
}

static void seen_ready(void *user)
{
    struct seen *seen = user;
    pthread_mutex_lock(&seen->lock);
    seen->count++;
    seen->thread = pthread_self();
    pthread_cond_signal(&seen->came);
    pthread_mutex_unlock(&seen->lock);
    if (seen->loop != NULL) {
        rpc_loop_post(seen->loop, seen_posted, &seen->posted);
    }
}

static void open_seen(struct seen *seen, struct rpc_loop *loop)
{
    struct cadre_error error = {0};
    *seen = (struct seen){.loop = loop, .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    pthread_mutex_init(&seen->lock, NULL);
    pthread_cond_init(&seen->came, NULL);
    assert_int_equal(rpc_watch_open(seen->fd, seen_ready, seen, &seen->watch, &error), CADRE_OK);
}

static void close_seen(struct seen *seen)
{
    rpc_watch_close(seen->watch);
    close(seen->fd);
    pthread_cond_destroy(&seen->came);
    pthread_mutex_destroy(&seen->lock);
}

static void make_readable(struct seen *seen)
{
    uint64_t one = 1;
    assert_int_equal(write(seen->fd, &one, sizeof one), sizeof one);
}

/* Waits for that many, of which none was in the calling thread. */
static void await(struct seen *seen, int count)
{
    pthread_mutex_lock(&seen->lock);
    while (seen->count < count) {
        pthread_cond_wait(&seen->came, &seen->lock);
    }
    assert_int_equal(seen->count, count);
    assert_false(pthread_equal(seen->thread, pthread_self()));
    pthread_mutex_unlock(&seen->lock);
}

/* First in this program: how gRPC waits is not known yet. */
static void a_thread_waits_where_grpc_cannot(void **state)
{
    (void)state;
    struct seen seen;
    open_seen(&seen, NULL);
    make_readable(&seen);
    for (int count = 1; count <= 5; count++) {
        await(&seen, count);
        rpc_watch_arm(seen.watch); /* it is still readable, and so reported again */
    }
    await(&seen, 6);
    close_seen(&seen);
}

/* Until it is reported, in the thread that waits in gRPC's queue: this one. */
static void turn(struct seen *seen, int count)
{
    seen->posted = false;
    assert_int_equal(
        rpc_loop_run_until(seen->loop, &seen->posted, clock_monotonic_us() + 20 * CADRE_US_PER_S),
        CADRE_OK);
    assert_int_equal(seen->count, count);
    assert_true(pthread_equal(seen->thread, pthread_self()));
}

/* Once for each time that it is armed, and not after it is closed. */
static void grpc_waits_for_it(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct rpc_loop *loop;
    struct seen seen;
    struct seen other;
    assert_int_equal(rpc_loop_open(&loop, &error), CADRE_OK);
    open_seen(&seen, loop);
    open_seen(&other, loop);
    make_readable(&seen);
    turn(&seen, 1);
    make_readable(&other);
    turn(&other, 1);
    assert_int_equal(seen.count, 1);
    rpc_watch_arm(seen.watch);
    turn(&seen, 2);
    rpc_watch_arm(other.watch);
    close_seen(&other);
    rpc_watch_arm(seen.watch);
    turn(&seen, 3);
    assert_int_equal(other.count, 1);
    close_seen(&seen);
    rpc_loop_close(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_waits_where_grpc_cannot),
        cmocka_unit_test(grpc_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
