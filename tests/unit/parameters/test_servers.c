/* SPDX-License-Identifier: Apache-2.0
 * Parameters on real servers, threads of this process: a training goes on from a checkpoint as if
 * nothing had been, whatever its shards are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"
#include "cadre/parameter.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"
#include "worker/runtime/state/checkpointer.h"
#include "worker/runtime/strategy.h"

#define ROWS  10
#define WIDTH 7

static cadre_strategy *begin(uint64_t shards, const char *folder)
{
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = shards}};
    cadre_strategy *strategy;
    setenv("CADRE_SERVERS", "3", 1);
    cadre_strategy_release(training_strategy(1)); /* the library is begun */
    assert_public_ok(cadre_strategy_parameter_server(&options, &strategy));
    cadre_show_progress(strategy, false);
    strategy->checkpointer->folder = folder;
    return strategy;
}

static cadre_parameter *create(cadre_strategy *strategy, cadre_optimizer_kind kind)
{
    static const int64_t dims[] = {ROWS, WIDTH};
    const cadre_parameter_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_UNIFORM, .low = -1, .high = 1, .seed = 4},
        .optimizer = {.kind = kind, .rate = 0.1}};
    cadre_parameter *parameter;
    assert_public_ok(
        cadre_parameter_create(strategy, "w", CADRE_F32, 2, dims, &options, &parameter));
    return parameter;
}

static void train(cadre_parameter *parameter, int from, int to)
{
    float gradient[ROWS * WIDTH];
    for (int step = from; step < to; step++) {
        for (int i = 0; i < ROWS * WIDTH; i++) {
            gradient[i] = (float)((i * 31 + step * 17) % 23 - 11) / 8;
        }
        assert_public_ok(cadre_parameter_push(parameter, gradient, NULL));
    }
}

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static void training_goes_on_from_other_shards(void **state)
{
    (void)state;
    static const uint64_t shards[] = {4, 1, 1, 3};
    for (int pair = 0; pair < 4; pair += 2) {
        for (cadre_optimizer_kind kind = CADRE_OPTIMIZER_SGD; kind <= CADRE_OPTIMIZER_ADAM;
             kind++) {
            const char *folder = test_temp_dir();
            struct environment environment;
            float wanted[ROWS * WIDTH];
            float is[ROWS * WIDTH];
            cadre_strategy *strategy = begin(shards[pair], folder);
            cadre_parameter *parameter = create(strategy, kind);
            train(parameter, 0, 5);
            assert_public_ok(cadre_run(strategy, nothing, NULL, 0, NULL, NULL));
            assert_public_ok(cadre_save(strategy, true));
            train(parameter, 5, 8);
            assert_public_ok(cadre_parameter_pull(parameter, wanted, NULL));
            cadre_strategy_release(strategy);

            strategy = begin(shards[pair + 1], folder);
            environment = *strategy->environment;
            snprintf(environment.restore_path, sizeof environment.restore_path,
                "%s/checkpoint-1.json", folder);
            const struct environment *own = strategy->environment;
            strategy->environment = &environment;
            strategy->roster.resume = 1;
            strategy->state = STATE_RESTORES;
            parameter = create(strategy, kind);
            assert_int_equal(cadre_parameter_shards(parameter), shards[pair + 1]);
            train(parameter, 5, 8);
            assert_public_ok(cadre_parameter_pull(parameter, is, NULL));
            assert_memory_equal(is, wanted, sizeof wanted);
            strategy->state = STATE_PRESENT;
            strategy->environment = own;
            cadre_strategy_release(strategy);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_goes_on_from_other_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
