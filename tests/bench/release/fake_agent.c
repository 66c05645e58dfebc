/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/release/fake_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "common/rpc/tls.h"

/* As a worker's link. */
#define RETRY_MIN_US (50 * CADRE_US_PER_MS)
#define RETRY_MAX_US (2 * CADRE_US_PER_S)

/* Under the server's limit of streams on a connection. */
#define STREAMS_PER_CONNECTION 1000
#define CONNECTIONS_MIN        4

/* No task has this number: a log of it is acknowledged and dropped. */
#define NO_JOB UINT64_MAX

struct fake_agent {
    struct fleet *fleet;
    struct rpc_channel *channel;
    struct rpc_call *call;
    uint32_t index;
    uint64_t pause_us;
    uv_timer_t retry;
    struct task_ref task;
    bool welcomed;
    bool planned;
    bool vanished;
};

struct fleet {
    const struct fleet_ops *ops;
    void *user;
    struct fake_agent *agents;
    uint32_t count;
    uint32_t welcomed;
    uint32_t attempts;
    bool returns; /* a stream that ends is opened again, as a worker does */
    uint32_t planned;
    uint32_t wanted; /* plans */
    uint64_t arrived;
    struct generation generation;
    struct wire_arena *arena;
    struct wire_buffer packed;
};

static void fail(const char *doing, const char *why)
{
    fprintf(stderr, "release_agents: %s: %s\n", doing, why);
    _exit(1); /* gRPC's threads run on */
}

static void say(struct fake_agent *agent, const struct agent_up *up)
{
    struct fleet *fleet = agent->fleet;
    struct cadre_error error;
    wire_buffer_clear(&fleet->packed);
    if (wire_pack_agent_up(up, &fleet->packed, &error) != CADRE_OK ||
        rpc_call_send(agent->call, fleet->packed.bytes, fleet->packed.size, &error) != CADRE_OK) {
        fail("say", error.text);
    }
}

static void send_hello_message(struct fake_agent *agent)
{
    char name[16];
    snprintf(name, sizeof name, "w%u", agent->index);
    say(agent, &(struct agent_up){.type = AGENT_UP_HELLO,
                   .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                       .library_version = CADRE_VERSION,
                       .name = name,
                       .host = "here",
                       .boot_nonce = agent->index + 1,
                       .slots = 1,
                       .cpus = 1,
                       .memory_bytes = 1}});
}

static void start(struct fake_agent *agent, struct task_ref task)
{
    uint32_t pid = agent->index + 1;
    agent->task = task;
    say(agent,
        &(struct agent_up){.type = AGENT_UP_TASK_STARTED, .started = {.task = task, .pid = pid}});
    say(agent, &(struct agent_up){.type = AGENT_UP_RELAY,
                   .relay_up = {.task = task,
                       .up = {.type = TASK_UP_HELLO,
                           .hello = {.frame_version = TASK_FRAME_VERSION,
                               .library_version = CADRE_VERSION,
                               .pid = pid,
                               .replicas = 1,
                               .mesh_address = "127.0.0.1:1"}}}});
}

static void take_plan(struct fake_agent *agent)
{
    struct fleet *fleet = agent->fleet;
    if (!agent->planned) {
        agent->planned = true;
        if (++fleet->planned == fleet->wanted) {
            fleet->ops->planned(fleet->user);
        }
    }
}

/* A plan for thousands lists them all, and is the same for all: the first one is read for all. */
static bool is_known_plan(const struct fake_agent *agent, size_t length)
{
    return !agent->planned && agent->fleet->planned > 0 && length > 512;
}

/* Its position is the last release. */
static void report(
    struct fake_agent *agent, struct generation generation, enum report_reason reason)
{
    agent->planned = false;
    say(agent, &(struct agent_up){.type = AGENT_UP_RELAY,
                   .relay_up = {.task = agent->task,
                       .up = {.type = TASK_UP_REPORT,
                           .report = {.generation = generation,
                               .position = agent->fleet->arrived,
                               .clean = true,
                               .reason = reason,
                               .text = ""}}}});
}

static void take(struct fake_agent *agent, const struct task_down *down)
{
    struct fleet *fleet = agent->fleet;
    switch (down->type) {
    case TASK_DOWN_PLAN:
        fleet->generation = down->plan.generation;
        take_plan(agent);
        break;
    case TASK_DOWN_RELEASE:
        fleet->ops->released(fleet->user);
        break;
    case TASK_DOWN_ABORT:
        report(agent, down->generation, REPORT_ABORT);
        break;
    default:
        fail("message", "neither a plan, nor a release, nor an abort");
    }
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    struct fake_agent *agent = user;
    struct fleet *fleet = agent->fleet;
    struct agent_down down;
    struct cadre_error error;
    if (agent->vanished) {
        return;
    }
    if (is_known_plan(agent, length)) {
        take_plan(agent);
        return;
    }
    wire_arena_reset(fleet->arena);
    if (wire_unpack_agent_down(data, length, fleet->arena, &down, &error) != CADRE_OK) {
        fail("unpack", error.text);
    }
    switch (down.type) {
    case AGENT_DOWN_WELCOME:
        agent->welcomed = true;
        agent->pause_us = 0;
        if (++fleet->welcomed == fleet->count) {
            fleet->ops->welcomed(fleet->user);
        }
        break;
    case AGENT_DOWN_START:
        start(agent, down.start.task);
        break;
    case AGENT_DOWN_FORGET:
    case AGENT_DOWN_LOG_ACK:
    case AGENT_DOWN_KEEPALIVE:
        fleet->ops->acknowledged(fleet->user);
        break;
    case AGENT_DOWN_RELAY:
        take(agent, &down.relay_down.down);
        break;
    case AGENT_DOWN_REFUSED:
        fail("refused", down.refused.text);
        break;
    case AGENT_DOWN_STOP:
        fail("stop", "the coordinator ends the job");
        break;
    }
}

static void join(struct fake_agent *agent);

static void on_retry(uv_timer_t *timer)
{
    join(timer->data);
}

static void join_later(struct fake_agent *agent)
{
    uint64_t pause_us = agent->pause_us * 2;
    pause_us = pause_us < RETRY_MIN_US ? RETRY_MIN_US : pause_us;
    agent->pause_us = pause_us > RETRY_MAX_US ? RETRY_MAX_US : pause_us;
    struct prng prng = {clock_monotonic_us() + agent->index};
    pause_us = agent->pause_us / 2 + prng_uniform(&prng, agent->pause_us / 2 + 1);
    uv_timer_start(&agent->retry, on_retry, pause_us / CADRE_US_PER_MS + 1, 0);
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    (void)status;
    struct fake_agent *agent = user;
    if (agent->vanished) {
        return;
    }
    if (!agent->fleet->returns) {
        fail("a stream ended", text);
    }
    agent->fleet->welcomed -= agent->welcomed ? 1 : 0;
    agent->welcomed = false;
    join_later(agent);
}

static void join(struct fake_agent *agent)
{
    static const struct rpc_client_ops ops = {.on_message = on_message, .on_status = on_status};
    const struct rpc_call_options options = {.path = "/cadre.v1.Agents/Join",
        .client_streams = true,
        .server_streams = true,
        .ops = &ops,
        .user = agent};
    struct cadre_error error;
    agent->fleet->attempts++;
    if (rpc_channel_call(agent->channel, &options, &agent->call, &error) != CADRE_OK) {
        fail("join", error.text);
    }
    send_hello_message(agent);
}

uint32_t fleet_attempts(struct fleet *fleet)
{
    uint32_t attempts = fleet->attempts;
    fleet->attempts = 0;
    return attempts;
}

void fleet_stay(struct fleet *fleet)
{
    fleet->returns = false;
}

void fleet_vanish(struct fleet *fleet, uint32_t first)
{
    fleet->planned = 0;
    fleet->wanted = first;
    for (uint32_t i = first; i < fleet->count; i++) {
        fleet->agents[i].vanished = true;
        rpc_call_cancel(fleet->agents[i].call);
    }
    report(&fleet->agents[0], fleet->generation, REPORT_PEER_ERROR); /* its mesh notices first */
}

void fleet_done(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->count; i++) {
        fleet->agents[i].vanished = true;
    }
}

void fleet_beat(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->count; i++) {
        if (!fleet->agents[i].vanished) {
            say(&fleet->agents[i], &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
    }
}

void fleet_arrive(struct fleet *fleet, uint32_t index, uint64_t up_to, bool acknowledge)
{
    struct fake_agent *agent = &fleet->agents[index];
    fleet->arrived = up_to - 1;
    say(agent, &(struct agent_up){.type = AGENT_UP_ARRIVED,
                   .arrived = {.job = agent->task.job,
                       .generation = fleet->generation,
                       .tasks = 1,
                       .up_to = up_to,
                       .applied = up_to - 1,
                       .cursor = {.stream = 1}}});
    if (acknowledge) {
        say(agent, &(struct agent_up){.type = AGENT_UP_LOG,
                       .log = {.task = {.job = {NO_JOB}, .incarnation = 1},
                           .bytes = (const uint8_t *)"x",
                           .size_bytes = 1}});
    }
}

static struct rpc_tls *certificate_of(
    struct rpc_loop *loop, const char *certificates, uint32_t index)
{
    char folder[512];
    struct rpc_tls *tls = NULL;
    struct cadre_error error;
    if (certificates == NULL) {
        return NULL;
    }
    snprintf(folder, sizeof folder, "%s/w%u", certificates, index);
    const struct rpc_tls_options options = {.dir = folder};
    if (rpc_tls_open(loop, &options, TLS_ROLE_WORKER, NULL, NULL, &tls, &error) != CADRE_OK) {
        fail("certificate", error.text);
    }
    return tls;
}

static struct fleet *fleet_make(uint32_t count, const struct fleet_ops *ops, void *user)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet == NULL || (fleet->agents = calloc(count, sizeof *fleet->agents)) == NULL ||
        (fleet->arena = wire_arena_new(LIMIT_UNPACK_BYTES)) == NULL) {
        fail("open", "no memory");
    }
    fleet->ops = ops;
    fleet->user = user;
    fleet->count = count;
    fleet->wanted = count;
    return fleet;
}

static struct fleet *fleet_join(struct rpc_loop *loop, const char *address, uint32_t count,
    uint32_t connections, const char *certificates, bool returns, const struct fleet_ops *ops,
    void *user)
{
    struct fleet *fleet = fleet_make(count, ops, user);
    fleet->returns = returns;
    struct rpc_channel **channels = calloc(connections, sizeof *channels);
    struct cadre_error error;
    if (channels == NULL) {
        fail("open", "no memory");
    }
    for (uint32_t i = 0; i < connections; i++) {
        /* Channels with equal options would share one connection. */
        struct rpc_channel_options options = {
            .keepalive = {.idle_us = RPC_KEEPALIVE_HEARTBEATS_IDLE_US}, /* as a worker's link */
            .message_bytes_max = LIMIT_FRAME_BYTES + i,
            .tls = certificate_of(loop, certificates, i)};
        if (rpc_channel_open(loop, address, &options, &channels[i], &error) != CADRE_OK) {
            fail("connect", error.text);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct fake_agent *agent = &fleet->agents[i];
        *agent =
            (struct fake_agent){.fleet = fleet, .index = i, .channel = channels[i % connections]};
        uv_timer_init(rpc_loop_uv(loop), &agent->retry);
        agent->retry.data = agent;
        join(agent);
    }
    free(channels);
    return fleet;
}

struct fleet *fleet_open(struct rpc_loop *loop, const char *address, uint32_t count,
    const struct fleet_ops *ops, void *user)
{
    uint32_t connections = (count + STREAMS_PER_CONNECTION - 1) / STREAMS_PER_CONNECTION;
    connections = connections < CONNECTIONS_MIN ? CONNECTIONS_MIN : connections;
    return fleet_join(loop, address, count, connections, NULL, false, ops, user);
}

struct fleet *fleet_open_each(struct rpc_loop *loop, const char *address, uint32_t count,
    const char *certificates, const struct fleet_ops *ops, void *user)
{
    return fleet_join(loop, address, count, count, certificates, true, ops, user);
}
