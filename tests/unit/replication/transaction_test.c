/* SPDX-License-Identifier: Apache-2.0
 * Each kind of transaction: what it writes, that nothing is written when its guard does not hold,
 * and that each attempt is the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/wire/wire.h"
#include "log_rig.h"

static void assert_key(const struct log_rig *rig, struct log_key key, bool there)
{
    assert_true((fake_find(rig->etcd, key.text) != NULL) == there);
}

static void a_cluster_is_created_once(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    struct log_transaction create = rig_create();
    rig_apply(rig, &create);
    rig_read(rig, &begin, 10);
    assert_true(rig->read.has_cluster && rig->read.has_leader && rig->read.has_head);
    assert_true(log_nonce_equal(rig->read.cluster.id, create.cluster.id));
    assert_true(log_hash_equal(&rig->read.cluster_hash, &begin.hash));
    assert_int_equal(rig->read.etcd_id, FAKE_CLUSTER_ID);
    assert_true(rig->read.leader.left);
    assert_int_equal(rig->read.head.first, 1);
    assert_int_equal(rig->read.entry_count, 0);
    assert_memory_equal(etcd_log_secret(rig->log), rig_secret, REPLICA_SECRET_BYTES);
    rig_transact(rig, &create);
    assert_true(rig->was_answered && !rig->answer.applied && rig->answer.found);
}

static void a_leader_takes_over_and_appends(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    assert_string_equal(etcd_log_leader(rig->log)->name, "anna");
    assert_string_equal(etcd_log_leader(rig->log)->addresses, "10.0.0.1:7000");
    assert_int_equal(etcd_log_leader(rig->log)->leader.term, 1);
    rig_ticket(rig, 100);
    rig_ticket(rig, 0);
    rig_ticket(rig, LOG_PIECE_BYTES);
    struct log_transaction append = rig_append(rig, 1);
    rig_apply(rig, &append);
    assert_int_equal(rig->head.index, 3);
    assert_int_equal(etcd_log_entry(rig->log, 3)->bytes.size, LOG_PIECE_BYTES);
    rig_read(rig, &begin, 10);
    assert_int_equal(rig->read.entry_count, 3);
    assert_int_equal(rig->contents[0].content, ENTRY_LEADER);
    assert_int_equal(rig->contents[1].bytes.size, 100);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(rig->entries[i].index, i + 1);
        assert_int_equal(rig->entries[i].term, 1);
        assert_int_equal(rig->entries[i].format, 1);
        assert_true(log_hash_equal(&rig->entries[i].hash, &rig->entries[i].computed));
    }
    assert_true(log_hash_equal(&rig->entries[2].hash, &rig->read.head.hash));
}

static void the_longest_append_fits(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    size_t size = LOG_APPEND_BYTES_MAX / LOG_APPEND_ENTRIES_MAX - LOG_ENTRY_EXTRA_BYTES;
    for (size_t i = 0; i < LOG_APPEND_ENTRIES_MAX; i++) {
        rig_ticket(rig, size);
    }
    struct log_transaction append = rig_append(rig, 1);
    append.cluster.format = 2;
    rig_apply(rig, &append);
    rig_read(rig, &begin, LOG_READ_ENTRIES_MAX);
    assert_memory_equal(etcd_log_secret(rig->log), rig_secret, REPLICA_SECRET_BYTES);
    assert_int_equal(rig->read.entry_count, LOG_READ_ENTRIES_MAX);
    assert_int_equal(rig->read.cluster.format, 2);
    assert_int_equal(rig->entries[1].format, 2);
}

static void what_follows_a_raised_format_has_it(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    assert_int_equal(etcd_log_format(rig->log), 1);
    rig_ticket(rig, 10);
    struct log_transaction append = rig_append(rig, 1);
    append.cluster.format = 2;
    rig_apply(rig, &append);
    assert_int_equal(etcd_log_format(rig->log), 2);
    rig_write(rig, 10);
    rig_read(rig, &begin, 10);
    assert_int_equal(rig->read.entry_count, 3);
    assert_int_equal(rig->entries[0].format, 1);
    assert_int_equal(rig->entries[1].format, 2);
    assert_int_equal(rig->entries[2].format, 2);
}

static void beats_snapshots_and_trims(void **state)
{
    struct log_rig *rig = *state;
    rig_lead(rig);
    for (size_t i = 0; i < 4; i++) {
        rig_write(rig, i == 1 ? LOG_PIECE_BYTES + 1 : 10);
    }
    struct log_transaction beat = rig_guarded(rig, LOG_BEAT);
    uint64_t beats = rig->head.beat;
    rig_apply(rig, &beat);
    struct leadership_position begin = rig_begin();
    rig_read(rig, &begin, 0);
    assert_int_equal(rig->read.head.beat, beats + 1);
    rig_find_snapshot(rig);
    assert_int_equal(rig->found, CADRE_NOT_FOUND);
    for (uint64_t index = 2; index <= 4; index += 2) {
        struct log_transaction snapshot = rig_snapshot(rig, index);
        rig_apply(rig, &snapshot);
        assert_key(rig, key_snapshot(index), true);
        assert_key(rig, key_snapshot(index - 2), false);
    }
    rig_find_snapshot(rig);
    assert_int_equal(rig->found, CADRE_OK);
    assert_int_equal(rig->snapshot.at.index, 4);
    assert_int_equal(rig->snapshot.at.hash.bytes[0], 4);
    assert_int_equal(rig->snapshot.sha256[1], 4);
    assert_int_equal(rig->snapshot.size, 4 * 4096);
    struct log_transaction trim = rig_guarded(rig, LOG_TRIM);
    trim.snapshot_index = 4;
    trim.trim_from = 1;
    trim.trim_to = 3;
    trim.head.first = 4;
    rig_apply(rig, &trim);
    for (uint64_t index = 1; index <= 5; index++) {
        assert_key(rig, key_entry(index), index > 3);
    }
    assert_key(rig, key_piece(3, 0), false);
    assert_key(rig, key_piece(3, 1), false);
    assert_key(rig, key_snapshot(4), true);
}

static void keys_of_snapshots_that_are_damaged(void **state)
{
    struct log_rig *rig = *state;
    rig_lead(rig);
    struct log_transaction snapshot = rig_snapshot(rig, 1);
    rig_apply(rig, &snapshot);
    fake_put(rig->etcd, key_snapshot(7).text, "\xff", 1);
    struct log_key key = key_snapshot(1);
    const struct fake_pair *pair = fake_find(rig->etcd, key.text);
    assert_non_null(pair);
    fake_put(rig->etcd, key_snapshot(8).text, pair->value, pair->size); /* of another number */
    rig_find_snapshot(rig);
    assert_int_equal(rig->found, CADRE_OK);
    assert_int_equal(rig->snapshot.at.index, 1);
    fake_put(rig->etcd, key.text, NULL, 0);
    rig_find_snapshot(rig);
    assert_int_equal(rig->found, CADRE_NOT_FOUND);
    rig->etcd->next = FAKE_LOST_ANSWER;
    rig_find_snapshot(rig);
    assert_int_equal(rig->found, CADRE_DEADLINE_EXCEEDED);
    struct cadre_error error;
    rig->etcd->next = FAKE_REFUSED;
    assert_int_equal(etcd_log_read_snapshot(rig->log, &error), CADRE_RESOURCE_EXHAUSTED);
}

static void a_leader_leaves_under_its_name(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    struct log_transaction leave = rig_guarded(rig, LOG_LEAVE);
    rig_apply(rig, &leave);
    rig_read(rig, &begin, 0);
    assert_true(rig->read.leader.left);
    assert_true(log_nonce_equal(rig->read.leader.nonce, rig->leader.nonce));
    assert_string_equal(etcd_log_leader(rig->log)->name, "anna");
}

/* ---- guards ---- */

static struct log_transaction of_kind(struct log_rig *rig, enum log_transaction_kind kind)
{
    struct log_transaction transaction = rig_guarded(rig, kind);
    switch (kind) {
    case LOG_TAKE_OVER:
        return rig_take_over(rig);
    case LOG_APPEND:
        return rig_append(rig, 1);
    case LOG_PIECES:
        transaction.first_ticket = transaction.last_ticket = 2;
        transaction.first_index = rig->head.index + 1;
        transaction.piece_end = transaction.piece_count = 2;
        return transaction;
    case LOG_SNAPSHOT:
        return rig_snapshot(rig, 1);
    case LOG_TRIM:
        transaction.trim_from = transaction.trim_to = 1;
        transaction.head.first = 2;
        return transaction;
    default:
        return transaction;
    }
}

/* Whether the guard of this kind holds after `key` was touched or replaced. */
static void assert_guarded(
    void **state, enum log_transaction_kind kind, const char *key, bool replaced)
{
    struct log_rig *rig = NULL;
    assert_int_equal(log_rig_open(state), 0);
    rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    rig_ticket(rig, 10);
    rig_ticket(rig, LOG_PIECE_BYTES + 1);
    rig_read(rig, &begin, 0);
    struct log_transaction transaction = of_kind(rig, kind);
    if (replaced) {
        struct wire_arena *arena = wire_arena_new(1 << 20);
        struct leader_value other = {.leader = rig->leader};
        other.leader.nonce.low ^= 1;
        struct etcd_bytes value = value_pack_leader(&other, arena);
        fake_put(rig->etcd, key, value.data, value.size);
        wire_arena_free(arena);
    } else {
        fake_touch(rig->etcd, key);
    }
    uint64_t digest = fake_digest(rig->etcd);
    rig_transact(rig, &transaction);
    assert_true(rig->was_answered);
    bool is_leader_touched = strcmp(key, "leader") == 0 && !replaced;
    bool holds = is_leader_touched && kind != LOG_TAKE_OVER;
    assert_true(rig->answer.applied == holds);
    assert_true((fake_digest(rig->etcd) == digest) == !holds);
    if (!holds) {
        assert_true(rig->answer.found);
        assert_int_equal(rig->answer.head.index, rig->head.index);
        assert_int_equal(rig->answer.leader.term, 1);
        assert_true(rig->answer.head.mod_revision > 0 && rig->answer.leader.mod_revision > 0);
    }
    log_rig_close(state);
}

static void a_guard_that_is_broken_writes_nothing(void **state)
{
    static const enum log_transaction_kind kinds[] = {
        LOG_TAKE_OVER, LOG_APPEND, LOG_BEAT, LOG_TRIM, LOG_LEAVE, LOG_PIECES, LOG_SNAPSHOT};
    for (size_t i = 0; i < CADRE_COUNT_OF(kinds); i++) {
        assert_guarded(state, kinds[i], "head", false);
        assert_guarded(state, kinds[i], "leader", false);
        assert_guarded(state, kinds[i], "leader", true);
    }
}

static void other_branch_with_damaged_keys(void **state)
{
    struct log_rig *rig = *state;
    static const char *const keys[] = {"leader", "head"};
    for (size_t i = 0; i < CADRE_COUNT_OF(keys); i++) {
        if (i == 0) {
            rig_lead(rig);
        }
        struct log_transaction beat = rig_guarded(rig, LOG_BEAT);
        beat.guard_head_revision++;
        fake_put(rig->etcd, keys[i], "\xff\xff\xff", 3);
        rig_transact(rig, &beat);
        assert_true(rig->was_answered && !rig->answer.applied && !rig->answer.found);
        fake_put(rig->etcd, keys[i], NULL, 0);
        rig_transact(rig, &beat);
        assert_true(rig->was_answered && !rig->answer.applied && !rig->answer.found);
    }
}

/* ---- attempts ---- */

static void each_attempt_is_the_same_bytes(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    struct log_transaction create = rig_create();
    rig_apply(rig, &create);
    rig_read(rig, &begin, 0);
    struct log_transaction take_over = rig_take_over(rig);
    rig->etcd->next = FAKE_LOST_ANSWER;
    rig_transact(rig, &take_over);
    assert_false(rig->was_answered);
    uint64_t digest = rig->etcd->sent_digest;
    rig_again(rig, &take_over);
    assert_int_equal(rig->etcd->sent_digest, digest);
    assert_true(rig->was_answered && !rig->answer.applied && rig->answer.found);
    assert_true(log_leader_equal(&rig->answer.leader, &take_over.leader));
    assert_true(log_head_equal(&rig->answer.head, &take_over.head));
    /* It leads, and finds the value of its own key. */
    rig->leader = take_over.leader;
    rig->head = rig->answer.head;
    struct log_transaction term = rig_term(rig);
    rig->etcd->next = FAKE_LOST_REQUEST;
    rig_transact(rig, &term);
    digest = rig->etcd->sent_digest;
    rig_again(rig, &term);
    assert_int_equal(rig->etcd->sent_digest, digest);
    assert_true(rig->answer.applied);
}

static void what_etcd_does_not_do_is_unanswered(void **state)
{
    struct log_rig *rig = *state;
    rig_lead(rig);
    struct log_transaction beat = rig_guarded(rig, LOG_BEAT);
    rig->etcd->next = FAKE_NO_SPACE;
    rig_transact(rig, &beat);
    assert_true(!rig->was_answered && rig->no_space);
    struct cadre_error error;
    rig->etcd->next = FAKE_REFUSED;
    assert_int_equal(
        etcd_log_transact(rig->log, rig->request, &beat, &error), CADRE_RESOURCE_EXHAUSTED);
    rig_again(rig, &beat);
    assert_true(rig->answer.applied);
}

/* Memory that is refused once: the attempt is not sent, or not answered, and the next one is. */
static void memory_that_is_refused(void **state)
{
    struct log_rig *rig = *state;
    rig_lead(rig);
    for (uint64_t nth = 1;; nth++) {
        rig_ticket(rig, 10);
        struct log_transaction append = rig_append(rig, rig->tickets.end - 1);
        struct cadre_error error;
        fault_arm("replication.memory", nth);
        rig->handled = 0;
        rig->was_answered = false;
        cadre_status status = etcd_log_transact(rig->log, ++rig->request, &append, &error);
        if (status == CADRE_OK) {
            rig_wait(rig);
        }
        bool met = fault_disarm();
        if (!rig->was_answered) {
            rig_again(rig, &append);
        }
        assert_true(rig->answer.applied);
        rig->head = append.head;
        rig->head.hash = rig->answer.hash;
        rig->head.mod_revision = rig->answer.revision;
        if (!met) {
            break;
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, log_rig_open, log_rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cluster_is_created_once),
        TEST(a_leader_takes_over_and_appends),
        TEST(the_longest_append_fits),
        TEST(what_follows_a_raised_format_has_it),
        TEST(beats_snapshots_and_trims),
        TEST(keys_of_snapshots_that_are_damaged),
        TEST(a_leader_leaves_under_its_name),
        cmocka_unit_test(a_guard_that_is_broken_writes_nothing),
        TEST(other_branch_with_damaged_keys),
        TEST(each_attempt_is_the_same_bytes),
        TEST(what_etcd_does_not_do_is_unanswered),
        TEST(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
