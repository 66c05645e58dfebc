/* SPDX-License-Identifier: Apache-2.0
 * Positions of shuffles whose buffers hold more than is saved at once: from each, another iterator
 * gives the same rest, to the last element and sample. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"
#include "worker/library/input/node/iterator_state.h"

#define ELEMENTS 1100

/* Numbers that are held as rows, in blocks that were read together. */
static cadre_dataset *numbers(void)
{
    return cadre_dataset_range(0, ELEMENTS, 1);
}

/* Elements of three samples each. */
static cadre_dataset *triples(void)
{
    return cadre_dataset_batch(cadre_dataset_range(0, 3 * ELEMENTS, 1), 3, true);
}

/* The rest of an iterator: the first number of each element, and the ids of its samples. */
struct rest {
    int64_t numbers[ELEMENTS];
    uint64_t ids[3 * ELEMENTS];
    size_t count;
    size_t id_count;
};

static void read_on(cadre_iterator *iterator, size_t most, struct rest *rest)
{
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    *rest = (struct rest){.count = 0};
    while (rest->count < most) {
        cadre_element element = {0};
        struct id_list ids = {0};
        status = iterator_next(iterator, &element, &ids, &error);
        if (status == CADRE_OUT_OF_RANGE) {
            break;
        }
        ASSERT_OK(status);
        assert_true(rest->count < ELEMENTS && rest->id_count + ids.count <= 3 * ELEMENTS);
        rest->numbers[rest->count++] =
            *(const int64_t *)cadre_tensor_const_data(element.tensors[0]);
        for (size_t i = 0; i < ids.count; i++) {
            rest->ids[rest->id_count++] = ids.ids[i];
        }
        id_list_clear(&ids);
        cadre_element_release(&element);
    }
}

/* Saves after so many elements, and compares both rests. */
static void goes_on_the_same(cadre_dataset *data, size_t after)
{
    static struct rest rest;
    static struct rest other;
    struct cadre_error error = {0};
    struct iterator_state_writer saved = {0};
    cadre_iterator *iterator = NULL;
    const struct pass pass = {.epoch = 1};
    ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
    read_on(iterator, after, &rest);
    assert_int_equal(rest.count, after);
    ASSERT_OK(iterator_save(iterator, &saved, &error));
    read_on(iterator, ELEMENTS, &rest);
    assert_int_equal(rest.count, ELEMENTS - after);
    cadre_iterator_release(iterator);
    struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
    ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
    ASSERT_OK(iterator_restore(iterator, &reader, &error));
    read_on(iterator, ELEMENTS, &other);
    cadre_iterator_release(iterator);
    iterator_state_writer_clear(&saved);
    assert_int_equal(other.count, rest.count);
    assert_int_equal(other.id_count, rest.id_count);
    assert_memory_equal(other.numbers, rest.numbers, rest.count * sizeof rest.numbers[0]);
    assert_memory_equal(other.ids, rest.ids, rest.id_count * sizeof rest.ids[0]);
}

/* Less than a piece, a piece, and some; while it fills, is full, and empties. */
static void every_piece_comes_back(void **state)
{
    (void)state;
    cadre_dataset *(*const makers[])(void) = {numbers, triples};
    const int64_t buffers[] = {255, 256, 257, 511, 512, 513, 1000, ELEMENTS};
    for (size_t m = 0; m < 2; m++) {
        for (size_t b = 0; b < sizeof buffers / sizeof buffers[0]; b++) {
            cadre_dataset *data = cadre_dataset_shuffle(makers[m](), buffers[b], 11, NULL);
            const size_t held = (size_t)buffers[b];
            const size_t points[] = {1, 100, ELEMENTS - held, ELEMENTS - 513, ELEMENTS - 512,
                ELEMENTS - 257, ELEMENTS - 256, ELEMENTS - 255, ELEMENTS - 1};
            for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
                goes_on_the_same(data, points[i]);
            }
            cadre_dataset_release(data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_piece_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
