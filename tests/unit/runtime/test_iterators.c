/* SPDX-License-Identifier: Apache-2.0
 * Iterators of a distributed dataset: as many as are made, at a time and one after the other. */
#include <string.h>

#include "training.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"

enum { ROWS = 100, BATCH = 16, STEPS = 7 };

static cadre_distributed_dataset *distribute(
    cadre_strategy *strategy, bool shuffled, const cadre_input_options *options)
{
    cadre_distributed_dataset *distributed;
    cadre_dataset *data = cadre_dataset_range(0, ROWS, 1);
    data = shuffled ? cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 7, NULL) : data;
    data = cadre_dataset_batch(data, BATCH, false);
    assert_public_ok(cadre_distribute_dataset(strategy, data, options, &distributed));
    return distributed;
}

static cadre_distributed_dataset *iterate(
    cadre_distributed_dataset *distributed, uint64_t number, uint64_t steps)
{
    cadre_distributed_dataset *iterator;
    assert_public_ok(cadre_distributed_iterate(distributed, number, steps, &iterator));
    assert_int_equal(cadre_epoch(iterator), number);
    assert_int_equal(cadre_step(iterator), 0);
    return iterator;
}

/* The rows of a batch, of all replicas one after the other; how many. */
static uint32_t rows_of(const cadre_per_replica *batch, int64_t rows[ROWS])
{
    uint32_t count = 0;
    for (uint32_t replica = 0; replica < cadre_per_replica_count(batch); replica++) {
        const cadre_tensor *part = cadre_local_results(batch, 0)[replica];
        for (int64_t i = 0; i < cadre_tensor_rows(part); i++) {
            rows[count++] = ((const int64_t *)cadre_tensor_const_data(part))[i];
        }
    }
    return count;
}

/* Takes a step and runs it; its rows, or 0 at the end. */
static uint32_t take(
    cadre_strategy *strategy, cadre_distributed_dataset *iterator, int64_t rows[ROWS])
{
    cadre_per_replica *batch;
    cadre_status status = cadre_next(iterator, &batch);
    if (status == CADRE_OUT_OF_RANGE) {
        return 0;
    }
    assert_public_ok(status);
    uint32_t count = rows_of(batch, rows);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, batch, 0, NULL));
    return count;
}

/* What step `step` of the data in order holds. */
static void assert_in_order(const int64_t rows[ROWS], uint32_t count, uint32_t step)
{
    assert_int_equal(count, step + 1 < STEPS ? BATCH : ROWS % BATCH);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(rows[i], step * BATCH + i);
    }
}

/* num_epochs = 10, steps_per_epoch = 5 */
static void each_begins_the_data_again(void **state)
{
    (void)state;
    int64_t rows[ROWS];
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    for (uint64_t epoch = 0; epoch < 10; epoch++) {
        cadre_distributed_dataset *iterator = iterate(data, epoch, 5);
        assert_int_equal(cadre_distributed_steps(iterator), 5);
        for (uint32_t step = 0; step < 5; step++) {
            assert_in_order(rows, take(strategy, iterator, rows), step);
            assert_int_equal(cadre_step(iterator), step + 1);
        }
        assert_int_equal(take(strategy, iterator, rows), 0);
        assert_int_equal(take(strategy, iterator, rows), 0);
        cadre_distributed_release(iterator);
    }
    assert_int_equal(cadre_strategy_position(strategy), 50);
    assert_int_equal(strategy->input->dataset_count, 2); /* one stream served them all */
    cadre_strategy_release(strategy);
}

/* Left before its end, it takes nothing from the next one. */
static void one_may_be_left(void **state)
{
    (void)state;
    int64_t rows[ROWS];
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    for (uint64_t number = 0; number < 3; number++) {
        cadre_distributed_dataset *iterator = iterate(data, number, 0);
        assert_int_equal(cadre_distributed_steps(iterator), STEPS);
        for (uint32_t step = 0; step <= number; step++) {
            assert_in_order(rows, take(strategy, iterator, rows), step);
        }
        cadre_distributed_release(iterator);
    }
    cadre_strategy_release(strategy);
}

static void several_are_read_by_turns(void **state)
{
    (void)state;
    enum { ITERATORS = 3 };
    int64_t rows[ROWS];
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    cadre_distributed_dataset *iterators[ITERATORS];
    for (uint64_t i = 0; i < ITERATORS; i++) {
        iterators[i] = iterate(data, i, 0);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < ITERATORS; i++) {
            assert_in_order(rows, take(strategy, iterators[i], rows), step);
        }
    }
    for (uint32_t i = 0; i < ITERATORS; i++) {
        assert_int_equal(take(strategy, iterators[i], rows), 0);
        assert_int_equal(iterators[i]->at.consumption.samples, ROWS);
        assert_int_equal(iterators[i]->at.consumption.steps, STEPS);
        assert_true(iterators[i]->at.consumption.provable);
        assert_memory_equal(iterators[i]->at.consumption.consumed,
            iterators[i]->at.consumption.expected, 2 * sizeof(uint64_t));
    }
    cadre_strategy_release(strategy);
}

/* Two batches are in hand at a time: each is its iterator's. */
static void their_batches_do_not_end_each_other(void **state)
{
    (void)state;
    int64_t rows[2][ROWS];
    cadre_per_replica *batches[2];
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    cadre_distributed_dataset *iterators[2] = {iterate(data, 0, 0), iterate(data, 1, 0)};
    for (uint32_t step = 0; step < STEPS; step++) {
        assert_public_ok(cadre_next(iterators[0], &batches[0]));
        assert_public_ok(cadre_next(iterators[1], &batches[1]));
        assert_in_order(rows[0], rows_of(batches[0], rows[0]), step);
        assert_in_order(rows[1], rows_of(batches[1], rows[1]), step);
        assert_public_ok(cadre_run(strategy, training_nothing, NULL, batches[1], 0, NULL));
        assert_public_ok(cadre_run(strategy, training_nothing, NULL, batches[0], 0, NULL));
    }
    cadre_strategy_release(strategy);
}

/* reshuffle_each_iteration: another order in each iterator; that of the epoch of its number. */
static void its_number_is_its_epoch(void **state)
{
    (void)state;
    int64_t rows[2][ROWS];
    int64_t first[ROWS];
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, true, NULL);
    for (uint64_t number = 0; number < 3; number++) {
        cadre_distributed_dataset *iterator = iterate(data, number, 0);
        assert_true(cadre_next_epoch(data, number + 1, NULL));
        for (uint32_t step = 0; step < STEPS; step++) {
            uint32_t count = take(strategy, iterator, rows[0]);
            assert_int_equal(take(strategy, data, rows[1]), count);
            assert_memory_equal(rows[0], rows[1], count * sizeof rows[0][0]);
            if (step == 0 && number > 0) {
                assert_memory_not_equal(rows[0], first, sizeof first[0] * BATCH);
            } else if (step == 0) {
                memcpy(first, rows[0], sizeof first);
            }
        }
        assert_int_equal(take(strategy, iterator, rows[0]), 0);
        cadre_distributed_release(iterator);
    }
    cadre_strategy_release(strategy);
}

/* An endless dataset begins again in each of them, too. */
static void endless_data_begin_again(void **state)
{
    (void)state;
    int64_t rows[ROWS];
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data;
    assert_public_ok(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(
            cadre_dataset_repeat(cadre_dataset_range(0, ROWS, 1), CADRE_REPEAT_FOREVER), BATCH,
            true),
        NULL, &data));
    for (uint64_t number = 0; number < 2; number++) {
        cadre_distributed_dataset *iterator = iterate(data, number, 3);
        for (uint32_t step = 0; step < 3; step++) {
            assert_in_order(rows, take(strategy, iterator, rows), step);
        }
        assert_int_equal(take(strategy, iterator, rows), 0);
        cadre_distributed_release(iterator);
    }
    cadre_strategy_release(strategy);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    cadre_distributed_dataset *none = data;
    cadre_distributed_dataset *iterator = iterate(data, 3, 0);
    cadre_per_replica *batch;
    cadre_per_replica *kept;
    assert_public_error(cadre_distributed_iterate(data, 3, 0, &none), CADRE_INVALID_ARGUMENT,
        "iterator 3 of dataset 'dataset-1': the next number is 4");
    assert_null(none);
    assert_public_error(cadre_distributed_iterate(data, 4, UINT64_MAX, &none),
        CADRE_INVALID_ARGUMENT, "steps of an iterator are too many");
    assert_public_error(cadre_distributed_iterate(iterator, 4, 0, &none), CADRE_INVALID_ARGUMENT,
        "with an iterator of dataset 'dataset-1'");
    assert_public_error(
        cadre_distributed_iterate(NULL, 4, 0, &none), CADRE_INVALID_ARGUMENT, "distributed");
    assert_public_error(
        cadre_distributed_iterate(data, 4, 0, NULL), CADRE_INVALID_ARGUMENT, "ret_iterator");
    assert_false(cadre_next_epoch(iterator, 9, NULL));
    assert_non_null(strstr(cadre_error_message(), "an iterator, which has one epoch"));
    cadre_distributed_release(data);
    assert_non_null(strstr(cadre_error_message(), "no iterator"));
    assert_public_ok(cadre_next(iterator, &batch));
    kept = cadre_per_replica_retain(batch);
    cadre_distributed_release(iterator);
    assert_public_error(cadre_run(strategy, training_nothing, NULL, kept, 0, NULL),
        CADRE_FAILED_PRECONDITION, "of an iterator that was released");
    assert_public_error(
        cadre_next(iterator, &batch), CADRE_FAILED_PRECONDITION, "an iterator that was released");
    cadre_distributed_release(iterator);
    assert_non_null(strstr(cadre_error_message(), "an iterator that was released"));
    cadre_distributed_release(NULL);
    cadre_per_replica_release(kept);
    cadre_strategy_release(strategy);
}

/* A batch that was kept is not run as one of the iterator that took its place. */
static void a_batch_ends_with_its_iterator(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    cadre_distributed_dataset *iterator = iterate(data, 0, 0);
    cadre_per_replica *kept;
    cadre_per_replica *batch;
    assert_public_ok(cadre_next(iterator, &kept));
    cadre_per_replica_retain(kept);
    cadre_distributed_release(iterator);
    iterator = iterate(data, 1, 0);
    assert_public_error(cadre_run(strategy, training_nothing, NULL, kept, 0, NULL),
        CADRE_FAILED_PRECONDITION, "of an iterator that was released");
    assert_public_ok(cadre_next(iterator, &batch));
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, batch, 0, NULL));
    assert_int_equal(cadre_step(iterator), 1);
    cadre_per_replica_release(kept);
    cadre_strategy_release(strategy);
}

static void so_many_are_possible_at_a_time(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    cadre_distributed_dataset *iterators[63];
    cadre_distributed_dataset *more;
    for (uint64_t i = 0; i < 63; i++) {
        iterators[i] = iterate(data, i, 0);
    }
    assert_public_error(cadre_distributed_iterate(data, 63, 0, &more), CADRE_RESOURCE_EXHAUSTED,
        "release iterators");
    cadre_distributed_release(iterators[20]);
    assert_public_ok(cadre_distributed_iterate(data, 63, 0, &more));
    assert_ptr_equal(more, iterators[20]);
    cadre_strategy_release(strategy);
}

/* Names that the library gives to datasets do not depend on how many iterators there are. */
static void datasets_are_counted_without_them(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data = distribute(strategy, false, NULL);
    iterate(data, 0, 0);
    cadre_distributed_dataset *other = distribute(strategy, false, NULL);
    assert_string_equal(other->name, "dataset-2");
    cadre_strategy_release(strategy);
}

/* One that failed leaves the others a process without a strategy. */
static int clean(void **state)
{
    (void)state;
    cadre_strategy_release(strategy_current());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_begins_the_data_again, clean),
        cmocka_unit_test_teardown(one_may_be_left, clean),
        cmocka_unit_test_teardown(several_are_read_by_turns, clean),
        cmocka_unit_test_teardown(their_batches_do_not_end_each_other, clean),
        cmocka_unit_test_teardown(its_number_is_its_epoch, clean),
        cmocka_unit_test_teardown(endless_data_begin_again, clean),
        cmocka_unit_test_teardown(misuse_is_refused, clean),
        cmocka_unit_test_teardown(a_batch_ends_with_its_iterator, clean),
        cmocka_unit_test_teardown(so_many_are_possible_at_a_time, clean),
        cmocka_unit_test_teardown(datasets_are_counted_without_them, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
