/* SPDX-License-Identifier: Apache-2.0
 * Rosters that are too large for all daemons are sent in parts: to the daemon of rank 0 all, to the
 * others their members and the neighbours of these in the tree. */
#include <string.h>

#include "tests/unit/engine/stage.h"

static struct stage *stage_with(uint32_t whole_max)
{
    struct stage *stage = stage_open();
    stage->options.whole_max = whole_max;
    stage_reopen(stage);
    stage_skip(stage);
    return stage;
}

/* Eight tasks on four workers; all have said hello, and only what follows is in the transcript. */
static struct stage *stage_of_eight(uint32_t whole_max)
{
    struct stage *stage = stage_with(whole_max);
    static const char *const names[] = {"one", "two", "three", "four"};
    for (uint64_t link = 1; link <= 4; link++) {
        join(stage, link, names[link - 1], 2);
    }
    submit(stage, 1, 8);
    flush(stage);
    stage_skip(stage);
    for (uint32_t slot = 0; slot < 8; slot++) {
        started(stage, slot / 2 + 1, 1, slot);
        task_hello(stage, slot / 2 + 1, 1, slot);
    }
    flush(stage);
    return stage;
}

static void each_daemon_gets_its_part(void **state)
{
    (void)state;
    struct stage *stage = stage_of_eight(31);
    expect_output(stage, "commit!: plan 1\n"
                         "link 1 job 1: plan g1 of 8 from 0, state of no task\n"
                         "  part: 0=0 1=1 2=2 3=3 4=4 5=5 6=6 7=7\n"
                         "link 2 job 1: plan g1 of 8 from 0, state of no task\n"
                         "  part: 2=2 0=0 3=3\n"
                         "link 3 job 1: plan g1 of 8 from 0, state of no task\n"
                         "  part: 4=4 0=0 5=5 1=1\n"
                         "link 4 job 1: plan g1 of 8 from 0, state of no task\n"
                         "  part: 6=6 1=1 7=7\n"
                         "changed 1: running\n");
    stage_close(stage);
}

static void a_roster_at_the_limit_is_whole(void **state)
{
    (void)state;
    struct stage *stage = stage_of_eight(32);
    expect_output(stage, "commit!: plan 1\n"
                         "link 1 job 1: plan g1 of 8 from 0, state of no task\n"
                         "link 2 job 1: plan g1 of 8 from 0, state of no task\n"
                         "link 3 job 1: plan g1 of 8 from 0, state of no task\n"
                         "link 4 job 1: plan g1 of 8 from 0, state of no task\n"
                         "changed 1: running\n");
    stage_close(stage);
}

/* Its daemon lost the connection before it had the plan: the part names its other task too. */
static void a_task_that_lacks_the_plan_gets_its_daemons_part(void **state)
{
    (void)state;
    struct stage *stage = stage_of_eight(31);
    stage_skip(stage);
    task_hello(stage, 3, 1, 5);
    flush(stage);
    expect_output(stage, "link 3 task 1/5: plan g1 of 8 from 0, state of no task\n"
                         "  part: 4=4 0=0 5=5 1=1\n"
                         "changed 1: running\n");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_daemon_gets_its_part),
        cmocka_unit_test(a_roster_at_the_limit_is_whole),
        cmocka_unit_test(a_task_that_lacks_the_plan_gets_its_daemons_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
