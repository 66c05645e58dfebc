/* SPDX-License-Identifier: Apache-2.0
 * Reads: entries in a chain of hashes, entries in pieces, and damage to each key. */
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "log_rig.h"

#define MIB ((size_t)1024 * 1024)

static bool is_damaged(const struct log_entry *entry)
{
    static const struct log_hash none;
    return log_hash_equal(&entry->computed, &none);
}

static struct leadership_position position_of(const struct log_rig *rig, uint32_t i)
{
    return (struct leadership_position){.index = rig->entries[i].index,
        .term = rig->entries[i].term,
        .hash = rig->entries[i].computed};
}

static void a_log_is_read_in_portions(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position at = rig_begin();
    rig_lead(rig);
    for (size_t i = 0; i < 9; i++) {
        rig_write(rig, 10 + i);
    }
    for (uint64_t seen = 0; seen < 10;) {
        rig_read(rig, &at, 3);
        assert_true(rig->read.entry_count > 0 && rig->read.entry_count <= 3);
        for (uint32_t i = 0; i < rig->read.entry_count; i++) {
            assert_int_equal(rig->entries[i].index, ++seen);
            assert_true(log_hash_equal(&rig->entries[i].hash, &rig->entries[i].computed));
        }
        at = position_of(rig, rig->read.entry_count - 1);
    }
    assert_true(log_hash_equal(&at.hash, &rig->read.head.hash));
    rig_read(rig, &at, 3);
    assert_int_equal(rig->read.entry_count, 0);
}

/* Entries 2 and 4 are whole, 3 is in pieces. */
static void write_three(struct log_rig *rig)
{
    rig_lead(rig);
    rig_write(rig, 10);
    rig_write(rig, 3 * MIB + 5);
    rig_write(rig, 11);
}

static void an_entry_in_pieces_is_joined(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position at = rig_begin();
    write_three(rig);
    rig_read(rig, &at, 10);
    assert_int_equal(rig->read.entry_count, 2); /* those before it */
    at = position_of(rig, 1);
    rig_read(rig, &at, 10);
    assert_int_equal(rig->read.entry_count, 1);
    assert_int_equal(rig->contents[0].content, ENTRY_RECORDS);
    assert_int_equal(rig->joined_size, 3 * MIB + 5);
    assert_memory_equal(rig->joined, tickets_at(&rig->tickets, 2)->bytes, rig->joined_size);
    assert_true(log_hash_equal(&rig->entries[0].hash, &rig->entries[0].computed));
    at = position_of(rig, 0);
    rig_read(rig, &at, 10);
    assert_int_equal(rig->read.entry_count, 1);
    assert_true(log_hash_equal(&rig->entries[0].computed, &rig->read.head.hash));
}

static void pieces_that_are_damaged(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position at = rig_begin();
    write_three(rig);
    rig_read(rig, &at, 2);
    at = position_of(rig, 1);
    struct log_key last = key_piece(3, 6);
    struct log_key first = key_piece(3, 0);
    const struct fake_pair *pair = fake_find(rig->etcd, last.text);
    assert_non_null(pair);
    assert_int_equal(pair->size, 5);
    fake_put(rig->etcd, last.text, "5678", 4);
    rig_read(rig, &at, 10);
    assert_true(rig->read.entry_count == 1 && is_damaged(rig->entries));
    fake_put(rig->etcd, last.text, "56789", 5);
    rig_read(rig, &at, 10);
    assert_true(!is_damaged(rig->entries));
    assert_false(log_hash_equal(&rig->entries[0].hash, &rig->entries[0].computed));
    fake_put(rig->etcd, last.text, NULL, 0);
    rig_read(rig, &at, 10);
    assert_true(rig->read.entry_count == 1 && is_damaged(rig->entries));
    fake_put(rig->etcd, first.text, "short", 5);
    rig_read(rig, &at, 10);
    assert_true(rig->read.entry_count == 1 && is_damaged(rig->entries));
}

static void an_entry_that_is_damaged_ends_the_list(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    for (size_t i = 0; i < 4; i++) {
        rig_write(rig, 10 + i);
    }
    struct log_key third = key_entry(3);
    struct log_key fourth = key_entry(4);
    const struct fake_pair *other = fake_find(rig->etcd, fourth.text);
    uint8_t copy[256];
    size_t size = other->size;
    assert_true(size < sizeof copy);
    memcpy(copy, other->value, size);
    fake_put(rig->etcd, third.text, copy, size); /* the value of another index */
    rig_read(rig, &begin, 10);
    assert_int_equal(rig->read.entry_count, 3);
    assert_true(!is_damaged(&rig->entries[1]) && is_damaged(&rig->entries[2]));
    assert_int_equal(rig->entries[2].index, 3);
    fake_put(rig->etcd, third.text, "\xff", 1);
    rig_read(rig, &begin, 10);
    assert_true(rig->read.entry_count == 3 && is_damaged(&rig->entries[2]));
    fake_put(rig->etcd, third.text, NULL, 0);
    rig_read(rig, &begin, 10);
    assert_true(rig->read.entry_count == 3 && rig->entries[2].index == 0);
    fake_put(rig->etcd, "log/0000000000000003x", "x", 1);
    rig_read(rig, &begin, 10);
    assert_true(rig->read.entry_count == 3 && rig->entries[2].index == 0);
}

static void bent_bytes_of_an_entry_have_another_hash(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_lead(rig);
    rig_write(rig, 100);
    struct log_key key = key_entry(2);
    const struct fake_pair *pair = fake_find(rig->etcd, key.text);
    pair->value[pair->size - 1] ^= 1; /* of the records */
    rig_read(rig, &begin, 10);
    assert_int_equal(rig->read.entry_count, 2);
    assert_false(is_damaged(&rig->entries[1]));
    assert_false(log_hash_equal(&rig->entries[1].hash, &rig->entries[1].computed));
}

static void keys_that_are_missing_or_damaged(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position begin = rig_begin();
    rig_read(rig, &begin, 10);
    assert_true(rig->was_read && !rig->read.has_cluster);
    rig_lead(rig);
    static uint8_t long_value[8192];
    const struct {
        const char *bytes;
        size_t size;
    } values[] = {{"\xff\xff", 2}, {NULL, 0}, {(const char *)long_value, sizeof long_value}};
    for (size_t i = 0; i < CADRE_COUNT_OF(values); i++) {
        fake_put(rig->etcd, "leader", values[i].bytes, values[i].size);
        rig_read(rig, &begin, 10);
        assert_true(rig->read.has_cluster && !rig->read.has_leader && rig->read.has_head);
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(values); i++) {
        fake_put(rig->etcd, "head", values[i].bytes, values[i].size);
        rig_read(rig, &begin, 10);
        assert_true(rig->read.has_cluster && !rig->read.has_head);
    }
    fake_put(rig->etcd, "cluster", values[0].bytes, values[0].size);
    rig_read(rig, &begin, 10);
    assert_true(rig->was_read && rig->read.has_cluster); /* never created a second time */
    fake_put(rig->etcd, "cluster", NULL, 0);
    rig_read(rig, &begin, 10);
    assert_true(rig->was_read && !rig->read.has_cluster);
}

static void a_read_at_the_end_of_all_numbers(void **state)
{
    struct log_rig *rig = *state;
    rig_lead(rig);
    const struct leadership_position end = {.index = UINT64_MAX, .term = 1};
    rig_read(rig, &end, LOG_READ_ENTRIES_MAX);
    assert_true(rig->was_read && rig->read.entry_count == 0);
}

static void memory_that_is_refused(void **state)
{
    struct log_rig *rig = *state;
    struct leadership_position at = rig_begin();
    write_three(rig);
    rig_read(rig, &at, 2);
    at = position_of(rig, 1);
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        struct cadre_error error;
        fault_arm("replication.memory", nth);
        rig->handled = 0;
        rig->was_read = false;
        cadre_status status = etcd_log_read(rig->log, ++rig->request, &at, 10, &error);
        if (status == CADRE_OK) {
            rig_wait(rig);
        }
        met = fault_disarm();
        assert_true(rig->was_read == !met); /* never an entry that looks damaged */
    }
    assert_false(is_damaged(rig->entries));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, log_rig_open, log_rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_log_is_read_in_portions),
        TEST(an_entry_in_pieces_is_joined),
        TEST(pieces_that_are_damaged),
        TEST(an_entry_that_is_damaged_ends_the_list),
        TEST(bent_bytes_of_an_entry_have_another_hash),
        TEST(keys_that_are_missing_or_damaged),
        TEST(a_read_at_the_end_of_all_numbers),
        TEST(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
