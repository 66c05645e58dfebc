/* SPDX-License-Identifier: Apache-2.0
 * Submissions that are repeated with their request id make one job. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/directory.h"
#include "tests/unit/engine/stage.h"

static struct job_spec spec_with_id(uint32_t tasks, uint8_t id)
{
    struct job_spec spec = spec_of(tasks);
    spec.has_request_id = true;
    memset(spec.request_id, id, sizeof spec.request_id);
    return spec;
}

static void submit_with_id(struct stage *stage, uint64_t call, uint8_t id)
{
    const struct job_spec spec = spec_with_id(1, id);
    submit_spec(stage, call, &spec);
}

static void two_in_one_turn_make_one_job(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    submit_with_id(stage, 1, 9);
    submit_with_id(stage, 2, 9);
    flush(stage);
    expect_output(stage, "commit!: job 1\n"
                         "answer 1: job 1, 0 before\n"
                         "answer 2: job 1, 0 before\n"
                         "changed 1: queued\n");
    stage_close(stage);
}

static void another_id_and_none_make_other_jobs(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    submit_with_id(stage, 1, 9);
    submit_with_id(stage, 2, 8);
    submit(stage, 3, 1);
    flush(stage);
    expect_output(stage, "commit!: job 1, job 2, job 3\n"
                         "answer 1: job 1, 0 before\n"
                         "answer 2: job 2, 1 before\n"
                         "answer 3: job 3, 2 before\n"
                         "changed 1: queued\n"
                         "changed 2: queued\n"
                         "changed 3: queued\n");
    submit(stage, 4, 1);
    submit_with_id(stage, 5, 9); /* that one is known, though there is no room for another */
    flush(stage);
    expect_output(stage, "answer 4: RESOURCE_EXHAUSTED: the coordinator holds 3 jobs that have not "
                         "ended, which is its limit: try again when one has, or raise --jobs-max\n"
                         "answer 5: job 1, 0 before\n");
    stage_close(stage);
}

static void a_coordinator_that_was_started_again_knows_it(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    submit_with_id(stage, 1, 9);
    flush(stage);
    stage_reopen(stage);
    flush(stage);
    stage_skip(stage);
    submit_with_id(stage, 2, 9);
    flush(stage);
    expect_output(stage, "answer 2: job 1, 0 before\n");
    stage_close(stage);
}

/* Its record was not stored: nothing was made, and the repetition makes it. */
static void a_job_that_was_not_stored_is_not_known(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->store.failing_commit = 1;
    submit_with_id(stage, 1, 9);
    assert_int_not_equal(engine_flush(stage->engine, stage->now_us, &stage->error), CADRE_OK);
    stage_reopen(stage);
    stage_skip(stage);
    const struct job_spec spec = spec_with_id(1, 9);
    assert_false(engine_knows_request(stage->engine, &spec));
    submit_spec(stage, 2, &spec);
    flush(stage);
    expect_output(stage, "commit!: job 1\n"
                         "answer 2: job 1, 0 before\n"
                         "changed 1: queued\n");
    stage_close(stage);
}

static void an_id_with_another_spec_is_refused(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    submit_with_id(stage, 1, 9);
    flush(stage);
    stage_skip(stage);
    const struct job_spec other = spec_with_id(2, 9);
    submit_spec(stage, 2, &other);
    flush(stage);
    expect_output(stage, "answer 2: ALREADY_EXISTS: job 1 was submitted with this request id and "
                         "another spec: draw a new id for each submission\n");
    stage_close(stage);
}

static void an_id_is_known_as_long_as_the_job(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    const struct job_spec spec = spec_with_id(1, 9);
    submit_spec(stage, 1, &spec);
    cancel(stage, 2, 1);
    flush(stage);
    stage_skip(stage);
    submit_spec(stage, 3, &spec); /* it has ended */
    flush(stage);
    expect_output(stage, "answer 3: job 1, 0 before\n");
    assert_int_equal(engine_forget_job(stage->engine, (struct job_id){1}, &stage->error), CADRE_OK);
    stage_skip(stage);
    assert_false(engine_knows_request(stage->engine, &spec));
    submit_spec(stage, 4, &spec);
    flush(stage);
    expect_output(stage, "commit!: job 2\n"
                         "answer 4: job 2, 0 before\n"
                         "changed 2: queued\n");
    stage_close(stage);
}

#define JOBS 500

/* Ids of a few bits, so that many searches begin at one slot, and pass others. */
static void the_table_finds_what_is_left(void **state)
{
    (void)state;
    struct directory_requests requests = {0};
    struct directory_entry *entries = calloc(JOBS, sizeof *entries);
    assert_non_null(entries);
    for (uint32_t i = 0; i < JOBS; i++) {
        entries[i].spec.has_request_id = true;
        memcpy(entries[i].spec.request_id, &i, sizeof i);
        assert_int_equal(directory_requests_add(&requests, &entries[i], NULL), CADRE_OK);
    }
    for (uint32_t i = 0; i < JOBS; i += 3) {
        directory_requests_remove(&requests, &entries[i]);
        directory_requests_remove(&requests, &entries[i]); /* it is not in it */
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        assert_ptr_equal(directory_requests_find(&requests, entries[i].spec.request_id),
            i % 3 == 0 ? NULL : &entries[i]);
    }
    directory_requests_free(&requests);
    assert_null(directory_requests_find(&requests, entries[1].spec.request_id));
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_in_one_turn_make_one_job),
        cmocka_unit_test(another_id_and_none_make_other_jobs),
        cmocka_unit_test(a_coordinator_that_was_started_again_knows_it),
        cmocka_unit_test(a_job_that_was_not_stored_is_not_known),
        cmocka_unit_test(an_id_with_another_spec_is_refused),
        cmocka_unit_test(an_id_is_known_as_long_as_the_job),
        cmocka_unit_test(the_table_finds_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
