/* SPDX-License-Identifier: Apache-2.0
 * Replica context: what belongs to the thread that runs a replica's function, and what is refused
 * while it runs. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "training.h"

struct elsewhere {
    cadre_strategy *strategy;
    cadre_status status;
    char message[512];
};

static void *call_run(void *user)
{
    struct elsewhere *elsewhere = user;
    elsewhere->status = cadre_run(elsewhere->strategy, training_nothing, NULL, NULL, 0, NULL);
    snprintf(elsewhere->message, sizeof elsewhere->message, "%s", cadre_error_message());
    return NULL;
}

static cadre_status run_in_a_thread(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    pthread_t thread;
    if (cadre_replica_id(replica) == 0 && pthread_create(&thread, NULL, call_run, user) == 0) {
        pthread_join(thread, NULL);
    }
    return CADRE_OK;
}

static void steps_do_not_nest(void **state)
{
    (void)state;
    struct elsewhere elsewhere = {.strategy = training_strategy(2)};
    assert_public_ok(cadre_run(elsewhere.strategy, run_in_a_thread, &elsewhere, NULL, 0, NULL));
    assert_int_equal(elsewhere.status, CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(elsewhere.message, "while cadre_run of the same strategy"));
    cadre_strategy_release(elsewhere.strategy);
}

static cadre_status end_inside(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_strategy *strategy = cadre_replica_strategy(replica);
    cadre_strategy_release(strategy); /* not while its replicas run */
    if (cadre_replica_id(replica) == 0 && cadre_finish(strategy) != 1) {
        return cadre_fail(CADRE_UNKNOWN, "cadre_finish succeeded");
    }
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(NULL, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    bool named = strstr(cadre_error_message(), "'replica'") != NULL;
    return status == CADRE_INVALID_ARGUMENT && named
               ? CADRE_OK
               : cadre_fail(CADRE_UNKNOWN, "a collective without a replica was made");
}

static cadre_status end_in_update(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)inputs;
    (void)ret_output;
    cadre_strategy_release(user); /* not while a component is being written */
    return cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 3);
}

static void a_step_does_not_end_its_strategy(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = training_variable(strategy);
    assert_public_ok(
        cadre_variable_update(strategy, variable, end_in_update, strategy, NULL, NULL));
    assert_true(((const float *)cadre_variable_read(NULL, variable))[1] == 3);
    assert_public_ok(cadre_run(strategy, end_inside, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

struct replicas {
    cadre_replica *all[2];
    cadre_replica *gone; /* of a strategy that has ended */
    cadre_variable *variable;
    cadre_status status; /* of a thread that replica 1 starts */
};

static cadre_status sum_one(cadre_replica *replica)
{
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

static void *sum_remote(void *user)
{
    struct replicas *replicas = user;
    replicas->status = sum_one(replicas->all[1]);
    return NULL;
}

static cadre_status expect_refusal(cadre_status status, const char *part)
{
    bool refused =
        status == CADRE_FAILED_PRECONDITION && strstr(cadre_error_message(), part) != NULL;
    return refused ? CADRE_OK : cadre_fail(CADRE_UNKNOWN, "not refused: %s", cadre_error_message());
}

static cadre_status use_others(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct replicas *replicas = user;
    uint32_t id = cadre_replica_id(replica);
    static const char other[] = "with another replica";
    pthread_t thread;
    replicas->all[id] = replica;
    CADRE_TRY(cadre_barrier());
    if (id == 1 && pthread_create(&thread, NULL, sum_remote, replicas) == 0) {
        pthread_join(thread, NULL);
    }
    if (replicas->gone != NULL && replicas->gone != replica) { /* another one may lie there now */
        CADRE_TRY(expect_refusal(sum_one(replicas->gone), other));
    }
    CADRE_TRY(expect_refusal(sum_one(replicas->all[1 - id]), other));
    CADRE_TRY(expect_refusal(
        cadre_variable_assign_literal(replicas->all[1 - id], replicas->variable, CADRE_ASSIGN, 1),
        other));
    return cadre_barrier();
}

static void a_replica_is_for_its_own_thread(void **state)
{
    (void)state;
    struct replicas replicas = {.gone = NULL};
    for (int i = 0; i < 2; i++) {
        cadre_strategy *strategy = training_strategy(2);
        replicas.variable = training_variable(strategy);
        assert_public_ok(cadre_run(strategy, use_others, &replicas, NULL, 0, NULL));
        assert_int_equal(replicas.status, CADRE_FAILED_PRECONDITION);
        cadre_strategy_release(strategy);
        replicas.gone = replicas.all[1];
    }
}

static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_read(NULL, user) == cadre_variable_read(replica, user)
               ? CADRE_OK
               : cadre_fail(CADRE_UNKNOWN, "that is another replica's component");
}

static void a_replica_reads_its_own_component(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    assert_public_ok(cadre_run(strategy, read_own, training_variable(strategy), NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_do_not_nest),
        cmocka_unit_test(a_step_does_not_end_its_strategy),
        cmocka_unit_test(a_replica_is_for_its_own_thread),
        cmocka_unit_test(a_replica_reads_its_own_component),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
