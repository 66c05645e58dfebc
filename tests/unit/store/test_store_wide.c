/* SPDX-License-Identifier: Apache-2.0
 * Numbers above 2^32, each another, in every place that a store has for one of 64 bits: they come
 * back whole, also from a file that is opened again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/unit/store/store_fixture.h"

#define TEN UINT64_C(10000000000) /* its lower half is none of the numbers below */
#define JOB (TEN + 1)

static struct cadre_error error;

static void write_one(struct store *store, struct core_record record, uint64_t wall_us,
    const struct store_placement *placements, size_t target_count)
{
    const struct store_record written = {.record = &record,
        .wall_us = wall_us,
        .spec = "spec",
        .spec_bytes = 4,
        .placements = placements,
        .target_count = target_count,
        .committed = TEN + 70};
    assert_ok(store->ops->commit(store, &written, 1, true, &error), &error);
}

static void write_all(struct store *store)
{
    const struct store_placement placements[] = {{.slot = 0,
                                                     .incarnation = TEN + 10,
                                                     .attempts = 2,
                                                     .attempts_generation = 3,
                                                     .worker = "a"},
        {.slot = 1,
            .incarnation = TEN + 11,
            .attempts = 2,
            .attempts_generation = 3,
            .worker = "b"}};
    struct core_record record = record_job(JOB, 3);
    record.submitted.spec.priority = 0;
    record.submitted.spec.wait_us = TEN + 2;
    record.submitted.spec.stall_us = TEN + 3;
    write_one(store, record, TEN + 4, NULL, 0);
    write_one(store, record_started(JOB, TEN + 13), TEN + 5, placements, 2);
    write_one(store, record_task(JOB, 2, TEN + 12), 0, NULL, 0);
    record = record_plan(JOB, 1, TEN + 20);
    record.plan.generation.number = TEN + 21;
    record.plan.parent.number = TEN + 22;
    record.plan.restarts = 0;
    write_one(store, record, TEN + 23, placements, 2);
    const struct generation generation = record.plan.generation;
    write_one(store, record_stream(JOB, 1, "train"), 0, NULL, 0);
    record = record_stream(JOB, 2, "other");
    record.stream.samples = TEN + 24;
    write_one(store, record, 0, NULL, 0);
    record = record_watermark(JOB, 1, TEN + 30);
    record.watermark.generation = generation;
    record.watermark.cursor = (struct cursor){
        .stream = 1, .epoch = TEN + 31, .first = TEN + 25, .begin = TEN + 26, .steps = TEN + 34};
    write_one(store, record, 0, NULL, 0);
    record = record_consumed(JOB, 1, TEN + 31, TEN + 26, TEN + 35);
    record.consumption.cursor.first = TEN + 25;
    record.consumption.consumption.samples = TEN + 36;
    write_one(store, record, 0, NULL, 0);
    record = record_control(JOB, 1, HALT_REGROUP, TEN + 40);
    record.control.generation = generation;
    write_one(store, record, 0, NULL, 0);
    record = record_checkpoint(JOB, TEN + 28, "step");
    record.checkpoint.generation = generation;
    record.checkpoint.manifest_bytes = TEN + 51;
    write_one(store, record, 0, NULL, 0);
    write_one(store, record_task_exit(JOB, 0, TEN + 10, 3, "oh"), 0, NULL, 0);
}

static void look_for(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, text);
    }
}

static void assert_whole(struct store *store)
{
    char *text = store_text(store);
    static const char *const parts[] = {
        "job 10000000001 spec4 ",
        " wait 10000000002 stall 10000000003 at 10000000004 10000000005 ",
        " incarnations 10000000013 ",
        "generation 10000000021/",
        " resume 10000000020 released 10000000030 (1,10000000031: first 10000000025 begin "
        "10000000026 steps 10000000034)\n",
        " at 10000000040 of ",
        "  placed 0.10000000010 rank 0 on \"a\" again gone\n",
        "  placed 1.10000000011 rank 1 on \"b\" again\n",
        "  placed 2.10000000012 rank -1 ",
        "  task 0.10000000010 exited code 3 ",
        " after 10000000022/",
        " resume 10000000020 members 2 at 10000000023\n",
        " samples 10000000024\n",
        "  epoch (1,10000000031: first 10000000025 begin 10000000026 steps 0) consumed 10000000035 "
        "steps 10000000036 samples ",
        "  at stream 1 epoch 10000000031 steps 10000000034 applied ",
        "checkpoint at 10000000028 \"step\"",
        " 10000000051 bytes ",
    };
    for (size_t i = 0; i < CADRE_COUNT_OF(parts); i++) {
        look_for(text, parts[i]);
    }
    free(text);
}

/* The end of a job, which is recorded of another one. */
static void write_end(struct store *store)
{
    write_one(store, record_job(JOB + 1, 1), TEN + 60, NULL, 0);
    struct core_record record = record_done(JOB + 1, TEN + 61);
    write_one(store, record, 0, NULL, 0);
    write_one(store, record_ended(JOB + 1, JOB_SUCCEEDED, ""), TEN + 62, NULL, 0);
}

static void assert_end_whole(struct store *store)
{
    char *text = store_text(store);
    assert_true(store->ops->job_id_max(store) == JOB + 1);
    look_for(text, "job 10000000002 ");
    look_for(text, " at 10000000060 0 10000000062 ");
    look_for(text, " position 10000000061 ");
    look_for(text, "  done at 10000000061\n");
    free(text);
}

static void in_memory(void **state)
{
    (void)state;
    struct store *store = NULL;
    assert_ok(store_memory_open(&store, &error), &error);
    write_all(store);
    assert_whole(store);
    write_end(store);
    assert_end_whole(store);
    store->ops->close(store);
}

static void in_a_file(void **state)
{
    (void)state;
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    write_all(store);
    assert_whole(store);
    write_end(store);
    store->ops->close(store);
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_whole(store);
    assert_end_whole(store);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_memory), cmocka_unit_test(in_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
