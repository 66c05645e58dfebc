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
    struct stand *stand = user;
    return stand->mistake->inside(replica, stand);
}

static void open_stand(struct stand *stand)
{
    const cadre_variable_options sum = {.aggregation = CADRE_AGGREGATION_SUM};
    const cadre_variable_options first = {.aggregation = CADRE_AGGREGATION_ONLY_FIRST_REPLICA};
    stand->strategy = training_strategy(STAND_REPLICAS);
    cadre_strategy *strategy = stand->strategy;
    assert_public_ok(cadre_variable_create(
        strategy, "weight", CADRE_F32, 1, (const int64_t[]){2}, NULL, &stand->weight));
    assert_public_ok(
        cadre_variable_create(strategy, "steps", CADRE_I64, 0, NULL, &first, &stand->steps));
    assert_public_ok(
        cadre_variable_create(strategy, "truth", CADRE_BOOL, 0, NULL, NULL, &stand->truth));
    assert_public_ok(cadre_variable_create(strategy, "sum", CADRE_F32, 0, NULL, &sum, &stand->sum));
    assert_public_ok(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_range(0, 6, 1), 2, false),
        &(cadre_input_options){.name = "data"}, &stand->data));
    stand->pair = training_f32(2, (const float[]){1, 2});
    stand->triple = training_f32(3, (const float[]){1, 2, 3});
    assert_public_ok(cadre_tensor_from_f32(1, &stand->scalar));
}

static void close_stand(struct stand *stand)
{
    cadre_tensor_release(stand->pair);
    cadre_tensor_release(stand->triple);
    cadre_tensor_release(stand->scalar);
    cadre_strategy_release(stand->strategy);
}

static bool look(const struct mistake *mistake)
{
    struct stand stand = {.mistake = mistake};
    open_stand(&stand);
    cadre_status status = mistake->outside != NULL
                              ? mistake->outside(&stand)
                              : cadre_run(stand.strategy, inside, &stand, NULL, 0, NULL);
    const char *said = status == CADRE_OK ? "" : cadre_error_message();
    bool good = status == mistake->status && said[0] != '\0' && strstr(said, mistake->says) != NULL;
    if (!good) {
        print_error("%s: %s: %s\n", mistake->what, cadre_status_name(status), said);
    }
    /* What was wrong is over. */
    if (cadre_run(stand.strategy, training_nothing, NULL, NULL, 0, NULL) != CADRE_OK) {
        print_error("%s: then %s\n", mistake->what, cadre_error_message());
        good = false;
    }
    close_stand(&stand);
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
