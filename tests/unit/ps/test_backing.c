/* SPDX-License-Identifier: Apache-2.0
 * What a server with a backup may answer: whatever is recorded now, and whatever may be next. */
#include "worker/library/ps/backing.h"

#include "tests/lib/test.h"

static void heard(struct backing *backing, uint64_t number, uint64_t by)
{
    backing_heard(backing, &(struct task_backed){.number = number, .by = by});
}

static void a_copy_counts_before_it_is_recorded(void **state)
{
    (void)state;
    struct backing backing;
    backing_begin(&backing, &(struct task_backed){0});
    assert_true(backing_allows(&backing, 0));
    assert_false(backing_consider(&backing, 0));
    assert_true(backing_consider(&backing, 7));
    assert_int_equal(backing.said.number, 1);
    assert_int_equal(backing.said.by, 7);
    assert_true(backing_allows(&backing, 7));
    assert_false(backing_allows(&backing, 0));
    heard(&backing, 1, 7);
    assert_true(backing.recorded);
    assert_false(backing_allows(&backing, 0));
}

static void alone_only_once_it_is_recorded(void **state)
{
    (void)state;
    struct backing backing;
    backing_begin(&backing, &(struct task_backed){.number = 9, .by = 7});
    assert_false(backing_allows(&backing, 0));
    assert_false(backing_allows(&backing, 8));
    assert_true(backing_consider(&backing, 0));
    assert_false(backing_allows(&backing, 0));
    heard(&backing, 0, 7);
    assert_false(backing_allows(&backing, 0));
    assert_true(backing_allows(&backing, 7)); /* it came back: whatever is recorded, that has all */
    heard(&backing, 1, 0);
    assert_true(backing_allows(&backing, 0));
}

/* The record of an older statement says nothing of the newest. */
static void an_older_record_is_none(void **state)
{
    (void)state;
    struct backing backing;
    backing_begin(&backing, &(struct task_backed){0});
    assert_true(backing_consider(&backing, 7));
    assert_true(backing_consider(&backing, 0));
    assert_true(backing_consider(&backing, 7));
    assert_int_equal(backing.said.number, 3);
    heard(&backing, 2, 0);
    assert_false(backing.recorded);
    assert_false(backing_allows(&backing, 0));
    assert_true(backing_consider(&backing, 0));
    heard(&backing, 3, 7);
    assert_false(backing_allows(&backing, 0));
    heard(&backing, 4, 0);
    assert_true(backing_allows(&backing, 0));
}

/* Else either of two copies might be taken. */
static void between_two_copies_is_nobody(void **state)
{
    (void)state;
    struct backing backing;
    backing_begin(&backing, &(struct task_backed){.by = 7});
    assert_true(backing_consider(&backing, 8));
    assert_int_equal(backing.said.by, 0);
    assert_false(backing_allows(&backing, 8));
    assert_false(backing_consider(&backing, 8));
    heard(&backing, 1, 0);
    assert_true(backing_consider(&backing, 8));
    assert_int_equal(backing.said.by, 8);
    assert_true(backing_allows(&backing, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_counts_before_it_is_recorded),
        cmocka_unit_test(alone_only_once_it_is_recorded),
        cmocka_unit_test(an_older_record_is_none),
        cmocka_unit_test(between_two_copies_is_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
