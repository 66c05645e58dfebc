/* SPDX-License-Identifier: Apache-2.0
 * cadre_checkpoint_manager: a program that sets itself where its checkpoints go, how many are kept,
 * and that it goes on from them; written as its users' runs, one after the other. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cadre/cadre.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/job.h"

static const char *self;

/* --- the program --- */

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    int64_t *count = cadre_variable_write(replica, user);
    if (count == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    *count += 1;
    return CADRE_OK;
}

static void send_line(cadre_strategy *strategy, const char *when, const cadre_variable *count)
{
    uint64_t positions[8];
    uint32_t kept = 0;
    CADRE_CHECK(cadre_checkpoints(strategy, positions, 8, &kept));
    printf("%s: step %llu count %lld kept", when,
        (unsigned long long)cadre_strategy_position(strategy),
        (long long)*(const int64_t *)cadre_variable_read(NULL, count));
    for (uint32_t i = 0; i < kept; i++) {
        printf(" %llu", (unsigned long long)positions[i]);
    }
    printf("\n");
    fflush(stdout);
}

/* Takes `steps` steps and saves behind each, or every two of them. */
static int program(const char *directory, const char *how, const char *steps)
{
    const cadre_checkpoint_options options = {.directory = directory[0] == '-' ? NULL : directory,
        .max_to_keep = 2,
        .every_steps = strcmp(how, "every") == 0 ? 2 : 0,
        .restore_or_initialize = strcmp(how, "new") != 0};
    cadre_strategy *strategy;
    cadre_variable *count;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_checkpoint_manager(&options));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "count", CADRE_I64, 0, NULL, NULL, &count));
    send_line(strategy, "begins", count);
    for (long i = strtol(steps, NULL, 10); i > 0; i--) {
        CADRE_CHECK(cadre_run(strategy, step, count, NULL, 0, NULL));
        if (strcmp(how, "every") != 0) {
            CADRE_CHECK(cadre_save(strategy, true));
        }
    }
    send_line(strategy, "ends", count);
    return cadre_finish(strategy);
}

/* --- by hand --- */

static void run(const char *const *environment, const char *directory, const char *how,
    const char *steps, struct program_result *ret_result)
{
    const char *argv[] = {self, directory, how, steps, NULL};
    program_run(&(struct program_spec){.argv = argv, .environment = environment}, ret_result);
}

static void expect(const char *const *environment, const char *directory, const char *how,
    const char *steps, int exit_code, const char *reported)
{
    struct program_result result;
    run(environment, directory, how, steps, &result);
    if (result.exit_code != exit_code ||
        (strstr(result.out, reported) == NULL && strstr(result.err, reported) == NULL)) {
        fail_msg("%s %s: exit code %d, wanted '%s', said\n%s%s", how, steps, result.exit_code,
            reported, result.out, result.err);
    }
    program_result_free(&result);
}

static const char *names_in(const char *folder, char text[1024])
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, versionsort);
    size_t used = 0;
    assert_true(count >= 2);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            used += (size_t)snprintf(
                text + used, 1024 - used, "%s%s", used == 0 ? "" : " ", entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    return text;
}

#define BOTH(step) "checkpoint-" step ".json checkpoint-" step ".safetensors"

/* Run after run: the first begins, each other goes on, and no more than two are kept. */
static void a_program_goes_on_where_it_was(void **state)
{
    (void)state;
    char directory[TEST_PATH_BYTES];
    char names[1024];
    test_path(directory, test_temp_dir(), "models/counting"); /* it makes it */
    expect(NULL, directory, "on", "4", 0,
        "begins: step 0 count 0 kept\nends: step 4 count 4 kept 3 4\n");
    assert_string_equal(names_in(directory, names), BOTH("3") " " BOTH("4"));
    expect(NULL, directory, "on", "3", 0,
        "begins: step 4 count 4 kept 3 4\nends: step 7 count 7 kept 6 7\n");
    assert_string_equal(names_in(directory, names), BOTH("6") " " BOTH("7"));
    expect(NULL, directory, "on", "0", 0, "ends: step 7 count 7");
    assert_string_equal(names_in(directory, names), BOTH("6") " " BOTH("7"));
    const char *many[] = {"CADRE_REPLICAS=3", NULL};
    expect(many, directory, "every", "2", 0, "ends: step 9 count 9");
    assert_string_equal(names_in(directory, names), BOTH("8") " " BOTH("9"));
}

static void a_damaged_one_is_passed_over(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *directory = test_temp_dir();
    expect(NULL, directory, "on", "3", 0, "ends: step 3 count 3 kept 2 3\n");
    test_path(path, directory, "checkpoint-3.safetensors");
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fputc(0xff, file), 0xff);
    assert_int_equal(fclose(file), 0);
    expect(NULL, directory, "on", "1", 0, "that of step 2 is taken");
    expect(NULL, directory, "on", "0", 0, "begins: step 3 count 3");
}

static void two_runs_do_not_mix(void **state)
{
    (void)state;
    const char *directory = test_temp_dir();
    expect(NULL, directory, "new", "2", 0, "ends: step 2 count 2 kept 1 2\n");
    expect(NULL, directory, "new", "1", 1,
        "holds checkpoints already, the newest of step 2; set restore_or_initialize to go on");
}

/* Settings from outside have precedence over the program's. */
static void people_have_the_last_word(void **state)
{
    (void)state;
    char names[1024];
    char folder[TEST_PATH_BYTES + 32];
    const char *directory = test_temp_dir();
    const char *other = test_temp_dir();
    snprintf(folder, sizeof folder, "CADRE_CHECKPOINT_DIR=%s", other);
    const char *environment[] = {folder, "CADRE_CHECKPOINTS_KEPT=1", NULL};
    expect(environment, directory, "on", "3", 0, "ends: step 3 count 3 kept 3\n");
    assert_string_equal(names_in(directory, names), "");
    assert_string_equal(names_in(other, names), BOTH("3"));
    snprintf(folder, sizeof folder, "CADRE_OUTPUT_DIR=%s", directory);
    const char *outputs[] = {folder, NULL};
    expect(outputs, "-", "on", "1", 0, "ends: step 1 count 1 kept 1\n");
    assert_string_equal(names_in(directory, names), BOTH("1"));
}

/* Programs of a cluster that is started by hand have to agree, and are not connected yet. */
static void a_cluster_by_hand_is_reported_by_its_environment(void **state)
{
    (void)state;
    const char *environment[] = {
        "TF_CONFIG={\"cluster\": {\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}, \"task\": "
        "{\"type\": \"worker\", \"index\": 0}}",
        NULL};
    expect(environment, test_temp_dir(), "on", "1", 1,
        "whose programs have to agree on the checkpoint; set CADRE_RESTORE to");
}

/* --- as tasks of a job, whose checkpoints go where the job was set to --- */

static unsigned times_printed(const struct job_end *end, const char *line)
{
    unsigned times = 0;
    for (const char *at = end->printed; (at = strstr(at, line)) != NULL; at++) {
        times++;
    }
    return times;
}

static void a_job_is_reported_from_outside(void **state)
{
    (void)state;
    struct job_end end;
    char names[1024];
    const char *shared = test_temp_dir();
    const char *elsewhere = test_temp_dir();
    const char *arguments[] = {elsewhere, "on", "3"};
    struct local_options options = {.program = self,
        .arguments = arguments,
        .argument_count = 3,
        .tasks = 2,
        .replicas = 1,
        .output = test_temp_dir(),
        .checkpoint_folder = shared,
        .checkpoints_kept = 3,
        .grace_us = 1000000};
    job_run(&options, &end);
    if (end.exit_code != 0 || times_printed(&end, "ends: step 3 count 3 kept 1 2 3\n") != 2 ||
        times_printed(&end, "set --checkpoint-folder where it is started") != 1) {
        job_wrong("another directory", &end);
    }
    assert_string_equal(names_in(elsewhere, names), "");
    assert_string_equal(names_in(shared, names), BOTH("1") " " BOTH("2") " " BOTH("3"));

    /* The same directory is the job's, so there is no warning. */
    arguments[0] = shared;
    options.restore_path = shared;
    job_run(&options, &end);
    if (end.exit_code != 0 || times_printed(&end, "begins: step 3 count 3 kept 1 2 3\n") != 2 ||
        times_printed(&end, "ends: step 6 count 6 kept 4 5 6\n") != 2 ||
        times_printed(&end, "set --checkpoint-folder") != 0) {
        job_wrong("the same directory", &end);
    }
}

/* --- misuse --- */

static void misuse_is_reported(void **state)
{
    (void)state;
    const cadre_checkpoint_options fine = {.max_to_keep = 2};
    const char *output = test_temp_dir();
    cadre_strategy *strategy;
    uint32_t count;
    setenv("CADRE_OUTPUT_DIR", output, 1);
    assert_int_equal(cadre_checkpoint_manager(&fine), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "before cadre_init"));
    assert_int_equal(cadre_init(NULL, NULL), CADRE_OK);
    assert_int_equal(cadre_checkpoint_manager(NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_checkpoint_manager(&(cadre_checkpoint_options){.max_to_keep = 1001}),
        CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "max_to_keep is 1001; at most 1000"));
    assert_int_equal(cadre_checkpoint_manager(&(cadre_checkpoint_options){.directory = ""}),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(
        cadre_checkpoint_manager(&(cadre_checkpoint_options){.directory = "/proc/nothing"}),
        CADRE_NOT_FOUND);
    assert_int_equal(
        cadre_checkpoint_manager(&(cadre_checkpoint_options){.every_steps = UINT64_MAX}),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_checkpoint_manager(&fine), CADRE_OK);
    assert_int_equal(cadre_checkpoint_manager(&fine), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "a second time"));
    assert_int_equal(cadre_strategy_mirrored(1, &strategy), CADRE_OK);
    assert_int_equal(cadre_checkpoint_manager(&fine), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "after the strategy was made"));
    assert_int_equal(cadre_checkpoints(strategy, NULL, 0, &count), CADRE_OK);
    assert_int_equal(count, 0);
    assert_int_equal(cadre_checkpoints(strategy, NULL, 1, &count), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_checkpoints(strategy, NULL, 0, NULL), CADRE_INVALID_ARGUMENT);
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 3) {
        return program(argv[1], argv[2], argv[3]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_goes_on_where_it_was),
        cmocka_unit_test(a_damaged_one_is_passed_over),
        cmocka_unit_test(two_runs_do_not_mix),
        cmocka_unit_test(people_have_the_last_word),
        cmocka_unit_test(a_cluster_by_hand_is_reported_by_its_environment),
        cmocka_unit_test(a_job_is_reported_from_outside),
        cmocka_unit_test(misuse_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
