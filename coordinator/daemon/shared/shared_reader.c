/* SPDX-License-Identifier: Apache-2.0
 * From which ledger calls of clients are answered (rules HA7c and HA15): each answer says it, and
 * no client is answered from an older one than before. A client that takes old answers is answered
 * by a coordinator that does not lead, too: from an engine over its copy of the ledger. That is
 * opened again when there are newer entries; because it reads all jobs (0.9 s for 4,000 that have
 * not ended), this takes at most a tenth of the time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/shared/shared_state.h"

#define REOPEN_US    CADRE_US_PER_S
#define REOPEN_TIMES 10
/* Its memory is given back then. */
#define UNUSED_US (60 * CADRE_US_PER_S)

static uint64_t since_us(uint64_t then_us)
{
    uint64_t now_us = clock_boot_us();
    return now_us > then_us ? now_us - then_us : 0;
}

/* ---- positions ---- */

void shared_reader_seen(const struct rpc_call *call, struct ledger_position *ret_seen)
{
    size_t length = 0;
    const char *text = rpc_call_metadata(call, LEDGER_POSITION_KEY, &length);
    *ret_seen = (struct ledger_position){0};
    if (text != NULL) {
        (void)ledger_position_read(text, length, ret_seen);
    }
}

void shared_reader_position(
    const struct shared_ledger *shared, struct ledger_position *ret_position)
{
    const struct daemon *daemon = shared->daemon;
    struct replica_view view;
    if (daemon->engine != NULL) {
        struct term term = engine_term(daemon->engine);
        *ret_position = (struct ledger_position){
            .cluster = term.cluster, .term = term.start, .index = daemon->log_index};
        return;
    }
    replica_show(shared->replica, &view);
    *ret_position = (struct ledger_position){.cluster = shared->known.cluster_id.low,
        .term = view.core.applied.term,
        .index = view.core.applied.index};
}

/* ---- a coordinator that does not lead ---- */

static bool only_reads(const char *method)
{
    return strcmp(method, METHOD_JOBS_GET) == 0 || strcmp(method, METHOD_JOBS_LIST) == 0 ||
           strcmp(method, METHOD_JOBS_HISTORY) == 0 || strcmp(method, METHOD_JOBS_VERSION) == 0;
}

static bool may_open(const struct shared_reader *reader)
{
    return reader->engine == NULL || clock_boot_us() >= reader->reopen_us;
}

bool shared_reader_admits(
    const struct shared_ledger *shared, const struct rpc_call *call, const char *method)
{
    const struct shared_reader *reader = &shared->reader;
    struct ledger_position seen, own;
    size_t length = 0;
    if (!only_reads(method) || rpc_call_metadata(call, LEDGER_STALE_KEY, &length) == NULL ||
        shared->refused[0] != '\0' || shared->left ||
        (shared->daemon->engine != NULL && replica_may_send_until_us(shared->replica) == 0)) {
        return false;
    }
    shared_reader_seen(call, &seen);
    shared_reader_position(shared, &own);
    own = shared->daemon->engine != NULL || may_open(reader) ? own : reader->at;
    return own.term > 0 && !ledger_position_is_newer(&seen, &own);
}

void shared_reader_close(struct shared_ledger *shared)
{
    engine_close(shared->reader.engine);
    shared->reader = (struct shared_reader){0};
}

/* While the copy lacks entries that are known of, it was complete when it last had all of them. */
static void note_complete(struct shared_ledger *shared, const struct replica_view *view)
{
    if (view->core.complete_us > shared->complete_us) {
        shared->complete_us = view->core.complete_us;
    }
}

void shared_reader_look(struct shared_ledger *shared, const struct replica_view *view)
{
    note_complete(shared, view);
    if (shared->reader.engine != NULL && since_us(shared->reader.opened_us) > UNUSED_US) {
        shared_reader_close(shared);
    }
}

static cadre_status open_reader(
    struct shared_ledger *shared, const struct ledger_position *at, struct cadre_error *error)
{
    struct engine *engine = NULL;
    uint64_t began_us = clock_boot_us();
    CADRE_TRY(shared->owner.read(shared->daemon, shared->copy.store, &engine, error));
    uint64_t wait_us = since_us(began_us) * REOPEN_TIMES;
    uint64_t now_us = clock_boot_us();
    shared_reader_close(shared);
    shared->reader = (struct shared_reader){.engine = engine,
        .at = *at,
        .opened_us = now_us,
        .reopen_us = now_us + (wait_us > REOPEN_US ? wait_us : REOPEN_US),
        .complete_us = shared->complete_us};
    return CADRE_OK;
}

cadre_status shared_ledger_reader(
    struct daemon *daemon, struct engine **ret_engine, struct cadre_error *error)
{
    struct shared_ledger *shared = daemon->shared;
    struct replica_view view;
    struct ledger_position at;
    if (daemon->engine != NULL) {
        *ret_engine = daemon->engine;
        return CADRE_OK;
    }
    CADRE_ASSERT(shared != NULL);
    replica_show(shared->replica, &view);
    note_complete(shared, &view);
    shared_reader_position(shared, &at);
    struct shared_reader *reader = &shared->reader;
    if (reader->engine != NULL && !ledger_position_is_newer(&at, &reader->at)) {
        reader->complete_us = shared->complete_us;
    } else if (may_open(reader)) {
        CADRE_TRY(open_reader(shared, &at, error));
    }
    *ret_engine = reader->engine;
    return CADRE_OK;
}

/* ---- the end of a call ---- */

/* A leader that etcd does not answer knows what the ledger had when it did: at least a lease before
 * the end of its time to send. A copy that had not all of the log since this process began may be
 * of any age. */
static void set_age(const struct shared_ledger *shared, struct rpc_call *call)
{
    const struct daemon *daemon = shared->daemon;
    char text[LEDGER_POSITION_BYTES] = LEDGER_AGE_UNKNOWN;
    uint64_t age_us = since_us(shared->reader.complete_us);
    if (daemon->engine != NULL) {
        age_us = since_us(replica_may_send_until_us(shared->replica)) + daemon->options.ha.lease_us;
    }
    if (daemon->engine != NULL || shared->reader.complete_us > 0) {
        snprintf(text, sizeof text, "%" PRIu64, age_us / CADRE_US_PER_MS + 1);
    }
    rpc_call_set_trailer(call, LEDGER_AGE_KEY, text);
}

void shared_ledger_mark(struct daemon *daemon, struct rpc_call *call, const char *method)
{
    const struct shared_ledger *shared = daemon->shared;
    const size_t service = sizeof METHOD_SERVICE_JOBS - 1;
    bool reads = only_reads(method) && shared != NULL && shared->reader.engine != NULL;
    if (shared == NULL || strncmp(method + 1, METHOD_SERVICE_JOBS, service) != 0 ||
        (daemon->engine == NULL && !reads)) {
        return;
    }
    char text[LEDGER_POSITION_BYTES];
    struct ledger_position position = shared->reader.at;
    if (daemon->engine != NULL) {
        shared_reader_position(shared, &position);
    }
    ledger_position_write(&position, text);
    rpc_call_set_trailer(call, LEDGER_POSITION_KEY, text);
    if (daemon->engine == NULL || !shared_ledger_may_send(daemon)) {
        set_age(shared, call);
    }
}
