/* SPDX-License-Identifier: Apache-2.0
 * Scaling and arithmetic on a device, bit by bit beside plain C: all types, sizes around those of
 * vectors and tiles, operands at every alignment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/half.h"
#include "plugin.h"
#include "reference.h"

#define COUNT_MAX ((size_t)20000)
#define SHIFT_MAX ((size_t)16) /* elements by which operands are shifted */
#define GUARD     0x5a

static struct prng prng = {.state = 20};
static void *stream;
static unsigned char *device_to;
static unsigned char *device_from;
static unsigned char *host_to;
static unsigned char *host_from;
static unsigned char *wanted;

#define ROOM ((COUNT_MAX + 2 * SHIFT_MAX) * 8)

static int setup(void **state)
{
    (void)state;
    host_to = malloc(ROOM);
    host_from = malloc(ROOM);
    wanted = malloc(ROOM);
    stream = stream_of(0);
    device_to = memory_of(0, ROOM, stream);
    device_from = memory_of(0, ROOM, stream);
    return host_to != NULL && host_from != NULL && wanted != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ops->memory_give(0, device_to, stream);
    ops->memory_give(0, device_from, stream);
    settle(stream);
    ops->stream_close(stream);
    free(host_to);
    free(host_from);
    free(wanted);
    return 0;
}

/* One case: a size and where both operands begin. */
struct shape {
    size_t count;
    size_t to_shift;
    size_t from_shift;
};

static struct shape draw_shape(size_t round)
{
    static const size_t counts[] = {1, 2, 3, 7, 15, 16, 17, 63, 255, 257, 1023, 4096, 4099, 16384};
    size_t known = sizeof counts / sizeof counts[0];
    struct shape shape = {
        .count = round < known ? counts[round] : 1 + prng_uniform(&prng, COUNT_MAX),
        .to_shift = prng_uniform(&prng, SHIFT_MAX),
        .from_shift = prng_uniform(&prng, SHIFT_MAX),
    };
    if (round % 2 == 0) {
        shape.from_shift = shape.to_shift; /* the way of vectors */
    }
    return shape;
}

/* Draws both operands, and has them on the device between guards. */
static void prepare(cadre_dtype dtype, struct shape shape)
{
    size_t bytes = reference_bytes(dtype);
    memset(host_to, GUARD, ROOM);
    memset(host_from, GUARD, ROOM);
    reference_draw(&prng, dtype, host_to + shape.to_shift * bytes, shape.count);
    reference_draw(&prng, dtype, host_from + shape.from_shift * bytes, shape.count);
    memcpy(wanted, host_to, ROOM);
    size_t used = (shape.count + 2 * SHIFT_MAX) * bytes;
    upload(device_to, host_to, used, stream);
    upload(device_from, host_from, used, stream);
}

static void compare(cadre_dtype dtype, struct shape shape, const char *what)
{
    size_t bytes = reference_bytes(dtype);
    size_t used = shape.count + 2 * SHIFT_MAX;
    download(host_to, device_to, used * bytes, stream);
    size_t differs = reference_compare(dtype, host_to, wanted, used);
    if (differs != used) {
        fail_msg("%s, type %d: element %zu of %zu (begun at %zu and %zu) differs", what, (int)dtype,
            differs - shape.to_shift, shape.count, shape.to_shift, shape.from_shift);
    }
}

static void test_arithmetic(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    static const char *const names[] = {"set", "add", "sub", "mul"};
    for (size_t type = 0; type < 9; type++) {
        cadre_dtype dtype = reference_dtypes[type];
        size_t bytes = reference_bytes(dtype);
        for (size_t round = 0; round < 40; round++) {
            struct shape shape = draw_shape(round / 2);
            enum device_arithmetic how = (enum device_arithmetic)(prng_uniform(&prng, 4));
            prepare(dtype, shape);
            reference_arithmetic(how, dtype, wanted + shape.to_shift * bytes,
                host_from + shape.from_shift * bytes, shape.count);
            assert_ok(ops->arithmetic(how, dtype, device_to + shape.to_shift * bytes,
                          device_from + shape.from_shift * bytes, shape.count, stream, &error),
                &error);
            compare(dtype, shape, names[how]);
        }
    }
}

static void test_scale(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    for (size_t type = 0; type < 9; type++) {
        cadre_dtype dtype = reference_dtypes[type];
        size_t bytes = reference_bytes(dtype);
        if (!reference_is_float(dtype)) {
            continue;
        }
        for (size_t round = 0; round < 40; round++) {
            struct shape shape = draw_shape(round);
            double factor = 1.0 / (double)(1 + prng_uniform(&prng, 100));
            factor = round % 5 == 0 ? factor * 3e5 : round % 5 == 1 ? -factor * 1e-6 : factor;
            prepare(dtype, shape);
            reference_scale(dtype, wanted + shape.to_shift * bytes, shape.count, factor);
            assert_ok(ops->scale(dtype, device_to + shape.to_shift * bytes, shape.count, factor,
                          stream, &error),
                &error);
            compare(dtype, shape, "scale");
        }
    }
}

/* The host divides a sum by the number of replicas; a device multiplies by its inverse. */
static void test_mean_is_the_hosts(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    for (uint32_t shares = 1; shares < 64; shares++) {
        float *single = (float *)(void *)wanted;
        uint16_t *half = (uint16_t *)(void *)host_from;
        size_t count = 2000;
        for (size_t i = 0; i < count; i++) {
            single[i] = (float)(int64_t)prng_next(&prng) * 0x1p-40f;
            half[i] = half_to_bf16(single[i]);
        }
        upload(device_to, single, 4 * count, stream);
        upload(device_from, half, 2 * count, stream);
        assert_ok(ops->scale(CADRE_F32, device_to, count, 1.0 / shares, stream, &error), &error);
        assert_ok(ops->scale(CADRE_BF16, device_from, count, 1.0 / shares, stream, &error), &error);
        for (size_t i = 0; i < count; i++) {
            single[i] /= (float)shares;
            half[i] = half_to_bf16(half_from_bf16(half[i]) / (float)shares);
        }
        download(host_to, device_to, 4 * count, stream);
        assert_memory_equal(host_to, single, 4 * count);
        download(host_to, device_from, 2 * count, stream);
        assert_memory_equal(host_to, half, 2 * count);
    }
}

/* More tiles than there are blocks: each block takes several. */
static void test_a_large_one(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    size_t count = ((size_t)34 << 20) / sizeof(double) + 1;
    double *host = malloc(count * sizeof *host);
    double *memory = memory_of(0, count * sizeof *host, stream);
    assert_non_null(host);
    for (size_t i = 0; i < count; i++) {
        host[i] = (double)i;
    }
    upload(memory, host, count * sizeof *host, stream);
    assert_ok(ops->scale(CADRE_F64, memory, count, 2.0, stream, &error), &error);
    assert_ok(
        ops->arithmetic(DEVICE_ADD, CADRE_F64, memory, memory, count, stream, &error), &error);
    download(host, memory, count * sizeof *host, stream);
    for (size_t i = 0; i < count; i++) {
        if (host[i] != (double)(4 * i)) {
            fail_msg("element %zu is %g", i, host[i]);
        }
    }
    ops->memory_give(0, memory, stream);
    free(host);
}

static void test_what_cannot_be_asked(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    assert_error(ops->scale(CADRE_I32, device_to, 4, 2.0, stream, &error), CADRE_INVALID_ARGUMENT,
        &error, "cannot be scaled");
    assert_error(ops->scale(CADRE_STRING, device_to, 4, 2.0, stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "cannot be scaled");
    assert_error(ops->scale(CADRE_F32, device_to + 1, 4, 2.0, stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "aligned");
    assert_error(ops->arithmetic(DEVICE_ADD, CADRE_BOOL, device_to, device_from, 4, stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "cannot be combined");
    assert_error(
        ops->arithmetic(DEVICE_SET, CADRE_STRING, device_to, device_from, 4, stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "cannot be combined");
    assert_error(
        ops->arithmetic(DEVICE_ADD, CADRE_F64, device_to, device_from + 4, 4, stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "aligned");
    assert_error(ops->arithmetic((enum device_arithmetic)9, CADRE_F64, device_to, device_from, 4,
                     stream, &error),
        CADRE_INVALID_ARGUMENT, &error, "operation 9");
    assert_ok(
        ops->arithmetic(DEVICE_ADD, CADRE_F64, device_to, device_from, 0, stream, &error), &error);
    assert_ok(ops->scale(CADRE_F64, device_to, 0, 2.0, stream, &error), &error);
    static const unsigned char flags[3] = {1, 0, 1};
    unsigned char back[3] = {0};
    upload(device_from, flags, 3, stream);
    assert_ok(
        ops->arithmetic(DEVICE_SET, CADRE_BOOL, device_to, device_from, 3, stream, &error), &error);
    download(back, device_to, 3, stream);
    assert_memory_equal(back, flags, 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_mean_is_the_hosts),
        cmocka_unit_test(test_a_large_one),
        cmocka_unit_test(test_what_cannot_be_asked),
    };
    plugin_open_with_devices(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
