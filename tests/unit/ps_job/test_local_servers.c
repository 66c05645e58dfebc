/* SPDX-License-Identifier: Apache-2.0
 * A ps job in one program: 3 workers and 2 servers are threads of it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cadre/checkpoint.h"
#include "cadre/cluster_coordinator.h"
#include "cadre/export.h"
#include "cadre/program.h"
#include "cadre/restore.h"
#include "cadre/served.h"
#include "common/base/files.h"
#include "tests/lib/test.h"
#include "tests/unit/served/memory.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/input/reports.h"
#include "worker/library/runtime/ps_job/progress_note.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/state/format/safetensors.h"
#include "worker/library/runtime/strategy/strategy.h"

#define CLOSURES 200

static const char *folder;
static atomic_uint ran;
static atomic_uint wrong;
static atomic_uint by[3]; /* workers */
static cadre_strategy *shared;

static cadre_status look_around(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    uint32_t index;
    uint64_t key;
    uint32_t ordinal;
    (void)outputs;
    (void)user;
    bool right = cadre_task_type_of() == CADRE_TASK_WORKER && !ps_job_current()->scheduler &&
                 cadre_worker_index(&index) == CADRE_OK && index == cadre_task_index() &&
                 index < 3 && ps_job_push_key(&key, &ordinal, NULL) == CADRE_OK &&
                 key == cadre_closure_number(closure) && ordinal == 0;
    atomic_fetch_add(right ? &by[index] : &wrong, 1);
    atomic_fetch_add(&ran, 1);
    return CADRE_OK;
}

/* What only the chief's program may do, though a worker of it knows the strategy. */
static cadre_status overreach(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_strategy *strategy = *(cadre_strategy **)user;
    cadre_variable *variable;
    (void)closure;
    (void)outputs;
    bool refused = cadre_save(strategy, true) == CADRE_FAILED_PRECONDITION &&
                   cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, NULL, &variable) ==
                       CADRE_FAILED_PRECONDITION &&
                   cadre_finish(strategy) == 1 &&
                   strstr(cadre_error_message(), "that a worker runs") != NULL;
    cadre_strategy_release(strategy);
    atomic_fetch_add(refused ? &ran : &wrong, 1);
    return CADRE_OK;
}

#define ROWS  6
#define WIDTH 5

/* Adds half to all of "w": the rate is 0.5. */
static cadre_status train(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_variable *variable;
    float gradient[ROWS * WIDTH];
    (void)closure;
    (void)outputs;
    (void)user;
    for (int i = 0; i < ROWS * WIDTH; i++) {
        gradient[i] = -1;
    }
    CADRE_TRY(cadre_variable_find(NULL, "w", &variable));
    return memory_push(variable, gradient, NULL);
}

static void assert_refused(cadre_status status, cadre_status wanted, const char *part)
{
    struct cadre_error error = {.code = status};
    snprintf(error.text, sizeof error.text, "%s", cadre_error_message());
    test_check_error(status, wanted, &error, part, "a public function", __FILE__, __LINE__);
}

static void options_are_looked_at(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    cadre_parameter_server_options options = {.partitioner = {.kind = CADRE_PARTITIONER_FIXED}};
    assert_refused(cadre_strategy_parameter_server(&options, &strategy), CADRE_INVALID_ARGUMENT,
        "fixed number of shards has 0");
    options.partitioner = (cadre_partitioner){.kind = CADRE_PARTITIONER_MAX_SIZE};
    assert_refused(
        cadre_strategy_parameter_server(&options, &strategy), CADRE_INVALID_ARGUMENT, "bytes");
    options.partitioner = (cadre_partitioner){.kind = CADRE_PARTITIONER_FUNCTION};
    assert_refused(
        cadre_strategy_parameter_server(&options, &strategy), CADRE_INVALID_ARGUMENT, "NULL");
    options.partitioner = (cadre_partitioner){.kind = (cadre_partitioner_kind)99};
    assert_refused(
        cadre_strategy_parameter_server(&options, &strategy), CADRE_INVALID_ARGUMENT, "99");
    assert_refused(
        cadre_strategy_parameter_server(NULL, NULL), CADRE_INVALID_ARGUMENT, "'ret_strategy'");
    assert_int_equal(cadre_task_type_of(), CADRE_TASK_REPLICA);
}

static void outside_of_a_ps_job_there_is_nothing(void **state)
{
    (void)state;
    uint64_t step = 0;
    assert_int_equal(cadre_task_type_of(), CADRE_TASK_REPLICA);
    assert_int_equal(cadre_task_index(), 0);
    assert_false(cadre_task_serves());
    assert_false(cadre_next_evaluation(0, &step));
    assert_refused(cadre_report_evaluation("loss", 1), CADRE_FAILED_PRECONDITION, "evaluator");
    assert_int_equal(cadre_serve(), 1);
    assert_non_null(strstr(cadre_error_message(), "nothing to serve"));
    assert_int_equal(cadre_evaluator_finish(), 1);
}

static void assert_described(const cadre_strategy *strategy, const char *part)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(cadre_describe(strategy, file), CADRE_OK);
    fclose(file);
    assert_non_null(strstr(text, part));
    free(text);
}

static void all_are_in_one_program(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    cadre_strategy *other;
    struct progress_note note;
    struct cadre_error error = {0};
    atomic_store(&ran, 0);
    assert_int_equal(cadre_strategy_parameter_server(NULL, &strategy), CADRE_OK);
    assert_int_equal(cadre_task_type_of(), CADRE_TASK_CHIEF);
    assert_false(cadre_task_serves());
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 1);
    assert_described(strategy, "variables: on 2 parameter servers");
    assert_refused(cadre_strategy_parameter_server(NULL, &other), CADRE_FAILED_PRECONDITION,
        "another strategy with parameter servers");
    assert_int_equal(cadre_serve(), 1);
    for (int i = 0; i < CLOSURES; i++) {
        assert_int_equal(cadre_schedule(strategy, "look_around", NULL, 0, NULL), CADRE_OK);
    }
    assert_int_equal(cadre_join(strategy), CADRE_OK);
    assert_int_equal(atomic_load(&ran), CLOSURES);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(ps_job_done_watermark(), CLOSURES + 1);
    assert_ok(progress_note_read(ps_job_current(), &note, &error), &error);
    assert_int_equal(note.step, 1);
    assert_int_equal(note.pushes, 0);
    assert_int_equal(cadre_finish(strategy), 0);
    assert_int_equal(cadre_task_type_of(), CADRE_TASK_REPLICA);
    assert_null(ps_job_current());
}

static cadre_variable *make_w(cadre_strategy *strategy)
{
    cadre_variable *variable = NULL;
    const cadre_optimizer_options options = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5};
    const int64_t dims[] = {ROWS, WIDTH};
    assert_int_equal(
        cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, NULL, &variable), CADRE_OK);
    assert_int_equal(memory_train(strategy, variable, &options), CADRE_OK);
    return variable;
}

static void assert_w(cadre_variable *variable, float wanted)
{
    float values[ROWS * WIDTH];
    assert_int_equal(memory_pull(variable, values), CADRE_OK);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        assert_true(values[i] == wanted);
    }
}

/* Closures of all workers train what both servers hold, which is saved at the end. */
static void a_program_trains(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    struct progress_note note;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3}};
    assert_int_equal(cadre_strategy_parameter_server(&options, &strategy), CADRE_OK);
    cadre_variable *variable = make_w(strategy);
    assert_int_equal(cadre_variable_components(variable), 3);
    assert_ok(progress_note_read(ps_job_current(), &note, &error), &error);
    uint64_t before = note.pushes;
    for (int i = 0; i < CLOSURES; i++) {
        assert_int_equal(cadre_schedule(strategy, "train", NULL, 0, NULL), CADRE_OK);
    }
    assert_int_equal(cadre_join(strategy), CADRE_OK);
    assert_w(variable, CLOSURES / 2);
    assert_ok(progress_note_read(ps_job_current(), &note, &error), &error);
    assert_int_equal(note.step, 1);
    assert_int_equal(note.pushes - before, 3 * CLOSURES); /* each to 3 shards */
    assert_int_equal(cadre_finish(strategy), 0);
    test_path(path, folder, "checkpoint-1.safetensors");
    assert_int_equal(access(path, R_OK), 0);
}

static void assert_tensors(const char *name, size_t wanted, const char *first)
{
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    char *bytes;
    size_t size;
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    assert_ok(file_read(test_path(path, folder, name), 65536, &bytes, &size, &error), &error);
    assert_ok(safetensors_decode(bytes, size, &entries, &count, &position, &error), &error);
    assert_int_equal(count, wanted);
    assert_string_equal(entries[0].name, first);
    assert_int_equal(entries[0].bytes, ROWS * WIDTH * sizeof(float));
    assert_true(*(const float *)entries[0].data == 0);
    free(entries);
    free(bytes);
}

static const cadre_optimizer_options momentum = {.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 0.5};

/* Without what optimizers remember, but where that is named. */
static void a_program_exports_what_servers_hold(void **state)
{
    (void)state;
    static const cadre_signature named[] = {{"velocity", "w/momentum"}, {"weights", "w"}};
    const int64_t dims[] = {ROWS, WIDTH};
    cadre_strategy *strategy;
    cadre_variable *variable;
    assert_int_equal(cadre_strategy_parameter_server(NULL, &strategy), CADRE_OK);
    assert_int_equal(
        cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, NULL, &variable), CADRE_OK);
    assert_int_equal(memory_train(strategy, variable, &momentum), CADRE_OK);
    assert_int_equal(cadre_export(strategy, "all.safetensors", NULL, 0), CADRE_OK);
    assert_tensors("all.safetensors", 1, "w");
    assert_int_equal(cadre_export(strategy, "named.safetensors", named, 2), CADRE_OK);
    assert_tensors("named.safetensors", 2, "velocity");
    cadre_strategy_release(strategy);
}

/* Where they are created, with what the optimizer remembers if the file holds that. */
static void variables_on_servers_take_values(void **state)
{
    (void)state;
    static const cadre_signature named[] = {{"weights", "w"}};
    const cadre_variable_options three = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3}};
    cadre_variable_options other = three;
    other.initializer.value = 7;
    const int64_t dims[] = {ROWS, WIDTH};
    const cadre_parameter_server_options cut = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3}};
    char path[TEST_PATH_BYTES];
    cadre_strategy *strategy;
    cadre_variable *variable;
    cadre_restore_result found;
    assert_int_equal(cadre_strategy_parameter_server(NULL, &strategy), CADRE_OK);
    assert_int_equal(
        cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &three, &variable), CADRE_OK);
    assert_int_equal(memory_train(strategy, variable, &momentum), CADRE_OK);
    assert_int_equal(cadre_export(strategy, "weights.safetensors", named, 1), CADRE_OK);
    cadre_strategy_release(strategy);

    test_path(path, folder, "weights.safetensors");
    assert_int_equal(cadre_strategy_parameter_server(&cut, &strategy), CADRE_OK);
    assert_int_equal(cadre_restore(strategy, path, &found), CADRE_OK);
    assert_int_equal(found.unused_count, 1);
    assert_int_equal(
        cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &other, &variable), CADRE_OK);
    assert_w(variable, 3);
    assert_int_equal(
        cadre_variable_create(strategy, "b", CADRE_F32, 2, dims, &other, &variable), CADRE_OK);
    assert_w(variable, 7);
    assert_int_equal(cadre_restored(strategy, CADRE_RESTORED_PARTIAL, &found), CADRE_OK);
    assert_int_equal(found.restored, 1);
    assert_int_equal(found.unused_count, 0);
    assert_int_equal(found.missing_count, 1);
    assert_string_equal(found.missing[0], "b");
    cadre_variable *w;
    assert_int_equal(cadre_variable_find(NULL, "w", &w), CADRE_OK);
    assert_int_equal(cadre_variable_assign_literal(NULL, w, CADRE_ASSIGN, 5), CADRE_OK);
    assert_int_equal(cadre_restore(strategy, path, NULL), CADRE_OK); /* it is there already */
    assert_w(w, 3);
    assert_w(variable, 7);
    cadre_strategy_release(strategy);

    assert_int_equal(cadre_strategy_parameter_server(&cut, &strategy), CADRE_OK);
    assert_int_equal(
        cadre_variable_create(strategy, "w", CADRE_F32, 1, (const int64_t[]){2}, &other, &variable),
        CADRE_OK);
    assert_int_equal(cadre_restore(strategy, path, NULL), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "holds 'w' as f32 [6, 5]"));
    cadre_strategy_release(strategy);

    assert_int_equal(cadre_strategy_parameter_server(&cut, &strategy), CADRE_OK);
    assert_int_equal(cadre_restore(strategy, path, NULL), CADRE_OK);
    assert_int_equal(
        cadre_variable_create(strategy, "w", CADRE_F32, 1, (const int64_t[]){2}, &other, &variable),
        CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "weights.safetensors"));
    cadre_strategy_release(strategy);
}

/* What is not done is left; nothing hangs, nothing leaks. */
static void a_ps_job_can_be_left_at_any_time(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    for (int round = 0; round < 5; round++) {
        assert_int_equal(cadre_strategy_parameter_server(NULL, &strategy), CADRE_OK);
        for (int i = 0; i < round * 10; i++) {
            assert_int_equal(cadre_schedule(strategy, "look_around", NULL, 0, NULL), CADRE_OK);
        }
        cadre_strategy_release(strategy);
        assert_null(ps_job_current());
    }
}

/* A closure cannot end what it is a part of. */
static void a_closure_cannot_end_its_strategy(void **state)
{
    (void)state;
    atomic_store(&ran, 0);
    assert_int_equal(cadre_strategy_parameter_server(NULL, &shared), CADRE_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(cadre_schedule(shared, "overreach", NULL, 0, NULL), CADRE_OK);
    }
    assert_int_equal(cadre_join(shared), CADRE_OK);
    assert_int_equal(atomic_load(&ran), 3);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(cadre_finish(shared), 0);
}

/* --- going on from a checkpoint --- */

/* A program whose loop begins at its own state; "train" is given what it is before the step. */
static int count_on(const char *first)
{
    cadre_strategy *strategy;
    int64_t count = 0;
    bool done = false;
    if (cadre_strategy_parameter_server(NULL, &strategy) != CADRE_OK ||
        cadre_state_register(strategy, "count", &count, sizeof count) != CADRE_OK) {
        return 2;
    }
    make_w(strategy);
    cadre_status status = strcmp(first, "done") == 0 ? cadre_done(strategy, &done)
                          : strcmp(first, "join") == 0
                              ? cadre_join(strategy)
                              : cadre_schedule(strategy, "train", NULL, 0, NULL);
    if (status != CADRE_OK || count != 7 || cadre_strategy_position(strategy) != 1) {
        return 3;
    }
    if (cadre_schedule(strategy, "train", NULL, 0, NULL) != CADRE_OK ||
        cadre_join(strategy) != CADRE_OK || cadre_strategy_position(strategy) != 2 ||
        strategy->input->reports->step != 2) {
        return 4; /* what people see goes on too */
    }
    cadre_strategy_release(strategy);
    return 0;
}

/* CADRE_CHECK leaves so: workers and servers are still meeting. */
static int leave_early(void)
{
    cadre_strategy *strategy;
    return cadre_strategy_parameter_server(NULL, &strategy) == CADRE_OK ? 5 : 6;
}

static int run_again(const char *first)
{
    char path[TEST_PATH_BYTES];
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        setenv("CADRE_RESTORE", test_path(path, folder, "checkpoint-1.json"), 1);
        execl("/proc/self/exe", "test_by_hand", first, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What the program has is there before the first closure depends on it, not with the step after. */
static void the_chiefs_state_is_there_before_the_first_closure(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    int64_t count = 7;
    assert_int_equal(cadre_strategy_parameter_server(NULL, &strategy), CADRE_OK);
    assert_int_equal(cadre_state_register(strategy, "count", &count, sizeof count), CADRE_OK);
    make_w(strategy);
    assert_int_equal(cadre_schedule(strategy, "train", NULL, 0, NULL), CADRE_OK);
    assert_int_equal(cadre_join(strategy), CADRE_OK);
    assert_int_equal(cadre_finish(strategy), 0);
    assert_int_equal(run_again("done"), 0);
    assert_int_equal(run_again("join"), 0);
    assert_int_equal(run_again("schedule"), 0);
}

static void a_program_may_exit_while_they_meet(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    enum { TIMES = 4 }; /* a process takes a second to end then */
#else
    enum { TIMES = 60 }; /* one in twenty went wrong */
#endif
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(run_again("leave"), 5);
    }
}

static void the_default_is_what_the_environment_asks_for(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    assert_int_equal(cadre_strategy_default(&strategy), CADRE_OK);
    assert_int_equal(cadre_task_type_of(), CADRE_TASK_CHIEF);
    assert_int_equal(cadre_finish(strategy), 0);
}

int main(int argc, char **argv)
{
    setenv("CADRE_WORKERS", "3", 1);
    setenv("CADRE_SERVERS", "2", 1);
    setenv("CADRE_STRATEGY", "parameter_server", 1);
    unsetenv("TF_CONFIG");
    folder = test_temp_dir();
    setenv("CADRE_OUTPUT_DIR", folder, 1);
    if (cadre_init(NULL, NULL) != CADRE_OK ||
        cadre_function_register("look_around", look_around, NULL) != CADRE_OK ||
        cadre_function_register("overreach", overreach, &shared) != CADRE_OK ||
        cadre_function_register("train", train, NULL) != CADRE_OK) {
        return 1;
    }
    if (argc > 1) {
        return strcmp(argv[1], "leave") == 0 ? leave_early() : count_on(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_looked_at),
        cmocka_unit_test(outside_of_a_ps_job_there_is_nothing),
        cmocka_unit_test(all_are_in_one_program),
        cmocka_unit_test(a_program_trains),
        cmocka_unit_test(a_program_exports_what_servers_hold),
        cmocka_unit_test(variables_on_servers_take_values),
        cmocka_unit_test(a_ps_job_can_be_left_at_any_time),
        cmocka_unit_test(a_closure_cannot_end_its_strategy),
        cmocka_unit_test(the_chiefs_state_is_there_before_the_first_closure),
        cmocka_unit_test(a_program_may_exit_while_they_meet),
        cmocka_unit_test(the_default_is_what_the_environment_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
