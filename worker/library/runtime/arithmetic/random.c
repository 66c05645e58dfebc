/* SPDX-License-Identifier: Apache-2.0
 * The random streams of steps, and tensors of random numbers. */
#include "cadre/random.h"

#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/random/random.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/arithmetic/numbers.h"

static cadre_status replica_stream(const cadre_replica *replica, uint64_t seed, const char *name,
    cadre_random *ret_random, struct cadre_error *error)
{
    if (replica != NULL || context_replica() != NULL) {
        CADRE_TRY(step_require(replica, "cadre_random_stream", error));
        CADRE_ASSERT(replica->id < replica->strategy->replica_count);
        const cadre_strategy *of = replica->strategy;
        *ret_random = random_stream(
            RANDOM_OF_REPLICA, seed, name, strategy_random_key(of, of->step.position), replica->id);
        return CADRE_OK;
    }
    cadre_strategy *strategy = strategy_current();
    CADRE_TRY(strategy_enter_readonly(strategy, "cadre_random_stream", error));
    *ret_random = random_stream(
        RANDOM_OF_STEP, seed, name, strategy_random_key(strategy, strategy_position(strategy)), 0);
    return CADRE_OK;
}

cadre_status cadre_random_stream(
    const cadre_replica *replica, uint64_t seed, const char *name, cadre_random *ret_random)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_random, __func__, "ret_random", &error);
    if (status == CADRE_OK) {
        status = replica_stream(replica, seed, name, ret_random, &error);
    }
    return api_return(status, &error);
}

/* --- tensors --- */

static cadre_status require_floating(
    const char *function, const cadre_tensor *tensor, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    if (dtype < CADRE_F64 || dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given a tensor of type %s; give one of a floating type", function,
            cadre_dtype_name(dtype));
    }
    return CADRE_OK;
}

static void arithmetic_random_store(cadre_tensor *tensor, int64_t i, double value)
{
    CADRE_ASSERT(i < cadre_tensor_count(tensor));
    numbers_store(cadre_tensor_data(tensor), i, cadre_tensor_dtype(tensor), value);
}

cadre_status cadre_random_fill_uniform(
    cadre_random *random, double low, double high, cadre_tensor *tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(random, __func__, "random", &error);
    if (status == CADRE_OK) {
        status = tensor_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = require_floating(__func__, tensor, &error);
    }
    if (status == CADRE_OK && (!isfinite(low) || !isfinite(high) || low > high)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "[%g, %g) is no range to draw from; give two finite numbers, the lower first", low,
            high);
    }
    for (int64_t i = 0; status == CADRE_OK && i < cadre_tensor_count(tensor); i++) {
        arithmetic_random_store(tensor, i, low + (high - low) * cadre_random_f64(random));
    }
    return api_return(status, &error);
}

cadre_status cadre_random_fill_normal(
    cadre_random *random, double mean, double stddev, cadre_tensor *tensor)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(random, __func__, "random", &error);
    if (status == CADRE_OK) {
        status = tensor_require(tensor, __func__, "tensor", &error);
    }
    if (status == CADRE_OK) {
        status = require_floating(__func__, tensor, &error);
    }
    if (status == CADRE_OK && (!isfinite(mean) || !isfinite(stddev) || stddev < 0)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "mean %g and standard deviation %g were given; give finite numbers, the deviation not "
            "negative",
            mean, stddev);
    }
    for (int64_t i = 0; status == CADRE_OK && i < cadre_tensor_count(tensor); i++) {
        arithmetic_random_store(tensor, i, mean + stddev * cadre_random_normal(random));
    }
    return api_return(status, &error);
}
