/* SPDX-License-Identifier: Apache-2.0
 * grpc.health.v1 over a real connection, byte by byte. */
#include "rpc_fixture.h"

#include "common/rpc/standard_services.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK "/grpc.health.v1.Health/Check"
#define WATCH "/grpc.health.v1.Health/Watch"

struct health {
    struct fixture *fixture;
    struct rpc_health *health;
};

static int health_open(void **state)
{
    struct health *health = calloc(1, sizeof *health);
    assert_int_equal(fixture_open(state), 0);
    struct fixture *fixture = *state;
    struct rpc_method methods[RPC_HEALTH_METHODS];
    health->fixture = fixture;
    health->health = rpc_health_open();
    rpc_health_methods(health->health, methods);
    rpc_server_close(fixture->server);
    rpc_channel_close(fixture->channel);
    const struct rpc_server_options options = {
        .methods = methods, .method_count = RPC_HEALTH_METHODS};
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/health", fixture->folder);
    assert_int_equal(rpc_server_open(fixture->loop, &options, &fixture->server, NULL), CADRE_OK);
    assert_int_equal(
        rpc_server_listen(fixture->server, fixture->address, NULL, NULL, NULL), CADRE_OK);
    rpc_server_start(fixture->server);
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, NULL, &fixture->channel, NULL), CADRE_OK);
    *state = health;
    return 0;
}

static int health_close(void **state)
{
    struct health *health = *state;
    void *fixture = health->fixture;
    assert_int_equal(fixture_close(&fixture), 0);
    rpc_health_close(health->health);
    free(health);
    return 0;
}

static void expect(
    struct health *health, const char *request, size_t length, cadre_status status, int serving)
{
    struct client_seen seen;
    fixture_unary(health->fixture, CHECK, request, length, &seen);
    assert_int_equal(seen.status, status);
    if (status == CADRE_OK) {
        assert_int_equal(seen.bytes, 2);
        assert_int_equal(seen.last[0], 0x08);
        assert_int_equal(seen.last[1], serving);
    }
}

static void check_answers_by_name(void **state)
{
    struct health *health = *state;
    expect(health, "", 0, CADRE_OK, 2);
    assert_int_equal(rpc_health_set(health->health, "", true, NULL), CADRE_OK);
    assert_int_equal(rpc_health_set(health->health, "a.B", false, NULL), CADRE_OK);
    expect(health, "", 0, CADRE_OK, 1);
    expect(health, "\x0a\x00", 2, CADRE_OK, 1);
    expect(health,
        "\x0a\x03"
        "a.B",
        5, CADRE_OK, 2);
    expect(health,
        "\x0a\x03"
        "a.C",
        5, CADRE_NOT_FOUND, 0);
    /* fields of a later version of the message, of each wire type, and the name last */
    expect(health,
        "\x10\x96\x01\x19"
        "12345678\x25"
        "1234\x32\x02"
        "xy\x0a\x03"
        "a.B",
        26, CADRE_OK, 2);
}

static void bytes_that_are_no_request(void **state)
{
    struct health *health = *state;
    static const struct {
        const char *bytes;
        size_t length;
    } bad[] = {
        {"\x0a", 1},             /* no length */
        {"\x0a\x05xy", 4},       /* shorter than its length */
        {"\x80", 1},             /* an unfinished tag */
        {"\x0b", 1},             /* a group */
        {"\x02\x01x", 3},        /* field number 0 */
        {"\x10\xff\xff\xff", 4}, /* an unfinished number */
        {"\x19\x01", 2},         /* a short fixed64 */
        {"\x0a\x02\x61\x00", 4}, /* a terminator within the name */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect(health, bad[i].bytes, bad[i].length, CADRE_INVALID_ARGUMENT, 0);
    }
    char name[2 + 1 + 200] = {0x0a, (char)0xc8, 0x01};
    memset(name + 3, 'a', 200);
    expect(health, name, sizeof name, CADRE_INVALID_ARGUMENT, 0);
}

static void watch_tells_each_change(void **state)
{
    struct health *health = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(health->fixture, WATCH, false, true, &seen);
    assert_int_equal(rpc_call_send(call,
                         "\x0a\x03"
                         "a.B",
                         5, NULL),
        CADRE_OK);
    static const bool serving[] = {true, false, true};
    static const int expected[] = {3, 1, 2, 1};
    for (int i = 0; i < 4; i++) {
        if (i > 0) {
            seen.got_message = false;
            rpc_health_set(health->health, "a.B", serving[i - 1], NULL);
            rpc_health_set(health->health, "a.B", serving[i - 1], NULL); /* no change */
        }
        fixture_until(health->fixture, &seen.got_message);
        assert_int_equal(seen.messages, i + 1);
        assert_int_equal(seen.last[1], expected[i]);
    }
    rpc_call_cancel(call);
    fixture_until(health->fixture, &seen.ended);
}

static void watch_ends_with_the_server(void **state)
{
    struct health *health = *state;
    struct client_seen seen;
    struct rpc_call *call = fixture_call(health->fixture, WATCH, false, true, &seen);
    assert_int_equal(rpc_call_send(call, "", 0, NULL), CADRE_OK);
    fixture_until(health->fixture, &seen.got_message);
    uint64_t began_us = clock_monotonic_us();
    rpc_server_shutdown(health->fixture->server, WAIT_TIMEOUT_US, NULL, NULL);
    health->fixture->server = NULL;
    fixture_until(health->fixture, &seen.ended);
    assert_int_equal(seen.status, CADRE_UNAVAILABLE);
    assert_true(clock_monotonic_us() - began_us < WAIT_TIMEOUT_US / 2);
}

static void limits_of_the_table(void **state)
{
    struct health *health = *state;
    char name[RPC_HEALTH_NAME_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(rpc_health_set(health->health, name, true, NULL), CADRE_INVALID_ARGUMENT);
    for (int i = 1; i < RPC_HEALTH_SERVICES_MAX; i++) {
        snprintf(name, sizeof name, "service %d", i);
        assert_int_equal(rpc_health_set(health->health, name, true, NULL), CADRE_OK);
    }
    assert_int_equal(
        rpc_health_set(health->health, "one more", true, NULL), CADRE_RESOURCE_EXHAUSTED);
    assert_int_equal(rpc_health_set(health->health, "", true, NULL), CADRE_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, health_open, health_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(check_answers_by_name),
        TEST(bytes_that_are_no_request),
        TEST(watch_tells_each_change),
        TEST(watch_ends_with_the_server),
        TEST(limits_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
