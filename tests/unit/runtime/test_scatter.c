/* SPDX-License-Identifier: Apache-2.0
 * Scatter: each operation under each aggregation against a model in plain loops, in each context,
 * by hand and in jobs of two tasks; and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "tests/lib/changer.h"
#include "training.h"

#define ROWS  4
#define WIDTH 2
#define OPS   7

static const char *self;

/* --- the model --- */

/* Replica r names r + 1 rows, the last of them twice where there are more than rows. */
static uint32_t entries_of(uint32_t id)
{
    return id + 1;
}

static int64_t index_of(uint32_t id, uint32_t i)
{
    return (id + i) % ROWS;
}

static double value_of(uint32_t id, uint32_t i, int column)
{
    return column == 0 ? id + i + 2.0 : 0.5 + id;
}

static double initial(int row, int column)
{
    return 3.0 * row + column + 1;
}

static double applied(int op, double a, double b)
{
    switch (op) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    case 3:
        return a / b;
    case 4:
        return fmin(a, b);
    case 5:
        return fmax(a, b);
    default:
        return b;
    }
}

static void apply(double state[ROWS][WIDTH], int op, uint32_t id, double divided_by)
{
    for (uint32_t i = 0; i < entries_of(id); i++) {
        for (int column = 0; column < WIDTH; column++) {
            double *at = &state[index_of(id, i)][column];
            *at = applied(op, *at, value_of(id, i, column) / divided_by);
        }
    }
}

/* What replica `id` holds afterwards. */
static void wanted(
    double state[ROWS][WIDTH], cadre_aggregation aggregation, int op, uint32_t id, uint32_t n)
{
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < WIDTH; column++) {
            state[row][column] = initial(row, column);
        }
    }
    bool one = aggregation == CADRE_AGGREGATION_NONE ||
               aggregation == CADRE_AGGREGATION_ONLY_FIRST_REPLICA;
    uint32_t first = aggregation == CADRE_AGGREGATION_NONE ? id : 0;
    for (uint32_t r = first; r < (one ? first + 1 : n); r++) {
        apply(state, op, r, aggregation == CADRE_AGGREGATION_MEAN ? n : 1);
    }
}

/* --- the program --- */

static cadre_status make_sparse(uint32_t id, int64_t rows, cadre_sparse *ret_sparse)
{
    const int64_t dims[] = {entries_of(id), WIDTH};
    *ret_sparse = (cadre_sparse){.rows = rows};
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &ret_sparse->values));
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, dims, &ret_sparse->indices));
    float *values = cadre_tensor_data(ret_sparse->values);
    int64_t *indices = cadre_tensor_data(ret_sparse->indices);
    for (uint32_t i = 0; i < entries_of(id); i++) {
        indices[i] = index_of(id, i);
        for (int column = 0; column < WIDTH; column++) {
            values[i * WIDTH + (uint32_t)column] = (float)value_of(id, i, column);
        }
    }
    return CADRE_OK;
}

static cadre_status fill(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)count;
    (void)dtype;
    (void)user;
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < WIDTH; column++) {
            ((float *)values)[row * WIDTH + column] = (float)initial(row, column);
        }
    }
    return CADRE_OK;
}

static cadre_status create(cadre_strategy *strategy, const char *name,
    cadre_synchronization synchronization, cadre_aggregation aggregation,
    cadre_variable **ret_variable)
{
    const int64_t dims[] = {ROWS, WIDTH};
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = fill},
        .synchronization = synchronization,
        .aggregation = aggregation};
    return cadre_variable_create(strategy, name, CADRE_F32, 2, dims, &options, ret_variable);
}

/* One scatter, and what came of it. */
struct scattering {
    cadre_variable *variable;
    cadre_aggregation aggregation;
    int op;
    int64_t rows;
};

static cadre_status compare(const struct scattering *scattering, cadre_aggregation aggregation,
    uint32_t id, uint32_t n, const float *is)
{
    double state[ROWS][WIDTH];
    wanted(state, aggregation, scattering->op, id, n);
    for (int at = 0; at < ROWS * WIDTH; at++) {
        double to_be = state[at / WIDTH][at % WIDTH];
        if (fabs((double)is[at] - to_be) > 1e-4 * (1 + fabs(to_be))) {
            return cadre_fail(CADRE_INTERNAL,
                "aggregation %d, operation %d, replica %u of %u: element %d is %g, not %g",
                (int)scattering->aggregation, scattering->op, id, n, at, (double)is[at], to_be);
        }
    }
    return CADRE_OK;
}

static cadre_status scatter_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct scattering *scattering = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_sparse sparse;
    CADRE_TRY(make_sparse(id, scattering->rows, &sparse));
    cadre_status status = cadre_variable_scatter(
        replica, scattering->variable, (cadre_scatter)scattering->op, &sparse);
    cadre_sparse_release(&sparse);
    CADRE_TRY(status);
    return compare(scattering, scattering->aggregation, id, cadre_replica_count(replica),
        cadre_variable_read(replica, scattering->variable));
}

/* Every operation and aggregation that goes together. */
static cadre_status all_in_replica_context(cadre_strategy *strategy)
{
    struct scattering all[OPS * 4];
    size_t count = 0;
    bool central = false;
    for (int op = 0; op < OPS; op++) {
        for (int aggregation = 0; aggregation < 4; aggregation++) {
            bool sums =
                aggregation == CADRE_AGGREGATION_SUM || aggregation == CADRE_AGGREGATION_MEAN;
            if (op < 4 || !sums) {
                char name[32];
                struct scattering *scattering = &all[count];
                snprintf(name, sizeof name, "v%zu", count++);
                *scattering = (struct scattering){.aggregation = (cadre_aggregation)aggregation,
                    .op = op,
                    .rows = count % 2 == 0 ? ROWS : CADRE_DIMENSION_ANY};
                CADRE_TRY(create(strategy, name, CADRE_SYNC_AUTO, scattering->aggregation,
                    &scattering->variable));
                central = cadre_variable_kind(scattering->variable) == CADRE_VARIABLE_AGGREGATING;
            }
        }
    }
    bool several = cadre_strategy_num_replicas_in_sync(strategy) > 1;
    for (size_t i = 0; i < count; i++) {
        bool refused = central && several && all[i].aggregation == CADRE_AGGREGATION_NONE;
        cadre_status status = cadre_run(strategy, scatter_own, &all[i], NULL, 0, NULL);
        if (status != (refused ? CADRE_INVALID_ARGUMENT : CADRE_OK)) {
            return cadre_fail(CADRE_INTERNAL, "%s", cadre_error_message());
        }
    }
    return CADRE_OK;
}

/* --- by hand --- */

static void each_operation_is_as_its_model(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n *= 2) {
        cadre_strategy *strategy = training_strategy(n);
        assert_public_ok(all_in_replica_context(strategy));
        cadre_strategy_release(strategy);
    }
}

static void one_storage_is_as_its_model(void **state)
{
    (void)state;
    static const char *const devices[] = {"CPU:0", "CPU:1", "CPU:2"};
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_central_storage(devices, 3, NULL, &strategy));
    cadre_show_progress(strategy, false);
    assert_public_ok(all_in_replica_context(strategy));
    cadre_strategy_release(strategy);
}

static void tasks_are_as_the_model(void **state)
{
    (void)state;
    job_must_succeed(self, "scatter", 2, 1);
    job_must_succeed(self, "scatter", 2, 2);
}

static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct scattering *scattering = user;
    return compare(scattering, CADRE_AGGREGATION_ONLY_FIRST_REPLICA, 0, 1,
        cadre_variable_read(replica, scattering->variable));
}

/* To every component, whatever the aggregation, before the first step and after it. */
static void in_cross_replica_context_nothing_is_combined(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        cadre_strategy *strategy = training_strategy(3);
        struct scattering scatterings[OPS];
        for (int op = 0; op < OPS; op++) {
            char name[32];
            snprintf(name, sizeof name, "v%d", op);
            scatterings[op] = (struct scattering){.op = op,
                .rows = ROWS,
                .aggregation = op < 4 ? CADRE_AGGREGATION_MEAN : CADRE_AGGREGATION_NONE};
            assert_public_ok(create(strategy, name, CADRE_SYNC_AUTO, scatterings[op].aggregation,
                &scatterings[op].variable));
        }
        cadre_per_replica *values = NULL;
        if (later == 1) {
            cadre_tensor *scalars[3];
            for (int i = 0; i < 3; i++) {
                assert_public_ok(cadre_tensor_from_f32(1, &scalars[i]));
            }
            values = training_values(strategy, scalars);
        }
        for (int op = 0; op < OPS; op++) {
            cadre_sparse sparse;
            assert_public_ok(make_sparse(0, ROWS, &sparse));
            assert_public_ok(
                cadre_variable_scatter(NULL, scatterings[op].variable, (cadre_scatter)op, &sparse));
            cadre_sparse_release(&sparse);
            assert_public_ok(cadre_run(strategy, read_own, &scatterings[op], NULL, 0, NULL));
        }
        assert_true(values != NULL || later == 0);
        cadre_strategy_release(strategy);
    }
}

static cadre_status scatter_component(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)ret_output;
    (void)user;
    cadre_sparse sparse = {.values = inputs[0], .indices = inputs[1], .rows = ROWS};
    return cadre_variable_scatter(NULL, variable, CADRE_SCATTER_ADD, &sparse);
}

static cadre_status sparse_of(const cadre_value_context *context, cadre_element *value, void *user)
{
    (void)user;
    cadre_sparse sparse;
    CADRE_TRY(make_sparse(context->replica_id_in_sync_group, ROWS, &sparse));
    value->tensors[0] = sparse.values;
    value->tensors[1] = sparse.indices;
    value->count = 2;
    return CADRE_OK;
}

static cadre_status check_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct scattering *scattering = user;
    return compare(scattering, CADRE_AGGREGATION_NONE, cadre_replica_id(replica), 3,
        cadre_variable_read(replica, scattering->variable));
}

static void in_an_update_one_component_is_changed(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    struct scattering scattering = {.aggregation = CADRE_AGGREGATION_SUM};
    cadre_per_replica *values;
    assert_public_ok(
        create(strategy, "v", CADRE_SYNC_AUTO, CADRE_AGGREGATION_SUM, &scattering.variable));
    assert_public_ok(cadre_values_from_function(strategy, sparse_of, NULL, &values));
    assert_public_ok(cadre_variable_update(
        strategy, scattering.variable, scatter_component, NULL, values, NULL));
    assert_public_ok(cadre_run(strategy, check_own, &scattering, NULL, 0, NULL));
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
}

/* --- types --- */

static void integers_wrap_around(void **state)
{
    (void)state;
    const int64_t three = 3;
    const int64_t at[] = {0, 1, 2};
    const int8_t values[] = {127, -128, 5};
    const int8_t ones[] = {1, -1, -1};
    static const int8_t sums[] = {-128, 127, 4};
    static const int8_t quotients[] = {127, -128, -5};
    for (int op = 0; op < 4; op += 3) {
        cadre_variable *variable;
        cadre_sparse sparse = {.rows = 3};
        cadre_tensor *first = NULL;
        assert_public_ok(
            cadre_variable_create(NULL, "bytes", CADRE_I8, 1, &three, NULL, &variable));
        assert_public_ok(cadre_tensor_from_data(CADRE_I8, 1, &three, values, &first));
        assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, first));
        assert_public_ok(cadre_tensor_from_data(CADRE_I8, 1, &three, ones, &sparse.values));
        assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, &three, at, &sparse.indices));
        assert_public_ok(cadre_variable_scatter(NULL, variable, (cadre_scatter)op, &sparse));
        assert_memory_equal(
            cadre_variable_read(NULL, variable), op == 0 ? sums : quotients, sizeof sums);
        cadre_sparse_release(&sparse);
        cadre_tensor_release(first);
        cadre_variable_release(variable);
    }
}

static void each_type_can_be_scattered(void **state)
{
    (void)state;
    static const cadre_dtype types[] = {CADRE_F64, CADRE_F32, CADRE_F16, CADRE_BF16, CADRE_I64,
        CADRE_I32, CADRE_I16, CADRE_I8, CADRE_U32, CADRE_U16, CADRE_U8};
    static const double results[OPS] = {14, 10, 24, 6, 2, 12, 2}; /* 12 and 2 */
    const int64_t one = 1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (int op = 0; op < OPS; op++) {
            cadre_variable *variables[3];
            cadre_sparse sparse = {.rows = 1};
            static const double numbers[2] = {12, 2};
            for (int k = 0; k < 3; k++) {
                assert_public_ok(
                    cadre_variable_create(NULL, "number", types[i], 1, &one, NULL, &variables[k]));
                assert_public_ok(cadre_variable_assign_literal(
                    NULL, variables[k], CADRE_ASSIGN, k == 2 ? results[op] : numbers[k]));
            }
            assert_public_ok(cadre_tensor_from_data(
                types[i], 1, &one, cadre_variable_read(NULL, variables[1]), &sparse.values));
            assert_public_ok(cadre_tensor_create(CADRE_I64, 1, &one, &sparse.indices));
            assert_public_ok(
                cadre_variable_scatter(NULL, variables[0], (cadre_scatter)op, &sparse));
            assert_memory_equal(cadre_variable_read(NULL, variables[0]),
                cadre_variable_read(NULL, variables[2]), cadre_dtype_bytes(types[i]));
            cadre_sparse_release(&sparse);
            for (int k = 0; k < 3; k++) {
                cadre_variable_release(variables[k]);
            }
        }
    }
}

/* --- memory that changes during the call --- */

enum { ENTRIES = 20000, CALLS = 200 };

struct division {
    cadre_variable *variable;
    cadre_sparse by;
};

static cadre_status divide_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct division *division = user;
    return cadre_variable_scatter(replica, division->variable, CADRE_SCATTER_DIV, &division->by);
}

/* Each call is made with what it has read once: it is done, or refused. `strategy` NULL: of a
 * regular variable. */
static void divide_while_changing(
    cadre_strategy *strategy, struct division *division, int64_t *number, int64_t bad)
{
    struct changer changer;
    changer_start(&changer, number, 1, bad);
    for (int i = 0; i < CALLS; i++) {
        cadre_status status =
            strategy == NULL
                ? cadre_variable_scatter(NULL, division->variable, CADRE_SCATTER_DIV, &division->by)
                : cadre_run(strategy, divide_own, division, NULL, 0, NULL);
        assert_true(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT);
    }
    changer_stop(&changer);
}

static void what_changes_during_a_call_hurts_none(void **state)
{
    (void)state;
    const int64_t rows = 2;
    const int64_t entries = ENTRIES;
    cadre_strategy *const strategies[] = {NULL, training_strategy(1)};
    struct division division = {.by = {.rows = rows}};
    assert_public_ok(cadre_tensor_create(CADRE_I64, 1, &entries, &division.by.values));
    assert_public_ok(cadre_tensor_create(CADRE_I64, 1, &entries, &division.by.indices));
    int64_t *values = cadre_tensor_data(division.by.values);
    int64_t *indices = cadre_tensor_data(division.by.indices);
    for (int64_t i = 0; i < entries; i++) {
        values[i] = 1;
    }
    for (int i = 0; i < 2; i++) {
        assert_public_ok(cadre_variable_create(
            strategies[i], "v", CADRE_I64, 1, &rows, NULL, &division.variable));
        divide_while_changing(strategies[i], &division, &indices[entries - 1], 1 << 30);
        divide_while_changing(strategies[i], &division, &values[entries - 1], 0);
        if (strategies[i] == NULL) {
            cadre_variable_release(division.variable);
        }
    }
    cadre_sparse_release(&division.by);
    cadre_strategy_release(strategies[1]);
}

/* --- what is refused --- */

static void variables_that_cannot_be_scattered_are_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *on_read;
    cadre_variable *sum;
    cadre_variable *scalar;
    cadre_sparse sparse;
    assert_public_ok(create(strategy, "read", CADRE_SYNC_ON_READ, CADRE_AGGREGATION_SUM, &on_read));
    assert_public_ok(create(strategy, "sum", CADRE_SYNC_AUTO, CADRE_AGGREGATION_SUM, &sum));
    assert_public_ok(cadre_variable_create(strategy, "scalar", CADRE_F32, 0, NULL, NULL, &scalar));
    assert_public_ok(make_sparse(0, ROWS, &sparse));
    for (int op = 0; op < OPS; op++) {
        assert_public_error(cadre_variable_scatter(NULL, on_read, (cadre_scatter)op, &sparse),
            CADRE_UNIMPLEMENTED, "combined when read");
        if (op >= 4) {
            assert_public_error(cadre_variable_scatter(NULL, sum, (cadre_scatter)op, &sparse),
                CADRE_UNIMPLEMENTED, "'sum'");
        }
    }
    assert_public_error(cadre_variable_scatter(NULL, scalar, CADRE_SCATTER_ADD, &sparse),
        CADRE_INVALID_ARGUMENT, "'scalar'");
    assert_public_error(cadre_variable_scatter(NULL, sum, CADRE_SCATTER_ADD, NULL),
        CADRE_INVALID_ARGUMENT, "'value'");
    sparse.rows = ROWS + 1;
    assert_public_error(cadre_variable_scatter(NULL, sum, CADRE_SCATTER_ADD, &sparse),
        CADRE_INVALID_ARGUMENT, "5 rows");
    sparse.rows = ROWS;
    ((int64_t *)cadre_tensor_data(sparse.indices))[0] = ROWS;
    assert_public_error(cadre_variable_scatter(NULL, sum, CADRE_SCATTER_ADD, &sparse),
        CADRE_INVALID_ARGUMENT, "is 4, and variable 'sum' has 4 rows");
    cadre_tensor_release(sparse.indices);
    sparse.indices = NULL;
    assert_public_error(cadre_variable_scatter(NULL, sum, CADRE_SCATTER_ADD, &sparse),
        CADRE_INVALID_ARGUMENT, "indices");
    cadre_sparse_release(&sparse);
    cadre_strategy_release(strategy);
}

struct seen {
    cadre_variable *variable;
    cadre_status status[4];
};

/* The last replica names a row that there is not, below 0 or above. */
static cadre_status out_of_range(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct seen *seen = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_sparse sparse;
    CADRE_TRY(make_sparse(id, ROWS, &sparse));
    if (id == cadre_replica_count(replica) - 1) {
        *(int64_t *)cadre_tensor_data(sparse.indices) = -3;
    }
    seen->status[cadre_replica_local_id(replica)] =
        cadre_variable_scatter(replica, seen->variable, CADRE_SCATTER_ADD, &sparse);
    cadre_sparse_release(&sparse);
    return CADRE_OK;
}

static void index_out_of_range_is_reported_to_all_replicas(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(4);
    struct seen seen = {0};
    assert_public_ok(create(strategy, "v", CADRE_SYNC_AUTO, CADRE_AGGREGATION_SUM, &seen.variable));
    assert_public_error(cadre_run(strategy, out_of_range, &seen, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "is -3, and variable 'v' has 4 rows");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(seen.status[i], CADRE_INVALID_ARGUMENT);
    }
    assert_true(*(const float *)cadre_variable_read(NULL, seen.variable) == (float)initial(0, 0));
    cadre_strategy_release(strategy);
    job_must_fail(self, "range", 2, 1, "is -3, and variable 'v' has 4 rows");
}

static void integers_are_not_divided_by_zero(void **state)
{
    (void)state;
    const int64_t one = 1;
    cadre_variable *variable;
    cadre_sparse sparse = {.rows = 1};
    assert_public_ok(cadre_variable_create(NULL, "i", CADRE_I32, 1, &one, NULL, &variable));
    assert_public_ok(cadre_tensor_create(CADRE_I32, 1, &one, &sparse.values));
    assert_public_ok(cadre_tensor_create(CADRE_I64, 1, &one, &sparse.indices));
    assert_public_error(cadre_variable_scatter(NULL, variable, CADRE_SCATTER_DIV, &sparse),
        CADRE_INVALID_ARGUMENT, "divided");
    cadre_sparse_release(&sparse);
    cadre_variable_release(variable);
}

/* --- as a task --- */

static int task(const char *what)
{
    cadre_strategy *strategy = job_strategy();
    struct seen seen = {0};
    if (strcmp(what, "scatter") == 0) {
        CADRE_CHECK(all_in_replica_context(strategy));
        return cadre_finish(strategy);
    }
    CADRE_CHECK(create(strategy, "v", CADRE_SYNC_AUTO, CADRE_AGGREGATION_SUM, &seen.variable));
    cadre_status status = cadre_run(strategy, out_of_range, &seen, NULL, 0, NULL);
    if (status != CADRE_INVALID_ARGUMENT || seen.status[0] != CADRE_INVALID_ARGUMENT) {
        return cadre_finish(strategy); /* not as it should be: the job succeeds */
    }
    CADRE_CHECK(status);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_is_as_its_model),
        cmocka_unit_test(one_storage_is_as_its_model),
        cmocka_unit_test(tasks_are_as_the_model),
        cmocka_unit_test(in_cross_replica_context_nothing_is_combined),
        cmocka_unit_test(in_an_update_one_component_is_changed),
        cmocka_unit_test(integers_wrap_around),
        cmocka_unit_test(each_type_can_be_scattered),
        cmocka_unit_test(what_changes_during_a_call_hurts_none),
        cmocka_unit_test(variables_that_cannot_be_scattered_are_named),
        cmocka_unit_test(index_out_of_range_is_reported_to_all_replicas),
        cmocka_unit_test(integers_are_not_divided_by_zero),
    };
    setenv("CADRE_VERIFY_STATE", "off", 1); /* components are meant to differ here */
    self = argv[0];
    if (argc > 1 && (strcmp(argv[1], "scatter") == 0 || strcmp(argv[1], "range") == 0)) {
        return task(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
