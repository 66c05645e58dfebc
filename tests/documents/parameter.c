/* SPDX-License-Identifier: Apache-2.0
 * Variables that servers hold, and what workers do with them: cadre/parameter.h,
 * cadre/cluster_coordinator.h, cadre/parameter_server.h. By hand all tasks are threads of this
 * process: here two servers and two workers. A whole program: deploy/examples/recsys. */
#include <stdlib.h>
#include <string.h>

#include "documents.h"

static cadre_strategy *strategy;

/* A table of four rows in two shards, each on a server of its own, with an optimizer there. */
static cadre_parameter *table(const char *name)
{
    static const cadre_parameter_options options = {
        .optimizer = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5}};
    const int64_t dims[] = {4, 2};
    cadre_parameter *parameter;
    OK(cadre_parameter_create(strategy, name, CADRE_F32, 2, dims, &options, &parameter));
    return parameter;
}

static void assert_parameter(cadre_parameter *parameter, const char *wanted)
{
    cadre_tensor *value;
    OK(cadre_parameter_read(parameter, &value, NULL));
    assert_given(value, wanted);
}

/* --- parameters --- */

static void a_parameter_has_shards(void **state)
{
    (void)state;
    int64_t first;
    int64_t count;
    uint32_t server;
    uint32_t other;
    cadre_parameter *parameter = table("shards");
    assert_string_equal(cadre_parameter_name(parameter), "shards");
    assert_int_equal(cadre_parameter_dtype(parameter), CADRE_F32);
    assert_int_equal(cadre_parameter_rank(parameter), 2);
    assert_int_equal(cadre_parameter_dims(parameter)[0], 4);
    OK(cadre_parameter_shard(parameter, 0, &first, &count, &server));
    OK(cadre_parameter_shard(parameter, 1, &first, &count, &other));
    assert_int_equal(first, 2);
    assert_int_equal(count, 2);
    assert_int_not_equal(server, other);
}

/* The whole is assigned, and changed by a tensor of its shape. */
static void it_is_assigned(void **state)
{
    (void)state;
    cadre_parameter *parameter = table("assigned");
    cadre_tensor *ones = rows(2, floats(1, 1, 1, 1, 1, 1, 1, 1));
    cadre_tensor *value = rows(2, floats(0, 1, 2, 3, 4, 5, 6, 7));
    OK(cadre_parameter_assign(parameter, value));
    OK(cadre_parameter_assign_add(parameter, ones, NULL));
    OK(cadre_parameter_assign_add(parameter, ones, NULL));
    OK(cadre_parameter_assign_sub(parameter, ones, NULL));
    assert_parameter(parameter, "[[1 2] [3 4] [5 6] [7 8]]");
    cadre_tensor_release(value);
    cadre_tensor_release(ones);
}

/* Rows are changed by number, wherever they are. */
static void rows_are_changed(void **state)
{
    (void)state;
    cadre_parameter *parameter = table("scattered");
    cadre_tensor *ids = integers(3, 0);
    cadre_tensor *values = rows(2, floats(1, 2, 3, 4));
    OK(cadre_parameter_scatter_update(parameter, ids, values));
    OK(cadre_parameter_scatter_add(parameter, ids, values));
    OK(cadre_parameter_scatter_add(parameter, ids, values));
    OK(cadre_parameter_scatter_sub(parameter, ids, values));
    assert_parameter(parameter, "[[6 8] [0 0] [0 0] [2 4]]");
    cadre_tensor_release(values);
    cadre_tensor_release(ids);
}

/* And read: by number, as Python's slices, and one alone. */
static void rows_are_read(void **state)
{
    (void)state;
    cadre_parameter *parameter = table("read");
    cadre_tensor *value = rows(2, floats(0, 1, 2, 3, 4, 5, 6, 7));
    cadre_tensor *ids = integers(3, 0, 3);
    cadre_tensor *some;
    OK(cadre_parameter_assign(parameter, value));
    OK(cadre_parameter_gather(parameter, ids, &some, NULL));
    assert_given(some, "[[6 7] [0 1] [6 7]]");
    OK(cadre_parameter_slice(parameter, CADRE_SLICE_DEFAULT, CADRE_SLICE_DEFAULT, -2, &some));
    assert_given(some, "[[6 7] [2 3]]");
    OK(cadre_parameter_row(parameter, -1, &some));
    assert_given(some, "[6 7]");
    cadre_tensor_release(ids);
    cadre_tensor_release(value);
}

/* The servers' optimizer makes of a gradient what is new: of the whole, from plain memory with the
 * new values back, and of some rows. */
static void gradients_are_pushed(void **state)
{
    (void)state;
    cadre_parameter *parameter = table("pushed");
    cadre_tensor *gradient = rows(2, floats(2, 2, 2, 2, 2, 2, 2, 2));
    cadre_tensor *ids = integers(1);
    cadre_tensor *row = rows(2, floats(4, 8));
    float values[8];
    OK(cadre_parameter_update(parameter, gradient, NULL));
    assert_parameter(parameter, "[[-1 -1] [-1 -1] [-1 -1] [-1 -1]]");
    OK(cadre_parameter_push_pull(parameter, cadre_tensor_const_data(gradient), values, NULL));
    assert_true(values[0] == -2 && values[7] == -2);
    OK(cadre_parameter_update_rows(parameter, ids, row, NULL));
    assert_parameter(parameter, "[[-2 -2] [-4 -6] [-2 -2] [-2 -2]]");
    cadre_tensor_release(row);
    cadre_tensor_release(ids);
    cadre_tensor_release(gradient);
}

/* Steps that several take together: a step is done when so many have given their part of it. One
 * that will never be complete is begun anew. */
static void a_step_has_contributions(void **state)
{
    (void)state;
    cadre_parameter *parameter = table("together");
    cadre_tensor *gradient = rows(2, floats(2, 2, 2, 2, 2, 2, 2, 2));
    const cadre_push_options half = {.contributions = 2, .step = 0};
    float values[8];
    OK(cadre_parameter_update(parameter, gradient, &half));
    assert_parameter(parameter, "[[0 0] [0 0] [0 0] [0 0]]");
    OK(cadre_parameter_begin_step(parameter, 0)); /* who else would contribute has failed */
    OK(cadre_parameter_update(parameter, gradient, &half));
    OK(cadre_parameter_update(parameter, gradient, &half));
    OK(cadre_parameter_pull_step(parameter, 1, values)); /* after step 0 */
    assert_true(values[0] == -1 && values[7] == -1);     /* the mean, once */
    cadre_tensor_release(gradient);
}

/* --- closures --- */

/* On a worker: adds up its arguments, unless nobody wants that any more. */
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
        cmocka_unit_test(a_parameter_has_shards),
        cmocka_unit_test(it_is_assigned),
        cmocka_unit_test(rows_are_changed),
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(gradients_are_pushed),
        cmocka_unit_test(a_step_has_contributions),
        cmocka_unit_test(the_chief_schedules),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
