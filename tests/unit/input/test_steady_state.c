/* SPDX-License-Identifier: Apache-2.0
 * Reading in the steady state allocates nothing: after a few batches neither malloc nor the memory
 * of tensors is asked for anything. The program is linked with --wrap, so that each call of the
 * library's code is counted. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cadre/tfrecord.h"
#include "tests/unit/input/npy_writing.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/node.h"

#define RECORDS      200000
#define RECORD_BYTES 100

static _Atomic uint64_t calls;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&calls, 1);
    return __real_aligned_alloc(alignment, bytes);
}

/* --- sources of at least RECORDS elements --- */

static const char *record_file(void)
{
    static char path[300];
    static uint8_t bytes[RECORDS][RECORD_BYTES];
    if (path[0] == 0) {
        for (size_t i = 0; i < RECORDS; i++) {
            memset(bytes[i], (int)(i % 251), RECORD_BYTES);
        }
        snprintf(path, sizeof path, "%s", scratch_write("records", bytes, sizeof bytes));
    }
    return path;
}

static cadre_dataset *numbers(void)
{
    return cadre_dataset_range(0, RECORDS, 1);
}

static cadre_dataset *fixed(void)
{
    const char *path = record_file();
    return cadre_dataset_fixed_length(&path, 1, RECORD_BYTES, NULL);
}

static cadre_dataset *npy(void)
{
    static uint8_t bytes[RECORDS * 16 + 256];
    static uint8_t values[RECORDS * 16];
    char header[128];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 4), }",
        RECORDS);
    size_t size = npy_make(bytes, sizeof bytes, 1, header, values, sizeof values);
    return cadre_dataset_npy(scratch_write("rows.npy", bytes, size));
}

static cadre_dataset *slices(void)
{
    cadre_tensor *tensors[2];
    static cadre_string words[RECORDS];
    for (size_t i = 0; i < RECORDS; i++) {
        words[i] = (cadre_string){.bytes = "some words", .size = i % 11};
    }
    const int64_t dims[] = {RECORDS};
    assert_int_equal(cadre_tensor_create(CADRE_F32, 1, dims, &tensors[0]), CADRE_OK);
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, dims, words, &tensors[1]), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return data;
}

static cadre_dataset *tfrecord(void)
{
    const char *path = scratch_path("records.tfrecord");
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        cadre_tfrecord_writer *writer = NULL;
        assert_int_equal(
            cadre_tfrecord_writer_create(path, CADRE_COMPRESSION_NONE, &writer), CADRE_OK);
        for (size_t i = 0; i < RECORDS; i++) {
            char record[RECORD_BYTES];
            memset(record, (int)(i % 251), sizeof record);
            assert_int_equal(cadre_tfrecord_writer_write(writer, record, 50 + i % 50), CADRE_OK);
        }
        assert_int_equal(cadre_tfrecord_writer_close(writer), CADRE_OK);
    } else {
        fclose(file);
    }
    return cadre_dataset_tfrecord(&path, 1, NULL);
}

/* --- counting --- */

/* Reads the first half of an epoch, then counts over the next third. */
static void expect_none(cadre_dataset *data, int64_t elements, bool with_ids)
{
    cadre_iterator *iterator = NULL;
    struct cadre_error error = {0};
    struct id_list ids = {0};
    uint64_t before = 0;
    uint64_t gets = 0;
    ASSERT_OK(dataset_status(data, &error));
    tensor_memory_limit(TENSOR_MEMORY_HOST, (uint64_t)256 << 20);
    ASSERT_OK(dataset_iterate(data, &(struct pass){.epoch = 1}, &iterator, &error));
    for (int64_t i = 0; i < elements * 5 / 6; i++) {
        cadre_element element = {0};
        if (i == elements / 2) {
            before = atomic_load(&calls);
            gets = tensor_memory_counts(TENSOR_MEMORY_HOST).gets;
        }
        ids.count = 0;
        ASSERT_OK(iterator_next(iterator, &element, with_ids ? &ids : NULL, &error));
        cadre_element_release(&element);
    }
    assert_int_equal(atomic_load(&calls) - before, 0);
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_HOST).gets - gets, 0);
    cadre_iterator_release(iterator);
    id_list_clear(&ids);
    cadre_dataset_release(data);
    tensor_memory_limit(TENSOR_MEMORY_HOST, 0);
}

static void counts_see_allocations(void **state)
{
    (void)state;
    cadre_tensor *tensor = NULL;
    uint64_t before = atomic_load(&calls);
    tensor_memory_limit(TENSOR_MEMORY_HOST, 0);
    assert_int_equal(cadre_tensor_from_i64(1, &tensor), CADRE_OK);
    cadre_tensor_release(tensor);
    assert_int_equal(atomic_load(&calls) - before, 1);
}

typedef cadre_dataset *(*maker)(void);
static const maker sources[] = {numbers, fixed, npy, slices, tfrecord};
#define SOURCES (sizeof sources / sizeof sources[0])

static void single_elements(void **state)
{
    (void)state;
    for (size_t s = 0; s < SOURCES; s++) {
        expect_none(sources[s](), RECORDS, true);
    }
}

static void batches(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 64, 1000};
    for (size_t s = 0; s < SOURCES; s++) {
        for (size_t k = 0; k < 3; k++) {
            for (int ids = 0; ids < 2; ids++) {
                expect_none(cadre_dataset_batch(sources[s](), sizes[k], false), RECORDS / sizes[k],
                    ids == 1);
            }
        }
    }
}

static void shuffled_batches(void **state)
{
    (void)state;
    const int64_t buffers[] = {CADRE_SHUFFLE_ALL, 10, 3000};
    for (size_t s = 0; s < SOURCES; s++) {
        for (size_t b = 0; b < 3; b++) {
            cadre_dataset *data = cadre_dataset_shuffle(sources[s](), buffers[b], 1, NULL);
            expect_none(cadre_dataset_batch(data, 64, true), RECORDS / 64, b == 1);
            data = cadre_dataset_shuffle(sources[s](), buffers[b], 1, NULL);
            expect_none(data, RECORDS, b == 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_see_allocations),
        cmocka_unit_test(single_elements),
        cmocka_unit_test(batches),
        cmocka_unit_test(shuffled_batches),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
