/* SPDX-License-Identifier: Apache-2.0
 * Datasets and resources of workers, and what the program gets wrong. */
#include <stdatomic.h>
#include <string.h>

#include "common/base/clock.h"
#include "stage.h"

#define WAIT_TIMEOUT_US (60 * CADRE_US_PER_S)

static atomic_int made;     /* datasets */
static atomic_int alive;    /* resources */
static atomic_int released; /* resources, ever */

/* ten times 2, of each worker */
static cadre_status make_twos(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    static const float twos[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    const int64_t dims[] = {10};
    uint32_t worker = 0;
    cadre_tensor *tensor = NULL;
    (void)user;
    CADRE_TRY(cadre_worker_index(&worker));
    if (context->num_input_pipelines != 1 || context->input_pipeline_id != 0) {
        return cadre_fail(CADRE_INTERNAL, "not one pipeline");
    }
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, twos, &tensor));
    *ret_data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    atomic_fetch_add(&made, 1);
    return CADRE_OK;
}

static cadre_status make_nothing(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    (void)ret_data;
    (void)user;
    return CADRE_OK;
}

static cadre_status make_no_dataset(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    (void)ret_data;
    (void)user;
    return cadre_fail(CADRE_PERMISSION_DENIED, "the clicks are locked");
}

static cadre_status make_counter(void **ret_resource, void *user)
{
    uint32_t worker = 0;
    CADRE_TRY(cadre_worker_index(&worker));
    atomic_fetch_add(&alive, 1);
    *ret_resource = user;
    return CADRE_OK;
}

static void release_counter(void *resource, void *user)
{
    assert_ptr_equal(resource, user);
    atomic_fetch_sub(&alive, 1);
    atomic_fetch_add(&released, 1);
}

/* Returns the next element. */
static cadre_status next(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    uint32_t count = 0;
    (void)user;
    return cadre_closure_next(closure, 0, outputs, 1, &count);
}

/* Adds 1 to the counter, which all workers share here. */
static cadre_status count_up(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    void *counter = NULL;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_closure_resource(closure, 0, &counter));
    atomic_fetch_add((atomic_int *)counter, 1);
    return CADRE_OK;
}

/* Asks for all that is wrong; the arguments are a tensor, a dataset, a resource. */
static cadre_status ask_wrongly(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_tensor *tensor = NULL;
    void *resource = NULL;
    uint32_t count = 0;
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    (void)user;
    assert_public_error(cadre_closure_tensor(closure, 1, &tensor), bad, "the dataset `twos`");
    assert_public_error(cadre_closure_tensor(closure, 2, &tensor), bad, "the resource `counter`");
    assert_public_error(cadre_closure_tensor(closure, 3, &tensor), bad, "argument 3");
    assert_public_error(cadre_closure_next(closure, 0, outputs, 1, &count), bad, "is a tensor");
    assert_public_error(cadre_closure_next(closure, 2, outputs, 1, &count), bad, "the resource");
    assert_public_error(cadre_closure_next(closure, 1, outputs, 0, &count), bad, "1 components");
    assert_public_error(cadre_closure_resource(closure, 1, &resource), bad, "the dataset `twos`");
    assert_public_error(cadre_closure_resource(closure, 0, &resource), bad, "is a tensor");
    assert_public_error(cadre_closure_tensor(NULL, 0, &tensor), bad, "'closure'");
    assert_public_error(cadre_closure_tensor(closure, 0, NULL), bad, "'ret_tensor'");
    assert_public_error(cadre_join(NULL), CADRE_FAILED_PRECONDITION, "called in a closure");
    outputs[1] = cadre_tensor_retain(tensor);
    CADRE_TRY(cadre_closure_tensor(closure, 0, &tensor));
    outputs[1] = cadre_tensor_retain(tensor); /* and a gap before it */
    return CADRE_OK;
}

static cadre_closure_argument of(cadre_per_worker *per_worker)
{
    return (cadre_closure_argument){.per_worker = per_worker};
}

static bool made_so_often(void *data)
{
    return atomic_load(&made) == *(int *)data;
}

/* coordinator/schedule_join_counts, and the end of a dataset. */
static void datasets_are_each_workers_own(void **state)
{
    (void)state;
    struct stage stage;
    cadre_per_worker *twos = NULL;
    cadre_remote_value *values[30];
    float sum = 0;
    int both = 2; /* workers, whether they had a closure or not */
    atomic_store(&made, 0);
    stage_open_all(&stage, 2);
    assert_public_ok(cadre_create_per_worker_dataset(stage.strategy, "twos", &twos));
    const cadre_closure_argument argument = of(twos);
    for (int i = 0; i < 10; i++) {
        assert_public_ok(cadre_schedule(stage.strategy, "next", &argument, 1, &values[i]));
    }
    assert_public_ok(cadre_join(stage.strategy));
    for (int i = 0; i < 10; i++) {
        cadre_tensor *output = NULL;
        assert_public_ok(cadre_fetch(values[i], &output, 1, NULL));
        sum += *(const float *)cadre_tensor_const_data(output);
        cadre_tensor_release(output);
        cadre_remote_value_release(values[i]);
    }
    assert_true(sum == 20);
    /* Whatever worker has them: 20 elements there are. */
    for (int i = 0; i < 11; i++) {
        cadre_status status = cadre_schedule(stage.strategy, "next", &argument, 1, NULL);
        if (status != CADRE_OK) {
            assert_int_equal(status, CADRE_OUT_OF_RANGE);
        }
    }
    cadre_status status = cadre_join(stage.strategy);
    assert_true(status == CADRE_OK || status == CADRE_OUT_OF_RANGE);
    assert_true(test_wait(made_so_often, &both, WAIT_TIMEOUT_US));
    stage_close(&stage);
}

/* A worker that comes back has it again, from its beginning. */
static void what_is_lost_is_made_again(void **state)
{
    (void)state;
    struct stage stage;
    cadre_per_worker *twos = NULL;
    cadre_per_worker *counter = NULL;
    atomic_store(&made, 0);
    atomic_store(&released, 0);
    stage_open_all(&stage, 1);
    assert_public_ok(cadre_create_per_worker_dataset(stage.strategy, "twos", &twos));
    assert_public_ok(cadre_create_per_worker_resource(stage.strategy, "counter", &counter));
    const cadre_closure_argument argument = of(twos);
    for (int attempt = 1; attempt <= 3; attempt++) {
        for (int i = 0; i < 10; i++) {
            assert_public_ok(cadre_schedule(stage.strategy, "next", &argument, 1, NULL));
        }
        assert_public_ok(cadre_join(stage.strategy));
        assert_int_equal(atomic_load(&made), attempt);
        assert_true(scheduler_drop(&stage.chief, 0));
        int attempts = attempt + 1;
        assert_true(test_wait(made_so_often, &attempts, WAIT_TIMEOUT_US));
    }
    stage_close(&stage);
    assert_int_equal(atomic_load(&alive), 0);
    assert_true(atomic_load(&released) >= 3);
}

/* What could not be made fails the closures that use it, and no others. */
static void what_fails_harms_only_its_closures(void **state)
{
    (void)state;
    struct stage stage;
    cadre_per_worker *locked = NULL;
    cadre_per_worker *nothing = NULL;
    cadre_per_worker *counter = NULL;
    stage_open_all(&stage, 2);
    assert_public_ok(cadre_create_per_worker_dataset(stage.strategy, "clicks", &locked));
    assert_public_ok(cadre_create_per_worker_dataset(stage.strategy, "nothing", &nothing));
    assert_public_ok(cadre_create_per_worker_resource(stage.strategy, "counter", &counter));
    cadre_closure_argument argument = of(counter);
    for (int i = 0; i < 6; i++) {
        assert_public_ok(cadre_schedule(stage.strategy, "count_up", &argument, 1, NULL));
    }
    assert_public_ok(cadre_join(stage.strategy));
    argument = of(locked);
    assert_public_ok(cadre_schedule(stage.strategy, "next", &argument, 1, NULL));
    assert_public_error(cadre_join(stage.strategy), CADRE_PERMISSION_DENIED, "are locked");
    assert_public_ok(cadre_schedule(stage.strategy, "next", &argument, 1, NULL));
    assert_public_error(cadre_join(stage.strategy), CADRE_PERMISSION_DENIED,
        "argument 0 of `next` is the dataset `clicks`, which worker");
    argument = of(nothing);
    assert_public_ok(cadre_schedule(stage.strategy, "next", &argument, 1, NULL));
    assert_public_error(cadre_join(stage.strategy), CADRE_INVALID_ARGUMENT, "made no dataset");
    stage_close(&stage);
}

static void closures_ask_for_what_they_have(void **state)
{
    (void)state;
    struct stage stage;
    cadre_per_worker *twos = NULL;
    cadre_per_worker *counter = NULL;
    cadre_tensor *tensor = stage_i64(1);
    stage_open_all(&stage, 1);
    assert_public_ok(cadre_create_per_worker_dataset(stage.strategy, "twos", &twos));
    assert_public_ok(cadre_create_per_worker_resource(stage.strategy, "counter", &counter));
    const cadre_closure_argument arguments[] = {{.tensor = tensor}, of(twos), of(counter)};
    assert_public_ok(cadre_schedule(stage.strategy, "ask_wrongly", arguments, 3, NULL));
    assert_public_error(
        cadre_join(stage.strategy), CADRE_INVALID_ARGUMENT, "made output 1 and left output 0");
    cadre_tensor_release(tensor);
    stage_close(&stage);
}

/* --- what the chief's program gets wrong --- */

static void registering_is_checked(void **state)
{
    (void)state;
    char name[200];
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_public_error(cadre_function_register(NULL, next, NULL), bad, "NULL");
    assert_public_error(cadre_function_register("", next, NULL), bad, "empty");
    assert_public_error(cadre_function_register(name, next, NULL), bad, "too long");
    assert_public_error(cadre_function_register("a\n", next, NULL), bad, "0x0a");
    assert_public_error(cadre_function_register("good", NULL, NULL), bad, "'function'");
    assert_public_error(cadre_dataset_register("good", NULL, NULL), bad, "'function'");
    assert_public_error(cadre_resource_register("good", NULL, NULL, NULL), bad, "'function'");
    assert_public_error(
        cadre_function_register("next", next, NULL), CADRE_ALREADY_EXISTS, "`next`");
    assert_public_error(
        cadre_dataset_register("twos", make_twos, NULL), CADRE_ALREADY_EXISTS, "`twos`");
}

static cadre_status call_in_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct stage *stage = user;
    (void)replica;
    (void)inputs;
    (void)outputs;
    assert_public_error(cadre_schedule(stage->strategy, "quick", NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "cadre_schedule was called inside a replica function");
    assert_public_error(cadre_join(stage->strategy), CADRE_FAILED_PRECONDITION, "cadre_join");
    return CADRE_OK;
}

static void scheduling_is_checked(void **state)
{
    (void)state;
    struct stage stage;
    cadre_per_worker *twos = NULL;
    cadre_tensor *tensor = stage_i64(1);
    cadre_tensor *outputs[1] = {NULL};
    bool done = false;
    uint32_t worker = 0;
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    const cadre_status refused = CADRE_FAILED_PRECONDITION;
    stage_open(&stage, 1);
    cadre_strategy *other = training_strategy(1);
    cadre_strategy *s = stage.strategy;
    assert_public_ok(cadre_create_per_worker_dataset(s, "twos", &twos));
    static cadre_closure_argument many[CADRE_CLOSURE_ARGUMENTS_MAX + 1];
    cadre_closure_argument both = {.tensor = tensor, .per_worker = twos};
    assert_public_error(
        cadre_schedule(s, "absent", NULL, 0, NULL), CADRE_NOT_FOUND, "registered here: `");
    assert_public_error(cadre_schedule(s, NULL, NULL, 0, NULL), bad, "'function'");
    assert_public_error(cadre_schedule(s, "next", NULL, 1, NULL), bad, "'arguments'");
    assert_public_error(cadre_schedule(s, "next", many, 1, NULL), bad, "neither");
    assert_public_error(cadre_schedule(s, "next", &both, 1, NULL), bad, "both");
    assert_public_error(cadre_schedule(s, "next", many, 65, NULL), bad, "at most 64");
    both = (cadre_closure_argument){.per_worker = (cadre_per_worker *)(void *)&stage};
    assert_public_error(cadre_schedule(s, "next", &both, 1, NULL), bad, "another strategy");
    assert_public_error(cadre_schedule(NULL, "next", NULL, 0, NULL), bad, "'strategy'");
    assert_public_error(cadre_schedule(other, "next", NULL, 0, NULL), refused,
        "needs a strategy with parameter servers");
    assert_public_error(cadre_join(other), refused, "parameter servers");
    assert_public_error(cadre_done(s, NULL), bad, "'ret_done'");
    assert_public_error(cadre_done(other, &done), refused, "parameter servers");
    assert_public_error(cadre_create_per_worker_dataset(s, "counter", &twos), CADRE_NOT_FOUND,
        "no dataset `counter`");
    assert_public_error(
        cadre_create_per_worker_resource(s, "twos", &twos), CADRE_NOT_FOUND, "no resource `twos`");
    assert_public_error(cadre_create_per_worker_dataset(s, "twos", NULL), bad, "'ret_per_worker'");
    assert_public_error(cadre_create_per_worker_dataset(s, NULL, &twos), bad, "'name'");
    assert_public_error(cadre_fetch(NULL, outputs, 1, NULL), bad, "'value'");
    assert_public_error(cadre_worker_index(&worker), refused, "runs nothing for a worker");
    assert_public_error(cadre_worker_index(NULL), bad, "'ret_index'");
    assert_false(cadre_remote_value_ready(NULL));
    assert_false(cadre_closure_cancelled(NULL));
    assert_int_equal(cadre_workers_connected(other), 0);
    cadre_remote_value_release(NULL);
    assert_public_ok(cadre_run(s, call_in_replica, &stage, NULL, 0, NULL));
    cadre_tensor_release(tensor);
    cadre_strategy_release(other);
    stage_close(&stage);
    assert_public_error(
        cadre_schedule(s, "next", NULL, 0, NULL), refused, "after the strategy had ended");
    assert_public_error(cadre_join(s), refused, "after the strategy had ended");
    assert_int_equal(cadre_workers_connected(s), 0);
}

static atomic_int counted;

static int register_more(void **state)
{
    (void)state;
    assert_public_ok(cadre_function_register("next", next, NULL));
    assert_public_ok(cadre_function_register("count_up", count_up, NULL));
    assert_public_ok(cadre_function_register("ask_wrongly", ask_wrongly, NULL));
    assert_public_ok(cadre_dataset_register("twos", make_twos, NULL));
    assert_public_ok(cadre_dataset_register("clicks", make_no_dataset, NULL));
    assert_public_ok(cadre_dataset_register("nothing", make_nothing, NULL));
    assert_public_ok(cadre_resource_register("counter", make_counter, release_counter, &counted));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datasets_are_each_workers_own),
        cmocka_unit_test(what_is_lost_is_made_again),
        cmocka_unit_test(what_fails_harms_only_its_closures),
        cmocka_unit_test(closures_ask_for_what_they_have),
        cmocka_unit_test(registering_is_checked),
        cmocka_unit_test(scheduling_is_checked),
    };
    return cmocka_run_group_tests(tests, register_more, NULL);
}
