/* SPDX-License-Identifier: Apache-2.0
 * Published checkpoints: how many are kept, who goes on from them. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/engine/stage.h"

/* A job of one task that keeps `kept` checkpoints; formed. */
static struct stage *stage_training(uint32_t kept)
{
    struct stage *stage = stage_open();
    struct job_spec spec = spec_of(1);
    spec.checkpoints_kept = kept;
    spec.max_restarts = 1;
    spec.checkpoint_every = 1;
    join(stage, 1, "one", 1);
    submit_spec(stage, 1, &spec);
    flush(stage);
    join(stage, 2, "two", 2);
    started(stage, 1, 1, 0);
    task_hello(stage, 1, 1, 0);
    flush(stage);
    stage_skip(stage);
    return stage;
}

/* The step is taken, and the checkpoint before the next one is published. */
static void publish(struct stage *stage, uint64_t position)
{
    arrived(stage, 1, 1, 1, position + 1); /* applied: position */
    part(stage, 1, 1, position);
    flush(stage);
}

struct seen {
    char text[512];
};

static void see(void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct seen *seen = user;
    size_t at = strlen(seen->text);
    snprintf(seen->text + at, sizeof seen->text - at, "%u:%u ", (unsigned)job.n,
        (unsigned)checkpoint->position);
}

static void assert_wanted(struct stage *stage, const char *expected)
{
    struct seen seen = {""};
    assert_ok(engine_each_checkpoint(stage->engine, see, &seen, &stage->error), &stage->error);
    assert_string_equal(seen.text, expected);
}

static void only_the_newest_are_kept(void **state)
{
    (void)state;
    struct stage *stage = stage_training(2);
    struct core_checkpoint newest;
    struct job_info info;
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    assert_false(engine_checkpoint(stage->engine, (struct job_id){1}, &newest));
    stage_skip(stage);
    publish(stage, 1);
    expect_output(stage, "commit!: watermark 1, checkpoint 1\n"
                         "link 1 job 1: release g1 to 2, published 1\n"
                         "changed 1: running\n");
    publish(stage, 2);
    stage_skip(stage);
    publish(stage, 3);
    expect_output(stage, "commit!: watermark 1, checkpoint 1, checkpoint dropped 1\n"
                         "link 1 job 1: release g1 to 4, published 3\n"
                         "changed 1: running\n"
                         "dropped checkpoint 1 of 1: checkpoints/checkpoint-1.json\n");
    assert_true(engine_checkpoint(stage->engine, (struct job_id){1}, &newest));
    assert_int_equal(newest.position, 3);
    assert_true(engine_checkpoint_at(stage->engine, (struct job_id){1}, 0, &newest));
    assert_int_equal(newest.position, 2);
    assert_false(engine_checkpoint_at(stage->engine, (struct job_id){1}, 2, &newest));
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_string_equal(info.checkpoint, "checkpoints/checkpoint-3.json");
    assert_wanted(stage, "1:2 1:3 ");
    stage_reopen(stage);
    assert_wanted(stage, "1:2 1:3 ");
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_string_equal(info.checkpoint, "checkpoints/checkpoint-3.json");
    stage_close(stage);
}

/* The job is beyond what it keeps twice, and each is dropped once. */
static void two_of_one_turn_drop_two(void **state)
{
    (void)state;
    struct stage *stage = stage_training(1);
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    publish(stage, 1);
    stage_skip(stage);
    for (uint64_t position = 2; position < 4; position++) {
        arrived(stage, 1, 1, 1, position + 1);
        part(stage, 1, 1, position);
    }
    flush(stage);
    expect_output(stage, "commit!: watermark 1, checkpoint 1, watermark 1, checkpoint 1, "
                         "checkpoint dropped 1, checkpoint dropped 1\n"
                         "link 1 job 1: release g1 to 4, published 3\n"
                         "changed 1: running\n"
                         "dropped checkpoint 1 of 1: checkpoints/checkpoint-1.json\n"
                         "dropped checkpoint 2 of 1: checkpoints/checkpoint-2.json\n");
    assert_wanted(stage, "1:3 ");
    stage_close(stage);
}

/* A coordinator of an older version was killed between the record of a checkpoint and the removal
 * of an older one. */
static void a_start_drops_what_was_left(void **state)
{
    (void)state;
    struct stage *stage = stage_training(1);
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    publish(stage, 1);
    const struct core_record left = {.type = CORE_RECORD_CHECKPOINT,
        .job = {1},
        .checkpoint = {.generation = {1, 1}, .position = 2, .path = "2"}};
    const struct store_record stored = {.record = &left};
    struct store *inner = stage->store.inner;
    assert_ok(inner->ops->commit(inner, &stored, 1, true, &stage->error), &stage->error);
    stage_reopen(stage);
    stage_skip(stage);
    flush(stage);
    expect_output(stage, "commit!: checkpoint dropped 1\n"
                         "changed 1: running\n"
                         "dropped checkpoint 1 of 1: checkpoints/checkpoint-1.json\n");
    assert_wanted(stage, "1:2 ");
    stage_close(stage);
}

static void another_job_goes_on_from_it(void **state)
{
    (void)state;
    struct stage *stage = stage_training(1);
    struct job_spec spec = spec_of(2);
    spec.restore_from.n = 77;
    submit_spec(stage, 2, &spec);
    spec.restore_from.n = 1;
    submit_spec(stage, 3, &spec);
    flush(stage);
    expect_output(stage,
        "answer 2: NOT_FOUND: job 77, from whose checkpoint this one is to go on, does not "
        "exist: `cadre jobs` lists them\n"
        "answer 3: FAILED_PRECONDITION: job 1 has no checkpoint to go on from: it was "
        "submitted without --checkpoint-every, or none is published yet\n");
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    publish(stage, 1);
    stage_skip(stage);
    submit_spec(stage, 4, &spec);
    flush(stage);
    expect_output(stage,
        "commit!: job 2, started 2\n"
        "answer 4: job 2, 0 before\n"
        "link 2: start 2/0#1 of 2 program from step 1 (checkpoints/checkpoint-1.json, 77 "
        "bytes, 01)\n"
        "link 2: start 2/1#2 of 2 program from step 1 (checkpoints/checkpoint-1.json, 77 "
        "bytes, 01)\n"
        "changed 2: starting\n");
    publish(stage, 2); /* the first one is not kept for job 1 any more */
    assert_wanted(stage, "1:2 2:1 ");
    stage_skip(stage);
    started(stage, 2, 2, 0);
    started(stage, 2, 2, 1);
    task_hello(stage, 2, 2, 0);
    task_hello(stage, 2, 2, 1);
    flush(stage);
    expect_output(stage, "commit!: plan 2\n"
                         "link 2 job 2: plan g1 of 2 from 1, state of no task\n"
                         "link 2 job 2: release g1 to 1, published 1\n"
                         "changed 2: running\n");
    stage_reopen(stage);
    assert_wanted(stage, "1:2 2:1 ");
    stage_close(stage);
}

static void it_may_be_that_of_a_step(void **state)
{
    (void)state;
    struct stage *stage = stage_training(2);
    struct job_spec spec = spec_of(1);
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    publish(stage, 1);
    publish(stage, 2);
    stage_skip(stage);
    spec.restore_from.n = 1;
    spec.restore_step = 3;
    submit_spec(stage, 2, &spec);
    spec.restore_step = 1;
    submit_spec(stage, 3, &spec);
    flush(stage);
    expect_output(stage,
        "commit!: job 2, started 2\n"
        "answer 2: NOT_FOUND: there is no checkpoint of step 3 of job 1: it keeps those of "
        "the steps 1 and 2\n"
        "answer 3: job 2, 0 before\n"
        "link 2: start 2/0#1 of 1 program from step 1 (checkpoints/checkpoint-1.json, 77 "
        "bytes, 01)\n"
        "changed 2: starting\n");
    stage_close(stage);
}

/* Whatever the folder is where the job's own go. */
static void an_object_that_is_named(void **state)
{
    (void)state;
    struct stage *stage = stage_training(1);
    struct job_spec spec = spec_of(1);
    spec.has_restore_checkpoint = true;
    spec.restore_checkpoint = (struct checkpoint_ref){.position = 40,
        .shared = true,
        .path = "s3://bkt/c-40.json",
        .manifest_bytes = 9,
        .manifest_sha256 = {7}};
    spec.checkpoint_folder = "/shared/a";
    submit_spec(stage, 2, &spec);
    flush(stage);
    expect_output(stage,
        "commit!: job 2, started 2\n"
        "answer 2: job 2, 0 before\n"
        "link 2: start 2/0#1 of 1 program from step 40 (s3://bkt/c-40.json, 9 bytes, 07, shared)\n"
        "changed 2: starting\n");
    spec = spec_of(1); /* a job that goes on from that job, which has none of its own */
    spec.restore_from.n = 2;
    submit_spec(stage, 3, &spec);
    flush(stage);
    expect_output(stage,
        "commit!: job 3, started 3\n"
        "answer 3: job 3, 0 before\n"
        "link 2: start 3/0#1 of 1 program from step 40 (s3://bkt/c-40.json, 9 bytes, 07, shared)\n"
        "changed 3: starting\n");
    stage_close(stage);
}

static void a_shared_folder_must_be_named(void **state)
{
    (void)state;
    struct stage *stage = stage_training(1);
    struct core_checkpoint origin = {.position = 40, .shared = true, .path = "c-40.json"};
    struct job_spec spec = spec_of(1);
    spec.checkpoint_folder = "/shared/a";
    engine_submit_restored(stage->engine, stage->now_us, (struct call_id){2}, &spec, &origin);
    flush(stage);
    expect_output(stage,
        "commit!: job 2, started 2\n"
        "answer 2: job 2, 0 before\n"
        "link 2: start 2/0#1 of 1 program from step 40 (c-40.json, 0 bytes, 00, shared)\n"
        "changed 2: starting\n");
    spec.restore_from.n = 2;
    submit_spec(stage, 3, &spec);
    spec.checkpoint_folder = "/shared/b";
    submit_spec(stage, 4, &spec);
    flush(stage);
    expect_output(stage,
        "commit!: job 3, started 3\n"
        "answer 3: job 3, 0 before\n"
        "link 2: start 3/0#1 of 1 program from step 40 (c-40.json, 0 bytes, 00, shared)\n"
        "answer 4: FAILED_PRECONDITION: the checkpoints of job 2 are in the shared folder "
        "/shared/a: submit with --checkpoint-folder /shared/a to go on from them\n"
        "changed 3: starting\n");
    stage_close(stage);
}

static void damage(struct stage *stage, uint64_t job, uint64_t position)
{
    engine_checkpoint_damaged(
        stage->engine, stage->now_us, (struct job_id){job}, position, "a byte differs");
    flush(stage);
}

static void a_damaged_one_gives_way_to_the_one_before(void **state)
{
    (void)state;
    struct stage *stage = stage_training(3);
    struct core_checkpoint newest;
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    for (uint64_t position = 1; position <= 3; position++) {
        publish(stage, position);
    }
    stage_skip(stage);
    damage(stage, 1, 9); /* none of the job's */
    damage(stage, 7, 3); /* no job */
    expect_output(stage, "");
    damage(stage, 1, 3);
    expect_output(stage, "commit!: checkpoint lost 1, published 1\n"
                         "changed 1: running\n");
    assert_true(engine_checkpoint(stage->engine, (struct job_id){1}, &newest));
    assert_int_equal(newest.position, 2);
    damage(stage, 1, 3); /* said twice */
    expect_output(stage, "");
    gone(stage, 1, 1, 0, 9, "");
    collected(stage, 1, 1, 0);
    flush(stage);
    assert_non_null(strstr(stage->transcript, "program from step 2 (checkpoints/checkpoint-2"));
    stage_close(stage);
}

/* Who has a checkpoint of its own needs that of the other job no more, nor does who has ended. */
static void an_unreferenced_origin_may_be_damaged(void **state)
{
    (void)state;
    struct stage *stage = stage_training(1);
    struct job_spec spec = spec_of(1);
    spec.restore_from.n = 1;
    spec.checkpoint_every = 1;
    arrived(stage, 1, 1, 1, 1);
    flush(stage);
    publish(stage, 1);
    submit_spec(stage, 2, &spec);
    submit_spec(stage, 3, &spec);
    flush(stage);
    cancel(stage, 4, 3);
    flush(stage);
    started(stage, 2, 2, 0);
    task_hello(stage, 2, 2, 0);
    flush(stage);
    arrived(stage, 2, 2, 1, 2);
    arrived(stage, 2, 2, 1, 3);
    part(stage, 2, 2, 2);
    flush(stage);
    stage_skip(stage);
    damage(stage, 2, 1);
    damage(stage, 3, 1);
    expect_output(stage, "");
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_newest_are_kept),
        cmocka_unit_test(two_of_one_turn_drop_two), cmocka_unit_test(a_start_drops_what_was_left),
        cmocka_unit_test(another_job_goes_on_from_it), cmocka_unit_test(it_may_be_that_of_a_step),
        cmocka_unit_test(an_object_that_is_named), cmocka_unit_test(a_shared_folder_must_be_named),
        cmocka_unit_test(a_damaged_one_gives_way_to_the_one_before),
        cmocka_unit_test(an_unreferenced_origin_may_be_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
