/* SPDX-License-Identifier: Apache-2.0
 * What several replicas of a worker write together, to variables on servers, and to the worker's
 * own. */
#include <stdatomic.h>
#include <string.h>

#include "cadre/assign.h"
#include "cadre/optimizer.h"
#include "cadre/program.h"
#include "cadre/scatter.h"
#include "cadre/served.h"
#include "tests/lib/test.h"
#include "tests/unit/ps_job/worker_calls.h"
#include "worker/library/runtime/closures/scheduler.h"
#include "worker/library/runtime/strategy/strategy.h"

#define ROWS 4

static const char *const names[] = {[CADRE_AGGREGATION_NONE] = "none",
    [CADRE_AGGREGATION_SUM] = "sum",
    [CADRE_AGGREGATION_MEAN] = "mean",
    [CADRE_AGGREGATION_ONLY_FIRST_REPLICA] = "first"};

/* --- on the chief --- */

/* Four rows of two elements, zeros, in shards on both servers. */
static int begin(void **state)
{
    static const int64_t dims[] = {ROWS, 2};
    static const cadre_partitioner two = {.kind = CADRE_PARTITIONER_FIXED, .shards = 2};
    static const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 1};
    cadre_optimizer *optimizer;
    if (worker_calls_begin(state) != 0 ||
        cadre_optimizer_create(chief, &sgd, &optimizer) != CADRE_OK) {
        return -1;
    }
    for (int i = CADRE_AGGREGATION_NONE; i <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA; i++) {
        cadre_variable *variable;
        const cadre_variable_options options = {
            .aggregation = (cadre_aggregation)i, .partitioner = &two};
        if (cadre_variable_create(chief, names[i], CADRE_F32, 2, dims, &options, &variable) !=
                CADRE_OK ||
            cadre_optimizer_build(optimizer, &variable, 1) != CADRE_OK) {
            return -1;
        }
    }
    cadre_optimizer_release(optimizer);
    return 0;
}

static void assert_value(const char *name, const float wanted[2 * ROWS])
{
    cadre_variable *variable;
    cadre_tensor *value = NULL;
    assert_int_equal(cadre_variable_find(chief, name, &variable), CADRE_OK);
    assert_int_equal(cadre_variable_value(NULL, variable, NULL, &value), CADRE_OK);
    const float *is = cadre_tensor_const_data(value);
    for (int i = 0; i < 2 * ROWS; i++) {
        if (is[i] != wanted[i]) {
            fail_msg("%s[%d] is %g instead of %g", name, i, (double)is[i], (double)wanted[i]);
        }
    }
    cadre_tensor_release(value);
}

static void assert_all(const char *name, float wanted)
{
    float values[2 * ROWS];
    for (int i = 0; i < 2 * ROWS; i++) {
        values[i] = wanted;
    }
    assert_value(name, values);
}

static void set_all(float value)
{
    for (int i = CADRE_AGGREGATION_NONE; i <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA; i++) {
        cadre_variable *variable;
        assert_int_equal(cadre_variable_find(chief, names[i], &variable), CADRE_OK);
        assert_int_equal(
            cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, value), CADRE_OK);
    }
}

static void assert_called(const char *function)
{
    if (call(function, NULL, 0, NULL) != CADRE_OK) {
        fail_msg("%s: %s", function, cadre_error_message());
    }
}

/* --- in replica functions --- */

/* A tensor of the variable's shape, all `value`. */
static cadre_status full(const cadre_variable *variable, float value, cadre_tensor **ret_tensor)
{
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, cadre_variable_dims(variable), ret_tensor));
    for (int i = 0; i < 2 * ROWS; i++) {
        ((float *)cadre_tensor_data(*ret_tensor))[i] = value;
    }
    return CADRE_OK;
}

/* The variable as the replica sees it at once. */
static cadre_status check_seen(cadre_replica *replica, cadre_variable *variable, float wanted)
{
    cadre_tensor *value = NULL;
    CADRE_TRY(cadre_variable_value(replica, variable, NULL, &value));
    float is = *(const float *)cadre_tensor_const_data(value);
    cadre_tensor_release(value);
    return is == wanted ? CADRE_OK
                        : cadre_fail(CADRE_INTERNAL, "replica %u sees %g instead of %g",
                              cadre_replica_id(replica), (double)is, (double)wanted);
}

/* Replica r assigns, adds and pushes r + 1. */
static cadre_status write_each(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    static const float wanted[] = {[CADRE_AGGREGATION_SUM] = 6,
        [CADRE_AGGREGATION_MEAN] = 2,
        [CADRE_AGGREGATION_ONLY_FIRST_REPLICA] = 1};
    for (int i = CADRE_AGGREGATION_SUM; i <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA; i++) {
        cadre_variable *variable;
        cadre_tensor *value = NULL;
        CADRE_TRY(cadre_variable_find(NULL, names[i], &variable));
        CADRE_TRY(full(variable, (float)cadre_replica_id(replica) + 1, &value));
        cadre_status status = cadre_variable_assign(replica, variable, CADRE_ASSIGN, value);
        status = status == CADRE_OK ? check_seen(replica, variable, wanted[i]) : status;
        status = status == CADRE_OK ? cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, value)
                                    : status;
        status = status == CADRE_OK ? check_seen(replica, variable, 2 * wanted[i]) : status;
        status = status == CADRE_OK ? cadre_variable_push(
                                          replica, variable, CADRE_ASSIGN_UPDATE, value, NULL, NULL)
                                    : status;
        status = status == CADRE_OK ? check_seen(replica, variable, wanted[i]) : status;
        cadre_tensor_release(value);
        CADRE_TRY(status);
    }
    return CADRE_OK;
}

/* Replica r changes row r, and row 3, by 1. */
static cadre_status write_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    static const float ones[] = {1, 1, 1, 1};
    static const int64_t dims[] = {2, 2};
    const int64_t ids[] = {cadre_replica_id(replica), 3};
    (void)inputs;
    (void)outputs;
    (void)user;
    for (int i = CADRE_AGGREGATION_SUM; i <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA; i++) {
        cadre_sparse value = {.rows = ROWS};
        cadre_variable *variable;
        CADRE_TRY(cadre_variable_find(NULL, names[i], &variable));
        CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 2, dims, ones, &value.values));
        cadre_status status = cadre_tensor_from_data(CADRE_I64, 1, dims, ids, &value.indices);
        status = status == CADRE_OK
                     ? cadre_variable_scatter(replica, variable, CADRE_SCATTER_ADD, &value)
                     : status;
        status = status == CADRE_OK ? cadre_variable_push(replica, variable, CADRE_ASSIGN_ADD,
                                          value.values, value.indices, NULL)
                                    : status;
        cadre_sparse_release(&value);
        CADRE_TRY(status);
    }
    return CADRE_OK;
}

static cadre_status write_numbers(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_variable *variable;
    (void)inputs;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_variable_find(NULL, "mean", &variable));
    CADRE_TRY(cadre_variable_assign_literal(replica, variable, CADRE_ASSIGN_ADD, 5));
    CADRE_TRY(cadre_variable_find(NULL, "first", &variable));
    return cadre_variable_assign_literal(replica, variable, CADRE_ASSIGN_ADD, 5);
}

/* What is refused: `user` says which variable, and how. */
struct mistake {
    const char *name;
    bool literal;
    bool rows;
};

static cadre_status write_wrongly(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct mistake *mistake = user;
    cadre_variable *variable;
    cadre_tensor *value = NULL;
    (void)inputs;
    (void)outputs;
    CADRE_TRY(cadre_variable_find(NULL, mistake->name, &variable));
    if (mistake->literal) {
        return cadre_variable_assign_literal(replica, variable, CADRE_ASSIGN, 1);
    }
    CADRE_TRY(full(variable, 1, &value));
    cadre_status status = cadre_variable_push(replica, variable, CADRE_ASSIGN_ADD, value, NULL,
        mistake->rows ? &(cadre_push_options){.into = value} : NULL);
    cadre_tensor_release(value);
    return status;
}

/* --- closures --- */

static cadre_status run_each(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_replica_function function = *(cadre_replica_function *)user;
    (void)closure;
    (void)outputs;
    return cadre_run(cadre_strategy_current(), function, NULL, NULL, 0, NULL);
}

static cadre_status run_wrongly(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    static struct mistake mistakes[] = {
        {"none", false, false}, {"sum", true, false}, {"sum", false, true}};
    static const char *const words[] = {
        "CADRE_AGGREGATION_SUM, _MEAN or", "it is not clear what their sum", "options->into"};
    (void)closure;
    (void)outputs;
    (void)user;
    for (int i = 0; i < 3; i++) {
        if (!expected_text(
                cadre_run(cadre_strategy_current(), write_wrongly, &mistakes[i], NULL, 0, NULL),
                CADRE_INVALID_ARGUMENT, words[i])) {
            return cadre_fail(CADRE_INTERNAL, "mistake %d was not refused", i);
        }
    }
    return CADRE_OK;
}

/* Adds 1 to all of "first" itself, behind a step that adds to it twice; loses its worker, once. */
static atomic_uint attempts;

static cadre_status add_and_drop(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    uint32_t index = 0;
    cadre_variable *variable;
    cadre_status status = run_each(closure, outputs, user);
    CADRE_TRY(status);
    CADRE_TRY(cadre_variable_find(NULL, "mean", &variable));
    CADRE_TRY(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN_ADD, 1));
    CADRE_TRY(cadre_worker_index(&index));
    if (atomic_fetch_add(&attempts, 1) == 0) {
        (void)scheduler_drop(chief->ps_job, index);
    }
    return CADRE_OK;
}

/* A variable of the worker's own, by name: made once, and found then. */
static cadre_status count_own(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    static const int64_t two[] = {2};
    const cadre_variable_options options = {.placement = CADRE_PLACEMENT_PER_WORKER,
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 10}};
    cadre_variable *own;
    cadre_variable *again;
    (void)closure;
    (void)user;
    CADRE_TRY(cadre_variable_create(NULL, "own", CADRE_F32, 0, NULL, &options, &own));
    CADRE_TRY(cadre_variable_find(NULL, "own", &again));
    if (again != own ||
        !expected_text(cadre_variable_create(NULL, "own", CADRE_F32, 1, two, &options, &again),
            CADRE_INVALID_ARGUMENT, "another type or shape") ||
        !expected_text(cadre_variable_find(NULL, "nothing", &again), CADRE_NOT_FOUND, "'sum'")) {
        return cadre_fail(CADRE_INTERNAL, "it is not the worker's one");
    }
    CADRE_TRY(cadre_variable_assign_literal(NULL, own, CADRE_ASSIGN_ADD, 1));
    return cadre_tensor_from_f32(*(const float *)cadre_variable_read(NULL, own), &outputs[0]);
}

/* --- tests --- */

static void all_replicas_write_once(void **state)
{
    (void)state;
    set_all(0);
    assert_called("write_each");
    assert_all("sum", 6);
    assert_all("mean", 2);
    assert_all("first", 1);
    assert_all("none", 0);
}

static void rows_are_those_of_all(void **state)
{
    (void)state;
    static const float sum[] = {2, 2, 2, 2, 2, 2, 6, 6};
    static const float first[] = {2, 2, 0, 0, 0, 0, 2, 2};
    float third[2 * ROWS];
    for (int i = 0; i < 2 * ROWS; i++) {
        float part = (float)1 / 3;
        third[i] = i < 6 ? part + part : part + part + part + part + part + part;
    }
    set_all(0);
    assert_called("write_rows");
    assert_value("sum", sum);
    assert_value("first", first);
    assert_value("mean", third);
}

static void numbers_count_once(void **state)
{
    (void)state;
    set_all(1);
    assert_called("write_numbers");
    assert_all("mean", 6);
    assert_all("first", 6);
}

static void what_is_not_clear_is_refused(void **state)
{
    (void)state;
    set_all(0);
    assert_called("write_wrongly");
    assert_all("none", 0);
    assert_all("sum", 0);
    assert_called("write_each");
}

static void a_closure_that_is_run_again_writes_once(void **state)
{
    (void)state;
    set_all(0);
    atomic_store(&attempts, 0);
    assert_called("add_and_drop");
    assert_int_equal(atomic_load(&attempts), 2);
    assert_all("mean", 6); /* 5 of the step, 1 behind it */
    assert_all("first", 5);
}

static void a_worker_has_variables_of_its_own(void **state)
{
    (void)state;
    enum { TIMES = 10 };
    float most = 0;
    cadre_variable *variable;
    const cadre_variable_options options = {.placement = CADRE_PLACEMENT_PER_WORKER};
    for (int i = 0; i < TIMES; i++) {
        float count = call_f32("count_own");
        most = count > most ? count : most;
    }
    assert_true(most >= 10 + (float)TIMES / WORKERS && most <= 10 + TIMES);
    assert_true(
        expected_text(cadre_variable_create(chief, "own", CADRE_F32, 0, NULL, &options, &variable),
            CADRE_FAILED_PRECONDITION, "functions that a worker runs"));
}

int main(void)
{
    static cadre_replica_function each = write_each;
    static cadre_replica_function rows = write_rows;
    static cadre_replica_function numbers = write_numbers;
    if (!worker_calls_init()) {
        return 1;
    }
    CADRE_CHECK(cadre_function_register("write_each", run_each, &each));
    CADRE_CHECK(cadre_function_register("write_rows", run_each, &rows));
    CADRE_CHECK(cadre_function_register("write_numbers", run_each, &numbers));
    CADRE_CHECK(cadre_function_register("write_wrongly", run_wrongly, NULL));
    CADRE_CHECK(cadre_function_register("add_and_drop", add_and_drop, &numbers));
    CADRE_CHECK(cadre_function_register("count_own", count_own, NULL));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_replicas_write_once),
        cmocka_unit_test(rows_are_those_of_all),
        cmocka_unit_test(numbers_count_once),
        cmocka_unit_test(what_is_not_clear_is_refused),
        cmocka_unit_test(a_closure_that_is_run_again_writes_once),
        cmocka_unit_test(a_worker_has_variables_of_its_own),
    };
    return cmocka_run_group_tests(tests, begin, worker_calls_end);
}
