/* SPDX-License-Identifier: Apache-2.0
 * Steps with kernels: the order of their work, a step whose kernels fail, and a device that
 * hangs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/gpu.h"
#include "common/base/fault.h"
#include "step_faults.h"
#include "step_kernels.h"
#include "step_program.h"
#include "tests/lib/program.h"

#define COUNT 100
#define ROWS  48

static const char *self;

struct model {
    cadre_variable *weights;
    cadre_tensor *gradient[STEP_REPLICAS];
    bool starts;       /* the all-reduce is started, then waited for */
    bool held;         /* the stream of replica 0 waits until it is started */
    uint32_t fails_at; /* of applies: kernels fail from this one on; 0: none */
    uint32_t applies;
};

static cadre_status check(int error)
{
    return error == 0 ? CADRE_OK : cadre_fail(CADRE_INTERNAL, "a launch: error %d", error);
}

static void update(cadre_replica *replica, void *user)
{
    struct model *model = user;
    uint32_t id = cadre_replica_id(replica);
    if (model->fails_at > 0 && id == 0 && ++model->applies == model->fails_at) {
        step_fault_kernel();
    }
    float *weights = cadre_variable_write(replica, model->weights);
    step_kernel_add(cadre_replica_stream(replica), weights,
        cadre_tensor_const_data(model->gradient[id]), 0.5F, COUNT);
    cadre_tensor_release(model->gradient[id]);
    model->gradient[id] = NULL;
}

static cadre_status reduce(cadre_replica *replica, struct model *model, cadre_tensor **gradient)
{
    cadre_collective *handle;
    bool holds = model->held && cadre_replica_id(replica) == 0;
    if (!model->starts) {
        return cadre_all_reduce(replica, CADRE_MEAN, gradient, 1, NULL);
    }
    CADRE_TRY(cadre_all_reduce_start(replica, CADRE_MEAN, gradient, 1, NULL, &handle));
    if (holds) {
        step_fault_release(cadre_replica_stream(replica));
    }
    return cadre_collective_wait(handle);
}

static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct model *model = user;
    void *stream = cadre_replica_stream(replica);
    const int64_t dims[1] = {COUNT};
    cadre_tensor *gradient;
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &gradient));
    outputs[0] = gradient;
    if (model->held && cadre_replica_id(replica) == 0) {
        step_fault_hold(stream);
    }
    CADRE_TRY(check(step_kernel_sum(stream, cadre_tensor_data(gradient),
        cadre_tensor_const_data(inputs[0]), cadre_tensor_rows(inputs[0]), COUNT)));
    CADRE_TRY(reduce(replica, model, &outputs[0]));
    CADRE_TRY(check(step_kernel_add(stream, cadre_tensor_data(gradient),
        cadre_variable_read(replica, model->weights), -0.25F, COUNT)));
    model->gradient[cadre_replica_id(replica)] = cadre_tensor_retain(gradient);
    return cadre_on_apply(replica, update, model);
}

/* What the weights come to after two epochs. */
static cadre_status train(cadre_strategy *strategy, struct model *model, float weights[COUNT])
{
    const int64_t dims[1] = {COUNT};
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *result;
    assert_public_ok(
        cadre_variable_create(strategy, "weights", CADRE_F32, 1, dims, NULL, &model->weights));
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, ROWS, 1), 7, false), NULL, &data));
    while (cadre_next_epoch(data, 2, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_TRY(cadre_run(strategy, train_step, model, batch, 1, &result));
        }
    }
    const float *read = cadre_variable_read(NULL, model->weights);
    if (read == NULL) {
        return CADRE_INTERNAL;
    }
    memcpy(weights, read, COUNT * sizeof weights[0]);
    return CADRE_OK;
}

static void drop(struct model *model)
{
    for (int r = 0; r < STEP_REPLICAS; r++) {
        cadre_tensor_release(model->gradient[r]);
        model->gradient[r] = NULL;
    }
}

static void training_comes_to_what_it_comes_to_on_the_cpu(void **state)
{
    (void)state;
    float wanted[COUNT];
    float is[COUNT];
    struct model model = {0};
    cadre_strategy *strategy = step_strategy_cpus();
    assert_public_ok(train(strategy, &model, wanted));
    assert_int_equal(cadre_finish(strategy), 0);
    for (int i = 0; i < 3; i++) {
        struct model other = {.starts = i > 0, .held = i > 1};
        strategy = step_strategy_gpus();
        assert_public_ok(train(strategy, &other, is));
        assert_memory_equal(is, wanted, sizeof is);
        assert_int_equal(cadre_finish(strategy), 0);
    }
}

/* --- failures --- */

struct failing {
    uint32_t wild; /* replica whose kernel fails, + 1; 0: none */
    bool fails;    /* replica 1 fails by itself */
    bool hangs;    /* ... while the stream of replica 0 waits */
};

static cadre_status failing_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct failing *failing = user;
    void *stream = cadre_replica_stream(replica);
    uint32_t id = cadre_replica_id(replica);
    const int64_t dims[1] = {COUNT};
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &outputs[0]));
    CADRE_TRY(cadre_barrier());
    if (failing->hangs && id == 0) {
        step_fault_hold(stream);
    }
    if (failing->wild == id + 1) {
        step_fault_kernel();
    }
    if (failing->wild == 0 || failing->wild == id + 1) {
        CADRE_TRY(check(step_kernel_add(
            stream, cadre_tensor_data(outputs[0]), cadre_tensor_data(outputs[0]), 1, COUNT)));
    }
    if (failing->fails && id == 1) {
        return cadre_fail(CADRE_DATA_LOSS, "it is damaged");
    }
    return CADRE_OK;
}

static void a_kernel_that_fails_fails_the_step_for_good(void **state)
{
    (void)state;
    for (uint32_t replica = 0; replica < step_gpus; replica++) {
        struct failing failing = {.wild = replica + 1};
        cadre_strategy *strategy = step_strategy_gpus();
        cadre_per_replica *result;
        char part[64];
        snprintf(part, sizeof part, "replica %u: work on its GPU %u failed", replica, replica);
        assert_public_error(
            cadre_run(strategy, failing_step, &failing, NULL, 1, &result), CADRE_INTERNAL, part);
        assert_non_null(strstr(
            cadre_error_message(), "(a kernel launched before failed): cudaErrorIllegalAddress"));
        assert_non_null(strstr(cadre_error_message(), "takes no more work of this process"));
        struct failing none = {0};
        assert_public_error(
            cadre_run(strategy, failing_step, &none, NULL, 1, &result), CADRE_INTERNAL, part);
        cadre_strategy_release(strategy);
        if (!step_fault_heal()) {
            return;
        }
    }
}

static void a_function_that_fails_with_work_under_way_is_undone(void **state)
{
    (void)state;
    cadre_strategy *strategy = step_strategy_gpus();
    cadre_per_replica *result;
    for (int i = 0; i < 3; i++) {
        struct failing failing = {.fails = i < 2};
        cadre_status status = cadre_run(strategy, failing_step, &failing, NULL, 1, &result);
        assert_int_equal(status, i < 2 ? CADRE_DATA_LOSS : CADRE_OK);
    }
    cadre_strategy_release(strategy);
}

static void what_apply_functions_launch_fails_the_next_step_or_the_end(void **state)
{
    (void)state;
    float weights[COUNT];
    if (!step_fault_heal()) {
        skip(); /* the device is lost by the test before */
    }
    for (uint32_t at = 3; at <= 14; at += 11) { /* 14 steps in all */
        struct model model = {.fails_at = at};
        cadre_strategy *strategy = step_strategy_gpus();
        cadre_status status = train(strategy, &model, weights);
        if (at == 3) { /* at the end it is the device whose weights are read, or the other one */
            assert_int_equal(status, CADRE_INTERNAL);
        }
        assert_int_equal(model.applies, at);
        assert_int_equal(cadre_finish(strategy), 1);
        /* Either the library or the next launch of the program finds it first. */
        assert_true(strstr(cadre_error_message(), "cudaErrorIllegalAddress") != NULL ||
                    strstr(cadre_error_message(), "a launch: error") != NULL);
        drop(&model);
        step_fault_heal();
    }
}

/* --- a device that hangs --- */

static int hang(void)
{
    struct failing failing = {.fails = true, .hangs = true};
    cadre_strategy *strategy = step_strategy_gpus();
    cadre_per_replica *result;
    fault_arm("replica.rest", 1); /* a short patience */
    cadre_run(strategy, failing_step, &failing, NULL, 1, &result);
    return 0;
}

static void a_device_that_does_not_come_to_rest_ends_the_process(void **state)
{
    (void)state;
    const char *const argv[] = {self, "hang", NULL};
    struct program_result result;
    program_run(&(struct program_spec){.argv = argv}, &result);
    if (result.signal != SIGKILL || strstr(result.err, "GPU 0 goes on with work") == NULL) {
        fail_msg("signal %d, exit code %d: %s", result.signal, result.exit_code, result.err);
    }
    program_result_free(&result);
}

int main(int argc, char **argv)
{
    step_program_begin(argc, argv);
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "hang") == 0) {
        return hang();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_comes_to_what_it_comes_to_on_the_cpu),
        cmocka_unit_test(a_function_that_fails_with_work_under_way_is_undone),
        cmocka_unit_test(a_device_that_does_not_come_to_rest_ends_the_process),
        /* The last ones: a GPU is lost with this. */
        cmocka_unit_test(a_kernel_that_fails_fails_the_step_for_good),
        cmocka_unit_test(what_apply_functions_launch_fails_the_next_step_or_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
