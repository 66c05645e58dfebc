/* SPDX-License-Identifier: Apache-2.0
 * Comparisons that hash a part of the state: what is hashed, and when what differs is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "training.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static const char *self;

#define FROZEN_BYTES (40 * 65536 + 17)
#define EVERY        3
#define TURNS        8 /* in which all of such a state is hashed */

/* Each step counts in `written`. */
static cadre_status count_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    float *counted = cadre_variable_write(replica, user);
    if (counted == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    counted[0] += 1;
    return CADRE_OK;
}

static cadre_status run(cadre_strategy *strategy, cadre_variable *written)
{
    return cadre_run(strategy, count_up, written, NULL, 0, NULL);
}

/* Two replicas that are compared each few steps, with much that no step writes. */
static cadre_strategy *frozen_strategy(cadre_variable **ret_written, cadre_variable **ret_frozen)
{
    const int64_t bytes = FROZEN_BYTES;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(
        cadre_variable_create(strategy, "written", CADRE_F32, 0, NULL, NULL, ret_written));
    assert_public_ok(
        cadre_variable_create(strategy, "frozen", CADRE_U8, 1, &bytes, NULL, ret_frozen));
    strategy->digests->interval.fixed = EVERY;
    return strategy;
}

/* So many steps, and on to one that was compared. */
static void run_until_verified(cadre_strategy *strategy, cadre_variable *written, uint64_t least)
{
    uint64_t steps = 0;
    do {
        assert_public_ok(run(strategy, written));
        steps++;
    } while (steps < least || strategy->step.verified.position + 1 != strategy_position(strategy));
}

/* How many steps are applied until one finds what differs, of at most so many. */
static uint64_t steps_until_found(cadre_strategy *strategy, cadre_variable *written, uint64_t most)
{
    for (uint64_t steps = 0; steps <= most; steps++) {
        if (run(strategy, written) != CADRE_OK) {
            assert_non_null(strstr(cadre_error_message(), "replica 0 and replica 1 do not hold"));
            return steps;
        }
    }
    fail_msg("not found within %u steps", (unsigned)most);
    return 0;
}

static void what_no_step_writes_is_hashed_by_turns(void **state)
{
    (void)state;
    cadre_variable *written;
    cadre_variable *frozen;
    cadre_strategy *strategy = frozen_strategy(&written, &frozen);
    const size_t *hashed = &strategy->digests->hashes[0].hashed;
    const size_t few = sizeof(float);
    assert_public_ok(run(strategy, written));
    assert_int_equal(*hashed, FROZEN_BYTES + few); /* a generation begins */
    for (int round = 0; round < 2; round++) {
        size_t sum = 0;
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            for (uint32_t step = 0; step < EVERY; step++) {
                assert_public_ok(run(strategy, written));
            }
            assert_int_equal(strategy->step.verified.position + 1, strategy_position(strategy));
            assert_true(*hashed < FROZEN_BYTES / 4);
            sum += *hashed;
        }
        /* What is written also when it is not its turn. */
        assert_in_range(sum, FROZEN_BYTES + TURNS * few, FROZEN_BYTES + 2 * TURNS * few);
    }
    assert_int_equal(cadre_finish(strategy), 0);
}

static void a_flip_is_found_wherever_it_is(void **state)
{
    (void)state;
    for (size_t at = 0; at < FROZEN_BYTES; at += 5 * 65536 - 1) {
        cadre_variable *written;
        cadre_variable *frozen;
        cadre_strategy *strategy = frozen_strategy(&written, &frozen);
        run_until_verified(strategy, written, at % 11);
        ((uint8_t *)frozen->components[at % 2].value)[at] ^= 1;
        assert_in_range(steps_until_found(strategy, written, TURNS * EVERY), 0, TURNS * EVERY);
        assert_non_null(strstr(cadre_error_message(), "variable 'frozen'"));
        cadre_strategy_release(strategy);
        strategy = frozen_strategy(&written, &frozen);
        run_until_verified(strategy, written, at % 11);
        *(float *)written->components[at % 2].value += 1;
        assert_in_range(steps_until_found(strategy, written, EVERY), 0, EVERY);
        cadre_strategy_release(strategy);
    }
}

/* No old hash counts for a checkpoint, be it one that is due or one on demand. */
static void where_a_checkpoint_is_taken_all_is_compared(void **state)
{
    (void)state;
    static const struct {
        uint64_t every; /* a checkpoint each so many steps; 0: none */
        uint64_t asked; /* a checkpoint on demand there; 0: none */
        uint64_t whole; /* where all is compared */
    } cases[] = {{11, 0, 11}, {0, 10, 11}, {0, 9, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_variable *written;
        cadre_variable *frozen;
        cadre_strategy *strategy = frozen_strategy(&written, &frozen);
        struct checkpointer *checkpointer = strategy->state_part->checkpointer;
        checkpointer->every = cases[i].every;
        for (uint64_t position = 0; position < 15; position++) {
            bool asked = position > 0 && position == cases[i].asked;
            checkpointer->tried_at = asked ? position : checkpointer->tried_at;
            assert_public_ok(run(strategy, written));
            bool compared = strategy->step.verified.position == position;
            bool whole = strategy->digests->hashes[0].hashed == state_bytes(strategy);
            assert_int_equal(compared && whole, position == 0 || position == cases[i].whole);
        }
        ((uint8_t *)frozen->components[1].value)[7] ^= 1;
        assert_public_error(cadre_save(strategy, true), CADRE_DATA_LOSS, "in variable 'frozen'");
        cadre_strategy_release(strategy);
    }
}

/* The chief's schedule is that of all tasks: here a checkpoint each 7 steps. */
static int task_in_turns(void)
{
    cadre_strategy *strategy;
    cadre_variable *written;
    cadre_variable *frozen;
    const int64_t bytes = FROZEN_BYTES;
    setenv("CADRE_VERIFY_STATE", "3", 1);
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "written", CADRE_F32, 0, NULL, NULL, &written));
    CADRE_CHECK(cadre_variable_create(strategy, "frozen", CADRE_U8, 1, &bytes, NULL, &frozen));
    for (uint64_t i = 0; i < 30; i++) {
        CADRE_CHECK(run(strategy, written));
        size_t hashed = strategy->digests->hashes[0].hashed;
        bool whole = i % 7 == 0; /* the first one, too */
        uint64_t verified = i - i % 7 % 3;
        if (strategy->step.verified.position != verified ||
            (verified == i && whole != (hashed == state_bytes(strategy)))) {
            fprintf(stderr, "step %d verified %d, and hashed %zu bytes\n", (int)i,
                (int)strategy->step.verified.position, hashed);
            return 5;
        }
    }
    return cadre_finish(strategy);
}

static void all_tasks_take_the_same_turns(void **state)
{
    (void)state;
    struct job_end end;
    const char *arguments[] = {"turns"};
    const struct local_options options = {.program = self,
        .arguments = arguments,
        .argument_count = 1,
        .tasks = 2,
        .replicas = 1,
        .output = test_temp_dir(),
        .checkpoint_every = 7,
        .checkpoints_kept = 10,
        .grace_us = 1000000};
    job_run(&options, &end);
    if (end.exit_code != 0) {
        job_wrong("turns", &end);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_step_writes_is_hashed_by_turns),
        cmocka_unit_test(a_flip_is_found_wherever_it_is),
        cmocka_unit_test(where_a_checkpoint_is_taken_all_is_compared),
        cmocka_unit_test(all_tasks_take_the_same_turns),
    };
    self = argv[0];
    return argc > 1 ? task_in_turns() : cmocka_run_group_tests(tests, NULL, NULL);
}
