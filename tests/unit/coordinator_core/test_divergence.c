/* SPDX-License-Identifier: Apache-2.0
 * Replicas at one position with different states: which task finds it, which is named, and that
 * all begin again, once; what comes again is the program's fault. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

#define A UINT64_C(0xaa)
#define B UINT64_C(0xbb)
#define C UINT64_C(0xcc)

static const struct core_job_spec three = {.tasks = 3, .tasks_min = 3, .max_restarts = 2};

/* Three tasks on "a", "b", "c", and a worker "d" without one. 8 steps are released, 6 applied; 4
 * are published and verified. */
static struct script *stage_three(uint32_t max_restarts)
{
    struct core_job_spec spec = three;
    spec.max_restarts = max_restarts;
    struct script *s = stage_running(&spec, 4, 8);
    for (uint32_t link = 1; link <= 3; link++) {
        compared(s, link, 1, 1, 8, 6, (struct verified){.position = 4, .digest = A});
    }
    part_of(s, 1, 1, 0, 4, "four", A);
    assert_int_equal(job_view(s, 1).checkpoint.position, 4);
    script_skip(s);
    return s;
}

/* All are ended, collected, placed and planned again, and released up to `up_to`. */
static void begin_again(struct script *s, uint64_t up_to)
{
    uint64_t links[3];
    for (uint32_t slot = 0; slot < 3; slot++) {
        links[slot] = link_of(s, slot);
        gone(s, links[slot], 1, slot, 0, 15, "");
    }
    for (uint32_t slot = 0; slot < 3; slot++) {
        collected(s, links[slot], 1, slot);
    }
    wait_us(s, SECOND); /* those that come to nothing are spaced out */
    for (uint32_t slot = 0; slot < 3; slot++) {
        task_hello(s, link_of(s, slot), 1, slot, 0);
    }
    uint64_t from = job_view(s, 1).resume;
    for (uint32_t slot = 0; slot < 3; slot++) {
        arrived_at(s, link_of(s, slot), 1, 1, up_to, from, (struct cursor){.stream = 1});
    }
    script_skip(s);
}

static const struct divergence at_6 = {
    .position = 6, .verified = 4, .culprits = {1}, .culprit_count = 1};

/* The others lost their peers; all report. */
static void all_freeze(struct script *s, uint64_t position)
{
    for (uint32_t slot = 0; slot < 3; slot++) {
        frozen(s, link_of(s, slot), 1, slot, position, 1);
    }
}

static void all_begin_again_from_the_checkpoint(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    diverged(s, 3, 1, 2, at_6, "`w` differs on replica 1");
    expect_output(s,
        "record! worker b is the culprit 1\n"
        "record! job 1: differs at 6 in g1\n"
        "tell job 1: abort g1: task 1 on worker b has another state than most replicas after 6 "
        "steps: `w` differs on replica 1\n");
    diverged(s, 1, 1, 0, at_6, "another text");
    diverged(s, 2, 1, 1, at_6, "another text");
    expect_output(s, "tell task 1/2#3 on link 3: reset\n"
                     "stop task 1/2#3 on link 3\n"
                     "tell task 1/1#2 on link 2: reset\n"
                     "stop task 1/1#2 on link 2\n"
                     "tell task 1/0#1 on link 1: reset\n"
                     "stop task 1/0#1 on link 1\n");
    begin_again(s, 12);
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b has another state than most replicas after 6 steps: `w` differs on "
        "replica 1; all tasks began again from the checkpoint of step 4");
    struct core_job_view view = job_view(s, 1);
    assert_int_equal(view.generation.number, 2);
    assert_int_equal(view.resume, 4);
    assert_int_equal(view.restarts, 1);
    assert_true(view.verified.position == 4 && view.verified.digest == A);
    script_close(s);
}

/* Its collective failed on a member that had found nothing. */
static void what_is_reported_after_lost_peers_counts(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    peer_error(s, 1, 1, 0, 6);
    peer_error(s, 2, 1, 1, 6);
    script_skip(s);
    diverged(s, 3, 1, 2, at_6, "x");
    assert_int_equal(job_view(s, 1).restarts, 1);
    assert_int_equal(job_view(s, 1).formed, 0);
    begin_again(s, 12);
    assert_int_equal(job_view(s, 1).resume, 4);
    script_close(s);
}

/* No state of the generation is gone on from, also where a member dies meanwhile. */
static void a_death_on_top_of_it_is_one_failure(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    diverged(s, 3, 1, 2, at_6, "x");
    gone(s, 2, 1, 1, 0, 9, "");
    assert_int_equal(job_view(s, 1).restarts, 1);
    all_freeze(s, 6);
    assert_int_equal(job_view(s, 1).formed, 0);
    script_close(s);
}

static void what_may_not_be_restarted_fails(void **state)
{
    (void)state;
    struct script *s = stage_three(0);
    diverged(s, 3, 1, 2, at_6, "x");
    expect_output(s,
        "record! worker b is the culprit 1\n"
        "record! job 1: differs at 6 in g1\n"
        "tell job 1: abort g1: task 1 on worker b has another state than most replicas after 6 "
        "steps: x\n"
        "stop job 1\n");
    assert_string_equal(script_job_text(s, 1),
        "task 1 on worker b has another state than most replicas after 6 steps: x");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

static void the_same_again_is_the_programs_fault(void **state)
{
    (void)state;
    const struct divergence again[] = {
        {.position = 6, .verified = 4}, {.position = 5, .verified = 4}, /* the same range */
        {.position = 4, .verified = 4},                                 /* at once */
        {.position = 11, .verified = 4}, /* farther, and nothing in between is verified */
    };
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        struct script *s = stage_three(9);
        diverged(s, 3, 1, 2, at_6, "x");
        all_freeze(s, 6);
        begin_again(s, 12);
        diverged(s, link_of(s, 1), 1, 1, again[i], "y");
        assert_int_equal(job_view(s, 1).state, JOB_ENDING);
        assert_int_equal(job_view(s, 1).restarts, 1);
        const char *text = script_job_text(s, 1);
        assert_non_null(strstr(text, "the replicas have different states after "));
        assert_non_null(strstr(text,
            ", and it is not known which is right; so it was before, after 6 steps, and nothing "
            "later was found equal: the step function writes what is no function of the step and "
            "its samples: look for an uninitialised value, a sum over local rows, a clock, rand(), "
            "a "
            "thread: y"));
        script_close(s);
    }
}

/* Where a program is at fault, its machine is not. */
static void a_wrong_program_drains_no_worker(void **state)
{
    (void)state;
    struct script *s = stage_three(9);
    const struct divergence one = {
        .position = 6, .verified = 4, .culprits = {1}, .culprit_count = 1};
    diverged(s, 3, 1, 2, one, "x");
    all_freeze(s, 6);
    begin_again(s, 12);
    assert_int_equal(link_of(s, 1), 2); /* on worker b, as before */
    diverged(s, link_of(s, 0), 1, 0, one, "y");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    assert_null(core_drain_of(s->core, "b"));
    script_close(s);
}

static void another_one_behind_it_is_another_failure(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    diverged(s, 3, 1, 2, at_6, "x");
    all_freeze(s, 6);
    begin_again(s, 12);
    compared(s, link_of(s, 0), 1, 1, 12, 8, (struct verified){.position = 7, .digest = B});
    diverged(s, link_of(s, 1), 1, 1, (struct divergence){.position = 9, .verified = 7}, "y");
    assert_int_equal(job_view(s, 1).restarts, 2);
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    all_freeze(s, 9);
    begin_again(s, 12);
    assert_int_equal(job_view(s, 1).resume, 4);
    /* Its arrival may be on its way; what it may not any more is a failure too many. */
    diverged(s, link_of(s, 1), 1, 1, (struct divergence){.position = 12, .verified = 10}, "z");
    assert_string_equal(script_job_text(s, 1),
        "the replicas have different states after 12 steps, and it is not known which is right: z; "
        "it was restarted 2 times before, as often as it may be (--max-restarts)");
    script_close(s);
}

static void a_worker_that_is_named_twice_is_drained(void **state)
{
    (void)state;
    struct script *s = stage_three(9);
    diverged(s, 3, 1, 2, at_6, "x");
    assert_null(core_drain_of(s->core, "b"));
    all_freeze(s, 6);
    begin_again(s, 12);
    uint32_t slot = 0;
    while (strcmp(task_view(s, slot).worker_name, "b") != 0) {
        slot++;
    }
    compared(s, link_of(s, 0), 1, 1, 12, 8, (struct verified){.position = 7, .digest = B});
    diverged(s, link_of(s, 0), 1, 0,
        (struct divergence){
            .position = 9, .verified = 7, .culprits = {slot, slot, 99}, .culprit_count = 3},
        "y");
    const struct core_drained *drained = core_drain_of(s->core, "b");
    assert_non_null(drained);
    assert_string_equal(drained->who, "the coordinator");
    assert_non_null(strstr(
        drained->why, "the state of a task on it was not that of the others, 2 times; last task "));
    assert_non_null(strstr(s->transcript, "record! worker b is drained\n"));
    all_freeze(s, 9);
    begin_again(s, 12);
    for (slot = 0; slot < 3; slot++) {
        assert_string_not_equal(task_view(s, slot).worker_name, "b");
    }
    script_close(s);
}

/* Three tasks on a, b and c in generation 2 from step 4, with what was recorded before. */
static struct script *stage_again(struct core_position diverged, uint32_t times)
{
    static const char *const names[] = {"a", "b", "c"};
    struct core_restore_task tasks[3];
    struct core_culprit culprit = {.worker = "b", .times = times};
    for (uint32_t i = 0; i < 3; i++) {
        tasks[i] = (struct core_restore_task){.slot = i, .incarnation = 1 + i, .rank = i};
        memcpy(tasks[i].worker, names[i], 2);
    }
    const struct core_restore_job restore = {.job = {1},
        .spec = {.tasks = 3, .tasks_min = 3, .max_restarts = 9},
        .started = true,
        .incarnation_max = 3,
        .generation = {.number = 2, .nonce = 77},
        .roster = 3,
        .resume = 4,
        .released = 12,
        .has_checkpoint = true,
        .checkpoint = {.position = 4, .digest = A, .path = "four"},
        .diverged = diverged,
        .tasks = tasks,
        .task_count = 3};
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_CULPRIT, .restore_culprit = culprit});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = restore});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    for (uint32_t i = 0; i < 3; i++) {
        const struct task_ref here = {.job = {1}, .slot = i, .incarnation = 1 + i};
        hello(s, i + 1, names[i], 5 + i, 1, &here, 1);
        task_hello(s, i + 1, 1, i, 2);
    }
    script_skip(s);
    return s;
}

/* Between the first time and the second the coordinator was started. */
static void what_differed_before_a_start_counts(void **state)
{
    (void)state;
    struct script *s = stage_again((struct core_position){.number = 1, .position = 6}, 1);
    diverged(s, 3, 1, 2, at_6, "x");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    assert_non_null(strstr(script_job_text(s, 1), "so it was before, after 6 steps"));
    script_close(s);
    s = stage_again((struct core_position){0}, 1);
    diverged(s, 3, 1, 2, at_6, "x");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_non_null(strstr(s->transcript, "record! worker b is the culprit 2\n"
                                          "record! worker b is drained\n"
                                          "record! job 1: differs at 6 in g2\n"));
    script_close(s);
}

/* Members report to each coordinator what they found: it counts once. */
static void what_is_resent_is_the_same(void **state)
{
    (void)state;
    struct script *s = stage_again((struct core_position){.number = 2, .position = 6}, 1);
    diverged(s, 3, 1, 2, at_6, "x");
    assert_int_equal(job_view(s, 1).state, JOB_RUNNING);
    assert_int_equal(job_view(s, 1).restarts, 1);
    assert_null(core_drain_of(s->core, "b"));
    assert_null(strstr(s->transcript, "culprit"));
    script_close(s);
}

/* A member that has not found it only reports its position. */
static void what_differed_before_a_start_is_void(void **state)
{
    (void)state;
    struct script *s = stage_again((struct core_position){.number = 2, .position = 6}, 1);
    assert_int_equal(job_view(s, 1).restarts, 1);
    for (uint32_t slot = 0; slot < 3; slot++) {
        peer_error(s, slot + 1, 1, slot, 6);
    }
    expect_output(s, "tell task 1/2#3 on link 3: reset\n"
                     "stop task 1/2#3 on link 3\n"
                     "tell task 1/1#2 on link 2: reset\n"
                     "stop task 1/1#2 on link 2\n"
                     "tell task 1/0#1 on link 1: reset\n"
                     "stop task 1/0#1 on link 1\n");
    assert_string_equal(script_job_text(s, 1),
        "the replicas have different states after 6 steps, and it is not known which is right: "
        "that was found before the coordinator was started again; waits for 3 more tasks (0 of 3 "
        "slots are free) for 0 s of at most 60 s");
    script_close(s);
}

static void what_no_task_can_have_found_fails(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    diverged(s, 3, 1, 2, (struct divergence){.position = 9}, "x");
    assert_string_equal(script_job_text(s, 1),
        "task 2 on worker c says that states differ after 9 steps, of which only 8 were released");
    script_close(s);
}

/* ---- those that stand at their end, or at a stop ---- */

static void ends_that_differ_are_no_end(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    finished_as(s, 1, 1, 0, 6, A);
    finished_as(s, 2, 1, 1, 6, A);
    expect_output(s, "");
    finished_as(s, 3, 1, 2, 6, B);
    assert_null(strstr(s->transcript, "bye"));
    assert_int_equal(job_view(s, 1).formed, 0);
    begin_again(s, 12);
    assert_string_equal(script_job_text(s, 1),
        "task 2 on worker c has another state than most replicas after 6 steps: the digests that "
        "they reported at their end differ; all tasks began again from the checkpoint of step 4");
    assert_int_equal(job_view(s, 1).resume, 4);
    assert_int_equal(job_view(s, 1).restarts, 1);
    for (uint32_t slot = 0; slot < 3; slot++) { /* and is, when they do not */
        arrived_at(s, link_of(s, slot), 1, 1, 12, 6, (struct cursor){.stream = 1});
        finished_as(s, link_of(s, slot), 1, slot, 6, A);
    }
    assert_non_null(strstr(s->transcript, "tell job 1: bye g2\n"));
    assert_int_equal(job_view(s, 1).verified.position, 6);
    script_close(s);
}

static void without_a_majority_no_task_is_named(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    finished_as(s, 1, 1, 0, 6, A);
    finished_as(s, 2, 1, 1, 6, B);
    finished_as(s, 3, 1, 2, 6, C);
    assert_non_null(strstr(script_job_text(s, 1), "6 steps, and it is not known which is right"));
    assert_null(strstr(s->transcript, "bye"));
    script_close(s);
}

/* The chief, which is not done before its part is published, is outvoted by its part. */
static void a_last_checkpoint_that_differs_is_none(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct script *s = stage_three(2);
        if (last == 0) {
            part_of(s, 1, 1, 0, 6, "six", B);
        }
        finished_as(s, 2, 1, 1, 6, A);
        finished_as(s, 3, 1, 2, 6, A);
        if (last == 1) {
            expect_output(s, "");
            part_of(s, 1, 1, 0, 6, "six", B);
        }
        assert_non_null(strstr(s->transcript,
            "abort g1: task 0 on worker a has another state than most replicas after 6 steps: "));
        assert_int_equal(job_view(s, 1).checkpoint.position, 4);
        frozen(s, 1, 1, 0, 6, 1);
        begin_again(s, 12);
        assert_int_equal(job_view(s, 1).resume, 4);
        script_close(s);
    }
}

/* Some have gone already, between their report and goodbye. */
static void who_is_gone_in_order_is_compared_too(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    finished_as(s, 2, 1, 1, 6, A);
    finished_as(s, 3, 1, 2, 6, A);
    gone(s, 2, 1, 1, 0, 0, "");
    gone(s, 3, 1, 2, 0, 0, "");
    part_of(s, 1, 1, 0, 6, "six", B);
    assert_non_null(strstr(s->transcript, "abort g1: task 0 on worker a has another state"));
    assert_int_equal(job_view(s, 1).restarts, 1);
    frozen(s, 1, 1, 0, 6, 1);
    assert_int_equal(job_view(s, 1).formed, 0);
    script_close(s);
}

static void a_stop_whose_states_differ_saves_nothing(void **state)
{
    (void)state;
    struct script *s = stage_three(2);
    relay_up(s, 2, 1, 1, &(struct task_up){.type = TASK_UP_PREEMPT, .preempt = {.stops = true}});
    assert_int_equal(job_view(s, 1).halt_at, 9);
    for (uint32_t slot = 0; slot < 3; slot++) {
        arrived(s, slot + 1, 1, 1, 10, 8);
    }
    for (uint32_t slot = 0; slot < 3; slot++) {
        arrived(s, slot + 1, 1, 1, 10, 9);
        halted_as(s, slot + 1, 1, slot, 9, slot == 1 ? B : A);
    }
    part_of(s, 1, 1, 0, 9, "nine", A);
    assert_int_equal(job_view(s, 1).checkpoint.position, 4);
    for (uint32_t slot = 0; slot < 3; slot++) {
        gone(s, slot + 1, 1, slot, 42, 0, "");
        collected(s, slot + 1, 1, slot);
    }
    assert_non_null(strstr(s->transcript, "record job 1: queued again\n"));
    assert_int_equal(job_view(s, 1).checkpoint.position, 4);
    script_close(s);
}

/* A draining task is compared with the others before it is dismissed. */
static void who_leaves_is_compared_before(void **state)
{
    (void)state;
    for (int differs = 0; differs < 2; differs++) {
        struct script *s = stage_three(2);
        drain(s, 0, "b");
        assert_int_equal(job_view(s, 1).halt_at, 8);
        script_skip(s);
        halted_as(s, 1, 1, 0, 8, A);
        halted_as(s, 3, 1, 2, 8, A);
        assert_int_equal(job_view(s, 1).verified.position, 4);
        halted_as(s, 2, 1, 1, 8, differs ? B : A);
        assert_int_equal(job_view(s, 1).verified.position, differs ? 4 : 8);
        if (!differs) {
            expect_output(s,
                "tell task 1/1 on link 2: superseded ABORTED: the job goes on without this task\n"
                "stop task 1/1#2 on link 2\n");
        } else {
            expect_output(s, "record! worker b is the culprit 1\n"
                             "record! job 1: differs at 8 in g1\n"
                             "tell task 1/2#3 on link 3: reset\n"
                             "stop task 1/2#3 on link 3\n"
                             "tell task 1/1#2 on link 2: reset\n"
                             "stop task 1/1#2 on link 2\n"
                             "tell task 1/0#1 on link 1: reset\n"
                             "stop task 1/0#1 on link 1\n");
            begin_again(s, 12);
            assert_non_null(strstr(script_job_text(s, 1),
                "the digests that they reported at a halt differ; all tasks began again"));
            assert_int_equal(job_view(s, 1).restarts, 1);
        }
        script_close(s);
    }
}

/* No state is given to a joiner before it was compared, if there is one to compare it with. The
 * chief's copy of it is another matter: what is published is compared by itself. */
static void who_gives_its_state_is_compared_before(void **state)
{
    (void)state;
    static const struct core_job_spec spec = {.tasks = 4, .tasks_min = 2, .max_restarts = 3};
    static const uint64_t notified[][2] = {{A, A}, {0, 0}, {A, 0}, {A, B}};
    for (size_t i = 0; i < sizeof notified / sizeof notified[0]; i++) {
        struct script *s = stage_running(&spec, 2, 4);
        join(s, 3, "c", 1);
        arrived(s, 1, 1, 1, 6, 4);
        task_hello(s, 3, 1, 2, 0);
        joins(s, 3, 1, 2, 1);
        arrived(s, 2, 1, 1, 6, 4);
        part_of(s, 1, 1, 0, 4, "four", C);
        script_skip(s);
        halted_as(s, 1, 1, 0, 4, notified[i][0]);
        halted_as(s, 2, 1, 1, 4, notified[i][1]);
        bool differs = notified[i][1] == B;
        assert_true((strstr(s->transcript, "plan g2 from 4 of 0 1 2") == NULL) == differs);
        assert_int_equal(job_view(s, 1).restarts, differs ? 1 : 0);
        assert_false(job_view(s, 1).has_checkpoint);
        assert_int_equal(job_view(s, 1).verified.digest, notified[i][1] == A ? A : 0);
        script_close(s);
    }
}

static void freezes_trusting(struct script *s, uint32_t slot, uint64_t position, uint64_t trusts)
{
    report(s, link_of(s, slot), 1, slot,
        &(struct task_report){.position = position,
            .clean = true,
            .reason = REPORT_ABORT,
            .begun = true,
            .stream = 1,
            .trusts = trusts});
}

/* What it gave to the sums since the last comparison is in the states of all others: they go on
 * where they stand, or, if that is asked for, from what is verified. */
static void what_a_lost_task_gave_was_not_compared(void **state)
{
    (void)state;
    static const struct {
        uint64_t trusts;   /* 4 is verified; of the others' next arrivals some are on their way */
        uint64_t position; /* of the one; the other one is at 6 */
        bool restarts;
    } cases[] = {{0, 6, false}, {5, 6, true}, {1, 6, true}, {7, 6, false}, {7, 5, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct script *s = stage_three(2);
        gone(s, 2, 1, 1, 0, 9, "");
        freezes_trusting(s, 0, 6, cases[i].trusts);
        freezes_trusting(s, 2, cases[i].position, cases[i].trusts);
        assert_true((strstr(s->transcript, "reset\n") != NULL) == cases[i].restarts);
        assert_int_equal(job_view(s, 1).restarts, 1);
        if (cases[i].restarts) {
            collected(s, 2, 1, 1);
            begin_again(s, 12);
            assert_non_null(strstr(script_job_text(s, 1),
                "; what it held was not compared, so all tasks began again from the checkpoint of "
                "step 4"));
        }
        script_close(s);
    }
}

/* No member is lost: all are compared again. Unless one takes over another's state. */
static void who_lost_its_peers_is_compared_later(void **state)
{
    (void)state;
    for (uint64_t behind = 0; behind < 2; behind++) {
        struct script *s = stage_three(2);
        peer_error(s, 1, 1, 0, 6);
        for (uint32_t slot = 0; slot < 3; slot++) {
            freezes_trusting(s, slot, slot == 1 ? 6 - behind : 6, 5);
        }
        assert_true((strstr(s->transcript, "reset\n") != NULL) == (behind > 0));
        assert_true((strstr(s->transcript, "plan g2 from 6 of 0 1 2") != NULL) == (behind == 0));
        assert_int_equal(job_view(s, 1).restarts, 0);
        script_close(s);
    }
}

/* Steps that are done again from the same checkpoint are no progress, so the job fails. */
static void what_is_not_kept_is_a_failure(void **state)
{
    (void)state;
    struct script *s = stage_running(&three, 4, 8);
    peer_error(s, 1, 1, 0, 6);
    for (uint32_t slot = 0; slot < 3; slot++) {
        freezes_trusting(s, slot, slot == 1 ? 5 : 6, 1);
    }
    assert_int_equal(job_view(s, 1).restarts, 1);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_begin_again_from_the_checkpoint),
        cmocka_unit_test(what_is_reported_after_lost_peers_counts),
        cmocka_unit_test(a_death_on_top_of_it_is_one_failure),
        cmocka_unit_test(what_may_not_be_restarted_fails),
        cmocka_unit_test(the_same_again_is_the_programs_fault),
        cmocka_unit_test(another_one_behind_it_is_another_failure),
        cmocka_unit_test(a_wrong_program_drains_no_worker),
        cmocka_unit_test(a_worker_that_is_named_twice_is_drained),
        cmocka_unit_test(what_differed_before_a_start_counts),
        cmocka_unit_test(what_is_resent_is_the_same),
        cmocka_unit_test(what_differed_before_a_start_is_void),
        cmocka_unit_test(what_no_task_can_have_found_fails),
        cmocka_unit_test(ends_that_differ_are_no_end),
        cmocka_unit_test(without_a_majority_no_task_is_named),
        cmocka_unit_test(a_last_checkpoint_that_differs_is_none),
        cmocka_unit_test(who_is_gone_in_order_is_compared_too),
        cmocka_unit_test(a_stop_whose_states_differ_saves_nothing),
        cmocka_unit_test(who_leaves_is_compared_before),
        cmocka_unit_test(who_gives_its_state_is_compared_before),
        cmocka_unit_test(what_a_lost_task_gave_was_not_compared),
        cmocka_unit_test(who_lost_its_peers_is_compared_later),
        cmocka_unit_test(what_is_not_kept_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
