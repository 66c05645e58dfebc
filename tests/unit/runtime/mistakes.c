/* SPDX-License-Identifier: Apache-2.0 */
#include "mistakes.h"

#include <stdio.h>
#include <string.h>

cadre_status mistakes_release(cadre_tensor *tensor, cadre_status status)
{
    cadre_tensor_release(tensor);
    return status;
}

static cadre_status inside(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct fixture *fixture = user;
    return fixture->mistake->inside(replica, fixture);
}

static void open_mistake_fixture(struct fixture *fixture)
{
    const cadre_variable_options sum = {.aggregation = CADRE_AGGREGATION_SUM};
    const cadre_variable_options first = {.aggregation = CADRE_AGGREGATION_ONLY_FIRST_REPLICA};
    fixture->strategy = training_strategy(FIXTURE_REPLICAS);
    cadre_strategy *strategy = fixture->strategy;
    assert_public_ok(cadre_variable_create(
        strategy, "weight", CADRE_F32, 1, (const int64_t[]){2}, NULL, &fixture->weight));
    assert_public_ok(
        cadre_variable_create(strategy, "steps", CADRE_I64, 0, NULL, &first, &fixture->steps));
    assert_public_ok(
        cadre_variable_create(strategy, "truth", CADRE_BOOL, 0, NULL, NULL, &fixture->truth));
    assert_public_ok(
        cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, &sum, &fixture->sum));
    assert_public_ok(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_range(0, 6, 1), 2, false),
        &(cadre_input_options){.name = "data"}, &fixture->data));
    fixture->pair = training_f32(2, (const float[]){1, 2});
    fixture->triple = training_f32(3, (const float[]){1, 2, 3});
    assert_public_ok(cadre_tensor_from_f32(1, &fixture->scalar));
}

static void close_mistake_fixture(struct fixture *fixture)
{
    cadre_tensor_release(fixture->pair);
    cadre_tensor_release(fixture->triple);
    cadre_tensor_release(fixture->scalar);
    cadre_strategy_release(fixture->strategy);
}

static bool look(const struct mistake *mistake)
{
    struct fixture fixture = {.mistake = mistake};
    open_mistake_fixture(&fixture);
    cadre_status status = mistake->between_steps != NULL
                              ? mistake->between_steps(&fixture)
                              : cadre_run(fixture.strategy, inside, &fixture, NULL, 0, NULL);
    const char *printed = status == CADRE_OK ? "" : cadre_error_message();
    bool good = status == mistake->status && printed[0] != '\0' &&
                strstr(printed, mistake->expected_text) != NULL;
    if (!good) {
        print_error("%s: %s: %s\n", mistake->what, cadre_status_name(status), printed);
    }
    /* What was wrong is over. */
    if (cadre_run(fixture.strategy, training_nothing, NULL, NULL, 0, NULL) != CADRE_OK) {
        print_error("%s: then %s\n", mistake->what, cadre_error_message());
        good = false;
    }
    close_mistake_fixture(&fixture);
    return good;
}

void mistakes_check(const struct mistake *mistakes, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += look(&mistakes[i]) ? 0 : 1;
    }
    assert_int_equal(wrong, 0);
}
