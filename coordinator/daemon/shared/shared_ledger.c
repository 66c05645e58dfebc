/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/shared_ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/etcd/etcd.h"
#include "common/pure/assert.h"
#include "common/rpc/endpoints.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/shared/ledger_copy.h"
#include "coordinator/daemon/shared/shared_members.h"
#include "coordinator/daemon/shared/waiting_joins.h"

/* A leader that is beyond its time to send is suspended, so what waits for the log is what came
 * within a lease. */
#define TICKETS_MAX 65536
/* That no host's clock gains or loses against another one's, and what a look at it may be late. */
#define DRIFT_PPM 10000
#define MARGIN_US (50 * CADRE_US_PER_MS)
/* What may lag was kept back by the engine already. */
#define LAG_US             (100 * CADRE_US_PER_MS)
#define PASSWORD_BYTES_MAX 1024

struct shared_ledger {
    struct daemon *daemon;
    struct shared_ledger_owner owner;
    struct ledger_copy copy;
    struct rpc_tls *tls; /* of connections to etcd */
    struct etcd *etcd;
    struct replica *replica;
    struct replica_known known;
    struct engine_log log;
    struct waiting_joins joins;
    struct shared_members *members;
    struct wire_buffer packed; /* the entry that is made now */
    uint64_t logged;           /* entries of the engine that are in the log */
    bool suspended;
    bool left;
    char name[REPLICA_NAME_BYTES];
    char refused[CADRE_ERROR_TEXT_BYTES]; /* why it takes no part; "": it does */
    char own[REPLICA_ADDRESSES_BYTES];    /* where this one is reached: the first address */
    char leader[REPLICA_ADDRESSES_BYTES]; /* where the one that leads is reached; "": none is known
                                           */
};

/* ---- the engine's log ---- */

static cadre_status append(void *user, const struct store_record *records, size_t count, bool waits,
    struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    uint64_t ticket = 0;
    if (count == 0) {
        return replica_append(shared->replica, NULL, 0, LEADERSHIP_CONFIRM, &ticket, error);
    }
    wire_buffer_clear(&shared->packed);
    CADRE_TRY(log_entry_write(records, count, &shared->packed, error));
    return replica_append(shared->replica, shared->packed.bytes, shared->packed.size,
        waits ? LEADERSHIP_SYNC : LEADERSHIP_LAGGING, &ticket, error);
}

/* What threads look at before they change shared files. */
static void note_leading(struct shared_ledger *shared, bool may)
{
    leading_set(&shared->daemon->leading, may ? replica_may_send_until_us(shared->replica) : 0);
}

/* ---- what the replica calls ---- */

static cadre_status on_apply(
    void *user, const struct replica_entry *entries, size_t count, struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    return ledger_copy_apply(&shared->copy, entries, count, error);
}

static void on_store_known(void *user, const struct replica_known *known)
{
    struct shared_ledger *shared = user;
    struct cadre_error error = {0};
    shared->known = *known;
    if (ledger_copy_note(&shared->copy, known, &error) != CADRE_OK) {
        daemon_fail(shared->daemon, &error);
    }
}

static cadre_status on_discard(void *user, struct cadre_error *error)
{
    struct shared_ledger *shared = user;
    return ledger_copy_discard(&shared->copy, error);
}

static void on_fetch_snapshot(void *user, const struct leadership_position *after)
{
    struct shared_ledger *shared = user;
    (void)after;
    replica_snapshot_installed(shared->replica, &(struct leadership_position){.index = 0});
}

static void on_lead(void *user, uint64_t term)
{
    struct shared_ledger *shared = user;
    struct replica_view view;
    replica_show(shared->replica, &view);
    shared->leader[0] = '\0';
    shared->log = (struct engine_log){.user = shared,
        .term = {.cluster = shared->known.cluster_id.low,
            .start = term,
            .nonce = view.core.nonce.low},
        .append = append};
    log_event(LOG_LEVEL_INFO, "ledger", "this coordinator leads", LOG_U64("term", term),
        LOG_U64("index", view.core.head.index));
    note_leading(shared, true);
    shared->owner.lead(shared->daemon, shared->copy.store, &shared->log);
    waiting_joins_end(&shared->joins, shared->own);
    shared_members_changed(shared->members);
}

static void on_logged(void *user, uint64_t ticket)
{
    struct shared_ledger *shared = user;
    shared->logged = ticket; /* for the end of this turn, or the next one */
}

static void on_suspend(void *user)
{
    struct shared_ledger *shared = user;
    struct replica_view view;
    replica_show(shared->replica, &view);
    log_event(LOG_LEVEL_ERROR, "ledger",
        "etcd does not answer: jobs do the steps that are admitted, and nothing else is sent, "
        "until "
        "it does or another coordinator leads",
        LOG_STR("reason", view.failure));
}

static void on_resume(void *user)
{
    (void)user;
    log_event(LOG_LEVEL_INFO, "ledger",
        "etcd answers again, and this coordinator leads still: "
        "jobs go on",
        LOG_END);
}

static void on_step_down(void *user, const char *text)
{
    struct shared_ledger *shared = user;
    note_leading(shared, false);
    log_event(shared->left ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "ledger",
        "this coordinator takes no part any more", LOG_STR("reason", text));
    shared->owner.step_down(shared->daemon, text);
}

static void on_refuse(void *user, const char *text)
{
    struct shared_ledger *shared = user;
    snprintf(shared->refused, sizeof shared->refused, "%s", text);
    shared_members_changed(shared->members);
    log_event(LOG_LEVEL_ERROR, "ledger", "this coordinator takes no part until somebody has looked",
        LOG_STR("reason", text));
}

static void on_leader_changed(void *user, const struct leader_value *leader)
{
    struct shared_ledger *shared = user;
    struct replica_view view;
    replica_show(shared->replica, &view);
    bool own = view.core.term == leader->leader.term && view.core.term > 0 &&
               view.core.nonce.high == leader->leader.nonce.high &&
               view.core.nonce.low == leader->leader.nonce.low;
    if (leader->leader.left || own) {
        shared->leader[0] = '\0';
    } else {
        size_t first = strcspn(leader->addresses, ",");
        snprintf(shared->leader, sizeof shared->leader, "%.*s", (int)first, leader->addresses);
        waiting_joins_end(&shared->joins, shared->leader);
    }
    if (!own) {
        log_event(LOG_LEVEL_INFO, "ledger",
            leader->leader.left ? "the coordinator that led has ended in order"
                                : "another coordinator leads",
            LOG_STR("name", leader->name), LOG_STR("addresses", leader->addresses),
            LOG_U64("term", leader->leader.term));
    }
    shared_members_changed(shared->members);
}

static const struct replica_ops replica_table = {.apply = on_apply,
    .store_known = on_store_known,
    .discard = on_discard,
    .fetch_snapshot = on_fetch_snapshot,
    .lead = on_lead,
    .logged = on_logged,
    .suspend = on_suspend,
    .resume = on_resume,
    .step_down = on_step_down,
    .refuse = on_refuse,
    .leader_changed = on_leader_changed};

/* ---- opening ---- */

cadre_status shared_ledger_check_options(
    const struct coordinator_options *options, struct cadre_error *error)
{
    const struct ha_options *ha = &options->ha;
    struct etcd_address address;
    if (ha->address == NULL) {
        return CADRE_OK;
    }
    if (options->contents_dir == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--ha needs --contents DIR: a folder that all coordinators share, because programs, "
            "checkpoints, outputs and logs of jobs are not in etcd");
    }
    if (options->supersede) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--supersede is for a coordinator that leads alone: with --ha the log in etcd says "
            "which ledger counts");
    }
    if ((ha->tls.cert != NULL || ha->tls.key != NULL) && ha->tls.ca == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--ha-cert and --ha-key need --ha-ca FILE: without the CA of etcd's certificates there "
            "is no TLS to it");
    }
    if ((ha->user != NULL) != (ha->password_file != NULL)) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "--ha-user and --ha-password-file are given together");
    }
    return etcd_address_parse(ha->address, ha->tls.ca != NULL, &address, error);
}

static cadre_status open_etcd(struct shared_ledger *shared, struct cadre_error *error)
{
    struct daemon *daemon = shared->daemon;
    const struct ha_options *ha = &daemon->options.ha;
    struct etcd_address address;
    CADRE_FREE_AT_EXIT char *password = NULL;
    size_t size = 0;
    CADRE_TRY(etcd_address_parse(ha->address, ha->tls.ca != NULL, &address, error));
    CADRE_TRY(rpc_tls_open_foreign(daemon->loop, &ha->tls, rpc_tls_log, NULL, &shared->tls, error));
    if (ha->password_file != NULL) {
        CADRE_TRY(file_read(ha->password_file, PASSWORD_BYTES_MAX, &password, &size, error));
        password[strcspn(password, "\r\n")] = '\0';
    }
    const struct etcd_options options = {
        .address = &address, .tls = shared->tls, .user = ha->user, .password = password};
    return etcd_open(daemon->loop, &options, &shared->etcd, error);
}

/* Of several addresses that are served the first: with TCP and a Unix socket it is not both. */
static void find_name(struct shared_ledger *shared)
{
    const struct daemon *daemon = shared->daemon;
    const char *name = daemon->options.ha.name;
    const char *all =
        daemon->options.ha.advertise != NULL ? daemon->options.ha.advertise : daemon->addresses;
    snprintf(shared->own, sizeof shared->own, "%.*s", (int)strcspn(all, ","), all);
    if (name != NULL) {
        snprintf(shared->name, sizeof shared->name, "%s", name);
    } else if (gethostname(shared->name, sizeof shared->name - 1) != 0) {
        snprintf(shared->name, sizeof shared->name, "coordinator");
    }
}

static cadre_status open_replica(struct shared_ledger *shared, struct cadre_error *error)
{
    struct daemon *daemon = shared->daemon;
    const struct ha_options *ha = &daemon->options.ha;
    struct replica_options options = {.etcd = shared->etcd,
        .name = shared->name,
        .addresses = ha->advertise != NULL ? ha->advertise : shared->own,
        .version = CADRE_VERSION,
        .format_max = LEDGER_FORMAT,
        .accept_restored = ha->accept_restored,
        .lease_us = ha->lease_us,
        .drift_ppm = DRIFT_PPM,
        .margin_us = MARGIN_US,
        .lag_us = LAG_US,
        .tickets_max = TICKETS_MAX,
        .ops = &replica_table,
        .user = shared};
    CADRE_TRY(ledger_copy_describe(&shared->copy, &options, error));
    shared->known.cluster_id = options.cluster_id;
    return replica_open(daemon->loop, &options, &shared->replica, error);
}

static void free_shared(struct shared_ledger *shared)
{
    waiting_joins_close(&shared->joins);
    shared_members_close(shared->members);
    replica_close(shared->replica);
    etcd_close(shared->etcd);
    rpc_tls_close(shared->tls);
    ledger_copy_close(&shared->copy);
    wire_buffer_free(&shared->packed);
    free(shared);
}

cadre_status shared_ledger_open(struct daemon *daemon, struct store *store,
    const struct shared_ledger_owner *owner, struct cadre_error *error)
{
    struct shared_ledger *shared = calloc(1, sizeof *shared);
    if (shared == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a shared ledger");
    }
    shared->daemon = daemon;
    shared->owner = *owner;
    note_leading(shared, false);
    shared->copy = (struct ledger_copy){.path = daemon->ledger_path, .store = store};
    find_name(shared);
    waiting_joins_open(&shared->joins, rpc_loop_uv(daemon->loop));
    cadre_status status = open_etcd(shared, error);
    if (status == CADRE_OK) {
        status = open_replica(shared, error);
    }
    if (status == CADRE_OK) {
        status = shared_members_open(
            daemon, shared->etcd, shared_ledger_describe, &shared->members, error);
    }
    if (status != CADRE_OK) {
        free_shared(shared);
        return status;
    }
    daemon->shared = shared;
    log_event(LOG_LEVEL_INFO, "ledger", "the ledger is in etcd, and this coordinator follows",
        LOG_STR("etcd", daemon->options.ha.address), LOG_STR("name", shared->name));
    return CADRE_OK;
}

void shared_ledger_close(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    if (shared == NULL) {
        return;
    }
    if (daemon->engine == NULL && shared->copy.store != NULL) {
        shared->copy.store->ops->close(shared->copy.store);
    }
    free_shared(shared);
    daemon->shared = NULL;
}

/* ---- turns ---- */

bool shared_ledger_may_send(const struct daemon *daemon)
{
    return daemon->shared == NULL ||
           clock_boot_us() < replica_may_send_until_us(daemon->shared->replica);
}

static void suspend(struct shared_ledger *shared)
{
    struct cadre_error why;
    struct replica_view view;
    replica_show(shared->replica, &view);
    cadre_error_set(&why, CADRE_UNAVAILABLE,
        "it is not known whether this coordinator leads still, because etcd has not confirmed it "
        "for %" PRIu64 " ms (%s): jobs do the steps that are admitted, then wait, and go on by "
        "themselves",
        shared->daemon->options.ha.lease_us / CADRE_US_PER_MS,
        view.failure[0] != '\0' ? view.failure : "no answer");
    shared->suspended = true;
    engine_suspend(shared->daemon->engine, clock_monotonic_us(), &why);
}

void shared_ledger_turn(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    if (shared == NULL || daemon->engine == NULL) {
        return;
    }
    bool may = !shared->left && shared_ledger_may_send(daemon);
    note_leading(shared, may);
    if (!may && !shared->suspended) {
        suspend(shared);
    } else if (may && shared->suspended) {
        shared->suspended = false;
        engine_resume(daemon->engine, clock_monotonic_us());
    }
    engine_log_stored(daemon->engine, shared->logged);
}

/* ---- calls ---- */

static bool needs_leader(const char *method)
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

cadre_status shared_ledger_admit(
    struct daemon *daemon, struct rpc_call *call, const char *method, struct cadre_error *error)
{
    const struct shared_ledger *shared = daemon->shared;
    if (daemon->options.ha.address == NULL || !needs_leader(method)) {
        return CADRE_OK;
    }
    if (shared == NULL) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "this coordinator starts: try again");
    }
    if (daemon->engine != NULL && !shared->left && shared_ledger_may_send(daemon)) {
        return CADRE_OK;
    }
    if (shared->refused[0] != '\0') {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "coordinator %s takes no part: %s",
            shared->name, shared->refused);
    }
    bool unknown = shared->leader[0] == '\0';
    if (unknown && daemon->engine == NULL && strcmp(method, METHOD_AGENTS_JOIN) == 0) {
        return CADRE_OK;
    }
    if (daemon->engine != NULL || unknown) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "coordinator %s does not lead, and it is not known which one does: try again",
            shared->name);
    }
    rpc_call_set_trailer(call, RPC_LEADER_KEY, shared->leader);
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "coordinator %s does not lead: ask the one at %s", shared->name, shared->leader);
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

void shared_ledger_hello_ahead(struct daemon *daemon, uint64_t term)
{
    replica_hello_ahead(daemon->shared->replica, term, 0);
}

bool shared_ledger_leave(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    if (shared == NULL || shared->refused[0] != '\0') {
        return false;
    }
    shared->left = true;
    note_leading(shared, false);
    replica_leave(shared->replica);
    return true;
}

/* ---- for people ---- */

void shared_ledger_show(const struct daemon *daemon, struct replica_view *ret_view)
{
    replica_show(daemon->shared->replica, ret_view);
}

const char *shared_ledger_trouble(const struct daemon *daemon)
{
    const struct shared_ledger *shared = daemon->shared;
    if (shared == NULL || shared->refused[0] != '\0') {
        return shared != NULL ? shared->refused : "";
    }
    struct replica_view view;
    replica_show(shared->replica, &view);
    return view.failure;
}

/* The name and addresses of the one that leads now; "": none is known to. */
static void name_leader(const struct replica_view *view, struct leader_response *ret_response)
{
    bool known =
        view->leader != NULL && view->leader->leader.term > 0 && !view->leader->leader.left;
    ret_response->leader = known ? view->leader->name : "";
    ret_response->leader_addresses = known ? view->leader->addresses : "";
}

static const char *state_name(enum leadership_state state)
{
    static const char *const names[] = {[LEADERSHIP_FOLLOWER] = COORDINATOR_FOLLOWER,
        [LEADERSHIP_CANDIDATE] = COORDINATOR_CANDIDATE,
        [LEADERSHIP_CATCHING_UP] = COORDINATOR_CATCHING_UP,
        [LEADERSHIP_LEADING] = COORDINATOR_LEADING,
        [LEADERSHIP_SUSPENDED] = COORDINATOR_SUSPENDED,
        [LEADERSHIP_LEAVING] = COORDINATOR_LEAVING,
        [LEADERSHIP_REFUSED] = COORDINATOR_REFUSED};
    bool known = (size_t)state < CADRE_COUNT_OF(names) && names[state] != NULL;
    return known ? names[state] : COORDINATOR_LEAVING;
}

void shared_ledger_describe(const struct daemon *daemon, struct leader_response *ret_response)
{
    const struct shared_ledger *shared = daemon->shared;
    const char *advertised = daemon->options.ha.advertise;
    struct replica_view view;
    replica_show(shared->replica, &view);
    uint64_t now_us = clock_boot_us();
    uint64_t until_us = replica_may_send_until_us(shared->replica);
    bool leads = daemon->engine != NULL && now_us < until_us;
    *ret_response =
        (struct leader_response){.self = {.name = shared->name,
                                     .addresses = advertised != NULL ? advertised : shared->own,
                                     .state = state_name(view.core.state),
                                     .text = shared_ledger_trouble(daemon),
                                     .leads = leads,
                                     .applied = view.core.applied.index,
                                     .head = view.core.head.index,
                                     .version = CADRE_VERSION},
            .may_lead_us = leads ? until_us - now_us : 0};
    name_leader(&view, ret_response);
    if (view.core.leader.term > 0) {
        ret_response->self.term = (struct term){.cluster = shared->known.cluster_id.low,
            .start = view.core.leader.term,
            .nonce = view.core.leader.nonce.low};
        ret_response->self.since_us = view.leader != NULL ? view.leader->since_us : 0;
    }
}

size_t shared_ledger_list(
    const struct daemon *daemon, struct coordinator_info ret_infos[LIMIT_COORDINATORS])
{
    struct leader_response own;
    shared_ledger_describe(daemon, &own);
    return shared_members_list(
        daemon->shared->members, &own.self, own.leader, daemon->arena, ret_infos);
}
