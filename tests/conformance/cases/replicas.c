/* SPDX-License-Identifier: Apache-2.0 */
#include "replicas.h"

#include <stdlib.h>
#include <string.h>

void case_release_json(void *value)
{
    json_decref(value);
}

void case_release_tensor(void *tensor)
{
    cadre_tensor_release(tensor);
}

void case_release_values(void *values)
{
    cadre_per_replica_release(values);
}

bool case_dtype(struct conformance_case *self, const json_t *object, cadre_dtype otherwise,
    cadre_dtype *ret_dtype)
{
    static const struct {
        const char *name;
        cadre_dtype dtype;
    } names[] = {{"float64", CADRE_F64}, {"float32", CADRE_F32}, {"float16", CADRE_F16},
        {"bfloat16", CADRE_BF16}, {"int64", CADRE_I64}, {"int32", CADRE_I32}, {"int16", CADRE_I16},
        {"int8", CADRE_I8}, {"uint32", CADRE_U32}, {"uint16", CADRE_U16}, {"uint8", CADRE_U8},
        {"bool", CADRE_BOOL}, {"string", CADRE_STRING}};
    const json_t *value = json_object_get(object, "dtype");
    *ret_dtype = otherwise;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    for (size_t i = 0; json_is_string(value) && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(json_string_value(value), names[i].name) == 0) {
            *ret_dtype = names[i].dtype;
            return true;
        }
    }
    return case_skip(self, "the \"dtype\" is not known");
}

/* --- tensors --- */

static void store(cadre_tensor *tensor, int64_t i, double real, json_int_t whole)
{
    void *data = cadre_tensor_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_F64:
        ((double *)data)[i] = real;
        break;
    case CADRE_F32:
        ((float *)data)[i] = (float)real;
        break;
    case CADRE_I64:
        ((int64_t *)data)[i] = whole;
        break;
    case CADRE_I32:
        ((int32_t *)data)[i] = (int32_t)whole;
        break;
    case CADRE_I16:
        ((int16_t *)data)[i] = (int16_t)whole;
        break;
    case CADRE_I8:
        ((int8_t *)data)[i] = (int8_t)whole;
        break;
    case CADRE_U32:
        ((uint32_t *)data)[i] = (uint32_t)whole;
        break;
    case CADRE_U16:
        ((uint16_t *)data)[i] = (uint16_t)whole;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)whole;
        break;
    }
}

/* From the type that the JSON had to the one that the case names. */
static bool convert(
    struct conformance_case *self, cadre_tensor *from, cadre_dtype dtype, cadre_tensor **ret_tensor)
{
    cadre_dtype own = cadre_tensor_dtype(from);
    bool numbers = own == CADRE_F64 || own == CADRE_I64;
    bool possible = numbers && dtype != CADRE_F16 && dtype != CADRE_BF16 && dtype <= CADRE_BOOL;
    if (own == dtype) {
        *ret_tensor = cadre_tensor_retain(from);
        return true;
    }
    if (!possible || (own == CADRE_F64 && dtype > CADRE_F32)) {
        return case_skip(self, "values of %s cannot be made of these", cadre_dtype_name(dtype));
    }
    if (!case_ok(self,
            cadre_tensor_create(
                dtype, cadre_tensor_rank(from), cadre_tensor_dims(from), ret_tensor),
            "making a tensor")) {
        return false;
    }
    for (int64_t i = 0; i < cadre_tensor_count(from); i++) {
        const void *data = cadre_tensor_const_data(from);
        json_int_t whole = own == CADRE_I64 ? ((const int64_t *)data)[i] : 0;
        double real = own == CADRE_F64 ? ((const double *)data)[i] : (double)whole;
        store(*ret_tensor, i, real, whole);
    }
    return true;
}

bool case_tensor(struct conformance_case *self, const json_t *value, cadre_dtype dtype,
    cadre_tensor **ret_tensor)
{
    cadre_tensor *made = NULL;
    bool reals = dtype == CADRE_F64 || dtype == CADRE_F32;
    *ret_tensor = NULL;
    if (!(reals ? value_to_real_tensor(value, CADRE_F64, &made)
                : value_to_tensor(value, CADRE_F64, &made))) {
        return case_skip(self, "a value is no tensor");
    }
    bool done = convert(self, made, dtype, ret_tensor);
    cadre_tensor_release(made);
    case_keep(self, *ret_tensor, case_release_tensor);
    return done;
}

static bool has_reals(const json_t *value)
{
    size_t i;
    json_t *part;
    if (json_is_real(value)) {
        return true;
    }
    json_array_foreach(value, i, part)
    {
        if (has_reals(part)) {
            return true;
        }
    }
    return false;
}

cadre_dtype case_dtype_of(const json_t *values)
{
    return has_reals(values) ? CADRE_F32 : CADRE_I32;
}

bool case_values(struct conformance_case *self, cadre_strategy *strategy, const json_t *values,
    cadre_dtype dtype, cadre_per_replica **ret_values)
{
    uint32_t count = (uint32_t)json_array_size(values);
    cadre_tensor **tensors = case_alloc(self, count + 1, sizeof(cadre_tensor *));
    for (uint32_t i = 0; i < count; i++) {
        if (!case_tensor(self, json_array_get(values, i), dtype, &tensors[i])) {
            return false;
        }
    }
    cadre_status status = cadre_values_from_tensors(strategy, tensors, count, ret_values);
    if (status != CADRE_OK) {
        case_verdict(self, status, "cadre_values_from_tensors");
        return false;
    }
    case_keep(self, *ret_values, case_release_values);
    return true;
}

json_t *case_json(struct conformance_case *self, const cadre_tensor *tensor)
{
    return case_keep(self, value_of_tensor(tensor), case_release_json);
}

json_t *case_results(
    struct conformance_case *self, const cadre_per_replica *value, uint32_t component)
{
    json_t *list = case_keep(self, json_array(), case_release_json);
    for (uint32_t i = 0; i < cadre_per_replica_count(value); i++) {
        json_array_append_new(list, value_of_tensor(cadre_local_results(value, component)[i]));
    }
    return list;
}

/* --- verdicts --- */

bool case_op(struct conformance_case *self, cadre_reduce_op *ret_op, cadre_status *ret_status)
{
    const json_t *op = json_object_get(self->given, "op");
    if (!json_is_string(op)) {
        return case_skip(self, "\"op\" is no name");
    }
    *ret_status = cadre_reduce_op_parse(json_string_value(op), ret_op);
    return true;
}

bool case_verdict(struct conformance_case *self, cadre_status status, const char *what)
{
    const json_t *error = case_wanted_error(self->expect);
    if (error != NULL && status != CADRE_OK) {
        case_check_error(self, error, status, true);
        return false;
    }
    if (error != NULL) {
        return case_fail(self, "%s worked, and an error was expected", what);
    }
    return case_ok(self, status, what);
}
