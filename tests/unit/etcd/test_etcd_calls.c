/* SPDX-License-Identifier: Apache-2.0
 * Calls that are answered, the change of endpoints when one does not serve, and clients that are
 * closed at any time. */
#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "etcd_standin.h"

static void a_transaction_applies_or_says_what_is_there(void **state)
{
    struct rig *rig = *state;
    struct standin *standin = &rig->standins[0];
    struct seen seen;
    rig_connect(rig, 1, NULL);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_true(seen.succeeded);
    assert_false(seen.outcome_unknown);
    assert_int_equal(seen.cluster_id, CLUSTER_ID);
    assert_int_equal(seen.member_id, standin->member_id);
    assert_int_equal(seen.result_count, 1);
    assert_int_equal(standin->puts, 1);
    standin->has_key = true;
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_false(seen.succeeded);
    assert_int_equal(seen.pair_count, 1);
    assert_string_equal(seen.key, "head");
    assert_int_equal(standin->puts, 1);
    /* The endpoint was checked before the first of them, and not again. */
    assert_int_equal(standin->calls[STANDIN_STATUS], 1);
    assert_int_equal(standin->calls[STANDIN_LOGIN], 0);
}

static void a_read_has_a_limit(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig_connect(rig, 1, NULL);
    rig_range(rig, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.pair_count, 0);
    rig->standins[0].has_key = true;
    rig_range(rig, &seen);
    assert_int_equal(seen.pair_count, 1);
    assert_true(seen.more);
}

static void ask_status(struct rig *rig, size_t endpoint, struct seen *seen)
{
    const struct etcd_then then = rig_then(seen, 0);
    struct cadre_error error;
    assert_ok(etcd_status(rig->etcd, endpoint, &then, &error), &error);
    rig_until(rig, &seen->done);
}

static void each_member_says_how_it_is(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig->standins[1].alarm = "memberID:12 alarm:NOSPACE ";
    rig->standins[2].alarm = "memberID:13 alarm:CORRUPT ";
    rig_connect(rig, 3, NULL);
    for (size_t i = 0; i < 3; i++) {
        ask_status(rig, i, &seen);
        assert_int_equal(seen.status, CADRE_OK);
        assert_int_equal(seen.member_id, rig->standins[i].member_id);
        assert_string_equal(seen.member.version, "3.4.23");
        assert_true(seen.member.has_leader);
        assert_int_equal(seen.member.file_bytes, 4096);
        assert_int_equal(seen.member.in_use_bytes, 1024);
        assert_int_equal(seen.member.no_space, i == 1);
        assert_int_equal(seen.member.corrupt, i == 2);
    }
    ask_status(rig, ETCD_ENDPOINT_PRESENT, &seen);
    assert_int_equal(seen.member_id, rig->standins[0].member_id);
}

static void a_silent_member_leaves_the_outcome_open(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig->standins[0].once[STANDIN_TXN].act = STANDIN_SILENT;
    rig_connect(rig, 3, NULL);
    rig_transact(rig, 500 * CADRE_US_PER_MS, &seen);
    assert_int_equal(seen.status, CADRE_DEADLINE_EXCEEDED);
    if (rig->standins[0].calls[STANDIN_TXN] == 1) { /* else it did not get that far in time */
        assert_true(seen.outcome_unknown);
        assert_non_null(strstr(seen.text, "transaction: no answer within "));
        assert_non_null(strstr(seen.text, "whether the transaction was applied is not known"));
    }
    /* It is not sent again by itself; the next call goes to the next member. */
    assert_int_equal(rig->standins[1].calls[STANDIN_TXN], 0);
    assert_int_equal(etcd_endpoint(rig->etcd), 1);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.member_id, rig->standins[1].member_id);
    assert_true(rig->standins[0].calls[STANDIN_TXN] <= 1);
}

static void a_silent_member_is_never_asked(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig->standins[0].once[STANDIN_STATUS].act = STANDIN_SILENT;
    rig_connect(rig, 2, NULL);
    rig_transact(rig, 50 * CADRE_US_PER_MS, &seen);
    assert_int_equal(seen.status, CADRE_DEADLINE_EXCEEDED);
    assert_false(seen.outcome_unknown); /* it was not sent */
    assert_int_equal(rig->standins[0].calls[STANDIN_TXN], 0);
    assert_int_equal(etcd_endpoint(rig->etcd), 1);
}

static void refused_goes_round(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig_connect(rig, 3, NULL);
    standin_stop(&rig->standins[0]);
    standin_stop(&rig->standins[1]);
    for (size_t i = 0; i < 2; i++) {
        rig_transact(rig, 0, &seen);
        assert_int_equal(seen.status, CADRE_UNAVAILABLE);
        assert_false(seen.outcome_unknown);
        assert_int_equal(etcd_endpoint(rig->etcd), i + 1);
    }
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.member_id, rig->standins[2].member_id);
    standin_stop(&rig->standins[2]);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_UNAVAILABLE);
    assert_int_equal(etcd_endpoint(rig->etcd), 0);
}

static void calls_that_fail_together_go_one_endpoint_on(void **state)
{
    struct rig *rig = *state;
    struct seen seen[4];
    struct cadre_error error;
    rig_connect(rig, 3, NULL);
    rig_transact(rig, 0, &seen[0]);
    rig->standins[0].always[STANDIN_TXN] = (struct standin_script){
        .act = STANDIN_FAIL, .code = CADRE_UNAVAILABLE, .text = "etcdserver: no leader"};
    for (size_t i = 0; i < 4; i++) {
        const struct etcd_then then = rig_then(&seen[i], 0);
        assert_ok(etcd_transact(rig->etcd, &rig_transaction, &then, &error), &error);
    }
    for (size_t i = 0; i < 4; i++) {
        rig_until(rig, &seen[i].done);
        assert_int_equal(seen[i].status, CADRE_UNAVAILABLE);
    }
    assert_int_equal(etcd_endpoint(rig->etcd), 1);
}

static void two_clusters_are_refused(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig->standins[1].cluster_id = CLUSTER_ID + 1;
    rig_connect(rig, 2, NULL);
    rig_transact(rig, 0, &seen);
    standin_stop(&rig->standins[0]);
    rig_transact(rig, 0, &seen);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_FAILED_PRECONDITION);
    assert_non_null(
        strstr(seen.text, "it is of the etcd cluster 000000000000c1c2, but 127.0.0.1:"));
    assert_non_null(strstr(seen.text, "is of 000000000000c1c1"));
    assert_int_equal(rig->standins[1].calls[STANDIN_TXN], 0);
}

static void another_cluster_than_the_known_one(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    const struct etcd_options options = {.cluster_id = 5};
    rig_connect(rig, 1, &options);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(seen.text, "the one that this program knows"));
    assert_int_equal(rig->standins[0].calls[STANDIN_TXN], 0);
}

/* ---- closing ---- */

static void close_with_calls_under_way(void **state)
{
    struct rig *rig = *state;
    struct seen seen[3];
    struct cadre_error error;
    struct etcd_watch *watch = NULL;
    rig->standins[0].always[STANDIN_TXN].act = STANDIN_SILENT;
    rig_connect(rig, 2, NULL);
    struct etcd_then then = rig_then(&seen[0], 0);
    assert_ok(etcd_range(rig->etcd, "head", NULL, 1, &then, &error), &error);
    rig_until(rig, &seen[0].done);
    then = rig_then(&seen[1], 0);
    assert_ok(etcd_transact(rig->etcd, &rig_transaction, &then, &error), &error);
    then = rig_then(&seen[2], 0);
    assert_ok(etcd_status(rig->etcd, 1, &then, &error), &error);
    assert_ok(etcd_watch_open(rig->etcd, "head", NULL, NULL, &watch, &error), &error);
    etcd_close(rig->etcd);
    rig->etcd = NULL;
    assert_false(seen[1].done); /* not from inside */
    for (size_t i = 1; i < 3; i++) {
        rig_until(rig, &seen[i].done);
        assert_int_equal(seen[i].status, CADRE_CANCELLED);
        assert_int_equal(seen[i].answers, 1);
    }
}

static void close_in_handler(const struct etcd_answer *answer, void *user)
{
    struct rig *rig = user;
    assert_int_equal(answer->status, CADRE_OK);
    etcd_close(rig->etcd);
    rig->etcd = NULL;
    assert_string_equal(answer->results[0].pairs[0].key, "head"); /* valid until here */
}

static bool is_closed(void *user)
{
    return ((struct rig *)user)->etcd == NULL;
}

static void a_handler_may_close_the_client(void **state)
{
    struct rig *rig = *state;
    struct cadre_error error;
    rig->standins[0].has_key = true;
    rig_connect(rig, 1, NULL);
    const struct etcd_then then = {
        .deadline_us = CADRE_TIME_NEVER, .handler = close_in_handler, .user = rig};
    assert_ok(etcd_range(rig->etcd, "head", NULL, 1, &then, &error), &error);
    rig_until_check(rig, is_closed, rig);
}

/* ---- every call that can fail, once ---- */

static void watch_seen(cadre_status status, const char *text, void *user)
{
    bool *seen = user;
    (void)text;
    *seen |= status == CADRE_OK;
}

/* Everything once: each call ends exactly once, or is refused at once with no memory. */
static void do_everything(struct rig *rig)
{
    struct etcd_address address;
    struct cadre_error error;
    struct seen seen;
    char text[64];
    bool watched = false;
    struct etcd_watch *watch = NULL;
    snprintf(text, sizeof text, "etcd://127.0.0.1:%d/cadre", rig->standins[0].port);
    assert_ok(etcd_address_parse(text, false, &address, &error), &error);
    const struct etcd_options options = {
        .address = &address, .user = "u", .password = "p", .watch_pause_us = CADRE_US_PER_MS};
    if (etcd_open(rig->loop, &options, &rig->etcd, &error) != CADRE_OK) {
        assert_int_equal(error.code, CADRE_RESOURCE_EXHAUSTED);
        return;
    }
    if (etcd_watch_open(rig->etcd, "head", watch_seen, &watched, &watch, &error) == CADRE_OK) {
        rig_until(rig, &watched);
    }
    for (int kind = 0; kind < 3; kind++) {
        const struct etcd_then then = rig_then(&seen, 0);
        cadre_status status = kind == 0 ? etcd_transact(rig->etcd, &rig_transaction, &then, &error)
                              : kind == 1 ? etcd_range(rig->etcd, "head", NULL, 1, &then, &error)
                                          : etcd_status(rig->etcd, 0, &then, &error);
        if (status == CADRE_OK) {
            rig_until(rig, &seen.done);
            status = seen.status;
        }
        if (status != CADRE_OK && status != CADRE_RESOURCE_EXHAUSTED) {
            fail_msg("status %d: %s", (int)status, seen.text);
        }
    }
    etcd_watch_close(watch);
}

static void every_call_fails_once(void **state)
{
    struct rig *rig = *state;
    uint64_t nth = 1;
    rig->standins[0].wants_token = true;
    rig->standins[0].has_key = true;
    for (bool met = true; met; nth++) {
        rig->standins[0].voided = rig->standins[0].tokens;
        fault_arm("etcd.", nth);
        do_everything(rig);
        met = fault_disarm();
        etcd_close(rig->etcd);
        rig->etcd = NULL;
    }
    assert_true(nth > 25);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        TEST(a_transaction_applies_or_says_what_is_there),
        TEST(a_read_has_a_limit),
        TEST(each_member_says_how_it_is),
        TEST(a_silent_member_leaves_the_outcome_open),
        TEST(a_silent_member_is_never_asked),
        TEST(refused_goes_round),
        TEST(calls_that_fail_together_go_one_endpoint_on),
        TEST(two_clusters_are_refused),
        TEST(another_cluster_than_the_known_one),
        TEST(close_with_calls_under_way),
        TEST(a_handler_may_close_the_client),
        TEST(every_call_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
