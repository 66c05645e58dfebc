/* SPDX-License-Identifier: Apache-2.0
 * Pipelines of functions, optional iteration, epochs of a given length, specs, options, values from
 * a function: in one task of several replicas. Case ids in comments are those of the shared
 * conformance cases. */
#include <stdlib.h>
#include <string.h>

#include "training.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/state/format/base64.h"
#include "worker/library/runtime/strategy/strategy.h"

static int64_t number_of(const cadre_tensor *tensor, int64_t row)
{
    return ((const int64_t *)cadre_tensor_const_data(tensor))[row];
}

/* What one replica of a batch holds. */
static void assert_rows(
    const cadre_per_replica *batch, uint32_t replica, int64_t count, int64_t first)
{
    const cadre_tensor *rows = cadre_local_results(batch, 0)[replica];
    assert_int_equal(cadre_tensor_rows(rows), count);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(number_of(rows, i), first + i);
    }
}

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    if (user != NULL && cadre_replica_local_id(replica) == 0) {
        *(int64_t *)user = cadre_replica_global_rows(replica);
    }
    return CADRE_OK;
}

/* --- pipelines of functions --- */

/* What the function was called with, and what it makes. */
struct maker {
    cadre_input_context seen[8];
    uint32_t calls;
    int64_t stop;
    int64_t batch;
    bool drop_remainder;
    bool endless;
    cadre_status fails;
    bool makes_nothing;
};

static cadre_status make(const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    struct maker *maker = user;
    if (maker->calls < 8) {
        maker->seen[maker->calls] = *context;
    }
    maker->calls++;
    if (maker->fails != CADRE_OK) {
        return cadre_fail(maker->fails, "the shelf %u is empty", context->input_pipeline_id);
    }
    if (maker->makes_nothing) {
        return CADRE_OK;
    }
    int64_t start = 100 * (int64_t)context->input_pipeline_id;
    cadre_dataset *data = cadre_dataset_range(start, start + maker->stop, 1);
    if (maker->endless) {
        data = cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER);
    }
    *ret_data = cadre_dataset_batch(data, maker->batch, maker->drop_remainder);
    return CADRE_OK;
}

static cadre_distributed_dataset *from(
    cadre_strategy *strategy, struct maker *maker, const cadre_input_options *options)
{
    cadre_distributed_dataset *data;
    assert_public_ok(
        cadre_distribute_datasets_from_function(strategy, make, maker, options, &data));
    return data;
}

/* dataset_from_function/range9_b2_r2 */
static void elements_go_to_the_replicas_as_they_are(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct maker maker = {.stop = 9, .batch = 2};
    cadre_distributed_dataset *data = from(strategy, &maker, NULL);
    assert_int_equal(maker.calls, 1);
    assert_int_equal(maker.seen[0].num_input_pipelines, 1);
    assert_int_equal(maker.seen[0].input_pipeline_id, 0);
    assert_int_equal(maker.seen[0].num_replicas_in_sync, 2);
    cadre_per_replica *batch;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        assert_true(cadre_next_epoch(data, 2, NULL));
        for (int64_t step = 0; step < 3; step++) {
            int64_t rows = 0;
            assert_public_ok(cadre_next(data, &batch));
            assert_rows(batch, 0, step == 2 ? 1 : 2, 4 * step);
            assert_rows(batch, 1, step == 2 ? 0 : 2, 4 * step + 2);
            assert_public_ok(cadre_run(strategy, nothing, &rows, batch, 0, NULL));
            assert_int_equal(rows, step == 2 ? 1 : 4);
        }
        assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
        assert_int_equal(cadre_distributed_steps(data), 3);
    }
    assert_int_equal(maker.calls, 1);
    cadre_strategy_release(strategy);
}

static void each_replica_may_have_a_pipeline(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    struct maker maker = {.stop = 5, .batch = 2};
    cadre_distributed_dataset *data = from(strategy, &maker,
        &(cadre_input_options){
            .replication_mode = CADRE_PER_REPLICA, .keep_on_host = true, .copy_to_device = true});
    assert_int_equal(maker.calls, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(maker.seen[i].num_input_pipelines, 3);
        assert_int_equal(maker.seen[i].input_pipeline_id, i);
        assert_int_equal(maker.seen[i].num_replicas_in_sync, 3);
    }
    cadre_per_replica *batch;
    assert_true(cadre_next_epoch(data, 1, NULL));
    for (int64_t step = 0; step < 3; step++) {
        assert_public_ok(cadre_next(data, &batch));
        for (uint32_t i = 0; i < 3; i++) {
            assert_rows(batch, i, step == 2 ? 1 : 2, 100 * (int64_t)i + 2 * step);
        }
    }
    assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
    cadre_strategy_release(strategy);
}

static void a_function_that_fails_is_received(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    struct maker maker = {.stop = 5, .batch = 2, .fails = CADRE_NOT_FOUND};
    assert_public_error(
        cadre_distribute_datasets_from_function(strategy, make, &maker, NULL, &data),
        CADRE_NOT_FOUND, "the shelf 0 is empty");
    assert_null(data);
    maker = (struct maker){.makes_nothing = true};
    assert_public_error(
        cadre_distribute_datasets_from_function(strategy, make, &maker, NULL, &data),
        CADRE_INVALID_ARGUMENT, "made no dataset for input pipeline 0 of 1");
    maker = (struct maker){.stop = 5, .batch = 0};
    assert_public_error(
        cadre_distribute_datasets_from_function(strategy, make, &maker, NULL, &data),
        CADRE_INVALID_ARGUMENT, "");
    assert_public_error(cadre_distribute_datasets_from_function(strategy, NULL, NULL, NULL, &data),
        CADRE_INVALID_ARGUMENT, "function");
    assert_public_error(cadre_distribute_datasets_from_function(strategy, make, &maker, NULL, NULL),
        CADRE_INVALID_ARGUMENT, "ret_distributed");
    cadre_strategy_release(strategy);
}

/* --- options --- */

struct combination {
    bool of_function;
    cadre_input_options options;
    cadre_status wanted;
    const char *part;
};

static const struct combination combinations[] = {
    {true, {.keep_on_host = true}, CADRE_OK, ""},
    {false, {.keep_on_host = true, .per_replica_buffer = 3}, CADRE_OK, ""},
    {true, {.replication_mode = CADRE_PER_REPLICA}, CADRE_OK, ""},
    {true, {.replication_mode = CADRE_PER_REPLICA, .keep_on_host = true}, CADRE_OK, ""},
    {true, {.replication_mode = CADRE_PER_REPLICA, .keep_on_host = true, .copy_to_device = true},
        CADRE_OK, ""},
    /* input_options/place_needs_per_replica */
    {true, {.keep_on_host = true, .copy_to_device = true}, CADRE_INVALID_ARGUMENT,
        "use CADRE_PER_REPLICA with it"},
    {false, {.copy_to_device = true}, CADRE_INVALID_ARGUMENT, "use CADRE_PER_REPLICA with it"},
    {true, {.replication_mode = CADRE_PER_REPLICA, .copy_to_device = true}, CADRE_INVALID_ARGUMENT,
        "set keep_on_host"},
    {false, {.replication_mode = CADRE_PER_REPLICA}, CADRE_UNIMPLEMENTED,
        "cadre_distribute_datasets_from_function"},
    {true, {.replication_mode = (cadre_replication_mode)7}, CADRE_INVALID_ARGUMENT,
        "7 is not a replication mode"},
    {false, {.rebatch = (cadre_rebatch)9}, CADRE_INVALID_ARGUMENT, "9 is not a way"},
    {false, {.auto_shard = (cadre_shard_policy)12}, CADRE_INVALID_ARGUMENT, "12"},
    {true, {.steps_per_epoch = UINT64_MAX}, CADRE_INVALID_ARGUMENT, "is too long"},
};

static void options_that_go_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof combinations / sizeof combinations[0]; i++) {
        const struct combination *at = &combinations[i];
        cadre_strategy *strategy = training_strategy(2);
        cadre_distributed_dataset *data;
        struct maker maker = {.stop = 4, .batch = 2};
        cadre_status status = at->of_function
                                  ? cadre_distribute_datasets_from_function(
                                        strategy, make, &maker, &at->options, &data)
                                  : cadre_distribute_dataset(strategy,
                                        cadre_dataset_batch(cadre_dataset_range(0, 4, 1), 2, false),
                                        &at->options, &data);
        if (status != at->wanted ||
            (status != CADRE_OK && strstr(cadre_error_message(), at->part) == NULL)) {
            fail_msg(
                "combination %zu: %s, '%s'", i, cadre_status_name(status), cadre_error_message());
        }
        cadre_strategy_release(strategy);
    }
}

/* input_context/even, input_context/seed_16_over_4 */
static void a_global_batch_is_divided_evenly(void **state)
{
    (void)state;
    int64_t size = -1;
    assert_public_ok(cadre_per_replica_batch_size(
        &(cadre_input_context){
            .num_input_pipelines = 2, .input_pipeline_id = 1, .num_replicas_in_sync = 6},
        12, &size));
    assert_int_equal(size, 2);
    const cadre_input_context four = {.num_input_pipelines = 1, .num_replicas_in_sync = 4};
    assert_public_ok(cadre_per_replica_batch_size(&four, 16, &size));
    assert_int_equal(size, 4);
    assert_public_error(cadre_per_replica_batch_size(&four, 18, &size), CADRE_INVALID_ARGUMENT,
        "a global batch of 18 cannot be divided evenly among 4 replicas");
    assert_int_equal(size, 0);
    assert_public_error(
        cadre_per_replica_batch_size(&four, 0, &size), CADRE_INVALID_ARGUMENT, "positive");
    assert_public_error(
        cadre_per_replica_batch_size(&four, -4, &size), CADRE_INVALID_ARGUMENT, "positive");
    assert_public_error(cadre_per_replica_batch_size(&(cadre_input_context){0}, 4, &size),
        CADRE_INVALID_ARGUMENT, "positive");
    assert_public_error(
        cadre_per_replica_batch_size(NULL, 4, &size), CADRE_INVALID_ARGUMENT, "context");
    assert_public_error(
        cadre_per_replica_batch_size(&four, 4, NULL), CADRE_INVALID_ARGUMENT, "ret_size");
}

/* --- how iteration ends --- */

static cadre_distributed_dataset *range_of(
    cadre_strategy *strategy, int64_t stop, int64_t batch, const cadre_input_options *options)
{
    cadre_distributed_dataset *data;
    assert_public_ok(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_range(0, stop, 1), batch, false), options, &data));
    return data;
}

/* iteration_end/optional_break, iteration_end/seed_optional_loop */
static void the_end_is_a_status(void **state)
{
    (void)state;
    static const struct {
        uint32_t replicas;
        int64_t stop;
        int64_t batch;
        int steps;
    } cases[] = {{2, 8, 2, 4}, {4, 9, 4, 3}, {1, 0, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_strategy *strategy = training_strategy(cases[i].replicas);
        cadre_distributed_dataset *data = range_of(strategy, cases[i].stop, cases[i].batch, NULL);
        cadre_per_replica *batch;
        int steps = 0;
        assert_true(cadre_next_epoch(data, 1, NULL));
        for (; cadre_next(data, &batch) == CADRE_OK; steps++) {
            assert_public_ok(cadre_run(strategy, nothing, NULL, batch, 0, NULL));
        }
        assert_int_equal(steps, cases[i].steps);
        assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
        assert_null(batch);
        assert_public_ok(cadre_distributed_status(data));
        cadre_strategy_release(strategy);
    }
    cadre_per_replica *batch;
    assert_public_error(cadre_next(NULL, &batch), CADRE_INVALID_ARGUMENT, "distributed");
    assert_public_error(cadre_next(NULL, NULL), CADRE_INVALID_ARGUMENT, "ret_batch");
}

static void an_epoch_has_as_many_steps_as_are_asked_for(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data =
        range_of(strategy, 10, 2, &(cadre_input_options){.steps_per_epoch = 3});
    cadre_distributed_dataset *small =
        range_of(strategy, 4, 2, &(cadre_input_options){.steps_per_epoch = 3});
    cadre_per_replica *batch;
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_true(cadre_next_epoch(data, 2, NULL));
        assert_int_equal(cadre_distributed_steps(data), 3);
        for (int64_t step = 0; step < 3; step++) { /* each epoch begins it again */
            assert_public_ok(cadre_next(data, &batch));
            assert_rows(batch, 0, 1, 2 * step);
            assert_public_ok(cadre_run(strategy, nothing, NULL, batch, 0, NULL));
        }
        assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
        assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
    }
    assert_true(cadre_next_epoch(small, 1, NULL));
    assert_int_equal(cadre_distributed_steps(small), 2);
    assert_public_ok(cadre_next(small, &batch));
    assert_public_ok(cadre_next(small, &batch));
    assert_int_equal(cadre_next(small, &batch), CADRE_OUT_OF_RANGE);
    cadre_strategy_release(strategy);
}

/* Epoch e holds the steps from e * steps_per_epoch on, whatever was taken of the one before. */
static void an_endless_dataset_has_epochs_too(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    uint64_t epoch;
    cadre_dataset *numbers =
        cadre_dataset_repeat(cadre_dataset_range(0, 1000, 1), CADRE_REPEAT_FOREVER);
    assert_public_ok(cadre_distribute_dataset(strategy, cadre_dataset_batch(numbers, 2, false),
        &(cadre_input_options){.steps_per_epoch = 5, .auto_shard = CADRE_SHARD_DATA}, &data));
    while (cadre_next_epoch(data, 3, &epoch)) {
        assert_int_equal(cadre_distributed_steps(data), 5);
        for (int64_t step = 0; step < (epoch == 1 ? 2 : 5); step++) {
            assert_public_ok(cadre_next(data, &batch));
            assert_rows(batch, 0, 2, 10 * (int64_t)epoch + 2 * step);
            assert_public_ok(cadre_run(strategy, nothing, NULL, batch, 0, NULL));
        }
        if (epoch != 1) {
            assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
        }
    }
    assert_int_equal(cadre_epoch(data), 2);
    assert_int_equal(cadre_step(data), 5);
    cadre_strategy_release(strategy);
}

/* --- specs --- */

/* element_spec/dynamic_batch_two_replicas */
static void a_spec_covers_all_steps(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_element_spec spec;
    assert_public_ok(cadre_distributed_spec(range_of(strategy, 10, 2, NULL), &spec));
    assert_int_equal(spec.count, 1);
    assert_int_equal(spec.tensors[0].dtype, CADRE_I64);
    assert_int_equal(spec.tensors[0].rank, 1);
    assert_int_equal(spec.tensors[0].dims[0], CADRE_DIMENSION_ANY);
    assert_public_error(cadre_distributed_spec(NULL, &spec), CADRE_INVALID_ARGUMENT, "distributed");
    assert_int_equal(spec.count, 0);
    cadre_distributed_dataset *data = range_of(strategy, 10, 2, NULL);
    assert_public_error(cadre_distributed_spec(data, NULL), CADRE_INVALID_ARGUMENT, "ret_spec");
    cadre_strategy_release(strategy);
    assert_public_error(cadre_distributed_spec(data, &spec), CADRE_FAILED_PRECONDITION, "ended");
}

static void who_holds_what_is_known(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = range_of(
        strategy, 10, 2, &(cadre_input_options){.name = "train", .auto_shard = CADRE_SHARD_DATA});
    struct dataset_shards shards;
    cadre_per_replica *batch;
    assert_false(distributed_shards(data, &shards));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    assert_public_ok(cadre_run(strategy, nothing, NULL, batch, 0, NULL));
    assert_true(distributed_shards(data, &shards));
    assert_string_equal(shards.name, "train");
    assert_int_equal(shards.policy, CADRE_SHARD_DATA);
    assert_int_equal(shards.step, 1);
    assert_int_equal(shards.workers, 1);
    assert_null(shards.files);
    cadre_strategy_release(strategy);
}

/* --- values from a function --- */

struct values {
    uint32_t components;
    uint32_t more_at;  /* this replica's value has one more */
    uint32_t fails_at; /* this one's fails */
    bool leaves_a_hole;
};

/* values_from_function/nested_tuple_by_id */
static cadre_status value_of(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    const struct values *values = user;
    uint32_t id = context->replica_id_in_sync_group;
    uint32_t count = values->components + (id == values->more_at ? 1 : 0);
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(
            cadre_tensor_from_i64((int64_t)(i + 1) * id + 1000 * context->num_replicas_in_sync,
                &ret_value->tensors[ret_value->count]));
        ret_value->count++;
    }
    if (values->leaves_a_hole) {
        ret_value->count++;
    }
    return id == values->fails_at ? cadre_fail(CADRE_INTERNAL, "no value for %u", id) : CADRE_OK;
}

static void values_are_made_for_each_replica(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        cadre_strategy *strategy = training_strategy(replicas);
        struct values values = {.components = 3, .more_at = 99, .fails_at = 99};
        cadre_per_replica *value;
        assert_public_ok(cadre_values_from_function(strategy, value_of, &values, &value));
        assert_int_equal(cadre_per_replica_count(value), replicas);
        assert_int_equal(cadre_per_replica_components(value), 3);
        for (uint32_t i = 0; i < 3; i++) {
            for (uint32_t id = 0; id < replicas; id++) {
                assert_int_equal(number_of(cadre_local_results(value, i)[id], 0),
                    (i + 1) * id + 1000 * replicas);
            }
        }
        cadre_strategy_release(strategy);
        cadre_per_replica_release(value); /* it may outlive the strategy */
    }
}

static void values_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_per_replica *value;
    struct values values = {.components = 2, .more_at = 1, .fails_at = 99};
    assert_public_error(cadre_values_from_function(strategy, value_of, &values, &value),
        CADRE_INVALID_ARGUMENT, "the value of replica 0 has 2 tensors, that of replica 1 has 3");
    assert_null(value);
    values = (struct values){.components = 2, .more_at = 99, .fails_at = 2};
    assert_public_error(cadre_values_from_function(strategy, value_of, &values, &value),
        CADRE_INTERNAL, "no value for 2");
    values = (struct values){.components = 0, .more_at = 99, .fails_at = 99};
    assert_public_error(cadre_values_from_function(strategy, value_of, &values, &value),
        CADRE_INVALID_ARGUMENT, "returned 0 tensors");
    values = (struct values){.components = 1, .more_at = 99, .fails_at = 99, .leaves_a_hole = true};
    assert_public_error(cadre_values_from_function(strategy, value_of, &values, &value),
        CADRE_INVALID_ARGUMENT, "NULL");
    assert_public_error(cadre_values_from_function(strategy, NULL, NULL, &value),
        CADRE_INVALID_ARGUMENT, "function");
    assert_public_error(cadre_values_from_function(NULL, value_of, &values, &value),
        CADRE_INVALID_ARGUMENT, "strategy");
    assert_public_error(cadre_values_from_function(strategy, value_of, &values, NULL),
        CADRE_INVALID_ARGUMENT, "ret_values");
    cadre_strategy_release(strategy);
}

/* --- bytes as text --- */

static void bytes_survive_as_text(void **state)
{
    (void)state;
    uint8_t bytes[66];
    for (size_t count = 0; count <= sizeof bytes; count++) {
        for (size_t i = 0; i < count; i++) {
            bytes[i] = (uint8_t)(i * 37 + count);
        }
        char *text = base64_encode(bytes, count);
        uint8_t *again;
        size_t size;
        assert_non_null(text);
        assert_int_equal(strlen(text), (count + 2) / 3 * 4);
        assert_true(base64_decode(text, strlen(text), &again, &size));
        assert_int_equal(size, count);
        assert_memory_equal(again, bytes, count);
        free(text);
        free(again);
    }
    static const char *const bad[] = {
        "A", "AB", "ABC", "ABCDE", "AB*D", "A===", "====", "AB=D", "AA==AAAA", "AAA\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t *none;
        size_t size;
        if (base64_decode(bad[i], strlen(bad[i]), &none, &size)) {
            fail_msg("'%s' was read", bad[i]);
        }
        assert_null(none);
    }
}

/* --- devices --- */

static void *get_pinned(size_t bytes)
{
    return aligned_alloc(CADRE_TENSOR_ALIGN, bytes);
}

static void give_pinned(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

/* A stand-in for the memory that a device registers. */
static void batches_lie_where_the_device_copies_from(void **state)
{
    static const struct tensor_memory_ops pinned = {"stand-in", get_pinned, give_pinned};
    struct cadre_error error = {0};
    (void)state;
    assert_int_equal(tensor_memory_register(TENSOR_MEMORY_PINNED, &pinned, &error), CADRE_OK);
    for (int kept = 0; kept < 2; kept++) {
        cadre_strategy *strategy = training_strategy(2);
        strategy->batch_memory = TENSOR_MEMORY_PINNED;
        cadre_distributed_dataset *data =
            range_of(strategy, 7, 3, &(cadre_input_options){.keep_on_host = kept == 1});
        cadre_per_replica *batch;
        assert_true(cadre_next_epoch(data, 1, NULL));
        while (cadre_next(data, &batch) == CADRE_OK) {
            for (uint32_t replica = 0; replica < 2; replica++) {
                assert_int_equal(tensor_kind(cadre_local_results(batch, 0)[replica]),
                    kept == 1 ? TENSOR_MEMORY_HOST : TENSOR_MEMORY_PINNED);
            }
            assert_public_ok(cadre_run(strategy, nothing, NULL, batch, 0, NULL));
        }
        assert_public_ok(cadre_distributed_status(data));
        cadre_strategy_release(strategy);
    }
    tensor_memory_limit(TENSOR_MEMORY_PINNED, 0);
}

/* One that failed leaves the others a process without a strategy. */
static int clean(void **state)
{
    (void)state;
    cadre_strategy_release(strategy_current());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(elements_go_to_the_replicas_as_they_are, clean),
        cmocka_unit_test_teardown(each_replica_may_have_a_pipeline, clean),
        cmocka_unit_test_teardown(a_function_that_fails_is_received, clean),
        cmocka_unit_test_teardown(options_that_go_together, clean),
        cmocka_unit_test_teardown(a_global_batch_is_divided_evenly, clean),
        cmocka_unit_test_teardown(the_end_is_a_status, clean),
        cmocka_unit_test_teardown(an_epoch_has_as_many_steps_as_are_asked_for, clean),
        cmocka_unit_test_teardown(an_endless_dataset_has_epochs_too, clean),
        cmocka_unit_test_teardown(a_spec_covers_all_steps, clean),
        cmocka_unit_test_teardown(who_holds_what_is_known, clean),
        cmocka_unit_test_teardown(values_are_made_for_each_replica, clean),
        cmocka_unit_test_teardown(values_that_do_not_fit_are_refused, clean),
        cmocka_unit_test_teardown(bytes_survive_as_text, clean),
        cmocka_unit_test_teardown(batches_lie_where_the_device_copies_from, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
