/* SPDX-License-Identifier: Apache-2.0
 * One call at a time: every shape, every way to end. */
#include "rpc_fixture.h"

#include <stdio.h>
#include <stdlib.h>

static void unary_echoes(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    fixture_unary(fixture, UNARY, "hello", 5, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_string_equal(seen.text, "");
    assert_int_equal(seen.messages, 1);
    assert_string_equal(seen.last, "hello");
    assert_string_equal(fixture->seen.metadata, "some value");
    assert_memory_equal(fixture->seen.peer, "unix:", 5);
}

static void empty_message_is_a_message(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    fixture_unary(fixture, UNARY, "", 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.messages, 1);
    assert_int_equal(seen.bytes, 0);
}

static void upload_counts_until_the_half_close(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(fixture, UPLOAD, true, false, &seen);
    for (int i = 0; i < 100; i++) {
        send_text(call, "0123456789");
    }
    rpc_call_half_close(call);
    rpc_call_half_close(call);
    assert_int_equal(rpc_call_send(call, "x", 1, NULL), CADRE_FAILED_PRECONDITION);
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OK);
    assert_string_equal(seen.last, "1000");
    assert_int_equal(fixture->seen.half_closes, 1);
    assert_int_equal(fixture->seen.messages, 100);
}

static void half_close_without_messages(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    rpc_call_half_close(fixture_call(fixture, UPLOAD, true, false, &seen));
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OK);
    assert_string_equal(seen.last, "0");
}

static void download_comes_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    send_text(fixture_call(fixture, DOWNLOAD, false, true, &seen), "500");
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.messages, 500);
    assert_string_equal(seen.last, "message 499");
}

static void download_of_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    send_text(fixture_call(fixture, DOWNLOAD, false, true, &seen), "0");
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.messages, 0);
}

static void chat_goes_both_ways(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(fixture, CHAT, true, true, &seen);
    for (int i = 0; i < 20; i++) {
        char text[24];
        snprintf(text, sizeof text, "turn %d", i);
        send_text(call, text);
        seen.got_message = false;
        fixture_until(fixture, &seen.got_message);
        assert_string_equal(seen.last, text);
    }
    assert_false(seen.ended);
    rpc_call_half_close(call);
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.messages, 20);
}

static void failure_carries_its_sentence(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    fixture_call(fixture, FAIL, true, true, &seen);
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_FAILED_PRECONDITION);
    assert_string_equal(seen.text, "job 7: 100% of it is gone; \"try\" again");
}

static void unknown_method_is_unimplemented(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    fixture_unary(fixture, "/test.Echo/Nothing", "hello", 5, &seen);
    assert_int_equal(seen.status, CADRE_UNIMPLEMENTED);
    assert_string_equal(seen.text, "this server has no method \"/test.Echo/Nothing\"");
    assert_int_equal(fixture->seen.opens, 0);
}

static void message_over_the_methods_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    char *data = calloc(1, REQUEST_BYTES_MAX + 1);
    fixture_unary(fixture, UNARY, data, REQUEST_BYTES_MAX, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    fixture_unary(fixture, UNARY, data, REQUEST_BYTES_MAX + 1, &seen);
    assert_int_equal(seen.status, CADRE_RESOURCE_EXHAUSTED);
    assert_string_equal(
        seen.text, "a request message of 4097 bytes: this method takes at most 4096");
    free(data);
}

static void message_over_the_servers_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen, neighbour;
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &neighbour);
    char *data = calloc(1, 2 << 20);
    fixture_unary(fixture, UNARY, data, 2 << 20, &seen);
    assert_int_equal(seen.status, CADRE_RESOURCE_EXHAUSTED);
    assert_false(neighbour.ended); /* the other calls of the connection go on */
    rpc_call_cancel(call);
    fixture_until(fixture, &neighbour.ended);
    free(data);
}

static void answer_over_the_clients_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    const struct rpc_channel_options options = {.message_bytes_max = 1000};
    rpc_channel_close(fixture->channel);
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, &options, &fixture->channel, NULL),
        CADRE_OK);
    char data[3000] = {0};
    fixture_unary(fixture, UNARY, data, 1000, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    fixture_unary(fixture, UNARY, data, 1001, &seen); /* by our own check */
    assert_int_equal(seen.status, CADRE_RESOURCE_EXHAUSTED);
    fixture_unary(fixture, UNARY, data, sizeof data, &seen); /* by gRPC's */
    assert_int_equal(seen.status, CADRE_RESOURCE_EXHAUSTED);
}

static void second_message_of_a_unary_call_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct cadre_error error = {0};
    struct rpc_call *call = fixture_call(fixture, UNARY, false, false, &seen);
    send_text(call, "one");
    assert_int_equal(rpc_call_send(call, "two", 3, &error), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "second message"));
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OK);
}

static void request_without_its_message(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    rpc_call_half_close(fixture_call(fixture, UNARY, false, false, &seen));
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_INVALID_ARGUMENT);
}

static bool is_closed(void *user)
{
    const struct server_seen *seen = user;
    return seen->closes > 0;
}

static bool is_open(void *user)
{
    const struct server_seen *seen = user;
    return seen->call != NULL;
}

static void cancel_reaches_the_server(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &seen);
    send_text(call, "hello");
    fixture_until_check(fixture, is_open, &fixture->seen);
    rpc_call_cancel(call);
    rpc_call_cancel(call);
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_CANCELLED);
    assert_string_equal(seen.text, "cancelled by the caller");
    fixture_until_check(fixture, is_closed, &fixture->seen);
    assert_true(fixture->seen.cancelled);
    assert_int_equal(fixture->seen.half_closes, 0);
}

static void cancel_before_anything_was_sent(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    rpc_call_cancel(fixture_call(fixture, HOLD, true, true, &seen));
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_CANCELLED);
    assert_int_equal(seen.ends, 1);
}

static void deadline_ends_both_sides(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen = {0};
    struct rpc_call *call = NULL;
    const struct rpc_call_options options = {
        .path = HOLD,
        .client_streams = true,
        .server_streams = true,
        .wait_for_ready = true,
        .deadline_us = clock_monotonic_us() + 100 * CADRE_US_PER_MS,
        .ops = &client_ops,
        .user = &seen,
    };
    assert_int_equal(rpc_channel_call(fixture->channel, &options, &call, NULL), CADRE_OK);
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_DEADLINE_EXCEEDED);
    assert_true(clock_monotonic_us() >= options.deadline_us);
    fixture_until_check(fixture, is_closed, &fixture->seen);
    assert_true(fixture->seen.cancelled);
}

static void server_aborts_an_open_stream(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    fixture_call(fixture, HOLD, true, true, &seen);
    fixture_until_check(fixture, is_open, &fixture->seen);
    rpc_call_abort(fixture->seen.call, CADRE_ABORTED, "generation 4 is over");
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_ABORTED);
    assert_string_equal(seen.text, "generation 4 is over");
    fixture_until_check(fixture, is_closed, &fixture->seen);
    assert_true(fixture->seen.cancelled);
}

static void server_finishes_before_the_client(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &seen);
    send_text(call, "one");
    fixture_until_check(fixture, is_open, &fixture->seen);
    send_text(fixture->seen.call, "last words");
    rpc_call_finish(fixture->seen.call, CADRE_OUT_OF_RANGE, "end of data");
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_OUT_OF_RANGE);
    assert_string_equal(seen.last, "last words");
    fixture_until_check(fixture, is_closed, &fixture->seen);
    assert_false(fixture->seen.cancelled);
}

static void no_server_is_unavailable_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen = {0};
    struct rpc_channel *channel;
    struct rpc_call *call;
    const struct rpc_call_options options = {.path = UNARY, .ops = &client_ops, .user = &seen};
    assert_int_equal(
        rpc_channel_open(fixture->loop, "unix:/nonexistent/socket", NULL, &channel, NULL),
        CADRE_OK);
    assert_int_equal(rpc_channel_call(channel, &options, &call, NULL), CADRE_OK);
    send_text(call, "hello");
    fixture_until(fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_UNAVAILABLE);
    assert_true(strlen(seen.text) > 0);
    rpc_channel_close(channel);
}

static void bad_paths_and_metadata_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    struct rpc_call *call;
    struct rpc_metadata metadata = {.key = "Upper", .value = "x"};
    struct rpc_call_options options = {.path = "no slash", .ops = &client_ops};
    assert_int_equal(
        rpc_channel_call(fixture->channel, &options, &call, &error), CADRE_INVALID_ARGUMENT);
    options = (struct rpc_call_options){
        .path = UNARY, .metadata = &metadata, .metadata_count = 1, .ops = &client_ops};
    assert_int_equal(
        rpc_channel_call(fixture->channel, &options, &call, &error), CADRE_INVALID_ARGUMENT);
    metadata = (struct rpc_metadata){.key = "x-line", .value = "a\nb"};
    assert_int_equal(
        rpc_channel_call(fixture->channel, &options, &call, &error), CADRE_INVALID_ARGUMENT);
    assert_null(call);
}

static void copy_answer(const void *data, size_t length, void *user)
{
    snprintf(user, 16, "%.*s", (int)length, (const char *)data);
}

static void blocking_call(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    char answer[16] = "";
    struct rpc_buffer request;
    rpc_buffer_alloc(&request, 4);
    memcpy(request.data, "ping", 4);
    struct rpc_call_options options = {.path = UNARY, .wait_for_ready = true};
    assert_int_equal(rpc_channel_call_blocking(
                         fixture->channel, &options, &request, copy_answer, answer, &error),
        CADRE_OK);
    assert_string_equal(answer, "ping");
    options.path = "/test.Echo/Nothing";
    assert_int_equal(rpc_channel_call_blocking(
                         fixture->channel, &options, &request, copy_answer, answer, &error),
        CADRE_UNIMPLEMENTED);
    assert_int_equal(error.code, CADRE_UNIMPLEMENTED);
    rpc_loop_stop(fixture->loop); /* a stop gets through, and stays for the run it was meant for */
    assert_int_equal(rpc_channel_call_blocking(
                         fixture->channel, &options, &request, copy_answer, answer, &error),
        CADRE_CANCELLED);
    rpc_loop_run(fixture->loop);
    rpc_buffer_free(&request);
    rpc_buffer_free(&request);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unary_echoes),
        TEST(empty_message_is_a_message),
        TEST(upload_counts_until_the_half_close),
        TEST(half_close_without_messages),
        TEST(download_comes_in_order),
        TEST(download_of_nothing),
        TEST(chat_goes_both_ways),
        TEST(failure_carries_its_sentence),
        TEST(unknown_method_is_unimplemented),
        TEST(message_over_the_methods_limit),
        TEST(message_over_the_servers_limit),
        TEST(answer_over_the_clients_limit),
        TEST(second_message_of_a_unary_call_is_refused),
        TEST(request_without_its_message),
        TEST(cancel_reaches_the_server),
        TEST(cancel_before_anything_was_sent),
        TEST(deadline_ends_both_sides),
        TEST(server_aborts_an_open_stream),
        TEST(server_finishes_before_the_client),
        TEST(no_server_is_unavailable_at_once),
        TEST(bad_paths_and_metadata_are_refused),
        TEST(blocking_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
