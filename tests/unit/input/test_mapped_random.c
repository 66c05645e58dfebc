/* SPDX-License-Identifier: Apache-2.0
 * Random numbers of map functions: those of the sample and the epoch, however the map is read. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/program.h"
#include "cadre/random.h"
#include "tests/unit/input/reading.h"

enum { SAMPLES = 23, DRAWS = 1000000 };

static int64_t drawn(uint64_t epoch, int64_t sample)
{
    cadre_random random;
    assert_int_equal(cadre_random_for_sample(7, "map", epoch, (uint64_t)sample, &random), CADRE_OK);
    return sample * DRAWS + (int64_t)cadre_random_below(&random, DRAWS);
}

/* Each number of an element, which is its sample's, and behind it what is drawn for its row. */
static cadre_status draw(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const cadre_tensor *numbers = in->tensors[0];
    CADRE_TRY(cadre_tensor_create(
        CADRE_I64, cadre_tensor_rank(numbers), cadre_tensor_dims(numbers), &ret_out->tensors[0]));
    ret_out->count = 1;
    int64_t *to = cadre_tensor_data(ret_out->tensors[0]);
    for (int64_t row = 0; row < cadre_tensor_count(numbers); row++) {
        cadre_random random;
        CADRE_TRY(cadre_random_for_element(7, "map", (uint64_t)row, &random));
        to[row] = ((const int64_t *)cadre_tensor_const_data(numbers))[row] * DRAWS +
                  (int64_t)cadre_random_below(&random, DRAWS);
    }
    return CADRE_OK;
}

static cadre_dataset *mapped(cadre_dataset *data, int32_t parallel)
{
    return cadre_dataset_map(data, draw, NULL, &(cadre_map_options){.parallel = parallel});
}

static cadre_dataset *samples(void)
{
    return cadre_dataset_range(0, SAMPLES, 1);
}

static cadre_status is_odd(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) % 2 == 1;
    return CADRE_OK;
}

/* All that a pipeline gives in two epochs is what is drawn for its samples. Consumes `data`. */
static void check(cadre_dataset *data, size_t count)
{
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        struct numbers numbers;
        read_epoch(data, epoch, &numbers);
        assert_int_equal(numbers.count, count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(numbers.values[i], drawn(epoch, numbers.values[i] / DRAWS));
        }
    }
    cadre_dataset_release(data);
}

static void each_sample_has_its_own(void **state)
{
    (void)state;
    assert_true(drawn(0, 3) != drawn(1, 3));
    for (int32_t parallel = 0; parallel <= 4; parallel += 4) {
        check(mapped(samples(), parallel), SAMPLES);
        check(mapped(make_sequential(samples()), parallel), SAMPLES);
        check(mapped(cadre_dataset_shuffle(samples(), CADRE_SHUFFLE_ALL, 5, NULL), parallel),
            SAMPLES);
        check(mapped(cadre_dataset_shuffle(samples(), 6, 5, NULL), parallel), SAMPLES);
        check(mapped(cadre_dataset_batch(samples(), 5, false), parallel), SAMPLES);
        check(mapped(cadre_dataset_batch(make_sequential(samples()), 5, false), parallel), SAMPLES);
        check(cadre_dataset_batch(mapped(samples(), parallel), 5, false), SAMPLES);
        check(cadre_dataset_prefetch(mapped(samples(), parallel), 3), SAMPLES);
        check(mapped(cadre_dataset_filter(samples(), is_odd, NULL), parallel), SAMPLES / 2);
        check(mapped(cadre_dataset_skip(samples(), 4), parallel), SAMPLES - 4);
        check(mapped(cadre_dataset_cache(samples(), NULL), parallel), SAMPLES);
    }
}

/* Batches are the same at any number of workers and replicas; compared as text. */
static void it_does_not_matter_who_reads(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        for (uint32_t workers = 1; workers <= 3; workers++) {
            cadre_dataset *data = sequential ? make_sequential(samples()) : samples();
            data = cadre_dataset_batch(mapped(data, 0), 12, false);
            for (uint64_t step = 0; step < 2; step++) {
                char text[2048];
                step_text(data, workers, 2, CADRE_SHARD_DATA, 1, step, text, sizeof text);
                int64_t seen = 0;
                for (char *at = text; *at != '\0';) {
                    if (*at >= '0' && *at <= '9') {
                        int64_t value = strtoll(at, &at, 10);
                        assert_int_equal(value, drawn(1, value / DRAWS));
                        seen++;
                    } else {
                        at++;
                    }
                }
                assert_int_equal(seen, step == 0 ? 12 : SAMPLES - 12);
            }
            cadre_dataset_release(data);
        }
    }
}

static void repeat_stands_behind_it(void **state)
{
    (void)state;
    struct numbers numbers;
    cadre_dataset *data = cadre_dataset_repeat(mapped(samples(), 0), 2);
    read_epoch(data, 0, &numbers);
    cadre_dataset_release(data);
    assert_int_equal(numbers.count, 2 * SAMPLES);
    for (size_t i = 0; i < numbers.count; i++) {
        assert_int_equal(numbers.values[i], drawn(i / SAMPLES, (int64_t)(i % SAMPLES)));
    }
    for (int parallel = 0; parallel <= 2; parallel += 2) {
        cadre_iterator *iterator;
        cadre_element element;
        data = cadre_dataset_batch(cadre_dataset_repeat(samples(), 2), 4, false);
        data = mapped(data, parallel);
        assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_FAILED_PRECONDITION);
        assert_non_null(strstr(cadre_error_message(), "put the map before repeat"));
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
    check(mapped(cadre_dataset_repeat(samples(), 1), 0), SAMPLES);
}

/* Rows that no sample belongs to have streams of their own, too. */
static cadre_status draw_many(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)in;
    (void)user;
    const int64_t rows = 4;
    int64_t values[4];
    for (int64_t row = 0; row < rows; row++) {
        cadre_random random;
        CADRE_TRY(cadre_random_for_element(7, NULL, (uint64_t)row, &random));
        values[row] = (int64_t)cadre_random_below(&random, INT64_MAX);
    }
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_I64, 1, &rows, values, &ret_out->tensors[0]);
}

static void more_rows_than_samples_are_apart(void **state)
{
    (void)state;
    struct numbers numbers;
    cadre_dataset *data = cadre_dataset_map(samples(), draw_many, NULL, NULL);
    read_epoch(data, 0, &numbers);
    assert_int_equal(numbers.count, 4 * SAMPLES);
    for (size_t i = 0; i < numbers.count; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_true(numbers.values[i] != numbers.values[k]);
        }
    }
    cadre_dataset_release(data);
}

static cadre_status read_another(const cadre_element *in, cadre_element *ret_out, void *user)
{
    struct numbers numbers;
    read_epoch(user, 3, &numbers);
    return draw(in, ret_out, NULL);
}

static void a_map_that_reads_another_one_keeps_its_own(void **state)
{
    (void)state;
    cadre_dataset *inner = mapped(cadre_dataset_range(0, 2, 1), 0);
    check(cadre_dataset_map(samples(), read_another, inner, NULL), SAMPLES);
    cadre_dataset_release(inner);
}

static void elsewhere_there_is_no_element(void **state)
{
    (void)state;
    cadre_random random;
    assert_int_equal(cadre_random_for_element(1, "x", 0, &random), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "call it from a map function"));
    assert_int_equal(cadre_random_for_element(1, "x", 0, NULL), CADRE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_has_its_own),
        cmocka_unit_test(it_does_not_matter_who_reads),
        cmocka_unit_test(repeat_stands_behind_it),
        cmocka_unit_test(more_rows_than_samples_are_apart),
        cmocka_unit_test(a_map_that_reads_another_one_keeps_its_own),
        cmocka_unit_test(elsewhere_there_is_no_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
