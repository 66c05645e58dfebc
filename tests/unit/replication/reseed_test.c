/* SPDX-License-Identifier: Apache-2.0
 * A log that is written again from a snapshot (HA20): in place of an older one of the same cluster,
 * and where there is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "coordinator/replication/reseed.h"
#include "replica_rig.h"

static const struct log_nonce imported_id = {.high = 0x1e, .low = 0x1d};

struct reseeding {
    struct reseed *reseed;
    unsigned done;
    cadre_status status;
    char text[CADRE_ERROR_TEXT_BYTES];
    struct replica_known known;
};

static void on_done(
    void *user, cadre_status status, const char *text, const struct replica_known *known)
{
    struct reseeding *reseeding = user;
    reseeding->done++;
    reseeding->status = status;
    reseeding->known = *known;
    snprintf(reseeding->text, sizeof reseeding->text, "%s", text);
}

static bool is_reseeded(void *user)
{
    const struct reseeding *reseeding = user;
    return reseeding->done > 0;
}

/* From the rig's file. */
static struct reseed_options options_from(struct rig *rig, struct reseeding *reseeding)
{
    struct reseed_options options = {.etcd = rig->etcd,
        .snapshot = rig->file.snapshot,
        .format = 1,
        .attempt_us = 100 * CADRE_US_PER_MS,
        .patience_us = 3600 * CADRE_US_PER_S,
        .done = on_done,
        .user = reseeding};
    memset(options.secret, 's', sizeof options.secret);
    *reseeding = (struct reseeding){0};
    return options;
}

static void reseed_now(
    struct rig *rig, struct reseeding *reseeding, const struct reseed_options *options)
{
    struct cadre_error error;
    assert_ok(reseed_open(rig->loop, options, &reseeding->reseed, &error), &error);
    assert_int_equal(reseeding->done, 0);
    fake_run_until(rig->loop, is_reseeded, reseeding);
    assert_int_equal(reseeding->done, 1);
    reseed_close(reseeding->reseed);
}

/* Writes the snapshot file of this owner's copy. */
static void make_file(struct owner *owner)
{
    struct file *file = &owner->rig->file;
    memcpy(file->entries, owner->entries, sizeof file->entries);
    memcpy(file->texts, owner->texts, sizeof file->texts);
    file->snapshot = (struct replica_snapshot){
        .at = owner->entries[owner->entry_count - 1].at, .sha256 = {7}, .size = 1};
}

/* ---- import ---- */

/* A ledger that was kept without a log is the copy of c0. */
static struct reseed_options begin_import(struct rig *rig, struct reseeding *reseeding)
{
    struct owner *first = &rig->owners[0];
    struct cadre_error error;
    first->rig = rig;
    first->entry_count = 1;
    snprintf(first->texts[0], sizeof first->texts[0], "imported");
    assert_ok(reseed_import_position(imported_id, 41, &first->entries[0].at, &error), &error);
    make_file(first);
    struct reseed_options options = options_from(rig, reseeding);
    options.cluster_id = imported_id;
    options.term = 41;
    options.imports = true;
    return options;
}

static void check_imported(struct rig *rig, const struct reseeding *reseeding)
{
    struct owner *first = &rig->owners[0];
    first->knows = true;
    first->known = reseeding->known;
    first->appends_left = 3;
    for (size_t i = 0; i < REPLICAS; i++) {
        owner_start(rig, i);
    }
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    assert_string_equal(rig->owners[2].texts[0], "imported");
    assert_int_equal(rig->owners[2].entry_count, 5);
    assert_int_equal(rig->owners[2].entries[1].at.term, 42);
    assert_int_equal(rig->owners[2].known.secret[0], 's');
}

static void a_ledger_is_imported(void **state)
{
    struct rig *rig = *state;
    struct reseeding reseeding;
    struct reseed_options options = begin_import(rig, &reseeding);
    reseed_now(rig, &reseeding, &options);
    assert_ok(reseeding.status, &(struct cadre_error){.code = reseeding.status});
    assert_string_equal(reseeding.text, "etcd's log begins behind entry 1 in term 41");
    assert_int_equal(reseeding.known.etcd_id, rig->etcd->cluster_id);
    assert_int_equal(reseeding.known.term, 41);
    check_imported(rig, &reseeding);
    uint64_t digest = fake_digest(rig->etcd);
    reseeding = (struct reseeding){0};
    owner_stop(&rig->owners[0]);
    owner_stop(&rig->owners[1]);
    owner_stop(&rig->owners[2]);
    reseed_now(rig, &reseeding, &options); /* there is one now */
    assert_int_equal(reseeding.status, CADRE_ALREADY_EXISTS);
    assert_non_null(strstr(reseeding.text, "etcd holds a ledger beneath the prefix"));
    assert_true(fake_digest(rig->etcd) == digest);
}

static void each_call_of_an_import_fails_once(void **state)
{
    for (unsigned how = FAKE_REFUSED; how < FAKE_FAULTS; how++) {
        for (unsigned nth = 1; nth <= 2; nth++) {
            assert_int_equal(rig_open(state), 0);
            struct rig *rig = *state;
            struct reseeding reseeding;
            struct reseed_options options = begin_import(rig, &reseeding);
            rig->etcd->fail_at = nth;
            rig->etcd->fail_at_how = (enum fake_fault)how;
            reseed_now(rig, &reseeding, &options);
            /* The cluster that it finds without an answer is its own. */
            assert_int_equal(reseeding.status, CADRE_OK);
            rig->etcd->fail_at = 0;
            check_imported(rig, &reseeding);
            rig_close(state);
        }
    }
}

/* ---- reseed ---- */

/* c0 led and c1 followed; then a backup of 5 entries less was restored, as another etcd. */
static void restore_older(struct rig *rig)
{
    struct owner *first = &rig->owners[0];
    owner_start(rig, 0);
    run_until(first, leads);
    owner_start(rig, 1);
    first->appends_left = 5;
    append_more(first);
    run_until(first, is_done);
    struct etcd *backup = fake_backup(rig->etcd);
    first->appends_left = 5;
    append_more(first);
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    owner_stop(first);
    owner_stop(&rig->owners[1]);
    fake_restore(rig->etcd, backup);
}

static struct reseed_options begin_reseed(struct rig *rig, struct reseeding *reseeding)
{
    const struct owner *owner = &rig->owners[1];
    make_file(&rig->owners[1]);
    struct reseed_options options = options_from(rig, reseeding);
    options.cluster_id = owner->known.cluster_id;
    options.term = owner->known.term;
    memcpy(options.secret, owner->known.secret, sizeof options.secret);
    return options;
}

static void refused_replicas_go_on(void **state)
{
    struct rig *rig = *state;
    struct reseeding reseeding;
    restore_older(rig);
    for (size_t i = 0; i < 2; i++) {
        owner_start(rig, i);
        run_until(&rig->owners[i], has_ended);
        assert_true(rig->owners[i].refused);
        rig->owners[i].refused = false;
        owner_stop(&rig->owners[i]);
    }
    rig->owners[0].entry_count -= 2; /* its copy is behind */
    struct reseed_options options = begin_reseed(rig, &reseeding);
    reseed_now(rig, &reseeding, &options);
    assert_int_equal(reseeding.status, CADRE_OK);
    assert_string_equal(reseeding.text, "etcd's log begins behind entry 11 in term 1001");
    struct owner *second = &rig->owners[1];
    second->appends_left = 4;
    for (size_t i = 1; i <= REPLICAS; i++) { /* c2 has no copy */
        owner_start(rig, i % REPLICAS);
    }
    run_until(second, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    assert_int_equal(second->entry_count, 11 + 1 + 4);
    assert_int_equal(second->entries[11].at.term, 1002);
    for (size_t i = 0; i < REPLICAS; i++) {
        assert_false(rig->owners[i].refused);
        assert_int_equal(rig->owners[i].known.secret[0], '0');
    }
}

/* One that has no copy took the older log for the whole one. */
static void a_leader_of_the_older_log_steps_down(void **state)
{
    struct rig *rig = *state;
    struct reseeding reseeding;
    restore_older(rig);
    struct owner *third = &rig->owners[2];
    rig->etcd->cluster_id--; /* so that it does not refuse the other etcd */
    third->lease_us = SHORT_LEASE_US;
    owner_start(rig, 2);
    run_until(third, leads);
    struct reseed_options options = begin_reseed(rig, &reseeding);
    reseed_now(rig, &reseeding, &options);
    assert_int_equal(reseeding.status, CADRE_OK);
    run_until(third, has_ended);
    assert_true(third->stepped_down);
    assert_string_equal(third->text, "another coordinator leads now");
}

static void expect_failed(struct rig *rig, const struct reseed_options *options,
    struct reseeding *reseeding, const char *part)
{
    uint64_t digest = fake_digest(rig->etcd);
    *reseeding = (struct reseeding){0};
    reseed_now(rig, reseeding, options);
    assert_int_equal(reseeding->status, CADRE_FAILED_PRECONDITION);
    if (strstr(reseeding->text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, reseeding->text);
    }
    assert_true(fake_digest(rig->etcd) == digest);
}

static void what_is_not_older_stays(void **state)
{
    struct rig *rig = *state;
    struct reseeding reseeding;
    struct owner *first = &rig->owners[0];
    first->appends_left = 5;
    owner_start(rig, 0);
    run_until(first, is_done);
    rig->owners[1] = *first; /* whose copy begin_reseed() takes */
    rig->owners[1].replica = NULL;
    struct reseed_options options = begin_reseed(rig, &reseeding);
    owner_stop(first);
    expect_failed(rig, &options, &reseeding, "ends at entry 6 as this ledger does");
    options.snapshot.at = first->entries[4].at;
    expect_failed(
        rig, &options, &reseeding, "ends at entry 6 of term 1, this ledger at entry 5 of term 1");
    options.snapshot.at.index = 9;
    options.cluster_id.low++;
    expect_failed(rig, &options, &reseeding, "the ledger of another cluster");
    fake_put(rig->etcd, "head", "\xff", 1); /* damaged: what the refusal recommends */
    options.cluster_id.low--;
    reseeding = (struct reseeding){0};
    reseed_now(rig, &reseeding, &options);
    assert_int_equal(reseeding.status, CADRE_OK);
    assert_null(fake_find(rig->etcd, "log/0000000000000001"));
}

static void an_etcd_that_does_not_answer(void **state)
{
    struct rig *rig = *state;
    struct reseeding reseeding;
    struct reseed_options options = begin_import(rig, &reseeding);
    options.patience_us = 200 * CADRE_US_PER_MS;
    rig->etcd->fail_at = 1;
    rig->etcd->fail_to = UINT32_MAX;
    rig->etcd->fail_at_how = FAKE_LOST_REQUEST;
    reseed_now(rig, &reseeding, &options);
    assert_int_equal(reseeding.status, CADRE_DEADLINE_EXCEEDED);
    assert_non_null(strstr(reseeding.text, "transaction: no answer"));
}

static void memory_that_is_refused(void **state)
{
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        assert_int_equal(rig_open(state), 0);
        struct rig *rig = *state;
        struct reseeding reseeding;
        struct cadre_error error;
        struct reseed_options options = begin_import(rig, &reseeding);
        fault_arm("replication.memory", nth);
        cadre_status status = reseed_open(rig->loop, &options, &reseeding.reseed, &error);
        if (status == CADRE_OK) {
            fake_run_until(rig->loop, is_reseeded, &reseeding);
            assert_int_equal(reseeding.status, CADRE_OK);
        } else {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        }
        met = fault_disarm();
        reseed_close(reseeding.reseed);
        rig_close(state);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ledger_is_imported),
        cmocka_unit_test(each_call_of_an_import_fails_once),
        TEST(refused_replicas_go_on),
        TEST(a_leader_of_the_older_log_steps_down),
        TEST(what_is_not_older_stays),
        TEST(an_etcd_that_does_not_answer),
        cmocka_unit_test(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
