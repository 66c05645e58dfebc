/* SPDX-License-Identifier: Apache-2.0
 * The sources that read files, and what they say about files that are missing, unreadable, cut
 * short or something else. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/input/npy_writing.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"

/* The records of epoch 0 as text, each of `record_bytes` characters. */
static const char *records_text(cadre_dataset *data, char *text)
{
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    size_t used = 0;
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    while (cadre_iterator_next(iterator, &element) == CADRE_OK) {
        assert_int_equal(cadre_tensor_dtype(element.tensors[0]), CADRE_U8);
        assert_int_equal(cadre_tensor_rank(element.tensors[0]), 1);
        memcpy(text + used, cadre_tensor_const_data(element.tensors[0]),
            cadre_tensor_bytes(element.tensors[0]));
        used += cadre_tensor_bytes(element.tensors[0]);
        text[used++] = ' ';
        cadre_element_release(&element);
    }
    text[used] = '\0';
    cadre_iterator_release(iterator);
    return text;
}

static void records_of_several_files(void **state)
{
    (void)state;
    char text[256];
    const char *paths[] = {scratch_write("a", "HHaabbF", 7), scratch_write("none", "HHF", 3),
        scratch_write("b", "HHccF", 5)};
    cadre_dataset *data = cadre_dataset_fixed_length(
        paths, 3, 2, &(cadre_fixed_length_options){.header_bytes = 2, .footer_bytes = 1});
    assert_int_equal(cadre_dataset_status(data), CADRE_OK);
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    assert_string_equal(records_text(data, text), "aa bb cc ");
    data = cadre_dataset_skip(data, 2);
    assert_string_equal(records_text(data, text), "cc ");
    cadre_dataset_release(data);
    data = cadre_dataset_fixed_length(
        &paths[1], 1, 2, &(cadre_fixed_length_options){.header_bytes = 2, .footer_bytes = 1});
    assert_int_equal(cadre_dataset_cardinality(data), 0);
    cadre_dataset_release(data);
}

/* Tokens behind a header, as llm.c's files have them: T = 3 given, and the one that follows. */
static void records_that_overlap(void **state)
{
    (void)state;
    enum { T = 3 };
    char text[256];
    static const uint16_t tokens[] = {9999, 0, 1, 2, 3, 4, 5, 6, 7, 50256};
    static const uint16_t more[] = {9999, 10, 11, 12, 13, 14, 15};
    static const uint16_t few[] = {9999, 20, 21, 22};
    const char *paths[] = {scratch_write("tokens", (const char *)tokens, sizeof tokens),
        scratch_write("few", (const char *)few, sizeof few),
        scratch_write("more", (const char *)more, sizeof more)};
    const cadre_fixed_length_options options = {
        .header_bytes = 2, .every_bytes = T * 2, .dtype = CADRE_U16};
    cadre_dataset *data = cadre_dataset_fixed_length(paths, 3, (T + 1) * 2, &options);
    assert_int_equal(cadre_dataset_status(data), CADRE_OK);
    assert_int_equal(cadre_dataset_cardinality(data), 3); /* 2, 0 and 1; the rest is left out */
    cadre_element_spec spec;
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(spec.tensors[0].dtype, CADRE_U16);
    assert_int_equal(spec.tensors[0].dims[0], T + 1);
    static const uint16_t wanted[3][T + 1] = {{0, 1, 2, 3}, {3, 4, 5, 6}, {10, 11, 12, 13}};
    for (int batched = 0; batched < 2; batched++) {
        cadre_dataset *read = cadre_dataset_retain(data);
        read = batched ? cadre_dataset_batch(read, 3, false) : read;
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        assert_int_equal(cadre_dataset_iterate(read, 0, &iterator), CADRE_OK);
        for (int i = 0; i < (batched ? 1 : 3); i++) {
            assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
            assert_int_equal(
                cadre_tensor_bytes(element.tensors[0]), sizeof wanted[0] * (batched ? 3 : 1));
            assert_memory_equal(cadre_tensor_const_data(element.tensors[0]), wanted[i],
                cadre_tensor_bytes(element.tensors[0]));
            cadre_element_release(&element);
        }
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
        cadre_iterator_release(iterator);
        cadre_dataset_release(read);
    }
    cadre_dataset_release(data);
    /* Something between the records, which is skipped; and the rest. */
    const char *letters = scratch_write("letters", "ab..cd..ef.", 11);
    const cadre_fixed_length_options apart = {.every_bytes = 4};
    data = cadre_dataset_fixed_length(&letters, 1, 2, &apart);
    assert_string_equal(records_text(data, text), "ab cd ef ");
    cadre_dataset_release(data);
}

/* More files than descriptors are kept open. */
static void many_files(void **state)
{
    (void)state;
    enum { FILES = 150 };
    static char names[FILES][512];
    const char *paths[FILES];
    char text[1024];
    for (int i = 0; i < FILES; i++) {
        char name[16];
        char byte = (char)('a' + i % 26);
        snprintf(name, sizeof name, "f%d", i);
        snprintf(names[i], sizeof names[i], "%s", scratch_write(name, &byte, 1));
        paths[i] = names[i];
    }
    cadre_dataset *data = cadre_dataset_fixed_length(paths, FILES, 1, NULL);
    assert_int_equal(cadre_dataset_cardinality(data), FILES);
    records_text(data, text);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(text[2 * i], 'a' + i % 26);
    }
    cadre_dataset_release(data);
}

static void expect_failed(cadre_dataset *data, cadre_status status, const char *message)
{
    if (cadre_dataset_status(data) != status || strstr(cadre_error_message(), message) == NULL) {
        fail_msg("%s and '%s' expected, but found %s: %s", cadre_status_name(status), message,
            cadre_status_name(cadre_dataset_status(data)), cadre_error_message());
    }
    cadre_dataset_release(data);
}

static cadre_dataset *fixed(const char *path, int64_t header, int64_t record, int64_t footer)
{
    return cadre_dataset_fixed_length(&path, 1, record,
        &(cadre_fixed_length_options){.header_bytes = header, .footer_bytes = footer});
}

static void bad_record_files(void **state)
{
    (void)state;
    const char *seven = scratch_write("seven", "1234567", 7);
    expect_failed(
        fixed(scratch_path("missing"), 0, 1, 0), CADRE_NOT_FOUND, "missing: No such file");
    expect_failed(fixed(scratch_path("."), 0, 1, 0), CADRE_INVALID_ARGUMENT, "not a regular file");
    expect_failed(fixed(NULL, 0, 1, 0), CADRE_INVALID_ARGUMENT, "path 0 is NULL");
    expect_failed(
        cadre_dataset_fixed_length(&seven, 0, 1, NULL), CADRE_INVALID_ARGUMENT, "no file");
    expect_failed(fixed(seven, 0, 0, 0), CADRE_INVALID_ARGUMENT, "record 0");
    expect_failed(fixed(seven, -1, 1, 0), CADRE_INVALID_ARGUMENT, "header -1");
    expect_failed(fixed(seven, 0, 1, -9), CADRE_INVALID_ARGUMENT, "footer -9");
    expect_failed(
        fixed(seven, INT64_MAX, 1, INT64_MAX), CADRE_INVALID_ARGUMENT, "larger than any file");
    expect_failed(
        fixed(seven, 6, 1, 2), CADRE_DATA_LOSS, "has 7 bytes, fewer than its header of 6");
    expect_failed(fixed(seven, 0, 2, 0), CADRE_DATA_LOSS,
        "7 bytes of records, which is 3 records of 2 bytes and 1 bytes more");
    expect_failed(
        fixed(seven, 0, INT64_MAX, 0), CADRE_DATA_LOSS, "0 records of 9223372036854775807");

    expect_failed(
        cadre_dataset_fixed_length(&seven, 1, 1, &(cadre_fixed_length_options){.every_bytes = -1}),
        CADRE_INVALID_ARGUMENT, "every -1 bytes");
    expect_failed(
        cadre_dataset_fixed_length(&seven, 1, 7, &(cadre_fixed_length_options){.dtype = CADRE_U16}),
        CADRE_INVALID_ARGUMENT, "no whole number of u16");
    expect_failed(cadre_dataset_fixed_length(
                      &seven, 1, 7, &(cadre_fixed_length_options){.dtype = CADRE_BOOL}),
        CADRE_INVALID_ARGUMENT, "cannot be read as bool");

    const char *fifo = scratch_path("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_failed(fixed(fifo, 0, 1, 0), CADRE_INVALID_ARGUMENT, "not a regular file");
    if (geteuid() != 0) {
        assert_int_equal(chmod(seven, 0), 0);
        expect_failed(fixed(seven, 0, 1, 0), CADRE_PERMISSION_DENIED, "seven: Permission denied");
    }
}

/* Cut after it was opened: the read says so, and goes on saying so. */
static void files_cut_short_while_read(void **state)
{
    (void)state;
    const char *path = scratch_write("shrinks", "aabbcc", 6);
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_dataset *data = fixed(path, 0, 2, 0);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    cadre_element_release(&element);
    assert_int_equal(truncate(path, 3), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_DATA_LOSS);
        assert_non_null(strstr(cadre_error_message(),
            "shrinks is cut short: it ends at byte 3, but byte 3 is needed"));
    }
    cadre_iterator_release(iterator);

    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct distributed_batch batch;
    data = cadre_dataset_batch(data, 3, false);
    const struct distributed_layout layout = {.workers = 1, .replicas = 2, .name = "train"};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    assert_int_equal(distributed_input_read(input, 0, 0, &batch, &error), CADRE_DATA_LOSS);
    assert_null(batch.elements);
    assert_non_null(strstr(error.text, "dataset 'train', epoch 0, step 0: "));
    distributed_input_close(input);
    cadre_dataset_release(data);
}

static void npy_rows(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    const int64_t values[] = {1, 2, 3, 4, 5, 6};
    for (unsigned major = 1; major <= 2; major++) {
        size_t size = npy_make(bytes, sizeof bytes, major,
            "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", values, sizeof values);
        cadre_dataset *data = cadre_dataset_npy(scratch_write("rows.npy", bytes, size));
        cadre_element_spec spec;
        struct numbers numbers;
        assert_int_equal(cadre_dataset_status(data), CADRE_OK);
        assert_int_equal(cadre_dataset_cardinality(data), 3);
        assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
        assert_int_equal(spec.tensors[0].rank, 1);
        assert_int_equal(spec.tensors[0].dims[0], 2);
        read_epoch(data, 0, &numbers);
        assert_int_equal(numbers.count, 6);
        assert_memory_equal(numbers.values, values, sizeof values);
        cadre_dataset_release(data);
    }
}

static void bad_npy_files(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    const int64_t values[] = {1, 2, 3, 4, 5, 6};
    size_t size = npy_make(bytes, sizeof bytes, 1,
        "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", values, sizeof values);
    char expected[96];
    /* Every length short of the whole is refused, and none is taken for something else. */
    for (size_t cut = 0; cut < size; cut++) {
        const char *path = scratch_write("cut.npy", bytes, cut);
        cadre_dataset *data = cadre_dataset_npy(path);
        assert_int_equal(cadre_dataset_status(data), CADRE_DATA_LOSS);
        assert_non_null(strstr(cadre_error_message(), path));
        cadre_dataset_release(data);
    }
    snprintf(expected, sizeof expected, "cut short: its header promises %zu bytes, but it has %zu",
        size, size - 1);
    expect_failed(
        cadre_dataset_npy(scratch_write("cut.npy", bytes, size - 1)), CADRE_DATA_LOSS, expected);
    expect_failed(cadre_dataset_npy(scratch_path("no.npy")), CADRE_NOT_FOUND, "no.npy");
    expect_failed(cadre_dataset_npy(NULL), CADRE_INVALID_ARGUMENT, "path is NULL");
    size = npy_make(bytes, sizeof bytes, 1,
        "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", values, 8);
    expect_failed(cadre_dataset_npy(scratch_write("scalar.npy", bytes, size)),
        CADRE_INVALID_ARGUMENT, "holds a scalar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_several_files),
        cmocka_unit_test(records_that_overlap),
        cmocka_unit_test(many_files),
        cmocka_unit_test(bad_record_files),
        cmocka_unit_test(files_cut_short_while_read),
        cmocka_unit_test(npy_rows),
        cmocka_unit_test(bad_npy_files),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
