/* SPDX-License-Identifier: Apache-2.0
 * Peers that are elsewhere: a thread with a loop of its own, a process that is killed or stopped, a
 * stranger that sends garbage. The test starts itself again as the other process. */
#include "rpc_fixture.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define THREADS          2
#define CALLS_PER_THREAD 100

struct client_thread {
    struct fixture *fixture;
    pthread_t thread;
    int good;
    bool *done;
    int *running;
};

static void thread_done(void *user)
{
    struct client_thread *client = user;
    *client->done = --*client->running == 0;
}

static void *client_thread(void *user)
{
    struct client_thread *client = user;
    struct rpc_loop *loop = NULL;
    struct rpc_channel *channel = NULL;
    struct rpc_buffer request;
    const struct rpc_call_options options = {.path = UNARY, .wait_for_ready = true};
    if (rpc_loop_open(&loop, NULL) == CADRE_OK &&
        rpc_channel_open(loop, client->fixture->address, NULL, &channel, NULL) == CADRE_OK) {
        rpc_buffer_alloc(&request, 100);
        memset(request.data, 'x', request.length);
        for (int i = 0; i < CALLS_PER_THREAD; i++) {
            client->good += rpc_channel_call_blocking(
                                channel, &options, &request, NULL, NULL, NULL) == CADRE_OK;
        }
        rpc_buffer_free(&request);
    }
    rpc_channel_close(channel);
    rpc_loop_close(loop);
    rpc_loop_post(client->fixture->loop, thread_done, client);
    return NULL;
}

static void clients_in_other_threads(void **state)
{
    struct fixture *fixture = *state;
    struct client_thread clients[THREADS];
    int running = THREADS;
    bool done = false;
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (struct client_thread){.fixture = fixture, .done = &done, .running = &running};
        pthread_create(&clients[i].thread, NULL, client_thread, &clients[i]);
    }
    fixture_until(fixture, &done);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].good, CALLS_PER_THREAD);
    }
    assert_int_equal(fixture->seen.messages, THREADS * CALLS_PER_THREAD);
}

/* ---- other processes ---- */

static pid_t start_self(const char *role, const char *address)
{
    pid_t pid = 0;
    char *arguments[] = {
        "test_rpc_peers", (char *)(uintptr_t)role, (char *)(uintptr_t)address, NULL};
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    return pid;
}

static void end_process(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
}

/* The other process: opens a stream that stays, and waits for its death. */
static int play_holder(const char *address)
{
    struct rpc_loop *loop;
    struct rpc_channel *channel;
    struct rpc_call *call;
    struct client_seen seen = {0};
    const struct rpc_call_options options = {
        .path = HOLD,
        .client_streams = true,
        .server_streams = true,
        .wait_for_ready = true,
        .deadline_us = clock_monotonic_us() + 2 * WAIT_TIMEOUT_US,
        .ops = &client_ops,
        .user = &seen,
    };
    if (rpc_loop_open(&loop, NULL) != CADRE_OK ||
        rpc_channel_open(loop, address, NULL, &channel, NULL) != CADRE_OK ||
        rpc_channel_call(channel, &options, &call, NULL) != CADRE_OK ||
        rpc_call_send(call, "here", 4, NULL) != CADRE_OK) {
        return 1;
    }
    rpc_loop_run_until(loop, &seen.ended, CADRE_TIME_NEVER);
    rpc_channel_close(channel);
    rpc_loop_close(loop);
    return 0;
}

/* The other process: a server at the address, until its death. */
static int play_server(const char *address)
{
    struct fixture fixture = {0};
    snprintf(fixture.address, sizeof fixture.address, "%s", address);
    if (rpc_loop_open(&fixture.loop, NULL) != CADRE_OK) {
        return 1;
    }
    fixture_server(&fixture, (struct rpc_server_options){0});
    const bool never = false;
    rpc_loop_run_until(fixture.loop, &never, clock_monotonic_us() + 2 * WAIT_TIMEOUT_US);
    return 0;
}

static bool has_message(void *user)
{
    return ((const struct server_seen *)user)->messages > 0;
}

static bool has_closed(void *user)
{
    return ((const struct server_seen *)user)->closes > 0;
}

static void client_is_killed_mid_stream(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen;
    pid_t pid = start_self("holder", fixture->address);
    fixture_until_check(fixture, has_message, &fixture->seen);
    assert_int_equal(fixture->seen.closes, 0);
    end_process(pid);
    fixture_until_check(fixture, has_closed, &fixture->seen);
    assert_true(fixture->seen.cancelled);
    assert_int_equal(fixture->seen.half_closes, 0);
    fixture_unary(fixture, UNARY, "others go on", 12, &seen);
    assert_int_equal(seen.status, CADRE_OK);
}

static void client_that_is_stopped_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    rpc_server_close(fixture->server);
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/strict", fixture->folder);
    fixture_server(fixture, (struct rpc_server_options){.keepalive = {
                                                            .idle_us = 200 * CADRE_US_PER_MS,
                                                            .timeout_us = 300 * CADRE_US_PER_MS,
                                                        }});
    pid_t pid = start_self("holder", fixture->address);
    fixture_until_check(fixture, has_message, &fixture->seen);
    kill(pid, SIGSTOP);
    fixture_until_check(fixture, has_closed, &fixture->seen);
    assert_true(fixture->seen.cancelled);
    end_process(pid);
}

static void server_is_killed_and_another_takes_its_place(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen, hold;
    rpc_channel_close(fixture->channel);
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/other", fixture->folder);
    pid_t pid = start_self("server", fixture->address);
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, NULL, &fixture->channel, NULL), CADRE_OK);
    fixture_unary(fixture, UNARY, "x", 1, &seen); /* waits for the server to be ready */
    assert_int_equal(seen.status, CADRE_OK);
    send_text(fixture_call(fixture, CHAT, true, true, &hold), "hello");
    fixture_until(fixture, &hold.got_message);
    end_process(pid);
    fixture_until(fixture, &hold.ended);
    assert_int_equal(hold.status, CADRE_UNAVAILABLE);
    rpc_server_close(fixture->server);
    fixture_server(fixture, (struct rpc_server_options){0}); /* replaces the stale socket */
    fixture_unary(fixture, UNARY, "y", 1, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(fixture->seen.messages, 1);
}

/* ---- nonsense ---- */

static int connect_raw(const struct fixture *fixture)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", fixture->address + 5);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void strangers_do_no_harm(void **state)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const char huge_frame[] = "\xff\xff\xff\x00\x00\x00\x00\x00\x01";
    static const char http1[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct fixture *fixture = *state;
    struct client_seen seen;
    char noise[4096];
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (char)(i * 2654435761u >> 7);
    }
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = connect_raw(fixture);
    }
    assert_int_equal(send(fds[0], noise, sizeof noise, MSG_NOSIGNAL), sizeof noise);
    assert_int_equal(send(fds[1], http1, sizeof http1 - 1, MSG_NOSIGNAL), sizeof http1 - 1);
    assert_int_equal(send(fds[2], preface, sizeof preface - 1, MSG_NOSIGNAL), sizeof preface - 1);
    assert_int_equal(
        send(fds[2], huge_frame, sizeof huge_frame - 1, MSG_NOSIGNAL), sizeof huge_frame - 1);
    for (int i = 0; i < 10; i++) {
        fixture_unary(fixture, UNARY, "others go on", 12, &seen);
        assert_int_equal(seen.status, CADRE_OK);
    }
    for (int i = 0; i < 4; i++) { /* the last of them never sent a byte */
        close(fds[i]);
    }
    fixture_unary(fixture, UNARY, "x", 1, &seen);
    assert_int_equal(seen.status, CADRE_OK);
}

static void metadata_over_the_limit(void **state)
{
    struct fixture *fixture = *state;
    struct client_seen seen = {0};
    struct rpc_call *call;
    char *value = malloc(65537);
    memset(value, 'v', 65536);
    value[65536] = '\0';
    const struct rpc_metadata metadata = {.key = "x-huge", .value = value};
    const struct rpc_call_options options = {
        .path = UNARY,
        .wait_for_ready = true,
        .metadata = &metadata,
        .metadata_count = 1,
        .ops = &client_ops,
        .user = &seen,
    };
    assert_int_equal(rpc_channel_call(fixture->channel, &options, &call, NULL), CADRE_OK);
    send_text(call, "x");
    fixture_until(fixture, &seen.ended);
    assert_int_not_equal(seen.status, CADRE_OK);
    fixture_unary(fixture, UNARY, "x", 1, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    free(value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "holder") == 0) {
        return play_holder(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "server") == 0) {
        return play_server(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        TEST(clients_in_other_threads),
        TEST(client_is_killed_mid_stream),
        TEST(client_that_is_stopped_is_given_up),
        TEST(server_is_killed_and_another_takes_its_place),
        TEST(strangers_do_no_harm),
        TEST(metadata_over_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
