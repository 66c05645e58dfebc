/* SPDX-License-Identifier: Apache-2.0
 * Events of the loop and calls of the owner become events of the core, one at a time; its actions
 * become requests and calls of the owner's table, in their order. What the owner calls from within
 * the table is kept, and becomes an event afterwards. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "coordinator/replication/hashes.h"
#include "coordinator/replication/replica_state.h"

/* An attempt ends after this part of the lease, before the core repeats it (a quarter), so that the
 * repeated one goes to another member of etcd. */
#define ATTEMPT_PART 5
#define TIMER_MS_MAX UINT64_C(3600000)

static void report_leader(struct replica *replica)
{
    const struct leader_value *leader = etcd_log_leader(replica->log);
    if (leader->leader.term > 0 && !log_leader_equal(&leader->leader, &replica->reported)) {
        replica->reported = leader->leader;
        replica->options.ops->leader_changed(replica->options.user, leader);
    }
}

/* ---- events ---- */

/* The clock is read here: after the answer that the event carries was received (HA2), and before
 * what the step asks for is sent (HA4). */
static void feed(struct replica *replica, struct leadership_event *event)
{
    struct leadership_action items[LEADERSHIP_ACTIONS_PER_STEP_MAX];
    struct leadership_actions actions = {.items = items, .capacity = CADRE_COUNT_OF(items)};
    event->now_us = clock_boot_us();
    leadership_step(replica->core, event, &actions);
    for (size_t i = 0; i < actions.count && !replica->ended; i++) {
        replica_act(replica, &items[i]);
    }
}

static bool may_offer(const struct replica *replica)
{
    struct leadership_view view;
    leadership_show(replica->core, &view);
    return view.state == LEADERSHIP_LEADING || view.state == LEADERSHIP_SUSPENDED;
}

static bool take_flag(bool *flag)
{
    bool was = *flag;
    *flag = false;
    return was;
}

static void take_ticket(struct replica *replica, struct leadership_event *ret_event)
{
    uint64_t n = replica->offered++;
    const struct kept_ticket *ticket = tickets_at(&replica->tickets, n);
    ret_event->type = LEADERSHIP_EVENT_OFFER;
    ret_event->ticket = (struct leadership_ticket){.ticket = n,
        .kind = ticket->kind,
        .bytes = (uint32_t)ticket->size,
        .format = ticket->format};
}

/* The next event that is not from the loop. */
static bool take_pending(struct replica *replica, struct leadership_event *ret_event)
{
    struct pending *pending = &replica->pending;
    *ret_event = (struct leadership_event){.type = LEADERSHIP_EVENT_TICK};
    for (size_t i = 0; i < FAILED_AT_ONCE; i++) {
        if (pending->unanswered[i] != 0) {
            ret_event->type = LEADERSHIP_EVENT_UNANSWERED;
            ret_event->unanswered.request = pending->unanswered[i];
            pending->unanswered[i] = 0;
            return true;
        }
    }
    if (take_flag(&pending->applied)) {
        ret_event->type = LEADERSHIP_EVENT_APPLIED;
        ret_event->position = pending->applied_to;
    } else if (take_flag(&pending->no_room)) {
        ret_event->type = LEADERSHIP_EVENT_NO_ROOM;
        ret_event->position = pending->no_room_at;
    } else if (replica->offered < replica->tickets.end && may_offer(replica)) {
        take_ticket(replica, ret_event);
    } else if (take_flag(&pending->installed)) {
        ret_event->type = LEADERSHIP_EVENT_SNAPSHOT_INSTALLED;
        ret_event->position = pending->installed_at;
    } else if (take_flag(&pending->held)) {
        snapshots_take_held(replica, ret_event);
    } else if (take_flag(&pending->hello)) {
        ret_event->type = LEADERSHIP_EVENT_HELLO_AHEAD;
        ret_event->hello.term = pending->hello_term;
        ret_event->hello.index = pending->hello_index;
    } else if (take_flag(&pending->stand)) {
        ret_event->type = LEADERSHIP_EVENT_STAND;
    } else if (take_flag(&pending->leave)) {
        ret_event->type = LEADERSHIP_EVENT_LEAVE;
    } else {
        return false;
    }
    return true;
}

static void on_timer(uv_timer_t *timer);

/* libuv's clock may be that of the turn's begin, and stands still while the host is suspended: the
 * core compares times itself. */
static void arm_timer(struct replica *replica)
{
    uint64_t wake_us = leadership_wake_us(replica->core);
    uint64_t now_us = clock_boot_us();
    if (replica->ended || wake_us == UINT64_MAX) {
        uv_timer_stop(&replica->timer);
        return;
    }
    uint64_t left_us = wake_us > now_us ? wake_us - now_us : 0;
    uint64_t left_ms = (left_us + CADRE_US_PER_MS - 1) / CADRE_US_PER_MS;
    uv_update_time(replica->timer.loop);
    uv_timer_start(&replica->timer, on_timer, left_ms < TIMER_MS_MAX ? left_ms : TIMER_MS_MAX, 0);
}

void replica_run(struct replica *replica, struct leadership_event *event)
{
    struct leadership_event next;
    if (replica->in_step || replica->ended) {
        return;
    }
    replica->in_step = true;
    if (event != NULL) {
        feed(replica, event);
    }
    while (!replica->ended && take_pending(replica, &next)) {
        feed(replica, &next);
    }
    snapshots_check(replica);
    if (!replica->ended) {
        report_leader(replica);
    }
    replica->in_step = false;
    arm_timer(replica);
}

static void on_timer(uv_timer_t *timer)
{
    struct leadership_event event = {.type = LEADERSHIP_EVENT_TICK};
    replica_run(timer->data, &event);
}

static void on_watch(cadre_status status, const char *text, void *user)
{
    struct replica *replica = user;
    struct leadership_event event = {.type = LEADERSHIP_EVENT_CHANGED};
    if (status == CADRE_OK) {
        replica_run(replica, &event);
    } else {
        replica_note_failure(replica, text);
    }
}

static void on_read(
    void *user, const struct leadership_read *read, const struct entry_value *contents)
{
    struct replica *replica = user;
    struct leadership_event event = {.type = LEADERSHIP_EVENT_READ, .read = *read};
    replica->failure[0] = '\0';
    replica->contents = contents;
    replica_run(replica, &event);
    replica->contents = NULL;
}

static void on_answered(void *user, const struct leadership_answer *answer)
{
    struct replica *replica = user;
    struct leadership_event event = {.type = LEADERSHIP_EVENT_ANSWERED, .answer = *answer};
    replica->failure[0] = '\0';
    replica_run(replica, &event);
}

static void on_unanswered(void *user, uint64_t request, bool no_space, const char *text)
{
    struct leadership_event event = {.type = LEADERSHIP_EVENT_UNANSWERED,
        .unanswered = {.request = request, .no_space = no_space}};
    replica_note_failure(user, text);
    replica_run(user, &event);
}

static void on_snapshot(
    void *user, cadre_status status, const char *text, const struct replica_snapshot *snapshot)
{
    struct replica *replica = user;
    replica->in_step = true; /* the table may call the replica */
    snapshots_found(replica, status, text, snapshot);
    replica->in_step = false;
    replica_run(replica, NULL);
}

/* ---- begin and end ---- */

static cadre_status copy_text(
    const char *what, const char *from, char *to, size_t size, struct cadre_error *error)
{
    size_t length = strlen(from);
    if (length >= size) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the %s of this coordinator has %zu bytes; at most %zu fit", what, length, size - 1);
    }
    memcpy(to, from, length + 1);
    return CADRE_OK;
}

static cadre_status copy_texts(
    struct replica *replica, const struct replica_options *options, struct cadre_error *error)
{
    CADRE_TRY(copy_text("name", options->name, replica->name, sizeof replica->name, error));
    CADRE_TRY(copy_text("list of addresses", options->addresses, replica->addresses,
        sizeof replica->addresses, error));
    return copy_text("version", options->version, replica->version, sizeof replica->version, error);
}

static cadre_status draw(void *bytes, size_t size, struct cadre_error *error)
{
    ssize_t drawn = getrandom(bytes, size, 0);
    return drawn == (ssize_t)size
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INTERNAL, "getrandom gives no random numbers");
}

static cadre_status open_core(struct replica *replica, struct cadre_error *error)
{
    const struct replica_options *from = &replica->options;
    struct leadership_options options = {.has_cluster = from->has_cluster,
        .cluster_id = from->cluster_id,
        .etcd_id = from->etcd_id,
        .applied = from->applied,
        .term_seen = from->term_seen,
        .contents_id = from->contents_id,
        .waits = from->waits,
        .format_max = from->format_max,
        .accept_restored = from->accept_restored,
        .lease_us = from->lease_us,
        .drift_ppm = from->drift_ppm,
        .margin_us = from->margin_us,
        .lag_us = from->lag_us,
        .tickets_max = from->tickets_max};
    CADRE_TRY(draw(&options.nonce, sizeof options.nonce, error));
    CADRE_TRY(draw(&options.new_cluster_id, sizeof options.new_cluster_id, error));
    CADRE_TRY(draw(&options.seed, sizeof options.seed, error));
    CADRE_TRY(hash_cluster(options.new_cluster_id, &options.new_hash, error));
    void *memory =
        fault_point("replication.memory") ? NULL : malloc(leadership_bytes(options.tickets_max));
    if (memory == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a replica");
    }
    replica->core = leadership_init(memory, &options);
    return CADRE_OK;
}

static cadre_status open_log(struct replica *replica, struct cadre_error *error)
{
    static const struct etcd_log_handlers handlers = {.read = on_read,
        .answered = on_answered,
        .unanswered = on_unanswered,
        .snapshot = on_snapshot};
    const struct etcd_log_options options = {.etcd = replica->options.etcd,
        .name = replica->name,
        .addresses = replica->addresses,
        .version = replica->version,
        .secret = replica->options.secret,
        .attempt_us = replica->options.lease_us / ATTEMPT_PART,
        .tickets = &replica->tickets,
        .snapshot = &replica->held,
        .handlers = &handlers,
        .user = replica};
    static const char *const keys[WATCHES] = {"head", "leader"};
    CADRE_TRY(etcd_log_open(&options, &replica->log, error));
    for (size_t i = 0; i < WATCHES; i++) {
        CADRE_TRY(etcd_watch_open(
            replica->options.etcd, keys[i], on_watch, replica, &replica->watches[i], error));
    }
    return CADRE_OK;
}

cadre_status replica_open(struct rpc_loop *loop, const struct replica_options *options,
    struct replica **ret_replica, struct cadre_error *error)
{
    *ret_replica = NULL;
    struct replica *replica = fault_point("replication.memory") ? NULL : calloc(1, sizeof *replica);
    if (replica == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a replica");
    }
    replica->options = *options;
    replica->offered = 1;
    replica->applied = options->applied;
    snapshots_begin(replica);
    uv_timer_init(rpc_loop_uv(loop), &replica->timer);
    replica->timer.data = replica;
    cadre_status status = copy_texts(replica, options, error);
    if (status == CADRE_OK) {
        status = tickets_open(&replica->tickets, options->tickets_max, error);
    }
    if (status == CADRE_OK) {
        status = open_core(replica, error);
    }
    if (status == CADRE_OK) {
        status = open_log(replica, error);
    }
    if (status != CADRE_OK) {
        replica_close(replica);
        return status;
    }
    uv_timer_start(&replica->timer, on_timer, 0, 0);
    *ret_replica = replica;
    return CADRE_OK;
}

static void timer_closed(uv_handle_t *handle)
{
    struct replica *replica = handle->data;
    free(replica);
}

void replica_close(struct replica *replica)
{
    if (replica == NULL) {
        return;
    }
    CADRE_ASSERT(!replica->in_step && !replica->closed);
    replica->closed = true;
    for (size_t i = 0; i < WATCHES; i++) {
        etcd_watch_close(replica->watches[i]);
    }
    etcd_log_close(replica->log);
    tickets_close(&replica->tickets);
    free(replica->core);
    uv_close((uv_handle_t *)&replica->timer, timer_closed);
}

/* ---- what the owner calls ---- */

cadre_status replica_append(struct replica *replica, const void *bytes, size_t size,
    enum leadership_ticket_kind kind, uint64_t *ret_ticket, struct cadre_error *error)
{
    const bool raises = kind == LEADERSHIP_SYNC;
    const struct kept_ticket ticket = {.kind = kind,
        .format = raises ? replica->raise_to : 0,
        .size = size,
        .bytes = (void *)(uintptr_t)bytes};
    bool fits = kind == LEADERSHIP_CONFIRM ? size == 0 : size > 0 && size <= LOG_ENTRY_BYTES_MAX;
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an entry of %zu bytes: it has 1 to %d, and a confirmation none", size,
            LOG_ENTRY_BYTES_MAX);
    }
    if (replica->ended || !may_offer(replica)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION, "this coordinator does not lead");
    }
    CADRE_TRY(tickets_keep(&replica->tickets, &ticket, ret_ticket, error));
    replica->raise_to = raises ? 0 : replica->raise_to;
    replica_run(replica, NULL);
    return CADRE_OK;
}

uint64_t replica_may_send_until_us(const struct replica *replica)
{
    return replica->ended ? 0 : leadership_may_send_until_us(replica->core);
}

void replica_raise_format(struct replica *replica, uint32_t format)
{
    CADRE_ASSERT(format > etcd_log_format(replica->log));
    replica->raise_to = format;
}

void replica_stand(struct replica *replica)
{
    replica->pending.stand = true;
    replica_run(replica, NULL);
}

void replica_leave(struct replica *replica)
{
    replica->pending.leave = true;
    replica_run(replica, NULL);
}

void replica_hello_ahead(struct replica *replica, uint64_t term, uint64_t index)
{
    struct pending *pending = &replica->pending;
    bool more = !pending->hello || term > pending->hello_term ||
                (term == pending->hello_term && index > pending->hello_index);
    if (more) {
        pending->hello = true;
        pending->hello_term = term;
        pending->hello_index = index;
    }
    replica_run(replica, NULL);
}

void replica_snapshot_installed(struct replica *replica, const struct leadership_position *position)
{
    snapshots_installed(replica, position);
    replica_run(replica, NULL);
}

void replica_snapshot_held(struct replica *replica, const struct replica_snapshot *snapshot)
{
    snapshots_held(replica, snapshot);
    replica_run(replica, NULL);
}

void replica_show(const struct replica *replica, struct replica_view *ret_view)
{
    leadership_show(replica->core, &ret_view->core);
    ret_view->applied = replica->applied.index;
    ret_view->leader = etcd_log_leader(replica->log);
    ret_view->format = etcd_log_format(replica->log);
    ret_view->failure = replica->failure;
    ret_view->failures = replica->failures;
}
