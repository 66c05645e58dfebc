/* SPDX-License-Identifier: Apache-2.0
 * The step barrier and the timeline: which task holds a release back, and which claims do not fit
 * together. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

static void the_least_arrival_is_released(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    arrived(s, 1, 1, 1, 2, 0);
    expect_output(s, "");
    arrived(s, 2, 1, 1, 4, 0);
    expect_output(s, "record job 1: released to 2, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 2\n");
    arrived(s, 2, 1, 1, 4, 2); /* applied two, ready for no more */
    expect_output(s, "");
    arrived(s, 1, 1, 1, 3, 1);
    expect_output(s, "record job 1: released to 3, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 3\n");
    assert_int_equal(job_view(s, 1).released, 3);
    assert_int_equal(job_view(s, 1).committed, 1);
    arrived(s, 1, 1, 1, 2, 1); /* an old one changes nothing */
    expect_output(s, "");
    script_close(s);
}

static void many_workers_one_release_a_round(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (uint64_t w = 0; w < 5; w++) {
        join(s, w + 1, names[w], 2);
    }
    submit(s, 0, 10, 0);
    for (uint32_t slot = 0; slot < 10; slot++) {
        started(s, slot / 2 + 1, 1, slot);
        task_hello(s, slot / 2 + 1, 1, slot, 0);
    }
    script_skip(s);
    for (uint64_t round = 1; round <= 20; round++) {
        for (uint64_t w = 5; w > 0; w--) {
            expect_output(s, "");
            arrived(s, w, 1, 2, round, round - 1);
        }
        assert_int_equal(job_view(s, 1).released, round);
        assert_int_equal(job_view(s, 1).committed, round - 1);
        script_skip(s);
    }
    arrived(s, 1, 1, 1, 21, 20); /* it counts one of its two members: not counted */
    for (uint64_t w = 2; w <= 5; w++) {
        arrived(s, w, 1, 2, 21, 20);
    }
    expect_output(s, "");
    script_close(s);
}

static void other_generations_and_unknown_tasks_are_dropped(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    join(s, 3, "c", 1);
    script_skip(s);
    struct agent_up message = {.type = AGENT_UP_ARRIVED,
        .arrived = {.job = {1}, .generation = {.number = 1, .nonce = 3}, .tasks = 1, .up_to = 9}};
    struct core_event event = {.type = CORE_EVENT_AGENT_UP, .agent = {.link = {1}, .up = &message}};
    step(s, &event);
    event.agent.link.n = 2;
    step(s, &event);
    arrived(s, 3, 1, 1, 9, 0);
    arrived(s, 3, 1, 0, 9, 0);
    arrived(s, 1, 8, 1, 9, 0);
    expect_output(s, "");
    script_close(s);
}

static void the_impossible_fails_the_job(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    arrived(s, 1, 1, 1, 9, 5);
    expect_output(s,
        "tell job 1: abort g1: worker a says that its tasks applied 5 steps, are ready for 9 "
        "and want 0, but only 4 were released\n"
        "stop job 1\n");
    script_close(s);
    s = stage_released(4);
    arrived(s, 1, 1, 1, 4 + LIMIT_WINDOW_STEPS, 4);
    expect_output(s, "");
    arrived(s, 1, 1, 1, 5 + LIMIT_WINDOW_STEPS, 4);
    expect_output(s,
        "tell job 1: abort g1: worker a says that its tasks applied 4 steps, are ready for 1029 "
        "and want 0, but only 4 were released\n"
        "stop job 1\n");
    script_close(s);
    s = stage_released(4);
    wants(s, 1, 1, 0, 5);
    expect_output(s, "");
    wants(s, 1, 1, 0, 6);
    expect_output(s,
        "tell job 1: abort g1: worker a says that its tasks applied 0 steps, are ready for 0 "
        "and want 6, but only 4 were released\n"
        "stop job 1\n");
    script_close(s);
    s = stage_released(4);
    /* It has halted at the first step of a run. */
    arrived_at(s, 1, 1, 1, 6, 4, (struct cursor){.stream = 1, .first = 6, .begin = 6});
    expect_output(s, "");
    arrived_at(s, 1, 1, 1, 6, 4, (struct cursor){.stream = 1, .first = 7, .begin = 7});
    expect_output(s,
        "tell job 1: abort g1: worker a is ready for position 5 and stands behind position 7, "
        "which is outside its epoch of stream 1: it begins at 7 and has 0 steps\n"
        "stop job 1\n");
    script_close(s);
    s = stage_released(4);
    arrived_at(s, 1, 1, 1, 6, 4, (struct cursor){.stream = 1, .begin = 5, .steps = 5});
    expect_output(s,
        "tell job 1: abort g1: worker a is ready for position 5 and stands behind position 5, "
        "which is outside its epoch of stream 1: it begins at 0 and has 5 steps\n"
        "stop job 1\n");
    script_close(s);
}

static void the_end_of_data_is_recorded_once(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    const struct cursor train = {.stream = 1, .epoch = 0, .first = 0, .begin = 0, .steps = 3};
    const struct cursor test = {.stream = 2, .epoch = 0, .first = 3, .begin = 3, .steps = 2};
    const struct cursor bare = {.stream = 0, .epoch = 0, .first = 5, .begin = 5, .steps = 1};
    arrived_at(s, 1, 1, 1, 3, 0, train);
    arrived_at(s, 2, 1, 1, 2, 0, train);
    arrived_at(s, 2, 1, 1, 5, 2, test);
    arrived_at(s, 1, 1, 1, 4, 2, test);
    expect_output(s, "record job 1: stream 1 epoch 0 has 3 steps\n"
                     "record job 1: released to 2, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 2\n"
                     "record job 1: stream 2 epoch 0 has 2 steps\n"
                     "record job 1: released to 3, stream 1 epoch 0 from 0\n"
                     "tell job 1: release g1 to 3\n"
                     "record job 1: released to 4, stream 2 epoch 0 from 3\n"
                     "tell job 1: release g1 to 4\n");
    arrived_at(s, 1, 1, 1, 6, 4, bare);
    arrived_at(s, 2, 1, 1, 6, 4, bare);
    expect_output(s, "record job 1: released to 5, stream 2 epoch 0 from 3\n"
                     "tell job 1: release g1 to 5\n"
                     "record job 1: released to 6, stream 0 epoch 0 from 5\n"
                     "tell job 1: release g1 to 6\n");
    script_close(s);
}

static void different_streams_at_one_position_fail(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    arrived_at(s, 1, 1, 1, 6, 0, (struct cursor){.stream = 1});
    arrived_at(s, 2, 1, 1, 6, 0, (struct cursor){.stream = 2});
    expect_output(s,
        "tell job 1: abort g1: at position 0, worker a is at step 0 of stream 1, epoch 0 and "
        "worker b is at step 0 of stream 2, epoch 0: the programs took different paths\n"
        "stop job 1\n");
    script_close(s);
    /* Different lengths of one epoch. */
    s = stage_joined();
    arrived_at(s, 1, 1, 1, 6, 0, (struct cursor){.stream = 1, .steps = 8});
    script_skip(s);
    arrived_at(s, 2, 1, 1, 6, 0, (struct cursor){.stream = 1, .steps = 9});
    expect_output(s,
        "tell job 1: abort g1: at position 0, worker a is at step 0 of stream 1, epoch 0 of 8 "
        "steps and worker b is at step 0 of stream 1, epoch 0 of 9 steps: the programs took "
        "different paths\n"
        "stop job 1\n");
    script_close(s);
}

static void leaving_an_epoch_early_is_allowed_together(void **state)
{
    (void)state;
    struct script *s = stage_released(8);
    const struct cursor test = {.stream = 2, .epoch = 0, .first = 3, .begin = 3};
    arrived_at(s, 1, 1, 1, 9, 3, test);
    expect_output(s, "");
    arrived(s, 2, 1, 1, 8, 3); /* not there yet */
    arrived_at(s, 2, 1, 1, 9, 3, test);
    expect_output(s, "record job 1: released to 9, stream 2 epoch 0 from 3\n"
                     "tell job 1: release g1 to 9\n");
    script_close(s);
    /* But not alone: one applied step 3 as training, the other as testing. */
    s = stage_released(8);
    arrived_at(s, 1, 1, 1, 9, 3, test);
    arrived(s, 2, 1, 1, 8, 4);
    expect_output(s,
        "tell job 1: abort g1: at position 3, worker a is at step 0 of stream 2, epoch 0 and "
        "worker b is at step 3 of stream 1, epoch 0: the programs took different paths\n"
        "stop job 1\n");
    script_close(s);
    s = stage_released(8);
    arrived(s, 2, 1, 1, 8, 4);
    arrived_at(s, 1, 1, 1, 9, 3, test);
    expect_output(s,
        "tell job 1: abort g1: at position 3, worker b is at step 3 of stream 1, epoch 0 and "
        "worker a is at step 0 of stream 2, epoch 0: the programs took different paths\n"
        "stop job 1\n");
    script_close(s);
}

#define DESERTED                                                                                   \
    "tell job 1: abort g1: task 1 on worker b waits for step 5, but task 0 on worker a called "    \
    "cadre_finish after 4 steps: all tasks must take the same steps\n"                             \
    "stop job 1\n"

static void who_waits_for_a_finished_task_is_reported(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    finished(s, 1, 1, 0, 4);
    wants(s, 2, 1, 1, 4); /* its last step: about to finish too */
    expect_output(s, "");
    wants(s, 2, 1, 1, 5);
    expect_output(s, DESERTED);
    script_close(s);
    /* The wait is known first. */
    s = stage_released(4);
    wants(s, 2, 1, 1, 5);
    expect_output(s, "");
    finished(s, 1, 1, 0, 4);
    expect_output(s, DESERTED);
    script_close(s);
    /* A step that was released already: the finished one never enters it. */
    s = stage_released(5);
    wants(s, 2, 1, 1, 5);
    finished(s, 1, 1, 0, 4);
    expect_output(s, DESERTED);
    script_close(s);
    /* It names a task of another worker: dropped. */
    s = stage_released(4);
    wants(s, 2, 1, 0, 5);
    finished(s, 1, 1, 0, 4);
    expect_output(s, "");
    script_close(s);
}

/* The steps of a short epoch were all admitted as part of the one that was left: it is known when
 * its tasks have begun it. */
static void a_short_epoch_within_what_was_admitted_is_recorded(void **state)
{
    (void)state;
    struct script *s = stage_released(8);
    const struct cursor test = {.stream = 2, .first = 3, .begin = 3, .steps = 1};
    const struct cursor other = {.stream = 2, .first = 3, .begin = 3, .steps = 2};
    const struct cursor back = {.stream = 1, .first = 1, .begin = 4, .steps = 20};
    arrived_at(s, 1, 1, 1, 8, 3, test);
    expect_output(s, "record job 1: stream 2 epoch 0 has 1 steps\n");
    arrived_at(s, 2, 1, 1, 8, 3, test);
    arrived_at(s, 1, 1, 1, 8, 4, back); /* the epoch that was left is gone on with */
    arrived_at(s, 2, 1, 1, 8, 4, back);
    expect_output(s, "record job 1: stream 1 epoch 0 has 20 steps\n");
    arrived_at(s, 1, 1, 1, 10, 5, back);
    arrived_at(s, 2, 1, 1, 10, 5, back);
    expect_output(s, "record job 1: released to 10, stream 1 epoch 0 from 1\n"
                     "tell job 1: release g1 to 10\n");
    script_close(s);
    /* Others are in a different epoch there: reported, although the positions were admitted. */
    s = stage_released(8);
    arrived_at(s, 1, 1, 1, 8, 3, test);
    script_skip(s);
    arrived_at(s, 2, 1, 1, 8, 3, other);
    expect_output(s,
        "tell job 1: abort g1: at position 3, worker a is at step 0 of stream 2, epoch 0 of 1 "
        "steps and worker b is at step 0 of stream 2, epoch 0 of 2 steps: the programs took "
        "different paths\n"
        "stop job 1\n");
    script_close(s);
}

/* Two datasets by turns: a run for each step, one record for each epoch. */
static void datasets_by_turns_fit(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    for (uint64_t p = 0; p < 1000; p++) {
        struct cursor c = {.stream = 1 + p % 2, .first = p - p / 2, .begin = p, .steps = 500};
        uint64_t up_to = p + 8 < c.first + 500 ? p + 8 : c.first + 500;
        arrived_at(s, 1, 1, 1, up_to > p ? up_to : p + 1, p, c);
        arrived_at(s, 2, 1, 1, up_to > p ? up_to : p + 1, p, c);
        if (p > 1) {
            assert_null(strstr(s->transcript, "record!"));
        }
        script_skip(s);
        assert_true(job_view(s, 1).released > p);
    }
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    script_close(s);
}

/* In a job of one task a step may fail and come to nothing; the program goes on elsewhere. */
static void a_run_that_came_to_nothing_is_replaced(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    arrived_at(s, 1, 1, 1, 6, 4, (struct cursor){.stream = 1, .first = 4, .begin = 4});
    arrived_at(s, 1, 1, 1, 6, 4, (struct cursor){.stream = 2, .first = 4, .begin = 4});
    expect_output(s, "");
    arrived_at(s, 1, 1, 1, 6, 4, (struct cursor){.stream = 2, .first = 4, .begin = 4});
    arrived_at(s, 2, 1, 1, 5, 4, (struct cursor){.stream = 2, .first = 4, .begin = 4});
    expect_output(s, "record job 1: released to 5, stream 2 epoch 0 from 4\n"
                     "tell job 1: release g1 to 5\n");
    script_close(s);
}

static void a_timeline_of_short_epochs_fits(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    enum { EPOCHS = 2 * LIMIT_WINDOW_STEPS };
    for (uint64_t p = 0; p < EPOCHS; p++) {
        struct cursor c = {.stream = 1 + p % 2, .epoch = p / 2, .first = p, .begin = p};
        arrived_at(s, 1, 1, 1, p + 1, p < LIMIT_WINDOW_STEPS ? 0 : p - LIMIT_WINDOW_STEPS, c);
        if (p + 1 >= LIMIT_WINDOW_STEPS) { /* the other one follows at the window's width */
            uint64_t q = p + 1 - LIMIT_WINDOW_STEPS;
            c = (struct cursor){.stream = 1 + q % 2, .epoch = q / 2, .first = q, .begin = q};
            arrived_at(s, 2, 1, 1, q + 1, q, c);
        }
        script_skip(s);
    }
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_int_equal(job_view(s, 1).released, EPOCHS - LIMIT_WINDOW_STEPS + 1);
    script_close(s);
}

/* A length that is known is recorded once, however many datasets take turns: it costs a row. */
static void lengths_are_recorded_once(void **state)
{
    (void)state;
    struct script *s = stage_joined();
    for (uint64_t at = 0; at < 6; at++) {
        struct cursor cursor = {
            .stream = at % 2 == 0 ? 1 : 9, .first = at, .begin = at, .steps = 5};
        arrived_at(s, 1, 1, 1, at + 1, at, cursor);
        bool recorded = strstr(s->transcript, " has 5 steps") != NULL;
        assert_int_equal(recorded, at < 2);
        arrived_at(s, 2, 1, 1, at + 1, at, cursor);
        script_skip(s);
    }
    script_close(s);
}

/* A daemon whose link was away sends what such an epoch consumed, and claims nothing of it. */
static void a_length_whose_claim_was_lost_is_recorded(void **state)
{
    (void)state;
    struct script *s = stage_released(4);
    struct cursor over = {.stream = 3, .epoch = 2, .first = 3, .begin = 4, .steps = 1};
    arrived_at(s, 1, 1, 1, 4, 4, over);
    expect_output(s, "record job 1: stream 3 epoch 2 has 1 steps\n");
    arrived_at(s, 1, 1, 1, 4, 4, over);
    over.epoch = 1; /* the newest of a stream is what counts */
    arrived_at(s, 2, 1, 1, 4, 4, over);
    expect_output(s, "");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_arrival_is_released),
        cmocka_unit_test(many_workers_one_release_a_round),
        cmocka_unit_test(other_generations_and_unknown_tasks_are_dropped),
        cmocka_unit_test(the_impossible_fails_the_job),
        cmocka_unit_test(the_end_of_data_is_recorded_once),
        cmocka_unit_test(different_streams_at_one_position_fail),
        cmocka_unit_test(leaving_an_epoch_early_is_allowed_together),
        cmocka_unit_test(who_waits_for_a_finished_task_is_reported),
        cmocka_unit_test(a_short_epoch_within_what_was_admitted_is_recorded),
        cmocka_unit_test(datasets_by_turns_fit),
        cmocka_unit_test(a_run_that_came_to_nothing_is_replaced),
        cmocka_unit_test(a_timeline_of_short_epochs_fits),
        cmocka_unit_test(lengths_are_recorded_once),
        cmocka_unit_test(a_length_whose_claim_was_lost_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
