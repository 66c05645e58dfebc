/* SPDX-License-Identifier: Apache-2.0
 * Whose name it is, by what the key in etcd says and when it changes. */
#include "coordinator/daemon/shared/member_name.h"
#include "tests/lib/test.h"

#define AWAY_US 9000

static struct member_name one_that_knows(uint64_t first, uint64_t second)
{
    return (struct member_name){.process = 7, .known = {first, second}, .away_us = AWAY_US};
}

static void a_new_name_is_free(void **state)
{
    (void)state;
    struct member_name name = one_that_knows(0, 0);
    assert_int_equal(member_name_found(&name, 0, 0, 100), MEMBER_NAME_FREE);
    assert_int_equal(name.revision, 0);
    member_name_written(&name, 5);
    assert_int_equal(name.revision, 5);
    /* An earlier attempt was applied. */
    assert_int_equal(member_name_found(&name, 6, 7, 200), MEMBER_NAME_FREE);
    assert_int_equal(name.revision, 6);
}

static void processes_of_one_state_directory_wait_for_nothing(void **state)
{
    (void)state;
    for (uint64_t process = 3; process <= 4; process++) {
        struct member_name name = one_that_knows(3, 4);
        assert_int_equal(member_name_found(&name, 9, process, 100), MEMBER_NAME_FREE);
        assert_int_equal(name.found, process);
    }
    struct member_name name = one_that_knows(0, 4); /* 0 is no process */
    assert_int_equal(member_name_found(&name, 9, 0, 100), MEMBER_NAME_WAITS);
}

static void who_writes_is_alive(void **state)
{
    (void)state;
    struct member_name name = one_that_knows(3, 4);
    assert_int_equal(member_name_found(&name, 9, 5, 100), MEMBER_NAME_WAITS);
    assert_int_equal(member_name_found(&name, 9, 5, 100 + AWAY_US), MEMBER_NAME_WAITS);
    assert_int_equal(member_name_found(&name, 10, 5, 101 + AWAY_US), MEMBER_NAME_TAKEN);
}

static void who_writes_nothing_is_away(void **state)
{
    (void)state;
    struct member_name name = one_that_knows(3, 4);
    assert_int_equal(member_name_found(&name, 9, 5, 100), MEMBER_NAME_WAITS);
    assert_int_equal(member_name_found(&name, 9, 5, 101 + AWAY_US), MEMBER_NAME_FREE);
    assert_int_equal(name.revision, 9);
    member_name_written(&name, 12);
    /* It goes on, and finds this one's process there. */
    struct member_name other = {.process = 5, .away_us = AWAY_US};
    member_name_written(&other, 9);
    assert_int_equal(member_name_found(&other, 12, 7, 500), MEMBER_NAME_WAITS);
    assert_int_equal(member_name_found(&other, 13, 7, 600), MEMBER_NAME_TAKEN);
}

static void a_key_that_vanished_is_written_again(void **state)
{
    (void)state;
    struct member_name name = one_that_knows(0, 0);
    assert_int_equal(member_name_found(&name, 9, 5, 100), MEMBER_NAME_WAITS);
    assert_int_equal(member_name_found(&name, 0, 0, 200), MEMBER_NAME_FREE);
    /* Waiting begins again. */
    assert_int_equal(member_name_found(&name, 11, 5, 300), MEMBER_NAME_WAITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_name_is_free),
        cmocka_unit_test(processes_of_one_state_directory_wait_for_nothing),
        cmocka_unit_test(who_writes_is_alive),
        cmocka_unit_test(who_writes_nothing_is_away),
        cmocka_unit_test(a_key_that_vanished_is_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
