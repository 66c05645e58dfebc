/* SPDX-License-Identifier: Apache-2.0
 * Who is in the job: what the coordinator says, and those that wait for it. */
#include <pthread.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "worker/library/ps/directory.h"

#define LONG_US (30 * CADRE_US_PER_S)

/* The chief, 2 workers, 2 servers, an evaluator: slots 0, 1 2, 3 4, 5. */
static const struct directory_self self = {
    .ps_job = {.workers = 2, .servers = 2, .evaluators = 1}, .slot = 0, .incarnation = 7};

static struct directory *directory;

static int open(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_ok(directory_new(&self, &directory, &error), &error);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    directory_free(directory);
    return 0;
}

/* What changed of list `number` - 1, of generation 2: one member. */
static void tell_change(uint64_t number, uint32_t slot, uint64_t incarnation)
{
    const struct task_member member = {.slot = slot,
        .incarnation = incarnation,
        .attempts = 1,
        .here = true,
        .address = "127.0.0.1:8"};
    const struct task_members members = {.number = number,
        .changes = true,
        .generation = {.number = 2, .nonce = 5},
        .members = &member,
        .member_count = 1};
    directory_update(directory, &members);
}

/* One member, of generation `number`. */
static void tell(uint64_t number, uint32_t slot, uint64_t incarnation, bool here)
{
    const struct task_member member = {.slot = slot,
        .incarnation = incarnation,
        .attempts = 1,
        .here = here,
        .address = here ? "127.0.0.1:9" : ""};
    struct task_members members = {
        .generation = {.number = number, .nonce = 5}, .members = &member, .member_count = 1};
    memset(members.key, (int)number, sizeof members.key);
    directory_update(directory, &members);
}

static void check_server(uint32_t index, uint64_t incarnation)
{
    struct directory_member member;
    directory_lookup(directory, ROLE_SERVER, index, &member);
    assert_int_equal(member.incarnation, incarnation);
}

static void changes_continue_the_list_before_them(void **state)
{
    (void)state;
    tell_change(1, 3, 12);
    check_server(0, 0); /* there was no list */
    tell(1, 4, 11, true);
    tell_change(1, 3, 12);
    check_server(0, 0); /* it is of another generation */
    tell(2, 4, 11, true);
    tell_change(1, 3, 12);
    check_server(0, 12);
    check_server(1, 11);   /* the rest stays */
    tell_change(1, 3, 13); /* twice */
    tell_change(3, 3, 14); /* the one between was lost */
    check_server(0, 12);
    tell_change(2, 4, 15);
    check_server(0, 12);
    check_server(1, 15);
    tell(2, 3, 16, true); /* whole again, of number 0 */
    tell_change(3, 4, 17);
    check_server(0, 16);
    check_server(1, 0);
}

static void who_is_where_follows_from_slots(void **state)
{
    (void)state;
    struct directory_member member;
    directory_lookup(directory, ROLE_SERVER, 1, &member);
    assert_int_equal(member.slot, 4);
    assert_int_equal(member.role, ROLE_SERVER);
    assert_int_equal(member.index, 1);
    assert_false(member.here);
    tell(1, 4, 11, true);
    directory_lookup(directory, ROLE_SERVER, 1, &member);
    assert_true(member.here);
    assert_int_equal(member.incarnation, 11);
    assert_string_equal(member.address, "127.0.0.1:9");
    directory_lookup(directory, ROLE_EVALUATOR, 0, &member);
    assert_int_equal(member.slot, 5);
    assert_int_equal(directory_self(directory)->incarnation, 7);
}

static void each_list_is_whole(void **state)
{
    (void)state;
    struct directory_member member;
    tell(2, 4, 11, true);
    tell(2, 3, 12, true); /* and says nothing of 4 any more */
    directory_lookup(directory, ROLE_SERVER, 1, &member);
    assert_false(member.here);
    assert_int_equal(member.incarnation, 0);
    tell(1, 4, 11, true); /* of an older generation */
    directory_lookup(directory, ROLE_SERVER, 1, &member);
    assert_false(member.here);
    tell(2, 6, 1, true); /* there is no such slot */
    directory_lookup(directory, ROLE_SERVER, 0, &member);
    assert_false(member.here);
    assert_int_equal(directory_await_change(directory, 0, 0), 3);
}

static void the_key_is_of_the_newest_generation(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct generation generation;
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    assert_int_equal(
        directory_await_key(directory, 1000, &generation, key, &error), CADRE_DEADLINE_EXCEEDED);
    tell(1, 0, 1, true);
    tell(3, 0, 1, true);
    assert_ok(directory_await_key(directory, 0, &generation, key, &error), &error);
    assert_int_equal(generation.number, 3);
    assert_int_equal(key[0], 3);
}

static void who_does_not_come_is_named(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct directory_member member;
    tell(1, 3, 4, true);
    assert_ok(directory_await(directory, ROLE_SERVER, 0, 4, 0, &member, &error), &error);
    assert_int_equal(directory_await(directory, ROLE_SERVER, 0, 5, 20000, &member, &error),
        CADRE_DEADLINE_EXCEEDED);
    assert_non_null(strstr(error.text, "ps 0 was not there within 0.0 s"));
    assert_int_equal(
        directory_await(directory, ROLE_CHIEF, 0, 0, 0, &member, &error), CADRE_DEADLINE_EXCEEDED);
    assert_non_null(strstr(error.text, "the chief was not there"));
}

static void the_first_end_counts(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cadre_error why = {.code = CADRE_CANCELLED, .text = "the chief is done"};
    struct cadre_error later = {.code = CADRE_UNAVAILABLE, .text = "lost"};
    struct directory_member member;
    struct generation generation;
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    assert_ok(directory_ended(directory, &error), &error);
    directory_end(directory, &why);
    directory_end(directory, &later);
    assert_int_equal(directory_ended(directory, &error), CADRE_CANCELLED);
    assert_string_equal(error.text, "the chief is done");
    assert_int_equal(
        directory_await_key(directory, LONG_US, &generation, key, &error), CADRE_CANCELLED);
    assert_int_equal(
        directory_await(directory, ROLE_SERVER, 0, 0, LONG_US, &member, &error), CADRE_CANCELLED);
    assert_int_equal(directory_await_change(directory, 0, LONG_US), 0);
}

/* --- several threads --- */

static void *await_server(void *user)
{
    struct cadre_error error = {0};
    struct directory_member member = {0};
    cadre_status *status = user;
    *status = directory_await(directory, ROLE_SERVER, 1, 100, UINT64_MAX, &member, &error);
    return NULL;
}

static void *look_often(void *user)
{
    struct directory_member member = {0};
    uint64_t seen = 0;
    bool *whole = user;
    *whole = true;
    directory_lookup(directory, ROLE_SERVER, 1, &member);
    while (member.incarnation < 100) {
        seen = directory_await_change(directory, seen, LONG_US);
        directory_lookup(directory, ROLE_SERVER, 1, &member);
        /* A word is seen whole or not at all. */
        *whole = *whole && (!member.here || strcmp(member.address, "127.0.0.1:9") == 0);
    }
    return NULL;
}

static void those_that_wait_are_woken(void **state)
{
    (void)state;
    pthread_t threads[3];
    cadre_status status[2] = {CADRE_UNKNOWN, CADRE_UNKNOWN};
    bool whole = false;
    assert_int_equal(pthread_create(&threads[0], NULL, await_server, &status[0]), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, await_server, &status[1]), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, look_often, &whole), 0);
    for (uint64_t incarnation = 1; incarnation <= 100; incarnation++) {
        tell(1, 4, incarnation, incarnation % 2 == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(status[0], CADRE_OK);
    assert_int_equal(status[1], CADRE_OK);
    assert_true(whole);
}

static void an_end_wakes_all(void **state)
{
    (void)state;
    pthread_t threads[2];
    cadre_status status[2] = {CADRE_OK, CADRE_OK};
    struct cadre_error why = {.code = CADRE_UNAVAILABLE, .text = "lost"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, await_server, &status[i]), 0);
    }
    directory_end(directory, &why);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(status[i], CADRE_UNAVAILABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_is_where_follows_from_slots, open, close_it),
        cmocka_unit_test_setup_teardown(each_list_is_whole, open, close_it),
        cmocka_unit_test_setup_teardown(changes_continue_the_list_before_them, open, close_it),
        cmocka_unit_test_setup_teardown(the_key_is_of_the_newest_generation, open, close_it),
        cmocka_unit_test_setup_teardown(who_does_not_come_is_named, open, close_it),
        cmocka_unit_test_setup_teardown(the_first_end_counts, open, close_it),
        cmocka_unit_test_setup_teardown(those_that_wait_are_woken, open, close_it),
        cmocka_unit_test_setup_teardown(an_end_wakes_all, open, close_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
