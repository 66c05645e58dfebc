/* SPDX-License-Identifier: Apache-2.0
 * Agents.Join: handles the messages of worker daemons; links.c sends the answers. */
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/contents/part_check.h"
#include "coordinator/daemon/base/authorization.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/series/series_jobs.h"
#include "coordinator/daemon/shared/shared_ledger.h"
#include "coordinator/daemon/traces/traces.h"

/* A call carries its link's number where other calls carry an object. */
static struct link_id link_of(const struct rpc_call *call)
{
    return (struct link_id){(uintptr_t)rpc_call_user(call)};
}

static void join_open(struct rpc_call *call, void *user)
{
    struct link_id link;
    if (shared_ledger_wait(user, call)) {
        return;
    }
    if (!links_add(user, call, &link)) {
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another worker");
        return;
    }
    rpc_call_set_user(call, (void *)(uintptr_t)link.n);
}

static void take_log(struct daemon *daemon, struct link_id link, const struct agent_log *chunk)
{
    /* A chunk of a task that no job needs any more is acknowledged, so that the agent may end. */
    bool wanted = engine_task_on_link(daemon->engine, chunk->task, link);
    logs_append(daemon, link, chunk, wanted);
}

/* With TLS the name in the hello must be that of the certificate. */
static cadre_status check_name(
    const struct rpc_call *call, const char *name, struct cadre_error *error)
{
    const struct tls_identity *identity = rpc_call_identity(call);
    if (identity->role != TLS_ROLE_WORKER || strcmp(identity->name, name) == 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_PERMISSION_DENIED,
        "a worker with the name \"%s\" has the certificate of worker \"%s\": give it --name %s, or "
        "a certificate of its own",
        name, identity->name, identity->name);
}

/* Protocol, section 2: the hello is the first message of each connection, and is sent once. */
static cadre_status check_order(
    struct daemon *daemon, struct link_id id, const struct agent_up *up, struct cadre_error *error)
{
    struct agent_link *link = links_find(daemon, id);
    bool hello = up->type == AGENT_UP_HELLO;
    if (link == NULL || hello == link->sent_hello) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s",
            hello ? "a worker sends AgentHello once on a stream"
                  : "the first message of a worker must be AgentHello");
    }
    link->sent_hello = true;
    if (!hello) {
        return CADRE_OK;
    }
    CADRE_TRY(check_name(link->call, up->hello.name, error));
    return terms_check(daemon, id, &up->hello, error);
}

/* Warns when the worker ends its tasks before the coordinator counts them as lost. */
static void check_orphans(const struct daemon *daemon, const struct agent_hello *hello)
{
    uint64_t orphan_us = hello->orphan_us;
    bool lapses = orphan_us < daemon->options.lease_us;
    if (orphan_us > 0 && (lapses || orphan_us < daemon->options.rewind_us)) {
        log_event(lapses ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "agents",
            lapses ? "the worker's --orphan-limit is shorter than the coordinator's --lease: the "
                     "work of its tasks is lost when the coordinator is away for so long"
                   : "the worker's --orphan-limit is shorter than --rewind-patience: its tasks are "
                     "waited for no longer than that",
            LOG_STR("worker", hello->name), LOG_U64("orphan_ms", orphan_us / CADRE_US_PER_MS),
            LOG_U64("rewind_ms", daemon->options.rewind_us / CADRE_US_PER_MS),
            LOG_U64("lease_ms", daemon->options.lease_us / CADRE_US_PER_MS));
    }
}

/* Logs what an operator should see. */
static void agents_note(const struct daemon *daemon, const struct agent_up *up)
{
    if (up->type == AGENT_UP_HELLO) {
        check_orphans(daemon, &up->hello);
        log_event(LOG_LEVEL_INFO, "agents", "worker said hello", LOG_STR("worker", up->hello.name),
            LOG_STR("host", up->hello.host), LOG_U64("slots", up->hello.slots),
            LOG_STR("version", up->hello.library_version));
    } else if (up->type == AGENT_UP_TASK_GONE) {
        log_event(LOG_LEVEL_INFO, "agents", "task ended", LOG_U64("job", up->gone.task.job.n),
            LOG_U64("slot", up->gone.task.slot), LOG_I64("code", up->gone.exit.code),
            LOG_I64("signal", up->gone.exit.signal));
        if (up->gone.damaged_step > 0) {
            log_event(LOG_LEVEL_ERROR, "jobs", "a checkpoint is damaged: the one before it counts",
                LOG_U64("job", up->gone.task.job.n), LOG_U64("step", up->gone.damaged_step),
                LOG_STR("reason", up->gone.exit.text));
        }
    } else if (up->type == AGENT_UP_TASK_COLLECTED && up->collected.code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "agents", "not all that a task left was collected",
            LOG_U64("job", up->collected.task.job.n), LOG_U64("slot", up->collected.task.slot),
            LOG_STR("reason", up->collected.text));
    }
}

static void join_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct link_id link = link_of(call);
    struct cadre_error error = {0};
    struct agent_up up;
    if (link.n == 0) {
        return; /* it waits until it is known who leads, and begins again there */
    }
    wire_arena_reset(daemon->arena);
    if (wire_unpack_agent_up(data, length, daemon->arena, &up, &error) != CADRE_OK ||
        check_order(daemon, link, &up, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "agents", "a worker's message is refused",
            LOG_STR("peer", rpc_call_peer(call)), LOG_STR("reason", error.text));
        rpc_call_fail(call, &error);
        return;
    }
    if (up.type == AGENT_UP_LOG) {
        take_log(daemon, link, &up.log);
        return;
    }
    if (up.type == AGENT_UP_RELAY && up.relay_up.up.type == TASK_UP_VALUES) {
        series_append(daemon, link, up.relay_up.task, &up.relay_up.up.values);
        return;
    }
    if (up.type == AGENT_UP_RELAY && up.relay_up.up.type == TASK_UP_SPANS) {
        traces_take(daemon, link, up.relay_up.task, &up.relay_up.up.spans);
        return;
    }
    agents_note(daemon, &up);
    if (up.type == AGENT_UP_RELAY && up.relay_up.up.type == TASK_UP_PART) {
        if (!engine_task_on_link(daemon->engine, up.relay_up.task, link)) {
            return; /* of a task that is in no job any more */
        }
        if (!up.relay_up.up.part.shared) {
            part_check_start(daemon, link, &up.relay_up, data, length);
            return;
        }
    }
    if (up.type == AGENT_UP_ARRIVED) {
        watch_steps_committed(daemon);
    }
    engine_agent_up(daemon->engine, clock_monotonic_us(), link, &up);
    if (daemon->traces != NULL && up.type == AGENT_UP_RELAY &&
        up.relay_up.up.type == TASK_UP_HELLO) {
        traces_task_came(daemon, up.relay_up.task);
    }
}

static void join_half_close(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_OK, "");
}

static void join_shutdown(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_UNAVAILABLE, "the coordinator is shutting down: join again");
}

static void join_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    struct daemon *daemon = user;
    struct link_id link = link_of(call);
    if (link.n == 0) {
        (void)shared_ledger_waited(daemon, call);
        return;
    }
    if (!links_remove(daemon, link)) {
        return; /* it was refused at once */
    }
    if (daemon->engine != NULL) {
        engine_link_down(daemon->engine, clock_monotonic_us(), link);
    }
}

const struct rpc_server_ops join_ops = {.on_open = join_open,
    .on_message = join_message,
    .on_half_close = join_half_close,
    .on_shutdown = join_shutdown,
    .on_closed = join_closed};
