/* SPDX-License-Identifier: Apache-2.0
 * Values, variables and strategies as people see them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "training.h"

static const char *self;
static char *text;
static size_t bytes;

static FILE *begin(void)
{
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    return to;
}

static void check(FILE *to, const char *wanted)
{
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
}

static void check_value(const cadre_per_replica *value, const char *wanted)
{
    FILE *to = begin();
    assert_public_ok(cadre_value_print(value, to));
    check(to, wanted);
}

static void check_variable(const cadre_variable *variable, const char *wanted)
{
    FILE *to = begin();
    assert_public_ok(cadre_variable_print(variable, to));
    check(to, wanted);
}

static void values_are_per_replica(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensors[] = {
        training_f32(1, (const float[]){0.5f}), training_f32(2, (const float[]){1, 2})};
    cadre_per_replica *value;
    cadre_per_replica *both;
    assert_public_ok(cadre_values_from_tensors(strategy, tensors, 2, &value));
    check_value(value, "PerReplica:{\n"
                       "  0: cadre_tensor([0.5], shape=(1,), dtype=float32),\n"
                       "  1: cadre_tensor([1. 2.], shape=(2,), dtype=float32)\n"
                       "}\n");
    const cadre_argument arguments[] = {{.values = value}, {.tensor = tensors[0]}};
    assert_public_ok(cadre_values_join(strategy, arguments, 2, &both));
    check_value(both,
        "(PerReplica:{\n"
        "  0: <cadre_tensor: shape=(1,), dtype=float32, numpy=array([0.5], dtype=float32)>,\n"
        "  1: <cadre_tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>\n"
        "}, <cadre_tensor: shape=(1,), dtype=float32, numpy=array([0.5], dtype=float32)>)\n");
    cadre_per_replica_release(both);
    cadre_per_replica_release(value);
    assert_public_error(
        cadre_value_print(NULL, stdout), CADRE_INVALID_ARGUMENT, "cadre_value_print");
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    cadre_strategy_release(strategy);
    /* What TF would not wrap. */
    strategy = training_strategy(1);
    cadre_tensor *one = training_f32(1, (const float[]){3});
    assert_public_ok(cadre_values_from_tensors(strategy, &one, 1, &value));
    check_value(value, "cadre_tensor([3.], shape=(1,), dtype=float32)\n");
    cadre_per_replica_release(value);
    cadre_tensor_release(one);
    cadre_strategy_release(strategy);
}

/* Replica 1 prints; the components differ inside of the step. */
static cadre_status print_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    if (cadre_replica_id(replica) == 1) {
        FILE *to = begin();
        CADRE_TRY(cadre_variable_print(user, to));
        check(to, "<cadre_variable 'v/replica_1:0' shape=() dtype=float32, numpy=1.0>\n");
    }
    return CADRE_OK;
}

static void variables_have_components(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1}};
    cadre_variable *v;
    assert_public_ok(cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, &options, &v));
    check_variable(v, "MirroredVariable:{\n"
                      "  0: <cadre_variable 'v:0' shape=() dtype=float32, numpy=1.0>,\n"
                      "  1: <cadre_variable 'v/replica_1:0' shape=() dtype=float32, numpy=1.0>\n"
                      "}\n");
    options.synchronization = CADRE_SYNC_ON_READ;
    options.aggregation = CADRE_AGGREGATION_SUM;
    cadre_variable *sum;
    const int64_t two = 2;
    assert_public_ok(cadre_variable_create(strategy, "sum", CADRE_I64, 1, &two, &options, &sum));
    check_variable(sum,
        "SyncOnReadVariable:{\n"
        "  0: <cadre_variable 'sum:0' shape=(2,) dtype=int64, numpy=array([1, 1])>,\n"
        "  1: <cadre_variable 'sum/replica_1:0' shape=(2,) dtype=int64, numpy=array([1, 1])>\n"
        "}\n");
    cadre_variable *words;
    assert_public_ok(cadre_variable_create(strategy, "words", CADRE_STRING, 0, NULL, NULL, &words));
    check_variable(words, "<cadre_variable 'words:0' shape=() dtype=string, numpy=b''>\n");
    assert_public_ok(cadre_run(strategy, print_own, v, NULL, 0, NULL));
    cadre_strategy_release(strategy);
    assert_public_error(cadre_variable_print(v, stdout), CADRE_FAILED_PRECONDITION, "has ended");
    cadre_variable *regular;
    assert_public_ok(cadre_variable_create(NULL, "r", CADRE_I32, 0, NULL, NULL, &regular));
    check_variable(regular, "<cadre_variable 'r:0' shape=() dtype=int32, numpy=0>\n");
    cadre_variable_release(regular);
}

static void central_variables_have_one(void **state)
{
    (void)state;
    cadre_strategy_release(training_strategy(1));
    const char *const devices[] = {"CPU:0", "CPU:1"};
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_central_storage(devices, 2, NULL, &strategy));
    cadre_variable *v;
    assert_public_ok(cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, NULL, &v));
    check_variable(v, "<cadre_variable 'v:0' shape=() dtype=float32, numpy=0.0>\n");
    FILE *to = begin();
    assert_public_ok(cadre_describe(strategy, to));
    check(to, "CentralStorageStrategy: 2 replicas in sync, in 1 task\n"
              "  replica 0: /job:localhost/replica:0/task:0/device:CPU:0\n"
              "  replica 1: /job:localhost/replica:0/task:0/device:CPU:1\n"
              "  variables: /job:localhost/replica:0/task:0/device:CPU:0\n"
              "  communication: the memory of this process\n"
              "  position: 0 steps\n");
    cadre_strategy_release(strategy);
}

static void strategies_are_described(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    FILE *to = begin();
    assert_public_ok(cadre_describe(strategy, to));
    check(to, "MirroredStrategy: 1 replica in sync, in 1 task\n"
              "  replica 0: /job:localhost/replica:0/task:0/device:CPU:0\n"
              "  communication: the memory of this process\n"
              "  position: 1 step\n");
    to = begin();
    cadre_strategy_release(strategy);
    assert_public_error(
        cadre_describe(strategy, stdout), CADRE_FAILED_PRECONDITION, "cadre_describe");
    assert_public_ok(cadre_describe(cadre_strategy_current(), to));
    check(to, "the default strategy: 1 replica in sync, in 1 task\n"
              "  replica 0: /job:localhost/replica:0/task:0/device:CPU:0\n"
              "  communication: the memory of this process\n"
              "  position: 0 steps\n");
    assert_public_error(cadre_describe(NULL, stdout), CADRE_INVALID_ARGUMENT, "strategy");
}

/* A task of two with two replicas each. */
static int task(void)
{
    cadre_strategy *strategy = job_strategy();
    char own[64];
    char replica[64];
    uint32_t rank = cadre_rank();
    snprintf(
        own, sizeof own, "  this task: %u of 0 to 1%s\n", rank, rank == 0 ? ", the chief" : "");
    snprintf(replica, sizeof replica, "  replica %u: /job:worker/", 2 * rank + 1);
    FILE *to = begin();
    CADRE_CHECK(cadre_describe(strategy, to));
    fclose(to);
    const char *const parts[] = {"MultiWorkerMirroredStrategy: 4 replicas in sync, in 2 tasks\n",
        own, replica, "  communication: the shared memory of this host\n  position: 0 steps\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(text, parts[i]) == NULL) {
            printf("no '%s' in '%s'\n", parts[i], text);
            return 1;
        }
    }
    free(text);
    return cadre_finish(strategy);
}

static void tasks_of_a_job_are_described(void **state)
{
    (void)state;
    job_must_succeed(self, "describe", 2, 2);
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task();
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_per_replica),
        cmocka_unit_test(variables_have_components),
        cmocka_unit_test(central_variables_have_one),
        cmocka_unit_test(strategies_are_described),
        cmocka_unit_test(tasks_of_a_job_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
