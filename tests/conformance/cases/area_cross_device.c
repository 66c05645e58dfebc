/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations: which is the default, and what is packed together. */
#include <string.h>

#include "areas.h"
#include "replicas.h"

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
            count++;
        }
        cadre_status status =
            cadre_cross_device_default(devices, count, (uint32_t)gpus, dtype, &ops);
        if (status != CADRE_OK && case_wanted_error(self->expect) != NULL) {
            case_verdict(self, status, "cadre_cross_device_default");
            return;
        }
        if (!case_ok(self, status, "cadre_cross_device_default")) {
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
    cadre_cross_device_packs(bytes, count, (size_t)most, lengths, &number);
    json_t *got = case_keep(self, json_array(), case_release_json);
    for (size_t i = 0; i < number; i++) {
        json_array_append_new(got, json_integer((json_int_t)lengths[i]));
    }
    case_equal(self, "the packs", json_object_get(self->expect, "pack_lengths"), got);
}

void area_cross_device_ops(struct conformance_case *self)
{
    static const char *const known[] = {"query", "queries", "sizes_bytes", "bytes_per_pack", NULL};
    const char *query = json_string_value(json_object_get(self->given, "query"));
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (query != NULL && strcmp(query, "default_for_devices") == 0) {
        default_choice(self);
    } else if (query != NULL && strcmp(query, "pack") == 0) {
        packs(self);
    } else {
        case_skip(self, "the query is not known");
    }
}
