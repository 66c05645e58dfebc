/* SPDX-License-Identifier: Apache-2.0
 * Per-replica values as TensorFlow prints them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/composite/composite.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_text.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/values/values.h"

/* One replica's. */
static cadre_status write_own(const cadre_per_replica *value, const struct composite *composite,
    uint32_t replica, enum tensor_form form, FILE *to, struct cadre_error *error)
{
    const cadre_element element = per_replica_element(value, replica);
    cadre_tensor *const *tensors = element.tensors + composite->first;
    return composite->kind == CADRE_COMPOSITE_NONE
               ? tensor_text(tensors[0], form, to, error)
               : composite_print(composite->kind, tensors, to, error);
}

static cadre_status write_component(const cadre_per_replica *value,
    const struct composite *composite, enum tensor_form form, FILE *to, struct cadre_error *error)
{
    bool plain = true;
    for (uint32_t i = 0; i < composite->count; i++) {
        plain = plain && cadre_per_replica_is_plain(value, composite->first + i);
    }
    if (plain) {
        return write_own(value, composite, 0, form, to, error);
    }
    fputs("PerReplica:{\n", to);
    for (uint32_t i = 0; i < value->replicas; i++) {
        fprintf(to, "%s  %u: ", i == 0 ? "" : ",\n", i);
        CADRE_TRY(write_own(value, composite, i, form, to, error));
    }
    fputs("\n}", to);
    return CADRE_OK;
}

/* --- structures: adjacent components whose names begin alike --- */

/* Components first .. end - 1, and `rest` of the name of each: its path inside the structure. */
struct structure {
    const cadre_per_replica *value;
    cadre_element element; /* of its first replica */
    const char **rest;     /* by component */
    uint32_t first;
    uint32_t end;
};

/* The first name of a path. */
static size_t word_bytes(const char *path)
{
    return strcspn(path, "/");
}

/* The index behind the components after `at` whose paths begin with the same name. */
static uint32_t end_of_word(const struct structure *structure, uint32_t at)
{
    const char *path = structure->rest[at];
    size_t bytes = word_bytes(path);
    uint32_t end = at + 1;
    while (path[bytes] != '\0' && end < structure->end &&
           word_bytes(structure->rest[end]) == bytes && structure->rest[end][bytes] == '/' &&
           strncmp(structure->rest[end], path, bytes) == 0) {
        end++;
    }
    return end;
}

/* Its components are named 0, 1, 2, ... */
static bool is_tuple(const struct structure *structure)
{
    uint32_t number = 0;
    for (uint32_t at = structure->first; at < structure->end; at = end_of_word(structure, at)) {
        char text[16];
        int bytes = snprintf(text, sizeof text, "%u", number++);
        if (word_bytes(structure->rest[at]) != (size_t)bytes ||
            strncmp(structure->rest[at], text, (size_t)bytes) != 0) {
            return false;
        }
    }
    return true;
}

static cadre_status write_structure(
    const struct structure *structure, FILE *to, struct cadre_error *error)
{
    bool tuple = is_tuple(structure);
    fputc(tuple ? '(' : '{', to);
    uint32_t at = structure->first;
    while (at < structure->end) {
        uint32_t end = end_of_word(structure, at);
        size_t bytes = word_bytes(structure->rest[at]);
        fputs(at == structure->first ? "" : ", ", to);
        if (!tuple) {
            fprintf(to, "'%.*s': ", (int)bytes, structure->rest[at]);
        }
        const struct composite composite = composite_of_element(&structure->element, at);
        const bool whole = composite.count > 1 && composite.count == end - at;
        if (structure->rest[at][bytes] == '\0' || whole) {
            CADRE_TRY(write_component(structure->value, &composite, TENSOR_FORM_REPR, to, error));
        } else {
            const struct structure inner = {
                structure->value, structure->element, structure->rest, at, end};
            for (uint32_t i = at; i < end; i++) {
                structure->rest[i] += bytes + 1;
            }
            CADRE_TRY(write_structure(&inner, to, error));
        }
        at = end;
    }
    fputc(tuple ? ')' : '}', to);
    return CADRE_OK;
}

static cadre_status write_value(const void *of, FILE *to, struct cadre_error *error)
{
    const cadre_per_replica *value = of;
    const cadre_element first = per_replica_element(value, 0);
    struct composite at = composite_of_element(&first, 0);
    const char *rest[CADRE_ELEMENT_TENSORS_MAX];
    bool named = value->names != NULL;
    if (value->components == at.count) {
        return write_component(value, &at, TENSOR_FORM_STR, to, error);
    }
    for (uint32_t i = 0; named && i < value->components; i++) {
        rest[i] = value->names[i];
        named = rest[i] != NULL;
    }
    if (named) {
        const struct structure whole = {value, first, rest, 0, value->components};
        return write_structure(&whole, to, error);
    }
    fputc('(', to);
    for (uint32_t i = 0; i < value->components; i += at.count) {
        at = composite_of_element(&first, i);
        fputs(i == 0 ? "" : ", ", to);
        CADRE_TRY(write_component(value, &at, TENSOR_FORM_REPR, to, error));
    }
    fputc(')', to);
    return CADRE_OK;
}

cadre_status cadre_value_print(const cadre_per_replica *value, FILE *file)
{
    struct cadre_error error = {0};
    cadre_status status = per_replica_require(value, __func__, "value", &error);
    if (status == CADRE_OK) {
        status = argument_require(file, __func__, "file", &error);
    }
    if (status == CADRE_OK) {
        status = text_print(write_value, value, file, &error);
    }
    return api_return(status, &error);
}
