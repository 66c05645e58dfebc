/* SPDX-License-Identifier: Apache-2.0 */
#include "log_rig.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/replication/hashes.h"

static const struct log_nonce cluster_id = {.high = 0xc1, .low = 0xc2};

const uint8_t rig_secret[REPLICA_SECRET_BYTES] = {1, 2, 3};

static void on_read(
    void *user, const struct leadership_read *read, const struct entry_value *contents)
{
    struct log_rig *rig = user;
    rig->handled++;
    rig->was_read = true;
    rig->read = *read;
    free(rig->joined);
    rig->joined = NULL;
    rig->joined_size = 0;
    for (uint32_t i = 0; i < read->entry_count; i++) {
        rig->entries[i] = read->entries[i];
        rig->contents[i] = contents[i];
        size_t size = contents[i].bytes.size;
        rig->joined = realloc(rig->joined, rig->joined_size + size + 1);
        assert_non_null(rig->joined);
        if (size > 0) {
            memcpy(rig->joined + rig->joined_size, contents[i].bytes.data, size);
        }
        rig->joined_size += size;
    }
}

static void on_answered(void *user, const struct leadership_answer *answer)
{
    struct log_rig *rig = user;
    rig->handled++;
    rig->was_answered = true;
    rig->answer = *answer;
}

static void on_unanswered(void *user, uint64_t request, bool no_space, const char *text)
{
    struct log_rig *rig = user;
    assert_int_equal(request, rig->request);
    assert_true(text[0] != '\0');
    rig->handled++;
    rig->no_space = no_space;
}

static void on_snapshot(
    void *user, cadre_status status, const char *text, const struct replica_snapshot *snapshot)
{
    struct log_rig *rig = user;
    assert_true((status == CADRE_OK) == (text[0] == '\0'));
    rig->handled++;
    rig->found = status;
    rig->snapshot = *snapshot;
}

int log_rig_open(void **state)
{
    static const struct etcd_log_handlers handlers = {.read = on_read,
        .answered = on_answered,
        .unanswered = on_unanswered,
        .snapshot = on_snapshot};
    struct log_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    struct cadre_error error;
    assert_ok(rpc_loop_open(&rig->loop, &error), &error);
    rig->etcd = fake_open(rig->loop);
    assert_ok(tickets_open(&rig->tickets, RIG_TICKETS, &error), &error);
    const struct etcd_log_options options = {.etcd = rig->etcd,
        .name = "anna",
        .addresses = "10.0.0.1:7000",
        .version = "1.2",
        .secret = rig_secret,
        .attempt_us = CADRE_US_PER_S,
        .tickets = &rig->tickets,
        .snapshot = &rig->snapshot,
        .handlers = &handlers,
        .user = rig};
    assert_ok(etcd_log_open(&options, &rig->log, &error), &error);
    *state = rig;
    return 0;
}

int log_rig_close(void **state)
{
    struct log_rig *rig = *state;
    etcd_log_close(rig->log);
    tickets_close(&rig->tickets);
    rpc_loop_close(rig->loop);
    fake_close(rig->etcd);
    free(rig->joined);
    free(rig);
    return 0;
}

static bool has_handled(void *user)
{
    const struct log_rig *rig = user;
    return rig->handled > 0;
}

void rig_wait(struct log_rig *rig)
{
    fake_run_until(rig->loop, has_handled, rig);
}

static void begin_request(struct log_rig *rig)
{
    rig->handled = 0;
    rig->was_read = rig->was_answered = rig->no_space = false;
}

void rig_read(struct log_rig *rig, const struct leadership_position *after, uint32_t entries_max)
{
    struct cadre_error error;
    begin_request(rig);
    assert_ok(etcd_log_read(rig->log, ++rig->request, after, entries_max, &error), &error);
    rig_wait(rig);
}

void rig_find_snapshot(struct log_rig *rig)
{
    struct cadre_error error;
    begin_request(rig);
    assert_ok(etcd_log_read_snapshot(rig->log, &error), &error);
    rig_wait(rig);
}

void rig_again(struct log_rig *rig, const struct log_transaction *transaction)
{
    struct cadre_error error;
    begin_request(rig);
    assert_ok(etcd_log_transact(rig->log, rig->request, transaction, &error), &error);
    rig_wait(rig);
}

void rig_transact(struct log_rig *rig, const struct log_transaction *transaction)
{
    rig->request++;
    rig_again(rig, transaction);
}

struct leadership_position rig_begin(void)
{
    struct leadership_position begin = {0};
    assert_int_equal(hash_cluster(cluster_id, &begin.hash, NULL), CADRE_OK);
    return begin;
}

struct log_transaction rig_create(void)
{
    return (struct log_transaction){.kind = LOG_CREATE,
        .cluster = {.id = cluster_id, .etcd_id = FAKE_CLUSTER_ID, .format = 1},
        .leader = {.left = true},
        .head = {.hash = rig_begin().hash, .first = 1}};
}

struct log_transaction rig_take_over(const struct log_rig *rig)
{
    struct log_transaction transaction = {.kind = LOG_TAKE_OVER,
        .guard_leader = rig->read.leader,
        .guard_head_revision = rig->read.head.mod_revision,
        .leader = {.term = rig->read.head.term + 1, .nonce = {.high = 5, .low = rig->request}},
        .head = rig->read.head};
    transaction.head.term = transaction.leader.term;
    transaction.head.nonce = transaction.leader.nonce;
    transaction.head.beat = 0;
    return transaction;
}

struct log_transaction rig_guarded(const struct log_rig *rig, enum log_transaction_kind kind)
{
    struct log_transaction transaction = {.kind = kind,
        .guard_leader = rig->leader,
        .guard_head_revision = rig->head.mod_revision,
        .head = rig->head,
        .first_ticket = 1};
    transaction.head.beat++;
    if (kind == LOG_LEAVE) {
        transaction.leader = rig->leader;
        transaction.leader.left = true;
    }
    return transaction;
}

struct log_transaction rig_snapshot(struct log_rig *rig, uint64_t index)
{
    struct log_transaction transaction = rig_guarded(rig, LOG_SNAPSHOT);
    rig->snapshot =
        (struct replica_snapshot){.at = {.index = index, .term = 1, .hash = {{(uint8_t)index}}},
            .sha256 = {9, (uint8_t)index},
            .size = 4096 * index};
    transaction.snapshot_index = index;
    transaction.snapshot_hash = rig->snapshot.at.hash;
    return transaction;
}

struct log_transaction rig_term(const struct log_rig *rig)
{
    struct log_transaction transaction = rig_guarded(rig, LOG_APPEND);
    transaction.term_entry = true;
    transaction.first_index = ++transaction.head.index;
    return transaction;
}

struct log_transaction rig_append(const struct log_rig *rig, uint64_t first)
{
    struct log_transaction transaction = rig_guarded(rig, LOG_APPEND);
    transaction.first_ticket = first;
    transaction.last_ticket = rig->tickets.end - 1;
    transaction.first_index = transaction.head.index + 1;
    for (uint64_t n = first; n < rig->tickets.end; n++) {
        transaction.head.index += tickets_at(&rig->tickets, n)->kind != LEADERSHIP_CONFIRM;
    }
    return transaction;
}

void rig_apply(struct log_rig *rig, const struct log_transaction *transaction)
{
    rig_transact(rig, transaction);
    assert_true(rig->was_answered && rig->answer.applied);
    if (transaction->kind == LOG_TAKE_OVER) {
        rig->leader = transaction->leader;
    }
    rig->head = transaction->head;
    rig->head.mod_revision = rig->answer.revision;
    if (transaction->kind == LOG_APPEND) {
        rig->head.hash = rig->answer.hash;
    }
}

void rig_lead(struct log_rig *rig)
{
    struct leadership_position begin = rig_begin();
    struct log_transaction transaction = rig_create();
    rig_apply(rig, &transaction);
    rig_read(rig, &begin, 0);
    transaction = rig_take_over(rig);
    rig_apply(rig, &transaction);
    transaction = rig_term(rig);
    rig_apply(rig, &transaction);
}

uint64_t rig_ticket(struct log_rig *rig, size_t size)
{
    uint64_t n = 0;
    uint8_t *bytes = malloc(size + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(rig->tickets.end + i / 1000);
    }
    struct cadre_error error;
    const struct kept_ticket ticket = {
        .kind = size > 0 ? LEADERSHIP_SYNC : LEADERSHIP_CONFIRM, .size = size, .bytes = bytes};
    assert_ok(tickets_keep(&rig->tickets, &ticket, &n, &error), &error);
    free(bytes);
    return n;
}

void rig_write(struct log_rig *rig, size_t size)
{
    uint64_t n = rig_ticket(rig, size);
    uint32_t count = (uint32_t)((size + LOG_PIECE_BYTES - 1) / LOG_PIECE_BYTES);
    for (uint32_t piece = 0; count > 1 && piece < count; piece += LOG_PIECES_PER_WRITE) {
        struct log_transaction pieces = rig_guarded(rig, LOG_PIECES);
        uint32_t end = piece + LOG_PIECES_PER_WRITE;
        pieces.first_ticket = pieces.last_ticket = n;
        pieces.first_index = rig->head.index + 1;
        pieces.piece = piece;
        pieces.piece_end = end < count ? end : count;
        pieces.piece_count = count;
        rig_apply(rig, &pieces);
    }
    struct log_transaction transaction = rig_append(rig, n);
    rig_apply(rig, &transaction);
}
