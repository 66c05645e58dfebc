/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/links.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/roster_tree.h"
#include "coordinator/daemon/base/daemon.h"

static size_t index_of(const struct daemon *daemon, uint64_t id)
{
    size_t low = 0;
    size_t high = daemon->link_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (daemon->links[middle].id.n < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct agent_link *links_find(const struct daemon *daemon, struct link_id link)
{
    size_t at = index_of(daemon, link.n);
    bool found = at < daemon->link_count && daemon->links[at].id.n == link.n;
    return found ? &daemon->links[at] : NULL;
}

static struct rpc_call *call_of(const struct daemon *daemon, struct link_id link)
{
    const struct agent_link *found = links_find(daemon, link);
    return found != NULL ? found->call : NULL;
}

bool links_add(struct daemon *daemon, struct rpc_call *call, struct link_id *ret_link)
{
    if (daemon->link_count == daemon->link_capacity) {
        size_t capacity = daemon->link_capacity > 0 ? daemon->link_capacity * 2 : 64;
        struct agent_link *grown = realloc(daemon->links, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        daemon->links = grown;
        daemon->link_capacity = capacity;
    }
    ret_link->n = ++daemon->link_last;
    daemon->links[daemon->link_count++] = (struct agent_link){.id = *ret_link, .call = call};
    return true;
}

bool links_remove(struct daemon *daemon, struct link_id link)
{
    size_t at = index_of(daemon, link.n);
    if (at == daemon->link_count || daemon->links[at].id.n != link.n) {
        return false;
    }
    memmove(&daemon->links[at], &daemon->links[at + 1],
        (daemon->link_count - at - 1) * sizeof *daemon->links);
    daemon->link_count--;
    return true;
}

/* Logs messages that end or regroup the tasks of a job, at level debug. */
static void log_down(struct link_id link, const struct agent_down *down)
{
    if (down->type == AGENT_DOWN_STOP) {
        log_event(LOG_LEVEL_DEBUG, "agents", "stop", LOG_U64("link", link.n),
            LOG_U64("job", down->stop.job.n), LOG_BOOL("one", down->stop.one),
            LOG_U64("slot", down->stop.one ? down->stop.task.slot : 0));
        return;
    }
    if (down->type != AGENT_DOWN_RELAY) {
        return;
    }
    const struct task_down *relayed = &down->relay_down.down;
    switch (relayed->type) {
    case TASK_DOWN_PLAN:
        log_event(LOG_LEVEL_DEBUG, "agents", "plan", LOG_U64("link", link.n),
            LOG_U64("job", down->relay_down.job.n),
            LOG_U64("generation", relayed->plan.generation.number),
            LOG_U64("members", plan_member_count(&relayed->plan)),
            LOG_U64("resume", relayed->plan.resume));
        break;
    case TASK_DOWN_ABORT:
        log_event(LOG_LEVEL_DEBUG, "agents", "abort", LOG_U64("link", link.n),
            LOG_U64("job", down->relay_down.job.n),
            LOG_U64("generation", relayed->generation.number), LOG_STR("reason", relayed->reason));
        break;
    case TASK_DOWN_RESET:
    case TASK_DOWN_SUPERSEDED:
    case TASK_DOWN_REFUSED:
        log_event(LOG_LEVEL_DEBUG, "agents", "a task is not wanted", LOG_U64("link", link.n),
            LOG_U64("job", down->relay_down.job.n), LOG_U64("slot", down->relay_down.task.slot),
            LOG_U64("incarnation", down->relay_down.task.incarnation),
            LOG_U64("type", relayed->type));
        break;
    case TASK_DOWN_RELEASE:
    case TASK_DOWN_GOODBYE:
    case TASK_DOWN_WARM:
    case TASK_DOWN_MEMBERS:
    case TASK_DOWN_VALUES_KEPT:
    case TASK_DOWN_TRACE:
        break;
    }
}

/* What the engine does not know of. */
static struct agent_down complete_welcome(
    const struct daemon *daemon, struct agent_link *link, const struct agent_down *down)
{
    struct agent_down welcome = *down;
    welcome.welcome.silence_us = daemon->silence_us;
    welcome.welcome.log_index = daemon->log_index;
    link->protocol = welcome.welcome.protocol_version;
    return welcome;
}

void links_down(void *user, struct link_id link, const struct agent_down *down)
{
    struct daemon *daemon = user;
    struct agent_link *found = links_find(daemon, link);
    if (found == NULL) {
        return;
    }
    struct rpc_call *call = found->call;
    struct cadre_error error = {0};
    struct agent_down welcome;
    if (down->type == AGENT_DOWN_WELCOME) {
        welcome = complete_welcome(daemon, found, down);
        down = &welcome;
    }
    found->sent_round = daemon->keepalive_round;
    log_down(link, down);
    wire_buffer_clear(&daemon->packed);
    cadre_status status = wire_pack_agent_down(down, &daemon->packed, &error);
    if (status == CADRE_OK) {
        status = rpc_call_send(call, daemon->packed.bytes, daemon->packed.size, &error);
    }
    if (status != CADRE_OK && status != CADRE_CANCELLED) {
        log_event(LOG_LEVEL_WARNING, "agents", "a worker's stream is cut", LOG_U64("link", link.n),
            LOG_STR("reason", error.text));
        rpc_call_abort(call, status, error.text);
    }
}

void links_keep_alive(struct daemon *daemon, uint64_t rounds)
{
    const struct agent_down keepalive = {
        .type = AGENT_DOWN_KEEPALIVE, .keepalive = {.log_index = daemon->log_index}};
    struct rpc_buffer message = {0};
    for (size_t i = 0; i < daemon->link_count; i++) {
        struct agent_link *link = &daemon->links[i];
        bool due = daemon->keepalive_round - link->sent_round >= rounds;
        if (link->protocol < AGENT_PROTOCOL_KEEPALIVE || !due ||
            rpc_call_queued_bytes(link->call) > 0) {
            continue; /* or what is queued comes before it */
        }
        if (message.data == NULL) {
            wire_buffer_clear(&daemon->packed);
            (void)wire_pack_agent_down(&keepalive, &daemon->packed, NULL);
            rpc_buffer_alloc(&message, daemon->packed.size);
            memcpy(message.data, daemon->packed.bytes, daemon->packed.size);
        }
        link->sent_round = daemon->keepalive_round;
        (void)rpc_call_send_buffer(link->call, &message, NULL); /* its end, if any, is reported */
    }
    rpc_buffer_free(&message);
}

void links_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    struct rpc_call *call = call_of(user, link);
    if (call != NULL) {
        log_event(LOG_LEVEL_WARNING, "agents", "a worker is refused", LOG_STR("reason", text));
        rpc_call_finish(call, code, text);
    }
}
