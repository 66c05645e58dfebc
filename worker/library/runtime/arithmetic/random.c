/* SPDX-License-Identifier: Apache-2.0
 * Streams: the key is of the seed, the name and who draws; the counter is a place in the stream. */
#include "cadre/random.h"

#include <math.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/philox.h"
#include "common/pure/prng.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/arithmetic/numbers.h"

#define TWO_PI 6.28318530717958647692

/* Who draws, so that no two kinds of streams are the same. */
enum drawer { OF_REPLICA = 1, OF_STEP, OF_SAMPLE, OF_SPLIT };

static uint64_t name_key(uint64_t key, const char *name)
{
    for (; name != NULL && *name != '\0'; name++) {
        key = prng_mix(key ^ prng_mix((uint64_t)(unsigned char)*name));
    }
    return key;
}

static cadre_random stream(
    enum drawer drawer, uint64_t seed, const char *name, uint64_t major, uint64_t minor)
{
    uint64_t key = prng_mix(name_key(prng_mix(seed ^ prng_mix((uint64_t)drawer)), name));
    uint64_t at = prng_mix(prng_mix(major ^ key) ^ minor);
    return (cadre_random){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, 0, (uint32_t)at, (uint32_t)(at >> 32)},
    };
}

static cadre_status replica_stream(const cadre_replica *replica, uint64_t seed, const char *name,
    cadre_random *ret_random, struct cadre_error *error)
{
    if (replica != NULL || context_replica() != NULL) {
        CADRE_TRY(step_require(replica, "cadre_random_stream", error));
        CADRE_ASSERT(replica->id < replica->strategy->replica_count);
        *ret_random = stream(OF_REPLICA, seed, name, replica->strategy->step.position, replica->id);
        return CADRE_OK;
    }
    cadre_strategy *strategy = strategy_current();
    CADRE_TRY(strategy_look(strategy, "cadre_random_stream", error));
    *ret_random = stream(OF_STEP, seed, name, strategy_position(strategy), 0);
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
    return border(status, &error);
}

cadre_status cadre_random_for_sample(
    uint64_t seed, const char *name, uint64_t epoch, uint64_t sample, cadre_random *ret_random)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_random, __func__, "ret_random", &error);
    if (status == CADRE_OK) {
        *ret_random = stream(OF_SAMPLE, seed, name, epoch, sample);
    }
    return border(status, &error);
}

cadre_random cadre_random_split(const cadre_random *random, uint64_t number)
{
    uint64_t key = random->key[0] | (uint64_t)random->key[1] << 32;
    uint64_t at = random->counter[2] | (uint64_t)random->counter[3] << 32;
    return stream(OF_SPLIT, key, NULL, at, number);
}

uint32_t cadre_random_u32(cadre_random *random)
{
    if (random->left == 0) {
        philox(random->counter, random->key, random->drawn);
        random->left = 4;
        random->counter[0]++;
        random->counter[1] += random->counter[0] == 0 ? 1 : 0;
    }
    return random->drawn[4 - random->left--];
}

uint64_t cadre_random_u64(cadre_random *random)
{
    uint64_t low = cadre_random_u32(random);
    return low | (uint64_t)cadre_random_u32(random) << 32;
}

float cadre_random_f32(cadre_random *random)
{
    return (float)(cadre_random_u32(random) >> 8) * 0x1p-24f;
}

double cadre_random_f64(cadre_random *random)
{
    return (double)(cadre_random_u64(random) >> 11) * 0x1p-53;
}

double cadre_random_normal(cadre_random *random)
{
    double radius = sqrt(-2 * log(1 - cadre_random_f64(random))); /* of (0, 1] */
    return radius * cos(TWO_PI * cadre_random_f64(random));
}

uint64_t cadre_random_below(cadre_random *random, uint64_t bound)
{
    return (uint64_t)(((cadre_u128)cadre_random_u64(random) * bound) >> 64);
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

static void store(cadre_tensor *tensor, int64_t i, double value)
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
        store(tensor, i, low + (high - low) * cadre_random_f64(random));
    }
    return border(status, &error);
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
        store(tensor, i, mean + stddev * cadre_random_normal(random));
    }
    return border(status, &error);
}
