/* SPDX-License-Identifier: Apache-2.0
 * The kernels at their corners: every half-width float, NaN, signed zero, wrapping integers, odd
 * addresses. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "common/pure/half.h"
#include "worker/library/mesh/names.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

static bool is_nan16(uint16_t half, unsigned exponent_mask, unsigned mantissa_mask)
{
    return (half & exponent_mask) == exponent_mask && (half & mantissa_mask) != 0;
}

static void test_float16_there_and_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        float value = half_from_f16(half);
        if (is_nan16(half, 0x7c00, 0x3ff)) {
            assert_true(isnan(value));
            assert_int_equal(half_to_f16(value), half | 0x200);
        } else {
            assert_int_equal(half_to_f16(value), half);
        }
    }
    assert_true(half_from_f16(0x3c00) == 1.0f);
    assert_true(half_from_f16(0x0001) == 0x1p-24f);
    assert_true(half_from_f16(0x7bff) == 65504.0f);
    assert_true(isinf(half_from_f16(0xfc00)));
}

/* Between two values: to the nearer one, a tie to the even one. */
static void test_float16_rounds_to_even(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7bff; i++) {
        float low = half_from_f16((uint16_t)i);
        float high = half_from_f16((uint16_t)(i + 1));
        float middle = low + (high - low) / 2;
        assert_int_equal(half_to_f16(middle), i + (i & 1));
        assert_int_equal(half_to_f16(nextafterf(middle, low)), i);
        assert_int_equal(half_to_f16(nextafterf(middle, high)), i + 1);
        assert_int_equal(half_to_f16(-middle), 0x8000 | (i + (i & 1)));
    }
    assert_int_equal(half_to_f16(65519.9f), 0x7bff);
    assert_int_equal(half_to_f16(65520.0f), 0x7c00);
    assert_int_equal(half_to_f16(FLT_MAX), 0x7c00);
    assert_int_equal(half_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(half_to_f16(FLT_TRUE_MIN), 0);
    assert_int_equal(half_to_f16(-0.0f), 0x8000);
}

static void test_bfloat16(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        bool nan = is_nan16(half, 0x7f80, 0x7f);
        assert_int_equal(half_to_bf16(half_from_bf16(half)), nan ? half | 0x40 : half);
    }
    for (uint32_t i = 0; i < 0x7f7f; i += 7) {
        float middle = half_float_of((i << 16) | 0x8000);
        assert_int_equal(half_to_bf16(middle), i + (i & 1));
        assert_int_equal(half_to_bf16(half_float_of((i << 16) | 0x7fff)), i);
        assert_int_equal(half_to_bf16(half_float_of((i << 16) | 0x8001)), i + 1);
    }
    assert_int_equal(half_to_bf16(FLT_MAX), 0x7f80);
    /* A NaN whose upper bits are all zero must not become an infinity. */
    assert_int_equal(half_to_bf16(half_float_of(0x7f800001)), 0x7fc0);
}

static float one_float(enum mesh_op op, float left, float right)
{
    float into;
    mesh_reduce_pair(op, MESH_F32, (uint8_t *)&into, (uint8_t *)&left, (uint8_t *)&right, 4);
    return into;
}

static void test_min_and_max_of_floats(void **state)
{
    (void)state;
    assert_true(isnan(one_float(MESH_MIN, NAN, 1)));
    assert_true(isnan(one_float(MESH_MIN, 1, NAN)));
    assert_true(isnan(one_float(MESH_MAX, NAN, INFINITY)));
    assert_true(isnan(one_float(MESH_MAX, -INFINITY, NAN)));
    assert_true(one_float(MESH_MIN, 1, -INFINITY) == -INFINITY);
    /* Equal: the left one. */
    assert_true(signbit(one_float(MESH_MAX, -0.0f, 0.0f)));
    assert_false(signbit(one_float(MESH_MIN, 0.0f, -0.0f)));
    uint16_t nan = 0x7e00;
    uint16_t one = 0x3c00;
    uint16_t into;
    mesh_reduce_pair(
        MESH_MAX, MESH_F16, (uint8_t *)&into, (uint8_t *)&one, (uint8_t *)&nan, sizeof into);
    assert_true(is_nan16(into, 0x7c00, 0x3ff));
}

static void test_integers_wrap(void **state)
{
    (void)state;
    int64_t wide[3] = {INT64_MAX, 2, 0};
    mesh_reduce_pair(
        MESH_SUM, MESH_I64, (uint8_t *)&wide[2], (uint8_t *)&wide[0], (uint8_t *)&wide[1], 8);
    assert_true(wide[2] == INT64_MIN + 1);
    mesh_reduce_pair(
        MESH_PROD, MESH_I64, (uint8_t *)&wide[2], (uint8_t *)&wide[0], (uint8_t *)&wide[1], 8);
    assert_true(wide[2] == -2);
    int16_t narrow[3] = {-32768, -32768, 0};
    mesh_reduce_pair(MESH_PROD, MESH_I16, (uint8_t *)&narrow[2], (uint8_t *)&narrow[0],
        (uint8_t *)&narrow[1], 2);
    assert_int_equal(narrow[2], 0);
    int8_t bytes[3] = {-128, -1, 0};
    mesh_reduce_pair(
        MESH_SUM, MESH_I8, (uint8_t *)&bytes[2], (uint8_t *)&bytes[0], (uint8_t *)&bytes[1], 1);
    assert_int_equal(bytes[2], 127);
    uint8_t unsigned_bytes[3] = {200, 100, 0};
    mesh_reduce_pair(
        MESH_SUM, MESH_U8, &unsigned_bytes[2], &unsigned_bytes[0], &unsigned_bytes[1], 1);
    assert_int_equal(unsigned_bytes[2], 44);
    mesh_reduce_pair(
        MESH_MAX, MESH_U8, &unsigned_bytes[2], &unsigned_bytes[0], &unsigned_bytes[1], 1);
    assert_int_equal(unsigned_bytes[2], 200);
    mesh_reduce_pair(
        MESH_MAX, MESH_I8, &unsigned_bytes[2], &unsigned_bytes[0], &unsigned_bytes[1], 1);
    assert_int_equal(unsigned_bytes[2], 100); /* 200 is -56 there */
}

/* In place or not, at any address and length, the bits are those of one element alone. */
static void test_addresses_and_lengths(void **state)
{
    (void)state;
    enum { BYTES = 600 };
    uint8_t left[BYTES + 8];
    uint8_t right[BYTES + 8];
    uint8_t into[BYTES + 16];
    struct prng prng = {.state = 99};
    for (unsigned dtype = 0; dtype < MESH_DTYPE_COUNT; dtype++) {
        size_t size = mesh_dtype_bytes((enum mesh_dtype)dtype);
        for (unsigned round = 0; round < 200; round++) {
            enum mesh_op op = (enum mesh_op)(round % MESH_OP_COUNT);
            size_t skew = prng_uniform(&prng, 8);
            size_t bytes = prng_uniform(&prng, BYTES / size) * size;
            for (size_t i = 0; i < sizeof left; i++) {
                /* Without all ones in the exponent there is no NaN, whose payload is not
                 * defined. */
                left[i] = (uint8_t)(prng_next(&prng) & 0xb7);
                right[i] = (uint8_t)(prng_next(&prng) & 0xb7);
            }
            memset(into, 0xaa, sizeof into);
            mesh_reduce_pair(
                op, (enum mesh_dtype)dtype, into + 8, left + skew, right + skew, bytes);
            for (size_t at = 0; at < bytes; at += size) {
                uint8_t one[8];
                mesh_reduce_pair(
                    op, (enum mesh_dtype)dtype, one, left + skew + at, right + skew + at, size);
                assert_memory_equal(one, into + 8 + at, size);
            }
            assert_int_equal(into[7], 0xaa);
            assert_int_equal(into[8 + bytes], 0xaa);
            mesh_reduce_pair(
                op, (enum mesh_dtype)dtype, left + skew, left + skew, right + skew, bytes);
            assert_memory_equal(left + skew, into + 8, bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float16_there_and_back),
        cmocka_unit_test(test_float16_rounds_to_even),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_min_and_max_of_floats),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_addresses_and_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
