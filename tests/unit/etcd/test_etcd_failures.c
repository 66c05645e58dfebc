/* SPDX-License-Identifier: Apache-2.0
 * What etcd answers when it fails: status, outcome, next endpoint, sentence. And servers that are
 * no etcd. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "etcd_standin.h"

struct row {
    cadre_status theirs;
    const char *text;
    cadre_status ours;
    bool unknown, elsewhere;
    const char *part;
};

static const struct row rows[] = {
    {CADRE_UNAVAILABLE, "etcdserver: no leader", CADRE_UNAVAILABLE, true, true,
        "it knows of no leader"},
    {CADRE_UNAVAILABLE, "etcdserver: leader changed", CADRE_UNAVAILABLE, true, true,
        "its leader changed"},
    {CADRE_FAILED_PRECONDITION, "etcdserver: not leader", CADRE_UNAVAILABLE, true, true,
        "not the leader any more"},
    {CADRE_UNAVAILABLE, "etcdserver: server stopped", CADRE_UNAVAILABLE, true, true,
        "this member is stopping"},
    {CADRE_UNAVAILABLE, "etcdserver: request timed out", CADRE_UNAVAILABLE, true, true,
        "no answer from the other members in time"},
    {CADRE_UNAVAILABLE, "etcdserver: request timed out, possibly due to previous leader failure",
        CADRE_UNAVAILABLE, true, true, "no answer from the other members in time"},
    {CADRE_UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost",
        CADRE_UNAVAILABLE, true, true, "whether the transaction was applied is not known"},
    {CADRE_UNAVAILABLE, "etcdserver: unhealthy cluster", CADRE_UNAVAILABLE, true, true,
        "etcdctl endpoint health --cluster"},
    {CADRE_UNAVAILABLE, "etcdserver: rpc not supported for learner", CADRE_UNAVAILABLE, false, true,
        "name voting members only"},
    {CADRE_UNAVAILABLE, "etcdserver: not capable", CADRE_UNAVAILABLE, false, true,
        "is being upgraded"},
    {CADRE_RESOURCE_EXHAUSTED, "etcdserver: too many requests", CADRE_RESOURCE_EXHAUSTED, false,
        true, "its disk is too slow"},
    {CADRE_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded",
        CADRE_RESOURCE_EXHAUSTED, false, false, "etcdctl alarm disarm"},
    {CADRE_DATA_LOSS, "etcdserver: corrupt cluster", CADRE_DATA_LOSS, false, false,
        "alarm CORRUPT"},
    {CADRE_INVALID_ARGUMENT, "etcdserver: request is too large", CADRE_INVALID_ARGUMENT, false,
        false, "--max-request-bytes=1572864"},
    {CADRE_RESOURCE_EXHAUSTED, "grpc: received message larger than max (2097152 vs. 1000)",
        CADRE_INVALID_ARGUMENT, false, false, "--max-request-bytes=1572864"},
    {CADRE_INVALID_ARGUMENT, "etcdserver: too many operations in txn request",
        CADRE_INVALID_ARGUMENT, false, false, "--max-txn-ops=128"},
    {CADRE_INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request",
        CADRE_INVALID_ARGUMENT, false, false, "changes one key twice"},
    {CADRE_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted",
        CADRE_OUT_OF_RANGE, false, false, "is compacted"},
    {CADRE_INVALID_ARGUMENT, "etcdserver: user name is empty", CADRE_UNAUTHENTICATED, false, false,
        "it asks for a login: give a user and a password"},
    {CADRE_PERMISSION_DENIED, "etcdserver: permission denied", CADRE_PERMISSION_DENIED, false,
        false, "it asks for a login, and no user is given"},
    {CADRE_FAILED_PRECONDITION, "etcdserver: something new", CADRE_FAILED_PRECONDITION, true, false,
        "etcdserver: something new"},
    {CADRE_UNKNOWN, "etcdserver: something else", CADRE_UNKNOWN, true, true,
        "etcdserver: something else"},
    {CADRE_UNIMPLEMENTED, "unknown service etcdserverpb.KV", CADRE_FAILED_PRECONDITION, false, true,
        "is it an etcd, of version 3.4 or newer?"},
    {CADRE_INTERNAL, "odd \033[2J text", CADRE_INTERNAL, true, true, "odd ?[2J text"},
};

static void each_error_of_a_transaction(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig_connect(rig, 2, NULL);
    for (size_t i = 0; i < CADRE_COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        size_t endpoint = etcd_endpoint(rig->etcd);
        struct standin *standin = &rig->standins[endpoint];
        unsigned calls = rig->standins[0].calls[STANDIN_TXN] + rig->standins[1].calls[STANDIN_TXN];
        standin_fail(standin, STANDIN_TXN, row->theirs, row->text);
        rig_transact(rig, 0, &seen);
        bool no_space = strstr(row->text, "database space exceeded") != NULL;
        if (seen.status != row->ours || seen.outcome_unknown != row->unknown ||
            seen.no_space != no_space || (etcd_endpoint(rig->etcd) != endpoint) != row->elsewhere ||
            strstr(seen.text, row->part) == NULL || strstr(seen.text, "transaction: ") == NULL ||
            strstr(seen.text, seen.endpoint) == NULL) {
            fail_msg("%s: status %d, unknown %d, endpoint %zu after %zu: %s", row->text,
                (int)seen.status, seen.outcome_unknown, etcd_endpoint(rig->etcd), endpoint,
                seen.text);
        }
        /* Sent once, whatever the answer. */
        assert_int_equal(
            rig->standins[0].calls[STANDIN_TXN] + rig->standins[1].calls[STANDIN_TXN], calls + 1);
    }
    rig_transact(rig, 0, &seen);
    assert_int_equal(seen.status, CADRE_OK);
}

static void a_read_has_no_outcome(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    rig_connect(rig, 1, NULL);
    standin_fail(
        &rig->standins[0], STANDIN_RANGE, CADRE_UNAVAILABLE, "etcdserver: request timed out");
    rig_range(rig, &seen);
    assert_int_equal(seen.status, CADRE_UNAVAILABLE);
    assert_false(seen.outcome_unknown);
    assert_non_null(strstr(seen.text, "read: it got no answer from the other members"));
    assert_null(strstr(seen.text, "was applied"));
}

static void an_old_etcd_is_refused(void **state)
{
    static const struct {
        const char *version;
        bool good;
    } versions[] = {{"3.3.27", false}, {"2.3.8", false}, {"3.4.0", true}, {"3.5.9", true},
        {"3.10.1", true}, {"4.0.0-alpha", true}, {"", false}, {"x\033y", false}, {"3", false},
        {"-3.9", false}};
    struct rig *rig = *state;
    struct seen seen;
    for (size_t i = 0; i < CADRE_COUNT_OF(versions); i++) {
        rig->standins[0].version = versions[i].version;
        rig_connect(rig, 1, NULL);
        rig_transact(rig, 0, &seen);
        if (versions[i].good) {
            assert_int_equal(seen.status, CADRE_OK);
        } else {
            assert_int_equal(seen.status, CADRE_FAILED_PRECONDITION);
            assert_false(seen.outcome_unknown);
            assert_non_null(strstr(seen.text, "3.4 is the oldest that Cadre works with"));
        }
        etcd_close(rig->etcd);
        rig->etcd = NULL;
    }
}

/* Bytes that are no answer, at each step of a call. */
static void garbage(void **state)
{
    static const char *const bytes[] = {"\xff\xff\xff", "", "hello", "\n\2\10\0"};
    static const enum standin_method steps[] = {STANDIN_STATUS, STANDIN_LOGIN, STANDIN_TXN};
    const struct etcd_options options = {.user = "u", .password = "p"};
    struct rig *rig = *state;
    struct seen seen;
    for (size_t step = 0; step < CADRE_COUNT_OF(steps); step++) {
        for (size_t i = 0; i < CADRE_COUNT_OF(bytes); i++) {
            rig->standins[0].once[steps[step]] = (struct standin_script){
                .act = STANDIN_BYTES, .bytes = bytes[i], .size = strlen(bytes[i])};
            rig_connect(rig, 2, &options);
            rig_transact(rig, 0, &seen);
            assert_int_equal(seen.status, CADRE_INTERNAL);
            assert_int_equal(seen.outcome_unknown, steps[step] == STANDIN_TXN);
            assert_non_null(strstr(seen.text, "is it an etcd, and not another server"));
            assert_int_equal(etcd_endpoint(rig->etcd), 1);
            rig_transact(rig, 0, &seen);
            assert_int_equal(seen.status, CADRE_OK);
            etcd_close(rig->etcd);
            rig->etcd = NULL;
        }
    }
}

static void an_answer_that_is_too_long(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    size_t size = ETCD_ANSWER_BYTES_MAX + 4096;
    void *bytes = calloc(1, size);
    assert_non_null(bytes);
    rig->standins[0].once[STANDIN_RANGE] =
        (struct standin_script){.act = STANDIN_BYTES, .bytes = bytes, .size = size};
    rig_connect(rig, 1, NULL);
    rig_range(rig, &seen);
    assert_int_equal(seen.status, CADRE_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(seen.text, "read: its answer is longer than one may be"));
    free(bytes);
}

static void limits_are_refused_at_once(void **state)
{
    struct rig *rig = *state;
    struct seen seen;
    struct cadre_error error;
    static struct etcd_operation many[ETCD_OPERATIONS_MAX + 1];
    for (size_t i = 0; i < CADRE_COUNT_OF(many); i++) {
        many[i] = (struct etcd_operation){.kind = ETCD_GET, .key = "k"};
    }
    const struct etcd_transaction transaction = {.then = many, .then_count = CADRE_COUNT_OF(many)};
    rig_connect(rig, 1, NULL);
    const struct etcd_then then = rig_then(&seen, 0);
    assert_error(etcd_transact(rig->etcd, &transaction, &then, &error), CADRE_INVALID_ARGUMENT,
        &error, "at most 125");
    assert_error(etcd_range(rig->etcd, "", NULL, 1, &then, &error), CADRE_INVALID_ARGUMENT, &error,
        "a key beneath the prefix");
    rig_range(rig, &seen);
    assert_int_equal(seen.status, CADRE_OK);
}

static void login_too_long(void **state)
{
    static char name[ETCD_USER_BYTES_MAX + 2];
    struct rig *rig = *state;
    struct etcd_address address;
    struct cadre_error error;
    struct etcd *etcd = NULL;
    memset(name, 'u', ETCD_USER_BYTES_MAX + 1);
    assert_ok(etcd_address_parse("etcd://127.0.0.1:1/cadre", false, &address, &error), &error);
    const struct etcd_options options = {.address = &address, .user = name};
    assert_error(etcd_open(rig->loop, &options, &etcd, &error), CADRE_INVALID_ARGUMENT, &error,
        "more than 256 characters");
    assert_null(etcd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        TEST(each_error_of_a_transaction),
        TEST(a_read_has_no_outcome),
        TEST(an_old_etcd_is_refused),
        TEST(garbage),
        TEST(an_answer_that_is_too_long),
        TEST(limits_are_refused_at_once),
        TEST(login_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
