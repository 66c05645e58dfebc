/* SPDX-License-Identifier: Apache-2.0
 * An operation from start to end: its calls one after the other, what their ends mean, trying
 * again, and its completion. Every public function of the other files starts one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/client/state.h"
#include "common/pure/assert.h"

/* Of several coordinators one leads after a few seconds, unless etcd has no quorum. */
#define LEADER_WAIT_US   (30 * CADRE_US_PER_S)
#define RESTART_AFTER_US (250 * CADRE_US_PER_MS)

/* ---- completion ---- */

static void count_idle(struct cadre_client *client)
{
    client->idle = true;
    for (const struct operation *at = client->operations; at != NULL; at = at->next) {
        client->idle = client->idle && !at->has_then;
    }
}

static void unlink_operation(struct operation *operation)
{
    struct operation **at = &operation->client->operations;
    while (*at != NULL && *at != operation) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = operation->next;
    }
    count_idle(operation->client);
}

static void report_outage(struct cadre_client *client, bool in_outage)
{
    if (client->in_outage != in_outage) {
        client->in_outage = in_outage;
        if (client->on_outage != NULL) {
            client->on_outage(in_outage, client->user);
        }
    }
}

/* The coordinator that it waited for is back: a stream goes on, or a call was answered. */
static void end_outage(struct operation *operation)
{
    if (operation->outage_since_us != 0) {
        operation->outage_since_us = 0;
        report_outage(operation->client, false);
    }
}

/* With a `then` the operation is released here; else operation_launch() releases it. */
static void operation_end(struct operation *operation, cadre_status status)
{
    operation->ended = true;
    if (status == CADRE_OK) {
        end_outage(operation);
    }
    operation->restart_us = 0;
    if (status == CADRE_OK) {
        operation->error = (struct cadre_error){0};
    }
    operation->error.code = status;
    unlink_operation(operation);
    if (operation->has_then) {
        if (operation->then.done != NULL) {
            operation->then.done(status, operation->error.text, operation->then.user);
        }
        operation->kind->release(operation);
    }
}

/* ---- the end of a call ---- */

/* A coordinator's sentences are passed on; those of the transport, about sockets, are replaced. */
static bool is_sentence_of_server(const char *text)
{
    return strncmp(text, "the ", 4) == 0;
}

/* Of "1.2.3" the numbers; false: it is something else. */
static bool parse_version(const char *text, unsigned ret_numbers[3])
{
    return text != NULL &&
           sscanf(text, "%u.%u.%u", &ret_numbers[0], &ret_numbers[1], &ret_numbers[2]) == 3;
}

static bool is_older(const char *version, const char *than)
{
    unsigned a[3], b[3];
    bool known = parse_version(version, a) && parse_version(than, b);
    for (int i = 0; known && i < 3; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i];
        }
    }
    return false;
}

/* The server has no such method. Which side is to be upgraded: the older one. */
static void explain_unknown(const struct operation *operation, struct cadre_error *error)
{
    const struct cadre_client *client = operation->client;
    const char *method = strrchr(operation->how.path, '/') + 1;
    if (client->version == NULL) {
        cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "the server at %s does not know %s, the first question of a client (version %s): it is "
            "no coordinator; look at the address",
            rpc_endpoints_address(client->endpoints), method, CADRE_VERSION);
        return;
    }
    cadre_error_set(error, CADRE_UNIMPLEMENTED,
        "the coordinator at %s has version %s and does not know %s, which this client of version "
        "%s asks for: upgrade the %s",
        rpc_endpoints_address(client->endpoints), client->version, method, CADRE_VERSION,
        is_older(CADRE_VERSION, client->version) ? "client" : "coordinator");
}

/* The path of a Unix socket that is there, but not for this user; or NULL. */
static const char *forbidden_socket(const char *address)
{
    const char *path = strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
    return path != NULL && access(path, W_OK) != 0 && errno == EACCES ? path : NULL;
}

static void operation_explain(struct operation *operation, cadre_status status, const char *text)
{
    const char *address = operation->client->address;
    struct cadre_error *error = &operation->error;
    bool no_server = status == CADRE_UNAVAILABLE && !is_sentence_of_server(text);
    const char *forbidden = no_server ? forbidden_socket(address) : NULL;
    if (forbidden != NULL) {
        cadre_error_set(error, status,
            "this user may not open the socket %s: become a member of its group (`ls -l` shows "
            "which), or give another --coordinator / CADRE_COORDINATOR",
            forbidden);
    } else if (no_server && operation->refusal[0] != '\0') {
        cadre_error_set(error, status, "%s", operation->refusal);
    } else if (no_server) {
        cadre_error_set(error, status,
            "no coordinator answers at %s: start cadre-coordinator or give --coordinator / "
            "CADRE_COORDINATOR",
            address);
    } else if (status == CADRE_DEADLINE_EXCEEDED) {
        cadre_error_set(error, status,
            "the coordinator at %s did not answer within %" PRIu64 " ms: is it overloaded or "
            "stopped?",
            rpc_endpoints_address(operation->client->endpoints),
            operation->client->timeout_us / CADRE_US_PER_MS);
    } else if (status == CADRE_UNIMPLEMENTED) {
        explain_unknown(operation, error);
    } else {
        cadre_error_set(error, status, "%s", text[0] != '\0' ? text : cadre_status_name(status));
    }
}

/* Whether the operation waits for the coordinator to come back. */
static bool wait_for_restart(struct operation *operation, cadre_status status)
{
    struct cadre_client *client = operation->client;
    bool lost = status == CADRE_UNAVAILABLE || status == CADRE_DEADLINE_EXCEEDED;
    if (!lost || operation->kind->restart == NULL || operation->stopped || operation->failed ||
        client->closing) {
        return false;
    }
    uint64_t now_us = clock_monotonic_us();
    if (operation->outage_since_us == 0) {
        operation->outage_since_us = now_us;
    }
    if (now_us - operation->outage_since_us >= client->wait_timeout_us) {
        cadre_error_set(&operation->error, status,
            "the coordinator at %s did not come back within %" PRIu64
            " s: the job may go on without it, look again later with `cadre job`",
            client->address, client->wait_timeout_us / CADRE_US_PER_S);
        return false;
    }
    operation->restart_us = now_us + RESTART_AFTER_US;
    rpc_loop_stop(client->loop); /* client_drive() has to see the new time */
    report_outage(client, true);
    return true;
}

/* Whether it waits for one of several coordinators to lead: nothing was carried out. */
static bool wait_for_leader(struct operation *operation)
{
    struct cadre_client *client = operation->client;
    bool awaited = operation->attempt.awaited;
    operation->attempt.awaited = false;
    if (awaited && client->connecting) {
        client->leaderless = true;
        return false;
    }
    if (!awaited || operation->answered || !operation->repeats || client->closing) {
        return false;
    }
    uint64_t now_us = clock_monotonic_us();
    if (operation->outage_since_us == 0) {
        operation->outage_since_us = now_us;
    }
    if (now_us - operation->outage_since_us >= LEADER_WAIT_US) {
        return false;
    }
    operation->restart_us = now_us + RESTART_AFTER_US;
    rpc_loop_stop(client->loop);
    return true;
}

/* What is answered from now on is no older than this answer. One of another cluster counts alone:
 * nothing of this one is there. */
static void note_position(struct cadre_client *client, const struct rpc_call *call)
{
    struct ledger_position position;
    size_t length = 0;
    const char *text = rpc_call_trailer(call, LEDGER_POSITION_KEY, &length);
    if (text == NULL || !ledger_position_read(text, length, &position)) {
        return;
    }
    if (position.cluster != client->seen.cluster ||
        ledger_position_is_newer(&position, &client->seen)) {
        client->seen = position;
    }
}

static void note_age(struct cadre_client *client, const struct rpc_call *call)
{
    uint64_t ms = 0;
    size_t length = 0;
    const char *text = rpc_call_trailer(call, LEDGER_AGE_KEY, &length);
    bool unknown = text != NULL && length == sizeof LEDGER_AGE_UNKNOWN - 1 &&
                   memcmp(text, LEDGER_AGE_UNKNOWN, length) == 0;
    for (size_t i = 0; text != NULL && i < length && i < 12; i++) {
        ms = ms * 10 + (uint64_t)(text[i] >= '0' && text[i] <= '9' ? text[i] - '0' : 0);
    }
    if (client->stale_age_us != NULL) {
        *client->stale_age_us = unknown ? UINT64_MAX : ms * CADRE_US_PER_MS;
    }
}

/* A coordinator that answered stays the one that is asked. */
static void note_answer(struct operation *operation)
{
    operation->answered = true;
    operation->refusal[0] = '\0';
    if (operation->how.server_streams) {
        operation->attempt = (struct rpc_attempt){0};
    }
    rpc_endpoints_answered(operation->client->endpoints, operation->channel);
}

static cadre_status send_request(
    struct operation *operation, const struct operation_call *call, struct cadre_error *error);

static cadre_status make_again(struct operation *operation)
{
    const struct operation_call how = operation->how;
    struct cadre_error *error = &operation->error;
    wire_buffer_clear(&operation->client->packed);
    return operation->kind->restart != NULL ? operation->kind->restart(operation, error)
                                            : send_request(operation, &how, error);
}

/* Makes the call again at the coordinator that is to be asked next. False: there is none, or part
 * of an answer has been delivered. */
static bool repeat_elsewhere(struct operation *operation, const struct rpc_call *call)
{
    struct cadre_client *client = operation->client;
    bool again =
        rpc_endpoints_failed(client->endpoints, &operation->attempt, operation->channel, call);
    bool restarts = operation->kind->restart != NULL;
    if (!again || client->closing || (!restarts && (operation->answered || !operation->repeats))) {
        return false;
    }
    cadre_status status = make_again(operation);
    if (status != CADRE_OK) {
        operation_end(operation, status);
    }
    return true;
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct operation *operation = user;
    bool ours = operation->failed || operation->stopped;
    operation->call = NULL;
    if (status == CADRE_UNAVAILABLE && is_sentence_of_server(text)) {
        snprintf(operation->refusal, sizeof operation->refusal, "%s", text);
    }
    if (!ours && status == CADRE_UNAVAILABLE &&
        (repeat_elsewhere(operation, call) || wait_for_leader(operation))) {
        return;
    }
    if (!ours && status != CADRE_UNAVAILABLE && status != CADRE_DEADLINE_EXCEEDED &&
        !operation->client->closing) {
        note_answer(operation);
        note_position(operation->client, call);
        note_age(operation->client, call);
    }
    if (operation->failed) {
        status = operation->error.code;
    } else if (operation->stopped) {
        status = CADRE_OK;
    } else if (status != CADRE_OK) {
        operation_explain(operation, status, text);
    }
    if (wait_for_restart(operation, status)) {
        return;
    }
    if (operation->kind->call_ended != NULL && !operation->stopped) {
        struct cadre_error *error = &operation->error;
        status = operation->kind->call_ended(operation, status, error);
    }
    if (status != CADRE_PENDING) {
        operation_end(operation, status);
    }
}

/* ---- messages of a call ---- */

static void give_up(struct operation *operation, cadre_status status)
{
    operation->failed = true;
    operation->error.code = status;
    rpc_call_cancel(operation->call);
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct operation *operation = user;
    (void)call;
    if (operation->failed || operation->stopped) {
        return;
    }
    note_answer(operation);
    if (operation->how.server_streams) {
        end_outage(operation);
    }
    wire_arena_reset(operation->client->arena);
    if (operation->kind->message != NULL) {
        cadre_status status = operation->kind->message(operation, data, length, &operation->error);
        if (status != CADRE_OK) {
            give_up(operation, status);
        }
    }
}

static void on_drained(struct rpc_call *call, void *user)
{
    struct operation *operation = user;
    (void)call;
    if (operation->failed || operation->stopped || operation->kind->drained == NULL) {
        return;
    }
    cadre_status status = operation->kind->drained(operation, &operation->error);
    if (status != CADRE_OK) {
        give_up(operation, status);
    }
}

void operation_stop(struct operation *operation)
{
    operation->stopped = true;
    rpc_call_cancel(operation->call);
}

/* ---- starting ---- */

/* What goes with each call; returns how many. */
static size_t describe_client(const struct cadre_client *client, char seen[LEDGER_POSITION_BYTES],
    struct rpc_metadata ret_metadata[2])
{
    size_t count = 0;
    if (client->seen.term > 0) {
        ledger_position_write(&client->seen, seen);
        ret_metadata[count++] = (struct rpc_metadata){.key = LEDGER_POSITION_KEY, .value = seen};
    }
    if (client->stale_age_us != NULL) {
        ret_metadata[count++] = (struct rpc_metadata){.key = LEDGER_STALE_KEY, .value = "1"};
    }
    return count;
}

cadre_status operation_call(
    struct operation *operation, const struct operation_call *call, struct cadre_error *error)
{
    static const struct rpc_client_ops ops = {
        .on_message = on_message, .on_drained = on_drained, .on_status = on_status};
    struct cadre_client *client = operation->client;
    if (client->closing) {
        return cadre_error_set(error, CADRE_CANCELLED, "the client was closed");
    }
    char seen[LEDGER_POSITION_BYTES];
    struct rpc_metadata metadata[2];
    struct rpc_call_options options = {.path = call->path,
        .metadata = metadata,
        .metadata_count = describe_client(client, seen, metadata),
        .client_streams = call->client_streams,
        .server_streams = call->server_streams,
        .deadline_us = call->has_timeout ? clock_monotonic_us() + client->timeout_us : 0,
        .ops = &ops,
        .user = operation};
    operation->how = *call;
    operation->channel = rpc_endpoints_channel(client->endpoints);
    operation->answered = false;
    operation->repeats = false;
    return rpc_channel_call(operation->channel, &options, &operation->call, error);
}

static cadre_status send_request(
    struct operation *operation, const struct operation_call *call, struct cadre_error *error)
{
    const struct wire_buffer *request = &operation->request;
    static const uint8_t nothing[1];
    CADRE_TRY(operation_call(operation, call, error));
    operation->repeats = true;
    cadre_status status = rpc_call_send(
        operation->call, request->size > 0 ? request->bytes : nothing, request->size, error);
    if (status != CADRE_OK && status != CADRE_CANCELLED) {
        give_up(operation, status);
    }
    return CADRE_OK; /* from here on the end of the call reports errors */
}

cadre_status operation_send(
    struct operation *operation, const struct operation_call *call, struct cadre_error *error)
{
    const struct wire_buffer *packed = &operation->client->packed;
    struct wire_buffer *request = &operation->request;
    wire_buffer_clear(request);
    if (!wire_buffer_reserve(request, packed->size)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for another call");
    }
    if (packed->size > 0) {
        memcpy(request->bytes, packed->bytes, packed->size);
    }
    request->size = packed->size;
    return send_request(operation, call, error);
}

void *operation_new(struct cadre_client *client, const struct operation_kind *kind, size_t bytes,
    const cadre_then *then)
{
    struct cadre_error error = {0};
    if (client->driving && then == NULL) {
        cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "a callback of a client cannot make a call that blocks: give the call a `then`");
        cadre_error_publish(&error);
        return NULL;
    }
    struct operation *operation = calloc(1, bytes);
    if (operation == NULL) {
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for another call");
        cadre_error_publish(&error);
        return NULL;
    }
    operation->client = client;
    operation->kind = kind;
    operation->has_then = then != NULL;
    operation->then = then != NULL ? *then : (cadre_then){0};
    wire_buffer_clear(&client->packed);
    return operation;
}

cadre_status operation_new_status(const struct cadre_client *client, const cadre_then *then)
{
    return client->driving && then == NULL ? CADRE_FAILED_PRECONDITION : CADRE_RESOURCE_EXHAUSTED;
}

void operation_free(struct operation *operation)
{
    wire_buffer_free(&operation->request);
    free(operation);
}

cadre_status operation_launch(struct operation *operation, cadre_status status,
    const struct cadre_error *error, const cadre_then *then)
{
    struct cadre_client *client = operation->client;
    if (status != CADRE_OK) {
        struct cadre_error failure = *error;
        failure.code = status;
        operation->kind->release(operation);
        return cadre_error_publish(&failure);
    }
    operation->next = client->operations;
    client->operations = operation;
    count_idle(client);
    if (then != NULL) {
        return CADRE_OK;
    }
    while (!operation->ended) {
        (void)client_drive(
            client, &operation->ended, CADRE_TIME_NEVER); /* a wake does not end a blocking call */
    }
    struct cadre_error outcome = operation->error;
    operation->kind->release(operation);
    return outcome.code == CADRE_OK ? CADRE_OK : cadre_error_publish(&outcome);
}

/* ---- driving ---- */

/* Starts again what is due; returns when the next one will be. */
static uint64_t restart_due(struct cadre_client *client)
{
    uint64_t next_us = CADRE_TIME_NEVER;
    uint64_t now_us = clock_monotonic_us();
    struct operation *operation = client->operations;
    while (operation != NULL) {
        struct operation *after = operation->next;
        if (operation->restart_us != 0 && operation->restart_us <= now_us) {
            operation->restart_us = 0;
            cadre_status status = make_again(operation);
            if (status != CADRE_OK) {
                operation_end(operation, status);
                return now_us; /* `done` may have changed the list */
            }
        } else if (operation->restart_us != 0 && operation->restart_us < next_us) {
            next_us = operation->restart_us;
        }
        operation = after;
    }
    return next_us;
}

cadre_status client_drive(struct cadre_client *client, const bool *done, uint64_t deadline_us)
{
    cadre_status status = CADRE_PENDING;
    client->driving = true;
    while (status == CADRE_PENDING) {
        uint64_t next_us = restart_due(client);
        cadre_status turned =
            rpc_loop_run_until(client->loop, done, next_us < deadline_us ? next_us : deadline_us);
        if (*done) {
            status = CADRE_OK;
        } else if (atomic_exchange(&client->woken, false)) {
            status = CADRE_CANCELLED;
        } else if (turned == CADRE_DEADLINE_EXCEEDED && clock_monotonic_us() >= deadline_us) {
            status = CADRE_DEADLINE_EXCEEDED;
        }
    }
    client->driving = false;
    client_arm_timer(client);
    return status;
}

void client_arm_timer(struct cadre_client *client)
{
    uint64_t next_us = 0;
    if (client->timer_fd < 0) {
        return;
    }
    for (const struct operation *at = client->operations; at != NULL; at = at->next) {
        if (at->restart_us != 0 && (next_us == 0 || at->restart_us < next_us)) {
            next_us = at->restart_us;
        }
    }
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(next_us / CADRE_US_PER_S),
                                      .tv_nsec = (long)(next_us % CADRE_US_PER_S) * 1000}};
    int failed = timerfd_settime(client->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    CADRE_ASSERT(failed == 0);
}
