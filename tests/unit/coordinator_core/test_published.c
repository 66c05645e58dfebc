/* SPDX-License-Identifier: Apache-2.0
 * The published position in releases: a task waits in cadre_save until it receives what its peers
 * received, also when the checkpoint is found damaged meanwhile. */
#include "tests/unit/coordinator_core/script.h"

static void assert_reported(const struct script *s, uint64_t position)
{
    assert_true(job_view(s, 1).published == position);
}

static void damaged(struct script *s, uint64_t position, uint64_t previous, bool is_origin)
{
    step(s, &(struct core_event){.type = CORE_EVENT_CHECKPOINT_DAMAGED,
                .damaged = {.job = {1},
                    .position = position,
                    .is_origin = is_origin,
                    .has_previous = previous > 0,
                    .previous = {.position = previous, .path = "older"},
                    .why = "a block does not have its hash",
                    .remedy = "nothing is left of it"}});
}

/* All have applied four steps, which the chief has saved. */
static struct script *stage_saved(void)
{
    static const struct core_job_spec spec = {.tasks = 2, .tasks_min = 2, .max_restarts = 1};
    struct script *s = stage_running(&spec, 2, 4);
    assert_reported(s, POSITION_NONE);
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 4);
    part(s, 1, 1, 0, 4, "four");
    assert_reported(s, 4);
    script_skip(s);
    return s;
}

/* The link of the second breaks before the release comes; the published one is lost meanwhile. */
static void all_receive_what_one_has_received(void **state)
{
    (void)state;
    struct script *s = stage_saved();
    const struct task_ref here = ref(s, 1, 1);
    link_down(s, 2);
    damaged(s, 4, 0, false);
    assert_false(job_view(s, 1).has_checkpoint);
    script_skip(s);
    hello(s, 5, "b", 1002, 1, &here, 1);
    script_skip(s);
    task_hello(s, 5, 1, 1, 1);
    expect_output(s, "tell job 1 task 1 on link 5: release g1 to 4\n");
    assert_reported(s, 4);
    peer_error(s, 1, 1, 0, 4);
    peer_error(s, 5, 1, 1, 4);
    assert_int_equal(job_view(s, 1).generation.number, 2);
    assert_reported(s, 4); /* a survivor may still wait there */
    script_close(s);
}

/* Steps that are taken once more are saved once more. */
static void a_timeline_that_is_cut_off_is_not_reported(void **state)
{
    (void)state;
    struct script *s = stage_saved();
    damaged(s, 4, 2, false);
    peer_error(s, 1, 1, 0, 1); /* no state that counts */
    peer_error(s, 2, 1, 1, 1);
    for (uint32_t slot = 0; slot < 2; slot++) {
        collect(s, link_of(s, slot), 1, slot);
    }
    task_hello(s, link_of(s, 0), 1, 0, 0);
    task_hello(s, link_of(s, 1), 1, 1, 0);
    assert_int_equal(job_view(s, 1).generation.number, 2);
    assert_int_equal(job_view(s, 1).resume, 2);
    assert_reported(s, 2);
    script_close(s);
}

/* Two tasks on a and b, in a generation from step 10. */
static struct script *stage_restored(
    uint64_t generation, uint64_t saved, struct core_position published)
{
    static const struct core_restore_task both[] = {
        {.slot = 0, .incarnation = 1, .rank = 0, .worker = "a"},
        {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
    };
    const struct core_restore_job restore = {.job = {1},
        .spec = {.tasks = 2, .tasks_min = 2},
        .started = true,
        .incarnation_max = 2,
        .generation = {.number = generation, .nonce = 77},
        .roster = 2,
        .resume = 10,
        .released = 20,
        .cursor = {.stream = 1},
        .has_checkpoint = saved > 0,
        .checkpoint = {.position = saved, .path = "saved"},
        .published = published,
        .tasks = both,
        .task_count = 2};
    struct script *s = script_open(NULL);
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = restore});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    return s;
}

/* With the generation, so that a restarted coordinator can check that it is on its timeline. */
static void what_was_reported_is_recorded_when_it_is_lost(void **state)
{
    (void)state;
    struct script *s = stage_saved();
    damaged(s, 4, 2, false);
    damaged(s, 2, 0, false); /* the latest that was sent counts */
    expect_output(s, "record! job 1: checkpoint at 4 is lost\n"
                     "record! job 1: published 4 in g1\n"
                     "record! job 1: checkpoint at 2 is lost\n"
                     "record! job 1: published 4 in g1\n");
    script_close(s);
}

static void a_start_of_the_coordinator_knows_it(void **state)
{
    (void)state;
    static const struct {
        uint64_t generation, saved;
        struct core_position lost;
        uint64_t notified;
    } all[] = {
        {2, 0, {0, 0}, POSITION_NONE},
        {2, 5, {0, 0}, 5},
        {2, 5, {1, 10}, 10}, /* the generation may have begun there */
        {2, 0, {1, 10}, 10},
        {2, 5, {1, 3}, 5},
        {2, 5, {1, 11}, 5}, /* of a line that was cut off */
        {2, 5, {2, 11}, 11},
        {2, 0, {2, 11}, 11},
        {2, 15, {2, 11}, 15},
        {1, 5, {0, 0}, 10}, /* another job's, which has fallen back since */
        {1, 15, {0, 0}, 15},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct script *s = stage_restored(all[i].generation, all[i].saved, all[i].lost);
        assert_reported(s, all[i].notified);
        script_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_receive_what_one_has_received),
        cmocka_unit_test(a_timeline_that_is_cut_off_is_not_reported),
        cmocka_unit_test(what_was_reported_is_recorded_when_it_is_lost),
        cmocka_unit_test(a_start_of_the_coordinator_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
