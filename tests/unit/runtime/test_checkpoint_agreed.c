/* SPDX-License-Identifier: Apache-2.0
 * Which copies are reported as the state of all replicas: by their own digest, whatever is compared
 * first, and each once. The task is a stand-in that records the reports. */
#include "tests/lib/test.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/task/task.h"

#define A UINT64_C(0xa)
#define B UINT64_C(0xb)

static struct checkpointer checkpointer;
static struct state_part state = {.checkpointer = &checkpointer};
static struct cadre_strategy strategy = {.state_part = &state};
static struct task_part reported;
static int reported_count;

void task_part(struct task *task, const struct task_part *part)
{
    assert_ptr_equal(task, strategy.task);
    reported = *part;
    reported_count++;
}

/* A copy of the state at `position` is taken and not written yet. */
static void copy_at(uint64_t position, uint64_t held)
{
    checkpointer = (struct checkpointer){.writing = true, .written = POSITION_NONE};
    assert_int_equal(pthread_mutex_init(&checkpointer.lock, NULL), 0);
    checkpointer.copy.position = position;
    reported_count = 0;
    checkpoint_agreed_begin(&checkpointer, held);
}

/* The writer is done: its report has this digest. */
static void written_as(uint64_t digest)
{
    checkpointer.writing = false;
    checkpointer.written = checkpointer.copy.position;
    checkpointer.part = (struct task_part){.position = checkpointer.copy.position,
        .digest = digest,
        .compared = checkpoint_agreed_on(&checkpointer, digest)};
}

static void done(void)
{
    assert_int_equal(pthread_mutex_destroy(&checkpointer.lock), 0);
}

/* Then the writer reports it itself. */
static void what_was_compared_before_it_is_written(void **unused)
{
    (void)unused;
    copy_at(6, 0);
    checkpoint_agreed(&strategy, 6, A);
    assert_int_equal(reported_count, 0);
    written_as(A);
    assert_true(checkpointer.part.compared);
    checkpoint_agreed(&strategy, 6, A);
    assert_int_equal(reported_count, 0); /* it is no news */
    done();
}

static void what_is_compared_after_it_is_written(void **unused)
{
    (void)unused;
    copy_at(6, 0);
    written_as(A);
    assert_false(checkpointer.part.compared);
    checkpoint_agreed(&strategy, 6, A);
    assert_int_equal(reported_count, 1);
    assert_true(reported.compared && reported.digest == A && reported.position == 6);
    assert_true(checkpointer.part.compared);
    checkpoint_agreed(&strategy, 6, A);
    assert_int_equal(reported_count, 1);
    done();
}

/* The program saves there once more: what is on disk is being replaced, and is not reported. */
static void what_is_being_written_again_is_not_reported(void **unused)
{
    (void)unused;
    copy_at(6, 0);
    written_as(A);
    checkpointer.writing = true;
    checkpoint_agreed_begin(&checkpointer, 0);
    checkpoint_agreed(&strategy, 6, A);
    assert_int_equal(reported_count, 0);
    done();
}

/* A bit has flipped in it. */
static void a_copy_with_another_digest_is_never_reported(void **unused)
{
    (void)unused;
    copy_at(6, A);
    checkpoint_agreed(&strategy, 6, A);
    written_as(B);
    assert_false(checkpointer.part.compared);
    checkpoint_agreed(&strategy, 6, A);
    checkpoint_agreed(&strategy, 7, A);
    assert_int_equal(reported_count, 0);
    done();
}

/* Nothing was compared there; a later comparison proves that the copy was right. */
static void a_later_comparison_covers_what_was_held(void **unused)
{
    (void)unused;
    copy_at(6, A);
    checkpoint_agreed(&strategy, 5, B); /* an earlier one proves nothing */
    assert_false(checkpoint_agreed_on(&checkpointer, A));
    checkpoint_agreed(&strategy, 9, B);
    assert_true(checkpoint_agreed_on(&checkpointer, A));
    assert_false(checkpoint_agreed_on(&checkpointer, B)); /* that is of step 9 */
    written_as(A);
    assert_true(checkpointer.part.compared);
    copy_at(6, A);
    written_as(B);
    checkpoint_agreed(&strategy, 9, A);
    assert_int_equal(reported_count, 0);
    copy_at(6, 0); /* the digest of the copied state is unknown */
    written_as(A);
    checkpoint_agreed(&strategy, 9, A);
    assert_int_equal(reported_count, 0);
    done();
}

/* What was compared at the position itself counts, and not what was held. */
static void what_was_held_is_asked_where_nothing_was_compared(void **unused)
{
    (void)unused;
    copy_at(6, A);
    checkpoint_agreed(&strategy, 6, B);
    checkpoint_agreed(&strategy, 9, B);
    assert_true(checkpoint_agreed_on(&checkpointer, B));
    assert_false(checkpoint_agreed_on(&checkpointer, A));
    done();
}

/* The program may change what no step writes and save there again: the newest are kept. */
static void several_are_compared_at_one_position(void **unused)
{
    (void)unused;
    copy_at(6, 0);
    for (uint64_t digest = 1; digest <= CHECKPOINT_AGREED_MAX; digest++) {
        checkpoint_agreed(&strategy, 6, digest);
    }
    assert_true(checkpoint_agreed_on(&checkpointer, 1));
    checkpoint_agreed(&strategy, 6, CHECKPOINT_AGREED_MAX + 1);
    assert_false(checkpoint_agreed_on(&checkpointer, 1));
    assert_true(checkpoint_agreed_on(&checkpointer, 2));
    assert_true(checkpoint_agreed_on(&checkpointer, CHECKPOINT_AGREED_MAX + 1));
    assert_false(checkpoint_agreed_on(&checkpointer, 0)); /* an unknown digest equals none */
    checkpoint_agreed_begin(&checkpointer, 0);
    assert_false(checkpoint_agreed_on(&checkpointer, 2)); /* another copy */
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_compared_before_it_is_written),
        cmocka_unit_test(what_is_compared_after_it_is_written),
        cmocka_unit_test(what_is_being_written_again_is_not_reported),
        cmocka_unit_test(a_copy_with_another_digest_is_never_reported),
        cmocka_unit_test(a_later_comparison_covers_what_was_held),
        cmocka_unit_test(what_was_held_is_asked_where_nothing_was_compared),
        cmocka_unit_test(several_are_compared_at_one_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
