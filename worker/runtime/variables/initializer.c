/* SPDX-License-Identifier: Apache-2.0
 * Initial values. The draws are keyed by the seed and the variable's name, so that two variables
 * with one seed differ, and adding a variable does not change the others. */
#include <math.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/device/argument.h"
#include "worker/runtime/variables/variable.h"
#include "worker/runtime/variables/variable_numbers.h"

#define TWO_PI 6.28318530717958647692

/* 53 random bits as a number in [0, 1). */
static double unit(struct prng *prng)
{
    return (double)(prng_next(prng) >> 11) * 0x1p-53;
}

/* Box-Muller, one of the two values. */
static double normal(struct prng *prng)
{
    double radius = sqrt(-2.0 * log(1.0 - unit(prng)));
    return radius * cos(TWO_PI * unit(prng));
}

static struct prng seeded(uint64_t seed, const char *name)
{
    uint64_t key = prng_mix(seed);
    for (size_t i = 0; name[i] != '\0'; i++) {
        key = prng_mix(key ^ (uint64_t)(unsigned char)name[i]);
    }
    return (struct prng){.state = key};
}

static cadre_status call(const cadre_initializer *initializer, const char *name, cadre_dtype dtype,
    int64_t count, void *values, struct cadre_error *error)
{
    if (initializer->function == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': its initializer has no function; set initializer.function", name);
    }
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    cadre_status status =
        argument_status(initializer->function(values, count, dtype, initializer->user));
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    const char *message = cadre_error_message();
    return cadre_error_set(error, status, "variable '%s': its initializer failed: %s", name,
        message[0] != '\0' ? message : "it left no message; say why with cadre_fail");
}

cadre_status initializer_fill(const cadre_initializer *initializer, const char *name,
    cadre_dtype dtype, int64_t count, void *values, struct cadre_error *error)
{
    bool random = initializer->kind == CADRE_INITIALIZER_UNIFORM ||
                  initializer->kind == CADRE_INITIALIZER_NORMAL;
    if (random && dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': random initial values need a floating type, not %s; use "
            "CADRE_INITIALIZER_FUNCTION for others",
            name, cadre_dtype_name(dtype));
    }
    if (initializer->kind == CADRE_INITIALIZER_UNIFORM &&
        !(initializer->low <= initializer->high)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': its initial values are to be uniform in [%g, %g), which is no range; "
            "give low <= high",
            name, initializer->low, initializer->high);
    }
    if (initializer->kind == CADRE_INITIALIZER_NORMAL && !(initializer->stddev >= 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': the standard deviation of its initial values is %g; give 0 or more",
            name, initializer->stddev);
    }
    struct prng prng = seeded(initializer->seed, name);
    switch (initializer->kind) {
    case CADRE_INITIALIZER_ZEROS:
        return CADRE_OK;
    case CADRE_INITIALIZER_CONSTANT:
        if (!numbers_fit(initializer->value, dtype)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "variable '%s': the initial value %g does not fit its type %s; give one that does",
                name, initializer->value, cadre_dtype_name(dtype));
        }
        for (int64_t i = 0; i < count; i++) {
            numbers_store(values, i, dtype, initializer->value);
        }
        return CADRE_OK;
    case CADRE_INITIALIZER_UNIFORM:
        for (int64_t i = 0; i < count; i++) {
            double width = initializer->high - initializer->low;
            numbers_store(values, i, dtype, initializer->low + width * unit(&prng));
        }
        return CADRE_OK;
    case CADRE_INITIALIZER_NORMAL:
        for (int64_t i = 0; i < count; i++) {
            numbers_store(
                values, i, dtype, initializer->mean + initializer->stddev * normal(&prng));
        }
        return CADRE_OK;
    case CADRE_INITIALIZER_FUNCTION:
        return call(initializer, name, dtype, count, values, error);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "variable '%s': %d is no kind of initializer; use one of enum cadre_initializer_kind", name,
        (int)initializer->kind);
}
