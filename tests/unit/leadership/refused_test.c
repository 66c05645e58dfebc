/* SPDX-License-Identifier: Apache-2.0
 * What a coordinator refuses, and what it fetches instead: HA19, HA20, HA24. */
#include "fixture.h"

#include <string.h>

#include "common/pure/assert.h"

/* A coordinator that has the first `index` entries of the store's log. */
static void begin_with(struct fixture *fixture, uint64_t entries, uint64_t index)
{
    fixture_begin(fixture, entries);
    fixture->options.has_cluster = true;
    fixture->options.cluster_id = fixture->cluster.id;
    fixture->options.etcd_id = fixture->etcd_id;
    fixture->options.applied =
        (struct leadership_position){.index = index, .term = 1, .hash = hash_at(index)};
}

/* It is refused by its first answers, with this in the sentence. */
static void expect_refused(struct fixture *fixture, const char *part)
{
    fixture->text = "not refused";
    fixture_start(fixture);
    for (int i = 0; i < 3 && state_of(fixture) == LEADERSHIP_FOLLOWER; i++) {
        answer_read(fixture);
        if (fixture->applying.index != 0) {
            applied(fixture);
        }
    }
    assert_int_equal(state_of(fixture), LEADERSHIP_REFUSED);
    if (strstr(fixture->text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, fixture->text);
    }
    assert_true(leadership_wake_us(fixture->core) == UINT64_MAX);
    fixture->transcript[0] = '\0';
}

static void test_clusters_must_be_the_same(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 3, 3);
    fixture.has_cluster = false;
    expect_refused(&fixture, "etcd holds no ledger beneath the prefix"); /* and no CREATE */
    begin_with(&fixture, 3, 3);
    fixture.cluster.id.low++;
    expect_refused(&fixture, "the ledger of another cluster");
    begin_with(&fixture, 3, 3);
    fixture.etcd_id++;
    expect_refused(&fixture, "etcd has another cluster id");
    fixture_begin(
        &fixture, 3); /* it knows no cluster, and etcd is not the one that it was made in */
    fixture.etcd_id++;
    expect_refused(&fixture, "etcd has another cluster id");
    begin_with(&fixture, 3, 3);
    fixture.leader.nonce.low++;
    expect_refused(&fixture, "name different terms");
    fixture_begin(&fixture, 3); /* which knows no cluster and accepts any */
    fixture.cluster = (struct log_cluster){0};
    expect_refused(&fixture, "etcd's key cluster is damaged");
}

static void test_contents_are_those_of_one_cluster(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_begin(&fixture, 3);
    fixture.options.contents_id = fixture.cluster.id;
    fixture_start(&fixture);
    answer_read(&fixture);
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
    fixture_begin(&fixture, 3);
    fixture.options.contents_id = fixture.cluster.id;
    fixture.options.contents_id.low++;
    expect_refused(&fixture, "than that of the contents in the folder of --contents");
    fixture_begin(&fixture, 3);
    fixture.options.contents_id = fixture.cluster.id;
    fixture.has_cluster = false; /* no CREATE over the contents of one that was lost */
    expect_refused(&fixture, "the folder of --contents is that of a cluster");
}

/* It was written into this etcd, in a term above all that are known. */
static void test_a_log_that_was_written_again_is_accepted(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 3, 3);
    fixture.etcd_id++;
    fixture.cluster.etcd_id = fixture.etcd_id;
    fixture.cluster.reseeded_term = 1; /* which it has seen: that log may be an old one */
    expect_refused(&fixture, "etcd has another cluster id");
    begin_with(&fixture, 3, 3);
    fixture.etcd_id++;
    fixture.cluster.reseeded_term = 1001; /* but into another etcd, which was restored */
    expect_refused(&fixture, "etcd has another cluster id");
    begin_with(&fixture, 3, 3);
    fixture.etcd_id++;
    fixture.cluster.etcd_id = fixture.etcd_id;
    fixture.cluster.reseeded_term = fixture.leader.term = fixture.head.term = 1001;
    fixture_start(&fixture);
    answer_read(&fixture);
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
    expect(&fixture, "read after 3\nknown term 1001\n");
}

static void test_an_older_ledger_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 3, 4);
    expect_refused(
        &fixture, "its log ends at entry 3 of term 1, entry 4 of term 1 is applied here: start");
    begin_with(&fixture, 3, 3);
    fixture.options.term_seen = 2;
    expect_refused(&fixture, "its term is 1, term 2 was seen here");
    begin_with(&fixture, 3, 3);
    fixture.options.applied.hash = hash_at(77);
    expect_refused(&fixture, "etcd holds an older or another ledger");
}

static void test_a_log_that_was_replaced_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 5, 3); /* what is applied here is not before the entries that follow */
    fixture.log[4].computed = hash_at(99);
    expect_refused(&fixture, "behind entry 3 is number 4 and has another hash");
    begin_with(&fixture, 5, 3);
    fixture.log[4].index = 5;
    expect_refused(&fixture, "is number 5 and is not the one that follows");
    begin_with(&fixture, 5, 3);
    fixture.log[4].term = 0;
    expect_refused(&fixture, "has a term out of order");
    begin_with(&fixture, 5, 3);
    fixture.head.hash = hash_at(99);
    expect_refused(&fixture, "has another hash than the key head");
    begin_with(&fixture, 5, 3);
    fixture.log[4].computed = (struct log_hash){{0}};
    expect_refused(&fixture, "has missing pieces");
}

static void test_good_entries_before_a_bad_one_are_applied(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 5, 1);
    fixture.log[4].index = 5;
    fixture_start(&fixture);
    answer_read(&fixture);
    expect(&fixture, "read after 1\napply 2 to 3\n");
    applied(&fixture);
    expect(&fixture, "read after 3\n");
    answer_read(&fixture);
    expect(&fixture, "refuse\n");
}

static void test_entries_that_are_not_there_are_a_gap(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 5, 3);
    fixture_start(&fixture);
    fixture.read_entries = 0; /* the store has none */
    answer_read(&fixture);
    assert_int_equal(state_of(&fixture), LEADERSHIP_REFUSED);
    assert_non_null(strstr(fixture.text, "has no entry 4, and its key head names entry 5"));
}

static void test_a_newer_format_is_refused_and_not_skipped(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 3, 3);
    fixture.cluster.format = 2;
    expect_refused(&fixture, "the ledger has format 2, this version knows formats up to 1");
    begin_with(&fixture, 5, 3);
    fixture.log[4].format = 2;
    expect_refused(&fixture, "a format that this version does not know: install a newer version");
}

static void installed(struct fixture *fixture, uint64_t index)
{
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_SNAPSHOT_INSTALLED,
                      .position = {.index = index, .term = 1, .hash = hash_at(index)}});
}

static void test_what_is_trimmed_comes_as_a_snapshot(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 30, 3);
    fixture.head.first = 20;
    fixture_start(&fixture);
    answer_read(&fixture);
    expect(&fixture, "read after 3\nfetch a snapshot\n");
    /* Without it this coordinator is no candidate. */
    pass(&fixture, 3 * LEASE_US);
    expect(&fixture, "read after 3, no entries\n");
    assert_int_equal(state_of(&fixture), LEADERSHIP_FOLLOWER);
    step(&fixture,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_SNAPSHOT_INSTALLED}); /* none was had */
    expect(&fixture, "");
    answer_read(&fixture);
    pass(&fixture, LEASE_US);
    expect(&fixture, "fetch a snapshot\nread after 3, no entries\n");
    installed(&fixture, 21);
    answer_read(&fixture);
    answer_read(&fixture);
    expect(&fixture, "take over term 2 at 30\n");
}

static void test_an_entry_behind_a_snapshot_follows(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 30, 3);
    fixture.head.first = 20;
    fixture_start(&fixture);
    answer_read(&fixture);
    installed(&fixture, 25);
    expect(&fixture, "read after 3\nfetch a snapshot\nread after 25\n");
    answer_read(&fixture);
    expect(&fixture, "apply 5 to 30\n");
}

static void test_a_restored_etcd_may_be_accepted(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 3, 5);
    fixture.options.accept_restored = true;
    fixture.options.term_seen = 6;
    fixture.etcd_id++;
    fixture.leader.left = true;
    fixture_start(&fixture);
    answer_read(&fixture);
    /* Its term is far above every one that was seen: workers may have been in later ones. */
    expect(&fixture, "read after 5\ndiscard\nknown term 1\ntake over term 1007 at 3\n");
    answer(&fixture);
    answer_read(&fixture);
    applied(&fixture);
    answer(&fixture);
    expect(&fixture, "read after 0\napply 3 to 3\nappend TERM as 4\nlead in term 1007 from 4\n");
}

static void test_what_fits_ends_the_acceptance(void **state)
{
    (void)state;
    struct fixture fixture;
    begin_with(&fixture, 3, 3);
    fixture.options.accept_restored = true;
    fixture_start(&fixture);
    answer_read(&fixture);
    pass(&fixture, LEASE_US / 6);
    fixture.head.index = 2;
    fixture.head.hash = hash_at(2);
    other_beats(&fixture);
    answer_read(&fixture);
    assert_int_equal(state_of(&fixture), LEADERSHIP_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clusters_must_be_the_same),
        cmocka_unit_test(test_contents_are_those_of_one_cluster),
        cmocka_unit_test(test_a_log_that_was_written_again_is_accepted),
        cmocka_unit_test(test_an_older_ledger_is_refused),
        cmocka_unit_test(test_a_log_that_was_replaced_is_refused),
        cmocka_unit_test(test_good_entries_before_a_bad_one_are_applied),
        cmocka_unit_test(test_entries_that_are_not_there_are_a_gap),
        cmocka_unit_test(test_a_newer_format_is_refused_and_not_skipped),
        cmocka_unit_test(test_what_is_trimmed_comes_as_a_snapshot),
        cmocka_unit_test(test_an_entry_behind_a_snapshot_follows),
        cmocka_unit_test(test_a_restored_etcd_may_be_accepted),
        cmocka_unit_test(test_what_fits_ends_the_acceptance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
