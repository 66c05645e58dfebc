/* SPDX-License-Identifier: Apache-2.0
 * Two jobs that consumed the same and had the same states, or not: where first, and how far that is
 * known. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"

static const struct text_style plain;

#define EPOCHS 6
#define STATES 3

/* Three epochs of "train" of ten steps each, and of "test" of two steps behind each of them. */
struct job {
    cadre_verification audit;
    cadre_verified_epoch epochs[EPOCHS];
    cadre_verified_state states[STATES]; /* after 0, 12 and 24 steps; not in the proof at first */
};

static void make_job(struct job *job, uint64_t number)
{
    for (uint64_t i = 0; i < EPOCHS; i++) {
        bool train = i < 3;
        uint64_t epoch = train ? i : i - 3;
        uint64_t steps = train ? 10 : 2;
        job->epochs[i] = (cadre_verified_epoch){.stream = train ? 1 : 2,
            .name = train ? "train" : "test",
            .epoch = epoch,
            .steps = steps,
            .steps_whole = steps,
            .samples = 8 * steps,
            .first = 12 * epoch + (train ? 0 : 10),
            .consumed = {100 + i, 7}};
    }
    for (uint64_t i = 0; i < STATES; i++) {
        job->states[i] = (cadre_verified_state){.position = 12 * i, .digest = 40 + i};
    }
    job->audit = (cadre_verification){.job = number,
        .job_name = "digits",
        .program = "digits",
        .state = CADRE_JOB_SUCCEEDED,
        .committed = 36,
        .epochs = job->epochs,
        .epoch_count = EPOCHS,
        .states = job->states};
}

/* The jobs 3 and 4, alike at first. */
struct pair {
    struct job a;
    struct job b;
    struct comparison comparison;
};

static struct pair *make_pair(void)
{
    static struct pair pair;
    make_job(&pair.a, 3);
    make_job(&pair.b, 4);
    return &pair;
}

static const struct comparison *compare(struct pair *pair)
{
    comparison_make(&pair->a.audit, &pair->b.audit, &pair->comparison);
    return &pair->comparison;
}

static void assert_equal_part(const struct comparison *comparison, uint64_t epochs, uint64_t steps,
    uint64_t begin, uint64_t end)
{
    assert_int_equal(comparison->epochs, epochs);
    assert_int_equal(comparison->steps, steps);
    assert_int_equal(comparison->begin, begin);
    assert_int_equal(comparison->end, end);
}

static void assert_point(const struct comparison *comparison, enum difference difference,
    uint64_t position, uint64_t step, uint64_t steps, const char *text)
{
    const struct comparison_point *point = &comparison->point;
    assert_int_equal(comparison->outcome, COMPARISON_DIFFERS);
    assert_int_equal(point->difference, difference);
    assert_int_equal(point->position, position);
    assert_int_equal(point->step, step);
    assert_int_equal(point->steps, steps);
    assert_string_equal(point->text, text);
}

static void jobs_that_consumed_the_same_are_equal(void **state)
{
    (void)state;
    const struct comparison *comparison = compare(make_pair());
    assert_int_equal(comparison->outcome, COMPARISON_EQUAL);
    assert_int_equal(comparison->point.difference, DIFFERENCE_NONE);
    assert_equal_part(comparison, 6, 36, 0, 36);
}

/* One is a job that went on from a checkpoint and the other ended early. */
static void they_are_compared_as_far_as_both_go(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    memmove(pair->a.epochs, pair->a.epochs + 1, 5 * sizeof pair->a.epochs[0]);
    pair->a.audit.epoch_count = 5; /* without the first epoch */
    pair->b.epochs[2].steps = 4;   /* in the middle of the third */
    pair->b.epochs[2].consumed[0]++;
    pair->b.audit.epoch_count = 5;
    pair->b.audit.committed = 28;
    const struct comparison *comparison = compare(pair);
    assert_int_equal(comparison->outcome, COMPARISON_EQUAL);
    assert_equal_part(comparison, 3, 14, 10, 24);
}

static void nothing_in_common_is_not_equal(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    pair->a.audit.epoch_count = 1;
    pair->b.epochs[0].steps = 3;
    assert_int_equal(compare(pair)->outcome, COMPARISON_NOTHING);
    pair->b.epochs[0].steps = pair->a.epochs[0].steps = 0;
    assert_int_equal(compare(pair)->outcome, COMPARISON_NOTHING);
    pair->a.audit.epoch_count = 0;
    assert_int_equal(compare(pair)->outcome, COMPARISON_NOTHING);
}

/* By the steps of the job, not by dataset: epoch 2 of "test" comes before epoch 3 of "train". */
static void the_first_difference_is_named(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    pair->b.epochs[2].consumed[0]++;
    pair->b.epochs[4].consumed[1]++;
    const struct comparison *comparison = compare(pair);
    assert_point(comparison, DIFFERENCE_CONSUMED, 22, 0, 2,
        "in epoch 2 of test, the steps 22 to 24, job 3 consumed 16 samples and job 4 others, also "
        "16");
    assert_string_equal(comparison->point.name, "test");
    assert_int_equal(comparison->point.stream, 2);
    assert_int_equal(comparison->point.epoch, 1);
    assert_equal_part(comparison, 3, 22, 0, 22);
    pair->b.epochs[4].samples--;
    assert_point(compare(pair), DIFFERENCE_CONSUMED, 22, 0, 2,
        "in epoch 2 of test, the steps 22 to 24, job 3 consumed 16 samples and job 4 15");
}

static void differences_are_of_several_kinds(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    pair->b.epochs[1].first = 13;
    assert_point(compare(pair), DIFFERENCE_BEGIN, 12, 0, 1,
        "epoch 2 of train begins at step 12 of job 3, and at step 13 of job 4");
    pair = make_pair();
    pair->a.epochs[1].steps = pair->a.epochs[1].steps_whole = 9;
    assert_point(compare(pair), DIFFERENCE_LENGTH, 21, 9, 1,
        "epoch 2 of train ends after 9 steps in job 3, and goes on in job 4");
    pair->b.epochs[1].steps = 9; /* it did not go on yet */
    pair->b.epochs[1].consumed[0] = pair->a.epochs[1].consumed[0];
    assert_int_equal(compare(pair)->outcome, COMPARISON_EQUAL);
    pair = make_pair();
    pair->b.epochs[1].steps = pair->b.epochs[1].steps_whole = 8;
    assert_point(compare(pair), DIFFERENCE_LENGTH, 20, 8, 1,
        "epoch 2 of train ends after 8 steps in job 4, and goes on in job 3");
    pair = make_pair();
    pair->b.epochs[0].name = "other";
    assert_point(compare(pair), DIFFERENCE_DATASET, 0, 0, 1,
        "dataset 1 is train in job 3, and other in job 4");
}

static struct pair *make_verified_pair(void)
{
    struct pair *pair = make_pair();
    pair->a.audit.state_count = pair->b.audit.state_count = STATES;
    return pair;
}

static void states_are_compared_where_both_verified_them(void **state)
{
    (void)state;
    struct pair *pair = make_verified_pair();
    const struct comparison *comparison = compare(pair);
    assert_int_equal(comparison->outcome, COMPARISON_EQUAL);
    assert_int_equal(comparison->states, 3);
    assert_int_equal(comparison->state, 24);
    pair->a.states[1] = (cadre_verified_state){.position = 11, .digest = 77};
    assert_int_equal(compare(pair)->outcome, COMPARISON_EQUAL);
    assert_int_equal(comparison->states, 2);
    pair->a.audit.state_count = 1;
    pair->a.audit.epoch_count = 0;
    assert_int_equal(compare(pair)->outcome, COMPARISON_EQUAL); /* as far as anything is known */
    assert_int_equal(comparison->states, 1);
    assert_int_equal(comparison->state, 0);
    pair->a.audit.state_count = 0;
    assert_int_equal(compare(pair)->outcome, COMPARISON_NOTHING);
}

static void the_first_state_that_differs_is_named(void **state)
{
    (void)state;
    struct pair *pair = make_verified_pair();
    pair->b.states[1].digest = UINT64_MAX;
    pair->b.states[2].digest++;
    const struct comparison *comparison = compare(pair);
    assert_point(comparison, DIFFERENCE_STATE, 12, 0, 0,
        "state differs at step 12: its digest is 0000000000000029 in job 3, and ffffffffffffffff "
        "in job 4; with equal numbers of replicas and the same program there should be none");
    assert_string_equal(difference_name(comparison->point.difference), "state");
    assert_string_equal(comparison->point.name, "");
    assert_int_equal(comparison->states, 1);
    assert_int_equal(comparison->state, 0);
    assert_equal_part(comparison, 2, 12, 0, 12);
    /* The state after 12 steps comes before the step 12; what was consumed before comes before
     * both. */
    pair->b.epochs[1].consumed[0]++;
    assert_int_equal(compare(pair)->point.difference, DIFFERENCE_STATE);
    pair->b.epochs[3].consumed[0]++;
    assert_int_equal(compare(pair)->point.difference, DIFFERENCE_CONSUMED);
    assert_int_equal(comparison->point.position, 10);
    assert_int_equal(comparison->states, 1);
}

static void assert_rendered(const struct comparison *comparison, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    render_comparison(comparison, &plain, out);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

static void people_read_where_and_how_far(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    pair->b.audit.committed = 1;
    assert_rendered(compare(pair),
        "job 3  digits  succeeded  program digits  36 steps committed\n"
        "job 4  digits  succeeded  program digits  1 step committed\n"
        "equal: both consumed the same samples as far as both go: 6 epochs, the steps 0 to 36\n");
    pair->a.epochs[0].steps = 1;
    pair->a.epochs[5].consumed[0]++;
    pair->b.audit.more = true;
    assert_rendered(compare(pair),
        "job 3  digits  succeeded  program digits  36 steps committed\n"
        "job 4  digits  succeeded  program digits  1 step committed\n"
        "The coordinator is of an older version and left out the newest epochs: upgrade it to have "
        "them here.\n"
        "the same samples before: 4 epochs, the steps 10 to 34\n"
        "differs: in epoch 3 of test, the steps 34 to 36, job 3 consumed 16 samples and job 4 "
        "others, also 16\n");
    pair->b.audit.more = false;
    pair->b.audit.epoch_count = 0;
    assert_rendered(compare(pair),
        "job 3  digits  succeeded  program digits  36 steps committed\n"
        "job 4  digits  succeeded  program digits  1 step committed\n"
        "nothing in common: there is no epoch of which the same steps are committed in both, and "
        "no position at which both verified their states\n");
}

static void people_read_of_states(void **state)
{
    (void)state;
    static const char jobs[] = "job 3  digits  succeeded  program digits  36 steps committed\n"
                               "job 4  digits  succeeded  program digits  36 steps committed\n";
    char wanted[1024];
    struct pair *pair = make_verified_pair();
    snprintf(wanted, sizeof wanted,
        "%sequal: both consumed the same samples as far as both go: 6 epochs, the steps 0 to 36; "
        "states equal at 3 positions that both verified, the newest step 24\n",
        jobs);
    assert_rendered(compare(pair), wanted);
    pair->b.states[2].digest++;
    snprintf(wanted, sizeof wanted,
        "%sthe same samples before: 4 epochs, the steps 0 to 24\n"
        "before: states equal at 2 positions that both verified, the newest step 12\n"
        "differs: state differs at step 24: its digest is 000000000000002a in job 3, and "
        "000000000000002b in job 4; with equal numbers of replicas and the same program there "
        "should be none\n",
        jobs);
    assert_rendered(compare(pair), wanted);
    pair->a.audit.epoch_count = 0;
    pair->a.audit.state_count = 1;
    snprintf(wanted, sizeof wanted,
        "%sequal: states equal at 1 position that both verified, the newest step 0\n", jobs);
    assert_rendered(compare(pair), wanted);
}

/* Epochs that are not known of both lie between those that are. */
static void holes_are_reported(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    pair->a.epochs[1].steps = 3;
    const struct comparison *comparison = compare(pair);
    assert_equal_part(comparison, 5, 26, 0, 36);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    render_comparison(comparison, &plain, out);
    fclose(out);
    assert_non_null(strstr(text, "as both go: 5 epochs, 26 of the steps 0 to 36\n"));
    free(text);
}

static void assert_json(const struct comparison *comparison, const char *wanted)
{
    json_t *json = json_of_comparison(comparison);
    char *text = json_dumps(json, JSON_COMPACT);
    if (strstr(text, wanted) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", wanted, text);
    }
    free(text);
    json_decref(json);
}

static void programs_read_the_same(void **state)
{
    (void)state;
    struct pair *pair = make_pair();
    assert_json(compare(pair),
        "{\"jobs\":[{\"id\":3,\"name\":\"digits\",\"program\":\"digits\",\"state\":\"succeeded\","
        "\"committed\":36,\"more\":false},{\"id\":4,");
    assert_json(compare(pair),
        "\"outcome\":\"equal\",\"epochs\":6,\"steps\":36,\"begin\":0,\"end\":36,"
        "\"difference\":null,\"states\":0,\"state\":null}");
    pair->b.epochs[4].consumed[1]++;
    assert_json(compare(pair),
        "\"outcome\":\"differs\",\"epochs\":3,\"steps\":22,\"begin\":0,\"end\":22,"
        "\"difference\":{\"what\":\"consumed\",\"position\":22,\"stream\":2,\"name\":\"test\","
        "\"epoch\":1,\"step\":0,\"steps\":2,\"text\":\"in epoch 2 of test");
    pair = make_verified_pair();
    pair->b.states[2].digest++;
    assert_json(compare(pair),
        "\"difference\":{\"what\":\"state\",\"position\":24,\"stream\":0,\"name\":\"\","
        "\"epoch\":0,\"step\":0,\"steps\":0,\"text\":\"state differs at step 24: ");
    assert_json(&pair->comparison, "\"states\":2,\"state\":12}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_consumed_the_same_are_equal),
        cmocka_unit_test(they_are_compared_as_far_as_both_go),
        cmocka_unit_test(nothing_in_common_is_not_equal),
        cmocka_unit_test(the_first_difference_is_named),
        cmocka_unit_test(differences_are_of_several_kinds),
        cmocka_unit_test(states_are_compared_where_both_verified_them),
        cmocka_unit_test(the_first_state_that_differs_is_named),
        cmocka_unit_test(people_read_where_and_how_far),
        cmocka_unit_test(people_read_of_states),
        cmocka_unit_test(holes_are_reported),
        cmocka_unit_test(programs_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
