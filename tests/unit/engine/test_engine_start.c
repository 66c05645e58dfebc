/* SPDX-License-Identifier: Apache-2.0
 * A start on a ledger that has grown: what of it is known afterwards, and, printed, how long it
 * took. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/wire/wire.h"
#include "coordinator/engine/engine.h"
#include "tests/lib/test.h"

#define ENDED   1000
#define RUNNING 50
#define EPOCHS  1000
#define STEPS   10

static const struct generation generation = {.number = 1, .nonce = 77};

struct story {
    struct core_record records[2 * EPOCHS + 16];
    struct store_record wrapped[2 * EPOCHS + 16];
    size_t count;
};

static struct core_record *tell(struct story *story, uint64_t job, enum core_record_type type)
{
    struct core_record *record = &story->records[story->count];
    *record = (struct core_record){.type = type, .job = {job}};
    story->wrapped[story->count++] = (struct store_record){.record = record, .wall_us = 1};
    return record;
}

static void write_started_job(struct story *story, uint64_t job, const struct wire_buffer *spec)
{
    static const struct store_placement placements[] = {
        {.slot = 0, .incarnation = 1, .worker = "a"}, {.slot = 1, .incarnation = 2, .worker = "b"}};
    struct core_record *submitted = tell(story, job, CORE_RECORD_JOB);
    submitted->submitted.spec = (struct core_job_spec){.tasks = 2, .tasks_min = 2};
    story->wrapped[0].spec = spec->bytes;
    story->wrapped[0].spec_bytes = spec->size;
    tell(story, job, CORE_RECORD_STARTED)->incarnation_max = 2;
    tell(story, job, CORE_RECORD_PLAN)->plan.generation = generation;
    for (size_t i = 1; i <= 2; i++) {
        story->wrapped[i].placements = placements;
        story->wrapped[i].target_count = 2;
    }
}

static void write_epochs(struct story *story, uint64_t job, uint64_t epochs)
{
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        struct cursor cursor = {.stream = 1,
            .epoch = epoch,
            .first = STEPS * epoch,
            .begin = STEPS * epoch,
            .steps = STEPS};
        tell(story, job, CORE_RECORD_END_OF_DATA)->end_of_data = cursor;
        struct core_record *record = tell(story, job, CORE_RECORD_CONSUMED);
        record->consumption.cursor = cursor;
        record->consumption.consumption =
            (struct consumption){.steps = STEPS, .samples = 80, .provable = true};
    }
    struct core_record *mark = tell(story, job, CORE_RECORD_WATERMARK);
    mark->watermark.generation = generation;
    mark->watermark.up_to = STEPS * epochs;
}

static void tell_end(struct story *story, uint64_t job)
{
    tell(story, job, CORE_RECORD_DONE)->done.position = STEPS * 20;
    tell(story, job, CORE_RECORD_ENDED)->ended.state = JOB_SUCCEEDED;
}

static void write_ledger(const char *path)
{
    struct cadre_error error = {0};
    struct store *store = NULL;
    struct wire_buffer spec = {0};
    struct story *story = calloc(1, sizeof *story);
    assert_non_null(story);
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_ok(
        wire_pack_job_spec(
            &(struct job_spec){
                .name = "training", .program = {.name = "program"}, .workers = 2, .strategy = ""},
            &spec, &error),
        &error);
    for (uint64_t job = 1; job <= ENDED + RUNNING; job++) {
        bool runs = job > ENDED;
        story->count = 0;
        write_started_job(story, job, &spec);
        write_epochs(story, job, runs ? EPOCHS : 20);
        if (!runs) {
            tell_end(story, job);
        }
        assert_ok(store->ops->commit(store, story->wrapped, story->count, false, &error), &error);
    }
    store->ops->close(store);
    wire_buffer_free(&spec);
    free(story);
}

static void send_nothing(void *user, struct job_id job)
{
    (void)user;
    (void)job;
}

static void a_long_ledger_is_read(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    struct store *store = NULL;
    struct engine *engine = NULL;
    struct job_info info;
    const struct engine_sink sink = {.job_changed = send_nothing};
    const struct engine_options options = {
        .core = {.limits = {.workers_max = 100, .jobs_max = 100, .tasks_max = 1000},
            .lease_us = CADRE_US_PER_S},
        .keep_jobs = ENDED};
    write_ledger(test_path(path, test_temp_dir(), "ledger.db"));
    uint64_t from_us = clock_monotonic_us();
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_ok(engine_open(&options, store, &sink, NULL, 1, &engine, &error), &error);
    assert_ok(engine_flush(engine, 1, &error), &error);
    uint64_t took_us = clock_monotonic_us() - from_us;
    print_message("%d jobs that ended and %d that run: %u ms\n", ENDED, RUNNING,
        (unsigned)(took_us / CADRE_US_PER_MS));
    assert_true(engine_job_info(engine, (struct job_id){ENDED + RUNNING}, &info));
    assert_int_equal(info.state, JOB_RUNNING);
    assert_int_equal(info.position, STEPS * EPOCHS);
    assert_true(engine_job_info(engine, (struct job_id){1}, &info));
    assert_int_equal(info.state, JOB_SUCCEEDED);
    engine_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_long_ledger_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
