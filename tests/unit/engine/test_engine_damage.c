/* SPDX-License-Identifier: Apache-2.0
 * A ledger in which another program changed a record: its job ends and reports what is lost, the
 * others go on as they were. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/wire.h"
#include "coordinator/engine/engine.h"
#include "tests/lib/test.h"

enum { RUNS = 1, ENDED = 2, OTHER = 3 };

static char path[TEST_PATH_BYTES];

static void tell(
    struct store *store, const struct core_record *record, const void *spec, size_t spec_bytes)
{
    static const struct store_placement place = {.slot = 0, .incarnation = 1, .worker = "w1"};
    struct cadre_error error = {0};
    const struct store_record wrapped = {.record = record,
        .wall_us = 1,
        .spec = spec,
        .spec_bytes = spec_bytes,
        .placements = &place,
        .target_count = record->type == CORE_RECORD_PLAN || record->type == CORE_RECORD_STARTED};
    assert_ok(store->ops->commit(store, &wrapped, 1, false, &error), &error);
}

static void notify_job(struct store *store, uint64_t job, const char *name)
{
    struct cadre_error error = {0};
    struct wire_buffer spec = {0};
    const struct generation generation = {.number = 1, .nonce = 7};
    assert_ok(wire_pack_job_spec(
                  &(struct job_spec){
                      .name = name, .program = {.name = "program"}, .workers = 1, .strategy = ""},
                  &spec, &error),
        &error);
    struct core_record record = {.type = CORE_RECORD_JOB, .job = {job}};
    record.submitted.spec = (struct core_job_spec){.tasks = 1, .tasks_min = 1};
    tell(store, &record, spec.bytes, spec.size);
    tell(store,
        &(struct core_record){.type = CORE_RECORD_STARTED, .job = {job}, .incarnation_max = 1},
        NULL, 0);
    record = (struct core_record){.type = CORE_RECORD_PLAN, .job = {job}};
    record.plan.generation = generation;
    tell(store, &record, NULL, 0);
    record = (struct core_record){.type = CORE_RECORD_WATERMARK, .job = {job}};
    record.watermark.generation = generation;
    record.watermark.up_to = 5;
    tell(store, &record, NULL, 0);
    record = (struct core_record){.type = CORE_RECORD_CHECKPOINT, .job = {job}};
    record.checkpoint =
        (struct core_checkpoint){.position = 5, .generation = generation, .path = "checkpoint-5"};
    tell(store, &record, NULL, 0);
    if (job == ENDED) {
        record = (struct core_record){.type = CORE_RECORD_ENDED, .job = {job}};
        record.ended.state = JOB_SUCCEEDED;
        snprintf(record.ended.text, sizeof record.ended.text, "finished after 5 steps");
        tell(store, &record, NULL, 0);
    }
    wire_buffer_free(&spec);
}

static void send_nothing(void *user, struct job_id job)
{
    (void)user;
    (void)job;
}

static struct engine *open_after(const char *sql)
{
    struct cadre_error error = {0};
    struct store *store = NULL;
    struct engine *engine = NULL;
    sqlite3 *database = NULL;
    const struct engine_sink sink = {.job_changed = send_nothing};
    const struct engine_options options = {
        .core = {.limits = {.workers_max = 10, .jobs_max = 10, .tasks_max = 10},
            .lease_us = 1000000},
        .keep_jobs = 10};
    test_path(path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    notify_job(store, RUNS, "runs");
    notify_job(store, ENDED, "ended");
    notify_job(store, OTHER, "other");
    store->ops->close(store);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_ok(engine_open(&options, store, &sink, NULL, 1, &engine, &error), &error);
    assert_ok(engine_flush(engine, 1, &error), &error);
    return engine;
}

static void assert_others_go_on(struct engine *engine)
{
    struct job_info info;
    struct verify_response response;
    struct cadre_error error = {0};
    assert_true(engine_job_info(engine, (struct job_id){OTHER}, &info));
    assert_int_equal(info.state, JOB_RUNNING);
    assert_string_equal(info.name, "other");
    assert_false(engine_job_is_damaged(engine, (struct job_id){OTHER}));
    assert_ok(
        engine_verify(engine, &(struct verify_request){.id = {OTHER}}, &response, &error), &error);
    assert_int_equal(response.generation_count, 1);
}

static void assert_lost(struct engine *engine, uint64_t id, const char *name, const char *what)
{
    struct job_info info;
    struct verify_response response;
    struct cadre_error error = {0};
    assert_true(engine_job_info(engine, (struct job_id){id}, &info));
    assert_int_equal(info.state, id == ENDED ? JOB_SUCCEEDED : JOB_FAILED);
    assert_string_equal(info.name, name);
    assert_non_null(strstr(info.message, what));
    assert_true(engine_job_is_damaged(engine, (struct job_id){id}));
    assert_error(engine_verify(engine, &(struct verify_request){.id = {id}}, &response, &error),
        CADRE_DATA_LOSS, &error, what);
}

static void a_job_that_ran_has_failed(void **state)
{
    (void)state;
    struct engine *engine = open_after("UPDATE plan SET resume = 3 WHERE job = 1");
    struct core_checkpoint checkpoint;
    assert_lost(engine, RUNS, "runs", "lost its generations (generation 1)");
    assert_others_go_on(engine);
    assert_true(engine_checkpoint(engine, (struct job_id){RUNS}, &checkpoint)); /* is whole */
    engine_close(engine);
}

static void one_that_ended_has_its_outcome(void **state)
{
    (void)state;
    struct engine *engine = open_after("UPDATE checkpoint SET position = 6 WHERE job = 2");
    struct core_checkpoint checkpoint;
    assert_lost(engine, ENDED, "ended", "finished after 5 steps; since then the ledger is damaged");
    assert_others_go_on(engine);
    assert_false(engine_checkpoint(engine, (struct job_id){ENDED}, &checkpoint));
    engine_close(engine);
}

static void one_whose_name_is_lost_is_listed(void **state)
{
    (void)state;
    struct engine *engine = open_after("UPDATE job SET spec = x'0a' || spec WHERE id = 1");
    assert_lost(engine, RUNS, "(damaged)", "lost its submission and how it ended");
    assert_others_go_on(engine);
    engine_close(engine);
}

/* The tasks of a ps job are in no roster: a ledger with such a row was written by a fault, and its
 * rows are whole. The coordinator does not start on it. */
static void only_the_chief_of_a_ps_job_is_a_member(void **state)
{
    (void)state;
    static const struct store_placement placements[] = {
        {.slot = 0, .incarnation = 1, .worker = "w1"},
        {.slot = 1, .incarnation = 2, .worker = "w1"}};
    for (size_t first = 0; first < 2; first++) { /* both of them; a server alone */
        struct cadre_error error = {0};
        struct wire_buffer spec = {0};
        struct store *store = NULL;
        struct engine *engine = NULL;
        const struct engine_sink sink = {.job_changed = send_nothing};
        test_path(path, test_temp_dir(), first == 0 ? "both.db" : "server.db");
        assert_ok(store_sqlite_open(path, &store, &error), &error);
        assert_ok(wire_pack_job_spec(&(struct job_spec){.name = "ps job",
                                         .program = {.name = "program"},
                                         .workers = 3,
                                         .workers_min = 3,
                                         .strategy = PS_JOB_STRATEGY,
                                         .ps_job = {.workers = 1, .servers = 1}},
                      &spec, &error),
            &error);
        struct core_record records[3] = {{.type = CORE_RECORD_JOB, .job = {RUNS}},
            {.type = CORE_RECORD_STARTED, .job = {RUNS}, .incarnation_max = 2},
            {.type = CORE_RECORD_PLAN, .job = {RUNS}}};
        records[0].submitted.spec = (struct core_job_spec){.tasks = 3, .tasks_min = 3};
        records[2].plan.generation = (struct generation){.number = 1, .nonce = 7};
        for (size_t i = 0; i < 3; i++) {
            const struct store_record record = {.record = &records[i],
                .wall_us = 1,
                .spec = spec.bytes,
                .spec_bytes = spec.size,
                .placements = i == 2 ? placements + first : placements,
                .target_count = i == 0   ? 0
                                : i == 1 ? 2
                                         : 2 - first};
            assert_ok(store->ops->commit(store, &record, 1, false, &error), &error);
        }
        const struct engine_options options = {
            .core = {.limits = {.workers_max = 10, .jobs_max = 10, .tasks_max = 10},
                .lease_us = 1000000},
            .keep_jobs = 10};
        assert_error(engine_open(&options, store, &sink, NULL, 1, &engine, &error), CADRE_DATA_LOSS,
            &error, "other members than its chief");
        wire_buffer_free(&spec);
        store->ops->close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_job_that_ran_has_failed),
        cmocka_unit_test(one_that_ended_has_its_outcome),
        cmocka_unit_test(one_whose_name_is_lost_is_listed),
        cmocka_unit_test(only_the_chief_of_a_ps_job_is_a_member)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
