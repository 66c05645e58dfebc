/* SPDX-License-Identifier: Apache-2.0
 * Replicas on one loop and one fake etcd: they elect a leader, apply the same entries in the same
 * order, and lose none that was reported as logged, whichever call of etcd fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "replica_rig.h"

static void one_leads_and_the_others_follow(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    first->appends_left = 30;
    owner_start(rig, 0);
    run_until(first, is_done);
    assert_int_equal(first->entry_count, 31);
    assert_string_equal(first->texts[30], "c0-30");
    owner_start(rig, 1);
    owner_start(rig, 2);
    first->appends_left = 10;
    append_more(first);
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    for (size_t i = 0; i < REPLICAS; i++) { /* that of who created the cluster */
        assert_int_equal(rig->owners[i].known.secret[REPLICA_SECRET_BYTES - 1], '0');
    }
    assert_string_equal(rig->owners[1].leader.name, "c0");
    assert_string_equal(rig->owners[2].leader.addresses, "10.0.0.1:7000");
    assert_true(replica_may_send_until_us(first->replica) > 0);
    assert_int_equal(replica_may_send_until_us(rig->owners[1].replica), 0);
    struct replica_view view;
    replica_show(first->replica, &view);
    assert_int_equal(view.applied, first->entry_count);
    assert_int_equal(view.core.head.index, first->entry_count);
    replica_show(rig->owners[1].replica, &view);
    assert_int_equal(view.applied, first->entry_count);
    assert_int_equal(view.core.state, LEADERSHIP_FOLLOWER);
    assert_string_equal(view.leader->name, "c0");
}

/* Who leaves has its tickets logged; the other does not wait for the lease. */
static void a_leader_that_leaves(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    struct owner *second = &rig->owners[1];
    owner_start(rig, 0);
    run_until(first, leads);
    owner_start(rig, 1);
    first->appends_left = 5;
    append_more(first);
    replica_leave(first->replica);
    run_until(first, has_ended);
    assert_int_equal(first->logged, 5);
    assert_string_equal(first->text, "it has left");
    uint64_t ticket = 0;
    assert_int_equal(replica_append(first->replica, "x", 1, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_FAILED_PRECONDITION);
    run_until(second, leads);
    assert_int_equal(second->entry_count, first->entry_count + 1);
    assert_int_equal(second->entries[second->entry_count - 1].at.term, 2);
    assert_string_equal(second->leader.name, "c1");
}

static void a_long_entry_reaches_the_others(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    size_t size = 3 * 1024 * 1024;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'b', size);
    owner_start(rig, 0);
    owner_start(rig, 1);
    run_until(first, leads);
    uint64_t ticket = 0;
    struct cadre_error error;
    assert_ok(
        replica_append(first->replica, bytes, size, LEADERSHIP_SYNC, &ticket, &error), &error);
    first->appended++;
    free(bytes);
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    assert_int_equal(rig->owners[1].entries[rig->owners[1].entry_count - 1].size, size);
}

static void what_is_no_entry(void **state)
{
    struct rig *rig = *state;
    struct owner *owner = &rig->owners[0];
    uint64_t ticket = 0;
    owner_start(rig, 0);
    assert_int_equal(replica_append(owner->replica, "x", 1, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_FAILED_PRECONDITION);
    run_until(owner, leads);
    assert_int_equal(replica_append(owner->replica, "", 0, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(replica_append(owner->replica, "x", 1, LEADERSHIP_CONFIRM, &ticket, NULL),
        CADRE_INVALID_ARGUMENT);
    for (unsigned i = 0; i < 8; i++) { /* tickets_max */
        assert_int_equal(
            replica_append(owner->replica, NULL, 0, LEADERSHIP_CONFIRM, &ticket, NULL), CADRE_OK);
        owner->appended++;
    }
    assert_int_equal(replica_append(owner->replica, "x", 1, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_RESOURCE_EXHAUSTED);
    run_until(owner, is_done);
    assert_int_equal(owner->entry_count, 1); /* confirmations have no entry */
}

static void an_etcd_that_was_put_back_is_refused(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    first->appends_left = 3;
    owner_start(rig, 0);
    run_until(first, is_done);
    owner_stop(first);
    fake_put(rig->etcd, "head", NULL, 0);
    fake_put(rig->etcd, "leader", NULL, 0);
    fake_put(rig->etcd, "cluster", NULL, 0);
    owner_start(rig, 0);
    run_until(first, has_ended);
    assert_true(first->refused);
    assert_non_null(strstr(first->text, "etcd holds no ledger beneath the prefix"));
}

/* As a version wrote it that kept no secret there. */
static void a_cluster_without_its_secret_is_refused(void **state)
{
    struct rig *rig = *state;
    owner_start(rig, 0);
    run_until(&rig->owners[0], leads);
    const struct fake_pair *cluster = fake_find(rig->etcd, "cluster");
    assert_non_null(cluster);
    fake_put(rig->etcd, "cluster", cluster->value, cluster->size - REPLICA_SECRET_BYTES - 2);
    owner_start(rig, 1);
    run_until(&rig->owners[1], has_ended);
    assert_true(rig->owners[1].refused);
    assert_non_null(strstr(rig->owners[1].text, "etcd's key cluster is damaged"));
    assert_false(rig->owners[1].knows);
}

static void a_copy_that_cannot_be_written(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    owner_start(rig, 0);
    run_until(first, leads);
    first->apply_fails = true;
    first->appends_left = 1;
    append_more(first);
    run_until(first, has_ended);
    assert_string_equal(first->text, "the disk is broken");
    assert_int_equal(first->logged, 0);
    assert_int_equal(replica_may_send_until_us(first->replica), 0);
}

static bool has_no_room(void *user)
{
    const struct owner *owner = user;
    return owner->no_room > 0;
}

/* It leaves, so that another one need not wait for the lease. */
static void a_leader_without_room(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    owner_start(rig, 0);
    run_until(first, leads);
    first->room = first->entry_count + 1;
    first->appends_left = 3;
    append_more(first);
    run_until(first, has_ended);
    assert_true(first->left_for_room);
    assert_string_equal(first->text, "it has left");
    assert_int_equal(first->no_room, 1);
    owner_start(rig, 1);
    run_until(&rig->owners[1], leads);
    assert_true(rig->owners[1].entry_count > first->entry_count);
}

/* It does not lead, although no other one does, and goes on when there is room. */
static void a_follower_without_room(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    struct owner *second = &rig->owners[1];
    first->appends_left = 4;
    owner_start(rig, 0);
    run_until(first, is_done);
    second->room = 2;
    second->lease_us = SHORT_LEASE_US; /* after which it looks again */
    owner_start(rig, 1);
    run_until(second, has_no_room);
    assert_int_equal(second->entry_count, 2);
    replica_leave(first->replica);
    run_until(first, has_ended);
    second->no_room = 0;
    run_until(second, has_no_room); /* once more, a lease after the first time */
    assert_false(second->leads || second->left_for_room || has_ended(second));
    second->room = ENTRIES_MAX;
    run_until(second, leads);
}

static void a_hello_that_is_ahead(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    owner_start(rig, 0);
    run_until(first, leads);
    replica_hello_ahead(first->replica, 1, 0); /* its own */
    assert_true(replica_may_send_until_us(first->replica) > 0);
    replica_hello_ahead(first->replica, 9, 0);
    assert_int_equal(replica_may_send_until_us(first->replica), 0);
    run_until(first, has_ended);
    assert_true(first->refused);
    assert_non_null(strstr(first->text, "older ledger than a worker has seen"));
}

/* The nth call fails, in each way; what was logged is in the log once, in its order. */
static void fail_call(void **state, unsigned nth, enum fake_fault how)
{
    assert_int_equal(rig_open(state), 0);
    struct rig *rig = *state;
    struct owner *owner = &rig->owners[0];
    owner->appends_left = 6;
    owner->lease_us = SHORT_LEASE_US;
    owner->snapshot_bytes = 800; /* some three entries */
    rig->etcd->fail_at = nth;
    rig->etcd->fail_at_how = how;
    owner_start(rig, 0);
    run_until(owner, is_done);
    assert_false(has_ended(owner));
    size_t at = 0;
    for (size_t i = 0; i < owner->entry_count; i++) {
        char text[32];
        if (!owner->entries[i].is_term) {
            snprintf(text, sizeof text, "c0-%zu", ++at);
            assert_string_equal(owner->texts[i], text);
        }
    }
    assert_int_equal(at, 6);
    rig->etcd->fail_at = 0;
    owner_start(rig, 1);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    rig_close(state);
}

static void each_call_fails_once(void **state)
{
    for (unsigned how = FAKE_REFUSED; how < FAKE_FAULTS; how++) {
        for (unsigned nth = 1; nth <= 14; nth++) {
            fail_call(state, nth, (enum fake_fault)how);
        }
    }
}

/* Memory that is refused once: it does not open, or does all the same. */
static void memory_that_is_refused(void **state)
{
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        assert_int_equal(rig_open(state), 0);
        struct rig *rig = *state;
        struct owner *owner = &rig->owners[0];
        owner->rig = rig;
        owner->appends_left = 2;
        owner->lease_us = SHORT_LEASE_US;
        owner->snapshot_bytes = 500;
        snprintf(owner->name, sizeof owner->name, "c0");
        const struct replica_options options = options_of(owner);
        struct cadre_error error;
        fault_arm("replication.memory", nth);
        if (replica_open(rig->loop, &options, &owner->replica, &error) == CADRE_OK) {
            run_until(owner, leads);
            append_more(owner);
            run_until(owner, is_done);
            assert_false(has_ended(owner));
        } else {
            assert_int_equal(error.code, CADRE_RESOURCE_EXHAUSTED);
        }
        met = fault_disarm();
        rig_close(state);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_leads_and_the_others_follow),
        TEST(a_leader_that_leaves),
        TEST(a_long_entry_reaches_the_others),
        TEST(what_is_no_entry),
        TEST(an_etcd_that_was_put_back_is_refused),
        TEST(a_cluster_without_its_secret_is_refused),
        TEST(a_copy_that_cannot_be_written),
        TEST(a_leader_without_room),
        TEST(a_follower_without_room),
        TEST(a_hello_that_is_ahead),
        cmocka_unit_test(each_call_fails_once),
        cmocka_unit_test(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
