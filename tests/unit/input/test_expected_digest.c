/* SPDX-License-Identifier: Apache-2.0
 * What is consumed and what should be: equal at any number of workers, also when an epoch is cut
 * again in the middle of it; and different as soon as one reads what is another's. */
#include "tests/unit/input/cmocka_unit.h"

#include "common/base/fault.h"
#include "tests/unit/input/reading.h"

#define SAMPLES 103
#define BATCH   8
#define STEPS   13

static cadre_dataset *shuffled(void)
{
    cadre_dataset *data =
        cadre_dataset_shuffle(cadre_dataset_range(0, SAMPLES, 1), CADRE_SHUFFLE_ALL, 7, NULL);
    return cadre_dataset_batch(data, BATCH, false);
}

#define assert_ok(call, error)                                                                     \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", #call, (error)->text);                                              \
        }                                                                                          \
    } while (0)

/* What all workers of a step say together, and what its chief expects. */
struct step_sum {
    uint64_t samples;
    struct digest consumed;
    struct digest expected;
    bool provable;
};

static struct step_sum sum_step(cadre_dataset *data, uint32_t workers, uint64_t step,
    cadre_shard_policy policy, struct numbers *values)
{
    struct step_sum sum = {0};
    for (uint32_t worker = 0; worker < workers; worker++) {
        struct distributed_layout layout = {.workers = workers,
            .worker_index = worker,
            .replicas = 1,
            .policy = policy,
            .name = "train",
            .wants_expected = worker == 0};
        struct distributed_input *input;
        struct distributed_batch batch;
        struct cadre_error error;
        assert_ok(distributed_input_open(data, &layout, &input, &error), &error);
        assert_ok(distributed_input_read(input, 2, step, &batch, &error), &error);
        sum.samples += batch.samples;
        digest_merge(&sum.consumed, &batch.consumed);
        if (worker == 0) {
            sum.expected = batch.expected;
            sum.provable = batch.provable;
        } else {
            assert_false(batch.provable);
        }
        for (uint32_t i = 0; values != NULL && i < batch.replicas; i++) {
            numbers_add(values, batch.elements[i].tensors[0]);
        }
        distributed_batch_clear(&batch);
        distributed_input_close(input);
    }
    return sum;
}

static void consumed_is_expected_at_any_number_of_workers(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 5};
    cadre_dataset *data = shuffled();
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t samples = 0;
        for (uint64_t step = 0; step < STEPS; step++) {
            struct step_sum sum = sum_step(data, counts[i], step, CADRE_SHARD_DATA, NULL);
            struct step_sum alone = sum_step(data, 1, step, CADRE_SHARD_DATA, NULL);
            assert_true(sum.provable);
            assert_true(digest_equal(&sum.consumed, &sum.expected));
            assert_true(
                digest_equal(&sum.consumed, &alone.consumed)); /* the same samples in each step */
            samples += sum.samples;
        }
        assert_int_equal(samples, SAMPLES);
    }
    cadre_dataset_release(data);
}

static void a_resharded_epoch_holds_each_sample_once(void **state)
{
    (void)state;
    static const uint32_t workers_at[STEPS] = {3, 3, 3, 2, 2, 1, 1, 4, 4, 4, 2, 3, 5};
    cadre_dataset *data = shuffled();
    struct numbers values = {.count = 0};
    bool seen[SAMPLES] = {false};
    for (uint64_t step = 0; step < STEPS; step++) {
        struct step_sum sum = sum_step(data, workers_at[step], step, CADRE_SHARD_DATA, &values);
        assert_true(sum.provable && digest_equal(&sum.consumed, &sum.expected));
    }
    assert_int_equal(values.count, SAMPLES);
    for (size_t i = 0; i < values.count; i++) {
        assert_false(seen[values.values[i]]);
        seen[values.values[i]] = true;
    }
    cadre_dataset_release(data);
}

static void a_piece_that_is_another_s_shows(void **state)
{
    (void)state;
    cadre_dataset *data = shuffled();
    for (uint64_t nth = 1; nth <= 3; nth++) {
        fault_arm("input.piece", nth);
        struct step_sum sum = sum_step(data, 3, 4, CADRE_SHARD_DATA, NULL);
        assert_true(fault_disarm());
        assert_true(sum.provable);
        assert_false(digest_equal(&sum.consumed, &sum.expected));
    }
    cadre_dataset_release(data);
}

static void what_has_no_expected_digest_is_not_claimed(void **state)
{
    (void)state;
    cadre_dataset *data = shuffled();
    assert_false(sum_step(data, 2, 1, CADRE_SHARD_OFF, NULL).provable);
    cadre_dataset_release(data);
    data = cadre_dataset_batch(make_sequential(cadre_dataset_range(0, SAMPLES, 1)), BATCH, false);
    struct step_sum sum = sum_step(data, 2, 1, CADRE_SHARD_DATA, NULL);
    assert_false(sum.provable);
    assert_int_equal(sum.samples, BATCH);
    cadre_dataset_release(data);
}

static void the_source_s_samples_are_known(void **state)
{
    (void)state;
    struct cadre_error error;
    struct distributed_input *input;
    struct distributed_layout layout = {
        .workers = 2, .replicas = 1, .policy = CADRE_SHARD_DATA, .name = "train"};
    cadre_dataset *data = shuffled();
    assert_ok(distributed_input_open(data, &layout, &input, &error), &error);
    assert_int_equal(distributed_input_source_samples(input), SAMPLES);
    assert_true(distributed_input_shares(input));
    distributed_input_close(input);
    layout.policy = CADRE_SHARD_OFF;
    assert_ok(distributed_input_open(data, &layout, &input, &error), &error);
    assert_false(distributed_input_shares(input));
    distributed_input_close(input);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumed_is_expected_at_any_number_of_workers),
        cmocka_unit_test(a_resharded_epoch_holds_each_sample_once),
        cmocka_unit_test(a_piece_that_is_another_s_shows),
        cmocka_unit_test(what_has_no_expected_digest_is_not_claimed),
        cmocka_unit_test(the_source_s_samples_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
