/* SPDX-License-Identifier: Apache-2.0
 * Jobs that create variables while they run, whose tasks die or are frozen at each point of that,
 * come later, or go on from a checkpoint: their result is that of a job to which nothing happens.
 * The tasks are this test, run again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "late_program.h"
#include "stage.h"
#include "tests/lib/test.h"

static const char *self;
static char undisturbed[256];

static void outcome(const char *printed, char line[256])
{
    const char *at = printed == NULL ? NULL : strstr(printed, "sum ");
    const char *end = at == NULL ? NULL : strstr(at, " tasks");
    snprintf(line, 256, "%.*s", end == NULL ? 0 : (int)(end - at), end == NULL ? "" : at);
}

static struct stage_job late_job(uint32_t tasks, uint32_t replicas, const char *const *environment)
{
    return (struct stage_job){.self = self,
        .what = "late",
        .tasks = tasks,
        .replicas = replicas,
        .environment = environment};
}

static void show(const struct stage_end *end)
{
    print_error("done %d at %" PRIu64 ", %" PRIu64 " generations, %s\n", end->done, end->position,
        end->generations, end->text);
    for (uint32_t i = 0; i < end->started; i++) {
        print_error(
            "attempt %u: exit code %d\n%s%s", i, end->exit_code[i], end->printed[i], end->erred[i]);
    }
}

/* All attempts that run to the end have the same. `dead`: one that does not; UINT32_MAX: none. */
static void check(const struct stage_job *job, uint32_t dead, struct stage_end *ret_end)
{
    stage_run(job, ret_end);
    bool good = ret_end->done && ret_end->position == LATE_POSITIONS;
    for (uint32_t i = 0; i < ret_end->started; i++) {
        char line[256];
        outcome(ret_end->printed[i], line);
        good =
            good && (i == dead || (ret_end->exit_code[i] == 0 && strcmp(line, undisturbed) == 0));
    }
    if (!good) {
        print_error("wanted: %s\n", undisturbed);
        show(ret_end);
    }
    assert_true(good);
}

static int learn(void **state)
{
    struct stage_end end;
    const struct stage_job job = late_job(1, 1, NULL);
    (void)state;
    stage_run(&job, &end);
    outcome(end.printed[0], undisturbed);
    if (!end.done || undisturbed[0] == '\0' || end.position != LATE_POSITIONS) {
        show(&end);
        return -1;
    }
    stage_end_free(&end);
    return 0;
}

/* --- tests --- */

static void any_number_of_tasks_is_the_same(void **state)
{
    (void)state;
    for (uint32_t tasks = 1; tasks < 4; tasks++) {
        struct stage_end end;
        const struct stage_job job = late_job(tasks, tasks == 3 ? 1 : 2, NULL);
        check(&job, UINT32_MAX, &end);
        assert_int_equal(end.generations, 1);
        stage_end_free(&end);
    }
}

/* Whether the step at the position is one between epochs. */
static bool is_between(uint64_t position)
{
    return position == LATE_MARK || position == LATE_LAZY || position == LATE_MARK_2 ||
           position == LATE_MARK_2 + LATE_STEPS + 1;
}

static const uint64_t created_at[] = {
    LATE_SLOTS, LATE_SEEN, LATE_ARGUMENTS, LATE_MARK, LATE_LAZY, LATE_MARK_2};

/* Each point of each creation, of the chief and of another; the others go on. */
static void a_loss_in_a_creation_is_survived(void **state)
{
    (void)state;
    static const char *const points[] = {
        "DIE_BEFORE", "DIE_FIRST", "DIE_SECOND", "DIE_AFTER", "DIE_BETWEEN"};
    for (size_t at = 0; at < sizeof created_at / sizeof created_at[0]; at++) {
        bool between = is_between(created_at[at]);
        for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
            bool inside = i == 1 || i == 2;
            if ((!inside && between != (i == 4)) || (i == 2 && created_at[at] == LATE_ARGUMENTS)) {
                continue; /* that program has no such point */
            }
            for (uint32_t dead = 0; dead < 2; dead++) {
                struct stage_end end;
                char fault[64];
                const char *const environment[] = {fault, NULL};
                snprintf(fault, sizeof fault, "%s=%u:%" PRIu64, points[i], dead, created_at[at]);
                const struct stage_job job = late_job(2 + (uint32_t)(i + at) % 2, 1, environment);
                check(&job, dead, &end);
                if (end.generations != 2) {
                    fail_msg("%s: %" PRIu64 " generations", fault, end.generations);
                }
                stage_end_free(&end);
            }
        }
    }
}

/* One that is frozen where others have applied the step has the variable from them. */
static void a_creation_that_others_applied_is_taken_over(void **state)
{
    (void)state;
    static const uint64_t at[] = {LATE_SLOTS, LATE_SEEN, LATE_MARK, LATE_LAZY, LATE_MARK_2};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        for (uint32_t attempt = 0; attempt < 2; attempt++) {
            struct stage_end end;
            char fault[64];
            const char *const environment[] = {fault, NULL};
            snprintf(fault, sizeof fault, "MISS_LAST=%u:%" PRIu64, attempt, at[i]);
            const struct stage_job job = late_job(2 + (uint32_t)i % 2, 1, environment);
            check(&job, UINT32_MAX, &end);
            assert_int_equal(end.generations, 2);
            stage_end_free(&end);
        }
    }
}

/* A task that joins before, at and behind each creation. */
static void joiners_have_what_was_created(void **state)
{
    (void)state;
    for (uint64_t grows_at = 1; grows_at < 2 * LATE_STEPS + 3; grows_at++) {
        struct stage_end end;
        struct stage_job job = late_job(1 + (uint32_t)grows_at % 2, 1, NULL);
        job.grows = 1;
        job.grows_at = grows_at;
        job.waits_at = 16;
        check(&job, UINT32_MAX, &end);
        assert_int_equal(end.roster, job.tasks + 1);
        stage_end_free(&end);
    }
}

/* The joiner is all that is left: what it writes has what its program never created. */
static void a_joiner_becomes_the_chief(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"DIE_BEFORE=0:18", NULL};
    struct stage_job job = late_job(1, 2, environment);
    job.grows = 1;
    job.grows_at = 15;
    job.waits_at = 17;
    check(&job, 0, &end);
    assert_int_equal(end.roster, 1);
    stage_end_free(&end);
}

/* Jobs of other sizes go on from the checkpoint of each position. */
static void a_checkpoint_of_each_position_is_gone_on_from(void **state)
{
    (void)state;
    for (uint64_t position = 1; position < LATE_POSITIONS - 1; position++) {
        uint64_t dies_at = position + 1;
        char every[64];
        char fault[64];
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        while (is_between(dies_at)) {
            dies_at++; /* the program dies in its function */
        }
        snprintf(every, sizeof every, "CADRE_CHECKPOINT_EVERY=%" PRIu64, position);
        snprintf(fault, sizeof fault, "DIE_WAITING=0:%" PRIu64, dies_at);
        const char *const environment[] = {every, fault, NULL};
        struct stage_job job = late_job(1, 2, environment);
        stage_run(&job, &end);
        assert_false(end.done);
        assert_int_equal(end.published, position);
        snprintf(path, sizeof path, "%s/checkpoint-%" PRIu64 ".json", end.folder, position);
        stage_end_free(&end);
        struct stage_job next = late_job((uint32_t)(position % 3) + 1, 1, NULL);
        next.resume = position;
        next.restore = path;
        check(&next, UINT32_MAX, &end);
        stage_end_free(&end);
    }
}

static void other_orders_are_named(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"BACKWARDS=1:0", NULL};
    const struct stage_job job = late_job(2, 1, environment);
    stage_run(&job, &end);
    assert_false(end.done);
    bool named = false;
    for (uint32_t i = 0; i < end.started; i++) {
        named = named || (strstr(end.erred[i], "('order', i64 [1], NONE) as variable 1") != NULL &&
                             strstr(end.erred[i], "('sum', i64 [1], NONE) as variable 1") != NULL);
    }
    if (!named) {
        show(&end);
    }
    assert_true(named);
    stage_end_free(&end);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_tasks_is_the_same),
        cmocka_unit_test(a_loss_in_a_creation_is_survived),
        cmocka_unit_test(a_creation_that_others_applied_is_taken_over),
        cmocka_unit_test(joiners_have_what_was_created),
        cmocka_unit_test(a_joiner_becomes_the_chief),
        cmocka_unit_test(a_checkpoint_of_each_position_is_gone_on_from),
        cmocka_unit_test(other_orders_are_named),
    };
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "late") == 0) {
        return late_program();
    }
    return cmocka_run_group_tests_name("late jobs", tests, learn, NULL);
}
