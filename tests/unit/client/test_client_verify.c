/* SPDX-License-Identifier: Apache-2.0
 * The verdicts of a proof: an exact epoch is exact, a sample consumed twice is found, and what the
 * ledger cannot prove is not claimed. */
#include "stub.h"

#include <stdlib.h>
#include <string.h>

#include "cadre/client.h"

struct world {
    struct stub stub;
    cadre_client *client;
    cadre_verification *proof;
};

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    stub_open(&world->stub, NULL);
    const cadre_client_options options = {.address = world->stub.address};
    assert_int_equal(cadre_client_connect(&options, &world->client), CADRE_OK);
    *state = world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    cadre_result_release(world->proof);
    cadre_client_release(world->client);
    stub_close(&world->stub);
    free(world);
    return 0;
}

static const cadre_verification *verify(struct world *world, uint64_t job)
{
    cadre_result_release(world->proof);
    world->proof = NULL;
    assert_int_equal(cadre_client_verify(world->client, job, NULL, &world->proof, NULL), CADRE_OK);
    return world->proof;
}

static void assert_epoch(
    const cadre_verification *proof, size_t index, cadre_verdict verdict, const char *part)
{
    const cadre_verified_epoch *epoch = &proof->epochs[index];
    if (epoch->verdict != verdict || strstr(epoch->text, part) == NULL) {
        fail_msg("epoch %zu is %s: %s", index, cadre_verdict_name(epoch->verdict), epoch->text);
    }
}

static void every_sample_exactly_once(void **state)
{
    const cadre_verification *proof = verify(*state, 1);
    assert_int_equal(proof->job, 1);
    assert_string_equal(proof->job_name, "digits");
    assert_int_equal(proof->state, CADRE_JOB_SUCCEEDED);
    assert_int_equal(proof->committed, 30);
    assert_int_equal(proof->epoch_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_epoch(proof, i, CADRE_VERDICT_EXACT, "every one of 1000 samples exactly once");
        assert_string_equal(proof->epochs[i].name, "train");
        assert_int_equal(proof->epochs[i].epoch, i);
        assert_int_equal(proof->epochs[i].steps, 10);
        assert_int_equal(proof->epochs[i].steps_whole, 10);
        assert_int_equal(proof->epochs[i].samples, 1000);
    }
    assert_int_equal(proof->exact, 3);
    assert_int_equal(proof->as_defined + proof->differing + proof->not_provable, 0);
    assert_int_equal(proof->steps_proved, 30);
    assert_false(proof->more);
}

static void generations_own_their_steps(void **state)
{
    const cadre_verification *proof = verify(*state, 1);
    assert_true(proof->tiled);
    assert_string_equal(
        proof->tiling, "3 generations own the steps 0 to 30 without gap or overlap");
    assert_int_equal(proof->generation_count, 3);
    assert_int_equal(proof->generations[0].first, 0);
    assert_int_equal(proof->generations[0].end, 12);
    assert_int_equal(proof->generations[0].tasks, 4);
    assert_int_equal(proof->generations[0].planned_us, 100);
    assert_int_equal(proof->generations[1].end, 25);
    assert_int_equal(proof->generations[2].number, 4);
    assert_int_equal(proof->generations[2].end, 30);
    proof = verify(*state, JOB_RESTARTED);
    assert_true(proof->tiled);
    assert_non_null(strstr(proof->tiling, "1 began again from a checkpoint"));
    assert_int_equal(proof->generations[0].end, 5);
    assert_int_equal(proof->generations[1].first, 12);
    assert_int_equal(proof->generations[1].end, 12); /* all that it did was done again */
    assert_int_equal(proof->generations[2].end, 30);
    proof = verify(*state, JOB_UNDONE); /* all that had applied step 11 were lost before it began */
    assert_string_equal(
        proof->tiling, "3 generations own the steps 0 to 30 without gap or overlap");
    assert_int_equal(proof->generations[0].end, 11);
    assert_int_equal(proof->generations[1].end, 12);
    assert_int_equal(proof->generations[2].first, 11);
}

static void generations_that_overlap_are_found(void **state)
{
    const cadre_verification *proof = verify(*state, JOB_REWOUND);
    assert_false(proof->tiled);
    assert_string_equal(proof->tiling,
        "generation 4 begins at step 5, before generation 2 at step 12, although the state was not "
        "lost");
    proof = verify(*state, JOB_SHORT);
    assert_false(proof->tiled);
    assert_non_null(strstr(proof->tiling, "but the job ended with 20 committed"));
    proof = verify(*state, JOB_SURPLUS);
    assert_false(proof->tiled);
    assert_string_equal(proof->tiling, "the epochs hold 30 steps, but only 29 are committed");
}

static void a_sample_consumed_twice_is_found(void **state)
{
    const cadre_verification *proof = verify(*state, JOB_TWICE);
    assert_epoch(proof, 0, CADRE_VERDICT_EXACT, "");
    assert_epoch(proof, 1, CADRE_VERDICT_DIFFERS, "some were left out, consumed twice or replaced");
    assert_epoch(proof, 2, CADRE_VERDICT_EXACT, "");
    assert_int_equal(proof->differing, 1);
    assert_int_equal(proof->steps_proved, 20);
}

static void the_right_ids_of_a_wrong_epoch_prove_nothing(void **state)
{
    const cadre_verification *proof = verify(*state, JOB_OTHER_EPOCH);
    assert_epoch(proof, 1, CADRE_VERDICT_NOT_PROVABLE, "is not known beforehand");
    assert_int_equal(proof->exact, 2);
}

static void as_defined_is_less_than_exact(void **state)
{
    const cadre_verification *proof = verify(*state, JOB_PARTLY);
    assert_epoch(proof, 0, CADRE_VERDICT_AS_DEFINED,
        "consumed exactly the 960 samples that the dataset defines, of 1000 in its source");
    assert_epoch(proof, 1, CADRE_VERDICT_AS_DEFINED,
        "the 4 of 10 steps that were done consumed exactly the 400 samples");
    assert_epoch(proof, 2, CADRE_VERDICT_AS_DEFINED, "consumed exactly the 1000 samples");
    assert_int_equal(proof->as_defined, 3);
    assert_int_equal(proof->steps_proved, 24);
}

static void what_is_unknown_is_not_claimed(void **state)
{
    const cadre_verification *proof = verify(*state, JOB_UNKNOWN);
    assert_epoch(proof, 0, CADRE_VERDICT_NOT_PROVABLE, "every task reads this dataset for itself");
    assert_epoch(proof, 1, CADRE_VERDICT_NOT_PROVABLE, "is not known beforehand");
    assert_epoch(proof, 2, CADRE_VERDICT_NOT_PROVABLE, "take no samples");
    assert_epoch(proof, 3, CADRE_VERDICT_NOT_PROVABLE, "no step of it was committed");
    assert_int_equal(proof->not_provable, 4);
    assert_int_equal(proof->steps_proved, 0);
    assert_int_equal(verify(*state, JOB_NOTHING)->epoch_count, 0);
    assert_true(verify(*state, JOB_MORE)->more);
}

static void by_files_the_table_says_what_is_whole(void **state)
{
    const cadre_verification *proof = verify(*state, JOB_FILES);
    assert_epoch(proof, 0, CADRE_VERDICT_EXACT, "every one of 900 samples of its files exactly");
    assert_epoch(proof, 1, CADRE_VERDICT_NOT_PROVABLE, "the pipeline drops them");
    assert_epoch(proof, 2, CADRE_VERDICT_AS_DEFINED, "there is more in the files");
    assert_epoch(proof, 3, CADRE_VERDICT_DIFFERS, "consumed twice");
    assert_int_equal(proof->steps_proved, 20);
}

static void a_job_that_is_not_there_has_no_audit(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        cadre_client_verify(world->client, JOB_NONE, NULL, &world->proof, NULL), CADRE_NOT_FOUND);
    assert_null(world->proof);
    assert_int_not_equal(
        cadre_client_verify(world->client, JOB_GARBAGE, NULL, &world->proof, NULL), CADRE_OK);
    assert_null(world->proof);
}

static void assert_states(const cadre_verification *proof, size_t count, uint64_t apart)
{
    assert_int_equal(proof->state_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(proof->states[i].position, 10 + apart * i);
        assert_int_equal(proof->states[i].digest, proof->states[i].position / 10);
    }
}

static void verified_states_are_listed(void **state)
{
    assert_states(verify(*state, 1), 2, 20);
    assert_states(verify(*state, JOB_NOTHING), 0, 0);
}

/* All of its pages, as it was when the first one was made: nine epochs and four steps. */
static void assert_paged(const cadre_verification *proof)
{
    assert_int_equal(proof->committed, 104);
    assert_int_equal(proof->generation_count, 3);
    assert_false(proof->more);
    for (size_t i = 0; i + 1 < proof->epoch_count; i++) {
        assert_int_equal(proof->epochs[i].epoch, i);
        assert_int_equal(proof->epochs[i].first, 10 * i);
        assert_string_equal(proof->epochs[i].name, "train");
    }
    assert_string_equal(proof->epochs[proof->epoch_count - 1].name, "other");
    assert_int_equal(proof->not_provable, 1);
}

static void all_pages_are_one_audit(void **state)
{
    struct world *world = *state;
    const cadre_verification *proof = verify(world, JOB_PAGED);
    assert_paged(proof);
    assert_int_equal(proof->epoch_count, 11);
    assert_int_equal(proof->exact, 9);
    assert_int_equal(proof->epochs[9].steps, 4);
    assert_epoch(proof, 9, CADRE_VERDICT_AS_DEFINED, "the 4 of 10 steps");
    assert_int_equal(proof->steps_proved, 94);
    assert_true(proof->tiled);
    assert_states(proof, 7, 10);
    assert_int_equal(world->stub.audit_pages, 3); /* and no more for what came meanwhile */
}

/* Records of steps that are not committed any more are not mixed with those that are. */
static void a_job_that_begins_again_is_asked_again(void **state)
{
    struct world *world = *state;
    const cadre_verification *proof = verify(world, JOB_PAGED_AGAIN);
    assert_paged(proof);
    assert_int_equal(proof->epoch_count, 14); /* three pages further */
    assert_int_equal(proof->exact, 12);
    assert_states(proof, 10, 10);
    assert_int_equal(cadre_client_verify(world->client, JOB_PAGED_NEVER, NULL, &world->proof, NULL),
        CADRE_ABORTED);
    assert_non_null(strstr(cadre_error_message(), "job 84 began again at a checkpoint each time"));
}

struct seen_progress {
    cadre_verify_progress records[8];
    size_t records_count;
    uint64_t judged;
    uint64_t expected;
};

static void note_progress(const cadre_verify_progress *progress, void *user)
{
    struct seen_progress *seen = user;
    if (progress->judging) {
        assert_int_equal(progress->epochs, ++seen->judged);
        seen->expected = progress->expected;
    } else {
        assert_int_equal(seen->judged, 0);
        seen->records[seen->records_count++] = *progress;
    }
}

static void progress_is_reported(void **state)
{
    struct world *world = *state;
    struct seen_progress seen = {.judged = 0};
    cadre_verify_options options = {.on_progress = note_progress, .user = &seen};
    assert_int_equal(
        cadre_client_verify(world->client, JOB_PAGED, &options, &world->proof, NULL), CADRE_OK);
    static const uint64_t epochs[] = {5, 8, 11};
    assert_int_equal(seen.records_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.records[i].epochs, epochs[i]);
        assert_int_equal(seen.records[i].expected, 11);
    }
    assert_int_equal(seen.judged, 11);
    assert_int_equal(seen.expected, 11);
    cadre_result_release(world->proof);
    world->proof = NULL;
    options = (cadre_verify_options){.unjudged = true};
    assert_int_equal(
        cadre_client_verify(world->client, 1, &options, &world->proof, NULL), CADRE_OK);
    assert_int_equal(world->proof->epoch_count, 3);
    assert_int_equal(world->proof->exact, 0);
    assert_string_equal(world->proof->epochs[0].text, "");
    assert_true(world->proof->epochs[0].consumed[0] != world->proof->epochs[1].consumed[0]);
}

static void verdicts_have_names(void **state)
{
    (void)state;
    assert_string_equal(cadre_verdict_name(CADRE_VERDICT_EXACT), "exact");
    assert_string_equal(cadre_verdict_name(CADRE_VERDICT_AS_DEFINED), "as defined");
    assert_string_equal(cadre_verdict_name(CADRE_VERDICT_DIFFERS), "differs");
    assert_string_equal(cadre_verdict_name(CADRE_VERDICT_NOT_PROVABLE), "not provable");
    assert_string_equal(cadre_verdict_name((cadre_verdict)0), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_exactly_once, open_world, close_world),
        cmocka_unit_test_setup_teardown(generations_own_their_steps, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            generations_that_overlap_are_found, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_sample_consumed_twice_is_found, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            the_right_ids_of_a_wrong_epoch_prove_nothing, open_world, close_world),
        cmocka_unit_test_setup_teardown(as_defined_is_less_than_exact, open_world, close_world),
        cmocka_unit_test_setup_teardown(what_is_unknown_is_not_claimed, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            by_files_the_table_says_what_is_whole, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            a_job_that_is_not_there_has_no_audit, open_world, close_world),
        cmocka_unit_test_setup_teardown(verified_states_are_listed, open_world, close_world),
        cmocka_unit_test_setup_teardown(all_pages_are_one_audit, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            a_job_that_begins_again_is_asked_again, open_world, close_world),
        cmocka_unit_test_setup_teardown(progress_is_reported, open_world, close_world),
        cmocka_unit_test(verdicts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
