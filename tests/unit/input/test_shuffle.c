/* SPDX-License-Identifier: Apache-2.0
 * The shuffle with a buffer, and that of all: every element once, an order that is fixed by seed
 * and epoch, how far elements travel, where they stand, and what is refused. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/shuffle/slab_allocator.h"

#define ROWS 90

/* Elements of four components: numbers, a number, a text of its own length, and two texts. */
static cadre_dataset *mixed(void)
{
    struct cadre_error error = {0};
    static char text[3 * ROWS][64];
    float numbers[ROWS * 3];
    int64_t scalars[ROWS];
    cadre_string words[ROWS];
    cadre_string pairs[2 * ROWS];
    cadre_tensor *tensors[4];
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3; k++) {
            numbers[3 * i + k] = (float)(10 * i + k);
            int size =
                snprintf(text[3 * i + k], sizeof text[0], "%d-%.*s", 10 * i + k, (i * (k + 7)) % 50,
                    "................................................................");
            cadre_string string = {.bytes = text[3 * i + k], .size = (size_t)size};
            *(k == 0 ? &words[i] : &pairs[2 * i + k - 1]) = string;
        }
        scalars[i] = i;
    }
    words[5].size = 0;
    ASSERT_OK(tensor_from_data(CADRE_F32, 2, (int64_t[]){ROWS, 3}, numbers, &tensors[0], &error));
    ASSERT_OK(tensor_from_data(CADRE_I64, 1, (int64_t[]){ROWS}, scalars, &tensors[1], &error));
    ASSERT_OK(tensor_from_data(CADRE_STRING, 1, (int64_t[]){ROWS}, words, &tensors[2], &error));
    ASSERT_OK(tensor_from_data(CADRE_STRING, 2, (int64_t[]){ROWS, 2}, pairs, &tensors[3], &error));
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 4);
    for (int i = 0; i < 4; i++) {
        cadre_tensor_release(tensors[i]);
    }
    return data;
}

/* Vectors of 0 to 4 numbers: no two need agree in their length. */
static cadre_status make_ragged(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const int64_t *number = cadre_tensor_const_data(in->tensors[0]);
    const int64_t values[] = {*number, *number, *number, *number};
    const int64_t dims[] = {*number % 5};
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_I64, 1, dims, values, &ret_out->tensors[0]);
}

static cadre_dataset *ragged(void)
{
    const cadre_element_spec spec = {
        .count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    const cadre_map_options options = {.output = &spec};
    return cadre_dataset_map(cadre_dataset_range(0, 60, 1), make_ragged, NULL, &options);
}

/* Rows of 8 KiB: too large to be copied twice, so held as they came. */
static cadre_dataset *large_rows(void)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_I64, 2, (int64_t[]){20, 1024}, &tensor), CADRE_OK);
    for (int64_t i = 0; i < 20 * 1024; i++) {
        ((int64_t *)cadre_tensor_data(tensor))[i] = i / 1024;
    }
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

/* Elements of three samples each, alike: their ids stay together. */
static cadre_dataset *triples(void)
{
    return cadre_dataset_batch(cadre_dataset_range(0, 96, 1), 3, true);
}

/* Alike, but those of the first half have one sample, those of the second three. */
static cadre_dataset *one_then_three(void)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_I64, 2, (int64_t[]){70, 3}, &tensor), CADRE_OK);
    cadre_dataset *singles = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return cadre_dataset_concatenate(singles, triples());
}

typedef cadre_dataset *(*maker)(void);

/* The text of an epoch, its elements sorted: what is in it, whatever the order. */
static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void same_elements(cadre_dataset *a, cadre_dataset *b, uint64_t epoch)
{
    static char texts[2][ELEMENTS_TEXT_BYTES];
    static char *words[2][ELEMENTS_TEXT_BYTES / 2];
    size_t counts[2] = {0};
    cadre_dataset *data[2] = {a, b};
    for (int side = 0; side < 2; side++) {
        const struct pass pass = {.epoch = epoch};
        snprintf(texts[side], sizeof texts[side], "%s", elements_text(data[side], &pass, 512));
        char *save = NULL;
        for (char *word = strtok_r(texts[side], " ", &save); word != NULL;
             word = strtok_r(NULL, " ", &save)) {
            words[side][counts[side]++] = word;
        }
        qsort(words[side], counts[side], sizeof words[side][0], compare_texts);
    }
    assert_int_equal(counts[0], counts[1]);
    for (size_t i = 0; i < counts[0]; i++) {
        assert_string_equal(words[0][i], words[1][i]);
    }
}

static const maker makers[] = {mixed, ragged, large_rows, triples, one_then_three};

static void every_element_comes_once(void **state)
{
    (void)state;
    const int64_t buffers[] = {1, 2, 7, 64, 1000};
    for (size_t m = 0; m < 4; m++) {
        for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
            for (int batched = 0; batched < 2; batched++) {
                cadre_dataset *plain = makers[m]();
                cadre_dataset *data =
                    cadre_dataset_shuffle(cadre_dataset_retain(plain), buffers[b], 9, NULL);
                if (batched == 1 && m != 1) {
                    data = cadre_dataset_unbatch(cadre_dataset_batch(data, 4, false));
                }
                same_elements(plain, data, 0);
                same_elements(plain, data, 3);
                cadre_dataset_release(data);
                cadre_dataset_release(plain);
            }
        }
    }
}

/* Saved, restored, skipped, stacked: always the same elements and ids. */
static void all_ways_of_reading_agree(void **state)
{
    (void)state;
    const int64_t buffers[] = {1, 5, 40, 500};
    for (size_t m = 0; m < sizeof makers / sizeof makers[0]; m++) {
        for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
            cadre_dataset *data = cadre_dataset_shuffle(makers[m](), buffers[b], 11, NULL);
            expect_consistent(data);
            cadre_dataset_release(data);
        }
    }
    cadre_dataset *data =
        cadre_dataset_batch(cadre_dataset_shuffle(mixed(), 20, 3, NULL), 7, false);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = cadre_dataset_shuffle(cadre_dataset_shuffle(triples(), 5, 3, NULL), 6, 4, NULL);
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* The way in which elements are kept changes nothing of their order. */
static void the_order_does_not_depend_on_the_elements(void **state)
{
    (void)state;
    static char orders[3][ELEMENTS_TEXT_BYTES];
    const struct pass pass = {.epoch = 2};
    cadre_dataset *inputs[] = {
        cadre_dataset_range(0, 20, 1), in_order_only(cadre_dataset_range(0, 20, 1)), large_rows()};
    for (int i = 0; i < 3; i++) {
        cadre_dataset *data = cadre_dataset_shuffle(inputs[i], 6, 77, NULL);
        size_t used = 0;
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        struct cadre_error error = {0};
        ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
        while (iterator_next(iterator, &element, NULL, &error) == CADRE_OK) {
            int64_t value = *(const int64_t *)cadre_tensor_const_data(element.tensors[0]);
            used += (size_t)snprintf(orders[i] + used, sizeof orders[i] - used, "%d ", (int)value);
            cadre_element_release(&element);
        }
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
    assert_string_equal(orders[0], orders[1]);
    assert_string_equal(orders[0], orders[2]);
}

static void epochs_and_seeds_give_other_orders(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        int64_t buffer = all == 1 ? CADRE_SHUFFLE_ALL : 30;
        struct numbers first;
        struct numbers again;
        cadre_dataset *data = cadre_dataset_shuffle(cadre_dataset_range(0, 60, 1), buffer, 1, NULL);
        cadre_dataset *other =
            cadre_dataset_shuffle(cadre_dataset_range(0, 60, 1), buffer, 2, NULL);
        cadre_dataset *once = cadre_dataset_shuffle(
            cadre_dataset_range(0, 60, 1), buffer, 1, &(cadre_shuffle_options){.once = true});
        read_epoch(data, 0, &first);
        read_epoch(data, 0, &again);
        assert_memory_equal(first.values, again.values, 60 * sizeof first.values[0]);
        read_epoch(data, 1, &again);
        assert_memory_not_equal(first.values, again.values, 60 * sizeof first.values[0]);
        read_epoch(other, 0, &again);
        assert_memory_not_equal(first.values, again.values, 60 * sizeof first.values[0]);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            read_epoch(once, epoch, &again);
            assert_memory_equal(first.values, again.values, 60 * sizeof first.values[0]);
        }
        expect_consistent(once);
        cadre_dataset_release(once);
        cadre_dataset_release(other);
        cadre_dataset_release(data);
    }
}

/* Of a buffer of b the first element comes from the first b, each of them equally often; and an
 * element is late by b on the average. */
static void draws_are_uniform(void **state)
{
    (void)state;
    enum { BUFFER = 8, EPOCHS = 4000, COUNT = 40 };
    uint32_t first[COUNT] = {0};
    double late = 0;
    cadre_dataset *data = cadre_dataset_shuffle(cadre_dataset_range(0, COUNT, 1), BUFFER, 5, NULL);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        struct numbers numbers;
        read_epoch(data, epoch, &numbers);
        assert_int_equal(numbers.count, COUNT);
        first[numbers.values[0]]++;
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(numbers.values[i] < (int64_t)i + BUFFER);
            late += numbers.values[i] == 15 ? (double)i - 15 : 0;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(first[i], i < BUFFER ? 400 : 0, i < BUFFER ? 600 : 0);
    }
    assert_true(late / EPOCHS > -0.6 && late / EPOCHS < 0.6);
    cadre_dataset_release(data);
}

static void buffers_beyond_memory_are_refused(void **state)
{
    (void)state;
    int64_t huge = INT64_C(1) << 44;
    expect_failure(cadre_dataset_shuffle(
                       cadre_dataset_repeat(cadre_dataset_range(0, 5, 1), CADRE_REPEAT_FOREVER),
                       huge, 1, NULL),
        CADRE_RESOURCE_EXHAUSTED, "shuffle: a buffer of 17592186044416 elements");
    expect_failure(cadre_dataset_shuffle(cadre_dataset_range(0, INT64_MAX, 1), INT64_MAX, 1, NULL),
        CADRE_RESOURCE_EXHAUSTED, "this machine's memory of");
    /* More than there is costs nothing. */
    cadre_dataset *data = cadre_dataset_shuffle(cadre_dataset_range(0, 5, 1), huge, 1, NULL);
    expect_consistent(data);
    cadre_dataset_release(data);
    data = cadre_dataset_shuffle(in_order_only(cadre_dataset_range(0, 5, 1)), huge, 1, NULL);
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* The number of elements is not known; the buffer stops growing while there is memory left. */
static void growing_buffers_stop_in_time(void **state)
{
    (void)state;
    cadre_tensor *tensor = NULL;
    const int64_t dims[] = {1, 1 << 23}; /* a row of 64 MiB, shared by all elements */
    assert_int_equal(cadre_tensor_create(CADRE_I64, 2, dims, &tensor), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    data = in_order_only(cadre_dataset_repeat(data, 1000));
    fault_arm("memory.left", 3);
    expect_failure(cadre_dataset_shuffle(data, 1000, 1, NULL), CADRE_RESOURCE_EXHAUSTED,
        "runs out with 3 of 1000 elements in the buffer");
    assert_true(fault_disarm());
}

static void positions_that_do_not_fit(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    for (size_t m = 0; m < sizeof makers / sizeof makers[0]; m++) {
        struct iterator_state_writer saved = {0};
        cadre_iterator *iterator = NULL;
        size_t got = 0;
        cadre_element element = {0};
        const struct pass pass = {0};
        cadre_dataset *data = cadre_dataset_shuffle(makers[m](), 6, 1, NULL);
        ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
        ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
        cadre_element_release(&element);
        ASSERT_OK(iterator_save(iterator, &saved, &error));
        cadre_iterator_release(iterator);
        /* Cut short anywhere, and every byte changed. */
        struct prng prng = {.state = m};
        for (size_t i = 0; i < saved.count; i += 1 + saved.count / 1500) {
            for (int way = 0; way < 2; way++) {
                struct iterator_state_reader reader = {
                    .bytes = saved.bytes, .count = way == 0 ? i : saved.count};
                uint8_t before = saved.bytes[i];
                saved.bytes[i] ^= way == 0 ? 0 : (uint8_t)(1 + prng_uniform(&prng, 255));
                ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
                cadre_status status = iterator_restore(iterator, &reader, &error);
                assert_true(way == 1 || status == CADRE_INVALID_ARGUMENT);
                for (int k = 0; status == CADRE_OK && k < 3 && m != 1; k++) {
                    status = iterator_next_rows(iterator, 4, &element, &got, NULL, &error);
                    cadre_element_release(&element);
                }
                cadre_iterator_release(iterator);
                saved.bytes[i] = before;
            }
        }
        iterator_state_writer_clear(&saved);
        cadre_dataset_release(data);
    }
}

/* Reads two epochs' beginnings of everything, and saves; for failing. */
static cadre_status read_some(cadre_dataset *data, struct cadre_error *error)
{
    struct iterator_state_writer saved = {0};
    cadre_iterator *iterator = NULL;
    const struct pass pass = {0};
    CADRE_TRY(dataset_iterate(data, &pass, &iterator, error));
    cadre_status status = CADRE_OK;
    for (int i = 0; i < 3 && status == CADRE_OK; i++) {
        cadre_element element = {0};
        struct id_list ids = {0};
        status = iterator_next(iterator, &element, &ids, error);
        cadre_element_release(&element);
        id_list_clear(&ids);
    }
    if (status == CADRE_OK) {
        status = iterator_save(iterator, &saved, error);
    }
    cadre_iterator_release(iterator);
    if (status == CADRE_OK) {
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        status = dataset_iterate(data, &pass, &iterator, error);
        if (status == CADRE_OK) {
            status = iterator_restore(iterator, &reader, error);
            cadre_iterator_release(iterator);
        }
    }
    iterator_state_writer_clear(&saved);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof makers / sizeof makers[0]; m++) {
        cadre_dataset *data = cadre_dataset_shuffle(makers[m](), 6, 1, NULL);
        data = m == 1 ? data : cadre_dataset_batch(data, 4, false);
        uint64_t failures = 0;
        for (uint64_t nth = 1;; nth++) {
            struct cadre_error error = {0};
            fault_arm("tensor.memory", nth);
            cadre_status status = read_some(data, &error);
            if (!fault_disarm()) {
                assert_int_equal(status, CADRE_OK);
                break;
            }
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
            failures++;
        }
        assert_true(failures > 5);
        cadre_dataset_release(data);
    }
}

static void slot_memory_is_used_again(void **state)
{
    (void)state;
    struct slab_allocator memory = {0};
    char *kept[200];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 200; i++) {
            size_t bytes = (i * 37) % 3000;
            kept[i] = slab_alloc(&memory, bytes);
            assert_non_null(kept[i]);
            assert_int_equal((uintptr_t)kept[i] % 16, 0);
            memset(kept[i], (int)i, bytes);
        }
        for (size_t i = 0; i < 200; i++) {
            size_t bytes = (i * 37) % 3000;
            for (size_t k = 0; k < bytes; k++) {
                assert_int_equal((uint8_t)kept[i][k], i);
            }
            slab_free(&memory, kept[i], bytes);
        }
    }
    void *last = slab_alloc(&memory, 100);
    slab_free(&memory, last, 100);
    assert_ptr_equal(slab_alloc(&memory, 112), last);
    slab_allocator_clear(&memory);
}

/* Nothing was given back twice. */
static void expect_blocks_of_their_own(size_t bytes)
{
    enum { BLOCKS = 200 };
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
        assert_non_null(blocks[i]);
        for (size_t k = 0; k < i; k++) {
            assert_ptr_not_equal(blocks[i], blocks[k]);
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        tensor_memory_give(TENSOR_MEMORY_HOST, blocks[i], bytes);
    }
}

/* What was held when memory ran out is given back once. */
static void memory_that_runs_out_while_it_fills(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20, ELEMENTS = 200 };
    static char text[BYTES];
    const cadre_string string = {.bytes = text, .size = BYTES};
    const int64_t dims[] = {BYTES};
    for (int strings = 0; strings < 2; strings++) {
        cadre_tensor *tensor = NULL;
        struct cadre_error error = {0};
        ASSERT_OK(strings == 1 ? tensor_from_data(CADRE_STRING, 0, NULL, &string, &tensor, &error)
                               : tensor_from_data(CADRE_U8, 1, dims, text, &tensor, &error));
        cadre_dataset *data = cadre_dataset_repeat(cadre_dataset_tensors(&tensor, 1), ELEMENTS);
        data = cadre_dataset_shuffle(data, ELEMENTS, 1, NULL);
        for (uint64_t nth = 1; nth <= 2; nth++) {
            cadre_element element = {0};
            cadre_iterator *iterator = NULL;
            ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &iterator, &error));
            fault_arm("memory.left", nth);
            assert_int_equal(
                iterator_next(iterator, &element, NULL, &error), CADRE_RESOURCE_EXHAUSTED);
            assert_true(fault_disarm());
            assert_non_null(strstr(error.text, "of 200 elements in the buffer"));
            cadre_iterator_release(iterator);
            expect_blocks_of_their_own(BYTES);
        }
        cadre_dataset_release(data);
        cadre_tensor_release(tensor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_comes_once),
        cmocka_unit_test(memory_that_runs_out_while_it_fills),
        cmocka_unit_test(all_ways_of_reading_agree),
        cmocka_unit_test(the_order_does_not_depend_on_the_elements),
        cmocka_unit_test(epochs_and_seeds_give_other_orders),
        cmocka_unit_test(draws_are_uniform),
        cmocka_unit_test(buffers_beyond_memory_are_refused),
        cmocka_unit_test(growing_buffers_stop_in_time),
        cmocka_unit_test(positions_that_do_not_fit),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(slot_memory_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
