/* SPDX-License-Identifier: Apache-2.0
 * What is concluded from traces that were made so that the answer is known. */
#include "tests/lib/test.h"

#include <math.h>
#include <string.h>

#include "tests/unit/trace/made_trace.h"

struct concluded {
    struct trace_store store;
    struct trace_conclusion conclusion;
    char sentence[TRACE_SENTENCE_BYTES];
};

static void conclude_store(struct concluded *made)
{
    assert_true(trace_waits(&made->store));
    assert_true(trace_conclude(&made->store, &made->conclusion));
    trace_sentence(&made->store, &made->conclusion, made->sentence);
}

static void conclude(
    struct concluded *made, const struct made_task *tasks, uint32_t count, bool knows)
{
    *made = (struct concluded){0};
    made_trace(&made->store, tasks, count, 8, knows);
    conclude_store(made);
}

static void concluded_free(struct concluded *made)
{
    trace_conclusion_free(&made->conclusion);
    trace_store_free(&made->store);
}

static void assert_share(double share, double wanted)
{
    if (fabs(share - wanted) > 0.01) {
        fail_msg("the share is %g, not %g", share, wanted);
    }
}

static void assert_says(const struct concluded *made, const char *begin)
{
    if (strncmp(made->sentence, begin, strlen(begin)) != 0) {
        fail_msg("it says: %s", made->sentence);
    }
}

/* Steps of 2000 us, 1000 of which the others wait; whatever the clocks of the hosts are, and
 * whether or not the mesh knows when all had come. */
static void who_is_waited_for_is_named_with_the_cause(void **state)
{
    (void)state;
    static const struct {
        struct made_task slow;
        const char *says;
        enum trace_split cause;
    } cases[] = {
        {{.input_us = 1400, .function_us = 500}, "50% of a step is waiting for task 2, whose input",
            TRACE_SPLIT_INPUT},
        {{.input_us = 400, .function_us = 1500}, "50% of a step is waiting for task 2, whose func",
            TRACE_SPLIT_FUNCTION},
        {{.input_us = 400, .checkpoint_us = 1000, .function_us = 500},
            "50% of a step is waiting for task 2, which saves", TRACE_SPLIT_CHECKPOINT},
        {{.between_us = 1000, .input_us = 400, .function_us = 500},
            "50% of a step is waiting for task 2, whose program", TRACE_SPLIT_PROGRAM},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const struct made_task quick = {.input_us = 400, .function_us = 500};
        struct made_task tasks[] = {quick, quick, cases[i / 2].slow};
        struct concluded made;
        tasks[1].ahead_us = i % 2 * 420000000; /* seven minutes */
        conclude(&made, tasks, 3, i % 2 == 0);
        assert_says(&made, cases[i / 2].says);
        assert_int_equal(made.conclusion.slowest, 2);
        assert_share(made.conclusion.shares[2].awaited, 0.5);
        assert_share(made.conclusion.split[TRACE_SPLIT_WAIT], 0.5); /* the same basis */
        assert_non_null(strstr(made.sentence, ". A step takes the others 2 ms: 50% waiting for "
                                              "other tasks, 25% function, 20% input"));
        assert_share(made.conclusion.shares[0].awaited, 0);
        assert_share(made.conclusion.shares[0].split[TRACE_SPLIT_WAIT], 0.5);
        assert_share(made.conclusion.shares[0].split[TRACE_SPLIT_INPUT], 0.2);
        assert_share(made.conclusion.shares[0].split[TRACE_SPLIT_FUNCTION], 0.25);
        assert_share(made.conclusion.shares[1].split[TRACE_SPLIT_TRANSFER], 0.05);
        assert_true(made.conclusion.shares[2].longer[cases[i / 2].cause] > 0.9);
        assert_int_equal(made.conclusion.steps, 8);
        assert_share(made.conclusion.step_us, 2000);
        concluded_free(&made);
    }
}

static void where_no_task_is_slow_none_is_named(void **state)
{
    (void)state;
    const struct made_task even[] = {
        {.input_us = 100, .function_us = 800}, {.input_us = 100, .function_us = 800}};
    const struct made_task alone = {.input_us = 800, .function_us = 100};
    struct concluded made;
    conclude(&made, even, 2, true);
    assert_says(&made, "A step takes 1 ms: 80% function, 10% input, 10% collectives.");
    concluded_free(&made);
    conclude(&made, &alone, 1, true);
    assert_says(&made, "80% of a step is waiting for input, in all tasks. A step takes 1 ms:");
    concluded_free(&made);
}

/* One long step, as one with a checkpoint, says nothing about the others: it is named apart. */
static void a_step_unlike_the_others_is_named_apart(void **state)
{
    (void)state;
    struct concluded made = {0};
    const struct made_task tasks[] = {{.function_us = 900}, {.function_us = 900}};
    made_trace(&made.store, tasks, 2, 8, true);
    for (size_t i = 0; i < made.store.span_count; i++) { /* the last step is a second longer */
        struct stored_span *span = &made.store.spans[i];
        if (span->process == 1 && span->step == 7 && span->kind == CADRE_TRACE_ALL_REDUCE) {
            span->begin_ns += 1000000000;
        }
        if (span->step == 7 && span->kind != CADRE_TRACE_INPUT) {
            span->end_ns += 1000000000;
            span->arrived_ns += span->arrived_ns > 0 ? 1000000000 : 0;
        }
    }
    conclude_store(&made);
    assert_int_equal(made.conclusion.counted, 4);
    assert_share(made.conclusion.step_us, 1000);
    assert_says(&made, "A step takes 1 ms: 90% function, 10% collectives. Step 7 took 1 s, 100% of "
                       "it waiting for task 1.");
    concluded_free(&made);
}

/* The release of a step comes when the last task has its batch. */
static void a_wait_for_the_release_is_for_the_last_batch(void **state)
{
    (void)state;
    struct concluded made = {0};
    cadre_trace_span spans[2][2] = {
        {{.kind = CADRE_TRACE_INPUT, .begin_ns = 1000, .end_ns = 2000},
            {.kind = CADRE_TRACE_RELEASE, .begin_ns = 2000, .end_ns = 11000}},
        {{.kind = CADRE_TRACE_INPUT, .begin_ns = 1000, .end_ns = 10000},
            {.kind = CADRE_TRACE_RELEASE, .begin_ns = 10000, .end_ns = 11000}}};
    for (uint32_t i = 0; i < 2; i++) {
        const cadre_trace_task task = {.task = i, .incarnation = 1, .worker = "w"};
        const cadre_trace piece = {.end = 1,
            .tasks = &task,
            .task_count = 1,
            .task = i,
            .incarnation = 1,
            .spans = spans[i],
            .span_count = 2,
            .message = ""};
        assert_true(trace_store_add(&made.store, &piece));
    }
    trace_store_align(&made.store);
    conclude_store(&made);
    assert_says(&made, "80% of a step is waiting for task 1, whose input is slow.");
    assert_share(made.conclusion.shares[0].split[TRACE_SPLIT_RELEASE], 0.1);
    assert_share(made.conclusion.shares[0].split[TRACE_SPLIT_WAIT], 0.8);
    concluded_free(&made);
}

static void add_span(struct trace_store *store, uint32_t task, cadre_trace_kind kind, uint64_t step,
    uint64_t begin_ns, uint64_t end_ns)
{
    const cadre_trace_span span = {
        .kind = kind, .step = step, .begin_ns = begin_ns, .end_ns = end_ns};
    const cadre_trace_task about = {.task = task, .incarnation = 1, .worker = "w"};
    const cadre_trace piece = {.end = 100,
        .tasks = &about,
        .task_count = 1,
        .task = task,
        .incarnation = 1,
        .spans = &span,
        .span_count = 1,
        .message = ""};
    assert_true(trace_store_add(store, &piece));
}

/* Steps of 20 us: worker 1 has a closure for `quick_ns`, worker 2 for `slow_ns`, then the chief
 * goes on in its program. */
static void of_closures(struct concluded *made, uint64_t quick_ns, uint64_t slow_ns)
{
    *made = (struct concluded){0};
    for (uint64_t step = 0; step < 8; step++) {
        uint64_t at_ns = 1000000 + step * 20000;
        add_span(&made->store, 0, CADRE_TRACE_SCHEDULE, step, at_ns, at_ns + 10);
        add_span(&made->store, 0, CADRE_TRACE_WAIT, step, at_ns + 10, at_ns + slow_ns);
        add_span(&made->store, 0, CADRE_TRACE_FUNCTION, step, at_ns + slow_ns, at_ns + slow_ns + 9);
        for (uint32_t worker = 1; worker <= 2; worker++) {
            uint64_t end_ns = at_ns + (worker == 1 ? quick_ns : slow_ns);
            add_span(&made->store, worker, CADRE_TRACE_FUNCTION, step, at_ns, end_ns);
            add_span(&made->store, worker, CADRE_TRACE_PUSH, step, end_ns - 1000, end_ns);
            add_span(&made->store, worker, CADRE_TRACE_WAIT, step, end_ns, at_ns + 20000);
        }
    }
    trace_store_align(&made->store);
    conclude_store(made);
}

static void workers_wait_for_a_worker_or_for_the_chief(void **state)
{
    (void)state;
    struct concluded made;
    of_closures(&made, 5000, 19000);
    assert_says(&made, "70% of a step is waiting for task 2, whose function takes longer.");
    assert_share(made.conclusion.shares[1].split[TRACE_SPLIT_PUSH], 0.05);
    assert_share(made.conclusion.shares[1].split[TRACE_SPLIT_FUNCTION], 0.2);
    assert_share(made.conclusion.shares[0].awaited, 0.02); /* from 19 to 20 us, by task 2 */
    concluded_free(&made);
    of_closures(&made, 5000, 6000);
    assert_says(&made, "73% of a step is waiting for task 0, whose program does other things");
    assert_share(made.conclusion.split[TRACE_SPLIT_WAIT], 0.73);
    assert_share(made.conclusion.split[TRACE_SPLIT_CLOSURES], 0);
    concluded_free(&made);
}

static void of_nothing_nothing_is_concluded(void **state)
{
    (void)state;
    struct concluded made = {0};
    trace_store_align(&made.store);
    conclude_store(&made);
    assert_says(&made, "No step was recorded.");
    assert_int_equal(made.conclusion.slowest, TRACE_NO_PROCESS);
    concluded_free(&made);
}

/* Spans of any numbers, as a coordinator of another version or a damaged one might send them. */
static void any_spans_are_taken(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct concluded made = {0};
        for (uint64_t i = 0; i < 200; i++) {
            uint64_t mixed = (seed * 200 + i) * UINT64_C(0x9e3779b97f4a7c15);
            uint64_t begin_ns = mixed >> 40;
            const cadre_trace_span span = {.kind = (uint32_t)(mixed % 19),
                .thread = (uint32_t)(mixed >> 8) % 5,
                .replica = (uint32_t)(mixed >> 12) % 3,
                .step = (mixed >> 16) % 6,
                .begin_ns = begin_ns,
                .end_ns = begin_ns + (mixed >> 20) % 100000,
                .arrived_ns = i % 3 == 0 ? begin_ns + 5 : 0,
                .match = i % 4};
            const cadre_trace piece = {.end = 6,
                .task = (uint32_t)(i % 3),
                .incarnation = 1,
                .spans = &span,
                .span_count = 1,
                .message = ""};
            assert_true(trace_store_add(&made.store, &piece));
        }
        trace_store_align(&made.store);
        conclude_store(&made);
        double sum = 0;
        for (int part = 0; part < TRACE_SPLITS; part++) {
            assert_true(made.conclusion.split[part] >= 0);
            sum += made.conclusion.split[part];
        }
        assert_share(sum, 1);
        assert_true(made.sentence[0] != '\0');
        concluded_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_waited_for_is_named_with_the_cause),
        cmocka_unit_test(where_no_task_is_slow_none_is_named),
        cmocka_unit_test(a_step_unlike_the_others_is_named_apart),
        cmocka_unit_test(a_wait_for_the_release_is_for_the_last_batch),
        cmocka_unit_test(workers_wait_for_a_worker_or_for_the_chief),
        cmocka_unit_test(of_nothing_nothing_is_concluded),
        cmocka_unit_test(any_spans_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
