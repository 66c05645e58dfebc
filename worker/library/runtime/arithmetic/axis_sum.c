/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/arithmetic/axis_sum.h"

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "common/pure/half.h"

/* `count` elements along the axis, `stride` apart. Integers wrap around, as sums of the mesh do. */
struct run {
    size_t count;
    size_t stride;
};

#define INTEGER_RUN(type, wide)                                                                    \
    do {                                                                                           \
        const type *from = (const type *)values + first;                                           \
        wide sum = 0;                                                                              \
        for (size_t i = 0; i < run.count; i++) {                                                   \
            sum = (wide)(sum + (wide)from[i * run.stride]);                                        \
        }                                                                                          \
        ((type *)sums)[at] = (type)sum;                                                            \
    } while (0)

static float half_run(const uint16_t *from, struct run run, cadre_dtype dtype)
{
    float sum = 0;
    for (size_t i = 0; i < run.count; i++) {
        uint16_t half = from[i * run.stride];
        sum += dtype == CADRE_F16 ? half_from_f16(half) : half_from_bf16(half);
    }
    return sum;
}

static void sum_run(
    const void *values, size_t first, struct run run, cadre_dtype dtype, void *sums, size_t at)
{
    switch (dtype) {
    case CADRE_F64: {
        const double *from = (const double *)values + first;
        double sum = 0;
        for (size_t i = 0; i < run.count; i++) {
            sum += from[i * run.stride];
        }
        ((double *)sums)[at] = sum;
        break;
    }
    case CADRE_F32: {
        const float *from = (const float *)values + first;
        float sum = 0;
        for (size_t i = 0; i < run.count; i++) {
            sum += from[i * run.stride];
        }
        ((float *)sums)[at] = sum;
        break;
    }
    case CADRE_F16:
        ((uint16_t *)sums)[at] =
            half_to_f16(half_run((const uint16_t *)values + first, run, dtype));
        break;
    case CADRE_BF16:
        ((uint16_t *)sums)[at] =
            half_to_bf16(half_run((const uint16_t *)values + first, run, dtype));
        break;
    case CADRE_I64:
        INTEGER_RUN(int64_t, uint64_t);
        break;
    case CADRE_I32:
        INTEGER_RUN(int32_t, uint32_t);
        break;
    case CADRE_I16:
        INTEGER_RUN(int16_t, uint16_t);
        break;
    case CADRE_I8:
        INTEGER_RUN(int8_t, uint8_t);
        break;
    case CADRE_U32:
        INTEGER_RUN(uint32_t, uint32_t);
        break;
    case CADRE_U16:
        INTEGER_RUN(uint16_t, uint16_t);
        break;
    default:
        INTEGER_RUN(uint8_t, uint8_t);
        break;
    }
}

cadre_status axis_sum(const cadre_tensor *tensor, int32_t axis, cadre_tensor **ret_sum,
    int64_t *ret_entries, struct cadre_error *error)
{
    *ret_sum = NULL;
    uint32_t rank = cadre_tensor_rank(tensor);
    const int64_t *dims = cadre_tensor_dims(tensor);
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    if (axis < 0 || (uint32_t)axis >= rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "axis %d is not one of a tensor of rank %u", (int)axis, rank);
    }
    int64_t left[CADRE_RANK_MAX];
    size_t outer = 1;
    size_t inner = 1;
    for (uint32_t i = 0, n = 0; i < rank; i++) {
        if (i != (uint32_t)axis) {
            left[n++] = dims[i];
        }
        outer *= i < (uint32_t)axis ? (size_t)dims[i] : 1;
        inner *= i > (uint32_t)axis ? (size_t)dims[i] : 1;
    }
    cadre_status status = tensor_create(dtype, rank - 1, left, ret_sum, error);
    if (status != CADRE_OK) {
        return status;
    }
    struct run run = {.count = (size_t)dims[axis], .stride = inner};
    CADRE_ASSERT(outer * inner == (size_t)cadre_tensor_count(*ret_sum));
    outer = inner == 0 ? 0 : outer; /* it may be any number when nothing is summed */
    for (size_t o = 0; o < outer; o++) {
        for (size_t i = 0; i < inner; i++) {
            sum_run(cadre_tensor_const_data(tensor), o * run.count * inner + i, run, dtype,
                cadre_tensor_data(*ret_sum), o * inner + i);
        }
    }
    *ret_entries = dims[axis];
    return CADRE_OK;
}

void axis_divide(void *values, size_t count, cadre_dtype dtype, int64_t entries)
{
    CADRE_ASSERT(dtype >= CADRE_F64);
    CADRE_ASSERT(dtype <= CADRE_BF16);
    for (size_t i = 0; i < count; i++) {
        if (dtype == CADRE_F64) {
            ((double *)values)[i] /= (double)entries;
        } else if (dtype == CADRE_F32) {
            ((float *)values)[i] /= (float)entries;
        } else if (dtype == CADRE_F16) {
            uint16_t *half = (uint16_t *)values + i;
            *half = half_to_f16(half_from_f16(*half) / (float)entries);
        } else if (dtype == CADRE_BF16) {
            uint16_t *half = (uint16_t *)values + i;
            *half = half_to_bf16(half_from_bf16(*half) / (float)entries);
        }
    }
}
