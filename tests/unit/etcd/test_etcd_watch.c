/* SPDX-License-Identifier: Apache-2.0
 * Watches: one OK when the key is watched and with each change, and one after each gap. */
#include <stdio.h>
#include <string.h>

#include "etcd_standin.h"

struct watched {
    unsigned looks, breaks;
    unsigned wanted_looks, wanted_breaks;
    char text[CADRE_ERROR_TEXT_BYTES]; /* of the last break */
    cadre_status status;
    struct etcd_watch *watch;
    bool closes; /* in its handler */
};

static void on_watch(cadre_status status, const char *text, void *user)
{
    struct watched *watched = user;
    if (status == CADRE_OK) {
        watched->looks++;
    } else {
        watched->breaks++;
        watched->status = status;
        snprintf(watched->text, sizeof watched->text, "%s", text);
    }
    if (watched->closes) {
        etcd_watch_close(watched->watch);
        watched->watch = NULL;
    }
}

static bool has_seen(void *user)
{
    const struct watched *watched = user;
    return watched->looks >= watched->wanted_looks && watched->breaks >= watched->wanted_breaks;
}

static void await(struct rig *rig, struct watched *watched, unsigned looks, unsigned breaks)
{
    watched->wanted_looks = looks;
    watched->wanted_breaks = breaks;
    rig_until_check(rig, has_seen, watched);
}

static void watch_head(struct rig *rig, struct watched *watched)
{
    struct cadre_error error;
    assert_ok(
        etcd_watch_open(rig->etcd, "head", on_watch, watched, &watched->watch, &error), &error);
    await(rig, watched, 1, 0);
}

static void changes_are_notified(void **state)
{
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    rig_connect(rig, 1, NULL);
    watch_head(rig, &watched);
    standin_event(&rig->standins[0]);
    await(rig, &watched, 2, 0);
    standin_event(&rig->standins[0]);
    standin_event(&rig->standins[0]);
    await(rig, &watched, 4, 0);
    assert_int_equal(watched.breaks, 0);
}

static void a_member_that_goes_is_left(void **state)
{
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    rig_connect(rig, 2, NULL);
    watch_head(rig, &watched);
    standin_stop(&rig->standins[0]);
    await(rig, &watched, 2, 1);
    assert_int_equal(watched.status, CADRE_UNAVAILABLE);
    assert_non_null(strstr(watched.text, "watch: "));
    standin_event(&rig->standins[1]);
    await(rig, &watched, 3, 1);
}

static void a_watch_follows_the_other_calls(void **state)
{
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    struct seen seen;
    rig_connect(rig, 2, NULL);
    watch_head(rig, &watched);
    rig->standins[0].once[STANDIN_RANGE].act = STANDIN_SILENT;
    const struct etcd_then then = rig_then(&seen, 20 * CADRE_US_PER_MS);
    struct cadre_error error;
    assert_ok(etcd_range(rig->etcd, "head", NULL, 1, &then, &error), &error);
    await(rig, &watched, 2, 1);
    assert_non_null(strstr(watched.text, "this endpoint does not answer other calls"));
    standin_event(&rig->standins[1]);
    await(rig, &watched, 3, 1);
}

static void etcd_cancels_it(void **state)
{
    static const struct {
        const char *reason;
        cadre_status status;
        const char *part;
    } rows[] = {
        {NULL, CADRE_PERMISSION_DENIED, "it asks for a login"},
        {"rpc error: code = PermissionDenied desc = etcdserver: permission denied",
            CADRE_PERMISSION_DENIED, "it asks for a login"},
        {"etcdserver: no leader", CADRE_UNAVAILABLE, "it knows of no leader"},
        {"etcdserver: mvcc: required revision has been compacted", CADRE_OUT_OF_RANGE,
            "is compacted"},
    };
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    rig_connect(rig, 1, NULL);
    watch_head(rig, &watched);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        standin_cancel_watch(&rig->standins[0], rows[i].reason);
        await(rig, &watched, i + 2, i + 1);
        assert_int_equal(watched.status, rows[i].status);
        assert_non_null(strstr(watched.text, rows[i].part));
    }
}

static void errors_and_garbage_on_the_stream(void **state)
{
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    struct cadre_error error;
    struct standin *standin = &rig->standins[0];
    rig_connect(rig, 1, NULL);
    standin_fail(standin, STANDIN_WATCH, CADRE_UNAVAILABLE, "etcdserver: no leader");
    assert_ok(
        etcd_watch_open(rig->etcd, "head", on_watch, &watched, &watched.watch, &error), &error);
    await(rig, &watched, 1, 1);
    assert_non_null(strstr(watched.text, "it knows of no leader"));
    etcd_watch_close(watched.watch);
    standin->once[STANDIN_WATCH] =
        (struct standin_script){.act = STANDIN_BYTES, .bytes = "\xff", .size = 1};
    watched = (struct watched){.looks = 0};
    assert_ok(
        etcd_watch_open(rig->etcd, "head", on_watch, &watched, &watched.watch, &error), &error);
    await(rig, &watched, 1, 1);
    assert_int_equal(watched.status, CADRE_INTERNAL);
    assert_non_null(strstr(watched.text, "is it an etcd"));
}

static void another_cluster_on_the_stream(void **state)
{
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    rig_connect(rig, 1, NULL);
    watch_head(rig, &watched);
    rig->standins[0].cluster_id++;
    standin_event(&rig->standins[0]);
    await(rig, &watched, 1, 1);
    assert_int_equal(watched.status, CADRE_FAILED_PRECONDITION);
}

static void a_token_that_expired_under_a_watch(void **state)
{
    const struct etcd_options options = {.user = "cadre", .password = "secret"};
    struct rig *rig = *state;
    struct watched watched = {.looks = 0};
    rig->standins[0].wants_token = true;
    rig_connect(rig, 1, &options);
    watch_head(rig, &watched);
    rig->standins[0].voided = rig->standins[0].tokens;
    standin_cancel_watch(&rig->standins[0], "etcdserver: leader changed");
    await(rig, &watched, 2, 2); /* the second break is the void token */
    assert_int_equal(rig->standins[0].calls[STANDIN_LOGIN], 2);
}

static void its_handler_may_close_it(void **state)
{
    struct rig *rig = *state;
    struct watched watched = {.closes = true};
    struct cadre_error error;
    struct seen seen;
    rig_connect(rig, 1, NULL);
    assert_ok(
        etcd_watch_open(rig->etcd, "head", on_watch, &watched, &watched.watch, &error), &error);
    await(rig, &watched, 1, 0);
    rig_range(rig, &seen);
    assert_int_equal(watched.looks, 1);
    /* And when it broke. */
    standin_fail(&rig->standins[0], STANDIN_WATCH, CADRE_UNAVAILABLE, "etcdserver: no leader");
    watched = (struct watched){.closes = true};
    assert_ok(
        etcd_watch_open(rig->etcd, "head", on_watch, &watched, &watched.watch, &error), &error);
    await(rig, &watched, 0, 1);
    rig_range(rig, &seen);
    assert_int_equal(watched.breaks, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        TEST(changes_are_notified),
        TEST(a_member_that_goes_is_left),
        TEST(a_watch_follows_the_other_calls),
        TEST(etcd_cancels_it),
        TEST(errors_and_garbage_on_the_stream),
        TEST(another_cluster_on_the_stream),
        TEST(a_token_that_expired_under_a_watch),
        TEST(its_handler_may_close_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
