/* SPDX-License-Identifier: Apache-2.0
 * Each public function that takes a variable, given one on servers: it does what it says, or is
 * refused with a sentence that names the call and what to use instead. On the chief, in a replica
 * function, in a closure, in an evaluator. (every_function.py looks whether one is left out.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_strategy.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"

#define ROWS 4

/* One context, with what is needed for the calls. */
struct trial {
    cadre_strategy *strategy;
    cadre_replica *replica; /* of a replica function; else NULL */
    cadre_variable *variable;
    cadre_tensor *whole;
    cadre_tensor *ids;
    cadre_tensor *rows;
    bool writes; /* an evaluator may not */
};

static void refused(cadre_status status, const char *function)
{
    const char *text = cadre_error_message();
    if (status != CADRE_FAILED_PRECONDITION || strstr(text, function) == NULL ||
        strstr(text, "use ") == NULL) {
        fail_msg("%s gave %s: %s", function, cadre_status_name(status), text);
    }
}

static void written(const struct trial *trial, cadre_status status)
{
    if (trial->writes) {
        assert_public_ok(status);
    } else {
        assert_public_error(status, CADRE_FAILED_PRECONDITION, "evaluator");
    }
}

/* --- what it is --- */

static void ask(const struct trial *trial)
{
    cadre_variable *variable = trial->variable;
    cadre_variable *found;
    char name[64];
    int64_t first;
    int64_t rows;
    assert_string_equal(cadre_variable_name(variable), "w");
    assert_int_equal(cadre_variable_dtype(variable), CADRE_F32);
    assert_int_equal(cadre_variable_rank(variable), 2);
    assert_int_equal(cadre_variable_dims(variable)[0], ROWS);
    assert_int_equal(cadre_variable_count(variable), 2 * ROWS);
    assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_SERVED);
    assert_true(cadre_variable_created_in_scope(trial->strategy, variable));
    assert_false(cadre_variable_created_in_scope(NULL, variable));
    assert_int_equal(cadre_variable_components(variable), 2);
    assert_int_equal(cadre_variable_component_name(variable, 1, name, sizeof name), 8);
    assert_string_equal(name, "w/part_1");
    assert_int_equal(cadre_variable_component_name(variable, 2, name, sizeof name), 0);
    assert_string_equal(
        cadre_variable_device(variable, 1), "/job:ps/replica:0/task:1/device:CPU:0");
    assert_null(cadre_variable_device(variable, 2));
    assert_public_ok(cadre_variable_component_rows(variable, 1, &first, &rows));
    assert_true(first == 2 && rows == 2);
    assert_public_ok(cadre_variable_find(NULL, "w", &found));
    assert_ptr_equal(found, variable);
    cadre_variable_release(variable); /* the strategy's: nothing */
    assert_string_equal(cadre_variable_name(variable), "w");
}

/* --- reading --- */

static void print(const struct trial *trial)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_public_ok(cadre_variable_print(trial->variable, file));
    fclose(file);
    assert_non_null(strstr(text, "ShardedVariable:{"));
    assert_non_null(strstr(text, "'w/part_1:0' shape=(2, 2) dtype=float32"));
    free(text);
}

static void read_it(const struct trial *trial)
{
    cadre_tensor *value;
    cadre_per_replica *values;
    assert_public_ok(cadre_variable_value(trial->replica, trial->variable, NULL, &value));
    assert_int_equal(cadre_tensor_count(value), 2 * ROWS);
    cadre_tensor_release(value);
    assert_public_ok(
        cadre_variable_gather(trial->replica, trial->variable, trial->ids, NULL, &value));
    assert_int_equal(cadre_tensor_dim(value, 0), 2);
    cadre_tensor_release(value);
    assert_public_ok(
        cadre_variable_slice(trial->replica, trial->variable, -1, CADRE_SLICE_ROW, 1, &value));
    assert_int_equal(cadre_tensor_rank(value), 1);
    cadre_tensor_release(value);
    assert_public_ok(cadre_variable_local_results(trial->variable, &values));
    assert_int_equal(cadre_tensor_count(cadre_local_results(values, 0)[0]), 2 * ROWS);
    cadre_per_replica_release(values);
    print(trial);
}

/* --- writing --- */

static void write_it(const struct trial *trial)
{
    cadre_replica *replica = trial->replica;
    cadre_variable *variable = trial->variable;
    const cadre_sparse sparse = {
        .values = trial->rows, .indices = trial->ids, .rows = CADRE_DIMENSION_ANY};
    const cadre_tensor *whole = trial->whole;
    written(trial, cadre_variable_assign(replica, variable, CADRE_ASSIGN, whole));
    written(trial, cadre_variable_assign_literal(replica, variable, CADRE_ASSIGN_ADD, 1));
    written(trial, cadre_variable_scatter(replica, variable, CADRE_SCATTER_UPDATE, &sparse));
    written(trial, cadre_variable_push(replica, variable, CADRE_ASSIGN_SUB, whole, NULL, NULL));
    written(trial,
        cadre_variable_push(replica, variable, CADRE_ASSIGN_ADD, trial->rows, trial->ids, NULL));
    for (cadre_scatter how = CADRE_SCATTER_MUL; how <= CADRE_SCATTER_MAX; how++) {
        refused(cadre_variable_scatter(replica, variable, how, &sparse), "cadre_variable_scatter");
    }
    assert_public_error(
        cadre_variable_push(replica, variable, CADRE_ASSIGN_UPDATE, whole, NULL, NULL),
        CADRE_FAILED_PRECONDITION,
        trial->writes ? "has no optimizer" : "an evaluator pushes nothing");
}

/* An optimizer on the chief; in closures: tests/unit/optimizers/test_served.c. */
static void optimize(const struct trial *trial)
{
    static const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5};
    cadre_variable *variable = trial->variable;
    cadre_variable *slot;
    cadre_optimizer *optimizer;
    cadre_tensor *gradient;
    assert_public_ok(cadre_variable_value(NULL, variable, NULL, &gradient));
    assert_public_ok(cadre_optimizer_create(trial->strategy, &sgd, &optimizer));
    assert_public_ok(cadre_optimizer_build(optimizer, &variable, 1));
    assert_public_ok(cadre_optimizer_slot(optimizer, variable, "updates", &slot));
    assert_public_error(cadre_variable_assign_literal(NULL, slot, CADRE_ASSIGN, 1),
        CADRE_FAILED_PRECONDITION, "use cadre_optimizer_apply");
    assert_public_ok(cadre_optimizer_apply(NULL, optimizer, &gradient, &variable, 1, NULL));
    assert_int_equal(cadre_optimizer_iterations(optimizer), 1);
    cadre_tensor_release(gradient);
    cadre_optimizer_release(optimizer);
}

/* --- what it cannot do --- */

static cadre_status never(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)variable;
    (void)inputs;
    (void)ret_output;
    (void)user;
    fail_msg("a function was called for a component that is not here");
    return CADRE_OK;
}

static void reduce_to_it(const struct trial *trial)
{
    const cadre_destinations there = {.variable = trial->variable};
    cadre_per_replica *values;
    cadre_per_replica *reduced;
    if (trial->replica != NULL) {
        return; /* these are of cross-replica context */
    }
    assert_public_ok(cadre_variable_local_results(trial->variable, &values));
    const cadre_per_replica *one = values;
    refused(cadre_reduce_to(trial->strategy, CADRE_SUM, values, &there, &reduced),
        "cadre_destinations");
    refused(cadre_batch_reduce_to(trial->strategy, CADRE_SUM, &one, &there, 1, &reduced),
        "cadre_destinations");
    refused(
        cadre_broadcast_to(trial->strategy, trial->whole, &there, &reduced), "cadre_destinations");
    cadre_per_replica_release(values);
}

static void misuse(const struct trial *trial)
{
    cadre_variable *variable = trial->variable;
    cadre_per_replica *values;
    assert_public_ok(cadre_variable_local_results(variable, &values));
    assert_null(cadre_variable_read(trial->replica, variable));
    refused(CADRE_FAILED_PRECONDITION, "cadre_variable_read");
    assert_null(cadre_variable_write(trial->replica, variable));
    refused(CADRE_FAILED_PRECONDITION, "cadre_variable_write");
    refused(cadre_variable_assign_values(variable, CADRE_ASSIGN, values),
        "cadre_variable_assign_values");
    refused(cadre_variable_update(trial->strategy, variable, never, NULL, NULL, NULL),
        "cadre_variable_update");
    cadre_per_replica_release(values);
    reduce_to_it(trial);
}

/* --- in each context --- */

static void try_all(struct trial *trial)
{
    const int64_t dims[] = {2, 2};
    const float some[] = {1, 2, 3, 4};
    trial->ids = memory_ids((const int64_t[]){3, 0}, 2);
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 2, dims, some, &trial->rows));
    ask(trial);
    assert_public_ok(cadre_variable_value(NULL, trial->variable, NULL, &trial->whole));
    read_it(trial);
    write_it(trial);
    misuse(trial);
    cadre_tensor_release(trial->whole);
    cadre_tensor_release(trial->rows);
    cadre_tensor_release(trial->ids);
}

static cadre_variable *make(cadre_strategy *strategy)
{
    static const int64_t dims[] = {ROWS, 2};
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, NULL, &variable));
    return variable;
}

static cadre_strategy *begin(void)
{
    const cadre_partitioner two = {.kind = CADRE_PARTITIONER_FIXED, .shards = 2};
    return fake_begin(2, &two);
}

static cadre_status in_a_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct trial *trial = user;
    (void)inputs;
    (void)outputs;
    trial->replica = replica;
    try_all(trial);
    return CADRE_OK;
}

static void on_the_chief(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin();
    struct trial trial = {.strategy = strategy, .variable = make(strategy), .writes = true};
    try_all(&trial);
    optimize(&trial);
    assert_public_ok(cadre_variable_begin_step(trial.variable, 3));
    fake_end(strategy);
}

/* A step in which a program did what is refused does not count; what was pushed stays. */
static void in_a_replica_function(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin();
    struct trial trial = {.strategy = strategy, .variable = make(strategy), .writes = true};
    uint64_t keys = fake_counts().keys;
    assert_public_error(cadre_run(strategy, in_a_step, &trial, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "cadre_variable_write");
    assert_int_equal(fake_counts().keys, keys + 6); /* the servers refuse one of them */
    fake_end(strategy);
}

static void in_a_closure(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin();
    make(strategy);
    fake_become(ROLE_WORKER);
    struct trial trial = {.strategy = strategy, .variable = make(NULL), .writes = true};
    try_all(&trial);
    assert_public_error(cadre_variable_begin_step(trial.variable, 3), CADRE_FAILED_PRECONDITION,
        "the chief begins steps");
    fake_end(strategy);
}

static void in_an_evaluator(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin();
    struct trial trial = {.strategy = strategy};
    make(strategy);
    fake_become(ROLE_EVALUATOR);
    assert_public_ok(cadre_variable_find(NULL, "w", &trial.variable));
    try_all(&trial);
    assert_public_error(cadre_variable_begin_step(trial.variable, 3), CADRE_FAILED_PRECONDITION,
        "the chief begins steps");
    fake_end(strategy);
}

/* What only servers do, asked of one that is here. */
static void of_one_in_this_process(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin();
    const cadre_variable_options own = {.placement = CADRE_PLACEMENT_REPLICAS};
    cadre_variable *here;
    cadre_tensor *one;
    assert_public_ok(cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, &own, &here));
    assert_public_ok(cadre_tensor_from_f32(1, &one));
    refused(cadre_variable_push(NULL, here, CADRE_ASSIGN, one, NULL, NULL), "cadre_variable_push");
    assert_public_error(cadre_variable_begin_step(here, 1), CADRE_FAILED_PRECONDITION,
        "cadre_variable_begin_step: variable 'v' lies in this process");
    assert_public_error(cadre_variable_assign(NULL, here, CADRE_ASSIGN_UPDATE, one),
        CADRE_INVALID_ARGUMENT, "no way to assign");
    cadre_tensor_release(one);
    fake_end(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_chief),
        cmocka_unit_test(in_a_replica_function),
        cmocka_unit_test(in_a_closure),
        cmocka_unit_test(in_an_evaluator),
        cmocka_unit_test(of_one_in_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
