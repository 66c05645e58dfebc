/* SPDX-License-Identifier: Apache-2.0
 * A job whose tasks were started more than 2^32 times: their incarnations are said, stored, and
 * asked for as they are. */
#include <string.h>

#include "tests/unit/engine/stage.h"

#define BEFORE (UINT64_C(1) << 32)

/* A job that was started, and whose tasks are all lost. */
static struct stage *stage_wide(void)
{
    struct stage *stage = stage_open();
    submit(stage, 1, 2);
    flush(stage);
    const struct core_record record = {
        .type = CORE_RECORD_STARTED, .sync = true, .job = {1}, .incarnation_max = BEFORE};
    const struct store_record stored = {.record = &record, .wall_us = 5};
    assert_ok(stage->store.inner->ops->commit(stage->store.inner, &stored, 1, true, &stage->error),
        &stage->error);
    stage->incarnations_before = BEFORE;
    stage_reopen(stage);
    return stage;
}

static void assert_incarnations(struct stage *stage)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    for (uint32_t slot = 0; slot < 2; slot++) {
        assert_true(info.tasks[slot].incarnation == BEFORE + slot + 1);
    }
}

static void incarnations_are_sent_as_they_are(void **state)
{
    (void)state;
    struct stage *stage = stage_wide();
    join(stage, 1, "one", 2);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "link 1: start 1/0#4294967297 of 2 program\n"));
    assert_non_null(strstr(stage->transcript, "link 1: start 1/1#4294967298 of 2 program\n"));
    for (uint32_t slot = 0; slot < 2; slot++) {
        started(stage, 1, 1, slot);
        task_hello(stage, 1, 1, slot);
    }
    flush(stage);
    assert_int_equal(stage->generation.number, 1);
    assert_true(stage->roster[0] == BEFORE + 1 && stage->roster[1] == BEFORE + 2);
    assert_incarnations(stage);
    stage_skip(stage);
    arrived(stage, 1, 1, 2, 1);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "release g1 to 1"));

    /* The next coordinator finds them in the store, and knows them again. */
    stage_reopen(stage);
    stage_skip(stage);
    assert_incarnations(stage);
    rejoin(stage, 1, "one", 2, 1, 0, 2);
    flush(stage);
    assert_null(strstr(stage->transcript, "forget"));
    assert_null(strstr(stage->transcript, "stop"));
    assert_null(strstr(stage->transcript, "start"));
    task_hello_again(stage, 1, 1, 0, 0, 1);
    task_hello_again(stage, 1, 1, 1, 0, 1);
    arrived(stage, 1, 1, 2, 2);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "release g1 to 2"));

    /* One whose number is the same but for what is above 32 bits is another one. */
    stage_skip(stage);
    stage->incarnations_before = 0;
    gone(stage, 1, 1, 0, 3, "fell over");
    task_hello(stage, 1, 1, 1);
    flush(stage);
    assert_null(strstr(stage->transcript, "changed"));
    assert_null(strstr(stage->transcript, "plan"));
    assert_incarnations(stage);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(incarnations_are_sent_as_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
