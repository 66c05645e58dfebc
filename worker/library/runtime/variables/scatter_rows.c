/* SPDX-License-Identifier: Apache-2.0
 * See scatter_rows.h. Called by scatter.c. */
#include "worker/library/runtime/variables/scatter_rows.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/half.h"

/* Elements of a row. */
static int64_t width_of(const cadre_variable *variable)
{
    CADRE_ASSERT(variable->rank >= 1);
    return variable->dims[0] == 0 ? 0 : variable->count / variable->dims[0];
}

static bool is_zero(const void *values, int64_t i, cadre_dtype dtype)
{
    static const char zero[sizeof(int64_t)];
    size_t bytes = cadre_dtype_bytes(dtype);
    return memcmp((const char *)values + (size_t)i * bytes, zero, bytes) == 0;
}

bool scatter_checks_values(const cadre_variable *variable, cadre_scatter how)
{
    return how == CADRE_SCATTER_DIV && variable->dtype > CADRE_BF16;
}

cadre_status scatter_check_rows(const cadre_variable *variable, cadre_scatter how,
    const cadre_sparse *value, struct cadre_error *error)
{
    const int64_t *indices = cadre_tensor_const_data(value->indices);
    for (int64_t i = 0; i < cadre_tensor_count(value->indices); i++) {
        if (indices[i] < 0 || indices[i] >= variable->dims[0]) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "index %lld of the sparse value is %lld, and variable '%s' has %lld rows; give "
                "indices from 0 on below that",
                (long long)i, (long long)indices[i], variable->name, (long long)variable->dims[0]);
        }
    }
    const void *values = cadre_tensor_const_data(value->values);
    bool checks = scatter_checks_values(variable, how);
    for (int64_t i = 0; checks && i < cadre_tensor_count(value->values); i++) {
        if (is_zero(values, i, variable->dtype)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "element %lld of the sparse value is 0, and variable '%s' holds integers, which "
                "cannot be divided by it",
                (long long)i, variable->name);
        }
    }
    return CADRE_OK;
}

/* --- one row, with a (of the variable) and b (of the value) in the type `wide` --- */

#define EACH(type, wide, widen, narrow, expression)                                                \
    for (int64_t i = 0; i < count; i++) {                                                          \
        wide a = (wide)widen(((const type *)to)[i]);                                               \
        wide b = (wide)widen(((const type *)from)[i]);                                             \
        ((type *)to)[i] = (type)narrow(expression);                                                \
    }

/* NaN wins, on either side. */
#define CALCULATE(type, wide, widen, narrow, quotient)                                             \
    switch (how) {                                                                                 \
    case CADRE_SCATTER_ADD:                                                                        \
        EACH(type, wide, widen, narrow, a + b)                                                     \
        break;                                                                                     \
    case CADRE_SCATTER_SUB:                                                                        \
        EACH(type, wide, widen, narrow, a - b)                                                     \
        break;                                                                                     \
    case CADRE_SCATTER_MUL:                                                                        \
        EACH(type, wide, widen, narrow, a *b)                                                      \
        break;                                                                                     \
    case CADRE_SCATTER_DIV:                                                                        \
        EACH(type, wide, widen, narrow, quotient)                                                  \
        break;                                                                                     \
    default:                                                                                       \
        break;                                                                                     \
    }

#define CHOOSE(type, order, widen)                                                                 \
    for (int64_t i = 0; i < count; i++) {                                                          \
        order a = (order)widen(((const type *)to)[i]);                                             \
        order b = (order)widen(((const type *)from)[i]);                                           \
        bool takes = how == CADRE_SCATTER_MIN ? b < a : b > a;                                     \
        if (takes || b != b) {                                                                     \
            ((type *)to)[i] = ((const type *)from)[i];                                             \
        }                                                                                          \
    }

/* Of signed integers: the only quotient that does not fit wraps around, as a product would. */
#define QUOTIENT(type, unsigned_type) ((type)b == -1 ? 0 - a : (unsigned_type)((type)a / (type)b))

static void calculate_integers(
    void *to, const void *from, int64_t count, cadre_dtype dtype, cadre_scatter how)
{
    switch (dtype) {
    case CADRE_I64:
        CALCULATE(int64_t, uint64_t, , , QUOTIENT(int64_t, uint64_t))
        break;
    case CADRE_I32:
        CALCULATE(int32_t, uint32_t, , , QUOTIENT(int32_t, uint32_t))
        break;
    case CADRE_I16:
        CALCULATE(int16_t, uint32_t, , , QUOTIENT(int16_t, uint32_t))
        break;
    case CADRE_I8:
        CALCULATE(int8_t, uint32_t, , , QUOTIENT(int8_t, uint32_t))
        break;
    case CADRE_U32:
        CALCULATE(uint32_t, uint32_t, , , a / b)
        break;
    case CADRE_U16:
        CALCULATE(uint16_t, uint32_t, , , a / b)
        break;
    default:
        CALCULATE(uint8_t, uint32_t, , , a / b)
        break;
    }
}

static void scatter_rows_calculate(
    void *to, const void *from, int64_t count, cadre_dtype dtype, cadre_scatter how)
{
    CADRE_ASSERT(how <= CADRE_SCATTER_DIV);
    switch (dtype) {
    case CADRE_F64:
        CALCULATE(double, double, , , a / b)
        break;
    case CADRE_F32:
        CALCULATE(float, float, , , a / b)
        break;
    case CADRE_F16:
        CALCULATE(uint16_t, float, half_from_f16, half_to_f16, a / b)
        break;
    case CADRE_BF16:
        CALCULATE(uint16_t, float, half_from_bf16, half_to_bf16, a / b)
        break;
    default:
        calculate_integers(to, from, count, dtype, how);
        break;
    }
}

static void scatter_rows_choose(
    void *to, const void *from, int64_t count, cadre_dtype dtype, cadre_scatter how)
{
    CADRE_ASSERT(how == CADRE_SCATTER_MIN || how == CADRE_SCATTER_MAX);
    switch (dtype) {
    case CADRE_F64:
        CHOOSE(double, double, )
        break;
    case CADRE_F32:
        CHOOSE(float, float, )
        break;
    case CADRE_F16:
        CHOOSE(uint16_t, float, half_from_f16)
        break;
    case CADRE_BF16:
        CHOOSE(uint16_t, float, half_from_bf16)
        break;
    case CADRE_I64:
        CHOOSE(int64_t, int64_t, )
        break;
    case CADRE_I32:
        CHOOSE(int32_t, int32_t, )
        break;
    case CADRE_I16:
        CHOOSE(int16_t, int16_t, )
        break;
    case CADRE_I8:
        CHOOSE(int8_t, int8_t, )
        break;
    case CADRE_U32:
        CHOOSE(uint32_t, uint32_t, )
        break;
    case CADRE_U16:
        CHOOSE(uint16_t, uint16_t, )
        break;
    default:
        CHOOSE(uint8_t, uint8_t, )
        break;
    }
}

void scatter_rows(
    const cadre_variable *variable, void *component, cadre_scatter how, const cadre_sparse *value)
{
    const int64_t width = width_of(variable);
    const size_t bytes = (size_t)width * cadre_dtype_bytes(variable->dtype);
    const int64_t *indices = cadre_tensor_const_data(value->indices);
    const char *from = cadre_tensor_const_data(value->values);
    int64_t rows = cadre_tensor_count(value->indices);
    for (int64_t i = 0; i < rows && bytes > 0; i++, from += bytes) {
        CADRE_ASSERT(indices[i] >= 0);
        CADRE_ASSERT(indices[i] < variable->dims[0]);
        char *to = (char *)component + (size_t)indices[i] * bytes;
        if (how == CADRE_SCATTER_UPDATE) {
            memcpy(to, from, bytes);
        } else if (how == CADRE_SCATTER_MIN || how == CADRE_SCATTER_MAX) {
            scatter_rows_choose(to, from, width, variable->dtype, how);
        } else {
            scatter_rows_calculate(to, from, width, variable->dtype, how);
        }
    }
}
