/* SPDX-License-Identifier: Apache-2.0
 * The loop: libuv beside gRPC, posts from other threads, the end of a turn. */
#include "rpc_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

struct counter {
    struct fixture *fixture;
    int count;
    bool done;
};

static void handle_closed(uv_handle_t *handle)
{
    *(bool *)handle->data = true;
}

/* The handle lies on the test's stack: it must be closed before the test returns. */
static void close_handle(struct fixture *fixture, uv_handle_t *handle)
{
    bool closed = false;
    handle->data = &closed;
    uv_close(handle, handle_closed);
    fixture_until(fixture, &closed);
}

static void count_timer(uv_timer_t *timer)
{
    struct counter *counter = timer->data;
    counter->done = ++counter->count == 3;
}

static void timers_fire_on_the_loop(void **state)
{
    struct fixture *fixture = *state;
    struct counter counter = {.fixture = fixture};
    uv_timer_t timer;
    uv_timer_init(rpc_loop_uv(fixture->loop), &timer);
    timer.data = &counter;
    uint64_t began_us = clock_monotonic_us();
    uv_update_time(rpc_loop_uv(fixture->loop)); /* timers count from libuv's cached time */
    uv_timer_start(&timer, count_timer, 10, 10);
    fixture_until(fixture, &counter.done);
    assert_int_equal(counter.count, 3);
    assert_true(clock_monotonic_us() - began_us >= 25 * CADRE_US_PER_MS);
    close_handle(fixture, (uv_handle_t *)&timer);
}

static void count_signal(uv_signal_t *handle, int number)
{
    struct counter *counter = handle->data;
    assert_int_equal(number, SIGUSR1);
    counter->done = true;
}

static void raise_signal(uv_timer_t *timer)
{
    (void)timer;
    kill(getpid(), SIGUSR1);
}

static void signals_reach_the_blocked_loop(void **state)
{
    struct fixture *fixture = *state;
    struct counter counter = {.fixture = fixture};
    uv_signal_t handle;
    uv_timer_t timer;
    uv_signal_init(rpc_loop_uv(fixture->loop), &handle);
    uv_timer_init(rpc_loop_uv(fixture->loop), &timer);
    handle.data = &counter;
    uv_signal_start(&handle, count_signal, SIGUSR1);
    uv_timer_start(&timer, raise_signal, 5, 0);
    fixture_until(fixture, &counter.done);
    close_handle(fixture, (uv_handle_t *)&handle);
    close_handle(fixture, (uv_handle_t *)&timer);
}

#define POSTS 1000

static void posted(void *user)
{
    struct counter *counter = user;
    counter->done = ++counter->count == POSTS;
}

static void *post_many(void *user)
{
    struct counter *counter = user;
    for (int i = 0; i < POSTS; i++) {
        rpc_loop_post(counter->fixture->loop, posted, counter);
    }
    return NULL;
}

static void posts_from_another_thread_all_run(void **state)
{
    struct fixture *fixture = *state;
    struct counter counter = {.fixture = fixture};
    pthread_t thread;
    pthread_create(&thread, NULL, post_many, &counter);
    fixture_until(fixture, &counter.done);
    pthread_join(thread, NULL);
    assert_int_equal(counter.count, POSTS);
}

static void *stop_it(void *user)
{
    rpc_loop_stop(user);
    return NULL;
}

static void stop_from_another_thread_and_before_the_run(void **state)
{
    struct fixture *fixture = *state;
    const bool never = false;
    pthread_t thread;
    pthread_create(&thread, NULL, stop_it, fixture->loop);
    rpc_loop_run(fixture->loop);
    pthread_join(thread, NULL);
    rpc_loop_stop(fixture->loop);
    rpc_loop_run(fixture->loop);
    rpc_loop_stop(fixture->loop);
    assert_int_equal(rpc_loop_run_until(fixture->loop, &never, CADRE_TIME_NEVER), CADRE_CANCELLED);
}

static void run_until_keeps_its_deadline(void **state)
{
    struct fixture *fixture = *state;
    const bool never = false;
    uint64_t began_us = clock_monotonic_us();
    assert_int_equal(rpc_loop_run_until(fixture->loop, &never, began_us + 20 * CADRE_US_PER_MS),
        CADRE_DEADLINE_EXCEEDED);
    uint64_t took_us = clock_monotonic_us() - began_us;
    assert_true(took_us >= 20 * CADRE_US_PER_MS);
    assert_true(took_us < WAIT_TIMEOUT_US);
}

#define LEFT_BYTES 200

/* Takes one byte of many: the descriptor stays ready, and nothing new arrives that could wake the
 * loop again. */
static void take_one_byte(uv_poll_t *poll, int status, int events)
{
    struct counter *counter = poll->data;
    uv_os_fd_t fd;
    char byte;
    assert_int_equal(status, 0);
    assert_true((events & UV_READABLE) != 0);
    assert_int_equal(uv_fileno((uv_handle_t *)poll, &fd), 0);
    assert_int_equal(read(fd, &byte, 1), 1);
    counter->done = ++counter->count == LEFT_BYTES;
}

static void what_is_left_ready_is_seen_again(void **state)
{
    struct fixture *fixture = *state;
    struct counter counter = {.fixture = fixture};
    static const char bytes[LEFT_BYTES];
    int ends[2];
    uv_poll_t poll;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    uv_poll_init(rpc_loop_uv(fixture->loop), &poll, ends[0]);
    poll.data = &counter;
    uv_poll_start(&poll, UV_READABLE, take_one_byte);
    assert_int_equal(write(ends[1], bytes, LEFT_BYTES), LEFT_BYTES);
    fixture_until(fixture, &counter.done);
    assert_int_equal(counter.count, LEFT_BYTES);
    close_handle(fixture, (uv_handle_t *)&poll);
    close(ends[0]);
    close(ends[1]);
}

/* A descriptor whose watching begins in the very last callback before the loop blocks. */
struct late_watch {
    uv_poll_t poll;
    int fds[2];
    bool started, done;
    struct fixture *fixture;
};

static void late_ready(uv_poll_t *poll, int status, int events)
{
    struct late_watch *late = poll->data;
    assert_int_equal(status, 0);
    assert_int_equal(events, UV_READABLE);
    late->done = true;
}

static void start_late(void *user)
{
    struct late_watch *late = user;
    if (!late->started) {
        late->started = true;
        uv_poll_init(rpc_loop_uv(late->fixture->loop), &late->poll, late->fds[0]);
        late->poll.data = late;
        uv_poll_start(&late->poll, UV_READABLE, late_ready);
        assert_int_equal(write(late->fds[1], "x", 1), 1);
    }
}

static void what_the_turn_end_starts_is_not_forgotten(void **state)
{
    struct fixture *fixture = *state;
    struct late_watch late = {.fixture = fixture};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, late.fds), 0);
    rpc_loop_on_turn_end(fixture->loop, start_late, &late);
    fixture_until(fixture, &late.done);
    rpc_loop_on_turn_end(fixture->loop, NULL, NULL);
    close_handle(fixture, (uv_handle_t *)&late.poll);
    close(late.fds[0]);
    close(late.fds[1]);
}

/* A server that answers only at the end of the turn: requests first, then one end for them, then
 * the answers. */
#define GROUP 64

struct group {
    struct rpc_call *waiting[GROUP];
    int waiting_count, answered, turns_with_work;
};

static void group_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct group *group = user;
    (void)data;
    (void)length;
    group->waiting[group->waiting_count++] = call;
}

static void group_turn_end(void *user)
{
    struct group *group = user;
    group->turns_with_work += group->waiting_count > 0;
    for (int i = 0; i < group->waiting_count; i++) {
        send_text(group->waiting[i], "committed");
        rpc_call_finish(group->waiting[i], CADRE_OK, NULL);
        group->answered++;
    }
    group->waiting_count = 0;
}

static bool all_ended(void *user)
{
    const struct client_seen *seen = user;
    for (int i = 0; i < GROUP; i++) {
        if (!seen[i].ended) {
            return false;
        }
    }
    return true;
}

struct group_and_seen {
    struct group group;
    struct client_seen seen[GROUP];
    bool done;
};

static void group_end(void *user)
{
    struct group_and_seen *both = user;
    group_turn_end(&both->group);
    both->done = all_ended(both->seen);
}

static void one_turn_end_answers_for_many_requests(void **state)
{
    struct fixture *fixture = *state;
    struct group_and_seen *both = calloc(1, sizeof *both);
    static const struct rpc_server_ops ops = {.on_message = group_message};
    const struct rpc_method method = {
        .path = "/test.Group/Commit", .request_bytes_max = 64, .ops = &ops, .user = &both->group};
    struct rpc_server *server;
    struct rpc_channel *channel;
    char address[32];
    int port;
    const struct rpc_server_options options = {.methods = &method, .method_count = 1};
    assert_int_equal(rpc_server_open(fixture->loop, &options, &server, NULL), CADRE_OK);
    assert_int_equal(rpc_server_listen(server, "127.0.0.1:0", NULL, &port, NULL), CADRE_OK);
    rpc_server_start(server);
    snprintf(address, sizeof address, "localhost:%d", port);
    assert_int_equal(rpc_channel_open(fixture->loop, address, NULL, &channel, NULL), CADRE_OK);
    struct rpc_channel *own = fixture->channel;
    fixture->channel = channel;
    for (int i = 0; i < GROUP; i++) {
        send_text(fixture_call(fixture, method.path, false, false, &both->seen[i]), "please");
    }
    rpc_loop_on_turn_end(fixture->loop, group_end, both);
    fixture_until(fixture, &both->done);
    rpc_loop_on_turn_end(fixture->loop, NULL, NULL);
    fixture->channel = own;
    for (int i = 0; i < GROUP; i++) {
        assert_int_equal(both->seen[i].status, CADRE_OK);
        assert_string_equal(both->seen[i].last, "committed");
    }
    assert_int_equal(both->group.answered, GROUP);
    assert_true(both->group.turns_with_work < GROUP / 2);
    print_message("%d requests were answered in %d turns\n", GROUP, both->group.turns_with_work);
    rpc_channel_close(channel);
    rpc_server_close(server);
    const bool never = false; /* lets the close finish before the memory of its handlers goes */
    rpc_loop_run_until(fixture->loop, &never, clock_monotonic_us() + 50 * CADRE_US_PER_MS);
    free(both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_on_the_loop, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(
            signals_reach_the_blocked_loop, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(
            posts_from_another_thread_all_run, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(
            stop_from_another_thread_and_before_the_run, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(
            what_is_left_ready_is_seen_again, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(run_until_keeps_its_deadline, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(
            what_the_turn_end_starts_is_not_forgotten, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(
            one_turn_end_answers_for_many_requests, fixture_open, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
