/* SPDX-License-Identifier: Apache-2.0
 * Variables that servers hold, and what workers do with them: cadre/served.h,
 * cadre/cluster_coordinator.h, cadre/parameter_server.h. By hand all tasks are threads of this
 * process: here two servers and two workers. A whole program: deploy/examples/recsys. */
#include <stdlib.h>
#include <string.h>

#include "documents.h"

static cadre_strategy *strategy;

/* A table of four rows in two shards, each on a server of its own, with an optimizer there. */
static cadre_variable *table(const char *name)
{
    static const cadre_optimizer_options options = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5};
    cadre_optimizer *optimizer;
    const int64_t dims[] = {4, 2};
    cadre_variable *variable;
    OK(cadre_variable_create(strategy, name, CADRE_F32, 2, dims, NULL, &variable));
    OK(cadre_optimizer_create(strategy, &options, &optimizer));
    OK(cadre_optimizer_build(optimizer, &variable, 1));
    cadre_optimizer_release(optimizer);
    return variable;
}

static void assert_value(cadre_variable *variable, const char *wanted)
{
    cadre_tensor *value;
    OK(cadre_variable_value(NULL, variable, NULL, &value));
    assert_given(value, wanted);
}

/* --- variables on servers --- */

static void a_variable_has_shards(void **state)
{
    (void)state;
    int64_t first;
    int64_t count;
    cadre_variable *variable = table("shards");
    assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_SERVED);
    assert_int_equal(cadre_variable_components(variable), 2);
    assert_string_equal(
        cadre_variable_device(variable, 0), "/job:ps/replica:0/task:0/device:CPU:0");
    assert_string_equal(
        cadre_variable_device(variable, 1), "/job:ps/replica:0/task:1/device:CPU:0");
    OK(cadre_variable_component_rows(variable, 1, &first, &count));
    assert_int_equal(first, 2);
    assert_int_equal(count, 2);
}

/* It is printed with them. */
static void it_is_printed(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    OK(cadre_variable_print(table("printed"), file));
    fclose(file);
    assert_string_equal(text,
        "ShardedVariable:{\n"
        "  0: <cadre_variable 'printed/part_0:0' shape=(2, 2) dtype=float32, numpy=\n"
        "array([[0., 0.],\n"
        "       [0., 0.]], dtype=float32)>,\n"
        "  1: <cadre_variable 'printed/part_1:0' shape=(2, 2) dtype=float32, numpy=\n"
        "array([[0., 0.],\n"
        "       [0., 0.]], dtype=float32)>\n"
        "}\n");
    free(text);
}

/* By default variables lie on the servers; the chief has others of its own. */
static void the_chief_has_its_own(void **state)
{
    (void)state;
    const cadre_variable_options own = {.placement = CADRE_PLACEMENT_REPLICAS};
    cadre_variable *variable;
    OK(cadre_variable_create(strategy, "own", CADRE_F32, 0, NULL, &own, &variable));
    assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_MIRRORED);
    OK(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 3));
    assert_value(variable, "3"); /* read as those on servers are */
}

/* The whole is assigned, and changed by a tensor of its shape, or by a number. */
static void it_is_assigned(void **state)
{
    (void)state;
    cadre_variable *variable = table("assigned");
    cadre_tensor *value = rows(2, floats(0, 1, 2, 3, 4, 5, 6, 7));
    OK(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, value));
    OK(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, value));
    OK(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_SUB, value));
    OK(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN_ADD, 1));
    assert_value(variable, "[[1 2] [3 4] [5 6] [7 8]]");
    cadre_tensor_release(value);
}

/* Rows are changed by number, wherever they are. */
static void rows_are_changed(void **state)
{
    (void)state;
    cadre_variable *variable = table("scattered");
    cadre_sparse sparse = {
        .values = rows(2, floats(1, 2, 3, 4)), .indices = integers(3, 0), .rows = 4};
    OK(cadre_variable_scatter(NULL, variable, CADRE_SCATTER_UPDATE, &sparse));
    OK(cadre_variable_scatter(NULL, variable, CADRE_SCATTER_ADD, &sparse));
    OK(cadre_variable_scatter(NULL, variable, CADRE_SCATTER_ADD, &sparse));
    OK(cadre_variable_scatter(NULL, variable, CADRE_SCATTER_SUB, &sparse));
    assert_value(variable, "[[6 8] [0 0] [0 0] [2 4]]");
    cadre_sparse_release(&sparse);
}

/* And read: by number, as Python's slices, and one alone. */
static void rows_are_read(void **state)
{
    (void)state;
    cadre_variable *variable = table("read");
    cadre_tensor *value = rows(2, floats(0, 1, 2, 3, 4, 5, 6, 7));
    cadre_tensor *ids = integers(3, 0, 3);
    cadre_tensor *some;
    OK(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, value));
    OK(cadre_variable_gather(NULL, variable, ids, NULL, &some));
    assert_given(some, "[[6 7] [0 1] [6 7]]");
    OK(cadre_variable_slice(NULL, variable, CADRE_SLICE_DEFAULT, CADRE_SLICE_DEFAULT, -2, &some));
    assert_given(some, "[[6 7] [2 3]]");
    OK(cadre_variable_slice(NULL, variable, -1, CADRE_SLICE_ROW, 1, &some));
    assert_given(some, "[6 7]");
    cadre_tensor_release(ids);
    cadre_tensor_release(value);
}

/* Into memory of the program, without another copy. */
static void memory_is_filled(void **state)
{
    (void)state;
    const int64_t dims[] = {4, 2};
    float memory[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    cadre_read_options options = {0};
    OK(cadre_tensor_over(CADRE_F32, 2, dims, memory, NULL, NULL, &options.into));
    OK(cadre_variable_value(NULL, table("filled"), &options, NULL));
    assert_true(memory[0] == 0 && memory[7] == 0);
    cadre_tensor_release(options.into);
}

/* The servers' optimizer makes of a gradient what is new: of the whole, with the new value back,
 * and of some rows. */
static void gradients_are_pushed(void **state)
{
    (void)state;
    cadre_variable *variable = table("pushed");
    cadre_tensor *gradient = rows(2, floats(2, 2, 2, 2, 2, 2, 2, 2));
    cadre_tensor *after = rows(2, floats(0, 0, 0, 0, 0, 0, 0, 0));
    cadre_tensor *ids = integers(1);
    cadre_tensor *row = rows(2, floats(4, 8));
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, NULL));
    assert_value(variable, "[[-1 -1] [-1 -1] [-1 -1] [-1 -1]]");
    OK(cadre_variable_push(
        NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &(cadre_push_options){.into = after}));
    assert_given(after, "[[-2 -2] [-2 -2] [-2 -2] [-2 -2]]");
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, row, ids, NULL));
    assert_value(variable, "[[-2 -2] [-4 -6] [-2 -2] [-2 -2]]");
    cadre_tensor_release(row);
    cadre_tensor_release(ids);
    cadre_tensor_release(gradient);
}

/* What the optimizer remembers is read where it is, and is written by updates alone. */
static void slots_are_read(void **state)
{
    (void)state;
    static const cadre_optimizer_options options = {
        .kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 0.5, .momentum = 0.5};
    const int64_t dims[] = {4, 2};
    cadre_optimizer *optimizer;
    cadre_variable *variable;
    cadre_variable *slot;
    OK(cadre_variable_create(strategy, "remembered", CADRE_F32, 2, dims, NULL, &variable));
    OK(cadre_optimizer_create(strategy, &options, &optimizer));
    for (int i = 0; i < 2; i++) {
        cadre_tensor *gradient = rows(2, floats(2, 2, 2, 2, 4, 4, 4, 4));
        OK(cadre_optimizer_apply(NULL, optimizer, &gradient, &variable, 1, NULL));
        cadre_tensor_release(gradient);
    }
    assert_int_equal(cadre_optimizer_iterations(optimizer), 2);
    OK(cadre_optimizer_slot(optimizer, variable, "updates", &slot));
    assert_value(slot, "[2]");
    OK(cadre_optimizer_slot(optimizer, variable, "momentum", &slot));
    assert_value(slot, "[[-1.5 -1.5] [-1.5 -1.5] [-3 -3] [-3 -3]]");
    assert_int_equal(
        cadre_variable_assign_literal(NULL, slot, CADRE_ASSIGN, 0), CADRE_FAILED_PRECONDITION);
    cadre_optimizer_release(optimizer);
}

/* A push with a bound: refused when others have pushed since this thread's last read. */
static void pushes_are_bounded(void **state)
{
    (void)state;
    cadre_variable *variable = table("bounded");
    cadre_tensor *gradient = rows(2, floats(2, 2, 2, 2, 2, 2, 2, 2));
    const cadre_push_options none_between = {.staleness = 1};
    assert_value(variable, "[[0 0] [0 0] [0 0] [0 0]]");
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &none_between));
    assert_int_equal(
        cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &none_between),
        CADRE_ABORTED);
    assert_value(variable, "[[-1 -1] [-1 -1] [-1 -1] [-1 -1]]");
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &none_between));
    cadre_tensor_release(gradient);
}

/* Steps that several take together: a step is done when so many have given their part of it. One
 * that will never be complete is begun again. */
static void a_step_has_contributions(void **state)
{
    (void)state;
    cadre_variable *variable = table("together");
    cadre_tensor *gradient = rows(2, floats(2, 2, 2, 2, 2, 2, 2, 2));
    cadre_tensor *value;
    const cadre_push_options half = {.contributions = 2, .step = 0};
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &half));
    assert_value(variable, "[[0 0] [0 0] [0 0] [0 0]]");
    OK(cadre_variable_begin_step(variable, 0)); /* who else would contribute has failed */
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &half));
    OK(cadre_variable_push(NULL, variable, CADRE_ASSIGN_UPDATE, gradient, NULL, &half));
    OK(cadre_variable_value(
        NULL, variable, &(cadre_read_options){.step = 1}, &value)); /* after step 0 */
    assert_given(value, "[[-1 -1] [-1 -1] [-1 -1] [-1 -1]]");       /* the mean, once */
    cadre_tensor_release(gradient);
}

/* --- closures --- */

/* On a worker: adds up its arguments, unless the closure was cancelled. */
static cadre_status add_up(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    float sum = 0;
    (void)user;
    for (uint32_t i = 0; i < cadre_closure_argument_count(closure); i++) {
        cadre_tensor *argument;
        if (cadre_closure_cancelled(closure)) {
            return CADRE_CANCELLED;
        }
        CADRE_TRY(cadre_closure_tensor(closure, i, &argument));
        sum += *(const float *)cadre_tensor_const_data(argument);
    }
    CADRE_TRY(cadre_tensor_from_i64((int64_t)cadre_closure_number(closure), &outputs[1]));
    return cadre_tensor_from_f32(sum, &outputs[0]);
}

/* The strategy waits for its servers; workers may come later, and closures wait for them. */
static bool both_workers_are_there(void *data)
{
    (void)data;
    return cadre_workers_connected(strategy) == 2;
}

/* Each closure has a number of its own. */
static int64_t number_of(cadre_remote_value *value)
{
    cadre_tensor *outputs[2];
    uint32_t count;
    OK(cadre_fetch(value, outputs, 2, &count));
    assert_int_equal(count, 2);
    assert_given(outputs[0], "42");
    int64_t number = *(const int64_t *)cadre_tensor_const_data(outputs[1]);
    cadre_tensor_release(outputs[1]);
    return number;
}

/* The chief schedules; what comes of it is there at once, as a value that can be waited for. */
static void the_chief_schedules(void **state)
{
    (void)state;
    cadre_tensor *numbers[] = {floats(1), floats(41)};
    const cadre_closure_argument arguments[] = {{.tensor = numbers[0]}, {.tensor = numbers[1]}};
    cadre_remote_value *sum;
    cadre_remote_value *again;
    bool done;
    assert_int_equal(cadre_task_type_of(), CADRE_TASK_CHIEF);
    assert_int_equal(cadre_task_index(), 0);
    assert_true(test_wait(both_workers_are_there, NULL, 30000000));
    OK(cadre_schedule(strategy, "add_up", arguments, 2, &sum));
    OK(cadre_schedule(strategy, "add_up", arguments, 2, &again));
    assert_true(number_of(sum) < number_of(again));
    assert_true(cadre_remote_value_ready(sum)); /* it was waited for */
    OK(cadre_join(strategy));
    OK(cadre_done(strategy, &done));
    assert_true(done);
    cadre_remote_value_release(again);
    cadre_remote_value_release(sum);
    cadre_tensor_release(numbers[0]);
    cadre_tensor_release(numbers[1]);
}

static int begin(void **state)
{
    (void)state;
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = 2}};
    setenv("CADRE_SERVERS", "2", 1);
    setenv("CADRE_WORKERS", "2", 1);
    setenv("CADRE_OUTPUT_DIR", test_temp_dir(), 1);
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_function_register("add_up", add_up, NULL));
    CADRE_CHECK(cadre_strategy_parameter_server(&options, &strategy));
    cadre_show_progress(strategy, false);
    return 0;
}

static int end(void **state)
{
    (void)state;
    cadre_strategy_release(strategy);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_has_shards),
        cmocka_unit_test(it_is_printed),
        cmocka_unit_test(the_chief_has_its_own),
        cmocka_unit_test(it_is_assigned),
        cmocka_unit_test(rows_are_changed),
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(memory_is_filled),
        cmocka_unit_test(gradients_are_pushed),
        cmocka_unit_test(slots_are_read),
        cmocka_unit_test(pushes_are_bounded),
        cmocka_unit_test(a_step_has_contributions),
        cmocka_unit_test(the_chief_schedules),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
