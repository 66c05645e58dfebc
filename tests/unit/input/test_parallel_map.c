/* SPDX-License-Identifier: Apache-2.0
 * Maps with several calls at a time: order, bounds, failures at their place, positions. */
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"
#include "worker/library/input/node/thread_pool.h"

static int64_t value_of(const cadre_element *in)
{
    return *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
}

static cadre_status square(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t value = value_of(in);
    ret_out->count = 1;
    return cadre_tensor_from_i64(value * value, &ret_out->tensors[0]);
}

static cadre_dataset *squares(int64_t count, int32_t parallel, bool unordered)
{
    const cadre_map_options options = {.parallel = parallel, .unordered = unordered};
    return cadre_dataset_map(cadre_dataset_range(0, count, 1), square, NULL, &options);
}

static const struct pass ordered = {.ordered = true};

static void results_come_in_order(void **state)
{
    (void)state;
    char expected[4096] = "";
    size_t used = 0;
    for (int i = 0; i < 300; i++) {
        used += (size_t)snprintf(
            expected + used, sizeof expected - used, "%s%d", i > 0 ? " " : "", i * i);
    }
    expect_elements(squares(300, 4, false), expected);
    expect_elements(squares(300, CADRE_PARALLEL_AUTO, false), expected);
    cadre_dataset *data = squares(300, 8, true);
    assert_string_equal(elements_text(data, &ordered, SIZE_MAX), expected);
    cadre_dataset_release(data);
    expect_elements(cadre_dataset_with_options(
                        squares(300, 8, true), &(cadre_dataset_options){.deterministic = true}),
        expected);
    expect_elements(squares(0, 4, false), "");
}

static void states_and_positions(void **state)
{
    (void)state;
    cadre_dataset *data = squares(23, 3, false);
    expect_consistent(data);
    cadre_dataset_release(data);
    data =
        cadre_dataset_map(squares(23, 3, true), square, NULL, &(cadre_map_options){.parallel = 2});
    expect_consistent(data);
    cadre_dataset_release(data);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Saved where they stand after `at`, and gone on with: all elements, each once, in some order. */
static void unordered_ones_are_all_there(void **state)
{
    (void)state;
    cadre_dataset *data = squares(40, 4, true);
    for (size_t at = 0; at <= 40; at += 5) {
        struct cadre_error error = {0};
        struct iterator_state_writer saved = {0};
        struct numbers numbers = {.count = 0};
        cadre_element element = {0};
        cadre_iterator *first = NULL;
        cadre_iterator *second = NULL;
        ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &first, &error));
        ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &second, &error));
        for (size_t i = 0; i < at; i++) {
            ASSERT_OK(iterator_next(first, &element, NULL, &error));
            numbers_add(&numbers, element.tensors[0]);
            cadre_element_release(&element);
        }
        ASSERT_OK(iterator_save(first, &saved, &error));
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        ASSERT_OK(iterator_restore(second, &reader, &error));
        while (iterator_next(second, &element, NULL, &error) == CADRE_OK) {
            numbers_add(&numbers, element.tensors[0]);
            cadre_element_release(&element);
        }
        assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
        assert_int_equal(numbers.count, 40);
        qsort(numbers.values, 40, sizeof numbers.values[0], compare);
        for (int64_t i = 0; i < 40; i++) {
            assert_int_equal(numbers.values[i], i * i);
        }
        cadre_iterator_release(first);
        cadre_iterator_release(second);
        iterator_state_writer_clear(&saved);
    }
    cadre_dataset_release(data);
}

/* Element 0 waits for others; counts calls and how many there are at a time. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t started;
    int64_t done;
    int64_t given;
    int64_t ahead_most;
    int64_t running;
    int64_t running_most;
    bool waits_for_done;  /* of two others */
    bool waits_for_given; /* of one other */
    int64_t fails_from;
};

static cadre_status through_gate(const cadre_element *in, cadre_element *ret_out, void *user)
{
    struct gate *gate = user;
    int64_t value = value_of(in);
    pthread_mutex_lock(&gate->lock);
    gate->started++;
    gate->running++;
    int64_t ahead = gate->started - gate->given;
    gate->ahead_most = ahead > gate->ahead_most ? ahead : gate->ahead_most;
    gate->running_most = gate->running > gate->running_most ? gate->running : gate->running_most;
    while (value == 0 && ((gate->waits_for_done && gate->done < 2) ||
                             (gate->waits_for_given && gate->given < 1))) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    gate->done++;
    gate->running--;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    if (value >= gate->fails_from) {
        return CADRE_OUT_OF_RANGE;
    }
    return square(in, ret_out, NULL);
}

static void gate_init(struct gate *gate)
{
    *gate = (struct gate){.fails_from = INT64_MAX};
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

static void gate_finish(struct gate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
}

static void give(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->given++;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static const cadre_element_spec one_number = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};

static void a_slow_one_holds_up_only_an_ordered_pass(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    const cadre_map_options options = {.output = &one_number, .parallel = 2, .unordered = true};
    cadre_dataset *data =
        cadre_dataset_map(cadre_dataset_range(0, 4, 1), through_gate, &gate, &options);
    gate.waits_for_done = true;
    assert_string_equal(elements_text(data, &ordered, 1), "0");
    gate.waits_for_done = false;
    gate.waits_for_given = true;
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &iterator, &error));
    ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
    assert_int_not_equal(value_of(&element), 0);
    cadre_element_release(&element);
    give(&gate);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    gate_finish(&gate);
}

static void what_is_in_flight_is_bounded(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(0, 100, 1), through_gate, &gate,
        &(cadre_map_options){.output = &one_number, .parallel = 3});
    ASSERT_OK(dataset_iterate(data, &ordered, &iterator, &error));
    assert_int_equal(gate.started, 0);
    for (int i = 0; i < 100; i++) {
        cadre_element element = {0};
        ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
        cadre_element_release(&element);
        give(&gate);
    }
    cadre_iterator_release(iterator);
    assert_int_equal(gate.started, 100);
    assert_true(gate.ahead_most <= 2 * 3 + 1); /* one is on its way out */
    assert_true(gate.running_most <= 3);
    cadre_dataset_release(data);
    gate_finish(&gate);
}

/* Freed after each number of elements; what was not given is dropped. */
static void iterators_may_be_left(void **state)
{
    (void)state;
    for (size_t most = 0; most < 12; most++) {
        cadre_dataset *data = squares(10, 4, most % 2 == 1);
        elements_text(data, &(struct pass){0}, most);
        cadre_dataset_release(data);
    }
}

static void a_failure_comes_after_those_before_it(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    gate.fails_from = 5;
    const cadre_map_options options = {.output = &one_number, .parallel = 4};
    cadre_dataset *data =
        cadre_dataset_map(cadre_dataset_range(0, 100, 1), through_gate, &gate, &options);
    for (int round = 0; round < 50; round++) {
        const char *text = elements_text(data, &(struct pass){0}, SIZE_MAX);
        const char *wanted =
            "0 1 4 9 16!UNKNOWN sample 5 (from 0): map: the function failed with OUT_OF_RANGE";
        assert_memory_equal(text, wanted, strlen(wanted));
    }
    cadre_dataset_release(data);

    /* The same when it was in flight as the position was saved. */
    const cadre_map_options unordered = {.output = &one_number, .parallel = 4, .unordered = true};
    data = cadre_dataset_map(cadre_dataset_range(4, 7, 1), through_gate, &gate, &unordered);
    struct cadre_error error = {0};
    struct iterator_state_writer saved = {0};
    cadre_element element = {0};
    cadre_iterator *first = NULL;
    cadre_iterator *second = NULL;
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &first, &error));
    ASSERT_OK(iterator_next(first, &element, NULL, &error));
    cadre_element_release(&element);
    ASSERT_OK(iterator_save(first, &saved, &error));
    struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &second, &error));
    ASSERT_OK(iterator_restore(second, &reader, &error));
    assert_int_equal(iterator_next(second, &element, NULL, &error), CADRE_UNKNOWN);
    assert_non_null(strstr(error.text, "the function failed with OUT_OF_RANGE"));
    assert_int_equal(iterator_next(second, &element, NULL, &error), CADRE_UNKNOWN);
    cadre_iterator_release(first);
    cadre_iterator_release(second);
    iterator_state_writer_clear(&saved);
    cadre_dataset_release(data);
    gate_finish(&gate);
}

/* Of several elements that fail the first one's error is returned. */
static void by_index_the_first_failure_is_reported(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    gate.fails_from = 3;
    cadre_dataset *data =
        cadre_dataset_batch(cadre_dataset_map(cadre_dataset_range(0, 64, 1), through_gate, &gate,
                                &(cadre_map_options){.output = &one_number, .parallel = 4}),
            64, false);
    struct cadre_error error = {0};
    cadre_element element = {0};
    for (int round = 0; round < 50; round++) {
        assert_int_equal(
            dataset_at(data, (struct element_position){0}, &element, NULL, &error), CADRE_UNKNOWN);
        assert_int_equal(element.count, 0);
    }
    assert_true(gate.running_most <= 4);
    cadre_dataset_release(data);
    gate_finish(&gate);
}

/* Element 1 waits until two others were called: the first batch too is made by several calls. */
static void the_first_batch_by_index_is_parallel(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    gate.waits_for_done = true;
    cadre_dataset *data =
        cadre_dataset_batch(cadre_dataset_map(cadre_dataset_range(-1, 9, 1), through_gate, &gate,
                                &(cadre_map_options){.output = &one_number, .parallel = 4}),
            10, false);
    struct cadre_error error = {0};
    struct id_list ids = {0};
    cadre_element element = {0};
    ASSERT_OK(dataset_at(data, (struct element_position){0}, &element, &ids, &error));
    assert_int_equal(gate.started, 10); /* none of them twice */
    assert_int_equal(cadre_tensor_rows(element.tensors[0]), 10);
    const int64_t *values = cadre_tensor_const_data(element.tensors[0]);
    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(values[i], (i - 1) * (i - 1));
        assert_int_equal(ids.ids[i], i);
    }
    cadre_element_release(&element);
    id_list_clear(&ids);
    cadre_dataset_release(data);
    gate_finish(&gate);
}

static void *gather_often(void *argument)
{
    cadre_dataset *data = argument;
    for (uint64_t round = 0; round < 100; round++) {
        struct cadre_error error = {0};
        struct element_position positions[8];
        cadre_element rows = {0};
        struct id_list ids = {0};
        for (uint64_t i = 0; i < 8; i++) {
            positions[i].index = (round * 7 + i * 3) % 100;
            positions[i].epoch = 0;
        }
        if (dataset_gather(data, positions, 8, &rows, &ids, &error) != CADRE_OK) {
            return "failed";
        }
        const int64_t *values = cadre_tensor_const_data(rows.tensors[0]);
        for (uint64_t i = 0; i < 8; i++) {
            uint64_t expected = (round * 7 + i * 3) % 100;
            if (values[i] != (int64_t)(expected * expected) || ids.ids[i] != expected) {
                return "wrong";
            }
        }
        cadre_element_release(&rows);
        id_list_clear(&ids);
    }
    return NULL;
}

static void several_may_gather(void **state)
{
    (void)state;
    cadre_dataset *data = squares(100, 3, false);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, gather_often, data), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    cadre_dataset_release(data);
}

static void threads_that_cannot_be_had(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        cadre_dataset *data = squares(5, 3, false);
        fault_arm("thread.create", nth);
        const char *text = elements_text(data, &(struct pass){0}, SIZE_MAX);
        bool met = fault_disarm();
        /* The first is needed; with some the others do without. */
        if (nth == 1) {
            assert_non_null(strstr(text, "!UNAVAILABLE map: cannot start a thread"));
        } else {
            assert_string_equal(text, "0 1 4 9 16");
        }
        cadre_dataset_release(data);
        if (!met) {
            assert_int_equal(nth, 4);
            break;
        }
    }
}

static void wrong_numbers_are_refused(void **state)
{
    (void)state;
    expect_failure(squares(5, -2, false), CADRE_INVALID_ARGUMENT, "map: parallel -2");
    expect_failure(squares(5, 1025, false), CADRE_INVALID_ARGUMENT, "map: parallel 1025");
    assert_true(thread_pool_processors() >= 1);
}

static void add_to(void *user, size_t i)
{
    atomic_fetch_add((atomic_size_t *)user + i % 10, i);
}

static void a_pool_calls_once_for_each(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct thread_pool *pool = NULL;
    atomic_size_t sums[10] = {0};
    ASSERT_OK(thread_pool_create(3, &pool, &error));
    thread_pool_run(pool, 1000, add_to, sums);
    thread_pool_run(NULL, 1000, add_to, sums);
    thread_pool_run(pool, 0, add_to, sums);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(atomic_load(&sums[i]), 2 * (49500 + 100 * i));
    }
    thread_pool_free(pool);
    thread_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_in_order),
        cmocka_unit_test(states_and_positions),
        cmocka_unit_test(unordered_ones_are_all_there),
        cmocka_unit_test(a_slow_one_holds_up_only_an_ordered_pass),
        cmocka_unit_test(what_is_in_flight_is_bounded),
        cmocka_unit_test(iterators_may_be_left),
        cmocka_unit_test(a_failure_comes_after_those_before_it),
        cmocka_unit_test(by_index_the_first_failure_is_reported),
        cmocka_unit_test(the_first_batch_by_index_is_parallel),
        cmocka_unit_test(several_may_gather),
        cmocka_unit_test(threads_that_cannot_be_had),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(a_pool_calls_once_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
