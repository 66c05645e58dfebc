/* SPDX-License-Identifier: Apache-2.0
 * The safetensors format, by itself; digits_test.py opens one with a reader of its own. */
#include <stdlib.h>
#include <string.h>

#include "training.h"
#include "worker/library/runtime/state/format/safetensors.h"

/* A whole file of entries whose data are all `data`. */
static char *encode(struct safetensors_entry *entries, size_t count, const uint8_t *data,
    uint64_t position, size_t *ret_size)
{
    struct cadre_error error = {0};
    char *header;
    size_t header_bytes;
    size_t data_bytes = safetensors_set_offsets(entries, count);
    assert_ok(safetensors_header(entries, count, position, &header, &header_bytes, &error), &error);
    header = realloc(header, header_bytes + data_bytes);
    assert_non_null(header);
    for (size_t i = 0; i < count; i++) {
        memcpy(header + header_bytes + entries[i].offset, data, entries[i].bytes);
    }
    *ret_size = header_bytes + data_bytes;
    return header;
}

static void data_are_aligned_and_equal_entries_give_equal_bytes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const uint8_t data[64] = {1, 2, 3};
    struct safetensors_entry entries[] = {
        {.name = "a", .dtype = CADRE_U8, .rank = 1, .dims = {3}, .bytes = 3},
        {.name = "b", .dtype = CADRE_F64, .rank = 0, .bytes = 8},
        {.name = "c", .dtype = CADRE_F32, .rank = 2, .dims = {1, 3}, .bytes = 12},
        {.name = "d", .dtype = CADRE_BF16, .rank = 1, .dims = {1}, .bytes = 2},
        {.name = "e", .dtype = CADRE_U16, .rank = 1, .dims = {3}, .bytes = 6},
        {.name = "f", .dtype = CADRE_U32, .rank = 1, .dims = {1}, .bytes = 4},
    };
    size_t size;
    size_t again;
    char *first = encode(entries, 6, data, 9, &size);
    char *second = encode(entries, 6, data, 9, &again);
    assert_non_null(memmem(first, size, "\"U16\"", 5));
    assert_non_null(memmem(first, size, "\"U32\"", 5));
    assert_int_equal(size, again);
    assert_memory_equal(first, second, size);
    struct safetensors_entry *decoded;
    size_t count;
    uint64_t position;
    assert_ok(safetensors_decode(first, size, &decoded, &count, &position, &error), &error);
    assert_int_equal(count, 6);
    assert_int_equal(position, 9);
    for (size_t i = 0; i < count; i++) {
        size_t offset = (size_t)((const char *)decoded[i].data - first);
        assert_int_equal(offset % cadre_dtype_bytes(decoded[i].dtype), 0);
        assert_memory_equal(decoded[i].data, data, decoded[i].bytes);
    }
    free(decoded);
    free(first);
    free(second);
}

static void check_damaged(const char *header, size_t data_bytes, const char *part)
{
    struct cadre_error error = {0};
    uint8_t file[512] = {0};
    size_t length = strlen(header);
    file[0] = (uint8_t)length;
    memcpy(file + 8, header, length);
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    assert_error(
        safetensors_decode(file, 8 + length + data_bytes, &entries, &count, &position, &error),
        CADRE_DATA_LOSS, &error, part);
    assert_null(entries);
}

static void damaged_files_are_reported(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    for (size_t size = 0; size < 9; size++) {
        assert_error(
            safetensors_decode("\xff\0\0\0\0\0\0\0{", size, &entries, &count, &position, &error),
            CADRE_DATA_LOSS, &error, "cut short");
    }
    check_damaged("[]", 0, "not a JSON object");
    check_damaged("{\"a\":", 0, "not a JSON object");
    check_damaged("{\"a\":{}}", 0, "not whole");
    check_damaged("{\"a\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "F99");
    check_damaged("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "not its");
    check_damaged("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 8, "not its");
    check_damaged(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 8, "not its");
    check_damaged(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 8, "not its");
}

#define TENSOR(name, begin, end)                                                                   \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}"

/* As the reader of the format's authors: no byte is two tensors', and none is no tensor's. */
static void tensors_lie_one_behind_the_other(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    check_damaged("{" TENSOR("a", "0", "2") "," TENSOR("b", "1", "3") "}", 3,
        "tensors 'a' and 'b' overlap: the second begins at byte 1 of the data, and the first ends "
        "at byte 2");
    check_damaged("{" TENSOR("b", "0", "2") "," TENSOR("a", "0", "2") "}", 2, "overlap");
    check_damaged("{" TENSOR("a", "0", "2") "," TENSOR("b", "3", "5") "}", 5,
        "bytes 2 to 3 of the data, behind tensor 'a', belong to no tensor");
    check_damaged("{" TENSOR("a", "1", "3") "}", 3, "bytes 0 to 1 of the data, behind the header");
    check_damaged("{" TENSOR("a", "0", "2") "}", 3, "bytes 2 to 3 of the data, behind tensor 'a'");
    check_damaged("{}", 1, "bytes 0 to 1 of the data, behind the header");
    check_damaged("{" TENSOR("a", "0", "2") "," TENSOR("a", "2", "4") "}", 4, "duplicate");
    check_damaged("{\"a\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8,
        "tensor 'a' has the unknown type 'U64'; write it as one of F64");
    uint8_t huge[16] = {0, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'};
    assert_error(safetensors_decode(huge, sizeof huge, &entries, &count, &position, &error),
        CADRE_DATA_LOSS, &error, "16 bytes cannot hold a header of 9223372036854775808 bytes");
}

static void a_tensor_may_be_of_a_variable_of_another_name(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const uint8_t data[4] = {1, 2};
    struct safetensors_entry entries[] = {
        {.name = "a", .dtype = CADRE_U8, .rank = 1, .dims = {2}, .bytes = 2, .variable = "layer/w"},
        {.name = "b", .dtype = CADRE_U8, .rank = 1, .dims = {2}, .bytes = 2}};
    size_t size;
    char *file = encode(entries, 2, data, 9, &size);
    struct safetensors_entry *decoded;
    size_t count;
    uint64_t position;
    assert_non_null(memmem(file, size, "\"variable/a\":\"layer/w\"", 22));
    assert_ok(safetensors_decode(file, size, &decoded, &count, &position, &error), &error);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        bool is_a = strcmp(decoded[i].name, "a") == 0;
        assert_string_equal(decoded[i].variable, is_a ? "layer/w" : "");
    }
    free(decoded);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_are_aligned_and_equal_entries_give_equal_bytes),
        cmocka_unit_test(damaged_files_are_reported),
        cmocka_unit_test(tensors_lie_one_behind_the_other),
        cmocka_unit_test(a_tensor_may_be_of_a_variable_of_another_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
