/* SPDX-License-Identifier: Apache-2.0
 * A recursive-descent parser for the one dictionary an .npy header is; see npy_header.h. */
#include "worker/library/input/files/npy_header.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "worker/library/device/tensor.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6

/* Where the parser stands. All offsets are into the file. */
struct cursor {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    const char *path;
    struct cadre_error *error;
};

struct slice {
    const char *text;
    size_t size;
};

struct fields {
    bool has_descr;
    bool has_order;
    bool has_shape;
    bool fortran_order;
    size_t order_at;
    cadre_tensor_spec spec;
};

static const struct {
    const char *descr;
    cadre_dtype dtype;
} types[] = {
    {"<f8", CADRE_F64},
    {"<f4", CADRE_F32},
    {"<f2", CADRE_F16},
    {"<i8", CADRE_I64},
    {"<i4", CADRE_I32},
    {"<i2", CADRE_I16},
    {"<u4", CADRE_U32},
    {"<u2", CADRE_U16},
    {"|i1", CADRE_I8},
    {"|u1", CADRE_U8},
    {"|b1", CADRE_BOOL},
    {"<i1", CADRE_I8},
    {"<u1", CADRE_U8},
};

static cadre_status npy_header_damaged(const struct cursor *cursor, size_t at, const char *expected)
{
    return cadre_error_set(cursor->error, CADRE_DATA_LOSS,
        "%s: damaged npy header at byte %zu, where %s should be", cursor->path, at, expected);
}

cadre_status npy_header_size(const uint8_t *bytes, size_t size, const char *path, size_t *ret_size,
    struct cadre_error *error)
{
    if (size < MAGIC_BYTES + 4 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not an npy file: it does not begin with \\x93NUMPY and a version", path);
    }
    unsigned major = bytes[6];
    unsigned minor = bytes[7];
    if ((major != 1 && major != 2) || minor != 0) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "%s: npy format %u.%u at byte 6 is not read; save it as 1.0 or 2.0", path, major,
            minor);
    }
    size_t prefix = major == 1 ? 10 : 12;
    if (size < prefix) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is cut short: it has %zu bytes and its npy header alone has more than %zu", path,
            size, prefix);
    }
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major == 2) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > NPY_HEADER_BYTES_MAX) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s: npy header of %zu bytes at byte 8; the limit is %d", path, length,
            NPY_HEADER_BYTES_MAX);
    }
    *ret_size = prefix + length;
    return CADRE_OK;
}

static void skip_spaces(struct cursor *cursor)
{
    while (cursor->at < cursor->size &&
           (cursor->bytes[cursor->at] == ' ' || cursor->bytes[cursor->at] == '\n' ||
               cursor->bytes[cursor->at] == '\t' || cursor->bytes[cursor->at] == '\r')) {
        cursor->at++;
    }
}

/* Takes `character` after spaces, if it is there. */
static bool npy_header_take(struct cursor *cursor, char character)
{
    skip_spaces(cursor);
    if (cursor->at < cursor->size && cursor->bytes[cursor->at] == (uint8_t)character) {
        cursor->at++;
        return true;
    }
    return false;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(cursor);
    if (cursor->size - cursor->at < length ||
        memcmp(cursor->bytes + cursor->at, word, length) != 0) {
        return false;
    }
    cursor->at += length;
    return true;
}

/* A quoted string without escapes, as numpy writes it. */
static cadre_status parse_string(struct cursor *cursor, struct slice *ret_slice)
{
    char quote = '\'';
    if (!npy_header_take(cursor, '\'')) {
        quote = '"';
        if (!npy_header_take(cursor, '"')) {
            return npy_header_damaged(cursor, cursor->at, "a quoted string");
        }
    }
    size_t start = cursor->at;
    while (cursor->at < cursor->size && cursor->bytes[cursor->at] != (uint8_t)quote) {
        if (cursor->bytes[cursor->at] == '\\' || cursor->bytes[cursor->at] < ' ') {
            return npy_header_damaged(cursor, cursor->at, "a plain character");
        }
        cursor->at++;
    }
    if (cursor->at == cursor->size) {
        return npy_header_damaged(cursor, start, "a string that ends");
    }
    *ret_slice = (struct slice){(const char *)cursor->bytes + start, cursor->at - start};
    cursor->at++;
    return CADRE_OK;
}

static cadre_status parse_size(struct cursor *cursor, int64_t *ret_size)
{
    skip_spaces(cursor);
    size_t start = cursor->at;
    int64_t value = 0;
    while (cursor->at < cursor->size && cursor->bytes[cursor->at] >= '0' &&
           cursor->bytes[cursor->at] <= '9') {
        int64_t digit = cursor->bytes[cursor->at] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return npy_header_damaged(cursor, start, "a size below 2^63");
        }
        cursor->at++;
    }
    if (cursor->at == start) {
        return npy_header_damaged(cursor, start, "a size");
    }
    npy_header_take(cursor, 'L'); /* Python 2 wrote long integers so */
    *ret_size = value;
    return CADRE_OK;
}

/* "(3, 4)", "(3,)" or "()". */
static cadre_status parse_shape(struct cursor *cursor, cadre_tensor_spec *spec)
{
    if (!npy_header_take(cursor, '(')) {
        return npy_header_damaged(cursor, cursor->at, "a shape in parentheses");
    }
    spec->rank = 0;
    while (!npy_header_take(cursor, ')')) {
        if (spec->rank == CADRE_RANK_MAX) {
            return cadre_error_set(cursor->error, CADRE_UNIMPLEMENTED,
                "%s: npy header at byte %zu: more than %d dimensions", cursor->path, cursor->at,
                CADRE_RANK_MAX);
        }
        CADRE_TRY(parse_size(cursor, &spec->dims[spec->rank]));
        spec->rank++;
        if (!npy_header_take(cursor, ',')) {
            if (!npy_header_take(cursor, ')')) {
                return npy_header_damaged(cursor, cursor->at, "a comma or the end of the shape");
            }
            return CADRE_OK;
        }
    }
    return CADRE_OK;
}

static cadre_status parse_type(struct cursor *cursor, cadre_dtype *ret_dtype)
{
    struct slice descr = {0};
    skip_spaces(cursor);
    size_t at = cursor->at;
    CADRE_TRY(parse_string(cursor, &descr));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (descr.size == 3 && memcmp(descr.text, types[i].descr, 3) == 0) {
            *ret_dtype = types[i].dtype;
            return CADRE_OK;
        }
    }
    int shown = descr.size < 32 ? (int)descr.size : 32;
    return cadre_error_set(cursor->error, CADRE_UNIMPLEMENTED,
        "%s: npy type '%.*s' at byte %zu is not read; save it as little-endian f8 f4 f2 i8 i4 i2 "
        "i1 "
        "u1 or b1",
        cursor->path, shown, descr.text, at);
}

static bool npy_header_is(struct slice slice, const char *text)
{
    return slice.size == strlen(text) && memcmp(slice.text, text, slice.size) == 0;
}

static cadre_status parse_entry(struct cursor *cursor, struct fields *fields)
{
    struct slice key = {0};
    skip_spaces(cursor);
    size_t at = cursor->at;
    CADRE_TRY(parse_string(cursor, &key));
    if (!npy_header_take(cursor, ':')) {
        return npy_header_damaged(cursor, cursor->at, "a colon");
    }
    if (npy_header_is(key, "descr") && !fields->has_descr) {
        fields->has_descr = true;
        return parse_type(cursor, &fields->spec.dtype);
    }
    if (npy_header_is(key, "shape") && !fields->has_shape) {
        fields->has_shape = true;
        return parse_shape(cursor, &fields->spec);
    }
    if (npy_header_is(key, "fortran_order") && !fields->has_order) {
        fields->has_order = true;
        fields->order_at = cursor->at;
        fields->fortran_order = take_word(cursor, "True");
        if (!fields->fortran_order && !take_word(cursor, "False")) {
            return npy_header_damaged(cursor, cursor->at, "True or False");
        }
        return CADRE_OK;
    }
    return npy_header_damaged(cursor, at, "one each of 'descr', 'fortran_order' and 'shape'");
}

cadre_status npy_header_parse(const uint8_t *bytes, size_t size, const char *path,
    struct npy_header *ret_header, struct cadre_error *error)
{
    size_t expected = 0;
    struct fields fields = {0};
    CADRE_TRY(npy_header_size(bytes, size, path, &expected, error));
    if (size < expected) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is cut short: it has %zu bytes and its npy header alone has %zu", path, size,
            expected);
    }
    struct cursor cursor = {bytes, expected, bytes[6] == 1 ? 10 : 12, path, error};
    if (!npy_header_take(&cursor, '{')) {
        return npy_header_damaged(&cursor, cursor.at, "a dictionary in braces");
    }
    while (!npy_header_take(&cursor, '}')) {
        CADRE_TRY(parse_entry(&cursor, &fields));
        if (!npy_header_take(&cursor, ',')) {
            if (!npy_header_take(&cursor, '}')) {
                return npy_header_damaged(
                    &cursor, cursor.at, "a comma or the end of the dictionary");
            }
            break;
        }
    }
    skip_spaces(&cursor);
    if (cursor.at != cursor.size) {
        return npy_header_damaged(&cursor, cursor.at, "nothing more");
    }
    if (!fields.has_descr || !fields.has_order || !fields.has_shape) {
        return npy_header_damaged(&cursor, 10, "all of 'descr', 'fortran_order' and 'shape'");
    }
    if (fields.fortran_order && fields.spec.rank > 1) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "%s: npy header at byte %zu: Fortran order is not read; save numpy.ascontiguousarray "
            "of "
            "it",
            path, fields.order_at);
    }
    int64_t count = 0;
    size_t data_bytes = 0;
    cadre_status status = tensor_shape_check(
        fields.spec.dtype, fields.spec.rank, fields.spec.dims, &count, &data_bytes, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, CADRE_DATA_LOSS, "%s: damaged npy header", path);
    }
    *ret_header = (struct npy_header){
        .spec = fields.spec,
        .data_offset = (int64_t)expected,
        .data_bytes = (int64_t)data_bytes,
    };
    return CADRE_OK;
}
