/* SPDX-License-Identifier: Apache-2.0
 * How much work a proof is, before it is judged. */
#include "common/view/verification.h"
#include "tests/lib/test.h"

static struct verify_epoch epoch_of(uint64_t number, uint64_t samples, uint64_t source_samples)
{
    return (struct verify_epoch){.stream = 1,
        .name = "train",
        .cursor = {.epoch = number, .steps = 8},
        .consumption = {.steps = 8, .samples = samples},
        .source_samples = source_samples};
}

static uint64_t ids_of(const struct verify_epoch *epochs, size_t count)
{
    const struct verify_response response = {
        .job = {.name = "job", .program = "program"}, .epochs = epochs, .epoch_count = count};
    cadre_verification *verification = verification_new(&response, NULL);
    assert_non_null(verification);
    uint64_t ids = verification_ids(verification);
    cadre_result_release(verification);
    return ids;
}

static void whole_epochs_are_digested(void **state)
{
    (void)state;
    struct verify_epoch epochs[] = {epoch_of(0, 100, 100), epoch_of(1, 60, 100), epoch_of(2, 7, 0),
        epoch_of(3, 100, 100), epoch_of(4, 100, 100)};
    epochs[4].consumption.steps = 7; /* not all of its steps */
    assert_int_equal(ids_of(epochs, 5), 200);
    assert_int_equal(ids_of(epochs, 0), 0);
}

/* What tasks reported is not believed. */
static void any_number_may_be_reported(void **state)
{
    (void)state;
    const struct verify_epoch epochs[] = {
        epoch_of(0, UINT64_MAX - 1, UINT64_MAX - 1), epoch_of(1, UINT64_MAX, UINT64_MAX)};
    assert_true(ids_of(epochs, 1) == UINT64_MAX - 1);
    assert_true(ids_of(epochs, 2) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_epochs_are_digested),
        cmocka_unit_test(any_number_may_be_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
