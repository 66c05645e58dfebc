/* SPDX-License-Identifier: Apache-2.0
 * Each kind of optimizer beside its published formula, to 1e-6, with any number of replicas; and
 * the same bits with any number, where sums are exact. */
#include <math.h>
#include <string.h>

#include "reference.h"
#include "tests/unit/runtime/training.h"

enum { COUNT = 37, STEPS = 12 };

static const cadre_optimizer_options kinds[] = {
    {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.1},
    {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.1, .weight_decay = 0.01},
    {.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 0.05, .momentum = 0.9},
    {.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 0.05, .momentum = 0.8, .nesterov = true},
    {.kind = CADRE_OPTIMIZER_ADAGRAD, .rate = 0.2, .initial_accumulator = 0.1, .epsilon = 1e-7},
    {.kind = CADRE_OPTIMIZER_RMSPROP, .rate = 0.01, .rho = 0.9, .epsilon = 1e-7},
    {.kind = CADRE_OPTIMIZER_RMSPROP,
        .rate = 0.01,
        .rho = 0.8,
        .momentum = 0.5,
        .centered = true,
        .epsilon = 1e-3},
    {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7},
    {.kind = CADRE_OPTIMIZER_ADAMW,
        .rate = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.99,
        .epsilon = 1e-7,
        .weight_decay = 0.004},
    {.kind = CADRE_OPTIMIZER_LAMB,
        .rate = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .epsilon = 1e-6,
        .weight_decay = 0.01},
};

/* All that is drawn is a small multiple of a power of two: sums over replicas are exact. */
static double number(uint32_t seed, size_t i)
{
    return ((double)((seed * 2654435761u + (uint32_t)i * 40503u) >> 20) - 2048) / 4096;
}

static cadre_status begin_with(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        if (dtype == CADRE_F64) {
            ((double *)values)[i] = number(7, (size_t)i);
        } else {
            ((float *)values)[i] = (float)number(7, (size_t)i);
        }
    }
    return CADRE_OK;
}

struct training {
    cadre_strategy *strategy;
    cadre_optimizer *optimizer;
    cadre_variable *variable;
    cadre_dtype dtype;
    uint32_t step;
};

static double gradient_of(uint32_t step, size_t i)
{
    return number(100 + step, i);
}

/* Each replica has an equal part of the gradient. */
static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct training *training = user;
    const int64_t dims[1] = {COUNT};
    CADRE_RELEASE_AT_EXIT(tensor) gradient = NULL;
    CADRE_TRY(cadre_tensor_create(training->dtype, 1, dims, &gradient));
    for (size_t i = 0; i < COUNT; i++) {
        double part = gradient_of(training->step, i) / cadre_replica_count(replica);
        if (training->dtype == CADRE_F64) {
            ((double *)cadre_tensor_data(gradient))[i] = part;
        } else {
            ((float *)cadre_tensor_data(gradient))[i] = (float)part;
        }
    }
    return cadre_optimizer_apply(
        replica, training->optimizer, &gradient, &training->variable, 1, NULL);
}

static struct training open_training(
    uint32_t replicas, cadre_dtype dtype, const cadre_optimizer_options *options)
{
    const int64_t dims[1] = {COUNT};
    struct training training = {.strategy = training_strategy(replicas), .dtype = dtype};
    const cadre_variable_options with = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = begin_with}};
    assert_public_ok(
        cadre_variable_create(training.strategy, "w", dtype, 1, dims, &with, &training.variable));
    assert_public_ok(cadre_optimizer_create(training.strategy, options, &training.optimizer));
    assert_public_ok(cadre_optimizer_build(training.optimizer, &training.variable, 1));
    return training;
}

static void close_training(struct training *training)
{
    cadre_optimizer_release(training->optimizer);
    cadre_strategy_release(training->strategy);
}

static double element(const cadre_variable *variable, size_t i)
{
    const void *values = cadre_variable_read(NULL, variable);
    assert_non_null(values);
    return cadre_variable_dtype(variable) == CADRE_F64 ? ((const double *)values)[i]
                                                       : (double)((const float *)values)[i];
}

static void assert_near(const cadre_variable *variable, const double *wanted, double within)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!(fabs(element(variable, i) - wanted[i]) <= within)) {
            fail_msg("%s[%zu] is %.9g, and the formula says %.9g", cadre_variable_name(variable), i,
                element(variable, i), wanted[i]);
        }
    }
}

static void run_kind(const cadre_optimizer_options *options, uint32_t replicas, cadre_dtype dtype,
    char ret_bits[COUNT * 8])
{
    struct training training = open_training(replicas, dtype, options);
    struct reference reference = {.options = *options, .count = COUNT};
    double gradient[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        reference.w[i] = number(7, i);
        reference.a[i] = options->kind == CADRE_OPTIMIZER_ADAGRAD ? 0.1 : 0;
    }
    for (training.step = 0; training.step < STEPS; training.step++) {
        for (size_t i = 0; i < COUNT; i++) {
            gradient[i] = gradient_of(training.step, i);
        }
        assert_public_ok(cadre_run(training.strategy, train, &training, NULL, 0, NULL));
        reference_update(&reference, gradient);
        assert_near(training.variable, reference.w, dtype == CADRE_F64 ? 1e-12 : 1e-6);
        assert_int_equal(cadre_optimizer_iterations(training.optimizer), training.step + 1);
    }
    memcpy(
        ret_bits, cadre_variable_read(NULL, training.variable), COUNT * cadre_dtype_bytes(dtype));
    close_training(&training);
}

static void test_every_kind_is_as_its_formula(void **state)
{
    (void)state;
    static const uint32_t replicas[] = {1, 2, 4};
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        for (int wide = 0; wide < 2; wide++) {
            cadre_dtype dtype = wide != 0 ? CADRE_F64 : CADRE_F32;
            char bits[3][COUNT * 8] = {{0}};
            for (size_t i = 0; i < 3; i++) {
                run_kind(&kinds[kind], replicas[i], dtype, bits[i]);
            }
            assert_memory_equal(bits[0], bits[1], sizeof bits[0]);
            assert_memory_equal(bits[0], bits[2], sizeof bits[0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_as_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
