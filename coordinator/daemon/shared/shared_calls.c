/* SPDX-License-Identifier: Apache-2.0
 * Calls that come to a coordinator of several: which it may take, and who is named instead. */
#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/endpoints.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/shared/shared_state.h"

/* Of why etcd does not answer, in a sentence that says what to do behind it. */
#define FAILURE_SHOWN_BYTES 200

/* ---- etcd that is silent ---- */

/* The one that leads says it by its suspension. */
static void look_at_etcd(struct shared_ledger *shared, const struct replica_view *view)
{
    uint64_t now_us = clock_monotonic_us();
    if (view->failure[0] == '\0') {
        shared->answered_us = now_us;
        if (shared->etcd_is_silent) {
            shared->etcd_is_silent = false;
            log_event(LOG_LEVEL_INFO, "ledger", "etcd answers this coordinator again", LOG_END);
        }
    } else if (!shared->etcd_is_silent && shared->daemon->engine == NULL && !shared->left &&
               shared->refused[0] == '\0' &&
               now_us - shared->answered_us > shared->daemon->options.ha.lease_us) {
        shared->etcd_is_silent = true;
        log_event(LOG_LEVEL_WARNING, "ledger",
            "etcd does not answer this coordinator, which cannot lead until it does",
            LOG_STR("reason", view->failure));
    }
}

/* ---- a leader that is silent ---- */

/* It writes every sixth of the lease, so after half of it another one may be about to lead. */
static bool is_silent(const struct shared_ledger *shared)
{
    return clock_monotonic_us() - shared->moved_us > shared->daemon->options.ha.lease_us / 2;
}

static void on_look(uv_timer_t *timer)
{
    struct shared_ledger *shared = timer->data;
    struct replica_view view;
    replica_show(shared->replica, &view);
    const struct log_head *head = &view.core.head;
    look_at_etcd(shared, &view);
    shared_reader_look(shared, &view);
    if (head->term != shared->head.term || head->index != shared->head.index ||
        head->beat != shared->head.beat) {
        shared->head = *head;
        shared->moved_us = clock_monotonic_us();
        if (shared->leader[0] != '\0') {
            waiting_joins_end(&shared->joins, shared->leader);
        }
    }
}

void shared_calls_begin(struct shared_ledger *shared)
{
    uint64_t ms = shared->daemon->options.ha.lease_us / 6 / CADRE_US_PER_MS;
    uv_timer_init(rpc_loop_uv(shared->daemon->loop), &shared->look);
    shared->look.data = shared;
    shared->moved_us = shared->answered_us = clock_monotonic_us();
    uv_timer_start(&shared->look, on_look, ms, ms);
}

/* ---- calls ---- */

static bool is_for_leader(const char *method)
{
    static const char *const services[] = {METHOD_SERVICE_JOBS, METHOD_SERVICE_AGENTS};
    for (size_t i = 0; i < CADRE_COUNT_OF(services); i++) {
        size_t length = strlen(services[i]);
        if (method[0] == '/' && strncmp(method + 1, services[i], length) == 0 &&
            method[1 + length] == '/') {
            return true;
        }
    }
    return false;
}

/* Without etcd, or with one that has no quorum, none leads. */
static cadre_status refuse_without_etcd(
    const struct shared_ledger *shared, const char *failure, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the coordinator %s does not lead, and it is not known which one does, because %.*s: none "
        "leads while etcd serves none, as when it has no quorum, and all goes on by itself when it "
        "does; until then `cadre jobs`, `job` and `history` answer with --stale, and `cadre "
        "coordinators` always",
        shared->name, FAILURE_SHOWN_BYTES, failure);
}

static cadre_status refuse_unknown(const struct daemon *daemon, struct cadre_error *error)
{
    const char *trouble = shared_ledger_trouble(daemon);
    struct replica_view view;
    replica_show(daemon->shared->replica, &view);
    if (view.failure[0] != '\0') {
        return refuse_without_etcd(daemon->shared, view.failure, error);
    }
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the coordinator %s does not lead, and it is not known which one does%s%s: try again, or "
        "look at `cadre coordinators`",
        daemon->shared->name, trouble[0] != '\0' ? ", because " : "", trouble);
}

static cadre_status refuse_no_part(const struct shared_ledger *shared, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_UNAVAILABLE, "the coordinator %s takes no part: %s",
        shared->name, shared->refused);
}

static bool is_leader_unknown(const struct shared_ledger *shared)
{
    return shared->leader[0] == '\0' || is_silent(shared);
}

/* Rule HA15: a coordinator that was replaced, or has an etcd that was put back. */
static cadre_status refuse_older(const struct shared_ledger *shared, struct rpc_call *call,
    const struct ledger_position *seen, struct cadre_error *error)
{
    struct ledger_position own;
    shared_reader_position(shared, &own);
    rpc_call_set_trailer(call, RPC_LEADER_KEY, "");
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the coordinator %s has the ledger up to entry %" PRIu64 " of term %" PRIu64
        ", and this client was answered from entry %" PRIu64 " of term %" PRIu64
        ": another one leads, or etcd was restored: look at `cadre coordinators`; a new client is "
        "answered from the ledger that there is",
        shared->name, own.index, own.term, seen->index, seen->term);
}

/* Of the one that leads. */
static cadre_status check_seen(
    const struct shared_ledger *shared, struct rpc_call *call, struct cadre_error *error)
{
    struct ledger_position seen, own;
    shared_reader_seen(call, &seen);
    shared_reader_position(shared, &own);
    return ledger_position_is_newer(&seen, &own) ? refuse_older(shared, call, &seen, error)
                                                 : CADRE_OK;
}

cadre_status shared_ledger_admit(
    struct daemon *daemon, struct rpc_call *call, const char *method, struct cadre_error *error)
{
    const struct shared_ledger *shared = daemon->shared;
    if (daemon->options.ha.address == NULL || !is_for_leader(method)) {
        return CADRE_OK;
    }
    if (shared == NULL) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "the coordinator starts: try again");
    }
    if (daemon->engine != NULL && !shared->left && shared_ledger_may_send(daemon)) {
        return check_seen(shared, call, error);
    }
    if (shared_reader_admits(shared, call, method)) {
        return CADRE_OK;
    }
    if (shared->refused[0] != '\0') {
        rpc_call_set_trailer(call, RPC_LEADER_KEY, "");
        return refuse_no_part(shared, error);
    }
    bool unknown = is_leader_unknown(shared);
    if (unknown && daemon->engine == NULL && strcmp(method, METHOD_AGENTS_JOIN) == 0) {
        return CADRE_OK;
    }
    if (daemon->engine != NULL || unknown) {
        rpc_call_set_trailer(call, RPC_LEADER_KEY, "");
        return refuse_unknown(daemon, error);
    }
    rpc_call_set_trailer(call, RPC_LEADER_KEY, shared->leader);
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the coordinator %s does not lead: ask the one at %s", shared->name, shared->leader);
}

cadre_status shared_refuse_page(const struct daemon *daemon, struct cadre_error *error)
{
    const struct shared_ledger *shared = daemon->shared;
    if (shared->refused[0] != '\0') {
        return refuse_no_part(shared, error);
    }
    if (is_leader_unknown(shared)) {
        return refuse_unknown(daemon, error);
    }
    struct leader_response own;
    shared_ledger_describe(daemon, &own);
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the coordinator %s does not lead, and shows no jobs: %s leads, which clients and workers "
        "reach at %s; open the address of --http of that one",
        shared->name, own.leader, own.leader_addresses);
}

bool shared_ledger_wait(struct daemon *daemon, struct rpc_call *call)
{
    if (daemon->engine != NULL) {
        return false;
    }
    if (!waiting_joins_add(&daemon->shared->joins, call)) {
        rpc_call_finish(call, CADRE_UNAVAILABLE, "no coordinator leads: try again");
    }
    return true;
}

bool shared_ledger_waited(struct daemon *daemon, const struct rpc_call *call)
{
    return daemon->shared != NULL && waiting_joins_remove(&daemon->shared->joins, call);
}

void shared_ledger_hello_ahead(struct daemon *daemon, uint64_t term, uint64_t index)
{
    replica_hello_ahead(daemon->shared->replica, term, index);
}

bool shared_ledger_leave(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    if (shared == NULL || shared->refused[0] != '\0') {
        return false;
    }
    shared->left = true;
    shared_note_leading(shared, false);
    replica_leave(shared->replica);
    return true;
}
