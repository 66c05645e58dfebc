/* SPDX-License-Identifier: Apache-2.0
 * The newest position whose states were found equal, as clients read it: of a job that
 * trains, after a start of the coordinator, and of one that ended. */
#include "tests/unit/engine/stage.h"

static void assert_verified(struct stage *stage, uint64_t position, uint64_t digest)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.verified_position, position);
    assert_true(info.verified_digest == digest);
}

/* Four steps are released, three applied. */
static struct stage *stage_stepped(void)
{
    struct stage *stage = stage_formed();
    for (uint64_t up_to = 1; up_to <= 4; up_to++) {
        arrived(stage, 1, 1, 2, up_to);
        arrived(stage, 2, 1, 1, up_to);
    }
    flush(stage);
    stage_skip(stage);
    return stage;
}

static void clients_are_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_stepped();
    assert_verified(stage, 0, 0);
    compared(stage, 1, 1, 2, 5, (struct verified){.position = 2, .digest = UINT64_MAX});
    compared(stage, 2, 1, 1, 5, (struct verified){.position = 3, .digest = 7});
    flush(stage);
    expect_output(stage, "commit: verified 1, watermark 1\n"
                         "link 1 job 1: release g1 to 5\n"
                         "link 2 job 1: release g1 to 5\n");
    assert_verified(stage, 3, 7);
    stage_reopen(stage); /* a record a minute */
    assert_verified(stage, 2, UINT64_MAX);
    stage_close(stage);
}

static void it_outlives_the_job(void **state)
{
    (void)state;
    struct stage *stage = stage_stepped();
    compared(stage, 1, 1, 2, 5, (struct verified){.position = 2, .digest = 5});
    compared(stage, 2, 1, 1, 5, (struct verified){.position = 3, .digest = 7});
    for (uint32_t slot = 0; slot < 3; slot++) {
        report(stage, slot < 2 ? 1 : 2, 1, slot, 4, REPORT_FINISHED);
    }
    for (uint32_t slot = 0; slot < 3; slot++) {
        gone(stage, slot < 2 ? 1 : 2, 1, slot, 0, "");
        collected(stage, slot < 2 ? 1 : 2, 1, slot);
    }
    flush(stage);
    struct job_info info;
    for (int opened = 0; opened < 2; opened++) {
        assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
        assert_int_equal(info.state, JOB_SUCCEEDED);
        assert_verified(stage, 3, 7); /* the last is recorded at the end */
        stage_reopen(stage);
    }
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_are_reported),
        cmocka_unit_test(it_outlives_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
