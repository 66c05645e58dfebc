/* SPDX-License-Identifier: Apache-2.0
 * flat_map and interleave: the order of tf.data, positions, with threads and without. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/inner_datasets.h"
#include "tests/unit/input/reading.h"

#define SIMULATED_BYTES 4096

static const struct pass in_order = {.ordered = true};

static cadre_status six_times(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    *ret_data = cadre_dataset_repeat(range(value_of(in), value_of(in) + 1), 6);
    return CADRE_OK;
}

static cadre_status rows_of(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    *ret_data = cadre_dataset_tensor_slices(in->tensors, 1);
    return CADRE_OK;
}

/* --- the order --- */

static void documented_examples(void **state)
{
    static const int64_t values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    cadre_tensor *tensor = NULL;
    (void)state;
    assert_int_equal(
        cadre_tensor_from_data(CADRE_I64, 2, (const int64_t[]){3, 3}, values, &tensor), CADRE_OK);
    cadre_dataset *data =
        cadre_dataset_flat_map(cadre_dataset_tensor_slices(&tensor, 1), rows_of, NULL);
    cadre_tensor_release(tensor);
    expect_consistent(data);
    expect_elements(data, "1 2 3 4 5 6 7 8 9");
    for (int32_t parallel = CADRE_PARALLEL_AUTO; parallel < 4; parallel++) {
        expect_elements(
            cadre_dataset_interleave(range(1, 6), six_times, NULL, turns(2, 4, parallel)),
            "1 1 1 1 2 2 2 2 1 1 2 2 3 3 3 3 4 4 4 4 3 3 4 4 5 5 5 5 5 5");
        expect_elements(
            cadre_dataset_interleave(range(1, 4), six_times, NULL, turns(1, 1, parallel)),
            "1 1 1 1 1 1 2 2 2 2 2 2 3 3 3 3 3 3");
    }
    expect_elements(cadre_dataset_interleave(range(1, 4), six_times, NULL, NULL),
        "1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3");
}

/* What interleave must give, by the plainest means: what each place of the cycle holds. */
static const char *simulate(
    const struct inner *inner, int64_t inputs, int64_t cycle, int64_t block, char *text)
{
    int64_t held[INNER_MAX]; /* input element, or -1 */
    int64_t given[INNER_MAX] = {0};
    int64_t taken = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < cycle; i++) {
        held[i] = -1;
    }
    for (int64_t turn = 0, idle = 0; idle <= cycle; turn = (turn + 1) % cycle) {
        if (held[turn] < 0 && taken < inputs) {
            held[turn] = taken++;
            given[turn] = 0;
        }
        idle = held[turn] < 0 ? idle + 1 : 0;
        for (int64_t i = 0; i < block && held[turn] >= 0; i++) {
            if (given[turn] == inner->lengths[held[turn]]) {
                held[turn] = -1;
                break;
            }
            used += (size_t)snprintf(text + used, SIMULATED_BYTES - used, "%s%lld",
                used > 0 ? " " : "", (long long)(100 * held[turn] + given[turn]));
            given[turn]++;
        }
    }
    return text;
}

static struct inner random_inner(struct prng *prng, int64_t inputs, bool sequential)
{
    struct inner inner = {.sequential = sequential};
    for (int64_t i = 0; i < inputs; i++) {
        inner.lengths[i] = prng_chance(prng, 1, 4) ? 0 : (int64_t)prng_uniform(prng, 9);
    }
    return inner;
}

static void random_orders(void **state)
{
    static char text[SIMULATED_BYTES];
    struct prng prng = {20};
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t inputs = (int64_t)prng_uniform(&prng, 12);
        int64_t cycle = 1 + (int64_t)prng_uniform(&prng, 6);
        int64_t block = 1 + (int64_t)prng_uniform(&prng, 4);
        struct inner inner = random_inner(&prng, inputs, false);
        simulate(&inner, inputs, cycle, block, text);
        for (int32_t parallel = 0; parallel < 4; parallel++) {
            expect_elements(cadre_dataset_interleave(range(0, inputs), make_inner, &inner,
                                turns(cycle, block, parallel)),
                text);
        }
        if (cycle == 1) {
            expect_elements(cadre_dataset_flat_map(range(0, inputs), make_inner, &inner), text);
        }
    }
}

static void long_cycles(void **state)
{
    struct inner inner = {.lengths = {2, 0, 3}};
    (void)state;
    for (int32_t parallel = 0; parallel < 3; parallel++) {
        expect_elements(cadre_dataset_interleave(
                            range(0, 3), make_inner, &inner, turns(INT64_MAX, INT64_MAX, parallel)),
            "0 1 200 201 202");
        expect_elements(cadre_dataset_interleave(
                            range(0, 3), make_inner, &inner, turns(INT64_MAX, 1, parallel)),
            "0 200 1 201 202");
        expect_elements(
            cadre_dataset_interleave(range(0, 0), make_inner, &inner, turns(4, 1, parallel)), "");
    }
}

/* --- any way of reading, and positions --- */

static void any_way_of_reading(void **state)
{
    struct prng prng = {8};
    (void)state;
    for (int round = 0; round < 12; round++) {
        int64_t inputs = 1 + (int64_t)prng_uniform(&prng, 5);
        int64_t cycle = 1 + (int64_t)prng_uniform(&prng, 4);
        int64_t block = 1 + (int64_t)prng_uniform(&prng, 3);
        struct inner inner = random_inner(&prng, inputs, round % 2 == 0);
        cadre_dataset *outer = cadre_dataset_shuffle(range(0, inputs), 2, 1, NULL);
        cadre_dataset *data = NULL;
        for (int32_t parallel = 0; parallel < 3; parallel++) {
            data = cadre_dataset_interleave(
                cadre_dataset_retain(outer), make_inner, &inner, turns(cycle, block, parallel));
            assert_false(data->indexable);
            assert_int_equal(dataset_samples(data), 0);
            expect_consistent(data);
            cadre_dataset_release(data);
        }
        data = cadre_dataset_flat_map(outer, make_inner, &inner);
        expect_consistent(data);
        cadre_dataset_release(data);
    }
}

static cadre_status nest(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    int64_t value = value_of(in) % INNER_MAX;
    *ret_data = cadre_dataset_flat_map(range(value, value + 2), make_inner, user);
    return CADRE_OK;
}

static void nested_in_each_other(void **state)
{
    struct inner inner = {.lengths = {2, 1, 3, 0, 2}};
    (void)state;
    cadre_dataset *data = cadre_dataset_interleave(range(0, 4), nest, &inner, turns(2, 1, 0));
    expect_consistent(data);
    expect_elements(data, "0 100 1 200 100 201 202 200 201 400 202 401");
    cadre_dataset *twice = cadre_dataset_flat_map(
        cadre_dataset_flat_map(range(0, 3), make_inner, &inner), nest, &inner);
    expect_consistent(twice); /* its ids do not fit, and are hashed */
    cadre_dataset_release(twice);
}

static cadre_status fails_at(const cadre_element *in, cadre_element *ret_out, void *user)
{
    return value_of(in) == *(const int64_t *)user ? CADRE_ABORTED : copy_element(in, ret_out, NULL);
}

/* With threads and without, the same elements come before the failure of an input element: those of
 * the places before the one that it would have taken. */
static void inputs_that_fail_in_the_first_turn(void **state)
{
    (void)state;
    for (int64_t at = 0; at < 5; at++) {
        for (int64_t cycle = 1; cycle < 6; cycle++) {
            char expected[SIMULATED_BYTES] = "";
            for (int32_t parallel = 0; parallel < 4; parallel++) {
                cadre_dataset *data = cadre_dataset_map(range(0, 8), fails_at, &at, NULL);
                data = cadre_dataset_interleave(data, six_times, NULL, turns(cycle, 2, parallel));
                const char *text = elements_text(data, &in_order, SIZE_MAX);
                assert_non_null(strstr(text, "!ABORTED"));
                if (parallel == 0) {
                    snprintf(expected, sizeof expected, "%s", text);
                }
                assert_string_equal(text, expected);
                cadre_dataset_release(data);
            }
        }
    }
}

static void epochs(void **state)
{
    struct inner inner = {.lengths = {8, 8, 8}, .sequential = true};
    const struct pass second = {.epoch = 1, .ordered = true};
    (void)state;
    cadre_dataset *plain =
        cadre_dataset_interleave(range(0, 3), make_inner, &inner, turns(2, 3, 0));
    cadre_dataset *parallel =
        cadre_dataset_interleave(range(0, 3), make_inner, &inner, turns(2, 3, 2));
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        const struct pass pass = {.epoch = epoch, .ordered = true};
        assert_string_equal(
            elements_text(plain, &pass, SIZE_MAX), elements_text(parallel, &pass, SIZE_MAX));
        assert_string_equal(
            elements_text(plain, &pass, SIZE_MAX), elements_text(plain, &pass, SIZE_MAX));
    }
    assert_string_not_equal(
        elements_text(plain, &in_order, SIZE_MAX), elements_text(plain, &second, SIZE_MAX));
    cadre_dataset_release(plain);
    cadre_dataset_release(parallel);
}

/* --- threads --- */

static void freed_in_the_middle(void **state)
{
    struct inner inner = {.lengths = {40, 3, 0, 17, 60, 5, 5, 80}};
    (void)state;
    for (int32_t parallel = 0; parallel < 5; parallel++) {
        cadre_dataset *data =
            cadre_dataset_interleave(range(0, 8), make_inner, &inner, turns(3, 2, parallel));
        for (size_t most = 0; most < 60; most += 7) {
            elements_text(data, &in_order, most);
        }
        cadre_dataset_release(data);
    }
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void unordered_gives_the_same_set(void **state)
{
    struct prng prng = {4};
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct numbers sorted;
        struct numbers plain;
        int64_t inputs = 1 + (int64_t)prng_uniform(&prng, 10);
        struct inner inner = random_inner(&prng, inputs, false);
        cadre_interleave_options options = *turns(1 + (int64_t)prng_uniform(&prng, 5), 2, 3);
        options.unordered = true;
        cadre_dataset *data =
            cadre_dataset_interleave(range(0, inputs), make_inner, &inner, &options);
        cadre_dataset *same = cadre_dataset_interleave(
            range(0, inputs), make_inner, &inner, turns(options.cycle_length, 2, 0));
        read_epoch(data, 0, &sorted);
        read_epoch(same, 0, &plain);
        qsort(sorted.values, sorted.count, sizeof sorted.values[0], compare);
        qsort(plain.values, plain.count, sizeof plain.values[0], compare);
        assert_int_equal(sorted.count, plain.count);
        assert_memory_equal(sorted.values, plain.values, plain.count * sizeof plain.values[0]);
        /* Asked for order, it keeps it. */
        assert_string_equal(
            elements_text(data, &in_order, SIZE_MAX), elements_text(same, &in_order, SIZE_MAX));
        cadre_dataset_release(data);
        cadre_dataset_release(same);
    }
}

static void read_on(cadre_iterator *iterator, size_t most, struct numbers *numbers)
{
    struct cadre_error error = {0};
    cadre_element element = {0};
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < most; i++) {
        status = iterator_next(iterator, &element, NULL, &error);
        if (status == CADRE_OUT_OF_RANGE) {
            return;
        }
        ASSERT_OK(status);
        numbers_add(numbers, element.tensors[0]);
        cadre_element_release(&element);
    }
}

/* What was given before and what the restored one gives are together everything, once. */
static void positions_without_order(void **state)
{
    struct inner inner = {.lengths = {5, 0, 30, 1, 7, 22, 3}};
    cadre_interleave_options options = {
        .cycle_length = 3, .block_length = 2, .parallel = 3, .unordered = true};
    const struct pass pass = {.epoch = 0};
    (void)state;
    cadre_dataset *data = cadre_dataset_interleave(range(0, 7), make_inner, &inner, &options);
    struct numbers whole;
    read_epoch(data, 0, &whole);
    qsort(whole.values, whole.count, sizeof whole.values[0], compare);
    for (size_t at = 0; at <= whole.count + 1; at++) {
        struct cadre_error error = {0};
        struct iterator_state_writer saved = {0};
        struct numbers numbers = {.count = 0};
        cadre_iterator *first = NULL;
        cadre_iterator *second = NULL;
        ASSERT_OK(dataset_iterate(data, &pass, &first, &error));
        read_on(first, at, &numbers);
        ASSERT_OK(iterator_save(first, &saved, &error));
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        ASSERT_OK(dataset_iterate(data, &pass, &second, &error));
        ASSERT_OK(iterator_restore(second, &reader, &error));
        read_on(second, SIZE_MAX, &numbers);
        qsort(numbers.values, numbers.count, sizeof numbers.values[0], compare);
        assert_int_equal(numbers.count, whole.count);
        assert_memory_equal(numbers.values, whole.values, whole.count * sizeof whole.values[0]);
        cadre_iterator_release(first);
        cadre_iterator_release(second);
        iterator_state_writer_clear(&saved);
    }
    cadre_dataset_release(data);
}

/* The first inner dataset waits until an element of the second was given. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

static cadre_status wait_at_gate(const cadre_element *in, cadre_element *ret_out, void *user)
{
    struct gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open && value_of(in) == 0) {
        pthread_cond_wait(&gate->opened, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    return copy_element(in, ret_out, NULL);
}

static cadre_status behind_gate(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    int64_t value = value_of(in);
    *ret_data = cadre_dataset_map(range(10 * value, 10 * value + 2), wait_at_gate, user, NULL);
    return CADRE_OK;
}

static void unordered_does_not_wait(void **state)
{
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    cadre_interleave_options options = {.cycle_length = 2, .parallel = 2, .unordered = true};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    (void)state;
    cadre_dataset *data = cadre_dataset_interleave(range(0, 2), behind_gate, &gate, &options);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    cadre_dataset_release(data);
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
        assert_int_equal(value_of(&element), 10 + i);
        cadre_element_release(&element);
    }
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
        assert_int_equal(value_of(&element), i);
        cadre_element_release(&element);
    }
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
    cadre_iterator_release(iterator);
    pthread_cond_destroy(&gate.opened);
    pthread_mutex_destroy(&gate.lock);
}

static void threads_that_do_not_start(void **state)
{
    struct inner inner = {.lengths = {2, 1, 3}};
    (void)state;
    for (uint64_t nth = 1; nth < 4; nth++) {
        cadre_dataset *data =
            cadre_dataset_interleave(range(0, 3), make_inner, &inner, turns(3, 1, 2));
        fault_arm("interleave.thread", nth);
        if (nth == 1) {
            expect_failure(data, CADRE_UNAVAILABLE, "interleave: cannot start a thread");
        } else {
            expect_elements(data, "0 100 200 1 201 202");
        }
        assert_int_equal(fault_disarm(), nth < 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_examples),
        cmocka_unit_test(random_orders),
        cmocka_unit_test(long_cycles),
        cmocka_unit_test(any_way_of_reading),
        cmocka_unit_test(nested_in_each_other),
        cmocka_unit_test(inputs_that_fail_in_the_first_turn),
        cmocka_unit_test(epochs),
        cmocka_unit_test(freed_in_the_middle),
        cmocka_unit_test(unordered_gives_the_same_set),
        cmocka_unit_test(positions_without_order),
        cmocka_unit_test(unordered_does_not_wait),
        cmocka_unit_test(threads_that_do_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
