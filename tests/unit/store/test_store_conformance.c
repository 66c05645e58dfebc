/* SPDX-License-Identifier: Apache-2.0
 * What every store promises, asked of each of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/store/entries_store.h"
#include "tests/unit/store/store_fixture.h"

struct kind {
    const char *name;
    cadre_status (*open)(struct store **ret_store, struct cadre_error *error);
};

static const struct kind kinds[] = {{"memory", store_memory_open}, {"sqlite", open_sqlite},
    {"memory of entries", open_memory_of_entries}, {"sqlite of entries", open_sqlite_of_entries}};

struct fixture {
    const struct kind *kind;
    struct store *store;
    struct cadre_error error;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.kind = *state};
    assert_ok(fixture.kind->open(&fixture.store, &fixture.error), &fixture.error);
    assert_string_equal(fixture.store->ops->name, fixture.kind->name);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->store->ops->close(fixture->store);
    return 0;
}

static void a_new_one_is_empty(void **state)
{
    struct fixture *fixture = *state;
    assert_store_text(fixture->store, "");
    assert_int_equal(fixture->store->ops->job_id_max(fixture->store), 0);
    assert_ok(fixture->store->ops->commit(fixture->store, NULL, 0, true, &fixture->error),
        &fixture->error);
    fixture->store->ops->close(NULL);
}

static void each_start_has_a_higher_number(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    const struct term first = store->ops->term(store);
    assert_int_equal(first.start, 0);
    assert_true(first.cluster != 0);
    assert_ok(COMMIT(store, true, &fixture->error, record_term(1)), &fixture->error);
    assert_int_equal(store->ops->term(store).start, 1);
    assert_ok(COMMIT(store, true, &fixture->error, record_term(8)), &fixture->error);
    const struct term term = store->ops->term(store);
    assert_int_equal(term.start, 8);
    assert_true(term.cluster == first.cluster && term.nonce == first.nonce);
    struct store *other = NULL;
    assert_ok(fixture->kind->open(&other, &fixture->error), &fixture->error);
    const struct term others = other->ops->term(other);
    assert_true(others.cluster != first.cluster && others.nonce != first.nonce);
    other->ops->close(other);
}

static void secrets_differ(void **state)
{
    struct fixture *fixture = *state;
    uint8_t one[STORE_SECRET_BYTES];
    uint8_t again[STORE_SECRET_BYTES];
    uint8_t other[STORE_SECRET_BYTES];
    struct store *second = NULL;
    fixture->store->ops->secret(fixture->store, one);
    fixture->store->ops->secret(fixture->store, again);
    assert_memory_equal(one, again, sizeof one);
    assert_ok(fixture->kind->open(&second, &fixture->error), &fixture->error);
    second->ops->secret(second, other);
    assert_memory_not_equal(one, other, sizeof one);
    second->ops->close(second);
}

static void reports_all_that_was_written(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(fixture->store, i, &fixture->error), &fixture->error);
    }
    assert_store_text(fixture->store,
        "job 1 spec 18 tasks 1-2 priority -1 restarts 3 wait 4000 stall 5000 at 1001 1002 1014 "
        "incarnations 7 position 6 failed started code 10 exit 137 \"task 0 failed\"\n"
        "  restarts 1 generation 2/fffffffffffffffd of 1 resume 6 released 6 (1,2: first 5 begin 5 "
        "steps 0)\n"
        "  halt 2 at 9 of ffffffff\n"
        "  done at 6\n"
        "  ending as failed code 10 exit 137 \"task 0 fails\"\n"
        "  placed 0.7 rank -1 on \"worker of 0\" again\n"
        "  placed 1.2 rank -1 on \"worker b\" gone\n"
        "  at stream 1 epoch 2 steps 0 applied 0\n"
        "  at stream 2 epoch 5 steps 0 applied 2\n"
        "  newest:  checkpoint at 5 \"step-5\" shared of 1/fffffffffffffffe 77 bytes 01020300\n"
        "  task 0.1 exited code 3 signal 0 \"oh\"\n"
        "  task 1.2 exited code 0 signal 9 \"\"\n"
        "  plan 1/fffffffffffffffe after 0/ffffffffffffffff resume 0 members 2 at 1004\n"
        "  plan 2/fffffffffffffffd after 1/fffffffffffffffe resume 6 members 1 at 1004\n"
        "  stream 1 \"train\" samples 1000 shares\n"
        "  stream 2 \"validate\" samples 2000\n"
        "  epoch (1,0: first 1 begin 2 steps 0) consumed 4 steps 32 samples fffffffffffffffb/4 of "
        "fffffffffffffffb/7 provable\n"
        "  epoch (2,5: first 2 begin 4 steps 0) consumed 2 steps 16 samples fffffffffffffffd/2 of "
        "fffffffffffffffd/7\n"
        "  checkpoint at 4 \"step-4\" of 1/fffffffffffffffe 77 bytes 01020300\n"
        "  checkpoint at 5 \"step-5\" shared of 1/fffffffffffffffe 77 bytes 01020300\n"
        "job 2 spec 28 tasks 1-1 priority -2 restarts 3 wait 4000 stall 5000 at 2001 0 0 "
        "incarnations 0 position 0 queued code 0 exit 0 \"\"\n"
        "  from:  checkpoint at 33 \"origin\" shared of 1/fffffffffffffffe 77 bytes 01020300\n"
        "  restarts 0 generation 0/0 of 0 resume 0 released 0 (0,0: first 0 begin 0 steps 0)\n"
        "  newest:  checkpoint at 33 \"origin\" shared of 1/fffffffffffffffe 77 bytes 01020300\n");
    assert_int_equal(fixture->store->ops->job_id_max(fixture->store), 2);
}

/* Expects the text to hold `part`, or not to. */
static void look_for(struct store *store, const char *part, bool wanted)
{
    char *text = store_text(store);
    if ((strstr(text, part) != NULL) != wanted) {
        fail_msg("%s \"%s\" in: %s", wanted ? "no" : "there is", part, text);
    }
    free(text);
}

static void assert_holds(struct store *store, const char *part)
{
    look_for(store, part, true);
}

static void assert_lacks(struct store *store, const char *part)
{
    look_for(store, part, false);
}

static void a_plan_cuts_the_ledger(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_plan(1, 1, 0),
                  record_watermark(1, 1, 50), record_plan(1, 2, 40)),
        error);
    assert_holds(store,
        "generation 2/fffffffffffffffd of 1 resume 40 released 40 (0,0: first 40 begin "
        "40 steps 0)");
    assert_ok(COMMIT(store, false, error, record_watermark(1, 2, 41)), error);
    assert_holds(store, "resume 40 released 41 (1,2: first 40 begin 40 steps 0)");
    /* One at the watermark keeps what is known of the position before it. */
    assert_ok(COMMIT(store, false, error, record_plan(1, 3, 41)), error);
    assert_holds(store, "resume 41 released 41 (1,2: first 40 begin 40 steps 0)");
    assert_holds(store, "plan 3/fffffffffffffffc after 2/fffffffffffffffd resume 41 restarted "
                        "members 1 at 1004\n");
    /* One beyond a watermark whose tail was lost: nothing is known. */
    assert_ok(COMMIT(store, false, error, record_plan(1, 4, 60)), error);
    assert_holds(store, "resume 60 released 60 (0,0: first 60 begin 60 steps 0)");
}

static void what_begins_beyond_a_plan_is_void(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_consumed(1, 1, 0, 0, 20),
                  record_consumed(1, 2, 0, 20, 5), record_consumed(1, 1, 1, 25, 10),
                  record_end_of_data(1, 3)),
        error);
    assert_holds(store, "at stream 1 epoch 3 steps 5 applied 0\n");
    assert_holds(store, "at stream 2 epoch 0 steps 0 applied 5\n");
    assert_ok(COMMIT(store, true, error, record_plan(1, 1, 22)), error);
    assert_holds(store, "epoch (1,0: first 0 begin 0 steps 0) consumed 20 steps 160 samples");
    assert_holds(store, "epoch (2,0: first 10 begin 20 steps 0) consumed 5"); /* until newer comes "
                        "*/
    assert_lacks(store, "epoch (1,1:");
    assert_holds(store, "at stream 1 epoch 3 steps 5"); /* its end began before, at 10 */
    assert_ok(
        COMMIT(store, true, error, record_consumed(1, 2, 0, 20, 2), record_plan(1, 2, 10)), error);
    assert_lacks(store, "at stream 1 epoch 3");
    assert_lacks(store, "epoch (2,0:");
    assert_holds(store, "at stream 1 epoch 0 steps 0 applied 20\n");
}

static void a_plan_goes_back_to_an_earlier_run(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_consumed(1, 1, 0, 2, 10),
                  record_consumed(1, 1, 0, 20, 15), record_consumed(1, 1, 0, 30, 18)),
        error);
    assert_holds(store, "epoch (1,0: first 15 begin 30 steps 0) consumed 18 steps");
    assert_ok(COMMIT(store, true, error, record_plan(1, 1, 25)), error);
    assert_holds(store, "epoch (1,0: first 10 begin 20 steps 0) consumed 15 steps");
    /* No plan resumes before the newest checkpoint: its runs fold into one. */
    assert_ok(COMMIT(store, true, error, record_checkpoint(1, 24, "c"),
                  record_consumed(1, 1, 0, 26, 16), record_plan(1, 2, 20)),
        error);
    assert_lacks(store, "epoch (1,0:");
}

/* Never more than was committed: not what was only released, not what a plan undid. */
static void it_is_reported_what_is_committed(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_plan(1, 1, 0),
                  record_watermark(1, 1, 20)),
        error);
    assert_holds(store, " position 0 ");
    assert_ok(COMMIT(store, false, error, record_consumed(1, 1, 0, 0, 8)), error);
    assert_holds(store, " position 8 ");
    assert_ok(
        COMMIT(store, false, error, record_consumed(1, 2, 0, 8, 2)), error); /* 4 + 2: no less */
    assert_holds(store, " position 8 ");
    assert_ok(COMMIT(store, true, error, record_plan(1, 2, 2), record_watermark(1, 2, 30)), error);
    assert_holds(store, " position 2 ");
    assert_ok(COMMIT(store, true, error, record_ending(1, JOB_CANCELLED, "enough")), error);
    assert_holds(store, " position 3 ");
    assert_ok(COMMIT(store, false, error, record_consumed(1, 1, 0, 4, 3)), error);
    assert_holds(store, " position 5 ");
    assert_ok(COMMIT(store, true, error, record_ended(1, JOB_CANCELLED, "enough")), error);
    assert_holds(store, " position 5 ");
    assert_ok(COMMIT(store, true, error, record_done(1, 31)), error);
    assert_holds(store, " position 31 ");
}

static void a_halt_is_of_its_generation(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_plan(1, 1, 0),
                  record_control(1, 1, HALT_REGROUP, 5)),
        error);
    assert_holds(store, "halt 1 at 5 of ffffffff\n");
    assert_ok(COMMIT(store, true, error, record_control(1, 1, HALT_NONE, 5)), error);
    assert_lacks(store, "halt ");
    assert_ok(COMMIT(store, true, error, record_control(1, 1, HALT_STOP, 6), record_plan(1, 2, 5)),
        error);
    assert_lacks(store, "halt ");
    assert_ok(COMMIT(store, true, error, record_control(1, 2, HALT_STOP, 5)), error);
    assert_holds(store, "halt 2 at 5 of");
}

/* A preempted job waits again: what it was is known, where it ran is not. */
static void a_job_goes_back_to_the_queue(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    const struct core_record queued = {.type = CORE_RECORD_QUEUED, .job.n = 1};
    assert_ok(commit_placed(store, true,
                  (const struct core_record[]){record_job(1, 3), record_started(1, 3),
                      record_plan(1, 1, 0), record_control(1, 1, HALT_STOP, 5), record_done(1, 5)},
                  5, 3, error),
        error);
    assert_holds(store, "halt 2 at 5 of");
    assert_holds(store, "placed 0.");
    assert_ok(COMMIT(store, true, error, queued), error);
    assert_holds(store, "restarts 0 generation 1/");
    assert_lacks(store, "halt ");
    assert_lacks(store, "done at");
    assert_lacks(store, "placed ");
    assert_ok(
        commit_placed(store, true,
            (const struct core_record[]){record_started(1, 6), record_plan(1, 2, 5)}, 2, 3, error),
        error);
    assert_holds(store, "resume 5");
    assert_holds(store, "placed 0.");
}

static void tasks_are_reported_where_they_were_placed(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(commit_placed(store, true,
                  (const struct core_record[]){record_job(1, 3), record_started(1, 3),
                      record_plan(1, 1, 0), record_task_exit(1, 1, 2, 1, ""),
                      record_task_exit(1, 2, 3, 99, "")},
                  5, 3, error),
        error);
    assert_holds(store, "  placed 0.1 rank 0 on \"worker a\"\n"
                        "  placed 1.2 rank 1 on \"worker b\" gone\n"
                        "  placed 2.3 rank 2 on \"worker c\" lost\n");
    assert_ok(COMMIT(store, true, error, record_task(1, 1, 4)), error);
    assert_holds(store, "incarnations 4 ");
    assert_holds(store, "  placed 1.4 rank -1 on \"worker of 1\" again\n");
    assert_ok(COMMIT(store, true, error, record_task(1, 1, 3)), error); /* said late */
    assert_holds(store, "  placed 1.4 rank -1 on");
    assert_ok(COMMIT(store, true, error, record_plan(1, 2, 7)), error); /* of slot 0 alone */
    assert_holds(store, "  placed 0.1 rank 0 on \"worker a\"\n"
                        "  placed 1.4 rank -1 on \"worker of 1\" again\n"
                        "  placed 2.3 rank -1 on \"worker c\" lost\n");
}

static void a_job_may_come_from_anothers_checkpoint(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_restoring_job(1, 1, 33)), error);
    assert_holds(store, "from:  checkpoint at 33 \"origin\" shared of");
    assert_holds(store, "newest:  checkpoint at 33 \"origin\"");
    assert_lacks(store, "\n  checkpoint at 33"); /* it is none of its own */
    assert_ok(COMMIT(store, true, error, record_checkpoint(1, 40, "own")), error);
    assert_holds(store, "newest:  checkpoint at 40 \"own\"");
    assert_holds(store, "from:  checkpoint at 33");
}

static void the_newest_checkpoint_counts(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 1), record_checkpoint(1, 20, "b"),
                  record_checkpoint(1, 10, "a")),
        error);
    assert_holds(store, "newest:  checkpoint at 20 \"b\"");
    assert_ok(COMMIT(store, true, error, record_checkpoint(1, 20, "b/again")), error);
    assert_holds(store, "\n  checkpoint at 10 \"a\" of 1/fffffffffffffffe 77 bytes 01020300\n"
                        "  checkpoint at 20 \"b/again\" of 1/fffffffffffffffe 77 bytes");
    assert_ok(COMMIT(store, true, error, record_dropped(1, 10)), error);
    assert_lacks(store, "checkpoint at 10");
    assert_ok(COMMIT(store, true, error, record_dropped(1, 10)), error); /* no effect */
    assert_ok(COMMIT(store, true, error, record_dropped(1, 20)), error);
    assert_lacks(store, "newest:");
}

static void an_unknown_job_has_nothing_to_report(void **state)
{
    struct fixture *fixture = *state;
    const struct store_ops *ops = fixture->store->ops;
    struct cadre_error *error = &fixture->error;
    struct job_id job = {8};
    assert_error(ops->task_exits(fixture->store, job, NULL, NULL, error), CADRE_NOT_FOUND, error,
        "no job 8");
    const struct store_walk nothing = {0};
    assert_error(
        ops->ledger(fixture->store, job, &nothing, error), CADRE_NOT_FOUND, error, "no job 8");
    assert_error(ops->checkpoints(fixture->store, job, NULL, NULL, error), CADRE_NOT_FOUND, error,
        "no job 8");
    assert_ok(COMMIT(fixture->store, true, error, record_dropped(8, 1)), error); /* no effect */
    assert_ok(COMMIT(fixture->store, true, error, record_job(8, 1), record_plan(8, 1, 0)), error);
    assert_ok(ops->ledger(fixture->store, job, &nothing, error), error);
}

static void the_newest_incarnation_counts(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    assert_ok(
        COMMIT(store, true, &fixture->error, record_job(1, 3), record_task_exit(1, 2, 5, 1, "five"),
            record_task_exit(1, 0, 7, 99, "lost"), record_task_exit(1, 2, 4, 2, "four")),
        &fixture->error);
    assert_ok(
        COMMIT(store, false, &fixture->error, record_task_exit(1, 0, 8, 3, "")), &fixture->error);
    assert_holds(store,
        "\n  task 0.8 exited code 3 signal 0 \"\"\n  task 2.5 exited code 1 signal 0 \"five\"\n");
}

static void jobs_come_in_order_of_id(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    assert_ok(
        COMMIT(store, true, &fixture->error, record_job(7, 1), record_job(3, 1)), &fixture->error);
    assert_ok(COMMIT(store, true, &fixture->error, record_job(5, 1)), &fixture->error);
    char *text = store_text(store);
    const char *three = strstr(text, "job 3");
    const char *five = strstr(text, "job 5");
    const char *seven = strstr(text, "job 7");
    assert_true(three != NULL && five != NULL && seven != NULL && three < five && five < seven);
    free(text);
    assert_int_equal(store->ops->job_id_max(store), 7);
}

static void texts_fill_their_room(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    char text[LIMIT_TEXT_BYTES];
    char path[LIMIT_FILE_NAME_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    memset(path, 'y', sizeof path);
    path[250] = path[500] = path[750] = path[1000] = '/'; /* parts of at most 255 bytes */
    path[sizeof path - 1] = '\0';
    assert_ok(COMMIT(store, true, &fixture->error, record_job(1, 1), record_checkpoint(1, 1, path),
                  record_task_exit(1, 0, 1, 1, text), record_ended(1, JOB_CANCELLED, text)),
        &fixture->error);
    assert_holds(store, text);
    assert_holds(store, path);
}

static void a_bad_record_spoils_its_whole_commit(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 2)), error);
    char *before = store_text(store);
    const struct core_record bad[] = {record_job(1, 2), record_started(9, 1), record_plan(9, 1, 0),
        record_task(9, 0, 1), record_backed(9, 0, 1, 2), record_verified(9, 1, 1),
        record_control(9, 1, HALT_STOP, 1), record_watermark(9, 1, 1),
        record_consumed(9, 1, 1, 1, 1), record_stream(9, 1, "s"), record_end_of_data(9, 1),
        record_checkpoint(9, 1, "p"), record_done(9, 1), record_task_exit(9, 0, 1, 1, ""),
        record_ending(9, JOB_FAILED, ""), record_ended(9, JOB_FAILED, "")};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            COMMIT(store, i % 2 == 0, error, record_job(2, 1), record_task_exit(2, 0, 1, 1, "x"),
                record_started(1, 8), record_watermark(1, 1, 3), bad[i]),
            CADRE_INTERNAL);
        assert_store_text(store, before);
        assert_int_equal(store->ops->job_id_max(store), 1);
    }
    assert_ok(COMMIT(store, true, error, record_job(2, 1)), error);
    free(before);
}

static void a_forgotten_job_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, error), error);
    }
    assert_error(COMMIT(store, true, error, record_forgotten(9)), CADRE_INTERNAL, error, "9");
    assert_ok(COMMIT(store, true, error, record_forgotten(1)), error);
    assert_error(COMMIT(store, true, error, record_forgotten(1)), CADRE_INTERNAL, error, "1");
    assert_holds(store, "job 2 ");
    assert_lacks(store, "job 1 ");
    /* What follows of it is refused, with all of the commit. */
    assert_int_equal(
        COMMIT(store, true, error, record_forgotten(2), record_verified(2, 1, 1)), CADRE_INTERNAL);
    assert_holds(store, "job 2 ");
    assert_ok(COMMIT(store, true, error, record_job(3, 1), record_ended(3, JOB_FAILED, ""),
                  record_forgotten(3), record_forgotten(2)),
        error);
    assert_store_text(store, "");
    assert_int_equal(store->ops->job_id_max(store), 3);
}

static cadre_status refuse_the_second(
    void *user, const struct store_job *job, struct cadre_error *error)
{
    unsigned *seen = user;
    ++*seen;
    return job->restore.job.n == 2 ? cadre_error_set(error, CADRE_ABORTED, "enough") : CADRE_OK;
}

static void a_visitor_may_stop_the_walk(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    unsigned seen = 0;
    assert_ok(
        COMMIT(store, true, &fixture->error, record_job(1, 1), record_job(2, 1), record_job(3, 1)),
        &fixture->error);
    assert_error(store->ops->load(store, refuse_the_second, &seen, &fixture->error), CADRE_ABORTED,
        &fixture->error, "enough");
    assert_int_equal(seen, 2);
    assert_ok(COMMIT(store, true, &fixture->error, record_job(4, 1)), &fixture->error);
}

static void memory_loses_what_was_not_synced(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(
        COMMIT(store, true, error, record_job(1, 3), record_task_exit(1, 1, 1, 1, "a")), error);
    assert_ok(COMMIT(store, false, error, record_task_exit(1, 2, 1, 1, "b")), error);
    assert_ok(COMMIT(store, true, error, record_watermark(1, 1, 5)), error);
    char *synced = store_text(store);
    assert_ok(COMMIT(store, false, error, record_job(2, 1), record_watermark(1, 1, 6),
                  record_task_exit(1, 0, 1, 1, "c"), record_task_exit(1, 1, 2, 1, "d"),
                  record_plan(1, 1, 3), record_consumed(1, 1, 0, 0, 2), record_stream(1, 1, "s"),
                  record_ended(1, JOB_FAILED, "e"), record_checkpoint(1, 6, "f"),
                  record_dropped(1, 6), record_term(3), record_forgotten(1)),
        error);
    assert_lacks(store, "job 1 ");
    store_memory_lose_tail(store);
    assert_int_equal(store->ops->term(store).start, 0);
    assert_store_text(store, synced);
    assert_int_equal(store->ops->job_id_max(store), 1);
    store_memory_lose_tail(store);
    assert_store_text(store, synced);
    free(synced);
}

/* Whichever record is the first that did not come to the disk, nothing of it is left. */
static void memory_loses_any_record(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct core_record lost[] = {record_job(3, 1), record_started(1, 9), record_task(1, 0, 9),
        record_backed(1, 0, 1, 2), record_verified(1, 3, 4), record_plan(1, 4, 5),
        record_control(1, 2, HALT_REGROUP, 8), record_watermark(1, 2, 30),
        record_consumed(1, 1, 7, 6, 2), record_stream(1, 3, "third"), record_end_of_data(1, 8),
        record_checkpoint(1, 20, "new"), record_done(1, 40), record_task_exit(1, 1, 9, 1, "late"),
        record_ending(1, JOB_CANCELLED, "enough"), record_ended(2, JOB_CANCELLED, "enough")};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        struct store *store = NULL;
        assert_ok(store_memory_open(&store, &error), &error);
        for (unsigned k = 0; k < 5; k++) {
            assert_ok(story_commit(store, k, &error), &error);
        }
        assert_ok(store->ops->commit(store, NULL, 0, true, &error), &error);
        char *synced = store_text(store);
        assert_ok(COMMIT(store, false, &error, lost[i]), &error);
        char *reported = store_text(store);
        assert_string_not_equal(reported, synced);
        store_memory_lose_tail(store);
        assert_store_text(store, synced);
        /* Said again, it is as if it never had been lost. */
        assert_ok(COMMIT(store, true, &error, lost[i]), &error);
        store_memory_lose_tail(store);
        assert_store_text(store, reported);
        free(reported);
        free(synced);
        store->ops->close(store);
    }
}

/* A sync without records: what was written before it stays. */
static void memory_syncs_what_waits(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    struct cadre_error *error = &fixture->error;
    assert_ok(COMMIT(store, true, error, record_job(1, 3)), error);
    assert_ok(COMMIT(store, false, error, record_watermark(1, 1, 5)), error);
    assert_ok(store->ops->commit(store, NULL, 0, false, error), error);
    assert_ok(store->ops->commit(store, NULL, 0, true, error), error);
    assert_ok(COMMIT(store, false, error, record_watermark(1, 1, 6)), error);
    store_memory_lose_tail(store);
    assert_holds(store, "(1,2: first 4 begin 4 steps 0)");
}

/* Power goes after each commit of the story in turn: what is left is what the last sync saw. */
static void memory_loses_a_tail_and_nothing_before_it(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error *error = &fixture->error;
    static const unsigned synced[STORY_COMMITS + 1] = {0, 1, 2, 3, 3, 3, 3, 7, 8};
    for (unsigned reported = 0; reported <= STORY_COMMITS; reported++) {
        struct store *store = NULL;
        assert_ok(fixture->kind->open(&store, error), error);
        for (unsigned i = 0; i < reported; i++) {
            assert_ok(story_commit(store, i, error), error);
        }
        store_memory_lose_tail(store);
        char *wanted = story_text(synced[reported]);
        assert_store_text(store, wanted);
        free(wanted);
        store->ops->close(store);
    }
}

#define OF(kind, number, test)                                                                     \
    {                                                                                              \
        .name = #test "/" kind, .test_func = (test), .setup_func = set_up,                         \
        .teardown_func = tear_down, .initial_state = (void *)(uintptr_t)&kinds[number]             \
    }
#define EACH(test)                                                                                 \
    OF("memory", 0, test), OF("sqlite", 1, test), OF("memory of entries", 2, test),                \
        OF("sqlite of entries", 3, test)

int main(void)
{
    const struct CMUnitTest tests[] = {EACH(a_new_one_is_empty), EACH(secrets_differ),
        EACH(each_start_has_a_higher_number), EACH(reports_all_that_was_written),
        EACH(a_plan_cuts_the_ledger), EACH(what_begins_beyond_a_plan_is_void),
        EACH(a_plan_goes_back_to_an_earlier_run), EACH(it_is_reported_what_is_committed),
        EACH(a_halt_is_of_its_generation), EACH(a_job_goes_back_to_the_queue),
        EACH(tasks_are_reported_where_they_were_placed),
        EACH(a_job_may_come_from_anothers_checkpoint), EACH(an_unknown_job_has_nothing_to_report),
        EACH(the_newest_checkpoint_counts), EACH(the_newest_incarnation_counts),
        EACH(jobs_come_in_order_of_id), EACH(texts_fill_their_room),
        EACH(a_bad_record_spoils_its_whole_commit), EACH(a_forgotten_job_leaves_nothing),
        EACH(a_visitor_may_stop_the_walk), OF("memory", 0, memory_loses_what_was_not_synced),
        OF("memory", 0, memory_loses_any_record), OF("memory", 0, memory_syncs_what_waits),
        OF("memory", 0, memory_loses_a_tail_and_nothing_before_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
