/* SPDX-License-Identifier: Apache-2.0
 * Two threads of a program that give back the same reference of a value, or take one of what ends:
 * one of them gets an error, whichever comes first, and there is no other effect. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/lib/rounds.h"
#include "training.h"

#define ROUNDS TEST_ROUNDS(200000u)

static cadre_status make_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)user;
    return cadre_tensor_from_i64(1, &outputs[0]);
}

static void assert_not_released(cadre_per_replica *value)
{
    assert_public_ok(cadre_scope_enter(cadre_strategy_current()));
    assert_public_ok(cadre_scope_leave(cadre_strategy_current()));
    cadre_per_replica_release(value);
    assert_non_null(strstr(cadre_error_message(), "the program holds no reference"));
}

/* It gives back one more than it takes: where the other thread holds one, that one's. */
static void *take_and_give_twice(void *argument)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        cadre_per_replica_retain(argument);
        cadre_per_replica_release(argument);
        cadre_per_replica_release(argument);
    }
    return NULL;
}

static void a_reference_of_the_library_is_given_back_by_no_thread(void **state)
{
    (void)state;
    pthread_t other;
    cadre_per_replica *output = NULL;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(cadre_run(strategy, make_one, NULL, NULL, 1, &output));
    assert_int_equal(pthread_create(&other, NULL, take_and_give_twice, output), 0);
    take_and_give_twice(output);
    pthread_join(other, NULL);
    assert_int_equal(cadre_per_replica_count(output), 2);
    assert_not_released(output);
    cadre_strategy_release(strategy);
}

/* Of another thread. */
struct taker {
    cadre_per_replica *_Atomic newest;
    atomic_bool ends;
};

static void *take_newest(void *argument)
{
    struct taker *taker = argument;
    while (!atomic_load(&taker->ends)) {
        cadre_per_replica_release(cadre_per_replica_retain(atomic_load(&taker->newest)));
    }
    return NULL;
}

/* It would end once more, and be two values at a time. */
static void a_value_that_ends_is_retained_by_no_thread(void **state)
{
    (void)state;
    pthread_t other;
    struct taker taker = {.newest = NULL};
    cadre_strategy *strategy = training_strategy(1);
    cadre_tensor *tensor = NULL;
    assert_public_ok(cadre_tensor_from_i64(1, &tensor));
    assert_int_equal(pthread_create(&other, NULL, take_newest, &taker), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        cadre_per_replica *values[2] = {NULL};
        for (int i = 0; i < 2; i++) {
            assert_public_ok(cadre_values_from_tensors(strategy, &tensor, 1, &values[i]));
        }
        assert_ptr_not_equal(values[0], values[1]);
        atomic_store(&taker.newest, values[0]);
        cadre_per_replica_release(values[0]);
        assert_int_equal(cadre_per_replica_count(values[1]), 1);
        cadre_per_replica_release(values[1]);
    }
    atomic_store(&taker.ends, true);
    pthread_join(other, NULL);
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_of_the_library_is_given_back_by_no_thread),
        cmocka_unit_test(a_value_that_ends_is_retained_by_no_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
