/* SPDX-License-Identifier: Apache-2.0
 * Where a server listens, what it refuses, and how it ends. */
#include "rpc_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Opens a second server, listens, closes it; the status of the listening. */
static cadre_status try_listen(struct fixture *fixture, const char *address,
    const struct rpc_socket_access *access, struct cadre_error *error)
{
    struct rpc_server *server;
    const struct rpc_server_options options = {0};
    assert_int_equal(rpc_server_open(fixture->loop, &options, &server, NULL), CADRE_OK);
    cadre_status status = rpc_server_listen(server, address, access, NULL, error);
    rpc_server_close(server);
    return status;
}

static void only_local_addresses(void **state)
{
    static const char *const refused[] = {"0.0.0.0:1", "192.168.1.1:80", "[::]:1", "[fe80::1]:1",
        "example.com:80", "10.0.0.1:80", ":80", "[::ffff:10.0.0.1]:80"};
    static const char *const wrong[] = {"", "unix:", "unix:relative", "localhost",
        "localhost:", "localhost:-1", "localhost:65536", "127.0.0.1:1x", "127.0.0.1: 1", "[::1]",
        "[::1]80", "[::1", "127.0.0.1:123456789123"};
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    struct rpc_channel *channel;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(try_listen(fixture, refused[i], NULL, &error), CADRE_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "TLS"));
        assert_int_equal(rpc_channel_open(fixture->loop, refused[i], NULL, &channel, &error),
            CADRE_INVALID_ARGUMENT);
        assert_null(channel);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(try_listen(fixture, wrong[i], NULL, &error), CADRE_INVALID_ARGUMENT);
    }
    char path[200];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path, "unix:/", 6);
    assert_int_equal(try_listen(fixture, path, NULL, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "194 bytes"));
    assert_int_equal(rpc_channel_open(fixture->loop, "localhost:0", NULL, &channel, &error),
        CADRE_INVALID_ARGUMENT);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777;
}

static void socket_belongs_to_its_owner_or_group(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_server *server;
    const struct rpc_server_options options = {0};
    const struct rpc_socket_access access = {.group_may_connect = true, .group = getgid()};
    char path[96], address[104];
    assert_int_equal(mode_of(fixture->address + 5), 0600);
    mode_t before = umask(0022);
    umask(before);
    snprintf(path, sizeof path, "%s/shared", fixture->folder);
    snprintf(address, sizeof address, "unix:%s", path);
    assert_int_equal(rpc_server_open(fixture->loop, &options, &server, NULL), CADRE_OK);
    assert_int_equal(rpc_server_listen(server, address, &access, NULL, NULL), CADRE_OK);
    assert_int_equal(mode_of(path), 0660);
    mode_t after = umask(before);
    assert_int_equal(after, before);
    rpc_server_close(server);
}

static void socket_of_a_living_server(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    struct client_seen seen;
    assert_int_equal(try_listen(fixture, fixture->address, NULL, &error), CADRE_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "listening there already"));
    assert_non_null(strstr(error.text, fixture->address + 5));
    fixture_unary(fixture, UNARY, "still there", 11, &seen);
    assert_int_equal(seen.status, CADRE_OK);
}

static void socket_left_by_a_dead_server(void **state)
{
    struct fixture *fixture = *state;
    struct sockaddr_un stale = {.sun_family = AF_UNIX};
    snprintf(stale.sun_path, sizeof stale.sun_path, "%s/stale", fixture->folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&stale, sizeof stale), 0);
    close(fd);
    assert_int_equal(access(stale.sun_path, F_OK), 0);
    char address[128];
    snprintf(address, sizeof address, "unix:%s", stale.sun_path);
    struct cadre_error error = {0};
    assert_int_equal(try_listen(fixture, address, NULL, &error), CADRE_OK);
}

static void other_files_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    char path[96], address[104];
    snprintf(path, sizeof path, "%s/file", fixture->folder);
    snprintf(address, sizeof address, "unix:%s", path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(try_listen(fixture, address, NULL, &error), CADRE_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "not a socket"));
    assert_int_equal(unlink(path), 0);
    snprintf(address, sizeof address, "unix:%s/missing/socket", fixture->folder);
    assert_int_equal(try_listen(fixture, address, NULL, &error), CADRE_NOT_FOUND);
}

static void port_in_use(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    struct rpc_server *server;
    const struct rpc_server_options options = {0};
    int port = 0;
    char address[32];
    assert_int_equal(rpc_server_open(fixture->loop, &options, &server, NULL), CADRE_OK);
    assert_int_equal(rpc_server_listen(server, "127.0.0.1:0", NULL, &port, NULL), CADRE_OK);
    assert_in_range(port, 1, 65535);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    assert_int_equal(try_listen(fixture, address, NULL, &error), CADRE_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "in use"));
    rpc_server_close(server);
}

static void several_addresses(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    int port = 0;
    rpc_server_close(fixture->server);
    char address[64];
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/second", fixture->folder);
    fixture_server(fixture, (struct rpc_server_options){0});
    struct rpc_server *both;
    const struct rpc_server_options options = {0};
    assert_int_equal(rpc_server_open(fixture->loop, &options, &both, NULL), CADRE_OK);
    assert_int_equal(rpc_server_listen(both, "[::1]:0", NULL, &port, NULL), CADRE_OK);
    assert_int_equal(rpc_server_listen(both, "127.0.0.1:0", NULL, NULL, NULL), CADRE_OK);
    rpc_server_start(both);
    snprintf(address, sizeof address, "[::1]:%d", port);
    struct rpc_channel *before = fixture->channel;
    assert_int_equal(
        rpc_channel_open(fixture->loop, address, NULL, &fixture->channel, NULL), CADRE_OK);
    fixture_unary(fixture, UNARY, "x", 1, &seen);
    assert_int_equal(seen.status, CADRE_UNIMPLEMENTED); /* it is there, and has no methods */
    rpc_channel_close(before);
    rpc_server_close(both);
}

static void bad_tables_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_server *server;
    static const struct rpc_server_ops ops;
    struct rpc_method methods[] = {
        {.path = "/a.B/C", .ops = &ops}, {.path = "/a.B/C", .ops = &ops}};
    const struct rpc_server_options options = {.methods = methods, .method_count = 2};
    assert_int_equal(
        rpc_server_open(fixture->loop, &options, &server, NULL), CADRE_INVALID_ARGUMENT);
    methods[1].path = "a.B/D";
    assert_int_equal(
        rpc_server_open(fixture->loop, &options, &server, NULL), CADRE_INVALID_ARGUMENT);
}

static bool has_opened(void *user)
{
    return ((const struct server_seen *)user)->opens > 0;
}

static void more_calls_than_the_server_takes(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen first, second;
    rpc_server_close(fixture->server);
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/second", fixture->folder);
    fixture_server(fixture, (struct rpc_server_options){.calls_max = 1});
    rpc_channel_close(fixture->channel);
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, NULL, &fixture->channel, NULL), CADRE_OK);
    struct rpc_call *call = fixture_call(fixture, HOLD, true, true, &first);
    fixture_until_check(fixture, has_opened, &fixture->seen);
    fixture_unary(fixture, UNARY, "x", 1, &second);
    assert_int_equal(second.status, CADRE_RESOURCE_EXHAUSTED);
    assert_int_equal(rpc_server_call_count(fixture->server), 1);
    rpc_call_cancel(call);
    fixture_until(fixture, &first.ended);
}

static void gone(void *user)
{
    ((struct fixture *)user)->server_gone = true;
}

static bool two_open(void *user)
{
    return ((const struct server_seen *)user)->opens == 2;
}

/* SIGTERM's way: streams that end themselves do so at once; the rest has the grace, then
 * UNAVAILABLE. */
static void graceful_shutdown(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen bye, hold, late;
    fixture_call(fixture, END_AT_SHUTDOWN, true, true, &bye);
    fixture_call(fixture, HOLD, true, true, &hold);
    fixture_until_check(fixture, two_open, &fixture->seen);
    uint64_t began_us = clock_monotonic_us();
    rpc_server_shutdown(fixture->server, 150 * CADRE_US_PER_MS, gone, fixture);
    fixture->server = NULL;
    assert_int_equal(fixture->seen.shutdowns, 2);
    fixture_until(fixture, &bye.ended);
    assert_int_equal(bye.status, CADRE_UNAVAILABLE);
    assert_string_equal(bye.text, "going down");
    assert_string_equal(bye.last, "bye");
    assert_false(hold.ended);
    const struct rpc_call_options options = {.path = UNARY, .ops = &client_ops, .user = &late};
    struct rpc_call *call;
    late = (struct client_seen){0};
    assert_int_equal(rpc_channel_call(fixture->channel, &options, &call, NULL), CADRE_OK);
    send_text(call, "too late");
    fixture_until(fixture, &late.ended);
    assert_int_equal(late.status, CADRE_UNAVAILABLE);
    fixture_until(fixture, &hold.ended);
    assert_true(clock_monotonic_us() - began_us >= 150 * CADRE_US_PER_MS);
    assert_int_equal(hold.status, CADRE_UNAVAILABLE);
    assert_string_equal(hold.text, "the server is shutting down");
    fixture_until(fixture, &fixture->server_gone);
    assert_int_equal(fixture->seen.closes, 2);
    assert_int_not_equal(access(fixture->address + 5, F_OK), 0);
}

/* A call that the server cancels, as gRPC does with those that are open at its end, may be
 * repeated. */
static void what_a_server_cancels_is_unavailable(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen hold;
    fixture_call(fixture, HOLD, true, true, &hold);
    fixture_until_check(fixture, has_opened, &fixture->seen);
    rpc_call_finish(fixture->seen.call, CADRE_CANCELLED, "CANCELLED");
    fixture_until(fixture, &hold.ended);
    assert_int_equal(hold.status, CADRE_UNAVAILABLE);
    assert_string_equal(hold.text, "the server ended before the call did");
}

static void shutdown_without_calls_is_quick(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    fixture_unary(fixture, UNARY, "x", 1, &seen);
    uint64_t began_us = clock_monotonic_us();
    rpc_server_shutdown(fixture->server, WAIT_TIMEOUT_US, gone, fixture);
    fixture->server = NULL;
    fixture_until(fixture, &fixture->server_gone);
    assert_true(clock_monotonic_us() - began_us < WAIT_TIMEOUT_US / 2);
}

/* The channel finds a server that comes back at the same address by itself. */
static void channel_reconnects(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    for (int i = 0; i < 2; i++) {
        fixture_unary(fixture, UNARY, "x", 1, &seen);
        assert_int_equal(seen.status, CADRE_OK);
        fixture->server_gone = false;
        rpc_server_shutdown(fixture->server, 0, gone, fixture);
        fixture_until(fixture, &fixture->server_gone);
        fixture_server(fixture, (struct rpc_server_options){0});
    }
    fixture_unary(fixture, UNARY, "x", 1, &seen);
    assert_int_equal(seen.status, CADRE_OK);
}

/* Opens a server at the fixture's address as soon as the one before does not listen any more. */
static bool has_successor(void *user)
{
    struct fixture *fixture = user;
    const struct rpc_server_options options = {0};
    assert_int_equal(rpc_server_open(fixture->loop, &options, &fixture->server, NULL), CADRE_OK);
    if (rpc_server_listen(fixture->server, fixture->address, NULL, NULL, NULL) == CADRE_OK) {
        return true;
    }
    rpc_server_close(fixture->server);
    fixture->server = NULL;
    return false;
}

/* One that takes its time to end removes its own socket, not that of the one that took over the
 * path meanwhile. */
static void the_socket_of_a_successor_stays(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen hold, seen;
    fixture_call(fixture, HOLD, true, true, &hold);
    fixture_until_check(fixture, has_opened, &fixture->seen);
    struct rpc_call *held = fixture->seen.call;
    rpc_server_shutdown(fixture->server, WAIT_TIMEOUT_US, gone, fixture);
    fixture_until_check(fixture, has_successor, fixture);
    rpc_server_start(fixture->server);
    assert_false(fixture->server_gone);
    rpc_call_finish(held, CADRE_OK, NULL);
    fixture_until(fixture, &fixture->server_gone);
    assert_int_equal(access(fixture->address + 5, F_OK), 0);
    fixture_unary(fixture, UNARY, "x", 1, &seen);
    assert_int_equal(seen.status, CADRE_UNIMPLEMENTED); /* the successor's, which has no methods */
}

/* Everything open at once, without a wait: the loop's close sends the last messages. */
static void close_with_open_calls(void **state)
{
    struct fixture *fixture = *state;
    static struct client_seen seen[32];
    for (int i = 0; i < 32; i++) {
        struct rpc_call *call =
            fixture_call(fixture, i % 2 == 0 ? HOLD : CHAT, true, true, &seen[i]);
        send_text(call, "hello");
    }
    fixture_until_check(fixture, has_opened, &fixture->seen);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_local_addresses),
        TEST(socket_belongs_to_its_owner_or_group),
        TEST(socket_of_a_living_server),
        TEST(socket_left_by_a_dead_server),
        TEST(other_files_are_left_alone),
        TEST(port_in_use),
        TEST(several_addresses),
        TEST(bad_tables_are_refused),
        TEST(more_calls_than_the_server_takes),
        TEST(graceful_shutdown),
        TEST(what_a_server_cancels_is_unavailable),
        TEST(shutdown_without_calls_is_quick),
        TEST(channel_reconnects),
        TEST(the_socket_of_a_successor_stays),
        TEST(close_with_open_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
