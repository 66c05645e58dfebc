/* SPDX-License-Identifier: Apache-2.0
 * A task's socket: frames of a program are relayed, wrong ones are refused, and neither ends the
 * agent, the task or another connection. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "tests/unit/agent/client.h"
#include "common/base/log.h"

static struct client *watched;

static void client_progress(struct client *client, uint64_t epoch)
{
    client_send_up(client, &(struct task_up){.type = TASK_UP_PROGRESS,
                               .progress = {.stream = "train", .epoch = epoch}});
}

/* Takes what has come. */
static void client_receive(struct client *client)
{
    uint8_t *room = frame_reader_room(&client->reader, 65536);
    assert_non_null(room);
    ssize_t got = recv(client->fd, room, 65536, 0);
    if (got > 0) {
        frame_reader_commit(&client->reader, (size_t)got);
    }
    client->ended = got == 0 || (got < 0 && errno != EAGAIN);
    if (!client->greeted && client->reader.buffer.size >= FRAME_PREAMBLE_BYTES) {
        struct cadre_error error = {0};
        assert_ok(frame_preamble_check(client->reader.buffer.bytes, "the agent", &error), &error);
        client->reader.taken = FRAME_PREAMBLE_BYTES;
        client->greeted = true;
    }
}

static bool watched_ended(struct stage *stage)
{
    (void)stage;
    client_receive(watched);
    return watched->ended;
}

static void until_ended(struct stage *stage, struct client *client)
{
    watched = client;
    until(stage, watched_ended);
}

/* The next frame, if there is one, in `arena`. */
static bool client_next(struct client *client, struct wire_arena *arena, struct task_down *ret_down)
{
    struct cadre_error error = {0};
    const uint8_t *payload;
    size_t size;
    if (!client->greeted ||
        frame_reader_next(&client->reader, &payload, &size, &error) != CADRE_OK) {
        return false;
    }
    assert_ok(wire_unpack_task_down(payload, size, arena, ret_down, &error), &error);
    return true;
}

/* The connection ends after one frame with the reason. */
static void assert_refused(
    struct stage *stage, struct client *client, cadre_status code, const char *part)
{
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct task_down down;
    until_ended(stage, client);
    assert_true(client_next(client, arena, &down));
    assert_int_equal(down.type, TASK_DOWN_REFUSED);
    assert_int_equal(down.refused.code, code);
    if (strstr(down.refused.text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, down.refused.text);
    }
    wire_arena_free(arena);
    client_close(client);
}

static bool something_relayed(struct stage *stage)
{
    return stage->tasks[0].relayed_count > 0;
}

static uint64_t wanted_epoch;

static bool epoch_relayed(struct stage *stage)
{
    return stage->tasks[0].relayed_epoch == wanted_epoch;
}

/* It runs, and sends nothing by itself. */
static struct stage *stage_running(void)
{
    struct stage *stage = stage_open();
    start(stage, 0, "end-on-term", NULL);
    until_printed(stage, 0, "ready");
    return stage;
}

/* A program that connects now is served as ever. */
static void assert_serves(struct stage *stage)
{
    static uint64_t epoch = 1000;
    struct client client = client_open(stage);
    client_greet(&client);
    client_send_up(&client, &client_hello);
    client_progress(&client, ++epoch);
    wanted_epoch = epoch;
    until(stage, epoch_relayed);
    assert_false(stage->tasks[0].gone);
    client_close(&client);
}

static void frames_are_relayed(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct client client = client_open(stage);
    client_greet(&client);
    client_send_up(&client, &client_hello);
    client_progress(&client, 7);
    wanted_epoch = 7;
    until(stage, epoch_relayed);
    const struct played *task = &stage->tasks[0];
    assert_int_equal(task->relayed_count, 2);
    assert_int_equal(task->relay_up[0], TASK_UP_HELLO);
    assert_int_equal(task->relay_up[1], TASK_UP_PROGRESS);
    client_close(&client);
    assert_serves(stage); /* it may come back */
    stage_close(stage);
}

static void bytes_may_come_one_by_one(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct client client = client_open(stage);
    struct wire_buffer bytes = {0};
    struct cadre_error error = {0};
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    frame_preamble_write(preamble);
    assert_ok(frame_pack_task_up(&client_hello, &bytes, &error), &error);
    for (size_t i = 0; i < sizeof preamble + bytes.size; i++) {
        client_send(
            &client, i < sizeof preamble ? &preamble[i] : &bytes.bytes[i - sizeof preamble], 1);
        uv_run(&stage->loop, UV_RUN_NOWAIT);
    }
    until(stage, something_relayed);
    wire_buffer_free(&bytes);
    client_close(&client);
    stage_close(stage);
}

static void relay_down(struct stage *stage, const char *text)
{
    agent_down(stage->agent, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                                 .relay_down = {.job = {1},
                                     .one = true,
                                     .task = task_of(0),
                                     .down = {.type = TASK_DOWN_REFUSED,
                                         .refused = {.code = CADRE_ABORTED, .text = text}}}});
}

static struct wire_arena *watched_arena;
static struct task_down watched_down;

static bool watched_has_frame(struct stage *stage)
{
    (void)stage;
    client_receive(watched);
    return client_next(watched, watched_arena, &watched_down);
}

static void messages_reach_the_program(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct client client = client_open(stage);
    client_greet(&client);
    client_send_up(&client, &client_hello);
    until(stage, something_relayed);
    relay_down(stage, "for you");
    watched = &client;
    watched_arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    until(stage, watched_has_frame);
    assert_int_equal(watched_down.type, TASK_DOWN_REFUSED);
    assert_string_equal(watched_down.refused.text, "for you");
    wire_arena_free(watched_arena);
    client_close(&client);
    stage_close(stage);
}

static void another_version_gets_ours(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    static const uint8_t other[FRAME_PREAMBLE_BYTES] = {'C', 'A', 'D', 'R', 'E', 0, 77, 0};
    struct client client = client_open(stage);
    client_send(&client, other, sizeof other);
    until_ended(stage, &client);
    assert_true(client.greeted); /* so that the program reports what is wrong */
    assert_non_null(strstr(stage->notices, "program has version 77"));
    client_close(&client);
    assert_serves(stage);
    stage_close(stage);
}

static void who_is_no_cadre_program_is_dropped(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client client = client_open(stage);
    client_send(&client, request, sizeof request - 1);
    until_ended(stage, &client);
    assert_non_null(strstr(stage->notices, "sends no frames of Cadre"));
    client_close(&client);
    assert_serves(stage);
    stage_close(stage);
}

static void bad_frames_are_refused(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    static const uint8_t garbage[] = {3, 0, 0, 0, 0xff, 0xff, 0xff};
    static const uint8_t oversize[] = {0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    static const uint8_t empty[] = {0, 0, 0, 0};
    static const struct {
        const void *bytes;
        size_t size;
        cadre_status code;
        const char *part;
    } frames[] = {{garbage, sizeof garbage, CADRE_INVALID_ARGUMENT, "TaskUp"},
        {oversize, sizeof oversize, CADRE_RESOURCE_EXHAUSTED, "a frame claims 4294967295 bytes"},
        {empty, sizeof empty, CADRE_INVALID_ARGUMENT, "TaskUp"}};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        for (int greeted = 0; greeted < 2; greeted++) {
            struct client client = client_open(stage);
            client_greet(&client);
            if (greeted == 1) {
                client_send_up(&client, &client_hello);
            }
            client_send(&client, frames[i].bytes, frames[i].size);
            assert_refused(stage, &client, frames[i].code, frames[i].part);
        }
    }
    assert_serves(stage);
    stage_close(stage);
}

static void the_order_of_messages_is_kept(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct client client = client_open(stage);
    client_greet(&client);
    client_progress(&client, 1);
    client_progress(&client, 2); /* in hand when the connection ends */
    assert_refused(stage, &client, CADRE_FAILED_PRECONDITION, "must send hello first");
    client = client_open(stage);
    client_greet(&client);
    client_send_up(&client, &client_hello);
    client_send_up(&client, &client_hello);
    assert_refused(stage, &client, CADRE_FAILED_PRECONDITION, "hello twice");
    assert_serves(stage);
    stage_close(stage);
}

static void a_second_connection_is_refused(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct client first = client_open(stage);
    client_greet(&first);
    client_send_up(&first, &client_hello);
    until(stage, something_relayed);
    struct client second = client_open(stage);
    client_greet(&second);
    assert_refused(stage, &second, CADRE_ALREADY_EXISTS, "connected already");
    struct client silent = client_open(stage); /* never reads, never leaves */
    linger(stage);
    client_progress(&first, 3);
    wanted_epoch = 3;
    until(stage, epoch_relayed);
    stage_close(stage);
    client_close(&first);
    client_close(&silent);
}

static void a_program_that_dies_does_not_hurt(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    for (int i = 0; i < 3; i++) {
        stage->tasks[0].relayed_count = 0;
        struct client client = client_open(stage);
        client_greet(&client);
        client_send_up(&client, &client_hello);
        until(stage, something_relayed);
        client_close(&client);
        relay_down(stage, "no task is there any more");
        relay_down(stage, "not here, either");
        linger(stage);
    }
    assert_serves(stage);
    stage_close(stage);
}

static bool was_noticed(struct stage *stage)
{
    return strstr(stage->notices, "does not read") != NULL;
}

/* What is not read must not pile up without end. */
static void who_does_not_read_is_dropped(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct client client = client_open(stage);
    char text[LIMIT_TEXT_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    client_greet(&client);
    client_send_up(&client, &client_hello);
    until(stage, something_relayed);
    size_t bytes_sent = 0;
    while (!was_noticed(stage) && bytes_sent < (64U << 20)) {
        relay_down(stage, text);
        bytes_sent += sizeof text;
    }
    assert_true(was_noticed(stage));
    assert_true(bytes_sent > LIMIT_FRAME_BYTES);
    relay_down(stage, "dropped");
    linger(stage);
    client_close(&client);
    assert_serves(stage);
    stage_close(stage);
}

static void noise_is_survived(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct prng prng = {42};
    unsigned notices = 0;
    for (int round = 0; round < 100; round++) {
        struct client client = client_open(stage);
        uint8_t noise[256];
        for (size_t i = 0; i < sizeof noise; i++) {
            noise[i] = (uint8_t)prng_uniform(&prng, 256);
        }
        client_greet(&client);
        noise[0] = (uint8_t)(sizeof noise - 4);
        noise[1] = noise[2] = noise[3] = 0;
        client_send(&client, noise, sizeof noise);
        until_ended(stage, &client);
        client_close(&client);
        notices += stage->notices[0] != '\0';
        stage->notices[0] = '\0';
    }
    assert_in_range(notices, LOG_RATELIMIT_BURST, LOG_RATELIMIT_BURST + 3); /* one a minute more */
    assert_serves(stage);
    stage_close(stage);
}

/* 0, or why not. */
static int connected(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int failed = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    close(fd);
    return failed;
}

static void the_socket_is_private_and_is_served_no_longer_than_the_task(void **state)
{
    (void)state;
    struct stage *stage = stage_running();
    struct stat status;
    assert_int_equal(stat(path_in(stage, "s0"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    stop(stage, 0, 0);
    until_collected(stage, 0);
    assert_int_equal(connected(path_in(stage, "s0")), ECONNREFUSED);
    stage_close(stage);
}

static void a_stale_socket_is_replaced(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    test_write(path_in(stage, "s0"), "left by a daemon that was killed");
    assert_int_equal(play(stage, "exit", "0")->exit.code, 0);
    stage_close(stage);
}

static void bad_paths_for_a_socket_are_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    char name[121];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    stage->socket_name = name;
    const struct played *task = play(stage, "exit", "0");
    assert_int_equal(task->exit.code, 126);
    assert_non_null(strstr(task->exit.text, "shorter state or runtime directory"));
    stage->socket_name = "nowhere/s";
    start(stage, 1, "exit", "0");
    until_collected(stage, 1);
    assert_int_equal(stage->tasks[1].exit.code, 126);
    assert_non_null(strstr(stage->tasks[1].exit.text, "cannot serve the task on"));
    assert_int_equal(mkdir(path_in(stage, "d2"), 0700), 0);
    stage->socket_name = "d";
    start(stage, 2, "exit", "0");
    until_collected(stage, 2);
    assert_int_equal(stage->tasks[2].exit.code, 126);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_are_relayed),
        cmocka_unit_test(bytes_may_come_one_by_one), cmocka_unit_test(messages_reach_the_program),
        cmocka_unit_test(another_version_gets_ours),
        cmocka_unit_test(who_is_no_cadre_program_is_dropped),
        cmocka_unit_test(bad_frames_are_refused), cmocka_unit_test(the_order_of_messages_is_kept),
        cmocka_unit_test(a_second_connection_is_refused),
        cmocka_unit_test(a_program_that_dies_does_not_hurt),
        cmocka_unit_test(who_does_not_read_is_dropped), cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(the_socket_is_private_and_is_served_no_longer_than_the_task),
        cmocka_unit_test(a_stale_socket_is_replaced),
        cmocka_unit_test(bad_paths_for_a_socket_are_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
