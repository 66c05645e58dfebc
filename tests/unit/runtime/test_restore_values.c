/* SPDX-License-Identifier: Apache-2.0
 * cadre_restore: values out of a checkpoint into a job from the beginning, by hand and as tasks of
 * a job; what it did not find, and what it refuses. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "tests/lib/program.h"
#include "tests/unit/runtime/job.h"
#include "training.h"

#define STEPS 3

static const char *self;
static const char *saved; /* the folder with the checkpoint of a run of STEPS steps */

/* --- the program --- */

struct model {
    cadre_variable *w;
    cadre_variable *seen;
    cadre_variable *words;
    char mine[8];
};

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    double *values = cadre_variable_write(replica, model->w);
    int64_t *sum = cadre_variable_write(replica, model->seen);
    if (values == NULL || sum == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < 3; i++) {
        values[i] += 1;
    }
    *sum += 1;
    return CADRE_OK;
}

static void make_w(cadre_strategy *strategy, struct model *model)
{
    const cadre_variable_options minus = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = -1}};
    CADRE_CHECK(
        cadre_variable_create(strategy, "w", CADRE_F64, 1, &(int64_t){3}, &minus, &model->w));
}

static void make_rest(cadre_strategy *strategy, struct model *model)
{
    const cadre_variable_options summed = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    CADRE_CHECK(cadre_variable_create(strategy, "seen", CADRE_I64, 0, NULL, &summed, &model->seen));
    CADRE_CHECK(cadre_variable_create(
        strategy, "words", CADRE_STRING, 1, &(int64_t){2}, NULL, &model->words));
    CADRE_CHECK(cadre_state_register(strategy, "mine", model->mine, sizeof model->mine));
}

static void set_strings(struct model *model)
{
    const cadre_string both[] = {{"first", 5}, {"", 0}};
    cadre_tensor *strings;
    CADRE_CHECK(cadre_tensor_from_data(CADRE_STRING, 1, (const int64_t[]){2}, both, &strings));
    CADRE_CHECK(cadre_variable_assign(NULL, model->words, CADRE_ASSIGN, strings));
    cadre_tensor_release(strings);
}

static void send_line(struct model *model, const char *when)
{
    const double *w = cadre_variable_read(NULL, model->w);
    const cadre_string *words = cadre_variable_read(NULL, model->words);
    printf("%s: w %g %g seen %lld words '%.*s' mine %s\n", when, w[0], w[2],
        (long long)*(const int64_t *)cadre_variable_read(NULL, model->seen), (int)words[0].size,
        words[0].size == 0 ? "" : words[0].bytes, model->mine);
    fflush(stdout);
}

/* In the environment DIES is "<slot> <place>": the first attempt of that task ends there. */
static void die(const char *place)
{
    char here[32];
    const char *dies = getenv("DIES");
    const char *slot = getenv("CADRE_SLOT");
    const char *attempt = getenv("CADRE_INCARNATION");
    snprintf(here, sizeof here, "%s %s", slot == NULL ? "" : slot, place);
    if (dies != NULL && strcmp(dies, here) == 0 && attempt != NULL && strcmp(attempt, "1") == 0) {
        raise(SIGKILL);
    }
}

/* What the program does with the checkpoint in the environment's SAVED. */
static int program(const char *how)
{
    cadre_strategy *strategy;
    cadre_restore_result found;
    struct model model = {.mine = "nothing"};
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    make_w(strategy, &model);
    if (strcmp(how, "first") == 0) {
        make_rest(strategy, &model);
        set_strings(&model);
        memcpy(model.mine, "mine", 5);
    } else if (strcmp(how, "here") == 0) {
        make_rest(strategy, &model);
    }
    die("before");
    if (strcmp(how, "first") != 0) {
        cadre_status status = cadre_restore(strategy, getenv("SAVED"), &found);
        if (status != CADRE_OK) {
            printf("%s: %s\n", cadre_status_name(status), cadre_error_message());
            return cadre_finish(strategy); /* it harms nothing */
        }
        printf("restored %u missing %u unused %u passed over %d\n", found.restored,
            found.missing_count, found.unused_count, found.passed_over);
    }
    die("behind");
    if (strcmp(how, "later") == 0) {
        make_rest(strategy, &model);
    }
    if (strcmp(how, "first") != 0) {
        CADRE_CHECK(cadre_restored(strategy, CADRE_RESTORED_CONSUMED, NULL));
    }
    send_line(&model, "restored");
    while (cadre_strategy_position(strategy) < STEPS) {
        CADRE_CHECK(cadre_run(strategy, step, &model, NULL, 0, NULL));
    }
    send_line(&model, "at the end");
    return cadre_finish(strategy);
}

/* --- by hand, and as tasks of a job --- */

static void by_hand(uint32_t replicas, const char *how, const char *folder, struct job_end *ret_end)
{
    char output[TEST_PATH_BYTES + 32];
    char from[TEST_PATH_BYTES + 32];
    char many[32];
    snprintf(output, sizeof output, "CADRE_OUTPUT_DIR=%s", folder);
    snprintf(from, sizeof from, "SAVED=%s", saved == NULL ? "" : saved);
    snprintf(many, sizeof many, "CADRE_REPLICAS=%u", replicas);
    const char *environment[] = {output, from, many, "CADRE_VERIFY_STATE=1", NULL};
    const char *argv[] = {self, how, NULL};
    struct program_result result;
    program_run(&(struct program_spec){.argv = argv, .environment = environment}, &result);
    memset(ret_end, 0, sizeof *ret_end);
    snprintf(ret_end->printed, sizeof ret_end->printed, "%s%s", result.out, result.err);
    ret_end->exit_code = result.exit_code;
    program_result_free(&result);
}

static void as_job(uint32_t tasks, uint32_t replicas, const char *how, const char *restore,
    struct job_end *ret_end)
{
    char from[TEST_PATH_BYTES + 32];
    snprintf(from, sizeof from, "SAVED=%s", saved);
    const char *environment[] = {from, "CADRE_VERIFY_STATE=1"};
    const struct local_options options = {.program = self,
        .arguments = &how,
        .argument_count = 1,
        .environment = environment,
        .environment_count = 2,
        .tasks = tasks,
        .replicas = replicas,
        .output = test_temp_dir(),
        .restore_path = restore,
        .grace_us = 1000000};
    job_run(&options, ret_end);
}

static unsigned times_printed(const struct job_end *end, const char *line)
{
    unsigned times = 0;
    for (const char *at = end->printed; (at = strstr(at, line)) != NULL; at++) {
        times++;
    }
    return times;
}

static int make_saved(void **state)
{
    (void)state;
    struct job_end end;
    const char *folder = test_temp_dir();
    by_hand(2, "first", folder, &end);
    if (end.exit_code != 0 ||
        strstr(end.printed, "at the end: w 2 2 seen 6 words 'first' mine mine") == NULL) {
        print_error("exit code %d: %s\n", end.exit_code, end.printed);
        return -1;
    }
    saved = folder;
    return 0;
}

static const struct shape {
    uint32_t tasks; /* 0: by hand */
    uint32_t replicas;
} shapes[] = {{0, 1}, {0, 3}, {1, 1}, {2, 2}, {3, 1}};

/* Equal on all, also when replicas are compared in each step; and the job begins at step 0. */
static void all_tasks_have_the_values(void **state)
{
    static const struct {
        const char *how;
        const char *found;
    } ways[] = {{"here", "restored 4 missing 0 unused 0 passed over 0\n"},
        {"later", "restored 1 missing 0 unused 3 passed over 0\n"}};
    struct job_end end;
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
            const struct shape *shape = &shapes[i];
            uint32_t tasks = shape->tasks == 0 ? 1 : shape->tasks;
            char last[128];
            if (shape->tasks == 0) {
                by_hand(shape->replicas, ways[way].how, test_temp_dir(), &end);
            } else {
                as_job(tasks, shape->replicas, ways[way].how, NULL, &end);
            }
            snprintf(last, sizeof last, "at the end: w 5 5 seen %u words 'first' mine mine\n",
                6 + STEPS * tasks * shape->replicas);
            if (end.exit_code != 0 || times_printed(&end, ways[way].found) != tasks ||
                times_printed(&end, "restored: w 2 2 seen 6 words 'first' mine mine\n") != tasks ||
                times_printed(&end, last) != tasks) {
                fail_msg("%u tasks of %u replicas, %s: exit code %d, said\n%s", shape->tasks,
                    shape->replicas, ways[way].how, end.exit_code, end.printed);
            }
        }
    }
}

/* The new first task then opens the file again; another one in its stead has the values of the
 * others, or restores with them when no task was left that had any. */
static void a_task_that_dies_changes_nothing(void **state)
{
    static const char *const deaths[] = {
        "DIES=0 before", "DIES=1 before", "DIES=0 behind", "DIES=1 behind"};
    (void)state;
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        struct job_end end;
        char from[TEST_PATH_BYTES + 32];
        const char *how = "later";
        snprintf(from, sizeof from, "SAVED=%s", saved);
        const char *environment[] = {from, "CADRE_VERIFY_STATE=1", deaths[i]};
        const struct local_options options = {.program = self,
            .arguments = &how,
            .argument_count = 1,
            .environment = environment,
            .environment_count = 3,
            .tasks = 2,
            .replicas = 1,
            .output = test_temp_dir(),
            .max_restarts = 2,
            .grace_us = 1000000};
        job_run(&options, &end);
        if (end.exit_code != 0 ||
            times_printed(&end, "at the end: w 5 5 seen 12 words 'first' mine mine\n") != 2) {
            job_wrong(deaths[i], &end);
        }
    }
}

/* A job that goes on from its own checkpoint has its values. */
static void a_job_that_goes_on_passes_over_it(void **state)
{
    struct job_end end;
    char path[TEST_PATH_BYTES];
    (void)state;
    as_job(2, 1, "later", test_path(path, saved, "checkpoint-3.json"), &end);
    if (end.exit_code != 0 ||
        times_printed(&end, "restored 0 missing 0 unused 0 passed over 1\n") != 2 ||
        times_printed(&end, "at the end: w 2 2 seen 6 words 'first' mine mine\n") != 2) {
        fail_msg("exit code %d, said\n%s", end.exit_code, end.printed);
    }
}

static void all_tasks_receive_why_not(void **state)
{
    struct job_end end;
    const char *whole = saved;
    (void)state;
    saved = test_temp_dir();
    as_job(2, 1, "here", NULL, &end);
    const char *folder = saved;
    saved = whole;
    if (end.exit_code != 0 || times_printed(&end, "NOT_FOUND: ") != 2 ||
        times_printed(&end, "holds no checkpoint") != 2) {
        fail_msg("%s: exit code %d, said\n%s", folder, end.exit_code, end.printed);
    }
}

/* --- in this process --- */

/* The saved run's checkpoint under another step, in a folder of its own; `path` is its manifest. */
static const char *copy_of_saved(char path[TEST_PATH_BYTES])
{
    static const char *const names[] = {"checkpoint-3.safetensors", "checkpoint-3.json"};
    const char *folder = test_temp_dir();
    for (int i = 0; i < 2; i++) {
        struct cadre_error error;
        char *bytes;
        size_t size;
        test_path(path, saved, names[i]);
        assert_ok(file_read(path, 65536, &bytes, &size, &error), &error);
        test_path(path, folder, names[i]);
        assert_ok(file_write_atomic(path, bytes, size, 0644, &error), &error);
        free(bytes);
    }
    return folder;
}

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    int last = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc(last ^ 1, file), last ^ 1);
    assert_int_equal(fclose(file), 0);
}

static cadre_variable *create(
    cadre_strategy *strategy, const char *name, cadre_dtype dtype, int64_t count)
{
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 1, &count, NULL, &variable));
    return variable;
}

static void what_was_not_found_is_named(void **state)
{
    (void)state;
    cadre_restore_result found;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *w = create(strategy, "w", CADRE_F64, 3);
    create(strategy, "bias", CADRE_F32, 1);
    create(strategy, "another", CADRE_F32, 1);
    assert_public_error(cadre_restored(strategy, CADRE_RESTORED_PARTIAL, &found),
        CADRE_FAILED_PRECONDITION, "call cadre_restore before");
    assert_public_ok(cadre_restore(strategy, saved, &found));
    assert_true(((const double *)cadre_variable_read(NULL, w))[1] == 2);
    assert_non_null(strstr(found.path, "checkpoint-3.json"));
    assert_int_equal(found.restored, 1);
    assert_int_equal(found.missing_count, 2);
    assert_string_equal(found.missing[0], "another");
    assert_string_equal(found.missing[1], "bias");
    assert_int_equal(found.unused_count, 3);
    assert_string_equal(found.unused[0], "seen");
    assert_string_equal(found.unused[1], "state/mine");
    assert_string_equal(found.unused[2], "words");
    assert_public_ok(cadre_restored(strategy, CADRE_RESTORED_PARTIAL, NULL));
    assert_public_ok(cadre_restored(strategy, CADRE_RESTORED_SOME, NULL));
    assert_public_error(cadre_restored(strategy, CADRE_RESTORED_EXISTING, &found),
        CADRE_FAILED_PRECONDITION, "holds no value of 'another', 'bias'; where that is intended");
    assert_int_equal(found.missing_count, 2);
    assert_public_error(cadre_restored(strategy, (cadre_restore_match)9, NULL),
        CADRE_INVALID_ARGUMENT, "9 is no match");
    cadre_strategy_release(strategy);

    strategy = training_strategy(1);
    assert_public_ok(cadre_restore(strategy, saved, NULL));
    assert_public_error(cadre_restored(strategy, CADRE_RESTORED_SOME, NULL),
        CADRE_FAILED_PRECONDITION, "the first of which is 'seen'");
    create(strategy, "w", CADRE_F64, 3);
    assert_public_ok(cadre_restored(strategy, CADRE_RESTORED_EXISTING, NULL));
    assert_public_error(cadre_restored(strategy, CADRE_RESTORED_CONSUMED, NULL),
        CADRE_FAILED_PRECONDITION, "took 'seen', 'state/mine', 'words' from");
    cadre_strategy_release(strategy);
}

/* What does not fit is refused before anything is touched, or where it is created. */
static void another_type_or_shape_is_refused(void **state)
{
    (void)state;
    char mine[3] = "ab";
    cadre_variable *seen;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(cadre_variable_create(strategy, "seen", CADRE_I64, 0, NULL, NULL, &seen));
    create(strategy, "w", CADRE_F64, 4);
    assert_public_error(cadre_restore(strategy, saved, NULL), CADRE_INVALID_ARGUMENT,
        "checkpoint-3.json holds 'w' as f64 [3], and the program makes it as f64 [4]: make it as");
    assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, seen), 0);
    cadre_strategy_release(strategy);

    strategy = training_strategy(2);
    assert_public_ok(cadre_restore(strategy, saved, NULL));
    assert_public_error(
        cadre_variable_create(strategy, "w", CADRE_F32, 1, &(int64_t){3}, NULL, &seen),
        CADRE_INVALID_ARGUMENT, "holds 'w' as f64 [3], and the program makes it as f32 [3]");
    assert_public_error(
        cadre_variable_create(strategy, "words", CADRE_STRING, 1, &(int64_t){3}, NULL, &seen),
        CADRE_INVALID_ARGUMENT, "holds 'words' as string [2]");
    assert_public_error(cadre_state_register(strategy, "mine", mine, sizeof mine),
        CADRE_INVALID_ARGUMENT, "holds 'state/mine' as u8 [8]");
    assert_string_equal(mine, "ab");
    cadre_variable *w = create(strategy, "w", CADRE_F64, 3); /* the strategy goes on */
    assert_true(*(const double *)cadre_variable_read(NULL, w) == 2);
    cadre_strategy_release(strategy);
}

static void damage_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = copy_of_saved(path);
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *w = create(strategy, "w", CADRE_F64, 3);
    char tensors[TEST_PATH_BYTES];
    damage(test_path(tensors, folder, "checkpoint-3.safetensors"));
    assert_public_error(cadre_restore(strategy, path, NULL), CADRE_DATA_LOSS,
        "checkpoint-3.safetensors is damaged");
    assert_public_error(cadre_restore(strategy, folder, NULL), CADRE_DATA_LOSS, "no checkpoint in");
    assert_public_error(cadre_restore(strategy, test_path(path, folder, "checkpoint-4.json"), NULL),
        CADRE_NOT_FOUND, "checkpoint-4.json");
    assert_public_error(
        cadre_restore(strategy, test_temp_dir(), NULL), CADRE_NOT_FOUND, "holds no checkpoint");
    assert_public_error(cadre_restore(strategy, NULL, NULL), CADRE_INVALID_ARGUMENT, "path");
    assert_true(*(const double *)cadre_variable_read(NULL, w) == 0);
    /* One that cannot be restored does not take the place of one that was. */
    assert_public_ok(cadre_restore(strategy, saved, NULL));
    assert_public_error(cadre_restore(strategy, folder, NULL), CADRE_DATA_LOSS, "no checkpoint in");
    cadre_restore_result found;
    assert_public_ok(cadre_restored(strategy, CADRE_RESTORED_EXISTING, &found));
    assert_non_null(strstr(found.path, saved));
    cadre_strategy_release(strategy);
}

/* A file of tensors alone is one that another program may have written. */
static void a_file_of_tensors_is_enough(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    cadre_restore_result found;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *w = create(strategy, "w", CADRE_F64, 3);
    test_path(path, saved, "checkpoint-3.safetensors");
    assert_public_ok(cadre_restore(strategy, path, &found));
    assert_string_equal(found.path, path);
    assert_true(((const double *)cadre_variable_read(NULL, w))[2] == 2);
    assert_int_equal(found.unused_count, 2); /* strings are in the manifest */
    cadre_strategy_release(strategy);
}

static void it_is_for_the_beginning(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *w = create(strategy, "w", CADRE_F64, 3);
    assert_public_ok(cadre_variable_assign_literal(NULL, w, CADRE_ASSIGN, 7));
    assert_public_ok(cadre_restore(strategy, saved, NULL));
    assert_true(*(const double *)cadre_variable_read(NULL, w) == 2);
    assert_public_ok(cadre_variable_assign_literal(NULL, w, CADRE_ASSIGN_ADD, 1));
    assert_true(*(const double *)cadre_variable_read(NULL, w) == 3); /* it does not come back */
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_true(*(const double *)cadre_variable_read(NULL, w) == 3);
    assert_public_error(cadre_restore(strategy, saved, NULL), CADRE_FAILED_PRECONDITION,
        "after the first step; call it before, or assign");
    assert_public_ok(cadre_restored(strategy, CADRE_RESTORED_EXISTING, NULL));
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1) {
        return program(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tasks_have_the_values),
        cmocka_unit_test(a_task_that_dies_changes_nothing),
        cmocka_unit_test(a_job_that_goes_on_passes_over_it),
        cmocka_unit_test(all_tasks_receive_why_not),
        cmocka_unit_test(what_was_not_found_is_named),
        cmocka_unit_test(another_type_or_shape_is_refused),
        cmocka_unit_test(damage_is_reported),
        cmocka_unit_test(a_file_of_tensors_is_enough),
        cmocka_unit_test(it_is_for_the_beginning),
    };
    return cmocka_run_group_tests(tests, make_saved, NULL);
}
