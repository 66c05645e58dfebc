/* SPDX-License-Identifier: Apache-2.0
 * Resigning for a process that is dead: the next replica leads although the lease is longer than
 * this test; whichever call of etcd fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "coordinator/replication/resign.h"
#include "replica_rig.h"

#define LONG_LEASE_US (3600 * CADRE_US_PER_S)

struct resigning {
    struct resign *resign;
    unsigned done;
    cadre_status status;
    char text[CADRE_ERROR_TEXT_BYTES];
};

static void on_done(void *user, cadre_status status, const char *text)
{
    struct resigning *resigning = user;
    resigning->done++;
    resigning->status = status;
    snprintf(resigning->text, sizeof resigning->text, "%s", text);
}

static bool is_resigned(void *user)
{
    const struct resigning *resigning = user;
    return resigning->done > 0;
}

static cadre_status begin(struct rig *rig, struct resigning *resigning, struct log_nonce nonce,
    uint64_t patience_us, struct cadre_error *error)
{
    const struct resign_options options = {.etcd = rig->etcd,
        .nonce = nonce,
        .lease_us = SHORT_LEASE_US,
        .patience_us = patience_us,
        .done = on_done,
        .user = resigning};
    *resigning = (struct resigning){0};
    return resign_open(rig->loop, &options, &resigning->resign, error);
}

static void resign_now(struct rig *rig, struct resigning *resigning, struct log_nonce nonce)
{
    struct cadre_error error;
    assert_ok(begin(rig, resigning, nonce, LONG_LEASE_US, &error), &error);
    assert_int_equal(resigning->done, 0);
    fake_run_until(rig->loop, is_resigned, resigning);
    assert_int_equal(resigning->done, 1);
    resign_close(resigning->resign);
}

/* c0 led and is dead, c1 follows. */
static struct log_nonce die(struct rig *rig)
{
    struct replica_view view;
    rig->owners[0].lease_us = rig->owners[1].lease_us = LONG_LEASE_US;
    owner_start(rig, 0);
    run_until(&rig->owners[0], leads);
    owner_start(rig, 1);
    fake_run_until(rig->loop, all_have_the_same, rig);
    replica_show(rig->owners[0].replica, &view);
    owner_stop(&rig->owners[0]);
    return view.core.nonce;
}

static void the_next_one_leads_at_once(void **state)
{
    struct rig *rig = *state;
    struct resigning resigning;
    struct log_nonce nonce = die(rig);
    resign_now(rig, &resigning, nonce);
    assert_int_equal(resigning.status, CADRE_OK);
    assert_string_equal(
        resigning.text, "the process that led has left: another coordinator leads at once");
    run_until(&rig->owners[1], leads);
    resign_now(rig, &resigning, nonce); /* once more: another leads now */
    assert_int_equal(resigning.status, CADRE_OK);
    assert_string_equal(resigning.text, "the process that ran here before does not lead");
    assert_true(leads(&rig->owners[1]));
}

static void another_nonce_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct resigning resigning;
    struct log_nonce nonce = die(rig);
    uint64_t digest = fake_digest(rig->etcd);
    nonce.low++;
    resign_now(rig, &resigning, nonce);
    assert_string_equal(resigning.text, "the process that ran here before does not lead");
    assert_true(fake_digest(rig->etcd) == digest);
}

static void an_etcd_that_does_not_answer(void **state)
{
    struct rig *rig = *state;
    struct resigning resigning;
    struct cadre_error error;
    struct log_nonce nonce = die(rig);
    owner_stop(&rig->owners[1]);
    rig->etcd->fail_at = rig->etcd->calls + 1;
    rig->etcd->fail_to = UINT32_MAX;
    rig->etcd->fail_at_how = FAKE_LOST_REQUEST;
    assert_ok(begin(rig, &resigning, nonce, 100 * CADRE_US_PER_MS, &error), &error);
    fake_run_until(rig->loop, is_resigned, &resigning);
    assert_int_equal(resigning.status, CADRE_DEADLINE_EXCEEDED);
    assert_non_null(strstr(resigning.text, "not answered within 100 ms"));
    assert_non_null(strstr(resigning.text, "transaction: no answer"));
    resign_close(resigning.resign);
    rig->etcd->fail_at = 0;
}

static void each_call_fails_once(void **state)
{
    for (unsigned how = FAKE_REFUSED; how < FAKE_FAULTS; how++) {
        for (unsigned nth = 1; nth <= 3; nth++) {
            assert_int_equal(rig_open(state), 0);
            struct rig *rig = *state;
            struct resigning resigning;
            struct log_nonce nonce = die(rig);
            owner_stop(&rig->owners[1]); /* all calls are those of who resigns */
            rig->etcd->fail_at = rig->etcd->calls + nth;
            rig->etcd->fail_at_how = (enum fake_fault)how;
            resign_now(rig, &resigning, nonce);
            assert_int_equal(resigning.status, CADRE_OK);
            rig->etcd->fail_at = 0;
            owner_start(rig, 1);
            run_until(&rig->owners[1], leads);
            rig_close(state);
        }
    }
}

static void memory_that_is_refused(void **state)
{
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        assert_int_equal(rig_open(state), 0);
        struct rig *rig = *state;
        struct resigning resigning;
        struct cadre_error error;
        struct log_nonce nonce = die(rig);
        owner_stop(&rig->owners[1]);
        fault_arm("replication.memory", nth);
        cadre_status status = begin(rig, &resigning, nonce, LONG_LEASE_US, &error);
        if (status == CADRE_OK) {
            fake_run_until(rig->loop, is_resigned, &resigning);
            assert_int_equal(resigning.status, CADRE_OK);
        } else {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        }
        met = fault_disarm();
        resign_close(resigning.resign);
        rig_close(state);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_next_one_leads_at_once),
        TEST(another_nonce_changes_nothing),
        TEST(an_etcd_that_does_not_answer),
        cmocka_unit_test(each_call_fails_once),
        cmocka_unit_test(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
