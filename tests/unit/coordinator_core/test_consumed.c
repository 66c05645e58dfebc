/* SPDX-License-Identifier: Apache-2.0
 * What is recorded of steps that ended: what was consumed in them, and their checkpoints. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static const struct core_job_spec elastic = {
    .tasks = 3, .tasks_min = 1, .max_restarts = 3, .stall_us = 60 * SECOND};

static struct consumption consumption_of(uint64_t steps)
{
    return (struct consumption){.steps = steps, .samples = 10 * steps, .consumed = {steps}};
}

static void consumed_by(struct script *s, uint64_t link, uint32_t tasks, uint64_t up_to,
    uint64_t applied, struct cursor cursor, uint64_t steps)
{
    struct agent_up message = {.type = AGENT_UP_ARRIVED,
        .arrived = {.job = {1},
            .generation = job_view(s, 1).generation,
            .tasks = tasks,
            .up_to = up_to,
            .applied = applied,
            .cursor = cursor,
            .consumption = consumption_of(steps)}};
    struct core_event event = {
        .type = CORE_EVENT_AGENT_UP, .agent = {.link = {link}, .up = &message}};
    step(s, &event);
}

static void consumed(struct script *s, uint64_t link, uint64_t up_to, uint64_t applied,
    struct cursor cursor, uint64_t steps)
{
    consumed_by(s, link, 1, up_to, applied, cursor, steps);
}

/* A daemon sends what one of its members has consumed, for none of them. */
static void epoch_consumed(
    struct script *s, uint64_t link, uint64_t applied, struct cursor cursor, uint64_t steps)
{
    consumed_by(s, link, 0, applied, applied, cursor, steps);
}

static void consumption_are_recorded_when_committed(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor first = {.stream = 1, .steps = 3};
    struct cursor second = {.stream = 1, .epoch = 1, .first = 3, .begin = 3};
    relay_up(s, 1, 1, 0,
        &(struct task_up){.type = TASK_UP_STREAM,
            .stream = {.stream = 1, .name = "train", .samples = 30, .shares = true}});
    relay_up(s, 2, 1, 1,
        &(struct task_up){.type = TASK_UP_STREAM,
            .stream = {.stream = 1, .name = "train", .samples = 30, .shares = true}});
    expect_output(s, "record job 1: stream 1 is train of 30\n");
    consumed(s, 1, 3, 0, first, 0);
    consumed(s, 2, 3, 0, first, 0);
    script_skip(s);
    consumed(s, 1, 3, 3, first, 3);
    expect_output(s, ""); /* the other may still die with what it has not applied */
    consumed(s, 2, 3, 2, first, 2);
    expect_output(s, "");
    consumed(s, 2, 3, 3, first, 3);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n");
    consumed(s, 1, 5, 3, second, 0);
    consumed(s, 2, 5, 3, second, 0);
    consumed(s, 1, 5, 4, second, 1);
    script_skip(s);
    consumed(s, 2, 5, 4, second, 1);
    expect_output(s, "");
    struct stream_position stream;
    assert_true(core_job_stream(s->core, (struct job_id){1}, 0, &stream));
    assert_int_equal(stream.epoch, 1);
    assert_int_equal(stream.applied, 1);
    assert_false(core_job_stream(s->core, (struct job_id){1}, 1, &stream));
    finished(s, 1, 1, 0, 4);
    finished(s, 2, 1, 1, 4);
    expect_output(s, "record job 1: stream 1 epoch 1 consumed 10 in 1 steps\n"
                     "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    script_close(s);
}

/* What all had applied was consumed, also when a plan restarts from a position before it. */
static void consumption_are_recorded_when_all_begin_again(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor first = {.stream = 1};
    struct cursor second = {.stream = 2, .first = 3, .begin = 3};
    consumed(s, 1, 3, 0, first, 0);
    consumed(s, 2, 3, 0, first, 0);
    consumed(s, 1, 3, 3, first, 3);
    consumed(s, 1, 5, 3, second, 0);
    consumed(s, 2, 5, 3, second, 0);
    collect(s, 1, 1, 0);
    collect(s, 2, 1, 1);
    script_skip(s);
    task_hello(s, 2, 1, 1, 0);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n"
                     "record! job 1: plan g2 from 0, restarted of 1\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

/* Its program may have something else to do, or be at its end. */
static void a_joiner_receives_that_its_stream_is_over(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor first = {.stream = 1, .steps = 3};
    struct cursor second = {.stream = 2, .first = 3, .begin = 3};
    join(s, 3, "c", 1);
    task_hello(s, 3, 1, 2, 0);
    consumed(s, 1, 3, 0, first, 0);
    consumed(s, 2, 3, 0, first, 0);
    joins(s, 3, 1, 2, 2);
    script_skip(s);
    consumed(s, 1, 3, 2, first, 2);
    joins(s, 3, 1, 2, 1);
    script_skip(s);
    consumed(s, 1, 3, 3, first, 3);
    expect_output(s, "tell task 1/2#3 on link 3: warm\n");
    consumed(s, 2, 3, 3, first, 3);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n");
    /* One that was slower to come there. */
    joins(s, 3, 1, 2, 1);
    expect_output(s, "tell task 1/2#3 on link 3: warm\n");
    consumed(s, 1, 5, 3, second, 0);
    consumed(s, 2, 5, 3, second, 0);
    script_skip(s);
    joins(s, 3, 1, 2, 2);
    consumed(s, 1, 6, 4, second, 1);
    expect_output(s, "record! job 1: halt at 5 of stream 2\n"
                     "tell job 1: release g1 to 5, halt\n");
    script_close(s);
}

/* It waits for a step that never comes: those that are left end the job without it, though it needs
 * two tasks, and one more loss does not make it wait for what it has. */
static void a_joiner_in_vain_does_not_keep_a_job(void **state)
{
    (void)state;
    static const struct core_job_spec fixed = {.tasks = 3, .tasks_min = 3, .max_restarts = 3};
    struct script *s = stage_running(&fixed, 3, 4);
    collect(s, 3, 1, 2);
    frozen(s, 1, 1, 0, 4, 2);
    frozen(s, 2, 1, 1, 4, 2);
    task_hello(s, 3, 1, 2, 0);
    script_skip(s);
    joins(s, 3, 1, 2, 1);
    expect_output(s, "record! job 1: plan g2 from 4 of 0 1, source rank 0\n"
                     "tell job 1: plan g2\n");
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    frozen(s, 1, 1, 0, 4, 2);
    expect_output(s, "record! job 1: plan g3 from 4 of 0, source rank 0\n"
                     "tell job 1: plan g3\n");
    finished(s, 1, 1, 0, 4);
    expect_output(s,
        "record! job 1: done at 4\n"
        "tell job 1: bye g3\n"
        "tell task 1/2 on link 3: superseded ABORTED: the job goes on without this task\n"
        "stop task 1/2#4 on link 3\n");
    script_close(s);
}

static void what_only_the_dead_had_consumed_is_not_recorded(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor cursor = {.stream = 1};
    consumed(s, 1, 4, 0, cursor, 0);
    consumed(s, 2, 4, 0, cursor, 0);
    consumed(s, 1, 4, 2, cursor, 2);
    consumed(s, 2, 4, 2, cursor, 2);
    consumed(s, 2, 4, 3, cursor, 3);
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    frozen(s, 1, 1, 0, 2, 1);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 20 in 2 steps\n"
                     "record! job 1: plan g2 from 2 of 0, source rank 0\n"
                     "tell job 1: plan g2\n");
    script_close(s);
}

/* The regroup takes what was consumed, the plan records it, as far as its first position, and keeps
 * it: from there on no task has to report it. */
static void a_plan_holds_what_was_consumed_before_it(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor first = {.stream = 1};
    struct cursor second = {.stream = 2, .first = 3, .begin = 3, .steps = 2};
    consumed(s, 1, 4, 0, first, 0);
    consumed(s, 2, 4, 0, first, 0);
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    epoch_consumed(s, 1, 3, first, 3);
    expect_output(s, "");
    epoch_consumed(s, 1, 4, second, 1);
    expect_output(s, "record job 1: stream 2 epoch 0 has 2 steps\n");
    frozen(s, 1, 1, 0, 3, 2);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n"
                     "record! job 1: plan g2 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g2\n");
    /* What is before it is recorded: a daemon that knows less changes nothing. */
    epoch_consumed(s, 1, 2, (struct cursor){.stream = 1, .steps = 2}, 2);
    epoch_consumed(s, 1, 2, (struct cursor){.stream = 3, .steps = 2}, 2);
    expect_output(s, "");
    script_close(s);
}

/* Also of more epochs than the core keeps: all members had applied what is before a step that one
 * of them has applied. */
static void a_plan_holds_many_short_epochs(void **state)
{
    (void)state;
    enum { EPOCHS = 40 };
    struct script *s = stage_running(&elastic, 2, 0);
    consumed(s, 1, EPOCHS, 0, (struct cursor){.stream = 1}, 0);
    consumed(s, 2, EPOCHS, 0, (struct cursor){.stream = 1}, 0);
    gone(s, 2, 1, 1, 0, 9, "");
    script_skip(s);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        epoch_consumed(s, 1, epoch + 1,
            (struct cursor){.stream = 1, .epoch = epoch, .first = epoch, .begin = epoch}, 1);
    }
    frozen(s, 1, 1, 0, EPOCHS, 1);
    for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
        char recorded[64];
        snprintf(recorded, sizeof(recorded), "stream 1 epoch %u consumed 10 in 1 steps\n", epoch);
        assert_non_null(strstr(s->transcript, recorded));
    }
    script_skip(s);
    script_close(s);
}

/* It claims nothing, and no member is taken to have applied what it covers. */
static void what_an_epoch_consumed_moves_no_member(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor first = {.stream = 1};
    consumed(s, 1, 4, 0, first, 0);
    epoch_consumed(s, 2, 3, first, 3);
    script_skip(s);
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.released, 0);
    epoch_consumed(s, 3, 3, first, 3); /* of no worker of the job */
    expect_output(s, "");
    script_close(s);
}

/* A job that begins again from it has no task that reports an epoch before it, also one that was
 * left early, which is never complete. */
static void a_checkpoint_holds_what_was_consumed_before_it(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 4);
    struct cursor first = {.stream = 1};
    struct cursor second = {.stream = 2, .first = 3, .begin = 3};
    consumed(s, 1, 3, 3, first, 3);
    consumed(s, 1, 4, 4, second, 1);
    consumed(s, 2, 3, 3, first, 3);
    consumed(s, 2, 4, 4, second, 1);
    script_skip(s);
    part(s, 1, 1, 0, 4, "checkpoint-4.json");
    expect_output(s, "record job 1: stream 2 epoch 0 consumed 10 in 1 steps\n"
                     "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n"
                     "record! job 1: checkpoint at 4 in checkpoint-4.json\n"
                     "tell job 1: release g1 to 4\n");
    script_close(s);
}

/* All that had applied the last step die before another task has it. */
static void what_is_undone_is_not_consumed(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 0);
    struct cursor cursor = {.stream = 1, .steps = 9};
    for (uint64_t link = 1; link <= 3; link++) {
        consumed(s, link, 4, 0, cursor, 0);
    }
    consumed(s, 1, 4, 3, cursor, 3);
    consumed(s, 3, 4, 4, cursor, 4);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    frozen(s, 3, 1, 2, 4, 1);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 40 in 4 steps\n"
                     "record! job 1: plan g2 from 4 of 0 2, source rank 1\n"
                     "tell job 1: plan g2\n");
    gone(s, 3, 1, 2, 0, 9, "");
    script_skip(s);
    frozen(s, 1, 1, 0, 3, 1);
    expect_output(s, "record! job 1: plan g3 from 3 of 0, source rank 0\n"
                     "tell job 1: plan g3\n");
    struct stream_position stream;
    assert_true(core_job_stream(s->core, (struct job_id){1}, 0, &stream));
    assert_int_equal(stream.applied, 0); /* until an arrival reports it */
    cursor.begin = 3;
    consumed(s, 1, 5, 3, cursor, 3);
    assert_true(core_job_stream(s->core, (struct job_id){1}, 0, &stream));
    assert_int_equal(stream.applied, 3);
    script_skip(s);
    finished(s, 1, 1, 0, 3);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n"
                     "record! job 1: done at 3\n"
                     "tell job 1: bye g3\n");
    script_close(s);
}

/* Where the run begins that the newest record of this stream is of; UINT64_MAX: there is none. */
static uint64_t recorded_run(const struct script *s, uint32_t stream)
{
    uint64_t begin = UINT64_MAX;
    for (size_t i = 0; i < s->actions.count; i++) {
        const struct core_record *record = &s->actions.items[i].record;
        bool its = s->actions.items[i].type == CORE_ACTION_RECORD &&
                   record->type == CORE_RECORD_CONSUMED &&
                   record->consumption.cursor.stream == stream;
        begin = its ? record->consumption.cursor.begin : begin;
    }
    return begin;
}

/* A daemon sends what the earlier run consumed again, since the coordinator was started again: the
 * sums are those of the later one. In the store the later run of an epoch counts. */
static void a_run_that_returns_to_its_epoch_has_its_own_record(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor first = {.stream = 1};
    struct cursor again = {.stream = 1, .first = 1, .begin = 3};
    consumed(s, 1, 6, 0, first, 0);
    consumed(s, 2, 6, 0, first, 0);
    epoch_consumed(s, 1, 2, first, 2);
    consumed(s, 1, 6, 4, again, 3);
    epoch_consumed(s, 2, 2, first, 2);
    consumed(s, 2, 6, 4, again, 3);
    epoch_consumed(s, 1, 2, first, 2);
    finished(s, 1, 1, 0, 4);
    script_skip(s);
    finished(s, 2, 1, 1, 4);
    assert_int_equal(recorded_run(s, 1), 3);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 30 in 3 steps\n"
                     "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    script_close(s);
}

static void parts_of_an_older_plan_are_dropped(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 3, 4);
    for (uint64_t link = 1; link <= 3; link++) {
        arrived(s, link, 1, 1, 4, link == 1 ? 3 : 2);
    }
    part(s, 1, 1, 0, 3, "checkpoint-3.json");
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 3, 1);
    script_skip(s);
    frozen(s, 3, 1, 2, 2, 1);
    expect_output(s, "record! job 1: plan g2 from 3 of 0 2, source rank 0\n"
                     "tell job 1: plan g2\n");
    /* The chief sends it again in the new one; it waits until all have the state. */
    part(s, 1, 1, 0, 3, "checkpoint-3.json");
    expect_output(s, "");
    arrived(s, 1, 1, 1, 4, 3);
    wants(s, 3, 1, 2, 4); /* one of a worker's members, before all of them have arrived */
    expect_output(s, "");
    arrived(s, 3, 1, 1, 4, 3);
    expect_output(s, "record! job 1: checkpoint at 3 in checkpoint-3.json\n"
                     "record job 1: released to 4, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g2 to 4\n");
    script_close(s);
}

/* All have said that they took 4 steps; what a worker tells of it may be held back by one that is
 * gone already. */
static void what_is_finished_is_committed(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 0);
    struct cursor cursor = {.stream = 1};
    consumed(s, 1, 4, 0, cursor, 0);
    consumed(s, 2, 4, 0, cursor, 0);
    consumed(s, 2, 4, 2, cursor, 2);
    consumed(s, 1, 4, 4, cursor, 4);
    finished(s, 1, 1, 0, 4);
    script_skip(s);
    finished(s, 2, 1, 1, 4);
    expect_output(s, "record job 1: stream 1 epoch 0 consumed 40 in 4 steps\n"
                     "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    script_close(s);
}

/* Rule 18: the finished chief has no report of the others' positions. */
static void a_part_waits_for_those_that_are_behind(void **state)
{
    (void)state;
    struct script *s = stage_running(&elastic, 2, 4);
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 3);
    part(s, 1, 1, 0, 4, "checkpoint-4.json");
    finished(s, 1, 1, 0, 4);
    expect_output(s, "");
    arrived(s, 2, 1, 1, 4, 4);
    expect_output(s, "record! job 1: checkpoint at 4 in checkpoint-4.json\n"
                     "tell job 1: release g1 to 4\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumption_are_recorded_when_committed),
        cmocka_unit_test(consumption_are_recorded_when_all_begin_again),
        cmocka_unit_test(a_joiner_receives_that_its_stream_is_over),
        cmocka_unit_test(a_joiner_in_vain_does_not_keep_a_job),
        cmocka_unit_test(what_only_the_dead_had_consumed_is_not_recorded),
        cmocka_unit_test(a_plan_holds_what_was_consumed_before_it),
        cmocka_unit_test(a_plan_holds_many_short_epochs),
        cmocka_unit_test(what_an_epoch_consumed_moves_no_member),
        cmocka_unit_test(a_checkpoint_holds_what_was_consumed_before_it),
        cmocka_unit_test(what_is_undone_is_not_consumed),
        cmocka_unit_test(a_run_that_returns_to_its_epoch_has_its_own_record),
        cmocka_unit_test(parts_of_an_older_plan_are_dropped),
        cmocka_unit_test(what_is_finished_is_committed),
        cmocka_unit_test(a_part_waits_for_those_that_are_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
