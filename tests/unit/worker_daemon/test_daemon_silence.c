/* SPDX-License-Identifier: Apache-2.0
 * A worker that receives nothing from its coordinator: whom it asks, where it goes, when it stays.
 * Two coordinators that answer as a test tells them are on the same loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rpc/server.h"
#include "common/wire/methods.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/silence.h"

#define SILENCE_US (60 * CADRE_US_PER_MS)

struct peer {
    struct rpc_server *server;
    char address[TEST_PATH_BYTES];
    struct leader_response answer;
    bool hangs; /* it never answers */
    bool stirs; /* a message of the stream arrives just before its answer */
    unsigned asked;
};

static struct daemon stand;
static struct peer peers[2];
static bool stream_ended;
static char stream_text[200];
static unsigned asks_wanted;
static bool asked_enough;

static void leader_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct peer *peer = user;
    struct cadre_error error = {0};
    (void)data;
    (void)length;
    peer->asked++;
    asked_enough = peers[0].asked + peers[1].asked >= asks_wanted;
    if (peer->stirs) {
        silence_frame(&stand);
    }
    if (peer->hangs) {
        return;
    }
    wire_buffer_clear(&stand.packed);
    assert_ok(wire_pack_leader_response(&peer->answer, &stand.packed, &error), &error);
    assert_ok(rpc_call_send(call, stand.packed.bytes, stand.packed.size, &error), &error);
    rpc_call_finish(call, CADRE_OK, "");
}

static void join_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    (void)data;
    (void)length;
    (void)user;
}

static void open_peer(struct peer *peer, const char *name)
{
    static const struct rpc_server_ops leader_ops = {.on_message = leader_message};
    static const struct rpc_server_ops join_ops = {.on_message = join_message};
    struct cadre_error error = {0};
    const struct rpc_method methods[] = {{.path = METHOD_COORDINATORS_LEADER,
                                             .request_bytes_max = 100,
                                             .ops = &leader_ops,
                                             .user = peer},
        {.path = METHOD_AGENTS_JOIN,
            .client_streams = true,
            .server_streams = true,
            .request_bytes_max = 100,
            .ops = &join_ops,
            .user = peer}};
    const struct rpc_server_options options = {.methods = methods, .method_count = 2};
    *peer = (struct peer){.answer = {.self = {.name = name,
                                         .addresses = "",
                                         .state = COORDINATOR_FOLLOWER,
                                         .text = "",
                                         .version = ""},
                              .leader = "",
                              .leader_addresses = ""}};
    snprintf(peer->address, sizeof peer->address, "unix:%s/%s", test_temp_dir(), name);
    assert_ok(rpc_server_open(stand.loop, &options, &peer->server, &error), &error);
    assert_ok(rpc_server_listen(peer->server, peer->address, NULL, NULL, &error), &error);
    rpc_server_start(peer->server);
}

static void on_stream_end(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)user;
    if (call == stand.join) {
        assert_int_equal(status, CADRE_UNAVAILABLE);
        snprintf(stream_text, sizeof stream_text, "%s", text);
        stand.join = NULL;
        stream_ended = true;
    }
}

/* The worker has joined the first coordinator, in term 4. */
static void join(const char *addresses)
{
    static const struct rpc_client_ops ops = {.on_status = on_stream_end};
    struct cadre_error error = {0};
    assert_ok(rpc_endpoints_open(stand.loop, addresses, NULL, &stand.endpoints, &error), &error);
    assert_ok(silence_open(&stand, &error), &error);
    stand.channel = rpc_endpoints_channel(stand.endpoints);
    stand.term = (struct term){.cluster = 9, .start = 4, .nonce = 77};
    const struct rpc_call_options options = {
        .path = METHOD_AGENTS_JOIN, .client_streams = true, .server_streams = true, .ops = &ops};
    assert_ok(rpc_channel_call(stand.channel, &options, &stand.join, &error), &error);
    silence_frame(&stand);
    silence_limit(&stand, SILENCE_US);
}

static void join_first_of_two(void)
{
    char addresses[2 * TEST_PATH_BYTES];
    snprintf(addresses, sizeof addresses, "%s,%s", peers[0].address, peers[1].address);
    join(addresses);
}

static void leads(struct peer *peer, uint64_t start)
{
    peer->answer.self.leads = true;
    peer->answer.self.state = COORDINATOR_LEADING;
    peer->answer.self.term = (struct term){.cluster = 9, .start = start, .nonce = 77};
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    stand = (struct daemon){.arena = wire_arena_new(LIMIT_UNPACK_BYTES)};
    assert_non_null(stand.arena);
    assert_ok(rpc_loop_open(&stand.loop, &error), &error);
    open_peer(&peers[0], "a");
    open_peer(&peers[1], "b");
    stream_ended = false;
    asked_enough = false;
    asks_wanted = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stand.join = NULL;
    silence_close(&stand);
    rpc_endpoints_close(stand.endpoints);
    rpc_server_close(peers[0].server);
    rpc_server_close(peers[1].server);
    rpc_loop_close(stand.loop);
    silence_free(stand.silence);
    wire_buffer_free(&stand.packed);
    wire_arena_free(stand.arena);
    return 0;
}

static void run_until_moved(void)
{
    assert_int_equal(rpc_loop_run_until(stand.loop, &stream_ended, CADRE_TIME_NEVER), CADRE_OK);
    assert_string_equal(stream_text, "the coordinator sends nothing, and another one leads");
    assert_string_equal(rpc_endpoints_address(stand.endpoints), peers[1].address);
}

/* Both are asked so often, and what they answer has been seen. */
static void run_until_asked(unsigned rounds)
{
    asks_wanted = 2 * rounds + 1;
    assert_int_equal(rpc_loop_run_until(stand.loop, &asked_enough, CADRE_TIME_NEVER), CADRE_OK);
    assert_false(stream_ended);
    assert_string_equal(rpc_endpoints_address(stand.endpoints), peers[0].address);
}

static void it_goes_to_the_one_that_leads(void **state)
{
    (void)state;
    join_first_of_two();
    leads(&peers[1], 5);
    run_until_moved();
}

static void one_that_never_answers_is_not_waited_for(void **state)
{
    (void)state;
    join_first_of_two();
    peers[0].hangs = true;
    leads(&peers[1], 5);
    run_until_moved();
}

static void it_stays_when_none_leads(void **state)
{
    (void)state;
    join_first_of_two();
    run_until_asked(3);
    leads(&peers[1], 5); /* later one does */
    run_until_moved();
}

static void it_stays_with_the_one_that_leads(void **state)
{
    (void)state;
    join_first_of_two();
    leads(&peers[0], 4);
    run_until_asked(3);
}

static void a_message_meanwhile_ends_the_doubt(void **state)
{
    (void)state;
    join_first_of_two();
    leads(&peers[1], 5);
    peers[1].stirs = true;
    run_until_asked(3);
}

static void none_is_asked(void)
{
    bool never = false;
    uint64_t until_us = clock_monotonic_us() + 5 * SILENCE_US;
    assert_int_equal(rpc_loop_run_until(stand.loop, &never, until_us), CADRE_DEADLINE_EXCEEDED);
    assert_int_equal(peers[0].asked + peers[1].asked, 0);
    assert_false(stream_ended);
}

static void with_one_address_none_is_asked(void **state)
{
    (void)state;
    join(peers[0].address);
    none_is_asked();
}

static void without_a_promise_none_is_asked(void **state)
{
    (void)state;
    join_first_of_two();
    silence_limit(&stand, 0);
    none_is_asked();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_goes_to_the_one_that_leads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            one_that_never_answers_is_not_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_stays_when_none_leads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_stays_with_the_one_that_leads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_message_meanwhile_ends_the_doubt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_one_address_none_is_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_promise_none_is_asked, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
