/* SPDX-License-Identifier: Apache-2.0
 * Logins: once for all calls, again when the token is void, and the sentences when that fails. */
#include <string.h>

#include "etcd_standin.h"

static const struct etcd_options with_user = {.user = "cadre", .password = "secret"};

static void one_login_serves_all_calls(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    for (size_t i = 0; i < 2; i++) {
        rig->standins[i].wants_token = true;
    }
    rig->standins[1].tokens = 1; /* members share tokens */
    rig_connect(rig, 2, &with_user);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    rig_range(rig, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(rig->standins[0].calls[STANDIN_LOGIN], 1);
    standin_fail(&rig->standins[0], STANDIN_RANGE, CADRE_UNAVAILABLE, "etcdserver: no leader");
    rig_range(rig, &seen);
    rig_range(rig, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(seen.member_id, rig->standins[1].member_id);
    assert_int_equal(rig->standins[1].calls[STANDIN_LOGIN], 0);
}

static void a_token_that_expired(void **state)
{
    struct rig *rig = *state;
    struct standin *standin = &rig->standins[0];
    struct seen seen[3];
    struct cadre_error error;
    standin->wants_token = true;
    rig_connect(rig, 1, &with_user);
    rig_transact(rig, 0, &seen[0]);
    standin->voided = standin->tokens;
    rig_transact(rig, 0, &seen[0]);
    assert_int_equal(seen[0].status, CADRE_OK);
    assert_int_equal(standin->calls[STANDIN_LOGIN], 2);
    assert_int_equal(standin->calls[STANDIN_TXN], 3); /* one of them was refused */
    assert_int_equal(standin->puts, 2);
    /* Three calls at once: none is refused for good. */
    standin->voided = standin->tokens;
    for (size_t i = 0; i < 3; i++) {
        const struct etcd_then then = rig_then(&seen[i], 0);
        assert_ok(etcd_transact(rig->etcd, &rig_transaction, &then, &error), &error);
    }
    for (size_t i = 0; i < 3; i++) {
        rig_until(rig, &seen[i].done);
        assert_int_equal(seen[i].status, CADRE_OK);
    }
}

static void a_token_that_is_void_at_once(void **state)
{
    struct rig *rig = *state;
    struct standin *standin = &rig->standins[0];
    struct seen seen;
    standin->always[STANDIN_TXN] = (struct standin_script){.act = STANDIN_FAIL,
        .code = CADRE_UNAUTHENTICATED,
        .text = "etcdserver: invalid auth token"};
    rig_connect(rig, 1, &with_user);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_UNAUTHENTICATED);
    assert_false(seen.outcome_unknown);
    assert_non_null(strstr(seen.text, "the token is not valid any more, nor is a new one"));
    assert_int_equal(standin->calls[STANDIN_TXN], 2);
    assert_int_equal(standin->calls[STANDIN_LOGIN], 2);
}

static void a_wrong_password(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    standin_fail(&rig->standins[0], STANDIN_LOGIN, CADRE_INVALID_ARGUMENT,
        "etcdserver: authentication failed, invalid user ID or password");
    rig_connect(rig, 1, &with_user);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_UNAUTHENTICATED);
    assert_false(seen.outcome_unknown);
    assert_non_null(
        strstr(seen.text, "login: the user \"cadre\" does not exist or has another password"));
    assert_null(strstr(seen.text, "secret"));
    assert_int_equal(rig->standins[0].calls[STANDIN_TXN], 0);
}

static void no_right_to_the_prefix(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    standin_fail(
        &rig->standins[0], STANDIN_TXN, CADRE_PERMISSION_DENIED, "etcdserver: permission denied");
    rig_connect(rig, 1, &with_user);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_PERMISSION_DENIED);
    assert_non_null(strstr(seen.text,
        "the user \"cadre\" may not read and write cadre/: `etcdctl role grant-permission ROLE "
        "--prefix=true readwrite cadre/`"));
}

static void an_etcd_without_users(void **state)
{
    struct rig *rig = *state;
    struct standin *standin = &rig->standins[0];
    struct seen seen;
    standin->always[STANDIN_LOGIN] = (struct standin_script){.act = STANDIN_FAIL,
        .code = CADRE_FAILED_PRECONDITION,
        .text = "etcdserver: authentication is not enabled"};
    rig_connect(rig, 1, &with_user);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(standin->calls[STANDIN_LOGIN], 1);
    /* Then users are made, and logins are demanded. */
    standin->always[STANDIN_LOGIN].act = STANDIN_HEALTHY;
    standin->wants_token = true;
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
    assert_int_equal(standin->calls[STANDIN_LOGIN], 2);
}

static void a_login_that_is_not_answered(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig->standins[0].once[STANDIN_LOGIN].act = STANDIN_SILENT;
    rig_connect(rig, 2, &with_user);
    rig_transact(rig, 200 * CADRE_US_PER_MS, &seen);
    assert_int_equal(seen.status, CADRE_DEADLINE_EXCEEDED);
    assert_false(seen.outcome_unknown);
    assert_int_equal(rig->standins[0].calls[STANDIN_TXN], 0);
    assert_int_equal(etcd_endpoint(rig->etcd), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        TEST(one_login_serves_all_calls),
        TEST(a_token_that_expired),
        TEST(a_token_that_is_void_at_once),
        TEST(a_wrong_password),
        TEST(no_right_to_the_prefix),
        TEST(an_etcd_without_users),
        TEST(a_login_that_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
