/* SPDX-License-Identifier: Apache-2.0
 * Distributed datasets: epochs, batches and the counters that come from the ledger. */
#include <string.h>

#include "training.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

static cadre_distributed_dataset *range_of(
    cadre_strategy *strategy, int64_t stop, int64_t batch, const char *name)
{
    cadre_distributed_dataset *distributed;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, stop, 1), batch, false);
    assert_public_ok(cadre_distribute_dataset(strategy, data,
        &(cadre_input_options){.name = name, .auto_shard = CADRE_SHARD_DATA}, &distributed));
    return distributed;
}

/* run/seed_dataset_doubling; also gives the rows it saw. */
static cadre_status sum_of_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)user;
    const int64_t *values = cadre_tensor_const_data(inputs[0]);
    int64_t sum = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        sum += values[i];
    }
    CADRE_TRY(cadre_tensor_from_i64(sum, &outputs[0]));
    return cadre_tensor_from_i64(cadre_replica_global_rows(replica), &outputs[1]);
}

static int64_t total(cadre_strategy *strategy, const cadre_per_replica *value)
{
    cadre_tensor *sum;
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &sum));
    int64_t number = *(const int64_t *)cadre_tensor_const_data(sum);
    cadre_tensor_release(sum);
    return number;
}

static void every_sample_once_an_epoch_at_any_replicas(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        cadre_strategy *strategy = training_strategy(n);
        cadre_distributed_dataset *data = range_of(strategy, 26, 8, "train");
        cadre_per_replica *batch;
        assert_public_error(
            cadre_next(data, &batch), CADRE_FAILED_PRECONDITION, "call cadre_next_epoch");
        uint64_t epoch = 99;
        uint64_t epochs = 0;
        while (cadre_next_epoch(data, 3, &epoch)) {
            assert_int_equal(epoch, epochs);
            assert_int_equal(cadre_distributed_steps(data), 4);
            int64_t sum = 0;
            uint64_t steps = 0;
            cadre_status status;
            while ((status = cadre_next(data, &batch)) == CADRE_OK) {
                cadre_per_replica *outputs[2];
                assert_int_equal(cadre_step(data), steps);
                assert_public_ok(cadre_run(strategy, sum_of_rows, NULL, batch, 2, outputs));
                assert_int_equal(total(strategy, outputs[1]), (int64_t)n * (steps == 3 ? 2 : 8));
                sum += total(strategy, outputs[0]);
                steps++;
                assert_int_equal(cadre_step(data), steps);
                assert_int_equal(cadre_epoch(data), epoch);
            }
            assert_int_equal(status, CADRE_OUT_OF_RANGE);
            assert_int_equal(cadre_next(data, &batch), CADRE_OUT_OF_RANGE);
            assert_null(batch);
            assert_int_equal(sum, 325);
            assert_int_equal(steps, 4);
            epochs++;
        }
        assert_int_equal(epochs, 3);
        assert_int_equal(cadre_strategy_position(strategy), 12);
        assert_public_ok(cadre_distributed_status(data));
        cadre_strategy_release(strategy);
    }
}

static void datasets_interleave(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *train = range_of(strategy, 10, 2, NULL);
    cadre_distributed_dataset *test = range_of(strategy, 4, 2, NULL);
    cadre_per_replica *batch;
    uint64_t epoch;
    uint64_t position = 0;
    while (cadre_next_epoch(train, 5, &epoch)) {
        cadre_per_replica *outputs[2];
        for (uint64_t i = 0; i <= epoch; i++) { /* leaves each epoch at another step */
            assert_public_ok(cadre_next(train, &batch));
            assert_public_ok(cadre_run(strategy, sum_of_rows, NULL, batch, 2, outputs));
            assert_int_equal(cadre_strategy_position(strategy), ++position);
        }
        assert_true(cadre_next_epoch(test, epoch + 1, NULL));
        while (cadre_next(test, &batch) == CADRE_OK) {
            assert_public_ok(cadre_run(strategy, sum_of_rows, NULL, batch, 2, outputs));
            /* Once more with the same batch: a step that consumes nothing. */
            assert_public_ok(cadre_run(strategy, sum_of_rows, NULL, batch, 2, outputs));
            position += 2;
        }
        assert_false(cadre_next_epoch(test, epoch + 1, NULL));
        assert_int_equal(cadre_step(train), epoch + 1);
        assert_int_equal(cadre_step(test), 2);
    }
    assert_int_equal(cadre_strategy_position(strategy), position);
    cadre_strategy_release(strategy);
}

static void an_endless_dataset_goes_on(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_dataset *data = cadre_dataset_repeat(cadre_dataset_range(0, 3, 1), CADRE_REPEAT_FOREVER);
    cadre_distributed_dataset *distributed;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(data, 2, false), NULL, &distributed));
    assert_true(cadre_next_epoch(distributed, 1, NULL));
    assert_int_equal(cadre_distributed_steps(distributed), CADRE_CARDINALITY_INFINITE);
    for (int i = 0; i < 200; i++) {
        cadre_per_replica *batch;
        cadre_per_replica *outputs[2];
        assert_public_ok(cadre_next(distributed, &batch));
        assert_public_ok(cadre_run(strategy, sum_of_rows, NULL, batch, 2, outputs));
    }
    assert_int_equal(cadre_step(distributed), 200);
    cadre_strategy_release(strategy);
}

static void bad_datasets_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    assert_public_error(
        cadre_distribute_dataset(strategy, cadre_dataset_range(0, 5, 0), NULL, &data),
        CADRE_INVALID_ARGUMENT, "");
    assert_null(data);
    const char *paths[1] = {"/nonexistent/digits.bin"};
    assert_public_error(
        cadre_distribute_dataset(strategy,
            cadre_dataset_batch(cadre_dataset_fixed_length(paths, 1, 4, NULL), 2, false), NULL,
            &data),
        CADRE_NOT_FOUND, "/nonexistent/digits.bin");
    assert_public_error(
        cadre_distribute_dataset(strategy, NULL, NULL, &data), CADRE_RESOURCE_EXHAUSTED, "");
    assert_public_error(
        cadre_distribute_dataset(strategy, cadre_dataset_range(0, 5, 1), NULL, &data),
        CADRE_INVALID_ARGUMENT, "batch");
    range_of(strategy, 4, 2, "train");
    assert_public_error(cadre_distribute_dataset(strategy, cadre_dataset_range(0, 5, 1),
                            &(cadre_input_options){.name = "train"}, &data),
        CADRE_ALREADY_EXISTS, "'train'");
    assert_public_error(cadre_distribute_dataset(strategy,
                            cadre_dataset_batch(cadre_dataset_range(0, 5, 1), 2, false),
                            &(cadre_input_options){.name = "deep", .prefetch = 1000}, &data),
        CADRE_INVALID_ARGUMENT, "at most 64");
    cadre_strategy_release(strategy);
}

static cadre_status fail_at_five(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    if (*(const int64_t *)cadre_tensor_const_data(in->tensors[0]) == 5) {
        return CADRE_DATA_LOSS;
    }
    ret_out->count = 1;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    return CADRE_OK;
}

static void an_error_of_the_data_is_sticky(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_dataset *data =
        cadre_dataset_map(cadre_dataset_range(0, 10, 1), fail_at_five, NULL, NULL);
    cadre_distributed_dataset *distributed;
    assert_public_ok(cadre_distribute_dataset(strategy, cadre_dataset_batch(data, 2, false),
        &(cadre_input_options){.name = "broken"}, &distributed));
    assert_true(cadre_next_epoch(distributed, 2, NULL));
    cadre_per_replica *batch;
    assert_public_ok(cadre_next(distributed, &batch));
    assert_public_ok(cadre_next(distributed, &batch));
    for (int i = 0; i < 3; i++) {
        assert_public_error(cadre_next(distributed, &batch), CADRE_DATA_LOSS, "'broken'");
    }
    assert_false(cadre_next_epoch(distributed, 2, NULL));
    assert_public_error(cadre_distributed_status(distributed), CADRE_DATA_LOSS, "'broken'");
    assert_int_equal(cadre_finish(strategy), 1);
}

/* Scalars go to one replica alone: there the job cannot grow. Each further read returns the reason
 * again. */
static void a_dataset_that_cannot_be_cut_again_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    assert_public_ok(cadre_distribute_dataset(strategy, cadre_dataset_range(0, 9, 1), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    strategy->layout++;
    strategy->roster.member_count = 2;
    assert_error(distributed_reopen(strategy, &error), CADRE_INVALID_ARGUMENT, &error, "scalar");
    strategy->roster.member_count = 1;
    for (int i = 0; i < 2; i++) {
        assert_public_error(cadre_next(data, &batch), CADRE_INVALID_ARGUMENT, "scalar");
        assert_public_error(cadre_distributed_status(data), CADRE_INVALID_ARGUMENT, "scalar");
        assert_false(cadre_next_epoch(data, 2, NULL));
    }
    cadre_strategy_release(strategy);
}

/* The coordinator sends a joiner the position of each, and has a proof of each. */
static void more_datasets_than_can_be_reported_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    for (int i = 0; i < LIMIT_STREAMS; i++) {
        (void)range_of(strategy, 4, 2, NULL);
    }
    cadre_distributed_dataset *data;
    assert_public_error(
        cadre_distribute_dataset(
            strategy, cadre_dataset_batch(cadre_dataset_range(0, 5, 1), 2, false), NULL, &data),
        CADRE_RESOURCE_EXHAUSTED,
        "dataset-65 would be one more than 64 distributed datasets and iterators, the most of a "
        "job: "
        "distribute one once and take its epochs one after the other");
    cadre_strategy_release(strategy);
}

/* --- coming back into an epoch --- */

/* The position of a received state: the training has epochs of 4 steps, the test of 2. */
struct place {
    uint64_t begun;
    bool open;
    uint64_t applied;
    uint64_t serial;
};

struct reentry {
    const char *what;
    struct place train;
    struct place test;
    bool applied_since; /* then it is an epoch like any other */
    bool test_asks;     /* the program comes to the test first */
    uint64_t epochs;
    bool begins; /* cadre_next_epoch is true ... */
    uint64_t epoch;
    uint64_t step; /* ... and the next batch is this one; the number of steps: none is left */
};

static const struct reentry reentries[] = {
    {"nothing was begun", {0}, {0}, false, false, 3, true, 0, 0},
    {"nothing was begun, and nothing is wanted", {0}, {0}, false, false, 0, false, 0, 0},
    {"inside of an epoch", {1, true, 2, 1}, {0}, false, false, 3, true, 0, 2},
    {"before its first step", {2, true, 0, 3}, {1, true, 2, 2}, false, false, 3, true, 1, 0},
    {"at the end of an epoch", {1, true, 4, 1}, {0}, false, false, 3, true, 1, 0},
    {"at the end of the last one", {3, true, 4, 5}, {2, true, 2, 4}, false, false, 3, false, 0, 0},
    {"in the test of an epoch", {1, true, 4, 1}, {1, true, 1, 2}, false, false, 3, true, 0, 4},
    {"in the test of the last", {3, true, 4, 5}, {3, true, 1, 6}, false, false, 3, true, 2, 4},
    {"after the test of an epoch", {1, true, 4, 1}, {1, true, 2, 2}, false, false, 3, true, 1, 0},
    {"in the test, which asks", {1, true, 4, 1}, {1, true, 1, 2}, false, true, 1, true, 0, 1},
    {"after the test, which asks", {1, true, 4, 1}, {1, true, 2, 2}, false, true, 1, false, 0, 0},
    {"before the test, which asks", {1, true, 4, 1}, {0}, false, true, 1, true, 0, 0},
    {"inside of an epoch after the test, which asks", {2, true, 3, 3}, {1, true, 2, 2}, false, true,
        2, true, 0, 2},
    {"an epoch that was left early", {1, true, 2, 1}, {1, true, 1, 2}, false, false, 3, true, 0, 2},
    {"a test that was left early", {2, true, 1, 3}, {1, true, 1, 2}, false, false, 3, true, 1, 1},
    {"an epoch that was closed", {3, false, 4, 5}, {3, true, 1, 6}, false, false, 3, false, 0, 0},
    {"beyond what is wanted", {3, true, 2, 5}, {0}, false, false, 2, false, 0, 0},
    {"inside of an epoch, a step ago", {1, true, 2, 1}, {0}, true, false, 3, true, 1, 0},
    {"in the test, a step ago", {1, true, 4, 1}, {1, true, 1, 2}, true, false, 3, true, 1, 0},
};

static void stand(cadre_distributed_dataset *data, const struct place *place, bool applied_since)
{
    data->at = (struct dataset_position){.epochs_begun = place->begun,
        .open = place->open,
        .applied = place->applied,
        .serial = place->serial};
    data->reenters = !applied_since;
}

static void check_reentry(const struct reentry *reentry)
{
    cadre_strategy *strategy = training_strategy(1);
    cadre_distributed_dataset *train = range_of(strategy, 16, 4, "train");
    cadre_distributed_dataset *test = range_of(strategy, 8, 4, "test");
    cadre_distributed_dataset *asks = reentry->test_asks ? test : train;
    uint64_t epoch = 99;
    stand(train, &reentry->train, reentry->applied_since);
    stand(test, &reentry->test, reentry->applied_since);
    strategy->input->reenters = !reentry->applied_since;
    strategy->input->serial_last = 6;
    bool begins = cadre_next_epoch(asks, reentry->epochs, &epoch);
    if (begins != reentry->begins || (begins && epoch != reentry->epoch)) {
        fail_msg("%s: %s epoch %d", reentry->what, begins ? "begins" : "does not begin",
            begins ? (int)epoch : -1);
    }
    cadre_per_replica *batch;
    if (begins && cadre_next(asks, &batch) == CADRE_OK) {
        assert_int_equal(batch->source.step, reentry->step);
    } else if (begins) {
        assert_int_equal(reentry->step, cadre_distributed_steps(asks));
    }
    /* Called once more without a step between, it is the next epoch. */
    if (begins && epoch + 1 < reentry->epochs) {
        assert_true(cadre_next_epoch(asks, reentry->epochs, &epoch));
        assert_int_equal(epoch, reentry->epoch + 1);
    }
    cadre_strategy_release(strategy);
}

static void a_state_from_elsewhere_leads_to_its_epoch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof reentries / sizeof reentries[0]; i++) {
        check_reentry(&reentries[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_once_an_epoch_at_any_replicas),
        cmocka_unit_test(datasets_interleave),
        cmocka_unit_test(an_endless_dataset_goes_on),
        cmocka_unit_test(bad_datasets_are_refused),
        cmocka_unit_test(an_error_of_the_data_is_sticky),
        cmocka_unit_test(a_dataset_that_cannot_be_cut_again_is_refused),
        cmocka_unit_test(more_datasets_than_can_be_reported_are_refused),
        cmocka_unit_test(a_state_from_elsewhere_leads_to_its_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
