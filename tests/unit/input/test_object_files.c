/* SPDX-License-Identifier: Apache-2.0
 * Names of objects that patterns find, and TFRecord files that are written as objects. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cadre/tfrecord.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/fake_storage.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/input/objects/object_memory.h"

#define FOLDER "s3://bucket/data/"

static int setup(void **state)
{
    object_table_clear();
    fake_storage_clear();
    return scratch_setup(state);
}

/* --- names --- */

static void set_names(const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fake_storage_set(names[i], "x", 1);
    }
}

static const char *names_text(const char *a, const char *b)
{
    static char text[4][2048];
    static size_t used;
    char *to = text[used++ % 4];
    const char *const patterns[] = {a, b};
    cadre_dataset *data = cadre_dataset_list_files(patterns, b != NULL ? 2 : 1, NULL);
    if (data == NULL) {
        snprintf(to, sizeof text[0], "!%s", cadre_error_message());
        return to;
    }
    snprintf(to, sizeof text[0], "%s",
        elements_text(data, &(const struct pass){.ordered = true}, SIZE_MAX));
    cadre_dataset_release(data);
    return to;
}

static void patterns(void **state)
{
    (void)state;
    static const char *const names[] = {"s3://b/b.csv", "s3://b/a.csv", "s3://b/B.csv",
        "s3://b/a10.csv", "s3://b/a9.csv", "s3://b/c.txt", "s3://b/c.txt.cadre-index",
        "s3://b/.hidden.csv", "s3://b/x/1/k.csv", "s3://b/x/2/k.csv", "s3://b/x/2/.k.csv",
        "s3://b/x/y/z/k.csv", "s3://b/x.csv/", "s3://b/a*b", "s3://other/a.csv"};
    set_names(names, sizeof names / sizeof names[0]);
    assert_string_equal(names_text("s3://b/*.csv", NULL),
        "s3://b/B.csv s3://b/a.csv s3://b/a10.csv s3://b/a9.csv s3://b/b.csv");
    assert_string_equal(names_text("s3://b/a?.csv", NULL), "s3://b/a9.csv");
    assert_string_equal(names_text("s3://b/[cd]*", NULL), "s3://b/c.txt");
    assert_string_equal(names_text("s3://b/c.txt", NULL), "s3://b/c.txt");
    assert_string_equal(names_text("s3://b/x/*/k.csv", NULL), "s3://b/x/1/k.csv s3://b/x/2/k.csv");
    assert_string_equal(names_text("s3://b/x/*/*", NULL), "s3://b/x/1/k.csv s3://b/x/2/k.csv");
    assert_string_equal(names_text("s3://b/a\\*b", NULL), "s3://b/a*b");
    assert_string_equal(names_text("s3://b/c*", "s3://b/[ac]*"),
        "s3://b/a*b s3://b/a.csv s3://b/a10.csv s3://b/a9.csv s3://b/c.txt");
    const char *file = scratch_write("a.csv", "x", 1);
    char both[1024];
    snprintf(both, sizeof both, "%s s3://b/a.csv", file);
    assert_string_equal(names_text("s3://b/a.csv", file), both);
    unlink(file);
    assert_non_null(strstr(names_text("s3://b/*.none", NULL), "no file matches \"s3://b/*.none\""));
    assert_non_null(strstr(names_text("s3://b/none", NULL), "no file matches \"s3://b/none\""));
    assert_non_null(strstr(names_text("s3://b/*.cadre-index", NULL), "no file matches"));
    assert_non_null(strstr(names_text("s3://b*/a", NULL), "without a wildcard"));
    fake_storage_fail("s3://b/", CADRE_PERMISSION_DENIED, 1);
    assert_non_null(strstr(names_text("s3://b/*", NULL), "asked to fail"));
}

/* Only what begins as the pattern does is listed. */
static void listed_by_prefix(void **state)
{
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        char path[64];
        snprintf(path, sizeof path, "s3://b/%s/shard-%03zu", i % 2 == 0 ? "train" : "test", i);
        fake_storage_set(path, "x", 1);
    }
    const char *pattern = "s3://b/train/shard-00*";
    cadre_dataset *data = cadre_dataset_list_files(&pattern, 1, NULL);
    assert_int_equal(cadre_dataset_cardinality(data), 5);
    assert_int_equal(fake_storage_counts().listed, 5);
    assert_int_equal(fake_storage_counts().opens, 0);
    cadre_dataset_release(data);
}

/* --- written --- */

static void write_records(const char *path, size_t count, size_t size)
{
    cadre_tfrecord_writer *writer = NULL;
    char *record = malloc(size);
    CADRE_CHECK(cadre_tfrecord_writer_create(path, CADRE_COMPRESSION_NONE, &writer));
    for (size_t i = 0; i < count; i++) {
        memset(record, (int)('a' + i % 26), size);
        CADRE_CHECK(cadre_tfrecord_writer_write(writer, record, size));
    }
    size_t there = 0;
    assert_null(fake_storage_find(path, &there)); /* nothing is seen of it */
    CADRE_CHECK(cadre_tfrecord_writer_close(writer));
    free(record);
}

static void written(void **state)
{
    (void)state;
    const char *small = FOLDER "small";
    const char *large = FOLDER "large";
    write_records(small, 3, 10);
    assert_int_equal(fake_storage_counts().uploads, 0);
    assert_int_equal(fake_storage_counts().puts, 1);
    write_records(large, 30, 1000000);
    assert_int_equal(fake_storage_counts().uploads, 1);
    assert_int_equal(fake_storage_counts().open_uploads, 0);
    size_t size = 0;
    assert_non_null(fake_storage_find(large, &size));
    assert_int_equal(size, 30 * 1000016);
    cadre_dataset *data = cadre_dataset_tfrecord(&large, 1, NULL);
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    CADRE_CHECK(cadre_dataset_iterate(data, 0, &iterator));
    for (size_t i = 0; i < 30; i++) {
        CADRE_CHECK(cadre_iterator_next(iterator, &element));
        const cadre_string *record = cadre_tensor_const_data(element.tensors[0]);
        assert_int_equal(record->size, 1000000);
        assert_int_equal(record->bytes[999999], 'a' + i % 26);
        cadre_element_release(&element);
    }
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void not_written(void **state)
{
    (void)state;
    const char *path = FOLDER "object";
    char *record = calloc(1, 1 << 20);
    for (unsigned released = 0; released < 2; released++) {
        cadre_tfrecord_writer *writer = NULL;
        cadre_status status = CADRE_OK;
        CADRE_CHECK(cadre_tfrecord_writer_create(path, CADRE_COMPRESSION_NONE, &writer));
        for (size_t i = 0; i < 40 && status == CADRE_OK; i++) {
            if (i == 20 && released == 0) {
                fake_storage_fail("object", CADRE_PERMISSION_DENIED, 1000);
            }
            status = cadre_tfrecord_writer_write(writer, record, 1 << 20);
        }
        if (released == 0) {
            assert_int_equal(cadre_tfrecord_writer_close(writer), CADRE_PERMISSION_DENIED);
            assert_non_null(strstr(cadre_error_message(), path));
        } else {
            cadre_tfrecord_writer_release(writer);
        }
        fake_storage_fail("", CADRE_OK, 0);
        size_t size = 0;
        assert_null(fake_storage_find(path, &size));
        assert_int_equal(fake_storage_counts().open_uploads, 0);
    }
    free(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(patterns, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(listed_by_prefix, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(written, setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(not_written, setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
