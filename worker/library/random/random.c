/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/random/random.h"

#include <math.h>

#include "common/pure/philox.h"
#include "common/pure/prng.h"
#include "worker/library/device/argument.h"

#define TWO_PI 6.28318530717958647692

static uint64_t name_key(uint64_t key, const char *name)
{
    for (; name != NULL && *name != '\0'; name++) {
        key = prng_mix(key ^ prng_mix((uint64_t)(unsigned char)*name));
    }
    return key;
}

cadre_random random_stream(enum random_domain random_domain, uint64_t seed, const char *name,
    uint64_t major, uint64_t minor)
{
    uint64_t key = prng_mix(name_key(prng_mix(seed ^ prng_mix((uint64_t)random_domain)), name));
    uint64_t at = prng_mix(prng_mix(major ^ key) ^ minor);
    return (cadre_random){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, 0, (uint32_t)at, (uint32_t)(at >> 32)},
    };
}

cadre_status cadre_random_for_sample(
    uint64_t seed, const char *name, uint64_t epoch, uint64_t sample, cadre_random *ret_random)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_random, __func__, "ret_random", &error);
    if (status == CADRE_OK) {
        *ret_random = random_stream(RANDOM_OF_SAMPLE, seed, name, epoch, sample);
    }
    if (status != CADRE_OK) {
        error.code = status;
        cadre_error_publish(&error);
    }
    return status;
}

cadre_random cadre_random_split(const cadre_random *random, uint64_t number)
{
    uint64_t key = random->key[0] | (uint64_t)random->key[1] << 32;
    uint64_t at = random->counter[2] | (uint64_t)random->counter[3] << 32;
    return random_stream(RANDOM_OF_SPLIT, key, NULL, at, number);
}

static uint32_t draw_word(cadre_random *random)
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
    uint64_t low = draw_word(random);
    return low | (uint64_t)draw_word(random) << 32;
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
