/* SPDX-License-Identifier: Apache-2.0
 * prefetch in plain reading: a thread that reads ahead, no further than it may; failures at their
 * place; positions that count what was read ahead as not taken. */
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <string.h>

#include "common/base/fault.h"
#include "tests/unit/input/elements.h"

/* Counts what is read; waits at `stops_at` until it is released. */
struct source {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t read;
    int64_t stops_at;
    int64_t fails_at;
    int64_t given;
    int64_t ahead_most;
};

static void source_init(struct source *source)
{
    *source = (struct source){.stops_at = -1, .fails_at = -1};
    pthread_mutex_init(&source->lock, NULL);
    pthread_cond_init(&source->changed, NULL);
}

static void source_finish(struct source *source)
{
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->lock);
}

static cadre_status pass_on(const cadre_element *in, cadre_element *ret_out, void *user)
{
    struct source *source = user;
    int64_t value = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    pthread_mutex_lock(&source->lock);
    source->read++;
    int64_t ahead = source->read - source->given;
    source->ahead_most = ahead > source->ahead_most ? ahead : source->ahead_most;
    pthread_cond_broadcast(&source->changed);
    while (value == source->stops_at) {
        pthread_cond_wait(&source->changed, &source->lock);
    }
    pthread_mutex_unlock(&source->lock);
    if (value == source->fails_at) {
        return CADRE_UNAVAILABLE;
    }
    ret_out->count = 1;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

static cadre_dataset *read_by(struct source *source, int64_t count)
{
    static const cadre_element_spec number = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    return cadre_dataset_map(
        cadre_dataset_range(0, count, 1), pass_on, source, &(cadre_map_options){.output = &number});
}

static cadre_iterator *iterate(cadre_dataset *data)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &iterator, &error));
    return iterator;
}

static void take(cadre_iterator *iterator, struct source *source)
{
    struct cadre_error error = {0};
    cadre_element element = {0};
    ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
    cadre_element_release(&element);
    pthread_mutex_lock(&source->lock);
    source->given++;
    pthread_mutex_unlock(&source->lock);
}

static void it_changes_no_element(void **state)
{
    (void)state;
    for (int64_t depth = 1; depth < 12; depth += 3) {
        cadre_dataset *data = cadre_dataset_prefetch(cadre_dataset_range(0, 10, 1), depth);
        assert_int_equal(cadre_dataset_cardinality(data), 10);
        expect_consistent(data);
        expect_elements(data, "0 1 2 3 4 5 6 7 8 9");
        data = cadre_dataset_prefetch(in_order_only(cadre_dataset_range(0, 10, 1)), depth);
        data = cadre_dataset_batch(data, 4, false);
        expect_consistent(data);
        expect_elements(data, "[0 1 2 3] [4 5 6 7] [8 9]");
        data = cadre_dataset_prefetch(
            cadre_dataset_shuffle(cadre_dataset_range(0, 10, 1), CADRE_SHUFFLE_ALL, 2, NULL),
            depth);
        expect_consistent(data);
        cadre_dataset_release(data);
    }
    expect_elements(cadre_dataset_prefetch(cadre_dataset_range(0, 0, 1), 4), "");
    expect_elements(cadre_dataset_prefetch(cadre_dataset_range(0, 3, 1), INT64_MAX), "0 1 2");
    expect_failure(cadre_dataset_prefetch(cadre_dataset_range(0, 3, 1), 0), CADRE_INVALID_ARGUMENT,
        "prefetch: depth 0");
}

/* Ids that are not one a row, and rows given in parts. */
static void rows_are_cut_with_their_ids(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 24, 1), 3, true);
    data = cadre_dataset_prefetch(data, 4);
    expect_consistent(data);
    data = cadre_dataset_prefetch(cadre_dataset_repeat(data, 2), 3);
    expect_consistent(data);
    cadre_dataset_release(data);
}

static void it_reads_ahead_and_no_further(void **state)
{
    (void)state;
    struct source source;
    source_init(&source);
    cadre_dataset *data = cadre_dataset_prefetch(read_by(&source, 100), 5);
    cadre_iterator *iterator = iterate(data);
    assert_int_equal(source.read, 0);
    take(iterator, &source);
    /* The first is taken; five more come without being asked for. */
    pthread_mutex_lock(&source.lock);
    while (source.read < 6) {
        pthread_cond_wait(&source.changed, &source.lock);
    }
    pthread_mutex_unlock(&source.lock);
    for (int i = 0; i < 60; i++) {
        take(iterator, &source);
    }
    cadre_iterator_release(iterator);
    assert_true(source.ahead_most <= 6); /* one is on its way out */
    cadre_dataset_release(data);
    source_finish(&source);
}

/* What was read before is given while the thread waits for the next. */
static void a_slow_source_holds_up_only_what_it_has_not(void **state)
{
    (void)state;
    struct source source;
    source_init(&source);
    source.stops_at = 3;
    cadre_dataset *data = cadre_dataset_prefetch(read_by(&source, 10), 5);
    cadre_iterator *iterator = iterate(data);
    for (int i = 0; i < 3; i++) {
        take(iterator, &source);
    }
    pthread_mutex_lock(&source.lock);
    source.stops_at = -1;
    pthread_cond_broadcast(&source.changed);
    pthread_mutex_unlock(&source.lock);
    take(iterator, &source);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    source_finish(&source);
}

static void a_failure_comes_at_its_index(void **state)
{
    (void)state;
    struct source source;
    source_init(&source);
    source.fails_at = 3;
    cadre_dataset *data = cadre_dataset_prefetch(read_by(&source, 10), 8);
    const char *text = elements_text(data, &(struct pass){0}, SIZE_MAX);
    const char *wanted = "0 1 2!UNAVAILABLE sample 3 (from 0): map: the function failed";
    assert_memory_equal(text, wanted, strlen(wanted));
    cadre_dataset_release(data);
    source_finish(&source);
}

/* Where the input's own position is long, the elements at hand are saved instead. */
static void long_positions(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_shuffle(cadre_dataset_range(0, 400, 1), 250, 3, NULL);
    data = cadre_dataset_take(cadre_dataset_prefetch(data, 6), 24);
    expect_positions(data, &(struct pass){0});
    cadre_dataset_release(data);
}

static void iterators_may_be_left(void **state)
{
    (void)state;
    for (size_t most = 0; most < 8; most++) {
        cadre_dataset *data = cadre_dataset_prefetch(cadre_dataset_range(0, 6, 1), 3);
        data = cadre_dataset_prefetch(data, 2);
        elements_text(data, &(struct pass){0}, most);
        cadre_dataset_release(data);
    }
}

/* Also where what stands on it could be read by index: there nothing would be read ahead. */
static void what_stands_on_it_is_read_in_order(void **state)
{
    (void)state;
    struct source source;
    source_init(&source);
    cadre_dataset *data =
        cadre_dataset_batch(cadre_dataset_prefetch(read_by(&source, 100), 6), 2, false);
    assert_true(data->indexable);
    cadre_iterator *iterator = iterate(data);
    take(iterator, &source);
    pthread_mutex_lock(&source.lock);
    while (source.read < 2 + 6) {
        pthread_cond_wait(&source.changed, &source.lock);
    }
    pthread_mutex_unlock(&source.lock);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    source_finish(&source);
}

static void a_thread_that_cannot_be_had(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_prefetch(cadre_dataset_range(0, 6, 1), 3);
    fault_arm("thread.create", 1);
    const char *text = elements_text(data, &(struct pass){0}, SIZE_MAX);
    assert_true(fault_disarm());
    assert_non_null(strstr(text, "!UNAVAILABLE prefetch: cannot start a thread"));
    expect_elements(data, "0 1 2 3 4 5");
}

/* Where memory is short it reads no further than it must. */
static void memory_that_is_short(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_prefetch(cadre_dataset_range(0, 200, 1), 150);
    cadre_dataset *plain = cadre_dataset_range(0, 200, 1);
    size_t length = strlen(elements_text(plain, &(struct pass){0}, SIZE_MAX));
    for (uint64_t nth = 1; nth < 4; nth++) {
        fault_arm("memory.left", nth);
        assert_int_equal(strlen(elements_text(data, &(struct pass){0}, SIZE_MAX)), length);
        fault_disarm();
    }
    cadre_dataset_release(data);
    cadre_dataset_release(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_changes_no_element),
        cmocka_unit_test(rows_are_cut_with_their_ids),
        cmocka_unit_test(it_reads_ahead_and_no_further),
        cmocka_unit_test(a_slow_source_holds_up_only_what_it_has_not),
        cmocka_unit_test(a_failure_comes_at_its_index),
        cmocka_unit_test(long_positions),
        cmocka_unit_test(iterators_may_be_left),
        cmocka_unit_test(what_stands_on_it_is_read_in_order),
        cmocka_unit_test(a_thread_that_cannot_be_had),
        cmocka_unit_test(memory_that_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
