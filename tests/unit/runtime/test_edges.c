/* SPDX-License-Identifier: Apache-2.0
 * The loss of a task at the edges: inside of collectives that are no step's, while a state is being
 * passed on, at the end. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "elastic_program.h"
#include "tests/lib/test.h"

/* --- faults of the system: the attempt and the call at which it is killed --- */

atomic_bool fault_armed = true;

bool fault_hits(const char *name)
{
    static unsigned calls;
    unsigned whose = 0;
    unsigned which = 0;
    const char *value = getenv("DIE_WRITING");
    if (value == NULL || strncmp(name, "checkpoint.", strlen("checkpoint.")) != 0) {
        return false;
    }
    bool due = sscanf(value, "%u:%u", &whose, &which) == 2 &&
               strtoul(getenv("STAGE_ATTEMPT"), NULL, 10) == whose && ++calls == which;
    if (due) {
        raise(SIGKILL);
    }
    return false;
}

void fault_arm(const char *prefix, uint64_t nth)
{
    (void)prefix;
    (void)nth;
}

bool fault_disarm(void)
{
    return false;
}

/* --- inside of a collective --- */

/* Its peers are in the collective, because they have reported that they wait there for it. Their
 * result is that of the tasks that are left: the program prints it otherwise. */
static void check_hang(const char *fault, uint32_t dead)
{
    struct stage_end end;
    const char *const environment[] = {fault, NULL};
    struct stage_job job = elastic_job(3, 1, environment);
    job.kills_stalled = true;
    elastic_check(&job, dead, &end);
    elastic_check_consumption(&end);
    assert_true(end.stalls > 0);
    assert_int_equal(end.stall_slot, dead);
    assert_int_equal(end.generations, 2);
    assert_int_equal(end.roster, 2);
    for (uint32_t i = 0; i < end.started; i++) {
        assert_null(strstr(end.printed[i], "reduced"));
        assert_null(strstr(end.printed[i], "counted"));
    }
    stage_end_free(&end);
}

static void a_loss_inside_a_reduction_is_survived(void **state)
{
    (void)state;
    check_hang("HANG_REDUCE=0:9", 0);
    check_hang("HANG_REDUCE=2:13", 2);
}

static void a_loss_inside_a_creation_is_survived(void **state)
{
    (void)state;
    check_hang("HANG_CREATE=1:0", 1);
    check_hang("HANG_CREATE=0:0", 0);
}

static void a_loss_inside_the_end_is_survived(void **state)
{
    (void)state;
    check_hang("HANG_FINISH=0:0", 0);
    check_hang("HANG_FINISH=2:0", 2);
}

/* It is not even dead: those that are done learn only from the plan that they are not to wait. */
static void one_that_does_not_end_is_left_behind(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"HANG_FINISH=1:0", NULL};
    struct stage_job job = elastic_job(3, 1, environment);
    job.drops_stalled = true;
    elastic_check(&job, 1, &end);
    assert_int_equal(end.generations, 2);
    stage_end_free(&end);
}

/* Others have the variable; the value comes from one of them, which keeps it nowhere else. */
static void a_creation_that_others_completed_is_taken_over(void **state)
{
    (void)state;
    static const char *const faults[] = {"MISS_CREATE=1:0", "MISS_CREATE=0:0"};
    for (size_t i = 0; i < 2; i++) {
        struct stage_end end;
        const char *const environment[] = {faults[i], NULL};
        struct stage_job job = elastic_job(3, 1, environment);
        elastic_check(&job, UINT32_MAX, &end);
        assert_int_equal(end.generations, 2);
        stage_end_free(&end);
    }
}

/* --- while the state is passed on --- */

/* One was frozen in step 7, the other has applied it and dies before the first has it: the step is
 * taken again, on the state that the first has still. */
static void a_step_that_none_has_any_more_is_taken_again(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"MISS_APPLY=1:7", NULL};
    struct stage_job job = elastic_job(2, 1, environment);
    job.kills_at_generation = 2;
    job.kills = 0;
    elastic_check(&job, 0, &end);
    elastic_check_consumption(&end);
    assert_int_equal(end.generations, 3);
    assert_int_equal(end.roster, 1);
    assert_non_null(strstr(end.printed[1], "once more 7\n"));
    stage_end_free(&end);
}

/* --- coming late --- */

/* It receives the streams' positions with its hello, and comes to the first when that is over: it
 * goes on to the second, and joins there. What its program does before the first step others have
 * done: it does not wait for them there, nor undo the results since. */
static void a_joiner_that_was_slow_joins_at_the_next_dataset(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"LATE=1:0", NULL};
    struct stage_job job = elastic_job(1, 1, environment);
    job.what = "phases";
    job.grows = 1;
    job.grows_at = 2;
    job.greets_at = 3;
    job.waits_at = ELASTIC_PHASE_STEPS + 4;
    stage_run(&job, &end);
    bool good = end.done && end.roster == 2 && end.position == 2 * ELASTIC_PHASE_STEPS + 1;
    if (!good || strcmp(end.printed[0], end.printed[1]) != 0) {
        elastic_show(&end);
    }
    assert_true(good);
    assert_string_equal(end.printed[0], end.printed[1]);
    stage_end_free(&end);
}

/* A folder that is shared is the same for one that comes later. One that has another is no use, and
 * ends alone: the others go on. */
static void a_joiner_sees_the_same_folder(void **state)
{
    (void)state;
    for (uint32_t other = 0; other < 2; other++) {
        struct stage_end end;
        char folder[TEST_PATH_BYTES + 32];
        const char *shared = test_temp_dir();
        snprintf(folder, sizeof folder, "CADRE_CHECKPOINT_DIR=%s", shared);
        const char *const environment[] = {folder, other == 1 ? "OTHER_FOLDER=2:0" : NULL, NULL};
        struct stage_job job = elastic_job(2, 1, environment);
        job.grows = 1;
        job.grows_at = 4;
        job.waits_at = 25;
        elastic_check(&job, other == 1 ? 2 : UINT32_MAX, &end);
        assert_int_equal(end.roster, other == 1 ? 2 : 3);
        if (other == 1) {
            assert_int_equal(end.exit_code[2], 1);
            assert_non_null(strstr(end.erred[2], "is not that of the chief"));
        }
        struct dirent **names;
        int count = scandir(shared, &names, NULL, alphasort);
        for (int i = 0; i < count; i++) {
            assert_null(strstr(names[i]->d_name, ".cadre-")); /* the token is taken back */
            free(names[i]);
        }
        free(names);
        stage_end_free(&end);
    }
}

/* --- the end --- */

/* The last checkpoint is published when the members finish, whichever wrote it. */
static void check_end(uint32_t dead, uint32_t parts_lost, uint32_t parts)
{
    struct stage_end end;
    struct stage_job job = elastic_job(3, 1, NULL);
    job.kills_at_part = dead + 1;
    job.parts_lost = parts_lost;
    elastic_check(&job, dead, &end);
    assert_int_equal(end.generations, 2);
    assert_int_equal(end.published_at_goodbye, ELASTIC_POSITIONS);
    assert_true(end.parts >= parts);
    stage_end_free(&end);
}

static void another_chief_publishes_the_last_checkpoint(void **state)
{
    (void)state;
    check_end(0, 1, 2);
}

static void a_chief_that_dies_while_it_writes_is_replaced(void **state)
{
    (void)state;
    for (unsigned call = 1; call <= 7; call += 3) {
        struct stage_end end;
        char fault[32];
        snprintf(fault, sizeof fault, "DIE_WRITING=0:%u", call);
        const char *const environment[] = {fault, NULL};
        struct stage_job job = elastic_job(3, 1, environment);
        elastic_check(&job, 0, &end);
        assert_int_equal(end.generations, 2);
        assert_int_equal(end.published_at_goodbye, ELASTIC_POSITIONS);
        stage_end_free(&end);
    }
}

static void the_chief_says_again_what_it_wrote(void **state)
{
    (void)state;
    check_end(2, 1, 2);
}

static void what_the_lost_chief_had_published_is_the_last(void **state)
{
    (void)state;
    struct stage_end end;
    struct stage_job job = elastic_job(3, 1, NULL);
    job.kills_at_part = 1;
    elastic_check(&job, 0, &end);
    assert_int_equal(end.parts, 1); /* it is not written once more */
    assert_int_equal(end.published_at_goodbye, ELASTIC_POSITIONS);
    stage_end_free(&end);
}

static void a_program_without_variables_ends(void **state)
{
    (void)state;
    static const char *const faults[] = {"DIE_FINISH=9:9", "DIE_FINISH=0:0", "DIE_FINISH=1:0"};
    for (uint32_t i = 0; i < 3; i++) {
        struct stage_end end;
        const char *const environment[] = {faults[i], NULL};
        struct stage_job job = elastic_job(3, 1, environment);
        job.what = "bare";
        stage_run(&job, &end);
        if (!end.done) {
            elastic_show(&end);
        }
        assert_true(end.done);
        assert_int_equal(end.position, 3);
        assert_int_equal(end.parts, 0);
        assert_int_equal(end.exit_code[2], 0);
        stage_end_free(&end);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return strcmp(argv[1], "bare") == 0     ? elastic_bare_program()
               : strcmp(argv[1], "phases") == 0 ? elastic_phases_program()
                                                : elastic_program();
    }
    elastic_self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_inside_a_reduction_is_survived),
        cmocka_unit_test(a_loss_inside_a_creation_is_survived),
        cmocka_unit_test(a_loss_inside_the_end_is_survived),
        cmocka_unit_test(a_creation_that_others_completed_is_taken_over),
        cmocka_unit_test(one_that_does_not_end_is_left_behind),
        cmocka_unit_test(a_step_that_none_has_any_more_is_taken_again),
        cmocka_unit_test(a_joiner_that_was_slow_joins_at_the_next_dataset),
        cmocka_unit_test(a_joiner_sees_the_same_folder),
        cmocka_unit_test(another_chief_publishes_the_last_checkpoint),
        cmocka_unit_test(a_chief_that_dies_while_it_writes_is_replaced),
        cmocka_unit_test(the_chief_says_again_what_it_wrote),
        cmocka_unit_test(what_the_lost_chief_had_published_is_the_last),
        cmocka_unit_test(a_program_without_variables_ends),
    };
    return cmocka_run_group_tests(tests, elastic_learn, NULL);
}
