/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc_fixture.h"

#include "tests/lib/speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the server's methods ---- */

static void note_open(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    size_t length = 0;
    const char *value = rpc_call_metadata(call, "x-test", &length);
    fixture->seen.opens++;
    fixture->seen.call = call;
    snprintf(fixture->seen.metadata, sizeof fixture->seen.metadata, "%.*s", (int)length,
        value != NULL ? value : "");
    snprintf(fixture->seen.peer, sizeof fixture->seen.peer, "%s", rpc_call_peer(call));
}

static void note_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct fixture *fixture = user;
    (void)call;
    assert_non_null(data);
    (void)length;
    fixture->seen.messages++;
}

static void note_drained(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    (void)call;
    fixture->seen.drains++;
}

static void note_shutdown(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    (void)call;
    fixture->seen.shutdowns++;
}

static void note_closed(struct rpc_call *call, bool cancelled, void *user)
{
    struct fixture *fixture = user;
    fixture->seen.closes++;
    fixture->seen.cancelled = cancelled;
    if (fixture->seen.call == call) {
        fixture->seen.call = NULL;
    }
    assert_int_equal(rpc_call_send(call, "late", 4, NULL), CADRE_CANCELLED);
}

static void unary_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    note_message(call, data, length, user);
    struct rpc_buffer answer;
    rpc_buffer_alloc(&answer, length + 16); /* more than is needed, to commit less */
    if (length > 0) {
        memcpy(answer.data, data, length);
    }
    rpc_buffer_commit(&answer, length);
    rpc_call_reply(call, &answer);
    rpc_buffer_free(&answer);
}

static void upload_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    note_message(call, data, length, user);
    size_t total = (size_t)(uintptr_t)rpc_call_user(call) + length;
    rpc_call_set_user(call, (void *)(uintptr_t)total);
}

static void upload_half_close(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    char text[32];
    fixture->seen.half_closes++;
    snprintf(text, sizeof text, "%zu", (size_t)(uintptr_t)rpc_call_user(call));
    send_text(call, text);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void download_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    char text[32] = "";
    note_message(call, data, length, user);
    memcpy(text, data, length < sizeof text ? length : sizeof text - 1);
    long count = strtol(text, NULL, 10);
    for (long i = 0; i < count; i++) {
        snprintf(text, sizeof text, "message %ld", i);
        send_text(call, text);
    }
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void chat_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    note_message(call, data, length, user);
    assert_int_equal(rpc_call_send(call, data, length, NULL), CADRE_OK);
}

static void chat_half_close(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    fixture->seen.half_closes++;
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void flood_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    static const char block[16384];
    struct cadre_error error = {0};
    note_message(call, data, length, user);
    while (rpc_call_send(call, block, sizeof block, &error) == CADRE_OK) {
    }
    rpc_call_abort(call, error.code, error.text);
}

static void fail_open(struct rpc_call *call, void *user)
{
    note_open(call, user);
    struct cadre_error error;
    cadre_error_set(
        &error, CADRE_FAILED_PRECONDITION, "job %d: 100%% of it is gone; \"try\" again", 7);
    rpc_call_fail(call, &error);
    rpc_call_finish(call, CADRE_INTERNAL, "ignored: it is finished already");
}

static void end_shutdown(struct rpc_call *call, void *user)
{
    note_shutdown(call, user);
    send_text(call, "bye");
    rpc_call_finish(call, CADRE_UNAVAILABLE, "going down");
}

static const struct rpc_server_ops unary_ops = {
    .on_open = note_open,
    .on_message = unary_message,
    .on_drained = note_drained,
    .on_closed = note_closed,
};
static const struct rpc_server_ops upload_ops = {
    .on_open = note_open,
    .on_message = upload_message,
    .on_half_close = upload_half_close,
    .on_closed = note_closed,
};
static const struct rpc_server_ops download_ops = {
    .on_open = note_open,
    .on_message = download_message,
    .on_drained = note_drained,
    .on_closed = note_closed,
};
static const struct rpc_server_ops chat_ops = {
    .on_open = note_open,
    .on_message = chat_message,
    .on_half_close = chat_half_close,
    .on_drained = note_drained,
    .on_closed = note_closed,
};
static const struct rpc_server_ops flood_ops = {
    .on_open = note_open,
    .on_message = flood_message,
    .on_closed = note_closed,
};
static const struct rpc_server_ops fail_ops = {.on_open = fail_open, .on_closed = note_closed};
static const struct rpc_server_ops hold_ops = {
    .on_open = note_open,
    .on_message = note_message,
    .on_shutdown = note_shutdown,
    .on_closed = note_closed,
};
static const struct rpc_server_ops end_ops = {
    .on_open = note_open,
    .on_message = note_message,
    .on_shutdown = end_shutdown,
    .on_closed = note_closed,
};

/* ---- the client's side ---- */

static void client_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct client_seen *seen = user;
    (void)call;
    assert_non_null(data);
    assert_int_equal(seen->ends, 0);
    seen->messages++;
    seen->got_message = true;
    seen->bytes += length;
    size_t kept = length < sizeof seen->last ? length : sizeof seen->last - 1;
    memcpy(seen->last, data, kept);
    seen->last[kept] = '\0';
}

static void client_drained(struct rpc_call *call, void *user)
{
    struct client_seen *seen = user;
    (void)call;
    seen->drains++;
}

static void client_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct client_seen *seen = user;
    (void)call;
    seen->ends++;
    seen->ended = true;
    seen->status = status;
    snprintf(seen->text, sizeof seen->text, "%s", text);
}

const struct rpc_client_ops client_ops = {
    .on_message = client_message,
    .on_drained = client_drained,
    .on_status = client_status,
};

void send_text(struct rpc_call *call, const char *text)
{
    assert_int_equal(rpc_call_send(call, text, strlen(text), NULL), CADRE_OK);
}

struct rpc_call *fixture_call(
    struct fixture *fixture, const char *path, bool up, bool down, struct client_seen *seen)
{
    static const struct rpc_metadata metadata[] = {{.key = "x-test", .value = "some value"}};
    struct rpc_call *call = NULL;
    *seen = (struct client_seen){0};
    const struct rpc_call_options options = {
        .path = path,
        .client_streams = up,
        .server_streams = down,
        .wait_for_ready = true,
        .deadline_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US),
        .metadata = metadata,
        .metadata_count = 1,
        .ops = &client_ops,
        .user = seen,
    };
    assert_int_equal(rpc_channel_call(fixture->channel, &options, &call, NULL), CADRE_OK);
    return call;
}

void fixture_until(struct fixture *fixture, const bool *done)
{
    uint64_t deadline_us = clock_monotonic_us() + speed_scaled_us(WAIT_TIMEOUT_US);
    assert_int_equal(rpc_loop_run_until(fixture->loop, done, deadline_us), CADRE_OK);
}

struct checking {
    bool (*check)(void *user);
    void *user;
    bool done;
};

static void check_now(void *user)
{
    struct checking *checking = user;
    checking->done = checking->check(checking->user);
}

void fixture_until_check(struct fixture *fixture, bool (*check)(void *user), void *user)
{
    struct checking checking = {.check = check, .user = user, .done = check(user)};
    rpc_loop_on_turn_end(fixture->loop, check_now, &checking);
    fixture_until(fixture, &checking.done);
    rpc_loop_on_turn_end(fixture->loop, NULL, NULL);
}

void fixture_unary(struct fixture *fixture, const char *path, const void *data, size_t length,
    struct client_seen *seen)
{
    struct rpc_call *call = fixture_call(fixture, path, false, false, seen);
    assert_int_equal(rpc_call_send(call, data, length, NULL), CADRE_OK);
    fixture_until(fixture, &seen->ended);
    assert_int_equal(seen->ends, 1);
}

/* ---- both ---- */

void fixture_server(struct fixture *fixture, struct rpc_server_options options)
{
    const struct rpc_method methods[] = {
        {UNARY, false, false, REQUEST_BYTES_MAX, &unary_ops, fixture},
        {UPLOAD, true, false, REQUEST_BYTES_MAX, &upload_ops, fixture},
        {DOWNLOAD, false, true, REQUEST_BYTES_MAX, &download_ops, fixture},
        {CHAT, true, true, 1 << 20, &chat_ops, fixture},
        {FLOOD, false, true, REQUEST_BYTES_MAX, &flood_ops, fixture},
        {FAIL, true, true, REQUEST_BYTES_MAX, &fail_ops, fixture},
        {HOLD, true, true, REQUEST_BYTES_MAX, &hold_ops, fixture},
        {END_AT_SHUTDOWN, true, true, REQUEST_BYTES_MAX, &end_ops, fixture},
    };
    options.methods = methods;
    options.method_count = sizeof methods / sizeof methods[0];
    struct cadre_error error = {0};
    assert_int_equal(rpc_server_open(fixture->loop, &options, &fixture->server, &error), CADRE_OK);
    if (rpc_server_listen(fixture->server, fixture->address, NULL, NULL, &error) != CADRE_OK) {
        fail_msg("%s", error.text);
    }
    rpc_server_start(fixture->server);
}

int fixture_open(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/cadre-rpc-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/socket", fixture->folder);
    assert_int_equal(rpc_loop_open(&fixture->loop, NULL), CADRE_OK);
    fixture_server(fixture, (struct rpc_server_options){0});
    assert_int_equal(
        rpc_channel_open(fixture->loop, fixture->address, NULL, &fixture->channel, NULL), CADRE_OK);
    *state = fixture;
    return 0;
}

int fixture_close(void **state)
{
    struct fixture *fixture = *state;
    rpc_channel_close(fixture->channel);
    rpc_server_close(fixture->server);
    rpc_loop_close(fixture->loop);
    assert_int_equal(fixture->seen.opens, fixture->seen.closes);
    assert_int_equal(rmdir(fixture->folder), 0); /* the socket was removed */
    free(fixture);
    return 0;
}
