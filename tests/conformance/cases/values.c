/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/composite.h"
#include "worker/library/preprocessing/reals.h"

/* --- to JSON --- */

static json_t *real_number(double value)
{
    if (isnan(value)) {
        return json_string("nan");
    }
    return isinf(value) ? json_string(value > 0 ? "inf" : "-inf") : json_real(value);
}

static json_t *text(const cadre_string *string)
{
    json_t *value = json_stringn(string->bytes == NULL ? "" : string->bytes, string->size);
    return value != NULL ? value : json_sprintf("(%zu bytes)", string->size);
}

static json_t *scalar(const cadre_tensor *tensor, int64_t i)
{
    double number = 0;
    const void *data = cadre_tensor_const_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_STRING:
        return text((const cadre_string *)data + i);
    case CADRE_BOOL:
        return json_boolean(((const uint8_t *)data)[i]);
    case CADRE_I64:
        return json_integer(((const int64_t *)data)[i]);
    case CADRE_F64:
    case CADRE_F32:
    case CADRE_F16:
    case CADRE_BF16:
        reals_double(tensor, i, 1, &number);
        return real_number(number);
    default:
        reals_double(tensor, i, 1, &number);
        return json_integer((json_int_t)number);
    }
}

static json_t *part(const cadre_tensor *tensor, uint32_t axis, int64_t *next)
{
    if (axis == cadre_tensor_rank(tensor)) {
        return scalar(tensor, (*next)++);
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < cadre_tensor_dim(tensor, axis); i++) {
        json_array_append_new(list, part(tensor, axis + 1, next));
    }
    return list;
}

json_t *value_of_tensor(const cadre_tensor *tensor)
{
    int64_t next = 0;
    return part(tensor, 0, &next);
}

/* A list of its rows. */
static json_t *value_of_ragged(cadre_tensor *const parts[])
{
    json_t *rows = json_array();
    for (int64_t i = 0; i + 1 < cadre_tensor_rows(parts[1]); i++) {
        cadre_tensor *row = NULL;
        json_t *value = json_null();
        if (cadre_ragged_row(parts[0], parts[1], i, &row) == CADRE_OK) {
            value = value_of_tensor(row);
        }
        cadre_tensor_release(row);
        json_array_append_new(rows, value);
    }
    return rows;
}

static json_t *value_of_sparse(cadre_tensor *const parts[])
{
    return json_pack("{s:o, s:o, s:o}", "indices", value_of_tensor(parts[0]), "values",
        value_of_tensor(parts[1]), "dense_shape", value_of_tensor(parts[2]));
}

static json_t *nested(cadre_tensor *const tensors[], const char **structure, size_t *component)
{
    if (**structure != '(') {
        cadre_tensor *const *parts = tensors + *component;
        const char kind = *(*structure)++;
        *component += kind == STRUCTURE_SPARSE ? 3 : kind == STRUCTURE_RAGGED ? 2 : 1;
        return kind == STRUCTURE_SPARSE   ? value_of_sparse(parts)
               : kind == STRUCTURE_RAGGED ? value_of_ragged(parts)
                                          : value_of_tensor(parts[0]);
    }
    json_t *list = json_array();
    (*structure)++;
    while (**structure != ')' && **structure != '\0') {
        json_array_append_new(list, nested(tensors, structure, component));
    }
    (*structure)++;
    return list;
}

json_t *value_of_components(cadre_tensor *const tensors[], const char *structure)
{
    size_t component = 0;
    return nested(tensors, &structure, &component);
}

/* --- from JSON --- */

enum kind { KIND_NONE, KIND_INTEGER, KIND_REAL, KIND_STRING, KIND_TRUTH, KIND_MIXED };

static enum kind kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_INTEGER:
        return KIND_INTEGER;
    case JSON_REAL:
        return KIND_REAL;
    case JSON_STRING:
        return KIND_STRING;
    case JSON_TRUE:
    case JSON_FALSE:
        return KIND_TRUTH;
    default:
        return KIND_MIXED;
    }
}

struct shape {
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    enum kind kind;
};

static bool measure(const json_t *value, uint32_t axis, struct shape *shape)
{
    if (!json_is_array(value)) {
        enum kind kind = kind_of(value);
        bool numbers = kind <= KIND_REAL && shape->kind <= KIND_REAL;
        if (kind == KIND_MIXED || axis != shape->rank ||
            (shape->kind != KIND_NONE && kind != shape->kind && !numbers)) {
            return false;
        }
        shape->kind = kind > shape->kind ? kind : shape->kind;
        return true;
    }
    if (axis >= shape->rank || shape->dims[axis] != (int64_t)json_array_size(value)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!measure(json_array_get(value, i), axis + 1, shape)) {
            return false;
        }
    }
    return true;
}

static void fill(const json_t *value, cadre_dtype dtype, char **to)
{
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        fill(json_array_get(value, i), dtype, to);
    }
    if (json_is_array(value)) {
        return;
    }
    const int64_t integer = json_integer_value(value);
    const double number = json_number_value(value);
    const float narrow = (float)number;
    const uint8_t truth = json_is_true(value);
    const cadre_string string = {json_string_value(value), json_string_length(value)};
    const void *from = dtype == CADRE_I64    ? (const void *)&integer
                       : dtype == CADRE_F64  ? (const void *)&number
                       : dtype == CADRE_F32  ? (const void *)&narrow
                       : dtype == CADRE_BOOL ? (const void *)&truth
                                             : (const void *)&string;
    memcpy(*to, from, cadre_dtype_bytes(dtype));
    *to += cadre_dtype_bytes(dtype);
}

static bool to_tensor(
    const json_t *value, cadre_dtype reals, bool widens, cadre_tensor **ret_tensor)
{
    struct shape shape = {.kind = KIND_NONE};
    *ret_tensor = NULL;
    const json_t *first = value;
    size_t count = 1;
    while (json_is_array(first)) {
        if (shape.rank == CADRE_RANK_MAX) {
            return false;
        }
        shape.dims[shape.rank++] = (int64_t)json_array_size(first);
        count *= json_array_size(first);
        first = json_array_size(first) > 0 ? json_array_get(first, 0) : NULL;
    }
    if (value == NULL || !measure(value, 0, &shape)) {
        return false;
    }
    static const cadre_dtype dtypes[] = {[KIND_NONE] = CADRE_I64,
        [KIND_INTEGER] = CADRE_I64,
        [KIND_STRING] = CADRE_STRING,
        [KIND_TRUTH] = CADRE_BOOL};
    bool real = shape.kind == KIND_REAL || (widens && shape.kind <= KIND_INTEGER);
    cadre_dtype dtype = real ? reals : dtypes[shape.kind];
    char *data = calloc(count + 1, cadre_dtype_bytes(dtype));
    char *to = data;
    bool made = data != NULL;
    if (made) {
        fill(value, dtype, &to);
        made = cadre_tensor_from_data(dtype, shape.rank, shape.dims, data, ret_tensor) == CADRE_OK;
    }
    free(data);
    return made;
}

bool value_to_tensor(const json_t *value, cadre_dtype reals, cadre_tensor **ret_tensor)
{
    return to_tensor(value, reals, false, ret_tensor);
}

bool value_to_real_tensor(const json_t *value, cadre_dtype reals, cadre_tensor **ret_tensor)
{
    return to_tensor(value, reals, true, ret_tensor);
}
