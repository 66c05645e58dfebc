/* SPDX-License-Identifier: Apache-2.0
 * The source of TFRecord files: the same records in order, by index and gathered, of several files;
 * what it says of bad ones; positions; threads. */
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cadre/tfrecord.h"
#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/sources/tfrecord.h"

#define FILES 3

/* Three files of the records of `all`, the second without any. */
static struct frames all;
static char files[FILES][600];
static const char *paths[FILES] = {files[0], files[1], files[2]};

static void write_files(size_t count, size_t size_max)
{
    frames_clear(&all);
    frames_add_patterns(&all, count, size_max);
    size_t cut = all.starts[count / 3];
    snprintf(files[0], sizeof files[0], "%s", scratch_write("one", all.bytes, cut));
    snprintf(files[1], sizeof files[1], "%s", scratch_write("two", "", 0));
    snprintf(
        files[2], sizeof files[2], "%s", scratch_write("three", all.bytes + cut, all.size - cut));
    unlink(scratch_path("one.cadre-index"));
    unlink(scratch_path("two.cadre-index"));
    unlink(scratch_path("three.cadre-index"));
}

static void expect_records(const cadre_element *element, size_t first, size_t count)
{
    assert_int_equal(element->count, count > 0);
    if (count == 0) {
        return;
    }
    assert_int_equal(cadre_tensor_dtype(element->tensors[0]), CADRE_STRING);
    assert_int_equal(cadre_tensor_count(element->tensors[0]), count);
    frames_expect(&all, first, cadre_tensor_const_data(element->tensors[0]), count);
}

/* Reads to the end, one after the other or several at a time, and keeps a few elements for long. */
static void expect_in_order(cadre_dataset *data, size_t wanted)
{
    cadre_iterator *iterator = NULL;
    struct cadre_error error = {0};
    struct id_list ids = {0};
    cadre_element kept[16] = {0};
    size_t firsts[16] = {0};
    size_t counts[16] = {0};
    size_t read = 0;
    const struct pass pass = {0};
    ASSERT_OK(data->ops->iterate(data, &pass, &iterator, &error));
    for (size_t turn = 0; read < all.count; turn = (turn + 1) % 16) {
        size_t count = 1;
        expect_records(&kept[turn], firsts[turn], counts[turn]);
        cadre_element_release(&kept[turn]);
        if (wanted == 0) {
            ASSERT_OK(iterator_next(iterator, &kept[turn], &ids, &error));
            assert_int_equal(cadre_tensor_rank(kept[turn].tensors[0]), 0);
        } else {
            ASSERT_OK(iterator_next_rows(iterator, wanted, &kept[turn], &count, &ids, &error));
            assert_true(count >= 1 && count <= wanted);
            assert_int_equal(cadre_tensor_rank(kept[turn].tensors[0]), 1);
        }
        expect_records(&kept[turn], read, count);
        firsts[turn] = read;
        counts[turn] = count;
        read += count;
    }
    cadre_element none = {0};
    assert_int_equal(iterator_next(iterator, &none, &ids, &error), CADRE_OUT_OF_RANGE);
    assert_int_equal(ids.count, all.count);
    for (size_t i = 0; i < all.count; i++) {
        assert_int_equal(ids.ids[i], i);
    }
    cadre_iterator_release(iterator);
    for (size_t i = 0; i < 16; i++) {
        cadre_element_release(&kept[i]);
    }
    id_list_clear(&ids);
}

static void expect_by_index(cadre_dataset *data)
{
    struct cadre_error error = {0};
    struct id_list ids = {0};
    struct prng prng = {.state = 5};
    ASSERT_OK(dataset_prepare(data, &error));
    ASSERT_OK(dataset_prepare(data, &error));
    assert_int_equal(dataset_cardinality(data), all.count);
    assert_int_equal(dataset_samples(data), all.count);
    for (int round = 0; round < 200; round++) {
        cadre_element element = {0};
        struct element_position positions[64];
        struct element_position asked[64];
        size_t count = 1 + prng_uniform(&prng, 64);
        for (size_t i = 0; i < count; i++) {
            bool follows = i > 0 && prng_uniform(&prng, 3) > 0;
            uint64_t next =
                follows ? (positions[i - 1].index + 1) % all.count : prng_uniform(&prng, all.count);
            positions[i] = asked[i] = (struct element_position){.index = next};
        }
        ids.count = 0;
        ASSERT_OK(dataset_gather(data, asked, count, &element, &ids, &error));
        assert_int_equal(ids.count, count);
        assert_int_equal(cadre_tensor_count(element.tensors[0]), count);
        const cadre_string *records = cadre_tensor_const_data(element.tensors[0]);
        for (size_t i = 0; i < count; i++) {
            cadre_element single = {0};
            frames_expect(&all, positions[i].index, &records[i], 1);
            assert_int_equal(ids.ids[i], positions[i].index);
            ASSERT_OK(dataset_at(data, positions[i], &single, NULL, &error));
            expect_records(&single, positions[i].index, 1);
            cadre_element_release(&single);
        }
        cadre_element_release(&element);
    }
    id_list_clear(&ids);
}

static void the_same_in_order_and_by_index(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        size_t size_max;
    } sizes[] = {{1000, 300}, {200, 9000}, {40, 150000}, {1, 0}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        write_files(sizes[s].count, sizes[s].size_max);
        for (size_t buffer = 0; buffer < 4; buffer++) {
            const cadre_tfrecord_options options = {
                .buffer_bytes = (size_t[]){0, 50, 5000, 300000}[buffer]};
            cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, &options);
            assert_int_equal(cadre_dataset_status(data), CADRE_OK);
            assert_true(data->indexable);
            assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
            for (size_t wanted = 0; wanted < 100; wanted += 33) {
                expect_in_order(data, wanted);
            }
            expect_by_index(data);
            expect_in_order(data, 10);
            cadre_dataset_release(data);
        }
    }
}

/* What every dataset promises: positions, skips, rows, and all of it by index. */
static void as_every_dataset(void **state)
{
    (void)state;
    write_files(25, 60);
    cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
    expect_spec(data, "string []");
    expect_positions(data, &(struct pass){0});
    expect_consistent(data);
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_retain(data), 4, false);
    expect_consistent(batches);
    cadre_dataset_release(batches);
    data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 1, NULL);
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* Writes the records of `all` by our own writer. */
static void write_compressed(const char *path, cadre_compression compression)
{
    cadre_tfrecord_writer *writer = NULL;
    assert_int_equal(cadre_tfrecord_writer_create(path, compression, &writer), CADRE_OK);
    for (size_t i = 0; i < all.count; i++) {
        cadre_string record = frames_record(&all, i);
        assert_int_equal(cadre_tfrecord_writer_write(writer, record.bytes, record.size), CADRE_OK);
    }
    assert_int_equal(cadre_tfrecord_writer_close(writer), CADRE_OK);
}

static void compressed_files(void **state)
{
    (void)state;
    for (int kind = CADRE_COMPRESSION_GZIP; kind <= CADRE_COMPRESSION_ZLIB; kind++) {
        const cadre_tfrecord_options options = {.compression = (cadre_compression)kind};
        write_files(300, 3000);
        write_compressed(files[0], options.compression);
        cadre_dataset *data = cadre_dataset_tfrecord(paths, 1, &options);
        assert_false(data->indexable);
        expect_in_order(data, 0);
        expect_in_order(data, 20);
        cadre_dataset_release(data);
        write_files(12, 20);
        write_compressed(files[0], options.compression);
        data = cadre_dataset_tfrecord(paths, 1, &options);
        expect_consistent(data);
        cadre_dataset_release(data);
        assert_int_equal(access(scratch_path("one.cadre-index"), F_OK), -1);
    }
}

static void arguments_that_are_refused(void **state)
{
    (void)state;
    const char *none[] = {"a", NULL};
    expect_failure(
        cadre_dataset_tfrecord(NULL, 1, NULL), CADRE_INVALID_ARGUMENT, "tfrecord: no file given");
    expect_failure(
        cadre_dataset_tfrecord(none, 0, NULL), CADRE_INVALID_ARGUMENT, "tfrecord: no file given");
    expect_failure(cadre_dataset_tfrecord(none, 2, NULL), CADRE_INVALID_ARGUMENT, "path 1 is NULL");
    cadre_tfrecord_options options = {.compression = (cadre_compression)3};
    expect_failure(cadre_dataset_tfrecord(none, 1, &options), CADRE_INVALID_ARGUMENT,
        "3 is not a compression");
    options = (cadre_tfrecord_options){.buffer_bytes = ((size_t)1 << 30) + 1};
    expect_failure(
        cadre_dataset_tfrecord(none, 1, &options), CADRE_INVALID_ARGUMENT, "a buffer of");
    options = (cadre_tfrecord_options){.record_bytes = -1};
    expect_failure(
        cadre_dataset_tfrecord(none, 1, &options), CADRE_INVALID_ARGUMENT, "a limit of -1");
    options = (cadre_tfrecord_options){.record_bytes = INT64_MAX};
    expect_failure(cadre_dataset_tfrecord(none, 1, &options), CADRE_INVALID_ARGUMENT, "a limit of");
}

/* In order, and by index where the index cannot be made. */
static void expect_both_failures(const char *path, cadre_status code, const char *part)
{
    struct cadre_error error = {0};
    cadre_dataset *data = cadre_dataset_tfrecord(&path, 1, NULL);
    assert_int_equal(cadre_dataset_status(data), CADRE_OK);
    assert_int_equal(dataset_prepare(data, &error), code);
    assert_non_null(strstr(error.text, part));
    assert_int_equal(dataset_prepare(data, &error), code);
    expect_failure(data, code, part);
}

static void files_that_are_refused(void **state)
{
    (void)state;
    struct frames frames = {0};
    expect_both_failures(scratch_path("nothing"), CADRE_NOT_FOUND, "nothing");
    expect_both_failures(scratch_path("."), CADRE_INVALID_ARGUMENT, "not a regular file");
    expect_both_failures(scratch_write("text", "something else altogether", 25), CADRE_DATA_LOSS,
        "text, record 0 at offset 0: the checksum of its length");
    frames_add_patterns(&frames, 10, 100);
    expect_both_failures(scratch_write("cut", frames.bytes, frames.size - 2), CADRE_DATA_LOSS,
        "cut, record 9 at offset");
    frames_add_wrong_length(&frames, UINT64_C(1) << 63, "x", 1);
    expect_both_failures(frames_write(&frames, "lie"), CADRE_DATA_LOSS, "lie, record 10 at offset");
    frames_clear(&frames);
    expect_elements(
        cadre_dataset_tfrecord((const char *[]){scratch_write("empty", "", 0)}, 1, NULL), "");
}

/* Damaged data is found when it is read, and only then: the index does not look at it. */
static void damage_in_data(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_element element = {0};
    write_files(30, 100);
    size_t in_three = all.starts[20] - all.starts[10];
    uint8_t *bytes = malloc(all.size);
    assert_non_null(bytes);
    memcpy(bytes, all.bytes, all.size);
    bytes[all.starts[20] + 12] ^= 1;
    scratch_write("three", bytes + all.starts[10], all.size - all.starts[10]);
    free(bytes);
    cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
    ASSERT_OK(dataset_prepare(data, &error));
    char part[64];
    snprintf(part, sizeof part, "three, record 10 at offset %zu: the checksum of its", in_three);
    assert_int_equal(
        dataset_at(data, (struct element_position){.index = 20}, &element, NULL, &error),
        CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, part));
    assert_int_equal(element.count, 0);
    struct element_position positions[3] = {{.index = 19}, {.index = 20}, {.index = 21}};
    assert_int_equal(dataset_gather(data, positions, 3, &element, NULL, &error), CADRE_DATA_LOSS);
    assert_non_null(strstr(error.text, part));
    assert_int_equal(element.count, 0);
    ASSERT_OK(dataset_at(data, (struct element_position){.index = 21}, &element, NULL, &error));
    expect_records(&element, 21, 1);
    cadre_element_release(&element);
    cadre_dataset_release(data);
    const cadre_tfrecord_options believing = {.skip_checksums = true};
    data = cadre_dataset_tfrecord(paths, FILES, &believing);
    ASSERT_OK(dataset_prepare(data, &error));
    ASSERT_OK(dataset_at(data, (struct element_position){.index = 20}, &element, NULL, &error));
    cadre_element_release(&element);
    cadre_dataset_release(data);
}

/* The file is another one than when its records were counted. */
static void changed_after_counting(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_element element = {0};
    for (int way = 0; way < 3; way++) {
        write_files(60, 90000);
        cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
        ASSERT_OK(dataset_prepare(data, &error));
        struct frames other = {0};
        frames_add_patterns(&other, 600, 9000);
        if (way == 0) {
            assert_int_equal(truncate(files[2], 5000), 0);
        } else if (way == 1) {
            scratch_write("three", other.bytes, all.size - all.starts[20]);
        } else {
            unlink(files[2]);
        }
        unsigned failures = 0;
        for (uint64_t i = 20; i < 60; i++) {
            cadre_status status =
                dataset_at(data, (struct element_position){.index = i}, &element, NULL, &error);
            if (status == CADRE_OK) {
                expect_records(&element, i, 1);
                cadre_element_release(&element);
            } else {
                assert_int_equal(status, CADRE_DATA_LOSS);
                assert_non_null(strstr(error.text, "three, record "));
                failures++;
            }
        }
        assert_true(way == 2 || failures > 30);
        assert_true(way != 2 || failures == 0); /* still open */
        frames_clear(&other);
        cadre_dataset_release(data);
        write_files(1, 0);
    }
}

static void positions_of_other_files(void **state)
{
    (void)state;
    static const uint64_t positions[][4] = {
        {5, 4, 0, 5}, {5, 3, 7, 5}, {5, 0, 0, 6}, {5, 0, UINT64_MAX, 5}, {5, 0, 1 << 20, 5}};
    write_files(25, 60);
    for (size_t p = 0; p < sizeof positions / sizeof positions[0]; p++) {
        struct cadre_error error = {0};
        struct iterator_state_writer writer = {0};
        cadre_iterator *iterator = NULL;
        cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
        const struct pass pass = {0};
        ASSERT_OK(data->ops->iterate(data, &pass, &iterator, &error));
        for (size_t i = 0; i < 4; i++) {
            ASSERT_OK(iterator_state_write_number(&writer, positions[p][i], &error));
        }
        struct iterator_state_reader reader = {.bytes = writer.bytes, .count = writer.count};
        assert_int_equal(iterator->ops->restore(iterator, &reader, &error), CADRE_INVALID_ARGUMENT);
        iterator_state_writer_clear(&writer);
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
}

static void described(void **state)
{
    (void)state;
    char expected[200];
    write_files(3, 10);
    cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
    char *text = dataset_describe(data);
    snprintf(expected, sizeof expected,
        "tfrecord: 3 files, one (%zu bytes), two (0 bytes), three (%zu bytes)\n", all.starts[1],
        all.size - all.starts[1]);
    assert_string_equal(text, expected);
    free(text);
    cadre_dataset_release(data);
    const char *missing = "/nowhere/a.gz";
    const cadre_tfrecord_options gzip = {.compression = CADRE_COMPRESSION_GZIP};
    data = cadre_dataset_tfrecord(&missing, 1, &gzip);
    text = dataset_describe(data);
    assert_string_equal(text, "tfrecord: gzip, 1 file, a.gz (not there)\n");
    free(text);
    cadre_dataset_release(data);
}

/* More files than descriptors are kept open. */
static void many_files(void **state)
{
    (void)state;
    enum { MANY = 100 };
    static char names[MANY][600];
    const char *many[MANY];
    frames_clear(&all);
    frames_add_patterns(&all, MANY, 90000);
    for (size_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", i);
        snprintf(names[i], sizeof names[i], "%s",
            scratch_write(name, all.bytes + all.starts[i], all.starts[i + 1] - all.starts[i]));
        many[i] = names[i];
    }
    cadre_dataset *data = cadre_dataset_tfrecord(many, MANY, NULL);
    expect_in_order(data, 7);
    expect_by_index(data);
    cadre_dataset_release(data);
}

static void *prepare_and_read(void *user)
{
    struct cadre_error error = {0};
    cadre_dataset *data = user;
    uint64_t wrong = 0;
    wrong += dataset_prepare(data, &error) != CADRE_OK;
    for (uint64_t i = 0; i < 1000 && wrong == 0; i++) {
        cadre_element element = {0};
        uint64_t index = i * 37 % all.count;
        wrong += dataset_at(data, (struct element_position){.index = index}, &element, NULL,
                     &error) != CADRE_OK;
        const cadre_string *record = cadre_tensor_const_data(element.tensors[0]);
        wrong += wrong == 0 && record->size != all.starts[index + 1] - all.starts[index] - 16;
        cadre_element_release(&element);
    }
    return wrong == 0 ? NULL : data;
}

static void prepared_by_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    write_files(1000, 200);
    cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
    for (size_t t = 0; t < 4; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, prepare_and_read, data), 0);
    }
    for (size_t t = 0; t < 4; t++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[t], &wrong), 0);
        assert_null(wrong);
    }
    cadre_dataset_release(data);
}

/* Each call that can fail does so once: an error, and nothing is lost or left over; or the right
 * records all the same. */
static void every_call_fails_once(void **state)
{
    (void)state;
    bool met = true;
    write_files(30, 90000);
    for (uint64_t nth = 1; met; nth++) {
        struct cadre_error error = {0};
        cadre_element element = {0};
        struct element_position positions[2] = {{.index = 3}, {.index = 20}};
        unlink(scratch_path("one.cadre-index"));
        fault_arm("", nth);
        cadre_dataset *data = cadre_dataset_tfrecord(paths, FILES, NULL);
        cadre_status status = dataset_status(data, &error);
        if (status == CADRE_OK) {
            status = dataset_prepare(data, &error);
        }
        if (status == CADRE_OK) {
            status = dataset_gather(data, positions, 2, &element, NULL, &error);
        }
        met = fault_disarm();
        assert_true(status == CADRE_OK || (met && error.text[0] != '\0'));
        if (status == CADRE_OK) {
            frames_expect(&all, 3, cadre_tensor_const_data(element.tensors[0]), 1);
        }
        cadre_element_release(&element);
        cadre_dataset_release(data);
        assert_true(nth < 1000);
    }
}

/* Large batches by index, read by several threads: the same, and the first failure in order. */
static void large_batches_by_threads(void **state)
{
    static struct frames large;
    struct element_position positions[40];
    (void)state;
    for (uint64_t i = 0; i < 40; i++) {
        frames_add_pattern(&large, i, 70000 + (size_t)i);
    }
    const char *path = frames_write(&large, "large");
    cadre_dataset *data =
        cadre_dataset_tfrecord(&path, 1, &(cadre_tfrecord_options){.parallel = 3});
    struct cadre_error error = {0};
    assert_int_equal(dataset_prepare(data, &error), CADRE_OK);
    for (int damaged = 0; damaged < 2; damaged++) {
        cadre_element element = {0};
        for (size_t i = 0; i < 40; i++) {
            positions[i] = (struct element_position){.index = i < 20 ? 2 * i : 2 * (i - 20) + 1};
        }
        cadre_status status = dataset_gather(data, positions, 40, &element, NULL, &error);
        if (damaged == 1) {
            assert_int_equal(status, CADRE_DATA_LOSS);
            assert_non_null(strstr(error.text, "record 30 at"));
            break;
        }
        assert_int_equal(status, CADRE_OK);
        const cadre_string *records = cadre_tensor_const_data(element.tensors[0]);
        for (size_t i = 0; i < 40; i++) {
            frames_expect(&large, i < 20 ? 2 * i : 2 * (i - 20) + 1, &records[i], 1);
        }
        cadre_element_release(&element);
        large.bytes[large.starts[30] + 1000] ^= 1; /* in order of asking before 11 */
        large.bytes[large.starts[11] + 1000] ^= 1;
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        assert_int_equal(fwrite(large.bytes, 1, large.size, file), large.size);
        assert_int_equal(fclose(file), 0);
    }
    cadre_dataset_release(data);
    frames_clear(&large);
    data = cadre_dataset_tfrecord(&path, 1, &(cadre_tfrecord_options){.parallel = -2});
    expect_failure(data, CADRE_INVALID_ARGUMENT, "tfrecord");
}

static int teardown(void **state)
{
    frames_clear(&all);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_in_order_and_by_index),
        cmocka_unit_test(as_every_dataset),
        cmocka_unit_test(compressed_files),
        cmocka_unit_test(arguments_that_are_refused),
        cmocka_unit_test(files_that_are_refused),
        cmocka_unit_test(damage_in_data),
        cmocka_unit_test(changed_after_counting),
        cmocka_unit_test(positions_of_other_files),
        cmocka_unit_test(described),
        cmocka_unit_test(many_files),
        cmocka_unit_test(prepared_by_threads),
        cmocka_unit_test(every_call_fails_once),
        cmocka_unit_test(large_batches_by_threads),
    };
    return cmocka_run_group_tests(tests, scratch_setup, teardown);
}
