/* SPDX-License-Identifier: Apache-2.0
 * Updates by optimizers in a device's memory: the bits that the host's loops get, for each kind,
 * both types, at any alignment and count. */
#include <string.h>

#include "common/pure/prng.h"
#include "plugin.h"
#include "worker/library/optimizer/apply.h"
#include "worker/library/optimizer/terms.h"

enum { COUNT_MAX = 5000, PLACES = 5 }; /* values, gradient, three slots */

static struct prng prng = {.state = 11};

static double drawn(double low, double high)
{
    return low + (high - low) * ((double)(prng_next(&prng) >> 11) * 0x1p-53);
}

static const struct optimizer_rule rules[] = {
    {.kind = OPTIMIZER_SGD},
    {.kind = OPTIMIZER_SGD, .weight_decay = 0.01},
    {.kind = OPTIMIZER_MOMENTUM, .momentum = 0.9},
    {.kind = OPTIMIZER_MOMENTUM, .momentum = 0.7, .nesterov = true, .weight_decay = 0.3},
    {.kind = OPTIMIZER_ADAGRAD, .epsilon = 1e-7},
    {.kind = OPTIMIZER_RMSPROP, .rho = 0.9, .epsilon = 1e-7},
    {.kind = OPTIMIZER_RMSPROP, .rho = 0.9, .epsilon = 1e-7, .momentum = 0.5},
    {.kind = OPTIMIZER_RMSPROP, .rho = 0.8, .epsilon = 1e-3, .centered = true},
    {.kind = OPTIMIZER_RMSPROP, .rho = 0.8, .epsilon = 1e-3, .centered = true, .momentum = 0.5},
    {.kind = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7},
    {.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7, .weight_decay = 0.004},
    {.kind = OPTIMIZER_LAMB, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.01},
};

static union {
    char bytes[PLACES][(COUNT_MAX + 4) * sizeof(double)];
    double aligned;
} host, got;

static void fill(cadre_dtype dtype, size_t count)
{
    for (size_t place = 0; place < PLACES; place++) {
        for (size_t i = 0; i < count; i++) { /* squares are not negative */
            double value = place < 2 ? drawn(-2, 2) : drawn(0, 1);
            if (dtype == CADRE_F64) {
                ((double *)(void *)host.bytes[place])[i] = value;
            } else {
                ((float *)(void *)host.bytes[place])[i] = (float)value;
            }
        }
    }
}

/* One update of `count` elements, of which the first is `shift` elements behind an address that is
 * aligned to anything. */
static void check(const struct optimizer_rule *rule, cadre_dtype dtype, size_t count, size_t shift,
    char *memory, void *stream)
{
    struct cadre_error error = {.code = CADRE_OK};
    const size_t bytes = dtype == CADRE_F64 ? sizeof(double) : sizeof(float);
    const size_t room = sizeof host.bytes[0];
    char *at[PLACES];
    fill(dtype, count);
    for (size_t i = 0; i < PLACES; i++) {
        at[i] = memory + i * room + shift * bytes;
        upload(at[i], host.bytes[i], count * bytes, stream);
    }
    const struct update_terms terms = optimizer_terms(rule, 0.01, 3, 1.5);
    const struct device_update update = {.kind = optimizer_update_kind(rule),
        .dtype = dtype,
        .terms = &terms,
        .values = at[0],
        .gradient = at[1],
        .slots = {at[2], at[3], at[4]},
        .count = count};
    assert_ok(ops->update(&update, stream, &error), &error);
    optimizer_apply(rule, dtype, 0.01, 3, count, host.bytes[0], host.bytes[1],
        (void *[]){host.bytes[2], host.bytes[3], host.bytes[4]}, 1.5);
    for (size_t i = 0; i < PLACES; i++) {
        download(got.bytes[i], at[i], count * bytes, stream);
        assert_memory_equal(got.bytes[i], host.bytes[i], count * bytes);
    }
}

static void test_every_kind_has_the_bits_of_the_host(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 3, 4, 7, 1000, COUNT_MAX};
    void *stream = stream_of(0);
    char *memory = memory_of(0, sizeof host.bytes, stream);
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            check(&rules[rule], CADRE_F32, counts[i], i % 4, memory, stream);
            check(&rules[rule], CADRE_F64, counts[i], i % 2, memory, stream);
            check(&rules[rule], CADRE_F32, counts[i], 0, memory, stream);
        }
    }
    settle(stream);
    ops->memory_give(0, memory, stream);
    ops->stream_close(stream);
}

static void test_what_cannot_be_updated_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    const struct update_terms terms = {.rate = 1};
    void *stream = stream_of(0);
    char *memory = memory_of(0, 64, stream);
    struct device_update update = {
        .dtype = CADRE_F16, .terms = &terms, .values = memory, .gradient = memory + 32, .count = 4};
    assert_error(
        ops->update(&update, stream, &error), CADRE_INVALID_ARGUMENT, &error, "f32 and f64 can");
    update.dtype = CADRE_F32;
    update.values = memory + 2;
    assert_error(ops->update(&update, stream, &error), CADRE_INVALID_ARGUMENT, &error, "aligned");
    update.values = memory;
    update.count = 0;
    assert_ok(ops->update(&update, stream, &error), &error);
    ops->memory_give(0, memory, stream);
    ops->stream_close(stream);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_the_bits_of_the_host),
        cmocka_unit_test(test_what_cannot_be_updated_is_refused),
    };
    plugin_open_with_devices(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
