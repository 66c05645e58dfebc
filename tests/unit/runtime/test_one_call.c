/* SPDX-License-Identifier: Apache-2.0
 * A strategy is in one call at a time: one that another thread makes meanwhile, or a function of
 * the program that is called in it, gets an error and changes nothing. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "training.h"

#define STEPS 200

static void assert_refused(cadre_status status, const char *function, const char *under_way)
{
    assert_int_equal(status, CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), function));
    assert_non_null(strstr(cadre_error_message(), "was called while "));
    if (strstr(cadre_error_message(), under_way) == NULL) {
        fail_msg("'%s' does not name %s", cadre_error_message(), under_way);
    }
}

/* Each call that a function of the program may make. */
static void call_all(cadre_strategy *strategy, const char *under_way)
{
    cadre_variable *variable;
    cadre_distributed_dataset *data;
    uint64_t position = cadre_strategy_position(strategy);
    assert_refused(
        cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL), "cadre_run", under_way);
    assert_refused(cadre_barrier(), "cadre_barrier", under_way);
    assert_refused(cadre_save(strategy, true), "cadre_save", under_way);
    assert_refused(cadre_report(strategy, "x", 1), "cadre_report", under_way);
    assert_refused(cadre_variable_create(strategy, "inner", CADRE_F32, 0, NULL, NULL, &variable),
        "cadre_variable_create", under_way);
    assert_refused(cadre_distribute_dataset(strategy, cadre_dataset_range(0, 1, 1), NULL, &data),
        "cadre_distribute_dataset", under_way);
    cadre_strategy_release(strategy);
    assert_refused(CADRE_FAILED_PRECONDITION, "cadre_strategy_release", under_way);
    assert_int_equal(cadre_finish(strategy), 1);
    assert_refused(CADRE_FAILED_PRECONDITION, "cadre_finish", under_way);
    assert_int_equal(cadre_strategy_position(strategy), position);
}

static void assert_goes_on(cadre_strategy *strategy)
{
    uint64_t position = cadre_strategy_position(strategy);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_barrier());
    assert_int_equal(cadre_strategy_position(strategy), position + 1);
    assert_int_equal(cadre_finish(strategy), 0);
}

/* ---- functions of the program ---- */

struct caller {
    cadre_strategy *strategy;
    cadre_variable *other;
    int calls;
};

static cadre_status calling_initializer(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)dtype;
    struct caller *caller = user;
    cadre_random stream;
    caller->calls++;
    call_all(caller->strategy, "cadre_variable_create");
    cadre_tensor *two = training_f32(2, (const float[]){1, 2});
    assert_refused(cadre_variable_assign(NULL, caller->other, CADRE_ASSIGN, two),
        "cadre_variable_assign", "cadre_variable_create");
    cadre_tensor_release(two);
    assert_public_ok(cadre_random_stream(NULL, 7, "initial", &stream)); /* changes nothing */
    memset(values, 0, (size_t)count * sizeof(float));
    return CADRE_OK;
}

static void initializers_call_nothing_back(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        struct caller caller = {.strategy = training_strategy(replicas)};
        caller.other = training_variable(caller.strategy);
        const cadre_variable_options options = {.initializer = {.kind = CADRE_INITIALIZER_FUNCTION,
                                                    .function = calling_initializer,
                                                    .user = &caller}};
        cadre_variable *variable;
        assert_public_ok(
            cadre_variable_create(caller.strategy, "w", CADRE_F32, 0, NULL, &options, &variable));
        assert_int_equal(caller.calls, 1);
        assert_goes_on(caller.strategy);
    }
}

static cadre_status calling_input(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    struct caller *caller = user;
    caller->calls++;
    call_all(caller->strategy, "cadre_distribute_datasets_from_function");
    *ret_data = cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 2, true);
    return CADRE_OK;
}

static void dataset_functions_call_nothing_back(void **state)
{
    (void)state;
    struct caller caller = {.strategy = training_strategy(2)};
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    assert_public_ok(cadre_distribute_datasets_from_function(
        caller.strategy, calling_input, &caller, NULL, &data));
    assert_true(caller.calls > 0);
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    assert_goes_on(caller.strategy);
}

static cadre_status calling_value(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)context;
    struct caller *caller = user;
    caller->calls++;
    call_all(caller->strategy, "cadre_values_from_function");
    *ret_value = (cadre_element){.count = 1};
    return cadre_tensor_from_f32(1, &ret_value->tensors[0]);
}

static void value_functions_call_nothing_back(void **state)
{
    (void)state;
    struct caller caller = {.strategy = training_strategy(2)};
    cadre_per_replica *values;
    assert_public_ok(cadre_values_from_function(caller.strategy, calling_value, &caller, &values));
    assert_int_equal(caller.calls, 2);
    cadre_per_replica_release(values);
    assert_goes_on(caller.strategy);
}

/* ---- threads ---- */

/* A call that stays where it is until `go`. */
struct held {
    cadre_strategy *strategy;
    sem_t inside;
    sem_t go;
};

static cadre_status hold_initializer(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)dtype;
    struct held *held = user;
    memset(values, 0, (size_t)count * sizeof(float));
    sem_post(&held->inside);
    return sem_wait(&held->go) == 0 ? CADRE_OK : CADRE_UNKNOWN;
}

static void *hold_creation(void *user)
{
    struct held *held = user;
    const cadre_variable_options options = {
        .initializer = {
            .kind = CADRE_INITIALIZER_FUNCTION, .function = hold_initializer, .user = held}};
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(held->strategy, "held", CADRE_F32, 0, NULL, &options, &variable));
    return NULL;
}

static cadre_status hold_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct held *held = user;
    if (cadre_replica_id(replica) > 0) {
        return CADRE_OK;
    }
    sem_post(&held->inside);
    return sem_wait(&held->go) == 0 ? CADRE_OK : CADRE_UNKNOWN;
}

static void *hold_step(void *user)
{
    struct held *held = user;
    assert_public_ok(cadre_run(held->strategy, hold_replica, held, NULL, 0, NULL));
    return NULL;
}

static void check_held(void *(*hold)(void *), const char *under_way)
{
    struct held held = {.strategy = training_strategy(2)};
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    pthread_t thread;
    assert_public_ok(cadre_distribute_dataset(
        held.strategy, cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false), NULL, &data));
    assert_int_equal(sem_init(&held.inside, 0, 0), 0);
    assert_int_equal(sem_init(&held.go, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold, &held), 0);
    assert_int_equal(sem_wait(&held.inside), 0);
    call_all(held.strategy, under_way);
    assert_false(cadre_next_epoch(data, 1, NULL));
    assert_refused(CADRE_FAILED_PRECONDITION, "cadre_next_epoch", under_way);
    assert_refused(cadre_next(data, &batch), "cadre_next", under_way);
    assert_int_equal(sem_post(&held.go), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_public_ok(cadre_distributed_status(data)); /* nothing is wrong with it */
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    assert_goes_on(held.strategy); /* by another thread than before, which is well */
    sem_destroy(&held.inside);
    sem_destroy(&held.go);
}

static void another_thread_is_refused(void **state)
{
    (void)state;
    check_held(hold_creation, "cadre_variable_create");
    check_held(hold_step, "cadre_run");
}

struct racer {
    cadre_strategy *strategy;
    cadre_variable *variable;
    pthread_barrier_t *start;
    int number;
    uint64_t steps;
};

/* One trains, another one makes calls outside of steps, the third changes a variable. */
static cadre_status race_once(struct racer *racer)
{
    static const float values[] = {1, 2};
    if (racer->number == 0) {
        return cadre_run(racer->strategy, training_nothing, NULL, NULL, 0, NULL);
    }
    if (racer->number == 1) {
        return cadre_barrier();
    }
    cadre_tensor *two = training_f32(2, values);
    cadre_status status = cadre_variable_assign(NULL, racer->variable, CADRE_ASSIGN, two);
    cadre_tensor_release(two);
    return status;
}

static void *race(void *user)
{
    struct racer *racer = user;
    pthread_barrier_wait(racer->start);
    for (uint64_t done = 0; done < STEPS;) {
        cadre_status status = race_once(racer);
        if (status == CADRE_OK) {
            done++;
            racer->steps += racer->number != 1;
        } else if (status != CADRE_FAILED_PRECONDITION) {
            fail_msg("%s", cadre_error_message());
        }
    }
    return NULL;
}

static void threads_at_once_lose_nothing(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = training_variable(strategy);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    pthread_barrier_t start;
    pthread_t threads[3];
    struct racer racers[3];
    uint64_t steps = 1;
    assert_int_equal(pthread_barrier_init(&start, NULL, 3), 0);
    for (int i = 0; i < 3; i++) {
        racers[i] = (struct racer){
            .strategy = strategy, .variable = variable, .start = &start, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        steps += racers[i].steps;
    }
    assert_int_equal(cadre_strategy_position(strategy), steps);
    pthread_barrier_destroy(&start);
    assert_goes_on(strategy);
}

/* One ends it while the other trains: the latter's last call returns that it had ended. */
static void *train_until_it_ends(void *user)
{
    struct racer *racer = user;
    cadre_status status = CADRE_OK;
    pthread_barrier_wait(racer->start);
    while (status == CADRE_OK || strstr(cadre_error_message(), "was called while ") != NULL) {
        status = cadre_run(racer->strategy, training_nothing, NULL, NULL, 0, NULL);
    }
    assert_int_equal(status, CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "had ended"));
    return NULL;
}

static void an_end_comes_between_two_steps(void **state)
{
    (void)state;
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    for (int round = 0; round < 20; round++) {
        struct racer racer = {.strategy = training_strategy(2), .start = &start};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, train_until_it_ends, &racer), 0);
        pthread_barrier_wait(&start);
        while (cadre_strategy_local_replicas(racer.strategy) != 0) {
            cadre_strategy_release(racer.strategy);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initializers_call_nothing_back),
        cmocka_unit_test(dataset_functions_call_nothing_back),
        cmocka_unit_test(value_functions_call_nothing_back),
        cmocka_unit_test(another_thread_is_refused),
        cmocka_unit_test(threads_at_once_lose_nothing),
        cmocka_unit_test(an_end_comes_between_two_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
