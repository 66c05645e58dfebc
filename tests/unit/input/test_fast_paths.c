/* SPDX-License-Identifier: Apache-2.0
 * Fast ways of reading against the plain one, on many random pipelines: the same elements with the
 * same ids. The plain pipeline has a filter that keeps everything behind each node, so that nothing
 * is read by index, stacked at the source or skipped. Also what is kept of files in memory. */
#include "tests/lib/rounds.h"
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cadre/tfrecord.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/npy_writing.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/files/block_cache.h"
#include "worker/library/input/files/file_rows.h"

#define ROWS      40
#define PIPELINES 400

/* --- sources --- */

static cadre_dataset *numbers(void)
{
    return cadre_dataset_range(3, 3 + 2 * ROWS, 2);
}

static cadre_dataset *fixed(void)
{
    static uint8_t bytes[3][ROWS * 5 + 7];
    const char *paths[3];
    for (int i = 0; i < 3; i++) {
        char name[24];
        snprintf(name, sizeof name, "fixed-%d", i);
        for (size_t k = 0; k < sizeof bytes[0]; k++) {
            bytes[i][k] = (uint8_t)(k * 31 + (size_t)i);
        }
        /* 3, 10 and 4 records behind a header of 4 and before a footer of 3 bytes. */
        const size_t counts[] = {3, 10, 4};
        paths[i] = scratch_write(name, bytes[i], 7 + 5 * counts[i]);
    }
    return cadre_dataset_fixed_length(
        paths, 3, 5, &(cadre_fixed_length_options){.header_bytes = 4, .footer_bytes = 3});
}

static cadre_dataset *npy(void)
{
    static uint8_t bytes[4096];
    int32_t values[ROWS][2];
    for (int i = 0; i < ROWS; i++) {
        values[i][0] = i;
        values[i][1] = -i;
    }
    size_t size = npy_make(bytes, sizeof bytes, 1,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (40, 2), }", values, sizeof values);
    return cadre_dataset_npy(scratch_write("rows.npy", bytes, size));
}

static cadre_dataset *slices(void)
{
    cadre_tensor *tensors[3];
    static char text[ROWS][24];
    cadre_string words[2 * ROWS];
    float values[ROWS];
    uint8_t flags[ROWS];
    for (int i = 0; i < ROWS; i++) {
        int size = snprintf(text[i], sizeof text[i], "word%.*s%d", i % 7, "-------", i);
        words[2 * i] = (cadre_string){.bytes = text[i], .size = (size_t)size};
        words[2 * i + 1] = (cadre_string){.bytes = text[i], .size = (size_t)i % 5};
        values[i] = (float)i / 4;
        flags[i] = i % 3 == 0;
    }
    struct cadre_error error = {0};
    ASSERT_OK(tensor_from_data(CADRE_F32, 1, (int64_t[]){ROWS}, values, &tensors[0], &error));
    ASSERT_OK(tensor_from_data(CADRE_STRING, 2, (int64_t[]){ROWS, 2}, words, &tensors[1], &error));
    ASSERT_OK(tensor_from_data(CADRE_BOOL, 1, (int64_t[]){ROWS}, flags, &tensors[2], &error));
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 3);
    for (int i = 0; i < 3; i++) {
        cadre_tensor_release(tensors[i]);
    }
    return data;
}

static cadre_dataset *tfrecord(void)
{
    const char *path = scratch_path("records.tfrecord");
    if (access(path, R_OK) != 0) {
        cadre_tfrecord_writer *writer = NULL;
        assert_int_equal(
            cadre_tfrecord_writer_create(path, CADRE_COMPRESSION_NONE, &writer), CADRE_OK);
        for (int i = 0; i < ROWS; i++) {
            char record[40];
            int size = snprintf(record, sizeof record, "r%.*s%d", i % 13, ".............", i);
            assert_int_equal(cadre_tfrecord_writer_write(writer, record, (size_t)size), CADRE_OK);
        }
        assert_int_equal(cadre_tfrecord_writer_close(writer), CADRE_OK);
    }
    const cadre_tfrecord_options options = {.buffer_bytes = 128};
    return cadre_dataset_tfrecord(&path, 1, &options);
}

typedef cadre_dataset *(*maker)(void);
static const maker sources[] = {numbers, fixed, npy, slices, tfrecord};

/* --- pipelines --- */

/* One node behind `data`; the same for the same state of `prng`. `chooses`: one that only chooses
 * among the elements, which are indexable. */
static cadre_dataset *add_node(cadre_dataset *data, struct prng *prng, bool chooses)
{
    int64_t some = 1 + (int64_t)prng_uniform(prng, 9);
    uint64_t seed = prng_next(prng);
    switch (prng_uniform(prng, chooses ? 5 : 9)) {
    case 0:
        return cadre_dataset_take(data, 3 * some + 8);
    case 1:
        return cadre_dataset_skip(data, some);
    case 2:
        return cadre_dataset_shard(data, 1 + some % 3, some % (1 + some % 3));
    case 3:
        return cadre_dataset_repeat(data, 1 + some % 3);
    case 4:
        return chooses ? cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, seed, NULL) : data;
    case 5:
        return cadre_dataset_shuffle(data, 3 * some, seed, NULL);
    case 6:
        return cadre_dataset_batch(data, some, true);
    case 7:
        return cadre_dataset_unbatch(cadre_dataset_batch(data, some, false));
    default:
        return cadre_dataset_prefetch(data, some);
    }
}

static cadre_dataset *build(uint64_t number, bool plain)
{
    struct prng prng = {.state = number * 1000};
    cadre_dataset *data = sources[number % (sizeof sources / sizeof sources[0])]();
    for (uint64_t left = prng_uniform(&prng, 4); left > 0; left--) {
        data = add_node(data, &prng, true);
    }
    for (uint64_t left = prng_uniform(&prng, 4); left > 0; left--) {
        data = plain ? in_order_only(data) : data;
        data = add_node(data, &prng, false);
    }
    data = plain ? in_order_only(data) : data;
    return cadre_dataset_batch(data, 1 + (int64_t)prng_uniform(&prng, 12), number % 2 == 0);
}

static void read_ids(cadre_dataset *data, const struct pass *pass, struct id_list *ids)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    size_t given = 0;
    cadre_element element = {0};
    ASSERT_OK(dataset_iterate(data, pass, &iterator, &error));
    while (iterator_next(iterator, &element, ids, &error) == CADRE_OK) {
        given = ids->count;
        cadre_element_release(&element);
    }
    assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
    ids->count = given; /* those of a failure are void */
    cadre_iterator_release(iterator);
}

static void fast_and_plain_reading_agree(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < TEST_ROUNDS(PIPELINES); number++) {
        cadre_dataset *fast = build(number, false);
        cadre_dataset *plain = build(number, true);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            const struct pass pass = {.epoch = epoch, .ordered = true};
            struct id_list ids[2] = {{0}};
            assert_string_equal(elements_text(fast, &pass, 512), elements_text(plain, &pass, 512));
            read_ids(fast, &pass, &ids[0]);
            read_ids(plain, &pass, &ids[1]);
            assert_int_equal(ids[0].count, ids[1].count);
            if (ids[0].count > 0) {
                assert_memory_equal(ids[0].ids, ids[1].ids, ids[0].count * sizeof ids[0].ids[0]);
            }
            id_list_clear(&ids[0]);
            id_list_clear(&ids[1]);
        }
        if (number % 4 == 0) {
            expect_consistent(fast);
        }
        cadre_dataset_release(fast);
        cadre_dataset_release(plain);
    }
}

/* More rows than are gathered at once are joined. */
static void very_large_batches(void **state)
{
    (void)state;
    enum { COUNT = 150000 };
    for (int way = 0; way < 3; way++) {
        cadre_dataset *data = cadre_dataset_range(0, COUNT, 1);
        data = way == 0   ? data
               : way == 1 ? in_order_only(data)
                          : cadre_dataset_shuffle(data, 1, 0, NULL);
        data = cadre_dataset_batch(data, COUNT - 1, false);
        for (int again = 0; again < 2; again++) {
            cadre_iterator *iterator = NULL;
            cadre_element element = {0};
            assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
            assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
            assert_int_equal(cadre_tensor_rows(element.tensors[0]), COUNT - 1);
            const int64_t *values = cadre_tensor_const_data(element.tensors[0]);
            for (int64_t i = 0; i < COUNT - 1; i++) {
                assert_true(values[i] == i);
            }
            cadre_element_release(&element);
            cadre_iterator_release(iterator);
        }
        cadre_dataset_release(data);
    }
}

/* --- memory for a device --- */

static void *standin_get(size_t bytes)
{
    return aligned_alloc(CADRE_TENSOR_ALIGN, bytes);
}

static void standin_give(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

/* The thread that reads for a device says what memory it wants; all it reads then lies there. */
static void batches_land_in_the_memory_that_is_asked_for(void **state)
{
    (void)state;
    static const struct tensor_memory_ops stand_in = {
        .name = "stand-in", .get = standin_get, .give = standin_give};
    struct cadre_error error = {0};
    ASSERT_OK(tensor_memory_register(TENSOR_MEMORY_PINNED, &stand_in, &error));
    tensor_memory_limit(TENSOR_MEMORY_PINNED, (uint64_t)1 << 20);
    for (size_t s = 0; s < sizeof sources / sizeof sources[0]; s++) {
        for (int way = 0; way < 4; way++) {
            cadre_dataset *data = sources[s]();
            data = way == 1   ? cadre_dataset_shuffle(data, 5, 1, NULL)
                   : way == 2 ? cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 1, NULL)
                   : way == 3 ? in_order_only(data)
                              : data;
            data = cadre_dataset_batch(data, 3, false);
            cadre_iterator *iterator = NULL;
            cadre_element element = {0};
            ASSERT_OK(dataset_iterate(data, &(struct pass){.epoch = 0}, &iterator, &error));
            assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_PINNED), TENSOR_MEMORY_HOST);
            for (int i = 0; i < 4; i++) {
                ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
                for (uint32_t k = 0; k < element.count; k++) {
                    assert_int_equal(tensor_kind(element.tensors[k]), TENSOR_MEMORY_PINNED);
                }
                cadre_element_release(&element);
            }
            assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_HOST), TENSOR_MEMORY_PINNED);
            cadre_iterator_release(iterator);
            cadre_dataset_release(data);
        }
    }
    tensor_memory_limit(TENSOR_MEMORY_PINNED, 0);
}

/* --- files kept in memory --- */

enum { FILE_ROWS = 50000, ROW_BYTES = 40 };

static const char *rows_file(void)
{
    static uint8_t bytes[FILE_ROWS][ROW_BYTES];
    for (size_t i = 0; i < FILE_ROWS; i++) {
        memset(bytes[i], (int)(i % 253), ROW_BYTES);
    }
    return scratch_write("rows", bytes, sizeof bytes);
}

/* Reads the whole file here and there, and checks what comes. */
static void *read_scattered(void *user)
{
    const struct file_rows *rows = user;
    struct prng prng = {.state = (uint64_t)pthread_self()};
    for (int round = 0; round < 3000; round++) {
        struct element_position positions[50];
        char bytes[50 * ROW_BYTES];
        struct cadre_error error = {0};
        for (size_t i = 0; i < 50; i++) {
            positions[i].index =
                i % 5 > 0 ? positions[i - 1].index + 1 : prng_uniform(&prng, FILE_ROWS - 5);
        }
        if (file_rows_read(rows, positions, 50, bytes, &error) != CADRE_OK) {
            return user;
        }
        for (size_t i = 0; i < sizeof bytes; i++) {
            if ((uint8_t)bytes[i] != positions[i / ROW_BYTES].index % 253) {
                return user;
            }
        }
    }
    return NULL;
}

static void expect_scattered(uint64_t limit, uint64_t kept)
{
    struct input_file file;
    struct cadre_error error = {0};
    pthread_t threads[3];
    block_cache_set_limit(limit);
    ASSERT_OK(input_file_open(&file, rows_file(), true, &error));
    struct file_rows rows = {.file = &file, .row_bytes = ROW_BYTES, .step_bytes = ROW_BYTES};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_scattered, &rows), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(block_cache_bytes(), kept);
    input_file_close(&file);
    assert_int_equal(block_cache_bytes(), 0);
}

static void files_read_here_and_there_are_kept(void **state)
{
    (void)state;
    uint64_t bytes = (uint64_t)FILE_ROWS * ROW_BYTES;
    expect_scattered(4 * bytes, bytes);
    expect_scattered(bytes, bytes);
    expect_scattered(bytes - 1, 0);
    expect_scattered(0, 0);
}

/* What is read in order is not kept; what lies behind the end as it was is an error. */
static void what_is_not_kept(void **state)
{
    (void)state;
    struct input_file file;
    struct cadre_error error = {0};
    static struct element_position positions[FILE_ROWS];
    static char bytes[FILE_ROWS * ROW_BYTES];
    block_cache_set_limit((uint64_t)1 << 30);
    ASSERT_OK(input_file_open(&file, rows_file(), true, &error));
    struct file_rows rows = {.file = &file, .row_bytes = ROW_BYTES, .step_bytes = ROW_BYTES};
    for (size_t i = 0; i < FILE_ROWS; i++) {
        positions[i].index = i;
    }
    for (int round = 0; round < 3; round++) {
        ASSERT_OK(file_rows_read(&rows, positions, FILE_ROWS, bytes, &error));
    }
    assert_int_equal(block_cache_bytes(), 0);
    /* Shorter than it was: the blocks that are there serve, the others are DATA_LOSS. */
    assert_int_equal(truncate(file.path, 100 * ROW_BYTES), 0);
    cadre_status last = CADRE_OK;
    for (uint64_t i = 0; i < FILE_ROWS; i += 7) {
        const struct element_position position = {.index = FILE_ROWS - 1 - i};
        last = file_rows_read(&rows, &position, 1, bytes, &error);
        assert_int_equal(last, position.index >= 100 ? CADRE_DATA_LOSS : CADRE_OK);
    }
    input_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_and_plain_reading_agree),
        cmocka_unit_test(very_large_batches),
        cmocka_unit_test(batches_land_in_the_memory_that_is_asked_for),
        cmocka_unit_test(files_read_here_and_there_are_kept),
        cmocka_unit_test(what_is_not_kept),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
