/* SPDX-License-Identifier: Apache-2.0
 * Streams of workers on which nothing else leaves: what welcomes promise, and what is sent to keep
 * it. A client on the same loop stands for each worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/keepalive.h"
#include "tests/lib/test.h"

#define WORKERS      3
#define MESSAGES_MAX 16

struct worker {
    struct rpc_call *call;
    struct link_id link;
    enum agent_down_type got[MESSAGES_MAX];
    size_t count;
    struct agent_welcome welcome;
    uint64_t log_index; /* of the newest keepalive */
};

static struct daemon stand;
static struct rpc_channel *channel;
static struct worker workers[WORKERS];
static struct worker *awaited;
static size_t awaited_count;
static bool arrived;

static void join_open(struct rpc_call *call, void *user)
{
    struct link_id link;
    (void)user;
    assert_true(links_add(&stand, call, &link));
    rpc_call_set_user(call, (void *)(uintptr_t)link.n);
    arrived = true;
}

static void join_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    (void)data;
    (void)length;
    (void)user;
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct worker *worker = user;
    struct cadre_error error = {0};
    struct agent_down down;
    (void)call;
    wire_arena_reset(stand.arena);
    assert_ok(wire_unpack_agent_down(data, length, stand.arena, &down, &error), &error);
    assert_true(worker->count < MESSAGES_MAX);
    worker->got[worker->count++] = down.type;
    if (down.type == AGENT_DOWN_WELCOME) {
        worker->welcome = down.welcome;
    } else if (down.type == AGENT_DOWN_KEEPALIVE) {
        worker->log_index = down.keepalive.log_index;
    }
    arrived = arrived || (worker == awaited && worker->count == awaited_count);
}

static void run_until_arrived(void)
{
    assert_int_equal(rpc_loop_run_until(stand.loop, &arrived, CADRE_TIME_NEVER), CADRE_OK);
}

static void wait_for(struct worker *worker, size_t count)
{
    awaited = worker;
    awaited_count = count;
    arrived = worker->count >= count;
    run_until_arrived();
    assert_int_equal(worker->count, count);
}

static int set_up(void **state)
{
    (void)state;
    static const struct rpc_server_ops server_ops = {
        .on_open = join_open, .on_message = join_message};
    static const struct rpc_client_ops client_ops = {.on_message = on_message};
    struct cadre_error error = {0};
    char address[TEST_PATH_BYTES];
    stand = (struct daemon){.arena = wire_arena_new(LIMIT_UNPACK_BYTES)};
    assert_non_null(stand.arena);
    assert_ok(rpc_loop_open(&stand.loop, &error), &error);
    const struct rpc_method method = {.path = METHOD_AGENTS_JOIN,
        .client_streams = true,
        .server_streams = true,
        .request_bytes_max = 100,
        .ops = &server_ops};
    const struct rpc_server_options options = {.methods = &method, .method_count = 1};
    assert_ok(rpc_server_open(stand.loop, &options, &stand.server, &error), &error);
    snprintf(address, sizeof address, "unix:%s/c", test_temp_dir());
    assert_ok(rpc_server_listen(stand.server, address, NULL, NULL, &error), &error);
    rpc_server_start(stand.server);
    assert_ok(rpc_channel_open(stand.loop, address, NULL, &channel, &error), &error);
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.link = {i + 1}};
        const struct rpc_call_options call = {.path = METHOD_AGENTS_JOIN,
            .client_streams = true,
            .server_streams = true,
            .ops = &client_ops,
            .user = &workers[i]};
        assert_ok(rpc_channel_call(channel, &call, &workers[i].call, &error), &error);
        arrived = false;
        run_until_arrived();
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rpc_channel_close(channel);
    keepalive_close(&stand);
    rpc_server_close(stand.server);
    rpc_loop_close(stand.loop);
    free(stand.links);
    wire_buffer_free(&stand.packed);
    wire_arena_free(stand.arena);
    return 0;
}

static void welcome(struct worker *worker, uint32_t protocol)
{
    const struct agent_down down = {.type = AGENT_DOWN_WELCOME,
        .welcome = {.worker = {worker->link.n}, .lease_us = 7, .protocol_version = protocol}};
    links_down(&stand, worker->link, &down);
}

static void look(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        stand.keepalive_round++;
        links_keep_alive(&stand, 3);
    }
}

static void a_welcome_has_the_promise(void **state)
{
    (void)state;
    stand.silence_us = 3000000;
    stand.log_index = 41;
    welcome(&workers[0], AGENT_PROTOCOL_VERSION);
    wait_for(&workers[0], 1);
    assert_int_equal(workers[0].welcome.silence_us, 3000000);
    assert_int_equal(workers[0].welcome.log_index, 41);
    assert_int_equal(workers[0].welcome.lease_us, 7);
}

static void what_else_is_sent_takes_its_place(void **state)
{
    (void)state;
    const struct agent_down other = {
        .type = AGENT_DOWN_LOG_ACK, .log_ack = {.task = {.job = {1}, .incarnation = 1}}};
    struct worker *worker = &workers[0];
    stand.log_index = 41;
    welcome(worker, AGENT_PROTOCOL_VERSION);
    wait_for(worker, 1);
    look(2);
    links_down(&stand, worker->link, &other);
    wait_for(worker, 2);
    look(2);
    stand.log_index = 42;
    look(1); /* the third since then */
    wait_for(worker, 3);
    look(2);
    look(1);
    wait_for(worker, 4);
    static const enum agent_down_type got[] = {
        AGENT_DOWN_WELCOME, AGENT_DOWN_LOG_ACK, AGENT_DOWN_KEEPALIVE, AGENT_DOWN_KEEPALIVE};
    assert_memory_equal(worker->got, got, sizeof got);
    assert_int_equal(worker->log_index, 42);
}

/* The second one is of the version before; the third was not welcomed. */
static void each_gets_what_it_knows(void **state)
{
    (void)state;
    keepalive_start(&stand, 120 * CADRE_US_PER_MS);
    assert_int_equal(stand.silence_us, 120 * CADRE_US_PER_MS);
    welcome(&workers[0], AGENT_PROTOCOL_KEEPALIVE);
    welcome(&workers[1], AGENT_PROTOCOL_KEEPALIVE - 1);
    wait_for(&workers[0], 4);
    assert_int_equal(workers[0].got[3], AGENT_DOWN_KEEPALIVE);
    assert_int_equal(workers[1].count, 1);
    assert_int_equal(workers[2].count, 0);
}

/* Its time to lead has ended, and may begin again. */
static void one_that_may_not_lead_sends_nothing(void **state)
{
    (void)state;
    welcome(&workers[0], AGENT_PROTOCOL_KEEPALIVE);
    wait_for(&workers[0], 1);
    leading_set(&stand.leading, 0);
    keepalive_start(&stand, 120 * CADRE_US_PER_MS);
    uint64_t round = stand.keepalive_round;
    while (stand.keepalive_round < round + 8) {
        bool never = false;
        (void)rpc_loop_run_until(stand.loop, &never, clock_monotonic_us() + CADRE_US_PER_MS);
    }
    assert_int_equal(workers[0].count, 1);
    leading_set(&stand.leading, clock_boot_us() + 3600 * CADRE_US_PER_S);
    wait_for(&workers[0], 2);
    assert_int_equal(workers[0].got[1], AGENT_DOWN_KEEPALIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_welcome_has_the_promise, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_else_is_sent_takes_its_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_gets_what_it_knows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_may_not_lead_sends_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
