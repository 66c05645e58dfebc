/* SPDX-License-Identifier: Apache-2.0
 * Names of files: what patterns find, in which order, and what they do not find; and constants,
 * the other source that holds what it gives. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "common/base/fault.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/scratch_folder.h"

/* The names without the folder, in the order of an epoch. Consumes `data`. */
static const char *names_text(cadre_dataset *data, uint64_t epoch)
{
    static char text[4][1024];
    static size_t used;
    char *to = text[used++ % 4];
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    to[0] = '\0';
    if (cadre_dataset_iterate(data, epoch, &iterator) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    const char *folder = scratch_path("");
    while (cadre_iterator_next(iterator, &element) == CADRE_OK) {
        const cadre_string *path = cadre_tensor_const_data(element.tensors[0]);
        assert_int_equal(cadre_tensor_rank(element.tensors[0]), 0);
        assert_true(path->size > strlen(folder));
        assert_memory_equal(path->bytes, folder, strlen(folder));
        size_t length = strlen(to);
        snprintf(to + length, sizeof text[0] - length, "%s%.*s", length > 0 ? " " : "",
            (int)(path->size - strlen(folder)), path->bytes + strlen(folder));
        cadre_element_release(&element);
    }
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    return to;
}

static cadre_dataset *list(const char *a, const char *b, const cadre_list_files_options *options)
{
    const char *const patterns[] = {scratch_path(a), b != NULL ? scratch_path(b) : NULL};
    return cadre_dataset_list_files(patterns, b != NULL ? 2 : 1, options);
}

static int make_files(void **state)
{
    static const char *const names[] = {"b.csv", "a.csv", "B.csv", "a10.csv", "a9.csv", "c.txt",
        "c.txt.cadre-index", "d.txt.cadre-index.part", ".hidden.csv"};
    if (scratch_setup(state) != 0 || mkdir(scratch_path("folder.csv"), 0700) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        scratch_write(names[i], "", 0);
    }
    return 0;
}

static int remove_files(void **state)
{
    return rmdir(scratch_path("folder.csv")) != 0 ? -1 : scratch_teardown(state);
}

static void patterns(void **state)
{
    (void)state;
    /* By bytes; without the folder, the hidden file and what Cadre writes. */
    assert_string_equal(
        names_text(list("*.csv", NULL, NULL), 0), "B.csv a.csv a10.csv a9.csv b.csv");
    assert_string_equal(names_text(list("a?.csv", NULL, NULL), 0), "a9.csv");
    assert_string_equal(names_text(list("[cd]*", NULL, NULL), 0), "c.txt");
    assert_string_equal(names_text(list("c.txt", NULL, NULL), 3), "c.txt");
    /* Each once, whichever pattern it matched. */
    assert_string_equal(names_text(list("c*", "[ac]*", NULL), 0), "a.csv a10.csv a9.csv c.txt");
    cadre_dataset *data = list("*.csv", NULL, NULL);
    assert_int_equal(cadre_dataset_cardinality(data), 5);
    expect_spec(data, "string []");
    expect_consistent(data);
    char *text = dataset_describe(data);
    assert_non_null(strstr(text, "list_files: 5 files, B.csv, a.csv, a10.csv, a9.csv, b.csv"));
    assert_null(strchr(text, '/'));
    free(text);
    cadre_dataset_release(data);
}

static void shuffled(void **state)
{
    (void)state;
    const cadre_list_files_options options = {.shuffle = true, .seed = 5};
    cadre_dataset *data = list("*.csv", NULL, &options);
    assert_int_equal(cadre_dataset_cardinality(data), 5);
    size_t others = 0;
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        const char *names = names_text(cadre_dataset_retain(data), epoch);
        assert_string_equal(names, names_text(list("*.csv", NULL, &options), epoch));
        assert_int_equal(strlen(names), strlen("B.csv a.csv a10.csv a9.csv b.csv"));
        assert_non_null(strstr(names, "a10.csv"));
        others += strcmp(names, names_text(cadre_dataset_retain(data), 0)) != 0;
    }
    assert_true(others > 10);
    cadre_dataset_release(data);
}

static void nothing_found(void **state)
{
    (void)state;
    const char *const none[] = {NULL};
    expect_failure(list("*.none", NULL, NULL), CADRE_NOT_FOUND, "no file matches \"");
    expect_failure(list("a.csv", "x*.none", NULL), CADRE_NOT_FOUND, "x*.none\"");
    expect_failure(list("folder*", NULL, NULL), CADRE_NOT_FOUND, "folder*\"");
    expect_failure(list("*.cadre-index", NULL, NULL), CADRE_NOT_FOUND, "*.cadre-index\"");
    expect_failure(list("no/*", NULL, NULL), CADRE_NOT_FOUND, "no/*\"");
    expect_failure(list("a.csv/*", NULL, NULL), CADRE_NOT_FOUND, "a.csv/*\"");
    expect_failure(list("*.none", NULL, &(cadre_list_files_options){.shuffle = true}),
        CADRE_NOT_FOUND, "*.none\"");
    expect_failure(cadre_dataset_list_files(NULL, 1, NULL), CADRE_INVALID_ARGUMENT, "no pattern");
    expect_failure(cadre_dataset_list_files(none, 0, NULL), CADRE_INVALID_ARGUMENT, "no pattern");
    expect_failure(
        cadre_dataset_list_files(none, 1, NULL), CADRE_INVALID_ARGUMENT, "pattern 0 is NULL");
}

static void unreadable_folder(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        skip(); /* nothing is unreadable for root */
    }
    const char *folder = scratch_path("folder.csv");
    assert_int_equal(chmod(folder, 0), 0);
    expect_failure(list("*/x*", NULL, NULL), CADRE_PERMISSION_DENIED, "folder.csv");
    assert_int_equal(chmod(folder, 0700), 0);
}

static void without_memory(void **state)
{
    (void)state;
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        fault_arm("input.glob", nth);
        cadre_dataset *data = list("a*", "b*", NULL);
        met = fault_disarm();
        assert_int_equal(cadre_dataset_status(data), met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        assert_true(met || nth == 5);
        cadre_dataset_release(data);
    }
}

/* --- constants --- */

static void constants(void **state)
{
    (void)state;
    const int64_t dims[] = {2};
    const int64_t values[] = {4, 5};
    cadre_tensor *tensors[2] = {NULL};
    assert_int_equal(cadre_tensor_from_data(CADRE_I64, 1, dims, values, &tensors[0]), CADRE_OK);
    assert_int_equal(cadre_tensor_from_f32(1.5F, &tensors[1]), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensors(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    assert_int_equal(cadre_dataset_cardinality(data), 1);
    expect_spec(data, "i64 [2] f32 []");
    expect_consistent(data);
    char *text = dataset_describe(data);
    assert_non_null(strstr(text, "tensors: i64 [2], f32 []"));
    free(text);
    data = cadre_dataset_repeat(data, 5);
    expect_consistent(data);
    expect_elements(cadre_dataset_batch(data, 3, false),
        "([[4 5] [4 5] [4 5]], [1.5 1.5 1.5]) ([[4 5] [4 5]], [1.5 1.5])");
    cadre_tensor *none[] = {NULL};
    expect_failure(cadre_dataset_tensors(NULL, 1), CADRE_INVALID_ARGUMENT, "1 tensors given");
    expect_failure(cadre_dataset_tensors(none, 0), CADRE_INVALID_ARGUMENT, "0 tensors given");
    expect_failure(cadre_dataset_tensors(none, 65), CADRE_INVALID_ARGUMENT, "65 tensors given");
    expect_failure(cadre_dataset_tensors(none, 1), CADRE_INVALID_ARGUMENT, "tensor 0 is NULL");
}

/* What cadre_open_text_lines makes of an element of one string. */
static cadre_status open_text(cadre_tensor *tensor)
{
    cadre_dataset *data = NULL;
    const cadre_element named = {.count = tensor != NULL ? 1 : 0, .tensors = {tensor}};
    cadre_status status = cadre_open_text_lines(&named, &data, NULL);
    cadre_dataset_release(data);
    cadre_tensor_release(tensor);
    return status;
}

static cadre_tensor *name_of(const char *bytes, size_t size)
{
    cadre_tensor *tensor = NULL;
    const cadre_string name = {.bytes = bytes, .size = size};
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &name, &tensor), CADRE_OK);
    return tensor;
}

static void names_are_opened(void **state)
{
    (void)state;
    scratch_write("c.txt", "one\ntwo\n", 8);
    cadre_dataset *lines =
        cadre_dataset_flat_map(list("c.txt", NULL, NULL), cadre_open_text_lines, NULL);
    expect_elements(lines, "one two");
    expect_failure(cadre_dataset_flat_map(list("c.txt", NULL, NULL), cadre_open_tfrecord, NULL),
        CADRE_DATA_LOSS, "c.txt, record 0");
    cadre_tensor *number = NULL;
    assert_int_equal(cadre_tensor_from_i64(7, &number), CADRE_OK);
    assert_int_equal(open_text(number), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "one scalar string"));
    assert_int_equal(open_text(NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(open_text(name_of("a\0b", 3)), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "zero byte"));
    assert_int_equal(open_text(name_of("", 0)), CADRE_INVALID_ARGUMENT);
    char *path = calloc(1, 5000);
    memset(path, 'x', 4999);
    assert_int_equal(open_text(name_of(path, 4999)), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "4999 bytes"));
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(shuffled),
        cmocka_unit_test(nothing_found),
        cmocka_unit_test(unreadable_folder),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(constants),
        cmocka_unit_test(names_are_opened),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
