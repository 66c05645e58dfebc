/* SPDX-License-Identifier: Apache-2.0 */
#include "leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/etcd/messages.h"
#include "common/pure/assert.h"

#define ANSWER_US    5000 /* of etcd: with an fsync of two members of three */
#define TICKETS_MAX  65536
#define FORMAT       1
#define PREFIX       "/cadre/production/"
#define PREFIX_BYTES (sizeof PREFIX - 1)
#define NEVER        UINT64_MAX
#define ARENA_BYTES  ((size_t)64 << 20)

static void check(cadre_status status, const struct cadre_error *error)
{
    if (status != CADRE_OK) {
        fprintf(stderr, "ledger_scale: %s\n", error->text);
        exit(1);
    }
}

double leader_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- etcd ---- */

static void transact(
    struct scale_leader *log, uint64_t request, const struct log_transaction *asked)
{
    struct cadre_error error;
    struct rpc_buffer request_bytes;
    const struct build_inputs inputs = {.name = "coordinator-1",
        .addresses = "10.11.12.13:7000",
        .version = "1.0.0",
        .secret = (const uint8_t[REPLICA_SECRET_BYTES]){1},
        .tickets = &log->tickets,
        .format = FORMAT,
        .wall_us = UINT64_C(1790000000000000) + log->now_us};
    check(build_transaction(asked, &inputs, &log->built, &error), &error);
    check(etcd_pack_transaction(&log->built.etcd, PREFIX, log->scratch, &request_bytes, &error),
        &error);
    log->counts.bytes += request_bytes.length;
    log->counts.transactions++;
    for (size_t i = 0; i < log->built.etcd.then_count; i++) {
        const struct etcd_operation *operation = &log->built.then[i];
        bool puts = operation->kind == ETCD_PUT;
        log->counts.stored +=
            puts ? PREFIX_BYTES + strlen(operation->key) + operation->value.size : 0;
    }
    rpc_buffer_free(&request_bytes);
    log->cluster = asked->kind == LOG_CREATE ? asked->cluster : log->cluster;
    log->head = asked->head;
    log->head.hash = log->built.hash;
    log->head.mod_revision = ++log->revision;
    if (asked->kind == LOG_CREATE || asked->kind == LOG_TAKE_OVER) {
        log->leader = asked->leader;
        log->leader.mod_revision = log->revision;
    }
    log->answer = (struct leadership_answer){
        .request = request, .applied = true, .hash = log->built.hash, .revision = log->revision};
    log->answer_us = log->now_us + ANSWER_US;
}

static struct leadership_event answered_read(struct scale_leader *log)
{
    log->read_us = NEVER;
    return (struct leadership_event){.type = LEADERSHIP_EVENT_READ,
        .read = {.request = log->read,
            .etcd_id = 1,
            .has_cluster = log->revision > 0,
            .cluster = log->cluster,
            .cluster_hash = {{1}},
            .has_leader = true,
            .has_head = true,
            .leader = log->leader,
            .head = log->head}};
}

/* ---- the leadership core ---- */

static void apply_batch(struct scale_leader *log)
{
    struct cadre_error error;
    if (log->batch.entry_count > 0) {
        log->at.index += log->batch.entry_count;
        check(log->store->ops->apply(
                  log->store, log->batch.records, log->batch.count, &log->at, &error),
            &error);
        entry_batch_clear(&log->batch);
    }
}

/* As a coordinator does with what is in the log: into its copy of the ledger. */
static void apply(struct scale_leader *log, uint64_t up_to)
{
    struct cadre_error error;
    double start_s = leader_cpu_s();
    for (uint64_t n = log->logged + 1; n <= up_to; n++) {
        const struct kept_ticket *ticket = tickets_at(&log->tickets, n);
        if (ticket->kind == LEADERSHIP_CONFIRM) {
            continue;
        }
        cadre_status status = entry_batch_add(&log->batch, ticket->bytes, ticket->size, &error);
        if (status == CADRE_OUT_OF_RANGE) {
            apply_batch(log);
            status = entry_batch_add(&log->batch, ticket->bytes, ticket->size, &error);
        }
        check(status, &error);
    }
    apply_batch(log);
    tickets_drop(&log->tickets, up_to);
    log->logged = up_to;
    log->counts.apply_s += leader_cpu_s() - start_s;
}

static void step(struct scale_leader *log, struct leadership_event event)
{
    event.now_us = log->now_us;
    log->actions.count = 0;
    leadership_step(log->core, &event, &log->actions);
    for (size_t i = 0; i < log->actions.count; i++) {
        const struct leadership_action *action = &log->actions.items[i];
        switch (action->type) {
        case LEADERSHIP_ACTION_READ:
            log->read = action->read.request;
            log->read_us = log->now_us + ANSWER_US;
            break;
        case LEADERSHIP_ACTION_TRANSACT:
            transact(log, action->transact.request, &action->transact.transaction);
            break;
        case LEADERSHIP_ACTION_LEAD:
            log->term = action->lead.term;
            break;
        case LEADERSHIP_ACTION_LOGGED:
            apply(log, action->logged.ticket);
            break;
        default:
            CADRE_ASSERT(action->type == LEADERSHIP_ACTION_STORE_KNOWN);
            break;
        }
    }
}

static cadre_status append(void *user, const struct store_record *records, size_t count, bool waits,
    struct cadre_error *error)
{
    struct scale_leader *log = user;
    struct kept_ticket ticket = {.kind = count == 0 ? LEADERSHIP_CONFIRM
                                         : waits    ? LEADERSHIP_SYNC
                                                    : LEADERSHIP_LAGGING};
    struct leadership_event event = {.type = LEADERSHIP_EVENT_OFFER};
    if (count > 0) {
        wire_buffer_clear(&log->packed);
        CADRE_TRY(log_entry_write(FORMAT, records, count, &log->packed, error));
        ticket.bytes = log->packed.bytes;
        ticket.size = log->packed.size;
        log->counts.entries++;
        log->counts.entry_bytes += ticket.size;
        log->counts.largest = ticket.size > log->counts.largest ? ticket.size : log->counts.largest;
    }
    CADRE_TRY(tickets_keep(&log->tickets, &ticket, &event.ticket.ticket, error));
    event.ticket.kind = ticket.kind;
    event.ticket.bytes = (uint32_t)ticket.size;
    step(log, event);
    return CADRE_OK;
}

/* ---- time ---- */

void leader_flush(struct scale_leader *log)
{
    struct cadre_error error;
    check(engine_flush(log->engine, log->now_us, &error), &error);
}

static uint64_t next_us(const struct scale_leader *log)
{
    uint64_t wake_us = leadership_wake_us(log->core);
    uint64_t engine_us = log->engine != NULL ? engine_wake_us(log->engine) : NEVER;
    wake_us = engine_us < wake_us ? engine_us : wake_us;
    wake_us = log->answer_us < wake_us ? log->answer_us : wake_us;
    return log->read_us < wake_us ? log->read_us : wake_us;
}

static void happen(struct scale_leader *log)
{
    uint64_t logged = log->logged;
    if (log->answer_us <= log->now_us) {
        log->answer_us = NEVER;
        step(log,
            (struct leadership_event){.type = LEADERSHIP_EVENT_ANSWERED, .answer = log->answer});
    } else if (log->read_us <= log->now_us) {
        step(log, answered_read(log));
    } else if (leadership_wake_us(log->core) <= log->now_us) {
        step(log, (struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
    } else {
        engine_tick(log->engine, log->now_us);
        leader_flush(log);
    }
    if (log->engine != NULL && log->logged > logged) {
        engine_log_stored(log->engine, log->logged - log->before);
        leader_flush(log);
    }
}

void leader_advance(struct scale_leader *log, uint64_t by_us)
{
    uint64_t until_us = log->now_us + by_us;
    for (uint64_t at_us = next_us(log); at_us <= until_us; at_us = next_us(log)) {
        log->now_us = at_us > log->now_us ? at_us : log->now_us;
        happen(log);
    }
    log->now_us = until_us;
}

/* ---- open, close ---- */

void leader_open(struct scale_leader *log, const char *path)
{
    struct cadre_error error;
    const struct leadership_options options = {.format_max = FORMAT,
        .nonce = {1, 2},
        .new_cluster_id = {3, 4},
        .new_hash = {{1}},
        .seed = 5,
        .lease_us = 3 * SECOND_US,
        .drift_ppm = 10000,
        .margin_us = 50000,
        .lag_us = 100000, /* as coordinator/daemon/shared/shared_ledger.c, all of it */
        .tickets_max = TICKETS_MAX};
    *log = (struct scale_leader){.now_us = SECOND_US,
        .at.term = 1,
        .answer_us = NEVER,
        .read_us = NEVER,
        .arena = wire_arena_new(ARENA_BYTES),
        .scratch = wire_arena_new(ARENA_BYTES),
        .actions = {.capacity = LEADERSHIP_ACTIONS_PER_STEP_MAX}};
    log->built.arena = log->arena;
    log->actions.items = calloc(LEADERSHIP_ACTIONS_PER_STEP_MAX, sizeof *log->actions.items);
    void *memory = malloc(leadership_bytes(TICKETS_MAX));
    CADRE_ASSERT(memory != NULL && log->actions.items != NULL && log->arena != NULL);
    check(tickets_open(&log->tickets, TICKETS_MAX, &error), &error);
    check(store_sqlite_open(path, &log->store, &error), &error);
    log->core = leadership_init(memory, &options);
    step(log, (struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
    leader_advance(log, SECOND_US);
    CADRE_ASSERT(log->term != 0);
}

void leader_begin_engine(
    struct scale_leader *log, const struct core_limits *limits, const struct engine_sink *sink)
{
    struct cadre_error error;
    CADRE_ASSERT(log->logged + 1 == log->tickets.end);
    log->before = log->logged;
    log->of_engine = (struct engine_log){
        .user = log, .term = {.cluster = 4, .start = log->term, .nonce = 2}, .append = append};
    const struct engine_options options = {.log = &log->of_engine,
        .core = {.limits = *limits,
            .seed = 6,
            .lease_us = 3600 * SECOND_US, /* nothing is sent for its sake alone */
            .rewind_us = 3600 * SECOND_US,
            .grace_us = 10 * SECOND_US,
            .collect_us = 60 * SECOND_US,
            .form_us = 3600 * SECOND_US,
            .report_us = 10 * SECOND_US,
            .wait_us = 3600 * SECOND_US,
            .stall_us = 3600 * SECOND_US,
            .slow_factor = 10,
            .slow_us = 3600 * SECOND_US},
        .keep_jobs = 1000,
        .sync_us = SECOND_US, /* --ledger-sync */
        .retry_us = SECOND_US};
    check(engine_open(&options, log->store, sink, log, log->now_us, &log->engine, &error), &error);
}

void leader_close(struct scale_leader *log)
{
    engine_close(log->engine);
    tickets_close(&log->tickets);
    wire_buffer_free(&log->packed);
    wire_arena_free(log->arena);
    wire_arena_free(log->scratch);
    entry_batch_free(&log->batch);
    free(log->actions.items);
    free(log->core);
}
