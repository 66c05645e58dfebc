/* SPDX-License-Identifier: Apache-2.0
 * What a server with a backup may answer: whatever is recorded now, and whatever may be next. */
#include "worker/library/ps/server/backup_record.h"

#include "tests/lib/test.h"

static void confirmed(struct backup_record *backup_record, uint64_t number, uint64_t by)
{
    backup_record_confirmed(backup_record, &(struct task_backed){.number = number, .by = by});
}

static void a_copy_counts_before_it_is_recorded(void **state)
{
    (void)state;
    struct backup_record backup_record;
    backup_record_begin(&backup_record, &(struct task_backed){0});
    assert_true(backup_record_allows(backup_record.counted, 0));
    assert_false(backup_record_update(&backup_record, 0));
    assert_true(backup_record_update(&backup_record, 7));
    assert_int_equal(backup_record.sent.number, 1);
    assert_int_equal(backup_record.sent.by, 7);
    assert_true(backup_record_allows(backup_record.counted, 7));
    assert_false(backup_record_allows(backup_record.counted, 0));
    confirmed(&backup_record, 1, 7);
    assert_true(backup_record.recorded);
    assert_false(backup_record_allows(backup_record.counted, 0));
}

static void alone_only_once_it_is_recorded(void **state)
{
    (void)state;
    struct backup_record backup_record;
    backup_record_begin(&backup_record, &(struct task_backed){.number = 9, .by = 7});
    assert_false(backup_record_allows(backup_record.counted, 0));
    assert_false(backup_record_allows(backup_record.counted, 8));
    assert_true(backup_record_update(&backup_record, 0));
    assert_false(backup_record_allows(backup_record.counted, 0));
    confirmed(&backup_record, 0, 7);
    assert_false(backup_record_allows(backup_record.counted, 0));
    assert_true(backup_record_allows(
        backup_record.counted, 7)); /* it came back: whatever is recorded, that has all */
    confirmed(&backup_record, 1, 0);
    assert_true(backup_record_allows(backup_record.counted, 0));
}

/* The record of an older statement says nothing of the newest. */
static void an_older_record_is_none(void **state)
{
    (void)state;
    struct backup_record backup_record;
    backup_record_begin(&backup_record, &(struct task_backed){0});
    assert_true(backup_record_update(&backup_record, 7));
    assert_true(backup_record_update(&backup_record, 0));
    assert_true(backup_record_update(&backup_record, 7));
    assert_int_equal(backup_record.sent.number, 3);
    confirmed(&backup_record, 2, 0);
    assert_false(backup_record.recorded);
    assert_false(backup_record_allows(backup_record.counted, 0));
    assert_true(backup_record_update(&backup_record, 0));
    confirmed(&backup_record, 3, 7);
    assert_false(backup_record_allows(backup_record.counted, 0));
    confirmed(&backup_record, 4, 0);
    assert_true(backup_record_allows(backup_record.counted, 0));
}

/* Else either of two copies might be taken. */
static void between_two_copies_none_is_recorded(void **state)
{
    (void)state;
    struct backup_record backup_record;
    backup_record_begin(&backup_record, &(struct task_backed){.by = 7});
    assert_true(backup_record_update(&backup_record, 8));
    assert_int_equal(backup_record.sent.by, 0);
    assert_false(backup_record_allows(backup_record.counted, 8));
    assert_false(backup_record_update(&backup_record, 8));
    confirmed(&backup_record, 1, 0);
    assert_true(backup_record_update(&backup_record, 8));
    assert_int_equal(backup_record.sent.by, 8);
    assert_true(backup_record_allows(backup_record.counted, 8));
}

/* The coordinator was started with an older ledger, after which its record is the older one. */
static void a_ledger_that_was_put_back_is_no_proof(void **state)
{
    (void)state;
    struct backup_record backup_record;
    backup_record_begin(&backup_record, &(struct task_backed){0});
    assert_true(backup_record_update(&backup_record, 7));
    confirmed(&backup_record, 1, 7);
    assert_true(backup_record_update(&backup_record, 0));
    confirmed(&backup_record, 2, 0);
    assert_true(backup_record_allows(backup_record.counted, 0));
    confirmed(&backup_record, 1, 7);
    assert_false(backup_record.recorded);
    assert_int_equal(backup_record.sent.number, 2);
    assert_false(backup_record_allows(backup_record.counted, 0));
    confirmed(&backup_record, 1, 7);
    assert_false(backup_record_allows(backup_record.counted, 0));
    confirmed(&backup_record, 2, 0);
    assert_true(backup_record.recorded);
    assert_true(backup_record_allows(backup_record.counted, 0));
    assert_true(backup_record_update(&backup_record, 8));
    confirmed(&backup_record, 3, 8);
    confirmed(&backup_record, 0, 0); /* a replacement would begin empty: no copy is taken */
    assert_false(backup_record.recorded);
    assert_false(backup_record_allows(backup_record.counted, 0));
    assert_true(backup_record_allows(backup_record.counted, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_counts_before_it_is_recorded),
        cmocka_unit_test(alone_only_once_it_is_recorded),
        cmocka_unit_test(an_older_record_is_none),
        cmocka_unit_test(between_two_copies_none_is_recorded),
        cmocka_unit_test(a_ledger_that_was_put_back_is_no_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
