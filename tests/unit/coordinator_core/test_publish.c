/* SPDX-License-Identifier: Apache-2.0
 * Whose parts become checkpoints: the chief's, of this generation, newer than the newest; each
 * alone, so that nothing else holds back the others. */
#include "tests/unit/coordinator_core/script.h"

/* All have applied four steps, and would be in a checkpoint of them. */
static struct script *stage_applied(void)
{
    struct script *s = stage_released(4);
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 4);
    script_skip(s);
    return s;
}

static void assert_published(struct script *s, uint64_t position, const char *text)
{
    expect_output(s, text);
    assert_true(job_view(s, 1).has_checkpoint);
    assert_int_equal(job_view(s, 1).checkpoint.position, position);
}

static void only_the_chief_saves(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    part(s, 2, 1, 1, 3, "theirs");
    part(s, 2, 1, 1, 4, "theirs");
    expect_output(s, "");
    assert_false(job_view(s, 1).has_checkpoint);
    part(s, 1, 1, 0, 3, "the chief's");
    assert_published(s, 3,
        "record! job 1: checkpoint at 3 in the chief's\n"
        "tell job 1: release g1 to 4\n");
    script_close(s);
}

static void a_part_of_another_generation_is_none(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    const struct generation now = generation_of(s, 1);
    const struct generation others[] = {{.number = now.number, .nonce = now.nonce + 1},
        {.number = now.number + 1, .nonce = now.nonce}, {.number = 0, .nonce = 0}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        relay_up(s, 1, 1, 0,
            &(struct task_up){.type = TASK_UP_PART,
                .part = {
                    .generation = others[i], .position = 4, .path = "another's", .size_bytes = 5}});
        expect_output(s, "");
        assert_false(job_view(s, 1).has_checkpoint);
    }
    script_close(s);
}

/* Said again, or made again, it changes nothing. */
static void one_that_is_no_newer_is_none(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    part(s, 1, 1, 0, 3, "three");
    assert_published(s, 3,
        "record! job 1: checkpoint at 3 in three\n"
        "tell job 1: release g1 to 4\n");
    part(s, 1, 1, 0, 3, "again");
    part(s, 1, 1, 0, 2, "older");
    assert_published(s, 3, "");
    part(s, 1, 1, 0, 4, "four");
    assert_published(s, 4,
        "record! job 1: checkpoint at 4 in four\n"
        "tell job 1: release g1 to 4\n");
    script_close(s);
}

/* It is published when all have applied it. Who says that it stands before it has no state that
 * counts, and the job does not go back behind it. */
static void no_task_is_behind_a_checkpoint(void **state)
{
    (void)state;
    static const struct core_job_spec spec = {.tasks = 2, .tasks_min = 2, .max_restarts = 1};
    struct script *s = stage_running(&spec, 2, 4);
    arrived(s, 1, 1, 1, 4, 4);
    arrived(s, 2, 1, 1, 4, 4);
    script_skip(s);
    part(s, 1, 1, 0, 4, "four");
    assert_published(s, 4,
        "record! job 1: checkpoint at 4 in four\n"
        "tell job 1: release g1 to 4\n");
    peer_error(s, 1, 1, 0, 3);
    peer_error(s, 2, 1, 1, 3);
    script_skip(s);
    assert_int_equal(job_view(s, 1).generation.number, 1);
    assert_false(job_view(s, 1).formed); /* all begin again, from the checkpoint */
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_chief_saves),
        cmocka_unit_test(a_part_of_another_generation_is_none),
        cmocka_unit_test(one_that_is_no_newer_is_none),
        cmocka_unit_test(no_task_is_behind_a_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
