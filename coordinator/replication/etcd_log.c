/* SPDX-License-Identifier: Apache-2.0
 * One transaction is kept with its bytes; each request is a call of its own, which lives until etcd
 * has answered it. */
#include "coordinator/replication/etcd_log.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "coordinator/replication/hashes.h"
#include "coordinator/replication/read.h"

#define BUILD_BYTES_MAX  ((size_t)4 * 1024 * 1024)
#define ANSWER_BYTES_MAX (3 * ETCD_ANSWER_BYTES_MAX) /* unpacked, and pieces joined */

struct etcd_log {
    struct etcd_log_options options;
    struct wire_arena *arena; /* of an answer */
    /* The newest transaction. */
    uint64_t request;
    bool is_built;
    struct log_transaction transaction;
    struct built built;
    /* As read or written last. */
    uint8_t cluster[SMALL_VALUE_BYTES_MAX];
    size_t cluster_size;
    uint32_t format;
    uint8_t secret[REPLICA_SECRET_BYTES];
    struct known_leader seen;
    struct known_leader own; /* that the newest TAKE_OVER of this process writes */
    /* An answer as it is taken apart. */
    struct read_keys keys;
    struct read_entries entries;
    unsigned users; /* the open log, and its calls */
    bool closed;
};

/* One request to etcd. */
struct log_call {
    struct etcd_log *log;
    uint64_t request;
    struct leadership_position after;
    uint32_t entries_max;
    uint32_t piece_count; /* not 0: of the entry that is read with its pieces */
};

static void log_unref(struct etcd_log *log)
{
    CADRE_ASSERT(log->users > 0);
    if (--log->users == 0) {
        wire_arena_free(log->arena);
        wire_arena_free(log->built.arena);
        free(log);
    }
}

cadre_status etcd_log_open(
    const struct etcd_log_options *options, struct etcd_log **ret_log, struct cadre_error *error)
{
    *ret_log = NULL;
    CADRE_ASSERT(strlen(options->name) < REPLICA_NAME_BYTES);
    CADRE_ASSERT(strlen(options->addresses) < REPLICA_ADDRESSES_BYTES);
    struct etcd_log *log = fault_point("replication.memory") ? NULL : calloc(1, sizeof *log);
    if (log != NULL) {
        log->options = *options;
        log->users = 1;
        log->arena = wire_arena_new(ANSWER_BYTES_MAX);
        log->built.arena = wire_arena_new(BUILD_BYTES_MAX);
    }
    if (log == NULL || log->arena == NULL || log->built.arena == NULL) {
        etcd_log_close(log);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the ledger's log in etcd");
    }
    *ret_log = log;
    return CADRE_OK;
}

void etcd_log_close(struct etcd_log *log)
{
    if (log != NULL) {
        CADRE_ASSERT(!log->closed);
        log->closed = true;
        log_unref(log);
    }
}

const struct leader_value *etcd_log_leader(const struct etcd_log *log)
{
    return &log->seen.value;
}

uint32_t etcd_log_format(const struct etcd_log *log)
{
    return log->format;
}

const uint8_t *etcd_log_secret(const struct etcd_log *log)
{
    return log->secret;
}

const struct entry_value *etcd_log_entry(const struct etcd_log *log, uint64_t index)
{
    const struct built *built = &log->built;
    CADRE_ASSERT(built->entry_count > 0 && index >= built->entries[0].index);
    CADRE_ASSERT(index - built->entries[0].index < built->entry_count);
    return &built->entries[index - built->entries[0].index];
}

/* ---- calls ---- */

static struct log_call *new_call(struct etcd_log *log, uint64_t request, struct cadre_error *error)
{
    struct log_call *call = fault_point("replication.memory") ? NULL : calloc(1, sizeof *call);
    if (call == NULL) {
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a request to etcd");
        return NULL;
    }
    *call = (struct log_call){.log = log, .request = request};
    log->users++;
    return call;
}

static void free_call(struct log_call *call)
{
    log_unref(call->log);
    free(call);
}

/* Sends it; what fails at once frees the call. */
static cadre_status send_call(struct log_call *call, const struct etcd_transaction *transaction,
    void (*handler)(const struct etcd_answer *answer, void *user), struct cadre_error *error)
{
    const struct etcd_log_options *options = &call->log->options;
    const struct etcd_then then = {.deadline_us = clock_monotonic_us() + options->attempt_us,
        .handler = handler,
        .user = call};
    cadre_status status = etcd_transact(options->etcd, transaction, &then, error);
    if (status != CADRE_OK) {
        free_call(call);
    }
    return status;
}

static void report_unanswered(const struct log_call *call, bool no_space, const char *text)
{
    const struct etcd_log_options *options = &call->log->options;
    options->handlers->unanswered(options->user, call->request, no_space, text);
}

/* Whether there is an answer to take apart; what else there is, is reported. */
static bool is_answered(struct log_call *call, const struct etcd_answer *answer)
{
    if (call->log->closed) {
        return false;
    }
    if (answer->status != CADRE_OK) {
        report_unanswered(call, answer->no_space, answer->text);
        return false;
    }
    wire_arena_reset(call->log->arena);
    return true;
}

/* ---- reads ---- */

static void note_keys(struct etcd_log *log)
{
    const struct read_keys *keys = &log->keys;
    if (keys->cluster_bytes.size > 0) {
        CADRE_ASSERT(keys->cluster_bytes.size <= sizeof log->cluster);
        memcpy(log->cluster, keys->cluster_bytes.data, keys->cluster_bytes.size);
        log->cluster_size = keys->cluster_bytes.size;
        log->format = keys->cluster.cluster.format;
        memcpy(log->secret, keys->cluster.secret, sizeof log->secret);
    }
    if (keys->has_leader) {
        log->seen = keys->leader;
    }
}

static cadre_status send_read(struct log_call *call, struct cadre_error *error);

static cadre_status take_entries(
    const struct log_call *call, const struct etcd_answer *answer, struct cadre_error *error)
{
    struct etcd_log *log = call->log;
    const struct etcd_result *behind = answer->results + BUILD_GETS;
    log->entries.count = 0;
    log->entries.piece_count = 0;
    if (call->piece_count > 0) {
        CADRE_ASSERT(answer->result_count == BUILD_GETS + 2);
        return read_take_pieces(
            &behind[0], &behind[1], &call->after, log->arena, &log->entries, error);
    }
    if (call->entries_max > 0) {
        CADRE_ASSERT(answer->result_count == BUILD_GETS + 1);
        return read_take_entries(&behind[0], &call->after, log->arena, &log->entries, error);
    }
    return CADRE_OK;
}

static cadre_status take_read(struct log_call *call, const struct etcd_answer *answer,
    struct leadership_read *ret_read, struct cadre_error *error)
{
    struct etcd_log *log = call->log;
    const struct read_keys *keys = &log->keys;
    CADRE_ASSERT(answer->result_count >= BUILD_GETS);
    if (!read_take_keys(answer->results, log->arena, &log->keys)) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for what etcd has of the ledger");
    }
    note_keys(log);
    CADRE_TRY(take_entries(call, answer, error));
    *ret_read = (struct leadership_read){.request = call->request,
        .etcd_id = answer->cluster_id,
        .has_cluster = keys->has_cluster,
        .cluster = keys->cluster.cluster,
        .has_leader = keys->has_leader,
        .has_head = keys->has_head,
        .leader = keys->leader.value.leader,
        .head = keys->head,
        .entries = log->entries.entries,
        .entry_count = log->entries.count};
    return keys->has_cluster
               ? hash_cluster(keys->cluster.cluster.id, &ret_read->cluster_hash, error)
               : CADRE_OK;
}

static void on_read(const struct etcd_answer *answer, void *user)
{
    struct log_call *call = user;
    struct etcd_log *log = call->log;
    struct leadership_read read;
    struct cadre_error error;
    if (!is_answered(call, answer)) {
        free_call(call);
        return;
    }
    cadre_status status = take_read(call, answer, &read, &error);
    if (status == CADRE_OK && log->entries.count == 0 && log->entries.piece_count > 0) {
        call->piece_count = log->entries.piece_count;
        log->users++; /* send_read() may free the call, which is reported afterwards */
        struct log_call again = *call;
        status = send_read(call, &error);
        if (status != CADRE_OK) {
            report_unanswered(&again, false, error.text);
        }
        log_unref(log);
        return;
    }
    if (status == CADRE_OK) {
        log->options.handlers->read(log->options.user, &read, log->entries.contents);
    } else {
        report_unanswered(call, false, error.text);
    }
    free_call(call);
}

static cadre_status send_read(struct log_call *call, struct cadre_error *error)
{
    struct read_request request;
    if (call->piece_count > 0) {
        read_build_pieces(&request, call->after.index, call->piece_count);
    } else {
        read_build(&request, call->after.index, call->entries_max);
    }
    return send_call(call, &request.etcd, on_read, error);
}

cadre_status etcd_log_read(struct etcd_log *log, uint64_t request,
    const struct leadership_position *after, uint32_t entries_max, struct cadre_error *error)
{
    struct log_call *call = new_call(log, request, error);
    if (call == NULL) {
        return error->code;
    }
    call->after = *after;
    call->entries_max = entries_max;
    return send_read(call, error);
}

/* ---- snapshots ---- */

/* The newest key that can be read: its number is its index. */
static cadre_status take_snapshot(const struct etcd_answer *answer, struct wire_arena *arena,
    struct replica_snapshot *ret_snapshot, struct cadre_error *error)
{
    const struct etcd_result *keys = answer->results;
    CADRE_ASSERT(answer->result_count == 1);
    for (size_t i = keys->pair_count; i-- > 0;) {
        const struct etcd_pair *pair = &keys->pairs[i];
        bool whole = value_unpack_snapshot(pair->value, arena, ret_snapshot) &&
                     strcmp(pair->key, key_snapshot(ret_snapshot->at.index).text) == 0;
        if (wire_arena_is_spent(arena) || fault_point("replication.memory")) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for etcd's keys of snapshots");
        }
        if (whole) {
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_NOT_FOUND, "etcd names no snapshot of the ledger");
}

static void on_snapshot(const struct etcd_answer *answer, void *user)
{
    struct log_call *call = user;
    struct etcd_log *log = call->log;
    const struct etcd_log_options *options = &log->options;
    struct replica_snapshot snapshot = {0};
    struct cadre_error error = {0};
    if (!log->closed && answer->status != CADRE_OK) {
        options->handlers->snapshot(options->user, answer->status, answer->text, &snapshot);
    } else if (!log->closed) {
        wire_arena_reset(log->arena);
        cadre_status status = take_snapshot(answer, log->arena, &snapshot, &error);
        options->handlers->snapshot(options->user, status, error.text, &snapshot);
    }
    free_call(call);
}

cadre_status etcd_log_read_snapshot(struct etcd_log *log, struct cadre_error *error)
{
    static const struct etcd_operation get = {
        .kind = ETCD_GET, .key = KEY_SNAPSHOTS, .end = KEY_SNAPSHOTS_END};
    const struct etcd_transaction read = {.then = &get, .then_count = 1};
    struct log_call *call = new_call(log, 0, error);
    return call == NULL ? error->code : send_call(call, &read, on_snapshot, error);
}

/* ---- transactions ---- */

/* What it wrote is what is there now. */
static void note_written(struct etcd_log *log, uint64_t revision)
{
    if (log->built.leader.size > 0) {
        log->seen = log->built.leader;
        log->seen.value.leader.mod_revision = revision;
    }
    if (log->transaction.cluster.format > log->format) {
        log->format = log->transaction.cluster.format;
    }
}

static bool take_answer(
    struct log_call *call, const struct etcd_answer *answer, struct leadership_answer *ret_answer)
{
    struct etcd_log *log = call->log;
    *ret_answer = (struct leadership_answer){.request = call->request,
        .applied = answer->succeeded,
        .hash = log->built.hash,
        .revision = (uint64_t)answer->revision};
    if (answer->succeeded) {
        note_written(log, ret_answer->revision);
        return true;
    }
    CADRE_ASSERT(answer->result_count == BUILD_GETS);
    if (!read_take_keys(answer->results, log->arena, &log->keys)) {
        return false;
    }
    note_keys(log);
    ret_answer->found = log->keys.has_leader && log->keys.has_head;
    ret_answer->leader = log->keys.leader.value.leader;
    ret_answer->head = log->keys.head;
    return true;
}

static void on_transaction(const struct etcd_answer *answer, void *user)
{
    struct log_call *call = user;
    struct etcd_log *log = call->log;
    struct leadership_answer taken;
    if (!is_answered(call, answer) || log->request != call->request) {
        free_call(call); /* of an older transaction: an attempt of it was answered before */
        return;
    }
    if (take_answer(call, answer, &taken)) {
        log->options.handlers->answered(log->options.user, &taken);
    } else {
        report_unanswered(call, false, "no memory for an answer of etcd");
    }
    free_call(call);
}

/* The value of `leader` whose struct is that of the guard. */
static const struct known_leader *find_guard(
    const struct etcd_log *log, const struct log_leader *guard)
{
    const struct known_leader *const known[] = {&log->own, &log->seen};
    for (size_t i = 0; i < CADRE_COUNT_OF(known); i++) {
        if (known[i]->size > 0 && log_leader_equal(&known[i]->value.leader, guard)) {
            return known[i];
        }
    }
    return NULL;
}

static cadre_status build_kept(struct etcd_log *log, struct cadre_error *error)
{
    const struct etcd_log_options *options = &log->options;
    const struct build_inputs inputs = {.name = options->name,
        .addresses = options->addresses,
        .version = options->version,
        .secret = options->secret,
        .tickets = options->tickets,
        .snapshot = options->snapshot,
        .cluster = {.data = log->cluster, .size = log->cluster_size},
        .format = log->format,
        .guard = find_guard(log, &log->transaction.guard_leader),
        .wall_us = clock_wall_us()};
    CADRE_TRY(build_transaction(&log->transaction, &inputs, &log->built, error));
    if (log->transaction.kind == LOG_TAKE_OVER) {
        log->own = log->built.leader;
    }
    log->is_built = true;
    return CADRE_OK;
}

cadre_status etcd_log_transact(struct etcd_log *log, uint64_t request,
    const struct log_transaction *transaction, struct cadre_error *error)
{
    if (request != log->request) {
        log->request = request;
        log->transaction = *transaction;
        log->is_built = false;
    }
    if (!log->is_built) {
        CADRE_TRY(build_kept(log, error));
    }
    struct log_call *call = new_call(log, request, error);
    return call == NULL ? error->code : send_call(call, &log->built.etcd, on_transaction, error);
}
