/* SPDX-License-Identifier: Apache-2.0
 * Datasets of objects beside the same datasets of files: the same elements, ids, positions,
 * descriptions and digests; indexes that are kept in the store; an object that changes. */
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cadre/tfrecord.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/fake_storage.h"
#include "tests/unit/input/npy_writing.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_memory.h"

#define FOLDER "s3://bucket/data/"

static const struct pass passes[] = {{.epoch = 0, .ordered = true}, {.epoch = 1, .ordered = true}};

static int setup(void **state)
{
    object_table_clear();
    fake_storage_clear();
    return scratch_setup(state);
}

static int teardown(void **state)
{
    return scratch_teardown(state);
}

/* A path of a file or of an object; one of 16 that are used in turn. */
static const char *path_of(bool object, const char *name)
{
    static char paths[16][512];
    static size_t next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s", scratch_path(name));
    if (object) {
        snprintf(path, sizeof paths[0], FOLDER "%s", name);
    }
    return path;
}

static const char *write_bytes(bool object, const char *name, const void *bytes, size_t size)
{
    if (object) {
        fake_storage_set(path_of(true, name), bytes, size);
    } else {
        scratch_write(name, bytes, size);
    }
    return path_of(object, name);
}

/* --- the same datasets of both --- */

static cadre_dataset *plain_records(bool object, const cadre_tfrecord_options *options)
{
    const char *paths[3];
    for (size_t i = 0; i < 3; i++) {
        struct frames frames = {.bytes = NULL};
        char name[32];
        frames_add_patterns(&frames, 40 + 13 * i, i == 1 ? 3000 : 50);
        snprintf(name, sizeof name, "records-%zu", i);
        paths[i] = write_bytes(object, name, frames.bytes, frames.size);
        frames_clear(&frames);
    }
    return cadre_dataset_tfrecord(paths, 3, options);
}

static cadre_dataset *tfrecord(bool object)
{
    return plain_records(object, NULL);
}

static cadre_dataset *tfrecord_small_reads(bool object)
{
    return plain_records(object, &(cadre_tfrecord_options){.buffer_bytes = 100, .parallel = 3});
}

/* Files of several blocks, with records that lie in two and in many of them. */
static cadre_dataset *tfrecord_long(bool object)
{
    const char *paths[2];
    for (size_t i = 0; i < 2; i++) {
        struct frames frames = {.bytes = NULL};
        char name[32];
        frames_add_pattern(&frames, 0, 700000);
        for (uint64_t k = 1; k < 12; k++) {
            frames_add_pattern(&frames, k, k % 5 == 0 ? 600000 : 100000 + 7 * k);
        }
        snprintf(name, sizeof name, "long-%zu", i);
        paths[i] = write_bytes(object, name, frames.bytes, frames.size);
        frames_clear(&frames);
    }
    return cadre_dataset_tfrecord(paths, 2, &(cadre_tfrecord_options){.parallel = 4});
}

static cadre_dataset *tfrecord_compressed(bool object)
{
    const char *paths[2] = {path_of(object, "a.gz"), path_of(object, "b.gz")};
    for (size_t i = 0; i < 2; i++) {
        cadre_tfrecord_writer *writer = NULL;
        CADRE_CHECK(cadre_tfrecord_writer_create(paths[i], CADRE_COMPRESSION_GZIP, &writer));
        for (size_t k = 0; k < 50; k++) {
            char record[64];
            int size = snprintf(record, sizeof record, "file %zu record %zu", i, k);
            CADRE_CHECK(cadre_tfrecord_writer_write(writer, record, (size_t)size));
        }
        CADRE_CHECK(cadre_tfrecord_writer_close(writer));
    }
    return cadre_dataset_tfrecord(
        paths, 2, &(cadre_tfrecord_options){.compression = CADRE_COMPRESSION_GZIP});
}

static cadre_dataset *text_lines(bool object)
{
    const char *paths[2];
    paths[0] = write_bytes(object, "a.txt", "one\ntwo\r\n\nfour", 14);
    paths[1] = write_bytes(object, "b.txt", "five\nsix\n", 9);
    return cadre_dataset_text_lines(paths, 2, NULL);
}

static cadre_dataset *fixed_length(bool object)
{
    static uint8_t bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    const char *paths[2] = {write_bytes(object, "f0", bytes, 10 + 20 * 12),
        write_bytes(object, "f1", bytes + 500, 10 + 20 * 31)};
    return cadre_dataset_fixed_length(
        paths, 2, 20, &(cadre_fixed_length_options){.header_bytes = 10});
}

static cadre_dataset *windows(bool object)
{
    static int32_t numbers[400];
    for (size_t i = 0; i < 400; i++) {
        numbers[i] = (int32_t)(i * 31);
    }
    const char *path = write_bytes(object, "tokens", numbers, sizeof numbers);
    return cadre_dataset_fixed_length(
        &path, 1, 20, &(cadre_fixed_length_options){.every_bytes = 16, .dtype = CADRE_I32});
}

static cadre_dataset *npy(bool object)
{
    static uint8_t bytes[4096];
    int32_t values[40][2];
    for (int i = 0; i < 40; i++) {
        values[i][0] = i;
        values[i][1] = -i;
    }
    size_t size = npy_make(bytes, sizeof bytes, 1,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (40, 2), }", values, sizeof values);
    return cadre_dataset_npy(write_bytes(object, "rows.npy", bytes, size));
}

static cadre_dataset *interleaved(bool object)
{
    for (size_t i = 0; i < 5; i++) {
        struct frames frames = {.bytes = NULL};
        char name[32];
        frames_add_patterns(&frames, 5 + 3 * i, 40);
        snprintf(name, sizeof name, "part-%zu.tfrecord", i);
        write_bytes(object, name, frames.bytes, frames.size);
        frames_clear(&frames);
    }
    const char *pattern = path_of(object, "part-*.tfrecord");
    cadre_dataset *names = cadre_dataset_list_files(&pattern, 1, NULL);
    return cadre_dataset_interleave(names, cadre_open_tfrecord, NULL, NULL);
}

static cadre_dataset *shuffled(bool object)
{
    return cadre_dataset_batch(
        cadre_dataset_shuffle(tfrecord(object), CADRE_SHUFFLE_ALL, 3, NULL), 8, false);
}

static const struct {
    const char *name;
    cadre_dataset *(*make)(bool object);
} pipelines[] = {
    {"tfrecord", tfrecord},
    {"tfrecord in small reads", tfrecord_small_reads},
    {"tfrecord of long records", tfrecord_long},
    {"compressed tfrecord", tfrecord_compressed},
    {"text", text_lines},
    {"fixed length", fixed_length},
    {"fixed length that overlap", windows},
    {"npy", npy},
    {"interleave", interleaved},
    {"shuffle of all", shuffled},
};

#define PIPELINES (sizeof pipelines / sizeof pipelines[0])

static void expect_same_description(cadre_dataset *files, cadre_dataset *objects)
{
    char *one = dataset_describe(files);
    char *other = dataset_describe(objects);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

static void same_as_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < PIPELINES; i++) {
        print_message("%s\n", pipelines[i].name);
        cadre_dataset *files = pipelines[i].make(false);
        cadre_dataset *objects = pipelines[i].make(true);
        assert_non_null(files);
        if (objects == NULL) {
            fail_msg("%s: %s", pipelines[i].name, cadre_error_message());
        }
        expect_same_description(files, objects);
        bool long_texts = pipelines[i].make == tfrecord_long || pipelines[i].make == tfrecord ||
                          pipelines[i].make == tfrecord_small_reads;
        for (size_t p = 0; p < 2 && !long_texts; p++) {
            expect_same(files, objects, &passes[p]);
        }
        if (!long_texts && pipelines[i].make != shuffled) {
            expect_consistent(objects);
        }
        cadre_dataset_release(files);
        cadre_dataset_release(objects);
        object_table_clear();
        fake_storage_clear();
    }
}

static struct digest bytes_digest(const cadre_element *element, struct digest_key *key)
{
    struct digest digest = {0};
    const cadre_tensor *tensor = element->tensors[0];
    int64_t rows = cadre_tensor_rank(tensor) == 0 ? 1 : cadre_tensor_rows(tensor);
    if (cadre_tensor_dtype(tensor) != CADRE_STRING) {
        return digest;
    }
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t sum = strings[i].size;
        for (size_t b = 0; b < strings[i].size; b++) {
            sum = sum * 31 + (unsigned char)strings[i].bytes[b];
        }
        digest_add(&digest, key, sum);
    }
    return digest;
}

/* What the steps of an epoch consume, in samples and in bytes. */
static void expect_same_steps(
    cadre_dataset *files, cadre_dataset *objects, uint32_t workers, uint32_t worker)
{
    const struct distributed_layout layout = {.workers = workers,
        .worker_index = worker,
        .replicas = 1,
        .policy = CADRE_SHARD_DATA,
        .name = "train"};
    struct distributed_input *one = NULL;
    struct distributed_input *other = NULL;
    struct cadre_error error = {0};
    struct digest_key key = digest_key_make("bytes", 5, 0);
    ASSERT_OK(distributed_input_open(files, &layout, &one, &error));
    ASSERT_OK(distributed_input_open(objects, &layout, &other, &error));
    for (uint64_t step = 0;; step++) {
        struct distributed_batch a;
        struct distributed_batch b;
        cadre_status status = distributed_input_read(one, 1, step, &a, &error);
        cadre_status same = distributed_input_read(other, 1, step, &b, &error);
        if (same != status) {
            fail_msg("step %" PRIu64 ": %s", step, error.text);
        }
        if (status == CADRE_OUT_OF_RANGE) {
            assert_true(step > 0);
            break;
        }
        ASSERT_OK(status);
        assert_true(digest_equal(&a.consumed, &b.consumed));
        assert_int_equal(a.samples, b.samples);
        struct digest of_a = bytes_digest(&a.elements[0], &key);
        struct digest of_b = bytes_digest(&b.elements[0], &key);
        assert_true(digest_equal(&of_a, &of_b));
        distributed_batch_clear(&a);
        distributed_batch_clear(&b);
    }
    distributed_input_close(one);
    distributed_input_close(other);
}

static void same_digests(void **state)
{
    (void)state;
    for (size_t i = 0; i < PIPELINES; i++) {
        print_message("%s\n", pipelines[i].name);
        cadre_dataset *files = pipelines[i].make(false);
        cadre_dataset *objects = pipelines[i].make(true);
        if (pipelines[i].make != shuffled) {
            files = cadre_dataset_batch(files, 5, false);
            objects = cadre_dataset_batch(objects, 5, false);
        }
        for (uint32_t workers = 1; workers <= 3; workers += 2) {
            for (uint32_t worker = 0; worker < workers; worker++) {
                expect_same_steps(files, objects, workers, worker);
            }
        }
        cadre_dataset_release(files);
        cadre_dataset_release(objects);
    }
}

/* --- indexes --- */

static void read_by_index(const char *path, const char *index_folder, size_t expected)
{
    cadre_dataset *data =
        cadre_dataset_tfrecord(&path, 1, &(cadre_tfrecord_options){.index_folder = index_folder});
    struct cadre_error error = {0};
    ASSERT_OK(dataset_prepare(data, &error));
    assert_int_equal(cadre_dataset_cardinality(data), expected);
    cadre_element element = {0};
    struct id_list ids = {0};
    struct element_position position = {.index = expected - 1};
    ASSERT_OK(dataset_at(data, position, &element, &ids, &error));
    cadre_element_release(&element);
    id_list_clear(&ids);
    cadre_dataset_release(data);
    object_table_clear();
}

/* The index is made in one pass, kept in the store, and used by the next reader, unless the object
 * is another one since. */
static void index_in_the_store(void **state)
{
    (void)state;
    struct frames frames = {.bytes = NULL};
    frames_add_patterns(&frames, 3000, 400);
    const char *path = write_bytes(true, "records", frames.bytes, frames.size);
    const char *index = path_of(true, "records.cadre-index");
    size_t size = 0;
    read_by_index(path, NULL, 3000);
    assert_non_null(fake_storage_find(index, &size));
    assert_true(size > 3000 * 2 && size < 3000 * 5);
    assert_int_equal(fake_storage_counts().bytes, frames.size); /* once */
    fake_storage_clear_counts();
    read_by_index(path, NULL, 3000);
    assert_true(fake_storage_counts().bytes <= OBJECT_BLOCK_BYTES * 2);
    assert_int_equal(fake_storage_counts().puts, 0);
    /* Of the same size, but another one. */
    fake_storage_set(path, frames.bytes, frames.size);
    read_by_index(path, NULL, 3000);
    assert_int_equal(fake_storage_counts().puts, 1);
    /* Damaged. */
    fake_storage_set(index, "rubbish", 7);
    read_by_index(path, NULL, 3000);
    assert_int_equal(fake_storage_counts().puts, 2);
    /* One that cannot be written serves from memory. */
    fake_storage_set(index, "rubbish", 7);
    fake_storage_fail(index, CADRE_PERMISSION_DENIED, 1000);
    read_by_index(path, NULL, 3000);
    fake_storage_fail("", CADRE_OK, 0);
    frames_clear(&frames);
}

static void index_in_a_folder(void **state)
{
    (void)state;
    struct frames frames = {.bytes = NULL};
    frames_add_patterns(&frames, 200, 40);
    const char *path = write_bytes(true, "records", frames.bytes, frames.size);
    read_by_index(path, scratch_path(""), 200);
    assert_int_equal(fake_storage_counts().puts, 0);
    fake_storage_clear_counts();
    read_by_index(path, scratch_path(""), 200);
    read_by_index(path, "s3://bucket/indexes/", 200);
    assert_int_equal(fake_storage_counts().puts, 1);
    read_by_index(path, "s3://bucket/indexes", 200);
    assert_int_equal(fake_storage_counts().puts, 1);
    frames_clear(&frames);
}

/* --- changes and damage --- */

/* Over epochs, too: a dataset is of one state of its objects. */
static void changed_under_the_job(void **state)
{
    (void)state;
    for (size_t i = 0; i < PIPELINES; i++) {
        if (pipelines[i].make == interleaved) {
            continue; /* opens its files for each epoch */
        }
        object_table_clear();
        fake_storage_clear();
        cadre_dataset *objects = pipelines[i].make(true);
        (void)elements_text(objects, &passes[0], 1);
        /* The same bytes, but another state; and nothing of it is in memory any more. */
        cadre_dataset_release(pipelines[i].make(true));
        struct cadre_error error = {0};
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        cadre_status status = cadre_dataset_iterate(objects, 1, &iterator);
        while (status == CADRE_OK) {
            status = cadre_iterator_next(iterator, &element);
            cadre_element_release(&element);
        }
        (void)error;
        /* What was read before the change is in memory, and is of the state that was opened. */
        assert_true(status == CADRE_DATA_LOSS || status == CADRE_OUT_OF_RANGE);
        if (pipelines[i].make == tfrecord_long) {
            assert_int_equal(status, CADRE_DATA_LOSS);
            assert_non_null(strstr(cadre_error_message(), FOLDER "long-"));
        }
        cadre_iterator_release(iterator);
        cadre_dataset_release(objects);
    }
}

static void damage_is_named(void **state)
{
    (void)state;
    struct frames frames = {.bytes = NULL};
    frames_add_patterns(&frames, 10, 40);
    frames.bytes[frames.starts[7] + 14] ^= 1;
    const char *path = write_bytes(true, "records", frames.bytes, frames.size);
    char text[64];
    snprintf(text, sizeof text, "records, record 7 at offset %zu", frames.starts[7]);
    expect_failure(cadre_dataset_tfrecord(&path, 1, NULL), CADRE_DATA_LOSS, text);
    expect_failure(
        cadre_dataset_shuffle(cadre_dataset_tfrecord(&path, 1, NULL), CADRE_SHUFFLE_ALL, 1, NULL),
        CADRE_DATA_LOSS, text);
    write_bytes(true, "records", frames.bytes, frames.starts[5] + 15);
    snprintf(text, sizeof text, "records, record 5 at offset %zu", frames.starts[5]);
    expect_failure(cadre_dataset_tfrecord(&path, 1, NULL), CADRE_DATA_LOSS, text);
    const char *none = path_of(true, "none");
    expect_failure(cadre_dataset_tfrecord(&none, 1, NULL), CADRE_NOT_FOUND, none);
    expect_failure(cadre_dataset_text_lines(&none, 1, NULL), CADRE_NOT_FOUND, none);
    expect_failure(cadre_dataset_npy(none), CADRE_NOT_FOUND, none);
    const char *empty = write_bytes(true, "empty", "", 0);
    expect_elements(cadre_dataset_tfrecord(&empty, 1, NULL), "");
    expect_elements(cadre_dataset_text_lines(&empty, 1, NULL), "");
    expect_failure(cadre_dataset_npy(empty), CADRE_DATA_LOSS, "empty");
    frames_clear(&frames);
}

/* Each object is looked up once, and all of its bytes are asked for once in an epoch; in the next
 * one nothing is where all of them fit. */
static void asked_for_once(void **state)
{
    (void)state;
    cadre_dataset *data = tfrecord_long(true);
    size_t sizes[2];
    (void)fake_storage_find(FOLDER "long-0", &sizes[0]);
    (void)fake_storage_find(FOLDER "long-1", &sizes[1]);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        CADRE_CHECK(cadre_dataset_iterate(data, epoch, &iterator));
        while (cadre_iterator_next(iterator, &element) == CADRE_OK) {
            cadre_element_release(&element);
        }
        cadre_iterator_release(iterator);
    }
    assert_int_equal(fake_storage_counts().bytes, sizes[0] + sizes[1]);
    assert_int_equal(fake_storage_counts().opens, 2);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_files, setup, teardown),
        cmocka_unit_test_setup_teardown(same_digests, setup, teardown),
        cmocka_unit_test_setup_teardown(index_in_the_store, setup, teardown),
        cmocka_unit_test_setup_teardown(index_in_a_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(changed_under_the_job, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(asked_for_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
