/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of replicas: when a leader makes one, what is trimmed, who installs it (HA19). */
#include <stdio.h>
#include <string.h>

#include "replica_rig.h"

#define SNAPSHOT_BYTES 3000 /* some eleven entries */

static bool is_trimmed(void *user)
{
    const struct rig *rig = user;
    return fake_find(rig->etcd, "log/0000000000000028") == NULL; /* the 40th */
}

static bool has_stored(void *user)
{
    const struct owner *owner = user;
    return owner->stored > 0;
}

static bool found_no_snapshot(void *user)
{
    const struct owner *owner = user;
    struct replica_view view;
    replica_show(owner->replica, &view);
    return view.failures > 0; /* the answer after that one clears the text */
}

/* c0 leads, and appends until the first 40 of 80 entries are trimmed; c1 follows from the first or
 * does not run. */
static void lead_and_trim(struct rig *rig, bool followed)
{
    struct owner *first = &rig->owners[0];
    first->snapshot_bytes = SNAPSHOT_BYTES;
    owner_start(rig, 0);
    run_until(first, leads);
    if (followed) {
        owner_start(rig, 1);
        fake_run_until(rig->loop, all_have_the_same, rig);
    }
    first->appends_left = 79;
    append_more(first);
    run_until(first, is_done);
    fake_run_until(rig->loop, is_trimmed, rig);
    assert_true(first->made >= 4 && first->made < 20);
}

static void who_was_down_comes_back_by_the_snapshot(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    struct owner *second = &rig->owners[1];
    owner_start(rig, 1);
    run_until(second, leads);
    second->appends_left = 5;
    append_more(second);
    replica_leave(second->replica);
    run_until(second, has_ended);
    owner_stop(second);
    lead_and_trim(rig, false);
    assert_int_equal(second->entry_count, 6);
    owner_start(rig, 1);
    owner_start(rig, 2); /* without any copy */
    first->appends_left = 3;
    append_more(first);
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    assert_int_equal(rig->owners[2].entry_count, 6 + 1 + 79 + 3);
    assert_string_equal(rig->owners[2].texts[1], "c1-1");
}

static void what_is_young_is_not_trimmed(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    first->keep_us = 3600 * CADRE_US_PER_S;
    first->snapshot_bytes = SNAPSHOT_BYTES;
    first->appends_left = 40;
    owner_start(rig, 0);
    run_until(first, is_done);
    run_until(first, has_stored);
    assert_non_null(fake_find(rig->etcd, "log/0000000000000001"));
    size_t keys = 0;
    for (size_t i = 0; i < rig->etcd->pair_count; i++) {
        keys += strncmp(rig->etcd->pairs[i].key, "snap/", 5) == 0;
    }
    assert_int_equal(keys, 1); /* the newest one only */
}

/* It has counted as many bytes as are due, and finds that the leader before it made one. */
static void the_next_leader_knows_of_the_snapshot(void **state)
{
    struct rig *rig = *state;
    struct owner *second = &rig->owners[1];
    second->snapshot_bytes = 20 * SNAPSHOT_BYTES / 3; /* all 80 entries are more than that */
    lead_and_trim(rig, true);
    fake_run_until(rig->loop, all_have_the_same, rig);
    replica_leave(rig->owners[0].replica);
    run_until(second, leads);
    second->appends_left = 10;
    append_more(second);
    run_until(second, is_done);
    assert_int_equal(second->made, 0);
    second->appends_left = 80;
    append_more(second);
    run_until(second, is_done);
    run_until(second, has_stored);
    assert_true(second->made > 0);
    assert_int_equal(second->stored_before, rig->owners[0].stored);
}

/* It may lead by then, with an entry more: the head stood still for longer than its lease. */
static bool second_has_all(void *user)
{
    const struct rig *rig = user;
    return rig->owners[1].entry_count >= rig->owners[0].entry_count;
}

static void a_snapshot_that_cannot_be_had_is_asked_for_again(void **state)
{
    struct rig *rig = *state;
    struct owner *second = &rig->owners[1];
    lead_and_trim(rig, false);
    second->lease_us = SHORT_LEASE_US;
    struct replica_snapshot snapshot = rig->file.snapshot;
    char key[ETCD_KEY_BYTES];
    snprintf(key, sizeof key, "snap/%016x", (unsigned)snapshot.at.index);
    const struct fake_pair *pair = fake_find(rig->etcd, key);
    assert_non_null(pair);
    uint8_t value[256];
    size_t size = pair->size;
    assert_true(size <= sizeof value);
    memcpy(value, pair->value, size);
    fake_put(rig->etcd, key, NULL, 0);
    owner_start(rig, 1);
    run_until(second, found_no_snapshot);
    assert_int_equal(second->entry_count, 0);
    fake_put(rig->etcd, key, value, size);
    fake_run_until(rig->loop, second_has_all, rig);
    check_same(rig);
}

static void a_snapshot_that_cannot_be_made_is_tried_again(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    first->lease_us = 60 * CADRE_US_PER_MS;
    first->snapshot_bytes = SNAPSHOT_BYTES;
    first->appends_left = 15;
    first->fails_to_make = 1;
    owner_start(rig, 0);
    run_until(first, has_stored);
    assert_int_equal(first->made, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_was_down_comes_back_by_the_snapshot),
        TEST(what_is_young_is_not_trimmed),
        TEST(the_next_leader_knows_of_the_snapshot),
        TEST(a_snapshot_that_cannot_be_had_is_asked_for_again),
        TEST(a_snapshot_that_cannot_be_made_is_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
