/* SPDX-License-Identifier: Apache-2.0
 * Batches and values of replicas on devices (the stand-in's): their memory, and that their contents
 * are those on the CPU. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cross_device.h"
#include "cadre/gpu.h"
#include "step_program.h"
#include "worker/library/device/tensor_memory.h"

#define ROWS  40
#define BATCH 6

/* --- the properties of a replica --- */

static cadre_status look_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const bool *gpus = user;
    bool on_gpu = *gpus && cadre_replica_local_id(replica) < step_gpus;
    int32_t wanted = on_gpu ? (int32_t)cadre_replica_local_id(replica) : -1;
    void *comm = NULL;
    if (cadre_replica_gpu(replica) != wanted || (cadre_replica_stream(replica) != NULL) != on_gpu) {
        return cadre_fail(CADRE_INTERNAL, "it is on GPU %d", (int)cadre_replica_gpu(replica));
    }
    cadre_status status = cadre_replica_nccl_comm(replica, &comm);
    if (!*gpus && status != CADRE_FAILED_PRECONDITION) {
        return cadre_fail(CADRE_INTERNAL, "there is a communicator on the CPU");
    }
    if (*gpus && (status != (step_connected ? CADRE_OK : CADRE_FAILED_PRECONDITION) ||
                     (comm != NULL) != step_connected)) {
        return cadre_fail(CADRE_INTERNAL, "a communicator: %s", cadre_error_message());
    }
    /* With one GPU the other replica is on the host, and that is the reason. */
    const char *reason = cadre_gpu_count(NULL) > 1 ? "/nowhere/libnccl.so" : "is on the host";
    if (*gpus && on_gpu && !step_connected && strstr(cadre_error_message(), reason) == NULL) {
        return cadre_fail(CADRE_INTERNAL, "the reason is not reported: %s", cadre_error_message());
    }
    return cadre_replica_synchronize(replica);
}

static void a_replica_knows_its_device(void **state)
{
    (void)state;
    cadre_strategy *strategies[2] = {step_strategy_cpus(), step_strategy_gpus()};
    for (int i = 0; i < 2; i++) {
        bool gpus = i == 1;
        assert_public_ok(cadre_run(strategies[i], look_step, &gpus, NULL, 0, NULL));
        cadre_strategy_release(strategies[i]);
    }
    assert_int_equal(cadre_replica_gpu(NULL), -1);
    assert_null(cadre_replica_stream(NULL));
    assert_public_error(
        cadre_replica_synchronize(NULL), CADRE_FAILED_PRECONDITION, "outside of a replica");
}

static cadre_status sum_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 0, NULL, &tensor));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    cadre_tensor_release(tensor);
    return status;
}

/* What is on stderr while a strategy on these devices makes two steps. */
static void warnings_of(const char *const devices[], char *text, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/warnings", test_temp_dir());
    int before = dup(STDERR_FILENO);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(before >= 0 && file >= 0);
    assert_true(dup2(file, STDERR_FILENO) >= 0);
    cadre_strategy *strategy = step_strategy(devices, 2);
    cadre_status status = CADRE_OK;
    for (int i = 0; i < 2 && status == CADRE_OK; i++) {
        status = cadre_run(strategy, sum_step, NULL, NULL, 0, NULL);
    }
    cadre_strategy_release(strategy);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t length = pread(file, text, size - 1, 0);
    assert_in_range(length, 0, size - 1);
    text[length] = '\0';
    close(before);
    close(file);
    assert_int_equal(status, CADRE_OK);
}

static void gpus_that_are_not_connected_are_reported_of_once(void **state)
{
    (void)state;
    static const char reported[] = "the GPUs of this job are not connected";
    char text[2000];
    warnings_of((const char *const[]){"GPU:0", "CPU:0"}, text, sizeof text);
    const char *first = strstr(text, reported);
    assert_non_null(first);
    assert_null(strstr(first + 1, reported));
    assert_null(strstr(first + 1, "warning"));
    assert_non_null(strstr(text, "a replica of this task is on the host"));
    if (cadre_gpu_count(NULL) > 1) {
        warnings_of((const char *const[]){"GPU:0", "GPU:1"}, text, sizeof text);
        assert_int_equal(strstr(text, reported) == NULL, step_connected);
        assert_null(strstr(text, "is on the host"));
    }
    warnings_of((const char *const[]){"CPU:0", "CPU:1"}, text, sizeof text);
    assert_string_equal(text, "");
}

/* --- batches --- */

/* Whatever is enabled. */
static void the_process_lists_its_gpus(void **state)
{
    (void)state;
    const char *const *devices;
    const char *const *again;
    uint32_t gpus = cadre_gpu_count(NULL);
    uint32_t count;
    assert_public_ok(cadre_devices(CADRE_PHYSICAL_DEVICES, &devices, &count));
    assert_int_equal(count, 1 + gpus);
    assert_non_null(strstr(devices[0], "device:CPU:0"));
    for (uint32_t i = 0; i < gpus; i++) {
        char end[32];
        snprintf(end, sizeof end, "device:GPU:%u", i);
        assert_string_equal(strstr(devices[1 + i], "device:"), end);
    }
    assert_public_ok(cadre_devices(CADRE_LOGICAL_DEVICES, &again, &count));
    assert_ptr_equal(again[count - 1], devices[gpus]);
}

struct reading {
    cadre_input_options options;
    bool on_host;
    bool strings;
    uint32_t steps;
};

/* Returns its inputs; a string must be on the host on any device. */
static cadre_status read_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct reading *reading = user;
    int32_t wanted = reading->on_host ? -1 : cadre_replica_gpu(replica);
    if (training_gpu_of(inputs[0]) != wanted) {
        return cadre_fail(
            CADRE_INTERNAL, "its input is on GPU %d", (int)training_gpu_of(inputs[0]));
    }
    if (reading->strings && training_gpu_of(inputs[1]) != -1) {
        return cadre_fail(CADRE_INTERNAL, "its strings are on a GPU");
    }
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return CADRE_OK;
}

static cadre_status name(const cadre_element *input, cadre_element *output, void *user)
{
    (void)user;
    const cadre_string text = {.bytes = "row", .size = 3};
    output->count = 2;
    output->tensors[0] = cadre_tensor_retain(input->tensors[0]);
    return cadre_tensor_from_data(CADRE_STRING, 0, NULL, &text, &output->tensors[1]);
}

static cadre_dataset *make_dataset(bool strings)
{
    cadre_dataset *data = cadre_dataset_range(0, ROWS, 1);
    if (strings) {
        data = cadre_dataset_map(data, name, NULL, NULL);
    }
    return cadre_dataset_batch(data, BATCH, false);
}

static cadre_status make_pipeline(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)user;
    *ret_data =
        cadre_dataset_batch(cadre_dataset_range(context->input_pipeline_id, ROWS, 2), 3, false);
    return CADRE_OK;
}

static cadre_distributed_dataset *distribute(cadre_strategy *strategy, struct reading *reading)
{
    cadre_distributed_dataset *data;
    if (reading->options.replication_mode == CADRE_PER_REPLICA) {
        assert_public_ok(cadre_distribute_datasets_from_function(
            strategy, make_pipeline, NULL, &reading->options, &data));
    } else {
        assert_public_ok(cadre_distribute_dataset(
            strategy, make_dataset(reading->strings), &reading->options, &data));
    }
    return data;
}

static void compare_reading(struct reading *reading)
{
    cadre_strategy *strategies[2] = {step_strategy_gpus(), step_strategy_cpus()};
    cadre_distributed_dataset *data[2];
    cadre_per_replica *batches[2];
    cadre_per_replica *results[2];
    for (int i = 0; i < 2; i++) {
        data[i] = distribute(strategies[i], reading);
    }
    while (cadre_next_epoch(data[0], 3, NULL)) {
        assert_true(cadre_next_epoch(data[1], 3, NULL));
        while (cadre_next(data[0], &batches[0]) == CADRE_OK) {
            assert_public_ok(cadre_next(data[1], &batches[1]));
            for (int i = 0; i < 2; i++) {
                assert_public_ok(
                    cadre_run(strategies[i], read_step, reading, batches[i], 1, &results[i]));
            }
            for (int r = 0; r < STEP_REPLICAS; r++) {
                step_assert_same(
                    cadre_local_results(results[0], 0)[r], cadre_local_results(results[1], 0)[r]);
            }
            reading->steps++;
        }
        assert_public_ok(cadre_distributed_status(data[0]));
    }
    cadre_strategy_release(strategies[0]);
    cadre_strategy_release(strategies[1]);
    assert_true(reading->steps >= 18);
}

static void batches_are_where_they_are_to_be(void **state)
{
    (void)state;
    struct reading plain = {0};
    struct reading strings = {.strings = true};
    struct reading host = {.options = {.keep_on_host = true}, .on_host = true};
    struct reading ahead = {.options = {.per_replica_buffer = 3, .prefetch = 5}};
    struct reading own = {.options = {.replication_mode = CADRE_PER_REPLICA}};
    struct reading placed = {
        .options = {
            .replication_mode = CADRE_PER_REPLICA, .copy_to_device = true, .keep_on_host = true}};
    compare_reading(&plain);
    compare_reading(&strings);
    compare_reading(&host);
    compare_reading(&ahead);
    compare_reading(&own);
    compare_reading(&placed);
}

static cadre_status count_up(const cadre_element *in, cadre_element *out, void *user)
{
    (void)user;
    const int64_t count = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) % 4;
    out->count = 1;
    return cadre_tensor_create(CADRE_I64, 1, &count, &out->tensors[0]);
}

/* The first batch of unequal rows, printed, and how its rows are joined. */
static void look_at_rows(cadre_strategy *strategy, char **ret_text, cadre_tensor *ret_parts[2])
{
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    size_t bytes = 0;
    cadre_dataset *rows = cadre_dataset_map(cadre_dataset_range(0, ROWS, 1), count_up, NULL, NULL);
    rows = cadre_dataset_ragged_batch(rows, BATCH, false);
    assert_public_ok(cadre_distribute_dataset(strategy, rows, NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    FILE *to = open_memstream(ret_text, &bytes);
    assert_non_null(to);
    assert_public_ok(cadre_value_print(batch, to));
    fclose(to);
    assert_public_ok(cadre_gather(strategy, batch, 0, ret_parts));
}

static void unequal_rows_are_the_same(void **state)
{
    (void)state;
    cadre_strategy *strategies[2] = {step_strategy_gpus(), step_strategy_cpus()};
    cadre_tensor *parts[2][2];
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        look_at_rows(strategies[i], &texts[i], parts[i]);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_non_null(strstr(texts[0], "<RaggedTensor"));
    for (int i = 0; i < 2; i++) {
        step_assert_same(parts[0][i], parts[1][i]);
        cadre_tensor_release(parts[0][i]);
        cadre_tensor_release(parts[1][i]);
        free(texts[i]);
        cadre_strategy_release(strategies[i]);
    }
}

/* Batches that are not run, released after others that were read behind them. */
static void batches_that_are_skipped_are_released(void **state)
{
    (void)state;
    cadre_strategy *strategy = step_strategy_gpus();
    struct reading reading = {.options = {.prefetch = 4, .per_replica_buffer = 4}};
    cadre_distributed_dataset *data = distribute(strategy, &reading);
    cadre_per_replica *batch;
    assert_true(cadre_next_epoch(data, 2, NULL));
    assert_public_ok(cadre_next(data, &batch));
    cadre_tensor *kept = cadre_tensor_retain(cadre_local_results(batch, 0)[1]);
    assert_public_ok(cadre_next(data, &batch));
    assert_true(cadre_next_epoch(data, 2, NULL)); /* batches that were read ahead are dropped */
    assert_public_ok(cadre_next(data, &batch));
    step_assert_same(kept, cadre_local_results(batch, 0)[1]);
    cadre_strategy_release(strategy);
    cadre_tensor_release(kept);
}

/* After the first steps no page-locked memory is allocated from the system: at most when the reader
 * is further ahead than it ever was, which is bounded by its depth, not by the number of
 * batches. */
static void the_steady_state_allocates_no_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* nothing is kept under this sanitizer */
#endif
    cadre_strategy *strategy = step_strategy_gpus();
    struct reading reading = {0};
    cadre_distributed_dataset *data = distribute(strategy, &reading);
    cadre_per_replica *batch;
    cadre_per_replica *result;
    const uint64_t epochs = 64;
    uint64_t gets = 0;
    uint64_t epoch;
    while (cadre_next_epoch(data, epochs, &epoch)) {
        gets = epoch == 4 ? tensor_memory_counts(TENSOR_MEMORY_PINNED).gets : gets;
        while (cadre_next(data, &batch) == CADRE_OK) {
            assert_public_ok(cadre_run(strategy, read_step, &reading, batch, 1, &result));
        }
    }
    assert_true(gets > 0);
    assert_true(tensor_memory_counts(TENSOR_MEMORY_PINNED).gets - gets < epochs / 4);
    cadre_strategy_release(strategy);
}

/* --- values --- */

static cadre_status make_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    const int64_t dims[2] = {2, 3};
    CADRE_TRY(step_vector(replica, CADRE_F32, 2, dims, &outputs[0]));
    return step_vector(replica, CADRE_I32, 2, dims, &outputs[1]);
}

#define RESULTS 8

static void reduce_all(cadre_strategy *strategy, cadre_tensor *ret[RESULTS])
{
    const int32_t axes[2] = {0, 1};
    cadre_per_replica *made[2];
    cadre_per_replica *reduced;
    assert_public_ok(cadre_run(strategy, make_step, NULL, NULL, 2, made));
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, made[0], CADRE_AXIS_NONE, &ret[0]));
    assert_public_ok(cadre_reduce(strategy, CADRE_MEAN, made[1], 0, &ret[1]));
    assert_public_ok(cadre_reduce_values(strategy, CADRE_SUM, made[0], axes, 2, &ret[2]));
    assert_public_ok(cadre_gather(strategy, made[0], 1, &ret[3]));
    assert_public_ok(cadre_gather(strategy, made[1], 0, &ret[4]));
    assert_public_ok(cadre_reduce_to(strategy, CADRE_SUM, made[0], NULL, &reduced));
    ret[5] = cadre_tensor_retain(cadre_local_results(reduced, 0)[1]);
    cadre_per_replica_release(reduced);
    const cadre_per_replica *const batch[1] = {made[1]};
    assert_public_ok(cadre_batch_reduce_to(strategy, CADRE_SUM, batch, NULL, 1, &reduced));
    ret[6] = cadre_tensor_retain(cadre_local_results(reduced, 0)[0]);
    cadre_per_replica_release(reduced);
    assert_public_ok(cadre_reduce_tensor(
        strategy, CADRE_MEAN, cadre_local_results(made[0], 0)[1], axes, 1, &ret[7]));
}

static void values_of_devices_are_combined_on_the_host(void **state)
{
    (void)state;
    cadre_strategy *strategies[2] = {step_strategy_gpus(), step_strategy_cpus()};
    cadre_tensor *results[2][RESULTS];
    for (int i = 0; i < 2; i++) {
        reduce_all(strategies[i], results[i]);
    }
    for (int i = 0; i < RESULTS; i++) {
        assert_int_equal(training_gpu_of(results[0][i]), -1);
        step_assert_same(results[0][i], results[1][i]);
        cadre_tensor_release(results[0][i]);
        cadre_tensor_release(results[1][i]);
    }
    cadre_strategy_release(strategies[0]);
    cadre_strategy_release(strategies[1]);
}

/* --- merge calls --- */

static cadre_status merge(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)user;
    int32_t gpu = step_gpus > 1 ? 1 : -1;
    if (training_gpu_of(cadre_local_results(inputs[0], 0)[1]) != gpu) {
        return cadre_fail(CADRE_INTERNAL, "the input of replica 1 is not on GPU %d", (int)gpu);
    }
    return cadre_reduce_to(strategy, CADRE_SUM, inputs[0], NULL, &outputs[0]);
}

static cadre_status merge_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const int64_t dims[1] = {3};
    cadre_tensor *own;
    CADRE_TRY(step_vector(replica, CADRE_F32, 1, dims, &own));
    cadre_status status = cadre_merge_call(replica, merge, user, &own, 1, 1, outputs);
    cadre_tensor_release(own);
    return status;
}

static void a_merge_call_is_given_tensors_of_devices(void **state)
{
    (void)state;
    cadre_strategy *strategy = step_strategy_gpus();
    cadre_per_replica *result;
    assert_public_ok(cadre_run(strategy, merge_step, NULL, NULL, 1, &result));
    step_assert_f32(cadre_local_results(result, 0)[1], 3, (const float[]){1, 4, 7});
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    step_program_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_lists_its_gpus),
        cmocka_unit_test(a_replica_knows_its_device),
        cmocka_unit_test(gpus_that_are_not_connected_are_reported_of_once),
        cmocka_unit_test(batches_are_where_they_are_to_be),
        cmocka_unit_test(unequal_rows_are_the_same),
        cmocka_unit_test(batches_that_are_skipped_are_released),
        cmocka_unit_test(the_steady_state_allocates_no_memory),
        cmocka_unit_test(values_of_devices_are_combined_on_the_host),
        cmocka_unit_test(a_merge_call_is_given_tensors_of_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
