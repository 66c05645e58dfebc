/* SPDX-License-Identifier: Apache-2.0
 * Tensors become the bytes of an example. Sizes are found first, so that the bytes are written
 * once, into the tensor that is given out. */
#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/examples/example_wire.h"

#include "cadre/example.h"

/* What readers of protocol buffers take. */
#define MESSAGE_BYTES_MAX ((size_t)INT32_MAX)

/* Field 1 and field 2, with a length: all that examples are made of, but for the kind of a list. */
#define TAG_FIRST  0x0a
#define TAG_SECOND 0x12

/* Sizes of the messages of one feature, from the inside. */
struct feature_sizes {
    size_t values; /* packed numbers */
    size_t list;
    size_t feature;
    size_t entry;
};

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7) {
        bytes++;
    }
    return bytes;
}

static char *put_varint(char *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *to++ = (char)(value | 0x80);
    }
    *to++ = (char)value;
    return to;
}

/* A field with a length, in front of `content` bytes. */
static size_t field_bytes(size_t content)
{
    return 1 + varint_bytes(content) + content;
}

static char *put_field(char *to, unsigned tag, size_t content)
{
    *to++ = (char)tag;
    return put_varint(to, content);
}

static char *put_bytes(char *to, const void *bytes, size_t size)
{
    if (size > 0) {
        memcpy(to, bytes, size);
    }
    return to + size;
}

static enum example_kind kind_of(cadre_dtype dtype)
{
    switch (dtype) {
    case CADRE_STRING:
        return EXAMPLE_STRINGS;
    case CADRE_F32:
        return EXAMPLE_FLOATS;
    case CADRE_I64:
        return EXAMPLE_INTS;
    default:
        return EXAMPLE_NOTHING;
    }
}

static struct feature_sizes example_serialize_measure(const char *name, const cadre_tensor *tensor)
{
    struct feature_sizes sizes = {0};
    int64_t count = cadre_tensor_count(tensor);
    if (cadre_tensor_dtype(tensor) == CADRE_STRING) {
        const cadre_string *strings = cadre_tensor_const_data(tensor);
        for (int64_t i = 0; i < count; i++) {
            sizes.list += field_bytes(strings[i].size);
        }
    } else if (cadre_tensor_dtype(tensor) == CADRE_F32) {
        sizes.values = cadre_tensor_bytes(tensor);
    } else {
        const int64_t *numbers = cadre_tensor_const_data(tensor);
        for (int64_t i = 0; i < count; i++) {
            sizes.values += varint_bytes((uint64_t)numbers[i]);
        }
    }
    if (sizes.values > 0) {
        sizes.list = field_bytes(sizes.values);
    }
    sizes.feature = field_bytes(sizes.list);
    sizes.entry = field_bytes(strlen(name)) + field_bytes(sizes.feature);
    return sizes;
}

static char *put_values(char *to, const cadre_tensor *tensor)
{
    int64_t count = cadre_tensor_count(tensor);
    if (cadre_tensor_dtype(tensor) == CADRE_F32) {
        return put_bytes(to, cadre_tensor_const_data(tensor), cadre_tensor_bytes(tensor));
    }
    if (cadre_tensor_dtype(tensor) == CADRE_I64) {
        const int64_t *numbers = cadre_tensor_const_data(tensor);
        for (int64_t i = 0; i < count; i++) {
            to = put_varint(to, (uint64_t)numbers[i]);
        }
        return to;
    }
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    for (int64_t i = 0; i < count; i++) {
        to = put_field(to, TAG_FIRST, strings[i].size);
        to = put_bytes(to, strings[i].bytes, strings[i].size);
    }
    return to;
}

static char *put_feature(char *to, const char *name, const cadre_tensor *tensor)
{
    struct feature_sizes sizes = example_serialize_measure(name, tensor);
    to = put_field(to, TAG_FIRST, sizes.entry);
    to = put_field(to, TAG_FIRST, strlen(name));
    to = put_bytes(to, name, strlen(name));
    to = put_field(to, TAG_SECOND, sizes.feature);
    to = put_field(to, (unsigned)kind_of(cadre_tensor_dtype(tensor)) << 3 | 2, sizes.list);
    if (sizes.values > 0) {
        to = put_field(to, TAG_FIRST, sizes.values);
    }
    return put_values(to, tensor);
}

static cadre_status check_features(const char *const names[], cadre_tensor *const tensors[],
    size_t count, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] == NULL || tensors[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "feature %zu of an example: the %s is NULL", i,
                names[i] == NULL ? "name" : "tensor");
        }
        cadre_dtype dtype = cadre_tensor_dtype(tensors[i]);
        if (kind_of(dtype) == EXAMPLE_NOTHING) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "feature \"%s\" is a tensor of type %s; examples hold f32, i64 and string only, so "
                "convert it",
                names[i], cadre_dtype_name(dtype));
        }
        for (size_t before = 0; before < i; before++) {
            if (strcmp(names[before], names[i]) == 0) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "feature \"%s\" is there twice, as number %zu and number %zu", names[i], before,
                    i);
            }
        }
    }
    return CADRE_OK;
}

static cadre_status example_serialize_serialize(const char *const names[],
    cadre_tensor *const tensors[], size_t count, cadre_tensor **ret_example,
    struct cadre_error *error)
{
    size_t features = 0;
    CADRE_TRY(argument_require(ret_example, "cadre_example_serialize", "ret_example", error));
    *ret_example = NULL;
    if (count > 0) {
        CADRE_TRY(argument_require(names, "cadre_example_serialize", "names", error));
        CADRE_TRY(argument_require(tensors, "cadre_example_serialize", "tensors", error));
    }
    CADRE_TRY(check_features(names, tensors, count, error));
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(tensor_require_host(tensors[i], "cadre_example_serialize", error));
    }
    for (size_t i = 0; i < count; i++) {
        features += field_bytes(example_serialize_measure(names[i], tensors[i]).entry);
        if (field_bytes(features) > MESSAGE_BYTES_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "feature \"%s\" makes the example longer than the %zu bytes that readers take; "
                "divide it",
                names[i], MESSAGE_BYTES_MAX);
        }
    }
    size_t bytes = count > 0 ? field_bytes(features) : 0;
    char *text = NULL;
    CADRE_TRY(tensor_strings_create(0, NULL, bytes, ret_example, &text, error));
    *(cadre_string *)cadre_tensor_data(*ret_example) = (cadre_string){.bytes = text, .size = bytes};
    char *to = count > 0 ? put_field(text, TAG_FIRST, features) : text;
    for (size_t i = 0; i < count; i++) {
        to = put_feature(to, names[i], tensors[i]);
    }
    CADRE_ASSERT(to == text + bytes);
    return CADRE_OK;
}

cadre_status cadre_example_serialize(const char *const names[], cadre_tensor *const tensors[],
    size_t count, cadre_tensor **ret_example)
{
    struct cadre_error error = {0};
    cadre_status status = example_serialize_serialize(names, tensors, count, ret_example, &error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}
