/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations: which is chosen, packs, and those of a program's own. */
#include <stdio.h>
#include <string.h>

#include "areas.h"
#include "replicas.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/reductions/cross_device.h"

/* --- those of the library --- */

static json_t *choice_of(const cadre_cross_device_ops *ops)
{
    static const char *const kinds[] = {
        "auto", "reduction_to_one_device", "hierarchical_copy", "collective"};
    static const char *const implementations[] = {"AUTO", "RING", "NCCL"};
    return ops->kind == CADRE_CROSS_DEVICE_COLLECTIVE
               ? json_pack("{ss, ss}", "reducer", kinds[ops->kind], "implementation",
                     implementations[ops->implementation])
               : json_pack("{ss}", "reducer", kinds[ops->kind]);
}

static void default_choice(struct conformance_case *self)
{
    static const char *const known[] = {"devices", "physical_gpus", "dtype", NULL};
    const json_t *queries = json_object_get(self->given, "queries");
    json_t *got = case_keep(self, json_array(), case_release_json);
    size_t at;
    json_t *query;
    json_array_foreach(queries, at, query)
    {
        const json_t *names = json_object_get(query, "devices");
        const char *devices[64];
        uint32_t count = 0;
        json_int_t gpus = 0;
        cadre_dtype dtype;
        cadre_cross_device_ops ops;
        if (!case_knows(self, query, known) || !case_dtype(self, query, CADRE_F32, &dtype) ||
            !case_number(self, query, "physical_gpus", 0, 1024, 0, &gpus)) {
            return;
        }
        while (count < 64 && json_array_get(names, count) != NULL) {
            devices[count] = json_string_value(json_array_get(names, count));
            if (devices[count++] == NULL) {
                case_skip(self, "a device that is no name");
                return;
            }
        }
        struct cadre_error error = {0};
        cadre_status status =
            cross_device_default(devices, count, (uint32_t)gpus, dtype, &ops, &error);
        cadre_error_publish(&error);
        if (status != CADRE_OK && case_wanted_error(self->expect) != NULL) {
            case_verdict(self, status, "cross_device_default");
            return;
        }
        if (!case_ok(self, status, "cross_device_default")) {
            return;
        }
        json_array_append_new(got, choice_of(&ops));
    }
    case_equal(self, "the choices", json_object_get(self->expect, "results"), got);
}

static void packs(struct conformance_case *self)
{
    const json_t *sizes = json_object_get(self->given, "sizes_bytes");
    size_t count = json_array_size(sizes);
    size_t *bytes = case_alloc(self, count + 1, sizeof *bytes);
    size_t *lengths = case_alloc(self, count + 1, sizeof *lengths);
    size_t number = 0;
    json_int_t most = 0;
    if (!case_number(self, self->given, "bytes_per_pack", 0, INT64_MAX, 0, &most)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *size = json_array_get(sizes, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0) {
            case_skip(self, "a size that is not known");
            return;
        }
        bytes[i] = (size_t)json_integer_value(size);
    }
    for (size_t at = 0; at < count; number++) {
        lengths[number] = collective_pack(bytes + at, sizeof *bytes, count - at, (size_t)most);
        at += lengths[number];
    }
    json_t *got = case_keep(self, json_array(), case_release_json);
    for (size_t i = 0; i < number; i++) {
        json_array_append_new(got, json_integer((json_int_t)lengths[i]));
    }
    case_equal(self, "the packs", json_object_get(self->expect, "pack_lengths"), got);
}

/* --- a program's own: they sum, and note that they were called --- */

static cadre_status sum_value(const cadre_cross_device_value *value)
{
    cadre_tensor *sum;
    CADRE_TRY(cadre_tensor_copy(value->tensors[0], &sum));
    float *at = cadre_tensor_data(sum);
    for (uint32_t i = 1; i < value->tensor_count; i++) {
        const float *more = cadre_tensor_const_data(value->tensors[i]);
        for (int64_t e = 0; e < cadre_tensor_count(sum); e++) {
            at[e] += more[e];
        }
    }
    for (uint32_t i = 0; i < value->device_count; i++) {
        value->ret_tensors[i] = cadre_tensor_retain(sum);
    }
    cadre_tensor_release(sum);
    return CADRE_OK;
}

/* Its name, and how many values it was given to how many devices each. */
static void note_call(
    json_t *called, const char *name, const cadre_cross_device_value values[], uint32_t count)
{
    json_t *devices = json_array();
    for (uint32_t i = 0; i < values[0].device_count; i++) {
        const char *device = strstr(values[0].devices[i], "device:");
        json_array_append_new(devices, json_string(device == NULL ? "?" : device + 7));
    }
    json_array_append_new(called, json_pack("[s, i, o]", name, (int)count, devices));
}

static cadre_status own_reduce(
    cadre_reduce_op op, const cadre_cross_device_value *value, void *user)
{
    (void)op;
    note_call(user, "reduce_implementation", value, 1);
    return sum_value(value);
}

static cadre_status own_batch(
    cadre_reduce_op op, const cadre_cross_device_value values[], uint32_t count, void *user)
{
    (void)op;
    note_call(user, "batch_reduce_implementation", values, count);
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(sum_value(&values[i]));
    }
    return CADRE_OK;
}

static cadre_status own_broadcast(const cadre_cross_device_value *value, void *user)
{
    note_call(user, "broadcast_implementation", value, 1);
    return sum_value(value);
}

/* One value: a list for the replicas, or one tensor that all of them have. */
static bool take_value(struct conformance_case *self, cadre_strategy *strategy, const json_t *given,
    uint32_t replicas, cadre_per_replica **ret_value)
{
    const json_t *each = json_object_get(given, "per_replica");
    if (each != NULL) {
        return case_values(self, strategy, each, CADRE_F32, ret_value);
    }
    cadre_tensor *same[REPLICAS_MAX];
    if (!case_tensor(self, json_object_get(given, "mirrored"), CADRE_F32, &same[0])) {
        return false;
    }
    for (uint32_t i = 1; i < replicas; i++) {
        same[i] = same[0];
    }
    return case_ok(
               self, cadre_values_from_tensors(strategy, same, replicas, ret_value), "values") &&
           case_keep(self, *ret_value, case_release_values) != NULL;
}

#define VALUES_MAX 8

struct own {
    cadre_strategy *strategy;
    cadre_reduce_op op;
    uint32_t count;
    cadre_per_replica *values[VALUES_MAX];
    cadre_destinations to[VALUES_MAX];
    const char *devices[REPLICAS_MAX];
};

static bool take_own(struct conformance_case *self, struct own *own)
{
    const json_t *values = json_object_get(self->given, "values");
    const json_t *names = json_object_get(self->given, "destinations");
    json_int_t replicas = 0;
    cadre_status status = CADRE_OK;
    own->count = (uint32_t)json_array_size(values);
    if (own->count < 1 || own->count > VALUES_MAX || json_array_size(names) > REPLICAS_MAX ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas) ||
        !case_op(self, &own->op, &status) || status != CADRE_OK) {
        return case_skip(self, "values that are not known");
    }
    own->strategy = case_strategy(self, (uint32_t)replicas);
    for (uint32_t i = 0; own->strategy != NULL && i < own->count; i++) {
        if (!take_value(self, own->strategy, json_array_get(values, i), (uint32_t)replicas,
                &own->values[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < json_array_size(names); i++) {
        own->devices[i] = json_string_value(json_array_get(names, i));
    }
    for (uint32_t i = 0; i < own->count && names != NULL; i++) {
        own->to[i] = (cadre_destinations){
            .devices = own->devices, .device_count = (uint32_t)json_array_size(names)};
    }
    return own->strategy != NULL;
}

static cadre_status call_own(
    const char *name, const struct own *own, cadre_per_replica *ret_results[])
{
    if (strcmp(name, "batch_reduce_to") == 0) {
        return cadre_batch_reduce_to(own->strategy, own->op,
            (const cadre_per_replica *const *)own->values, own->to, own->count, ret_results);
    }
    return strcmp(name, "reduce_to") == 0
               ? cadre_reduce_to(own->strategy, own->op, own->values[0], own->to, ret_results)
               : cadre_broadcast_to(own->strategy, cadre_local_results(own->values[0], 0)[0],
                     own->to, ret_results);
}

static void own_functions(struct conformance_case *self)
{
    struct own own = {.count = 0};
    cadre_per_replica *results[VALUES_MAX] = {NULL};
    const char *name = json_string_value(json_object_get(self->given, "call"));
    json_t *called = case_keep(self, json_array(), case_release_json);
    if (!take_own(self, &own)) {
        return;
    }
    const cadre_cross_device_ops ops = {.kind = CADRE_CROSS_DEVICE_OWN,
        .own = {.reduce = own_reduce,
            .batch_reduce = own_batch,
            .broadcast = own_broadcast,
            .user = called}};
    if (name == NULL ||
        !case_ok(self, cadre_strategy_set_cross_device_ops(own.strategy, &ops), "the functions") ||
        !case_verdict(self, call_own(name, &own, results), name)) {
        return;
    }
    json_t *got = case_keep(self, json_array(), case_release_json);
    for (uint32_t i = 0; i < own.count && results[i] != NULL; i++) {
        case_keep(self, results[i], case_release_values);
        json_array_append(got, case_results(self, results[i], 0));
    }
    case_equal(self, "the calls", json_object_get(self->expect, "called"), called);
    case_equal(self, "the results", json_object_get(self->expect, "results"), got);
}

void area_cross_device_ops(struct conformance_case *self)
{
    static const char *const known[] = {"query", "queries", "sizes_bytes", "bytes_per_pack", "call",
        "op", "num_replicas", "values", "destinations", NULL};
    const char *query = json_string_value(json_object_get(self->given, "query"));
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (query != NULL && strcmp(query, "default_for_devices") == 0) {
        default_choice(self);
    } else if (query != NULL && strcmp(query, "pack") == 0) {
        packs(self);
    } else if (query != NULL && strcmp(query, "own_functions") == 0) {
        own_functions(self);
    } else {
        case_skip(self, "the query is not known");
    }
}
