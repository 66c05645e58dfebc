/* SPDX-License-Identifier: Apache-2.0
 * The safetensors format: headers encoded and decoded, with all checks of a foreign file. Pure
 * but for memory; checkpoint/ and export.c use it. */
#include "worker/library/runtime/state/format/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/model/task_message.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"

#define LENGTH_BYTES    8
#define ALIGNMENT       8
#define METADATA        "__metadata__"
#define VARIABLE_PREFIX "variable/"

static const struct {
    cadre_dtype dtype;
    const char *name;
} dtype_names[] = {
    {CADRE_F64, "F64"},
    {CADRE_F32, "F32"},
    {CADRE_F16, "F16"},
    {CADRE_BF16, "BF16"},
    {CADRE_I64, "I64"},
    {CADRE_I32, "I32"},
    {CADRE_I16, "I16"},
    {CADRE_I8, "I8"},
    {CADRE_U32, "U32"},
    {CADRE_U16, "U16"},
    {CADRE_U8, "U8"},
    {CADRE_BOOL, "BOOL"},
};

static void release_json(json_t **object)
{
    json_decref(*object);
}

#define JSON_AT_EXIT CADRE_CLEANUP(release_json)

static const char *dtype_name(cadre_dtype dtype)
{
    CADRE_ASSERT(dtype != CADRE_STRING);
    for (size_t i = 0; i < sizeof dtype_names / sizeof dtype_names[0]; i++) {
        if (dtype_names[i].dtype == dtype) {
            return dtype_names[i].name;
        }
    }
    return NULL;
}

const char *safetensors_variable(const struct safetensors_entry *entry)
{
    return entry->variable[0] != '\0' ? entry->variable : entry->name;
}

/* --- encoding --- */

size_t safetensors_set_offsets(struct safetensors_entry *entries, size_t count)
{
    size_t offset = 0;
    for (size_t element_bytes = 8; element_bytes > 0; element_bytes /= 2) {
        for (size_t i = 0; i < count; i++) {
            if (cadre_dtype_bytes(entries[i].dtype) == element_bytes) {
                entries[i].offset = offset;
                offset += entries[i].bytes;
            }
        }
    }
    return offset;
}

const struct safetensors_entry *safetensors_next(
    const struct safetensors_entry *entries, size_t count, const struct safetensors_entry *before)
{
    size_t element_bytes = before == NULL ? 8 : cadre_dtype_bytes(before->dtype);
    size_t at = before == NULL ? 0 : (size_t)(before - entries) + 1;
    while (element_bytes > 0) {
        while (at < count && cadre_dtype_bytes(entries[at].dtype) != element_bytes) {
            at++;
        }
        if (at < count) {
            return &entries[at];
        }
        element_bytes /= 2;
        at = 0;
    }
    return NULL;
}

/* NULL: no memory. */
static json_t *safetensors_describe(const struct safetensors_entry *entry)
{
    CADRE_ASSERT(entry->rank <= CADRE_RANK_MAX);
    JSON_AT_EXIT json_t *shape = json_array();
    for (uint32_t i = 0; i < entry->rank; i++) {
        if (json_array_append_new(shape, json_integer(entry->dims[i])) != 0) {
            return NULL;
        }
    }
    return json_pack("{s:s, s:O, s:[I, I]}", "dtype", dtype_name(entry->dtype), "shape", shape,
        "data_offsets", (json_int_t)entry->offset, (json_int_t)(entry->offset + entry->bytes));
}

static void variable_key(const char *name, char ret_key[SAFETENSORS_NAME_BYTES + 16])
{
    snprintf(ret_key, SAFETENSORS_NAME_BYTES + 16, VARIABLE_PREFIX "%s", name);
}

/* NULL: no memory. */
static json_t *describe_file(
    const struct safetensors_entry *entries, size_t count, uint64_t position)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, position);
    json_t *metadata = json_pack("{s:s, s:s}", "format", "cadre", "position", number);
    for (size_t i = 0; i < count; i++) {
        char key[SAFETENSORS_NAME_BYTES + 16];
        variable_key(entries[i].name, key);
        if (entries[i].variable[0] != '\0' &&
            json_object_set_new(metadata, key, json_string(entries[i].variable)) != 0) {
            json_decref(metadata);
            return NULL;
        }
    }
    return metadata;
}

static char *header_text(const struct safetensors_entry *entries, size_t count, uint64_t position)
{
    JSON_AT_EXIT json_t *header = json_object();
    if (json_object_set_new(header, METADATA, describe_file(entries, count, position)) != 0) {
        return NULL;
    }
    const struct safetensors_entry *entry = NULL;
    while ((entry = safetensors_next(entries, count, entry)) != NULL) {
        if (json_object_set_new(header, entry->name, safetensors_describe(entry)) != 0) {
            return NULL;
        }
    }
    return json_dumps(header, JSON_COMPACT);
}

cadre_status safetensors_header(const struct safetensors_entry *entries, size_t count,
    uint64_t position, char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    *ret_bytes = NULL;
    CADRE_FREE_AT_EXIT char *text = header_text(entries, count, position);
    size_t text_bytes = text == NULL ? 0 : strlen(text);
    size_t header_bytes = (text_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *bytes = text == NULL ? NULL : malloc(LENGTH_BYTES + header_bytes);
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the header of a checkpoint of %zu tensors", count);
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        bytes[i] = (char)(uint8_t)((uint64_t)header_bytes >> (8 * i));
    }
    memset(bytes + LENGTH_BYTES, ' ', header_bytes);
    memcpy(bytes + LENGTH_BYTES, text, text_bytes);
    *ret_bytes = bytes;
    *ret_size = LENGTH_BYTES + header_bytes;
    return CADRE_OK;
}

/* --- decoding --- */

static cadre_status decode_dtype(
    const char *text, const char *name, cadre_dtype *ret_dtype, struct cadre_error *error)
{
    for (size_t i = 0; i < sizeof dtype_names / sizeof dtype_names[0]; i++) {
        if (strcmp(dtype_names[i].name, text) == 0) {
            *ret_dtype = dtype_names[i].dtype;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "tensor '%s' has the unknown type '%.16s'; write it as one of F64, F32, F16, BF16, I64, "
        "I32, I16, I8, U32, U16, U8 and BOOL",
        name, text);
}

/* The name of the variable, if the metadata have one. */
static cadre_status decode_variable(
    json_t *header, struct safetensors_entry *entry, struct cadre_error *error)
{
    char key[SAFETENSORS_NAME_BYTES + 16];
    variable_key(entry->name, key);
    const char *name = json_string_value(json_object_get(json_object_get(header, METADATA), key));
    if (name == NULL) {
        return CADRE_OK;
    }
    if (strlen(name) >= sizeof entry->variable) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the metadata call the variable of tensor '%s' '%.64s...', which is over %zu bytes",
            entry->name, name, sizeof entry->variable - 1);
    }
    memcpy(entry->variable, name, strlen(name) + 1);
    return CADRE_OK;
}

static cadre_status decode_entry(const char *name, json_t *object, size_t data_bytes,
    struct safetensors_entry *ret_entry, struct cadre_error *error)
{
    const char *dtype = NULL;
    json_t *shape = NULL;
    json_int_t begin = 0;
    json_int_t end = 0;
    if (strlen(name) >= sizeof ret_entry->name ||
        json_unpack(object, "{s:s, s:o, s:[I, I]}", "dtype", &dtype, "shape", &shape,
            "data_offsets", &begin, &end) != 0 ||
        !json_is_array(shape) || json_array_size(shape) > CADRE_RANK_MAX) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "the description of tensor '%.64s' is not whole", name);
    }
    *ret_entry = (struct safetensors_entry){.rank = (uint32_t)json_array_size(shape)};
    memcpy(ret_entry->name, name, strlen(name) + 1);
    cadre_status status = decode_dtype(dtype, name, &ret_entry->dtype, error);
    if (status != CADRE_OK) {
        return status;
    }
    for (uint32_t i = 0; i < ret_entry->rank; i++) {
        json_t *dim = json_array_get(shape, i);
        ret_entry->dims[i] = json_is_integer(dim) ? json_integer_value(dim) : -1;
    }
    int64_t count;
    status = tensor_shape_check(
        ret_entry->dtype, ret_entry->rank, ret_entry->dims, &count, &ret_entry->bytes, error);
    bool inside = begin >= 0 && end >= begin && (uint64_t)end <= data_bytes;
    if (status != CADRE_OK || !inside || (uint64_t)(end - begin) != ret_entry->bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "tensor '%s' is at bytes %lld to %lld of %zu, which is not its shape's size", name,
            (long long)begin, (long long)end, data_bytes);
    }
    ret_entry->offset = (size_t)begin;
    return CADRE_OK;
}

cadre_status safetensors_header_bytes(const void *bytes, size_t size, uint64_t file_bytes,
    size_t *ret_bytes, struct cadre_error *error)
{
    uint64_t length = 0;
    for (size_t i = 0; i < LENGTH_BYTES && i < size; i++) {
        length |= (uint64_t)((const uint8_t *)bytes)[i] << (8 * i);
    }
    if (size < LENGTH_BYTES || length > SAFETENSORS_HEADER_BYTES_MAX ||
        length > file_bytes - LENGTH_BYTES) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%" PRIu64 " bytes cannot hold a header of %" PRIu64
            " bytes; the file was cut short or is no safetensors file",
            file_bytes, length);
    }
    *ret_bytes = LENGTH_BYTES + (size_t)length;
    return CADRE_OK;
}

/* `bytes` has all of it. */
static cadre_status decode_json(
    const void *bytes, size_t header_bytes, json_t **ret_header, struct cadre_error *error)
{
    json_error_t wrong;
    *ret_header = json_loadb((const char *)bytes + LENGTH_BYTES, header_bytes - LENGTH_BYTES,
        JSON_REJECT_DUPLICATES, &wrong);
    if (!json_is_object(*ret_header)) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "the header is not a JSON object: %.100s",
            *ret_header == NULL ? wrong.text : "it is of another type");
    }
    return CADRE_OK;
}

static uint64_t decode_position(json_t *header)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(header, METADATA), "position"));
    char *end = NULL;
    unsigned long long position = text == NULL ? 0 : strtoull(text, &end, 10);
    return text == NULL || text[0] == '\0' || *end != '\0' ? POSITION_NONE : position;
}

static int by_index(const void *a, const void *b)
{
    const struct safetensors_entry *left = *(struct safetensors_entry *const *)a;
    const struct safetensors_entry *right = *(struct safetensors_entry *const *)b;
    if (left->offset != right->offset) {
        return left->offset < right->offset ? -1 : 1;
    }
    return left->bytes < right->bytes ? -1 : left->bytes > right->bytes ? 1 : 0;
}

static cadre_status belongs_to_none(
    size_t begin, size_t end, const struct safetensors_entry *before, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "bytes %zu to %zu of the data, behind %s%s%s, belong to no tensor", begin, end,
        before == NULL ? "the header" : "tensor '", before == NULL ? "" : before->name,
        before == NULL ? "" : "'");
}

/* Tensors must be one behind the other, and fill the data. */
static cadre_status check_pointers(const struct safetensors_entry *entries, size_t count,
    size_t data_bytes, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT const struct safetensors_entry **order = calloc(count + 1, sizeof *order);
    if (order == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu tensors", count);
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = &entries[i];
    }
    qsort(order, count, sizeof *order, by_index);
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (order[i]->offset < end) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "tensors '%s' and '%s' overlap: the second begins at byte %zu of the data, and the "
                "first ends at byte %zu",
                order[i - 1]->name, order[i]->name, order[i]->offset, end);
        }
        if (order[i]->offset > end) {
            return belongs_to_none(end, order[i]->offset, i == 0 ? NULL : order[i - 1], error);
        }
        end += order[i]->bytes;
    }
    return end == data_bytes
               ? CADRE_OK
               : belongs_to_none(end, data_bytes, count == 0 ? NULL : order[count - 1], error);
}

/* `entries` has room for all that the header names. */
static cadre_status decode_entries(json_t *header, size_t data_bytes,
    struct safetensors_entry *entries, size_t *ret_count, struct cadre_error *error)
{
    const char *name;
    json_t *object;
    *ret_count = 0;
    json_object_foreach(header, name, object)
    {
        if (strcmp(name, METADATA) == 0) {
            continue;
        }
        struct safetensors_entry *entry = &entries[(*ret_count)++];
        CADRE_TRY(decode_entry(name, object, data_bytes, entry, error));
        CADRE_TRY(decode_variable(header, entry, error));
    }
    return check_pointers(entries, *ret_count, data_bytes, error);
}

cadre_status safetensors_decode_header(const void *bytes, size_t size, uint64_t file_bytes,
    struct safetensors_list *ret_list, struct cadre_error *error)
{
    JSON_AT_EXIT json_t *header = NULL;
    *ret_list = (struct safetensors_list){.position = POSITION_NONE};
    CADRE_TRY(safetensors_header_bytes(bytes, size, file_bytes, &ret_list->data_at, error));
    CADRE_ASSERT(ret_list->data_at <= size);
    CADRE_TRY(decode_json(bytes, ret_list->data_at, &header, error));
    struct safetensors_entry *entries = calloc(json_object_size(header) + 1, sizeof *entries);
    if (entries == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu tensors", json_object_size(header));
    }
    size_t data_bytes = (size_t)file_bytes - ret_list->data_at;
    cadre_status status = decode_entries(header, data_bytes, entries, &ret_list->count, error);
    if (status != CADRE_OK) {
        free(entries);
        *ret_list = (struct safetensors_list){.position = POSITION_NONE};
        return status;
    }
    ret_list->entries = entries;
    ret_list->position = decode_position(header);
    return CADRE_OK;
}

cadre_status safetensors_decode(const void *bytes, size_t size,
    struct safetensors_entry **ret_entries, size_t *ret_count, uint64_t *ret_position,
    struct cadre_error *error)
{
    struct safetensors_list list;
    *ret_entries = NULL;
    *ret_count = 0;
    CADRE_TRY(safetensors_decode_header(bytes, size, size, &list, error));
    for (size_t i = 0; i < list.count; i++) {
        list.entries[i].data = (const uint8_t *)bytes + list.data_at + list.entries[i].offset;
    }
    *ret_entries = list.entries;
    *ret_count = list.count;
    *ret_position = list.position;
    return CADRE_OK;
}
