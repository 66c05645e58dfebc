/* SPDX-License-Identifier: Apache-2.0
 * Optimizers of variables on devices: the bits that one process on the processor gets, dense and by
 * rows, clipped, also where the variable is kept on the host and its gradients are not; and steps
 * that fail. */
#include <stdio.h>
#include <string.h>

#include "gpu_training.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

enum { ROWS = 6, COLUMNS = 5, COUNT = ROWS * COLUMNS, STEPS = 4 };

static const char *const lists[][4] = {
    {"GPU:0", NULL},
    {"GPU:0", "GPU:1", NULL},
    {"CPU:0", "GPU:1", NULL},
};
#define LISTS sizeof lists / sizeof lists[0]

static const cadre_optimizer_options kinds[] = {
    {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.125, .clip_norm = 1},
    {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.125, .clip_value = 0.25},
    {.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 0.1, .nesterov = true, .clip_global_norm = 0.5},
    {.kind = CADRE_OPTIMIZER_RMSPROP, .rate = 0.01, .centered = true, .momentum = 0.5},
    {.kind = CADRE_OPTIMIZER_ADAMW, .rate = 0.01},
    {.kind = CADRE_OPTIMIZER_LAMB, .rate = 0.01, .weight_decay = 0.01},
};
#define KINDS sizeof kinds / sizeof kinds[0]

struct model {
    cadre_strategy *strategy;
    cadre_optimizer *optimizer;
    cadre_variable *variables[3]; /* dense; by rows; dense, kept on the host */
    uint32_t failing;             /* local replica; UINT32_MAX: none */
};

static struct model open_model(cadre_strategy *strategy, const cadre_optimizer_options *options)
{
    static const char *const names[] = {"dense", "rows", "kept"};
    static const int64_t dims[2] = {ROWS, COLUMNS};
    struct model model = {.strategy = strategy, .failing = UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        const cadre_variable_options with = {.keep_on_host = i == 2,
            .initializer = {.kind = CADRE_INITIALIZER_UNIFORM, .low = -1, .high = 1, .seed = 3}};
        assert_public_ok(cadre_variable_create(
            strategy, names[i], CADRE_F32, 2, dims, &with, &model.variables[i]));
    }
    assert_public_ok(cadre_optimizer_create(strategy, options, &model.optimizer));
    assert_public_ok(cadre_optimizer_build(model.optimizer, model.variables, 3));
    return model;
}

static void close_model(struct model *model)
{
    cadre_optimizer_release(model->optimizer);
    cadre_strategy_release(model->strategy);
}

/* In the replica's memory; the caller's. Each has an equal part, of exact numbers. */
static cadre_tensor *gradient_of(cadre_replica *replica, int64_t rows)
{
    const int64_t dims[2] = {rows, COLUMNS};
    cadre_tensor *host = NULL;
    cadre_tensor *here = NULL;
    assert_public_ok(cadre_tensor_create(CADRE_F32, 2, dims, &host));
    float *values = cadre_tensor_data(host);
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        values[i] = (float)(i * 7 % 13 - 6) / 8 / (float)cadre_replica_count(replica);
    }
    assert_public_ok(cadre_tensor_copy_to(replica, host, &here));
    cadre_tensor_release(host);
    return here;
}

/* Rows 4, 1, 2 and 4 once more. */
static cadre_sparse rows_of(cadre_replica *replica)
{
    static const int64_t numbers[] = {4, 1, 2, 4};
    const int64_t dims[1] = {4};
    cadre_sparse sparse = {.values = gradient_of(replica, 4), .rows = ROWS};
    cadre_tensor *host = NULL;
    assert_public_ok(cadre_tensor_create(CADRE_I64, 1, dims, &host));
    memcpy(cadre_tensor_data(host), numbers, sizeof numbers);
    assert_public_ok(cadre_tensor_copy_to(replica, host, &sparse.indices));
    cadre_tensor_release(host);
    return sparse;
}

static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    cadre_tensor *gradients[3] = {gradient_of(replica, ROWS), NULL, gradient_of(replica, ROWS)};
    cadre_sparse sparse[3] = {{0}, rows_of(replica), {0}};
    cadre_status status = cadre_optimizer_apply(replica, model->optimizer, gradients,
        model->variables, 3, &(cadre_apply_options){.sparse = sparse});
    cadre_tensor_release(gradients[0]);
    cadre_tensor_release(gradients[2]);
    cadre_sparse_release(&sparse[1]);
    CADRE_TRY(status);
    return cadre_replica_local_id(replica) == model->failing
               ? cadre_fail(CADRE_DATA_LOSS, "a fault of the test")
               : CADRE_OK;
}

static void assert_alike(const struct model *model, float wanted[3][COUNT])
{
    for (int i = 0; i < 3; i++) {
        const cadre_variable *variable = model->variables[i];
        for (uint32_t local = 0; local < variable->component_count; local++) {
            gpu_assert_f32(variable->components[local].device, variable->components[local].value,
                COUNT, wanted[i]);
        }
    }
}

static void learn_on_the_processor(
    const cadre_optimizer_options *options, float ret_values[3][COUNT])
{
    struct model model = open_model(training_strategy(1), options);
    for (int step = 0; step < STEPS; step++) {
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    }
    for (int i = 0; i < 3; i++) {
        memcpy(ret_values[i], cadre_variable_read(NULL, model.variables[i]), sizeof ret_values[i]);
    }
    close_model(&model);
}

static void every_kind_has_the_bits_of_the_processor(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        float wanted[3][COUNT];
        learn_on_the_processor(&kinds[kind], wanted);
        for (size_t at = 0; at < LISTS; at++) {
            if (!gpu_has(lists[at])) {
                continue;
            }
            struct model model = open_model(gpu_strategy(lists[at]), &kinds[kind]);
            for (int step = 0; step < STEPS; step++) {
                assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
            }
            assert_alike(&model, wanted);
            assert_int_equal(cadre_optimizer_iterations(model.optimizer), STEPS);
            close_model(&model);
        }
    }
}

static void a_step_that_fails_leaves_all_as_it_was(void **state)
{
    (void)state;
    float wanted[3][COUNT];
    learn_on_the_processor(&kinds[4], wanted);
    struct model model = open_model(gpu_strategy(lists[0]), &kinds[4]);
    for (int step = 0; step < STEPS; step++) {
        model.failing = 0;
        assert_public_error(cadre_run(model.strategy, train, &model, NULL, 0, NULL),
            CADRE_DATA_LOSS, "a fault of the test");
        model.failing = UINT32_MAX;
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    }
    assert_alike(&model, wanted);
    assert_null(model.variables[0]->components[0].kept);
    close_model(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_the_bits_of_the_processor),
        cmocka_unit_test(a_step_that_fails_leaves_all_as_it_was),
    };
    gpu_require(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
