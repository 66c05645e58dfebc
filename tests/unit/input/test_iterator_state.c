/* SPDX-License-Identifier: Apache-2.0
 * Positions as bytes: what is written comes back the same; what was cut, changed or is of another
 * kind is refused, whatever it is (see it under a sanitizer). */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/iterator_state.h"

static cadre_tensor *make(cadre_dtype dtype, uint32_t rank, const int64_t *dims, const void *data)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(dtype, rank, dims, data, &tensor), CADRE_OK);
    return tensor;
}

/* Numbers, strings with a zero inside, an empty one, no rows at all, a scalar, truth values. */
static cadre_element sample_element(void)
{
    static const float floats[6] = {1, -2, 3.5F, 0, 5, 6};
    static const cadre_string strings[3] = {{"a\0b", 3}, {"", 0}, {"word", 4}};
    static const uint8_t truths[2] = {1, 0};
    cadre_element element = {.count = 5};
    element.tensors[0] = make(CADRE_F32, 2, (int64_t[]){2, 3}, floats);
    element.tensors[1] = make(CADRE_STRING, 1, (int64_t[]){3}, strings);
    element.tensors[2] = make(CADRE_I64, 3, (int64_t[]){4, 0, 7}, NULL);
    element.tensors[3] = make(CADRE_F64, 0, NULL, &(double){2.25});
    element.tensors[4] = make(CADRE_BOOL, 1, (int64_t[]){2}, truths);
    return element;
}

static void assert_same_tensor(const cadre_tensor *a, const cadre_tensor *b)
{
    assert_int_equal(cadre_tensor_dtype(a), cadre_tensor_dtype(b));
    assert_int_equal(cadre_tensor_rank(a), cadre_tensor_rank(b));
    assert_memory_equal(
        cadre_tensor_dims(a), cadre_tensor_dims(b), cadre_tensor_rank(a) * sizeof(int64_t));
    if (cadre_tensor_dtype(a) != CADRE_STRING) {
        assert_memory_equal(
            cadre_tensor_const_data(a), cadre_tensor_const_data(b), cadre_tensor_bytes(a));
        return;
    }
    const cadre_string *left = cadre_tensor_const_data(a);
    const cadre_string *right = cadre_tensor_const_data(b);
    for (int64_t i = 0; i < cadre_tensor_count(a); i++) {
        assert_int_equal(left[i].size, right[i].size);
        assert_memory_equal(left[i].bytes, right[i].bytes, left[i].size);
    }
}

static void write_sample(struct iterator_state_writer *writer)
{
    struct cadre_error error = {0};
    struct id_list ids = {.ids = (uint64_t[]){7, UINT64_MAX, 0}, .count = 3, .capacity = 3};
    cadre_element element = sample_element();
    cadre_element none = {0};
    ASSERT_OK(iterator_state_write_number(writer, UINT64_MAX, &error));
    ASSERT_OK(iterator_state_write_bytes(writer, "tfrecord\n\0x", 11, &error));
    ASSERT_OK(iterator_state_write_element(writer, &element, &error));
    ASSERT_OK(iterator_state_write_ids(writer, &ids, &error));
    ASSERT_OK(iterator_state_write_bytes(writer, NULL, 0, &error));
    ASSERT_OK(iterator_state_write_element(writer, &none, &error));
    cadre_element_release(&element);
}

struct sample {
    uint64_t number;
    const void *text;
    size_t text_bytes;
    cadre_element element;
    struct id_list ids;
    const void *nothing;
    size_t nothing_bytes;
    cadre_element none;
};

static cadre_status read_sample(
    struct iterator_state_reader *reader, struct sample *sample, struct cadre_error *error)
{
    *sample = (struct sample){0};
    CADRE_TRY(iterator_state_read_number(reader, &sample->number, error));
    CADRE_TRY(iterator_state_read_bytes(reader, &sample->text, &sample->text_bytes, error));
    CADRE_TRY(iterator_state_read_element(reader, &sample->element, error));
    CADRE_TRY(iterator_state_read_ids(reader, &sample->ids, error));
    CADRE_TRY(iterator_state_read_bytes(reader, &sample->nothing, &sample->nothing_bytes, error));
    return iterator_state_read_element(reader, &sample->none, error);
}

static void sample_clear(struct sample *sample)
{
    cadre_element_release(&sample->element);
    cadre_element_release(&sample->none);
    id_list_clear(&sample->ids);
}

static void what_is_written_comes_back(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct iterator_state_writer writer = {0};
    struct sample sample = {0};
    write_sample(&writer);
    struct iterator_state_reader reader = {.bytes = writer.bytes, .count = writer.count};
    ASSERT_OK(read_sample(&reader, &sample, &error));
    assert_int_equal(reader.at, writer.count);
    assert_true(sample.number == UINT64_MAX);
    assert_int_equal(sample.text_bytes, 11);
    assert_memory_equal(sample.text, "tfrecord\n\0x", 11);
    cadre_element expected = sample_element();
    assert_int_equal(sample.element.count, expected.count);
    for (uint32_t i = 0; i < expected.count; i++) {
        assert_same_tensor(sample.element.tensors[i], expected.tensors[i]);
    }
    assert_int_equal(sample.ids.count, 3);
    assert_true(sample.ids.ids[0] == 7 && sample.ids.ids[1] == UINT64_MAX);
    assert_int_equal(sample.nothing_bytes, 0);
    assert_int_equal(sample.none.count, 0);
    cadre_element_release(&expected);
    sample_clear(&sample);
    iterator_state_writer_clear(&writer);
}

static void ids_are_appended(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct iterator_state_writer writer = {0};
    struct id_list some = {.ids = (uint64_t[]){1, 2}, .count = 2, .capacity = 2};
    struct id_list read = {0};
    ASSERT_OK(iterator_state_write_ids(&writer, &some, &error));
    struct iterator_state_reader reader = {.bytes = writer.bytes, .count = writer.count};
    ASSERT_OK(id_list_add(&read, 9, &error));
    ASSERT_OK(iterator_state_read_ids(&reader, &read, &error));
    assert_int_equal(read.count, 3);
    assert_true(read.ids[0] == 9 && read.ids[1] == 1 && read.ids[2] == 2);
    id_list_clear(&read);
    iterator_state_writer_clear(&writer);
}

/* Each kind where each other is expected; the reader stays before what it did not take. */
static void another_kind_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct iterator_state_writer writer = {0};
    uint64_t number = 0;
    cadre_element element = {0};
    struct id_list ids = {0};
    const void *bytes = NULL;
    size_t count = 0;
    ASSERT_OK(iterator_state_write_number(&writer, 5, &error));
    struct iterator_state_reader reader = {.bytes = writer.bytes, .count = writer.count};
    assert_int_equal(
        iterator_state_read_bytes(&reader, &bytes, &count, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "a number at byte 0, where a text should be"));
    assert_int_equal(
        iterator_state_read_element(&reader, &element, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "where an element should be"));
    assert_int_equal(iterator_state_read_ids(&reader, &ids, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "where a list of ids should be"));
    ASSERT_OK(iterator_state_read_number(&reader, &number, &error));
    assert_int_equal(number, 5);
    assert_int_equal(iterator_state_read_number(&reader, &number, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "ends at byte 9, where a number should be"));
    iterator_state_writer_clear(&writer);
}

static void more_than_the_limit_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct iterator_state_writer writer = {.limit = 9 + 9 + 4};
    cadre_element element = sample_element();
    ASSERT_OK(iterator_state_write_number(&writer, 1, &error));
    assert_int_equal(
        iterator_state_write_element(&writer, &element, &error), CADRE_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, "more than 22 bytes"));
    assert_int_equal(
        iterator_state_write_bytes(&writer, "12345", 5, &error), CADRE_RESOURCE_EXHAUSTED);
    assert_int_equal(
        iterator_state_write_bytes(&writer, "", SIZE_MAX, &error), CADRE_RESOURCE_EXHAUSTED);
    assert_int_equal(writer.count, 9);
    ASSERT_OK(iterator_state_write_bytes(&writer, "1234", 4, &error));
    assert_int_equal(iterator_state_write_number(&writer, 1, &error), CADRE_RESOURCE_EXHAUSTED);
    cadre_element_release(&element);
    iterator_state_writer_clear(&writer);
}

/* A copy of the very size, so that a read beyond it is one beyond an allocation. */
static cadre_status read_copy(const uint8_t *bytes, size_t count)
{
    struct cadre_error error = {0};
    struct sample sample = {0};
    uint8_t *exact = malloc(count > 0 ? count : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, count);
    struct iterator_state_reader reader = {.bytes = exact, .count = count};
    cadre_status status = read_sample(&reader, &sample, &error);
    assert_true(status == CADRE_OK || (error.code == status && error.text[0] != '\0'));
    assert_true(reader.at <= count);
    sample_clear(&sample);
    free(exact);
    return status;
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    struct iterator_state_writer writer = {0};
    write_sample(&writer);
    for (size_t count = 0; count < writer.count; count++) {
        assert_int_equal(read_copy(writer.bytes, count), CADRE_INVALID_ARGUMENT);
    }
    assert_int_equal(read_copy(writer.bytes, writer.count), CADRE_OK);
    iterator_state_writer_clear(&writer);
}

/* One to four changed bytes from a seed: answered, whatever they mean. */
static void changed_bytes_are_answered(void **state)
{
    (void)state;
    struct iterator_state_writer writer = {0};
    write_sample(&writer);
    uint8_t *bytes = malloc(writer.count);
    assert_non_null(bytes);
    struct prng prng = {.state = 20240607};
    unsigned refused = 0;
    for (unsigned round = 0; round < 20000; round++) {
        memcpy(bytes, writer.bytes, writer.count);
        for (uint64_t changes = 1 + prng_next(&prng) % 4; changes > 0; changes--) {
            bytes[prng_next(&prng) % writer.count] = (uint8_t)prng_next(&prng);
        }
        cadre_status status = read_copy(bytes, writer.count);
        assert_true(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT);
        refused += status != CADRE_OK;
    }
    assert_true(refused > 1000 && refused < 20000);
    free(bytes);
    iterator_state_writer_clear(&writer);
}

/* What cannot be a tensor, each with its reason. */
static void impossible_tensors_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
        const char *reason;
    } cases[] = {
        {"e\x41", 2, "element of 65 components"},
        {"e\x01\x00\x00", 4, "0 is not a tensor type"},
        {"e\x01\x23\x00", 4, "35 is not a tensor type"},
        {"e\x01\xc5\x00", 4, "a tensor of kind 197"},
        {"e\x01\x02\x01\xff\xff\xff\xff\xff\xff\xff\xff", 12, "dimension 0 is -1"},
        {"e\x01\x02\x01\x00\x00\x00\x00\x00\x00\x00\x40", 12, "more bytes than can be addressed"},
        {"e\x01\x08\x01\x00\x00\x00\x00\x00\x01\x00\x00", 12, "ends at byte 12"},
        {"e\x01\x0d\x01\x00\x00\x00\x00\x00\x01\x00\x00", 12, "ends at byte 12"},
        {"e\x01\x0d\x00\xff\xff\xff\xff\xff\xff\xff\xff", 12, "ends at byte 12"},
        {"e\x01\x0c\x00\x02", 5, "truth value of 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        cadre_element element = {0};
        struct iterator_state_reader reader = {
            .bytes = (const uint8_t *)cases[i].bytes, .count = cases[i].count};
        assert_int_equal(
            iterator_state_read_element(&reader, &element, &error), CADRE_INVALID_ARGUMENT);
        if (strstr(error.text, cases[i].reason) == NULL) {
            fail_msg("case %zu: %s", i, error.text);
        }
        assert_int_equal(reader.at, 0);
        assert_int_equal(element.count, 0);
    }
    struct cadre_error error = {0};
    struct id_list ids = {0};
    struct iterator_state_reader reader = {
        .bytes = (const uint8_t *)"i\x00\x00\x00\x00\x00\x00\x00\x20", .count = 9};
    assert_int_equal(iterator_state_read_ids(&reader, &ids, &error), CADRE_INVALID_ARGUMENT);
    assert_int_equal(ids.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(ids_are_appended),
        cmocka_unit_test(another_kind_is_refused),
        cmocka_unit_test(more_than_the_limit_is_refused),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(changed_bytes_are_answered),
        cmocka_unit_test(impossible_tensors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
