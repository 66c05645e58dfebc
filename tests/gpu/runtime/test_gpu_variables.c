/* SPDX-License-Identifier: Apache-2.0
 * Variables of replicas on devices: where their components are, and that each way to read and
 * change them has the same result as on the processor. */
#include <stdio.h>
#include <string.h>

#include "gpu_training.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define COUNT 4

/* Lists that every test goes through. */
static const char *const lists[][4] = {
    {"GPU:0", NULL},
    {"GPU:0", "GPU:1", NULL},
    {"CPU:0", "GPU:1", NULL},
    {"GPU:1", "CPU:0", NULL},
    {"GPU:0", "CPU:0", NULL},
};
#define LISTS sizeof lists / sizeof lists[0]

/* Those that can be had here. */
static size_t had_from(size_t at)
{
    while (at < LISTS && !gpu_has(lists[at])) {
        at++;
    }
    return at;
}
#define EACH_LIST(at) for (size_t at = had_from(0); at < LISTS; at = had_from(at + 1))

static cadre_variable *variable_of(
    cadre_strategy *strategy, const char *name, double value, cadre_aggregation aggregation)
{
    const cadre_variable_options options = {.aggregation = aggregation,
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value}};
    const int64_t dims[] = {COUNT};
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 1, dims, &options, &variable));
    return variable;
}

/* All components, wherever they are, and what cross-replica context reads. */
static void assert_value(const cadre_variable *variable, float wanted)
{
    const float all[COUNT] = {wanted, wanted, wanted, wanted};
    for (uint32_t i = 0; i < variable->component_count; i++) {
        gpu_assert_f32(variable->components[i].device, variable->components[i].value, COUNT, all);
    }
    gpu_assert_f32(NULL, cadre_variable_read(NULL, variable), COUNT, all);
    cadre_per_replica *results;
    assert_public_ok(cadre_variable_local_results(variable, &results));
    assert_int_equal(cadre_per_replica_count(results), variable->component_count);
    for (uint32_t i = 0; i < variable->component_count; i++) {
        training_assert_f32(cadre_local_results(results, 0)[i], COUNT, all);
    }
    cadre_per_replica_release(results);
}

static cadre_status look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_variable *variable = user;
    const struct variable_component *own = variable_component(variable, replica->local);
    assert_ptr_equal(own->device, replica->device);
    assert_ptr_equal(cadre_variable_read(replica, variable), own->value);
    assert_ptr_equal(cadre_variable_read(NULL, variable), own->value);
    return CADRE_OK;
}

static void components_are_where_the_replicas_are(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *mirrored = variable_of(strategy, "v", 2.5, CADRE_AGGREGATION_NONE);
        for (uint32_t i = 0; i < mirrored->component_count; i++) {
            assert_non_null(strstr(cadre_variable_device(mirrored, i), lists[at][i]));
        }
        assert_value(mirrored, 2.5f);
        assert_public_ok(cadre_run(strategy, look, mirrored, NULL, 0, NULL));
        cadre_strategy_release(strategy);
    }
}

static void what_is_no_mirrored_number_stays_on_the_host(void **state)
{
    (void)state;
    cadre_strategy *strategy = gpu_strategy(lists[had_from(1)]);
    const cadre_variable_options options[] = {
        {.keep_on_host = true},
        {.synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM},
    };
    for (int i = 0; i < 2; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        cadre_variable *variable;
        assert_public_ok(
            cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options[i], &variable));
        assert_null(variable->components[1].device);
        assert_non_null(strstr(cadre_variable_device(variable, 1), "device:CPU:0"));
        assert_public_ok(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 3));
        assert_true(*(const float *)cadre_variable_read(NULL, variable) == 3);
    }
    cadre_variable *words;
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_STRING, 0, NULL, NULL, &words));
    assert_int_equal(((const cadre_string *)cadre_variable_read(NULL, words))->size, 0);
    cadre_strategy_release(strategy);
}

/* --- cross-replica context --- */

static cadre_tensor *full(struct device *device, float value)
{
    struct cadre_error error = {0};
    const float values[COUNT] = {value, value, value, value};
    cadre_tensor *host = training_f32(COUNT, values);
    cadre_tensor *there = NULL;
    assert_ok(tensor_copy_to(device, host, &there, &error), &error);
    cadre_tensor_release(host);
    return there;
}

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

/* Before the first step and after it, values of the host and of a device. */
static void assignments_between_steps_reach_all_components(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct device *device;
    assert_ok(device_open(device_count() > 1 ? 1 : 0, &device, &error), &error);
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *variable = variable_of(strategy, "v", 1, CADRE_AGGREGATION_NONE);
        for (int step = 0; step < 2; step++) {
            cadre_tensor *host = full(NULL, 8);
            cadre_tensor *there = full(device, 0.25f);
            assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, host));
            assert_value(variable, 8);
            assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, there));
            assert_value(variable, 8.25f);
            assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_SUB, host));
            assert_value(variable, 0.25f);
            assert_public_ok(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN_ADD, 2));
            assert_value(variable, 2.25f);
            assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, there));
            assert_value(variable, 0.25f);
            cadre_tensor_release(host);
            cadre_tensor_release(there);
            assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
        }
        cadre_strategy_release(strategy);
    }
}

static cadre_status make_value(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    outputs[0] = full(replica->device, (float)(replica->local + 1));
    return CADRE_OK;
}

static void each_component_gets_its_own_value(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *variable = variable_of(strategy, "v", 1, CADRE_AGGREGATION_NONE);
        cadre_per_replica *values = NULL;
        assert_public_ok(cadre_run(strategy, make_value, NULL, NULL, 1, &values));
        cadre_per_replica_retain(values);
        assert_public_ok(cadre_variable_assign_values(variable, CADRE_ASSIGN_ADD, values));
        for (uint32_t i = 0; i < variable->component_count; i++) {
            const float sum = (float)i + 2;
            const float wanted[COUNT] = {sum, sum, sum, sum};
            gpu_assert_f32(
                variable->components[i].device, variable->components[i].value, COUNT, wanted);
        }
        cadre_per_replica_release(values);
        cadre_strategy_release(strategy);
    }
}

static cadre_status double_it(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)ret_output;
    cadre_variable *other = user;
    CADRE_TRY(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, inputs[0]));
    return cadre_variable_assign_literal(NULL, other, CADRE_ASSIGN, 7);
}

static void updates_change_one_component_each(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *variable = variable_of(strategy, "v", 1, CADRE_AGGREGATION_NONE);
        cadre_variable *other = variable_of(strategy, "other", 1, CADRE_AGGREGATION_NONE);
        cadre_per_replica *values = NULL;
        assert_public_ok(cadre_run(strategy, make_value, NULL, NULL, 1, &values));
        assert_public_ok(cadre_variable_update(strategy, variable, double_it, other, values, NULL));
        for (uint32_t i = 0; i < variable->component_count; i++) {
            const float sum = (float)i + 2;
            const float wanted[COUNT] = {sum, sum, sum, sum};
            gpu_assert_f32(
                variable->components[i].device, variable->components[i].value, COUNT, wanted);
        }
        assert_value(other, 7);
        cadre_strategy_release(strategy);
    }
}

/* --- replica context --- */

struct stepping {
    cadre_variable *variable;
    cadre_variable *second;
    bool fails;
};

static cadre_status write_and_assign(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct stepping *stepping = user;
    void *to = cadre_variable_write(replica, stepping->variable);
    assert_non_null(to);
    gpu_put_f32(replica, to, COUNT, 5);
    cadre_tensor *host = full(NULL, 3);
    cadre_tensor *there = full(replica->device, 0.5f);
    CADRE_TRY(cadre_variable_assign(replica, stepping->second, CADRE_ASSIGN, host));
    cadre_tensor_release(host);
    CADRE_TRY(cadre_variable_assign(replica, stepping->second, CADRE_ASSIGN_ADD, there));
    cadre_tensor_release(there);
    return stepping->fails ? cadre_fail(CADRE_CANCELLED, "on purpose") : CADRE_OK;
}

static void a_step_that_fails_is_undone(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        struct stepping stepping = {
            .variable = variable_of(strategy, "v", 1, CADRE_AGGREGATION_NONE),
            .second = variable_of(strategy, "w", 2, CADRE_AGGREGATION_NONE),
            .fails = true};
        for (int i = 0; i < 2; i++) {
            assert_public_error(cadre_run(strategy, write_and_assign, &stepping, NULL, 0, NULL),
                CADRE_CANCELLED, "on purpose");
            assert_value(stepping.variable, 1);
            assert_value(stepping.second, 2);
        }
        stepping.fails = false;
        assert_public_ok(cadre_run(strategy, write_and_assign, &stepping, NULL, 0, NULL));
        assert_value(stepping.variable, 5);
        assert_value(stepping.second, 3.5f);
        stepping.fails = true;
        assert_public_error(cadre_run(strategy, write_and_assign, &stepping, NULL, 0, NULL),
            CADRE_CANCELLED, "on purpose");
        assert_value(stepping.second, 3.5f);
        cadre_strategy_release(strategy);
    }
}

static cadre_status assign_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct stepping *stepping = user;
    cadre_tensor *own = full(replica->device, (float)(2 * replica->id + 2));
    CADRE_TRY(cadre_variable_assign(replica, stepping->variable, CADRE_ASSIGN_ADD, own));
    CADRE_TRY(cadre_variable_assign(replica, stepping->second, CADRE_ASSIGN, own));
    cadre_tensor_release(own);
    return CADRE_OK;
}

static void assignments_of_replicas_are_combined(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        struct stepping stepping = {
            .variable = variable_of(strategy, "sum", 1, CADRE_AGGREGATION_SUM),
            .second = variable_of(strategy, "mean", 1, CADRE_AGGREGATION_MEAN)};
        bool single = strategy->local_replicas == 1;
        assert_public_ok(cadre_run(strategy, assign_own, &stepping, NULL, 0, NULL));
        assert_value(stepping.variable, single ? 3 : 7);
        assert_value(stepping.second, single ? 2 : 3);
        cadre_strategy_release(strategy);
    }
}

static void apply_it(cadre_replica *replica, void *user)
{
    cadre_variable *variable = user;
    gpu_put_f32(replica, cadre_variable_write(replica, variable), COUNT, 9);
}

static cadre_status ask_for_it(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_on_apply(replica, apply_it, user);
}

/* The host's copy is old after each kind of write. */
static void what_is_applied_is_read(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *variable = variable_of(strategy, "v", 1, CADRE_AGGREGATION_NONE);
        assert_value(variable, 1);
        assert_public_ok(cadre_run(strategy, ask_for_it, variable, NULL, 0, NULL));
        assert_value(variable, 9);
        for (uint32_t i = 0; i < variable->component_count; i++) {
            assert_null(variable->components[i].kept);
        }
        const void *value = cadre_variable_read(NULL, variable);
        assert_ptr_equal(cadre_variable_read(NULL, variable), value);
        cadre_strategy_release(strategy);
    }
}

/* --- scatter --- */

static cadre_status scatter_in_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct cadre_error error = {0};
    cadre_variable *variable = user;
    const int64_t rows[] = {1, 3, 1};
    const int64_t dims[] = {3};
    const float ones[] = {1, 2, 4};
    cadre_tensor *indices;
    cadre_tensor *host = training_f32(3, ones);
    cadre_tensor *values;
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, dims, rows, &indices));
    assert_ok(tensor_copy_to(replica->device, host, &values, &error), &error);
    const cadre_sparse sparse = {.values = values, .indices = indices, .rows = COUNT};
    CADRE_TRY(cadre_variable_scatter(replica, variable, CADRE_SCATTER_ADD, &sparse));
    cadre_tensor_release(host);
    cadre_tensor_release(values);
    cadre_tensor_release(indices);
    return CADRE_OK;
}

static void rows_are_scattered(void **state)
{
    (void)state;
    const float wanted[] = {1, 6, 1, 3};
    const float twice[] = {1, 5, 1, 5};
    const int64_t dims[] = {1};
    const int64_t row[] = {1};
    const float less[] = {1};
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *variable = variable_of(strategy, "v", 1, CADRE_AGGREGATION_NONE);
        assert_public_ok(cadre_run(strategy, scatter_in_step, variable, NULL, 0, NULL));
        for (uint32_t i = 0; i < variable->component_count; i++) {
            gpu_assert_f32(
                variable->components[i].device, variable->components[i].value, COUNT, wanted);
        }
        cadre_sparse sparse = {.values = training_f32(1, less), .rows = COUNT};
        assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, dims, row, &sparse.indices));
        assert_public_ok(cadre_variable_scatter(NULL, variable, CADRE_SCATTER_SUB, &sparse));
        assert_true(((const float *)cadre_variable_read(NULL, variable))[1] == twice[1]);
        cadre_sparse_release(&sparse);
        cadre_strategy_release(strategy);
    }
}

/* --- values --- */

/* In a replica a copy on its device, and rows in the host's memory. */
static cadre_status read_in_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_variable *variable = user;
    const int64_t dims[] = {COUNT};
    const int64_t two[] = {2};
    const int64_t numbers[] = {3, 0};
    const float all[COUNT] = {5, 5, 5, 5};
    float memory[COUNT] = {0};
    cadre_read_options options = {0};
    cadre_tensor *ids;
    cadre_tensor *value;
    CADRE_TRY(cadre_variable_value(replica, variable, NULL, &value));
    assert_ptr_equal(tensor_device(value), replica->device);
    gpu_assert_f32(replica->device, cadre_tensor_data(value), COUNT, all);
    cadre_tensor_release(value);
    CADRE_TRY(cadre_tensor_over(CADRE_F32, 1, dims, memory, NULL, NULL, &options.into));
    CADRE_TRY(cadre_variable_value(replica, variable, &options, NULL));
    assert_memory_equal(memory, all, sizeof all);
    cadre_tensor_release(options.into);
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, two, numbers, &ids));
    CADRE_TRY(cadre_variable_gather(replica, variable, ids, NULL, &value));
    assert_null(tensor_device(value));
    assert_memory_equal(cadre_tensor_const_data(value), all, 2 * sizeof all[0]);
    cadre_tensor_release(value);
    cadre_tensor_release(ids);
    return CADRE_OK;
}

static void values_are_read_where_they_are(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        cadre_variable *variable = variable_of(strategy, "v", 5, CADRE_AGGREGATION_NONE);
        cadre_tensor *value;
        assert_public_ok(cadre_run(strategy, read_in_step, variable, NULL, 0, NULL));
        assert_public_ok(cadre_variable_value(NULL, variable, NULL, &value));
        assert_ptr_equal(cadre_tensor_const_data(value), cadre_variable_read(NULL, variable));
        cadre_tensor_release(value);
        cadre_strategy_release(strategy);
    }
}

/* --- refusals --- */

static void a_variable_too_large_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = gpu_strategy(lists[had_from(1)]);
    const int64_t dims[] = {(int64_t)1 << 45};
    cadre_variable *variable = (cadre_variable *)&state;
    assert_public_error(
        cadre_variable_create(strategy, "large", CADRE_F32, 1, dims, NULL, &variable),
        CADRE_RESOURCE_EXHAUSTED, "no memory for the variable 'large'");
    assert_null(variable);
    cadre_strategy_release(strategy);
}

/* --- created late --- */

static cadre_status create_slot(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const int64_t dims[] = {COUNT};
    const cadre_variable_options options = {.aggregation = CADRE_AGGREGATION_SUM,
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3}};
    cadre_variable *slot;
    cadre_tensor *one;
    const bool *fails = user;
    (void)inputs;
    (void)outputs;
    CADRE_TRY(cadre_variable_create(NULL, "slot", CADRE_F32, 1, dims, &options, &slot));
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, (const float[]){1, 1, 1, 1}, &one));
    cadre_status status = cadre_variable_assign(replica, slot, CADRE_ASSIGN_ADD, one);
    cadre_tensor_release(one);
    return status == CADRE_OK && *fails ? cadre_fail(CADRE_DATA_LOSS, "it is to fail") : status;
}

/* Its components are made where the replicas are; a step that fails takes them along. */
static void variables_are_created_late(void **state)
{
    (void)state;
    EACH_LIST(at)
    {
        cadre_strategy *strategy = gpu_strategy(lists[at]);
        bool fails = true;
        assert_public_error(cadre_run(strategy, create_slot, &fails, NULL, 0, NULL),
            CADRE_DATA_LOSS, "it is to fail");
        assert_null(training_find(strategy, "slot"));
        fails = false;
        for (float steps = 1; steps < 4; steps++) {
            assert_public_ok(cadre_run(strategy, create_slot, &fails, NULL, 0, NULL));
            assert_value(training_find(strategy, "slot"),
                3 + steps * (float)cadre_strategy_num_replicas_in_sync(strategy));
        }
        cadre_variable *between = variable_of(strategy, "between", 7, CADRE_AGGREGATION_NONE);
        assert_value(between, 7);
        assert_public_ok(cadre_run(strategy, look, between, NULL, 0, NULL));
        cadre_strategy_release(strategy);
    }
}

int main(void)
{
    gpu_require(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_are_where_the_replicas_are),
        cmocka_unit_test(what_is_no_mirrored_number_stays_on_the_host),
        cmocka_unit_test(assignments_between_steps_reach_all_components),
        cmocka_unit_test(each_component_gets_its_own_value),
        cmocka_unit_test(updates_change_one_component_each),
        cmocka_unit_test(a_step_that_fails_is_undone),
        cmocka_unit_test(assignments_of_replicas_are_combined),
        cmocka_unit_test(what_is_applied_is_read),
        cmocka_unit_test(rows_are_scattered),
        cmocka_unit_test(values_are_read_where_they_are),
        cmocka_unit_test(variables_are_created_late),
        cmocka_unit_test(a_variable_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
