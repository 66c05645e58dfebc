/* SPDX-License-Identifier: Apache-2.0
 * Many calls, slow readers, back-pressure, one buffer to many. */
#include "rpc_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define CALLS      500
#define QUEUED     50
#define ROUNDS_MAX 16

static atomic_int writes; /* to sockets, by gRPC, in any thread */

ssize_t __real_rpc_sockets_send(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_rpc_sockets_send(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_rpc_sockets_send(int fd, const struct msghdr *message, int flags)
{
    writes++;
    return __real_rpc_sockets_send(fd, message, flags);
}

struct many {
    struct client_seen seen[CALLS];
    struct rpc_call *calls[CALLS];
};

static bool all_ended(void *user)
{
    const struct many *many = user;
    for (int i = 0; i < CALLS; i++) {
        if (!many->seen[i].ended) {
            return false;
        }
    }
    return true;
}

static void many_calls_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct many *many = calloc(1, sizeof *many);
    for (int i = 0; i < CALLS; i++) {
        char text[24];
        snprintf(text, sizeof text, "call %d", i);
        send_text(fixture_call(fixture, UNARY, false, false, &many->seen[i]), text);
    }
    fixture_until_check(fixture, all_ended, many);
    for (int i = 0; i < CALLS; i++) {
        char text[24];
        snprintf(text, sizeof text, "call %d", i);
        assert_int_equal(many->seen[i].status, CADRE_OK);
        assert_string_equal(many->seen[i].last, text);
    }
    free(many);
}

static bool all_got_one(void *user)
{
    const struct many *many = user;
    for (int i = 0; i < CALLS; i++) {
        if (many->seen[i].messages != 1) {
            return false;
        }
    }
    return true;
}

static void one_buffer_goes_to_many_streams(void **state)
{
    struct fixture *fixture = *state;
    struct many *many = calloc(1, sizeof *many);
    struct rpc_buffer buffer;
    rpc_buffer_alloc(&buffer, 7);
    memcpy(buffer.data, "release", 7);
    for (int i = 0; i < CALLS; i++) {
        many->calls[i] = fixture_call(fixture, CHAT, true, true, &many->seen[i]);
        assert_int_equal(rpc_call_send_buffer(many->calls[i], &buffer, NULL), CADRE_OK);
    }
    rpc_buffer_free(&buffer);
    fixture_until_check(fixture, all_got_one, many);
    for (int i = 0; i < CALLS; i++) {
        assert_string_equal(many->seen[i].last, "release");
        rpc_call_half_close(many->calls[i]);
    }
    fixture_until_check(fixture, all_ended, many);
    free(many);
}

static bool server_has_one(void *user)
{
    const struct server_seen *seen = user;
    return seen->messages >= 1;
}

static bool server_has_queued(void *user)
{
    const struct server_seen *seen = user;
    return seen->messages >= 1 + QUEUED;
}

static void messages_of_one_turn_share_a_write(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &seen);
    send_text(call, "first");
    fixture_until_check(fixture, server_has_one, &fixture->seen);
    writes = 0;
    for (int i = 0; i < QUEUED; i++) {
        send_text(call, "next");
    }
    fixture_until_check(fixture, server_has_queued, &fixture->seen);
    assert_in_range(writes, 1, QUEUED / 5); /* the server's window updates among them */
    rpc_call_cancel(call);
    fixture_until(fixture, &seen.ended);
}

static bool client_has_two(void *user)
{
    const struct client_seen *seen = user;
    return seen->messages >= 2;
}

static void a_server_begins_with_two_messages(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    const bool never = false;
    /* No ping of the client makes the server write, and its own one is after 20 s. */
    const struct rpc_channel_options options = {.keepalive = {.idle_us = 2 * WAIT_TIMEOUT_US}};
    rpc_channel_close(fixture->channel);
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, &options, &fixture->channel, NULL),
        CADRE_OK);
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &seen);
    send_text(call, "first");
    fixture_until_check(fixture, server_has_one, &fixture->seen);
    rpc_loop_run_until(fixture->loop, &never, clock_monotonic_us() + 50 * CADRE_US_PER_MS);
    uint64_t sent_us = clock_monotonic_us();
    send_text(fixture->seen.call, "welcome");
    send_text(fixture->seen.call, "start");
    fixture_until_check(fixture, client_has_two, &seen);
    assert_in_range(clock_monotonic_us() - sent_us, 0, 10 * CADRE_US_PER_S);
    rpc_call_cancel(call);
    fixture_until(fixture, &seen.ended);
}

static void long_messages_arrive_whole(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    size_t length = 1 << 20; /* many slices on the wire */
    char *data = malloc(length);
    memset(data, 'x', length);
    memcpy(data, "begin", 6);
    struct rpc_call *call = fixture_call(fixture, CHAT, true, true, &seen);
    assert_int_equal(rpc_call_send(call, data, length, NULL), CADRE_OK);
    assert_int_equal(rpc_call_queued_bytes(call), length);
    fixture_until(fixture, &seen.got_message);
    assert_int_equal(seen.bytes, length);
    assert_int_equal(rpc_call_queued_bytes(call), 0);
    assert_memory_equal(seen.last, "begin", 6);
    rpc_call_half_close(call);
    fixture_until(fixture, &seen.ended);
    free(data);
}

/* The client does not read: the server's queue fills up, it aborts, and both sides get the
 * status. */
static void slow_reader_meets_the_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(fixture, FLOOD, false, true, &seen);
    rpc_call_pause(call);
    send_text(call, "go");
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(seen.text, "reads too slowly"));
}

static bool has_drained(void *user)
{
    const struct client_seen *seen = user;
    return seen->drains > 0;
}

/* The server pauses after the first message; the client's queue stays full until it resumes. */
static void pause_holds_the_sender_back(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    static const char block[4096];
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &seen);
    send_text(call, "first");
    fixture_until_check(fixture, server_has_one, &fixture->seen);
    rpc_call_pause(fixture->seen.call);
    struct cadre_error error = {0};
    /* The transport takes some megabytes on its own account; then the queue stays full. */
    for (int round = 0; round < ROUNDS_MAX && (round == 0 || seen.drains > 0); round++) {
        const bool never = false;
        while (rpc_call_send(call, block, sizeof block, &error) == CADRE_OK) {
        }
        assert_int_equal(error.code, CADRE_RESOURCE_EXHAUSTED);
        seen.drains = 0;
        rpc_loop_run_until(fixture->loop, &never, clock_monotonic_us() + 50 * CADRE_US_PER_MS);
    }
    assert_int_equal(fixture->seen.messages, 1);
    assert_int_equal(seen.drains, 0);
    assert_true(rpc_call_queued_bytes(call) > 0);
    rpc_call_resume(fixture->seen.call);
    fixture_until_check(fixture, has_drained, &seen);
    assert_int_equal(rpc_call_queued_bytes(call), 0);
    rpc_call_cancel(call);
    fixture_until(fixture, &seen.ended);
}

struct paused {
    struct fixture *fixture;
    struct client_seen seen;
    struct rpc_call *call;
    int rounds;
};

static void pausing_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct paused *paused = user;
    rpc_call_pause(call);
    client_ops.on_message(call, data, length, &paused->seen);
}

static void pausing_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct paused *paused = user;
    client_ops.on_status(call, status, text, &paused->seen);
}

/* One message per resume, and OK only behind the last of them. */
static void paused_client_takes_one_message_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    struct paused paused = {.fixture = fixture};
    static const struct rpc_client_ops ops = {
        .on_message = pausing_message,
        .on_status = pausing_status,
    };
    const struct rpc_call_options options = {.path = DOWNLOAD,
        .server_streams = true,
        .wait_for_ready = true,
        .ops = &ops,
        .user = &paused};
    assert_int_equal(rpc_channel_call(fixture->channel, &options, &paused.call, NULL), CADRE_OK);
    send_text(paused.call, "20");
    for (int i = 1; i <= 20; i++) {
        paused.seen.got_message = false;
        fixture_until(fixture, &paused.seen.got_message);
        const bool never = false;
        rpc_loop_run_until(fixture->loop, &never, clock_monotonic_us() + CADRE_US_PER_MS);
        assert_int_equal(paused.seen.messages, i);
        assert_false(paused.seen.ended);
        rpc_call_resume(paused.call);
    }
    fixture_until(fixture, &paused.seen.ended);
    assert_int_equal(paused.seen.status, CADRE_OK);
}

/* The status has come before the call is cancelled, and waits for the end of what is read:
 * nothing more is read, so the cancellation itself has to report it. */
static void cancel_behind_the_status(void **state)
{
    struct fixture *fixture = *state;
    struct paused paused = {.fixture = fixture};
    static const struct rpc_client_ops ops = {
        .on_message = pausing_message,
        .on_status = pausing_status,
    };
    const struct rpc_call_options options = {.path = DOWNLOAD,
        .server_streams = true,
        .wait_for_ready = true,
        .ops = &ops,
        .user = &paused};
    assert_int_equal(rpc_channel_call(fixture->channel, &options, &paused.call, NULL), CADRE_OK);
    send_text(paused.call, "1");
    fixture_until(fixture, &paused.seen.got_message);
    struct client_seen behind;
    fixture_unary(fixture, UNARY, "x", 1, &behind); /* its answer comes behind that status */
    assert_false(paused.seen.ended);
    rpc_call_cancel(paused.call);
    fixture_until(fixture, &paused.seen.ended);
    assert_int_equal(paused.seen.status, CADRE_CANCELLED);
}

static void one_big_message_fits_an_empty_queue(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    const struct rpc_channel_options options = {.send_queue_bytes_max = 10};
    rpc_channel_close(fixture->channel);
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, &options, &fixture->channel, NULL),
        CADRE_OK);
    struct rpc_call *call = fixture_call(fixture, CHAT, true, true, &seen);
    send_text(call, "longer than the queue's limit");
    assert_int_equal(rpc_call_send(call, "x", 1, NULL), CADRE_RESOURCE_EXHAUSTED);
    fixture_until(fixture, &seen.got_message);
    send_text(call, "again");
    rpc_call_half_close(call);
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.messages, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_calls_at_once),
        TEST(one_buffer_goes_to_many_streams),
        TEST(messages_of_one_turn_share_a_write),
        TEST(a_server_begins_with_two_messages),
        TEST(long_messages_arrive_whole),
        TEST(slow_reader_meets_the_limit),
        TEST(pause_holds_the_sender_back),
        TEST(paused_client_takes_one_message_at_a_time),
        TEST(cancel_behind_the_status),
        TEST(one_big_message_fits_an_empty_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
