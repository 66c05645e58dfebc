/* SPDX-License-Identifier: Apache-2.0
 * The proof as people and programs see it. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"

static const struct text_style plain;

static const cadre_verified_epoch epochs[] = {
    {.stream = 1,
        .name = "train",
        .epoch = 0,
        .steps = 45,
        .steps_whole = 45,
        .samples = 1797,
        .source_samples = 1797,
        .verdict = CADRE_VERDICT_EXACT,
        .text = "every one of 1797 samples exactly once"},
    {.stream = 1,
        .name = "train",
        .epoch = 1,
        .steps = 20,
        .steps_whole = 45,
        .samples = 800,
        .source_samples = 1797,
        .verdict = CADRE_VERDICT_AS_DEFINED,
        .text = "as it should be so far"},
    {.name = "",
        .steps = 3,
        .verdict = CADRE_VERDICT_NOT_PROVABLE,
        .text = "its steps take no samples of a dataset"},
};
static const cadre_verified_generation generations[] = {
    {.number = 1, .end = 68, .tasks = 4, .planned_us = 9}};

static cadre_verification make_audit(void)
{
    return (cadre_verification){.job = 3,
        .job_name = "digits",
        .state = CADRE_JOB_CANCELLED,
        .committed = 68,
        .generations = generations,
        .generation_count = 1,
        .tiled = true,
        .tiling = "1 generation owns the steps 0 to 68 without gap or overlap",
        .epochs = epochs,
        .epoch_count = 3,
        .exact = 1,
        .as_defined = 1,
        .not_provable = 1,
        .steps_proved = 65};
}

static void assert_rendered(const cadre_verification *audit, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_true(render_verification(audit, &plain, out));
    fclose(out);
    if (strstr(text, wanted) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", wanted, text);
    }
    free(text);
}

static void an_audit_is_a_table_and_a_conclusion(void **state)
{
    (void)state;
    cadre_verification audit = make_audit();
    assert_rendered(&audit,
        "job 3  digits  cancelled\n"
        "DATASET  EPOCH  STEPS   SAMPLES  VERDICT       WHY\n"
        "train        1     45      1797  exact         every one of 1797 samples exactly once\n"
        "train        2  20/45  800/1797  as defined    as it should be so far\n"
        "-            1      3         0  not provable  its steps take no samples of a dataset\n"
        "1 generation owns the steps 0 to 68 without gap or overlap\n"
        "65 of 68 committed steps are in epochs that are proved\n"
        "partly proved: 1 epoch consumed every sample exactly once, 1 epoch consumed exactly what "
        "the "
        "dataset defines; the other 3 steps cannot be proved\n");
    audit.more = true;
    assert_rendered(&audit, "The coordinator is of an older version and left out the newest");
}

/* Two runs of three epochs each, of one dataset and of the next, and one that differs between. */
static void equal_epochs_are_one_row(void **state)
{
    (void)state;
    cadre_verification audit = make_audit();
    cadre_verified_epoch many[8];
    for (size_t i = 0; i < 8; i++) {
        many[i] = epochs[0];
        many[i].name = i < 5 ? "train" : "test";
        many[i].epoch = i < 5 ? i : i - 5;
    }
    many[3].samples = 1798;
    many[3].verdict = CADRE_VERDICT_DIFFERS;
    many[3].text = "1798 samples were consumed";
    audit.epochs = many;
    audit.epoch_count = 8;
    audit.exact = 7;
    audit.as_defined = audit.not_provable = 0;
    audit.steps_proved = audit.committed;
    assert_rendered(&audit,
        "\nDATASET  EPOCH  STEPS    SAMPLES  VERDICT  WHY\n"
        "train      1-3     45       1797  exact    every one of 1797 samples exactly once\n"
        "train        4     45  1798/1797  differs  1798 samples were consumed\n"
        "train        5     45       1797  exact    every one of 1797 samples exactly once\n"
        "test       1-3     45       1797  exact    every one of 1797 samples exactly once\n");
    assert_rendered(&audit, "\nproved: 7 epochs consumed every sample exactly once\n");
}

static void a_job_that_went_on_says_whose_the_steps_before_are(void **state)
{
    (void)state;
    cadre_verification audit = make_audit();
    cadre_verified_generation later = generations[0];
    later.first = 40;
    audit.generations = &later;
    assert_rendered(&audit,
        "overlap\nThe steps before are of the job from whose checkpoint it went on.\n65 of");
    later.first = 3; /* and of all others something is known */
    assert_rendered(&audit, "\nproved: 1 epoch consumed every sample exactly once");
    audit.steps_proved--;
    assert_rendered(&audit, "the other 1 step cannot be proved\n");
    audit.steps_proved++;
    audit.more = true;
    assert_rendered(&audit, "\npartly proved: ");
}

static void how_far_states_were_verified_is_said(void **state)
{
    (void)state;
    static const cadre_verified_state states[] = {
        {.position = 0, .digest = 7}, {.position = 1200, .digest = UINT64_MAX}};
    cadre_verification audit = make_audit();
    audit.states = states;
    audit.state_count = 2;
    assert_rendered(&audit,
        "in epochs that are proved\n"
        "states verified at 2 positions, the newest step 1200 with digest ffffffffffffffff\n"
        "partly proved: ");
    json_t *json = json_of_verification(&audit);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_non_null(strstr(text,
        "\"more\":false,\"verified\":[{\"position\":0,\"digest\":\"0000000000000007\"},"
        "{\"position\":1200,\"digest\":\"ffffffffffffffff\"}]}"));
    free(text);
    json_decref(json);
    audit.state_count = 1;
    assert_rendered(
        &audit, "states verified at 1 position, the newest step 0 with digest 0000000000000007\n");
}

static void a_difference_is_said_first(void **state)
{
    (void)state;
    cadre_verification audit = make_audit();
    audit.differing = 1;
    assert_rendered(
        &audit, "\nnot as it should be: 1 epoch differs from what the dataset defines\n");
    audit.differing = 0;
    audit.tiled = false;
    audit.tiling = "generation 4 is out of order";
    assert_rendered(&audit, "\nnot as it should be: generation 4 is out of order\n");
}

static void nothing_audited_says_why(void **state)
{
    (void)state;
    cadre_verification audit = make_audit();
    audit.steps_proved = 0;
    audit.exact = audit.as_defined = 0;
    audit.epochs = &epochs[2];
    audit.epoch_count = 1;
    assert_rendered(&audit, "\nnothing could be proved: its steps take no samples of a dataset\n");
    audit.epoch_count = 0;
    assert_rendered(
        &audit, "\nnothing could be proved: no step of this job took samples of a dataset\n");
    audit.state = CADRE_JOB_RUNNING;
    assert_rendered(&audit, "\nnothing could be proved: no epoch is complete yet;");
}

static void an_audit_as_json(void **state)
{
    (void)state;
    cadre_verification audit = make_audit();
    audit.epoch_count = 1;
    json_t *json = json_of_verification(&audit);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text,
        "{\"id\":3,\"name\":\"digits\",\"state\":\"cancelled\","
        "\"conclusion\":\"partly proved\",\"committed\":68,"
        "\"steps_proved\":65,\"tiled\":true,\"tiling\":\"1 generation owns the steps 0 to 68 "
        "without gap or overlap\",\"exact\":1,\"as_defined\":1,\"differing\":0,"
        "\"not_provable\":1,\"epochs\":[{\"stream\":1,\"name\":\"train\",\"epoch\":0,"
        "\"steps\":45,\"steps_whole\":45,\"samples\":1797,\"source_samples\":1797,"
        "\"verdict\":\"exact\",\"text\":\"every one of 1797 samples exactly once\"}],"
        "\"generations\":[{\"number\":1,\"first\":0,\"end\":68,\"tasks\":4,"
        "\"restarted\":false,\"planned_us\":9}],\"more\":false,\"verified\":[]}");
    free(text);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_audit_is_a_table_and_a_conclusion),
        cmocka_unit_test(equal_epochs_are_one_row),
        cmocka_unit_test(a_job_that_went_on_says_whose_the_steps_before_are),
        cmocka_unit_test(how_far_states_were_verified_is_said),
        cmocka_unit_test(a_difference_is_said_first),
        cmocka_unit_test(nothing_audited_says_why),
        cmocka_unit_test(an_audit_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
