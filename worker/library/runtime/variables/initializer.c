/* SPDX-License-Identifier: Apache-2.0
 * Initial values. The random numbers are keyed by the seed and the variable's name, so two
 * variables with one seed differ, and a new variable does not change the others. */
#include <math.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/arithmetic/numbers.h"

#define TWO_PI 6.28318530717958647692

/* 53 random bits as a number in [0, 1). */
static double initializer_unit(struct prng *prng)
{
    return (double)(prng_next(prng) >> 11) * 0x1p-53;
}

/* Box-Muller, one of the two values: two draws. */
static double initializer_normal(struct prng *prng)
{
    double radius = sqrt(-2.0 * log(1.0 - initializer_unit(prng)));
    return radius * cos(TWO_PI * initializer_unit(prng));
}

static struct prng initializer_seeded(uint64_t seed, const char *name)
{
    uint64_t key = prng_mix(seed);
    for (size_t i = 0; name[i] != '\0'; i++) {
        key = prng_mix(key ^ (uint64_t)(unsigned char)name[i]);
    }
    return (struct prng){.state = key};
}

static cadre_status initializer_call(const cadre_initializer *initializer,
    const struct initializer_of *of, int64_t count, void *values, struct cadre_error *error)
{
    if (initializer->function == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': its initializer has no function; set initializer.function", of->name);
    }
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    cadre_status status =
        argument_status(initializer->function(values, count, of->dtype, initializer->user));
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    const char *message = cadre_error_message();
    return cadre_error_set(error, status, "variable '%s': its initializer failed: %s", of->name,
        message[0] != '\0' ? message : "it left no message; say why with cadre_fail");
}

static cadre_status initializer_check(const cadre_initializer *initializer,
    const struct initializer_of *of, struct cadre_error *error)
{
    bool random = initializer->kind == CADRE_INITIALIZER_UNIFORM ||
                  initializer->kind == CADRE_INITIALIZER_NORMAL;
    if (random && of->dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': random initial values need a floating type, not %s; use "
            "CADRE_INITIALIZER_FUNCTION for others",
            of->name, cadre_dtype_name(of->dtype));
    }
    if (initializer->kind == CADRE_INITIALIZER_UNIFORM &&
        !(initializer->low <= initializer->high)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': its initial values are to be uniform in [%g, %g), which is no range; "
            "give low <= high",
            of->name, initializer->low, initializer->high);
    }
    if (initializer->kind == CADRE_INITIALIZER_NORMAL && !(initializer->stddev >= 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': the standard deviation of its initial values is %g; give 0 or more",
            of->name, initializer->stddev);
    }
    if (initializer->kind == CADRE_INITIALIZER_CONSTANT &&
        !numbers_fit(initializer->value, of->dtype)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': the initial value %g does not fit its type %s; give one that does",
            of->name, initializer->value, cadre_dtype_name(of->dtype));
    }
    return CADRE_OK;
}

cadre_status initializer_fill_piece(const cadre_initializer *initializer,
    const struct initializer_of *of, int64_t count, void *values, struct cadre_error *error)
{
    CADRE_TRY(initializer_check(initializer, of, error));
    struct prng prng = initializer_seeded(initializer->seed, of->name);
    CADRE_ASSERT(count >= 0);
    CADRE_ASSERT(of->first >= 0);
    switch (initializer->kind) {
    case CADRE_INITIALIZER_ZEROS:
        return CADRE_OK;
    case CADRE_INITIALIZER_CONSTANT:
        for (int64_t i = 0; i < count; i++) {
            numbers_store(values, i, of->dtype, initializer->value);
        }
        return CADRE_OK;
    case CADRE_INITIALIZER_UNIFORM:
        prng_skip(&prng, (uint64_t)of->first);
        for (int64_t i = 0; i < count; i++) {
            double width = initializer->high - initializer->low;
            numbers_store(values, i, of->dtype, initializer->low + width * initializer_unit(&prng));
        }
        return CADRE_OK;
    case CADRE_INITIALIZER_NORMAL:
        prng_skip(&prng, (uint64_t)of->first * 2);
        for (int64_t i = 0; i < count; i++) {
            numbers_store(values, i, of->dtype,
                initializer->mean + initializer->stddev * initializer_normal(&prng));
        }
        return CADRE_OK;
    case CADRE_INITIALIZER_FUNCTION:
        return initializer_call(initializer, of, count, values, error);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "variable '%s': %d is no kind of initializer; use one of enum cadre_initializer_kind",
        of->name, (int)initializer->kind);
}

cadre_status initializer_fill(const cadre_initializer *initializer, const char *name,
    cadre_dtype dtype, int64_t count, void *values, struct cadre_error *error)
{
    const struct initializer_of of = {.name = name, .dtype = dtype};
    return initializer_fill_piece(initializer, &of, count, values, error);
}
