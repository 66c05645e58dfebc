/* SPDX-License-Identifier: Apache-2.0
 * Parameters on real servers, threads of this process: a training goes on from a checkpoint as if
 * nothing had been, whatever its shards are. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"
#include "cadre/served.h"
#include "tests/lib/test.h"
#include "tests/unit/served/memory.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

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
    strategy->state_part->checkpointer->folder = folder;
    return strategy;
}

static cadre_variable *create(cadre_strategy *strategy, cadre_optimizer_kind kind)
{
    static const int64_t dims[] = {ROWS, WIDTH};
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_UNIFORM, .low = -1, .high = 1, .seed = 4}};
    const cadre_optimizer_options optimizer = {
        .kind = kind, .rate = 0.1, .centered = true, .momentum = 0.5, .weight_decay = 0.01};
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &options, &variable));
    assert_public_ok(memory_train(strategy, variable, &optimizer));
    return variable;
}

static void train(cadre_variable *variable, int from, int to)
{
    float gradient[ROWS * WIDTH];
    for (int step = from; step < to; step++) {
        for (int i = 0; i < ROWS * WIDTH; i++) {
            gradient[i] = (float)((i * 31 + step * 17) % 23 - 11) / 8;
        }
        assert_public_ok(memory_push(variable, gradient, NULL));
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
        for (cadre_optimizer_kind kind = CADRE_OPTIMIZER_SGD; kind <= CADRE_OPTIMIZER_LAMB;
             kind++) {
            const char *folder = test_temp_dir();
            struct environment environment;
            float wanted[ROWS * WIDTH];
            float is[ROWS * WIDTH];
            cadre_strategy *strategy = begin(shards[pair], folder);
            cadre_variable *variable = create(strategy, kind);
            train(variable, 0, 5);
            assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
            assert_public_ok(cadre_save(strategy, true));
            train(variable, 5, 8);
            assert_public_ok(memory_pull(variable, wanted));
            cadre_strategy_release(strategy);

            strategy = begin(shards[pair + 1], folder);
            environment = *strategy->environment;
            snprintf(environment.restore_path, sizeof environment.restore_path,
                "%s/checkpoint-1.json", folder);
            const struct environment *own = strategy->environment;
            strategy->environment = &environment;
            strategy->roster.resume = 1;
            strategy->state = STATE_RESTORES;
            variable = create(strategy, kind);
            assert_int_equal(cadre_variable_components(variable), shards[pair + 1]);
            train(variable, 5, 8);
            assert_public_ok(memory_pull(variable, is));
            /* LAMB's norms are added up by shards: their last bits are of the cut. */
            for (int i = 0; i < ROWS * WIDTH; i++) {
                assert_true(kind == CADRE_OPTIMIZER_LAMB
                                ? fabsf(is[i] - wanted[i]) < 1e-6F
                                : is[i] >= wanted[i] && is[i] <= wanted[i]);
            }
            strategy->state = STATE_PRESENT;
            strategy->environment = own;
            cadre_strategy_release(strategy);
        }
    }
}

/* ---- synchronous steps ---- */

static cadre_strategy *restored(uint64_t shards, const char *folder, struct environment *own)
{
    cadre_strategy *strategy = begin(shards, folder);
    *own = *strategy->environment;
    snprintf(own->restore_path, sizeof own->restore_path, "%s/checkpoint-1.json", folder);
    strategy->environment = own;
    strategy->roster.resume = 1;
    strategy->state = STATE_RESTORES;
    return strategy;
}

static void release_restored(cadre_strategy *strategy, const struct environment *own)
{
    strategy->state = STATE_PRESENT;
    strategy->environment = own;
    cadre_strategy_release(strategy);
}

/* One contribution of two, `value` in each element. */
static cadre_status contribute(cadre_variable *variable, float value, uint64_t step)
{
    const cadre_push_options options = {.contributions = 2, .step = step, .rate = 1};
    float gradient[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) {
        gradient[i] = value;
    }
    return memory_push(variable, gradient, &options);
}

static void check_all(cadre_variable *variable, uint64_t step, float wanted)
{
    float is[ROWS * WIDTH];
    assert_public_ok(memory_pull_step(variable, step, is));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        assert_true(is[i] >= wanted && is[i] <= wanted);
    }
}

static cadre_variable *create_named(cadre_strategy *strategy, const char *name)
{
    static const int64_t dims[] = {ROWS, WIDTH};
    const cadre_optimizer_options sgd = {CADRE_OPTIMIZER_SGD, .rate = 0.1};
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, CADRE_F32, 2, dims, NULL, &variable));
    assert_public_ok(memory_train(strategy, variable, &sgd));
    return variable;
}

static cadre_variable *create_zeros(cadre_strategy *strategy)
{
    return create_named(strategy, "w");
}

struct reader {
    cadre_variable *variable;
    float first;
};

static void *read_first_step(void *user)
{
    struct reader *reader = user;
    float is[ROWS * WIDTH] = {0};
    assert_public_ok(memory_pull_step(reader->variable, 1, is));
    reader->first = is[0];
    return NULL;
}

static void a_step_is_waited_for_whatever_else_is_pushed(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin(4, test_temp_dir());
    cadre_variable *variable = create_zeros(strategy);
    struct reader reader = {.variable = variable};
    float zeros[ROWS * WIDTH] = {0};
    pthread_t thread;
    assert_public_ok(contribute(variable, 1, 0));
    for (int i = 0; i < 5; i++) {
        assert_public_ok(memory_push(variable, zeros, NULL));
    }
    assert_int_equal(pthread_create(&thread, NULL, read_first_step, &reader), 0);
    assert_public_ok(contribute(variable, 3, 0));
    pthread_join(thread, NULL);
    assert_true(reader.first >= -2 && reader.first <= -2); /* the mean */
    cadre_strategy_release(strategy);
}

/* 4 shards; a contribution names rows of two of them, the other one none at all. */
static void steps_of_rows_are_all_shards(void **state)
{
    (void)state;
    static const int64_t ids[] = {9, 0, 9};
    cadre_strategy *strategy = begin(4, test_temp_dir());
    cadre_variable *variable = create_zeros(strategy);
    float rows[3 * WIDTH];
    float is[ROWS * WIDTH];
    for (int i = 0; i < 3 * WIDTH; i++) {
        rows[i] = 2;
    }
    for (uint64_t step = 0; step < 3; step++) {
        const cadre_push_options options = {.contributions = 2, .step = step, .rate = 1};
        assert_public_ok(memory_push_rows(variable, ids, 3, rows, &options));
        assert_public_ok(memory_push_rows(variable, NULL, 0, NULL, &options));
    }
    assert_public_ok(memory_pull_step(variable, 3, is));
    for (int i = 0; i < ROWS; i++) {
        float wanted = i == 9 ? -6 : i == 0 ? -3 : 0;
        assert_true(is[i * WIDTH] >= wanted && is[i * WIDTH] <= wanted);
    }
    cadre_strategy_release(strategy);
}

static void steps_are_numbered_on_after_a_checkpoint(void **state)
{
    (void)state;
    static const uint64_t shards[] = {4, 1, 3};
    const char *folder = test_temp_dir();
    cadre_strategy *strategy = begin(4, folder);
    cadre_variable *variable = create_zeros(strategy);
    for (uint64_t step = 0; step < 3; step++) {
        assert_public_ok(contribute(variable, 1, step));
        assert_public_ok(contribute(variable, 1, step));
    }
    assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
    for (size_t i = 0; i < sizeof shards / sizeof shards[0]; i++) {
        struct environment environment;
        strategy = restored(shards[i], folder, &environment);
        variable = create_zeros(strategy);
        check_all(variable, 3, -3);
        assert_public_error(contribute(variable, 1, 2), CADRE_FAILED_PRECONDITION,
            "step 2 is over, 3 steps were applied");
        assert_public_ok(contribute(variable, 1, 3));
        assert_public_ok(contribute(variable, 1, 3));
        check_all(variable, 4, -4);
        release_restored(strategy, &environment);
    }
}

/* The step of a batch that failed is taken once more, with none of the first attempt in it. */
static void a_step_that_failed_is_begun_again(void **state)
{
    (void)state;
    cadre_strategy *strategy = begin(4, test_temp_dir());
    cadre_variable *variable = create_zeros(strategy);
    cadre_variable *other = create_named(strategy, "b");
    assert_public_ok(contribute(variable, 100, 0));
    assert_public_ok(contribute(other, 1, 0));
    assert_public_ok(contribute(other, 1, 0)); /* had all of it */
    assert_public_ok(cadre_variable_begin_step(variable, 0));
    assert_public_ok(cadre_variable_begin_step(other, 0));
    for (uint64_t step = 0; step < 2; step++) {
        for (int i = 0; i < 2; i++) {
            assert_public_ok(contribute(variable, 1, step));
            assert_public_ok(contribute(other, 1, step));
        }
        check_all(variable, step + 1, -1 - (float)step);
        check_all(other, step + 1, -1 - (float)step);
    }
    cadre_strategy_release(strategy);
}

/* One shard has changed since it was read, the others have not: each takes the push once. */
static void a_push_that_was_too_old_is_made_once_more(void **state)
{
    (void)state;
    static const int64_t first_row = 0;
    const float row[WIDTH] = {0};
    cadre_strategy *strategy = begin(4, test_temp_dir());
    cadre_variable *variable = create_zeros(strategy);
    float values[ROWS * WIDTH];
    cadre_push_options options = {.staleness = 1, .rate = 1};
    uint64_t closure = ps_job_next_closure();
    ps_job_enter_closure(closure);
    assert_public_ok(memory_pull(variable, values));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        values[i] = 1;
    }
    assert_public_ok(memory_push_rows(variable, &first_row, 1, row, NULL));
    assert_int_equal(memory_push(variable, values, &options), CADRE_ABORTED);
    float is[ROWS * WIDTH];
    assert_public_ok(memory_pull(variable, is));
    assert_public_ok(memory_push(variable, values, &options));
    ps_job_enter_closure(0);
    ps_job_push_done(closure);
    assert_public_ok(memory_pull(variable, is));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        assert_true(is[i] >= -1 && is[i] <= -1);
    }
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_goes_on_from_other_shards),
        cmocka_unit_test(a_step_is_waited_for_whatever_else_is_pushed),
        cmocka_unit_test(steps_of_rows_are_all_shards),
        cmocka_unit_test(steps_are_numbered_on_after_a_checkpoint),
        cmocka_unit_test(a_step_that_failed_is_begun_again),
        cmocka_unit_test(a_push_that_was_too_old_is_made_once_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
