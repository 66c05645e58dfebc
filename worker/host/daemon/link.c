/* SPDX-License-Identifier: Apache-2.0
 * The one stream to the coordinator. It is opened again until the daemon ends: at the next of its
 * addresses at once, and when none of them has answered, after a growing pause that is different
 * for each worker. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/pure/prng.h"
#include "common/wire/methods.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/mesh_host.h"
#include "worker/host/daemon/silence.h"

/* A coordinator that was killed is mostly back at once, and its jobs wait for it. */
#define RETRY_MIN_US (50 * CADRE_US_PER_MS)
#define RETRY_MAX_US (2 * CADRE_US_PER_S)
/* For so long it is true that an address has failed: one of several coordinators lets a stream wait
 * while another one is about to lead. */
#define FRESH_US        (200 * CADRE_US_PER_MS)
#define REPORT_AGAIN_US (60 * CADRE_US_PER_S)

static void open_stream(struct daemon *daemon);

static void on_reconnect_timer(uv_timer_t *timer)
{
    open_stream(timer->data);
}

static void reconnect_after_pause(struct daemon *daemon)
{
    daemon->reconnect_us = daemon->reconnect_us * 2;
    if (daemon->reconnect_us < RETRY_MIN_US) {
        daemon->reconnect_us = RETRY_MIN_US;
    } else if (daemon->reconnect_us > RETRY_MAX_US) {
        daemon->reconnect_us = RETRY_MAX_US;
    }
    struct prng prng = {clock_monotonic_us()};
    uint64_t pause_us =
        daemon->reconnect_us / 2 + prng_uniform(&prng, daemon->reconnect_us / 2 + 1);
    uv_timer_start(&daemon->reconnect_timer, on_reconnect_timer, pause_us / 1000 + 1, 0);
}

/* Found again by each stream: a host's address may have changed, and so may the coordinator's. */
static void find_mesh_host(struct daemon *daemon)
{
    struct cadre_error error = {0};
    char host[MESH_HOST_BYTES];
    if (!mesh_host_is_auto(daemon->options.mesh_host)) {
        return;
    }
    cadre_status status = mesh_host_toward(rpc_call_peer(daemon->join), host, &error);
    if (status == CADRE_OK) {
        status = agent_set_mesh_host(daemon->agent, host, &error);
    }
    if (status != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "link", "tasks listen on the address they had before",
            LOG_STR("reason", error.text));
        return;
    }
    log_event(LOG_LEVEL_DEBUG, "link", "tasks listen on this host's address toward the coordinator",
        LOG_STR("mesh_host", host));
}

/* Sets the version of the stream. */
static cadre_status protocol_accept(
    struct daemon *daemon, const struct agent_welcome *welcome, struct cadre_error *error)
{
    uint32_t version =
        welcome->protocol_version != 0 ? welcome->protocol_version : AGENT_PROTOCOL_OLDEST;
    if (!version_range_has(AGENT_PROTOCOL_RANGE, version)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this worker refuses the coordinator, which chose agent protocol %u of the worker's %d "
            "to %d: install the same version of both",
            version, AGENT_PROTOCOL_OLDEST, AGENT_PROTOCOL_VERSION);
    }
    daemon->protocol = version;
    return CADRE_OK;
}

static void on_welcome(struct daemon *daemon, const struct agent_welcome *welcome)
{
    log_event(LOG_LEVEL_INFO, "link", "joined the coordinator",
        LOG_U64("worker", welcome->worker.n), LOG_U64("protocol", daemon->protocol),
        LOG_STR("coordinator", rpc_endpoints_address(daemon->endpoints)));
    rpc_endpoints_answered(daemon->endpoints, daemon->channel);
    daemon->attempt = (struct rpc_attempt){0};
    daemon->linked = true;
    daemon->reconnect_us = 0;
    daemon->tries = 0;
    if (!daemon->was_linked && daemon->options.ready_file != NULL) {
        struct cadre_error error = {0};
        daemon->ready_file_written =
            file_write_atomic(daemon->options.ready_file, "joined\n", 7, 0644, &error) == CADRE_OK;
        if (!daemon->ready_file_written) {
            log_event(LOG_LEVEL_WARNING, "link", "cannot write the ready file",
                LOG_STR("reason", error.text));
        }
    }
    daemon->was_linked = true;
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct agent_down down;
    if (daemon->join != call) {
        return; /* the daemon is closing */
    }
    wire_arena_reset(daemon->arena);
    if (wire_unpack_agent_down(data, length, daemon->arena, &down, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "link", "a message of the coordinator is refused",
            LOG_STR("reason", error.text));
        rpc_call_abort(call, error.code, error.text);
        return;
    }
    silence_frame(daemon);
    if (down.type == AGENT_DOWN_LOG_ACK) {
        daemon->link_callbacks->log_acked(daemon, &down.log_ack);
        return;
    }
    if (down.type == AGENT_DOWN_KEEPALIVE) {
        term_note_index(daemon, daemon->linked ? down.keepalive.log_index : 0);
        return;
    }
    if (down.type == AGENT_DOWN_WELCOME) {
        if (protocol_accept(daemon, &down.welcome, &error) != CADRE_OK ||
            term_accept(daemon, &down.welcome, &error) != CADRE_OK) {
            rpc_call_abort(call, error.code, error.text);
            return;
        }
        on_welcome(daemon, &down.welcome);
        silence_limit(daemon, down.welcome.silence_us);
        find_mesh_host(daemon);
    }
    agent_down(daemon->agent, &down);
    if (down.type == AGENT_DOWN_WELCOME) {
        daemon->link_callbacks->linked(daemon);
    }
}

/* The same reason is logged once in a while. */
static void log_reason(struct daemon *daemon, cadre_status status, const char *text)
{
    bool refused = status == CADRE_ALREADY_EXISTS || status == CADRE_FAILED_PRECONDITION ||
                   status == CADRE_INVALID_ARGUMENT || status == CADRE_RESOURCE_EXHAUSTED ||
                   status == CADRE_PERMISSION_DENIED || status == CADRE_UNAUTHENTICATED;
    uint64_t now_us = clock_monotonic_us();
    bool same = strncmp(daemon->refusal, text, sizeof daemon->refusal - 1) == 0;
    daemon->tries++;
    if (same && !daemon->linked && now_us - daemon->refusal_us < REPORT_AGAIN_US) {
        return;
    }
    log_event(refused ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "link",
        refused ? "the coordinator refuses this worker; trying again"
                : "no coordinator; trying again",
        LOG_STR("coordinator", daemon->options.coordinator),
        LOG_STR("code", cadre_status_name(status)), LOG_STR("reason", text),
        LOG_U64("tries", daemon->tries));
    snprintf(daemon->refusal, sizeof daemon->refusal, "%s", text);
    daemon->refusal_us = now_us;
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct daemon *daemon = user;
    if (daemon->join != call) {
        return; /* the daemon is closing */
    }
    if (clock_monotonic_us() - daemon->opened_us > FRESH_US) {
        daemon->attempt = (struct rpc_attempt){0}; /* what failed before this stream may be there */
    }
    /* A coordinator that refuses this worker is not its coordinator, either. */
    bool others = rpc_endpoints_failed(daemon->endpoints, &daemon->attempt, daemon->channel, call);
    bool at_once = others && !daemon->linked;
    if (at_once) {
        log_event(LOG_LEVEL_DEBUG, "link", "this worker asks another coordinator",
            LOG_STR("coordinator", rpc_endpoints_address(daemon->endpoints)),
            LOG_STR("reason", text));
    } else {
        log_reason(daemon, status, text);
    }
    daemon->counts.links_lost += daemon->linked ? 1 : 0;
    daemon->join = NULL;
    daemon->linked = false;
    agent_link_down(daemon->agent);
    if (at_once) {
        open_stream(daemon);
    } else {
        reconnect_after_pause(daemon);
    }
}

static const struct rpc_client_ops join_ops = {.on_message = on_message, .on_status = on_status};

static void open_stream(struct daemon *daemon)
{
    struct cadre_error error = {0};
    struct rpc_call_options options = {.path = METHOD_AGENTS_JOIN,
        .client_streams = true,
        .server_streams = true,
        .ops = &join_ops,
        .user = daemon};
    daemon->channel = rpc_endpoints_channel(daemon->endpoints);
    daemon->opened_us = clock_monotonic_us();
    if (rpc_channel_call(daemon->channel, &options, &daemon->join, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "link", "cannot join", LOG_STR("reason", error.text));
        daemon->join = NULL;
        reconnect_after_pause(daemon);
        return;
    }
    silence_frame(daemon); /* from here on an answer is waited for */
    agent_link_up(daemon->agent);
}

void link_start(struct daemon *daemon, const struct link_callbacks *callbacks)
{
    daemon->link_callbacks = callbacks;
    open_stream(daemon);
}

/* The expiry of the certificate for a hello, or for a heartbeat after it was changed; else 0. */
static uint64_t certificate_change(struct daemon *daemon, const struct agent_up *up)
{
    bool hello = up->type == AGENT_UP_HELLO;
    if (daemon->tls == NULL || (!hello && up->type != AGENT_UP_HEARTBEAT)) {
        return 0;
    }
    uint64_t ends_us = rpc_tls_material(daemon->tls)->not_after_s * CADRE_US_PER_S;
    bool news = hello || ends_us != daemon->reported_certificate_us;
    daemon->reported_certificate_us = ends_us;
    return news ? ends_us : 0;
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    if (daemon->join == NULL) {
        return; /* the core sends it again when it is linked */
    }
    struct cadre_error error = {0};
    struct agent_up sent = *up;
    sent.certificate_ends_us = certificate_change(daemon, up);
    wire_buffer_clear(&daemon->packed);
    cadre_status status = wire_pack_agent_up(&sent, &daemon->packed, &error);
    if (status == CADRE_OK) {
        status = rpc_call_send(daemon->join, daemon->packed.bytes, daemon->packed.size, &error);
    }
    if (status != CADRE_OK && status != CADRE_CANCELLED) {
        log_event(LOG_LEVEL_WARNING, "link", "the stream is cut and opened again",
            LOG_STR("reason", error.text));
        rpc_call_abort(daemon->join, status, error.text);
    }
}
