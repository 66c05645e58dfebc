/* SPDX-License-Identifier: Apache-2.0
 * Optimizers of variables on servers: built once, applied by pushes, refused where they cannot be.
 */
#include <math.h>

#include "cadre/optimizer.h"
#include "common/base/fault.h"
#include "fake_servers.h"
#include "fake_strategy.h"
#include "memory.h"

static const int64_t dims[] = {6, 2};

static cadre_variable *create(cadre_strategy *strategy, const char *name, cadre_dtype dtype)
{
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 2, dims, NULL, &variable));
    return variable;
}

static cadre_optimizer *optimizer_of(cadre_strategy *strategy, cadre_optimizer_options options)
{
    cadre_optimizer *optimizer;
    assert_public_ok(cadre_optimizer_create(strategy, &options, &optimizer));
    return optimizer;
}

static void check(cadre_variable *variable, float first, float others)
{
    float is[12];
    assert_public_ok(memory_pull(variable, is));
    for (size_t i = 0; i < 12; i++) {
        assert_true(is[i] == (i < 2 ? first : others));
    }
}

/* Dense and of rows; two variables in one call; each is one push. */
static void gradients_are_pushed(void **state)
{
    (void)state;
    const cadre_partitioner three = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3};
    const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t ids[] = {0, 0};
    cadre_strategy *strategy = fake_begin(2, &three);
    cadre_variable *variables[] = {
        create(strategy, "v", CADRE_F32), create(strategy, "w", CADRE_F32)};
    cadre_optimizer *sgd =
        optimizer_of(strategy, (cadre_optimizer_options){CADRE_OPTIMIZER_SGD, .rate = 0.5});
    assert_public_ok(cadre_optimizer_build(sgd, variables, 2));
    assert_public_ok(cadre_optimizer_build(sgd, variables, 2));
    cadre_tensor *gradient = memory_over(variables[0], NULL, ones);
    cadre_tensor *rows = memory_ids(ids, 2);
    cadre_tensor *values = memory_over(variables[1], rows, ones);
    cadre_tensor *const dense[] = {gradient, NULL};
    const cadre_sparse sparse[] = {
        {.values = NULL}, {.values = values, .indices = rows, .rows = 6}};
    const cadre_apply_options options = {.sparse = sparse};
    assert_public_ok(cadre_optimizer_apply(NULL, sgd, dense, variables, 2, &options));
    check(variables[0], -0.5F, -0.5F);
    check(variables[1], -1, 0);
    const cadre_push_options push = {.rate = 2};
    assert_public_ok(cadre_optimizer_apply(
        NULL, sgd, dense, variables, 1, &(cadre_apply_options){.push = &push}));
    check(variables[0], -2.5F, -2.5F);
    cadre_tensor_release(values);
    cadre_tensor_release(rows);
    cadre_tensor_release(gradient);
    cadre_optimizer_release(sgd);
    fake_end(strategy);
}

/* By the norm of all gradients of the call, before they are pushed. */
static void they_are_clipped_before(void **state)
{
    (void)state;
    const float threes[12] = {3, 0, 0, 0, 0, 0, 4};
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable = create(strategy, "v", CADRE_F32);
    cadre_optimizer *sgd = optimizer_of(
        strategy, (cadre_optimizer_options){CADRE_OPTIMIZER_SGD, .rate = 1, .clip_global_norm = 1});
    assert_public_ok(cadre_optimizer_build(sgd, &variable, 1));
    float gradient[12];
    memcpy(gradient, threes, sizeof gradient);
    cadre_tensor *tensor = memory_over(variable, NULL, gradient);
    assert_public_ok(cadre_optimizer_apply(NULL, sgd, &tensor, &variable, 1, NULL));
    float is[12];
    assert_public_ok(memory_pull(variable, is));
    assert_true(fabsf(is[0] + 0.6F) < 1e-6F && fabsf(is[6] + 0.8F) < 1e-6F);
    cadre_tensor_release(tensor);
    cadre_optimizer_release(sgd);
    fake_end(strategy);
}

static void what_cannot_be_built_is_reported(void **state)
{
    (void)state;
    const cadre_partitioner three = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3};
    cadre_strategy *strategy = fake_begin(2, &three);
    cadre_variable *variable = create(strategy, "v", CADRE_F32);
    cadre_variable *integers = create(strategy, "i", CADRE_I32);
    const cadre_variable_options here = {.placement = CADRE_PLACEMENT_REPLICAS};
    cadre_variable *own;
    cadre_variable *slot;
    assert_public_ok(cadre_variable_create(strategy, "own", CADRE_F32, 2, dims, &here, &own));
    cadre_optimizer *adam =
        optimizer_of(strategy, (cadre_optimizer_options){CADRE_OPTIMIZER_ADAM, .rate = 0.1});
    cadre_optimizer *other =
        optimizer_of(strategy, (cadre_optimizer_options){CADRE_OPTIMIZER_ADAM, .rate = 0.2});
    assert_public_error(cadre_optimizer_build(adam, &integers, 1), CADRE_INVALID_ARGUMENT, "i32");
    assert_public_ok(cadre_optimizer_build(adam, &variable, 1));
    assert_public_error(cadre_optimizer_build(other, &variable, 1), CADRE_ALREADY_EXISTS,
        "variable 'v' has an optimizer on its servers already");
    assert_public_error(cadre_optimizer_slot(adam, variable, "momentum", &slot), CADRE_NOT_FOUND,
        "there are 'm', 'v', 'updates'");
    assert_public_error(cadre_optimizer_slot(adam, NULL, "learning_rate", &slot), CADRE_NOT_FOUND,
        "or is its parameter servers'");
    assert_int_equal(cadre_optimizer_iterations(adam), 0);
    const float zeros[12] = {0};
    cadre_tensor *gradient = memory_over(variable, NULL, zeros);
    assert_public_error(cadre_optimizer_apply(NULL, adam, (cadre_tensor *[]){gradient, gradient},
                            (cadre_variable *[]){variable, own}, 2, NULL),
        CADRE_INVALID_ARGUMENT, "call it once for each kind");
    assert_public_error(cadre_optimizer_apply(NULL, other, &gradient, &variable, 1, NULL),
        CADRE_ALREADY_EXISTS, "variable 'v' has an optimizer on its servers already");
    cadre_tensor_release(gradient);
    cadre_optimizer_release(adam);
    cadre_optimizer_release(other);
    fake_end(strategy);
}

/* --- what it remembers --- */

static cadre_variable *slot_of(
    const cadre_optimizer *optimizer, cadre_variable *variable, const char *name)
{
    cadre_variable *slot;
    cadre_variable *again;
    assert_public_ok(cadre_optimizer_slot(optimizer, variable, name, &slot));
    assert_public_ok(cadre_optimizer_slot(optimizer, variable, name, &again));
    assert_ptr_equal(slot, again);
    return slot;
}

static cadre_variable *doubles(cadre_strategy *strategy, const char *name)
{
    return create(strategy, name, CADRE_F64);
}

static void refused(cadre_status status)
{
    assert_int_equal(status, CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "use cadre_optimizer_apply"));
    assert_non_null(strstr(cadre_error_message(), "'w/momentum'"));
}

static cadre_strategy *momentum_of_three_shards(
    cadre_variable **ret_variable, cadre_optimizer **ret_optimizer)
{
    const cadre_partitioner three = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3};
    cadre_strategy *strategy = fake_begin(2, &three);
    *ret_variable = doubles(strategy, "w");
    *ret_optimizer =
        optimizer_of(strategy, (cadre_optimizer_options){CADRE_OPTIMIZER_MOMENTUM, .rate = 0.5});
    assert_public_ok(cadre_optimizer_build(*ret_optimizer, ret_variable, 1));
    /* Two rows of two in each shard: on servers 0, 1, 0. */
    for (uint32_t i = 0; i < 12; i++) {
        fake_slot(i / 4 % 2, i / 8, 0)[i % 4] = i;
    }
    return strategy;
}

/* A slot is read as any variable is: whole, by rows, in slices, into memory; where its variable is.
 */
static void slots_are_read(void **state)
{
    (void)state;
    cadre_variable *variable;
    cadre_optimizer *optimizer;
    cadre_strategy *strategy = momentum_of_three_shards(&variable, &optimizer);
    cadre_variable *slot = slot_of(optimizer, variable, "momentum");
    const int64_t ids[] = {5, 0, 3, 5};
    double is[12];
    int64_t first;
    int64_t rows;
    cadre_tensor *some;
    cadre_variable *found;
    assert_string_equal(cadre_variable_name(slot), "w/momentum");
    assert_int_equal(cadre_variable_kind(slot), CADRE_VARIABLE_SERVED);
    assert_int_equal(cadre_variable_components(slot), 3);
    assert_public_error(cadre_variable_find(NULL, "w/momentum", &found), CADRE_NOT_FOUND, "'w'");
    assert_string_equal(cadre_variable_device(slot, 1), cadre_variable_device(variable, 1));
    assert_public_ok(cadre_variable_component_rows(slot, 2, &first, &rows));
    assert_true(first == 4 && rows == 2);
    assert_public_ok(memory_pull(slot, is));
    for (int i = 0; i < 12; i++) {
        assert_true(is[i] == i);
    }
    for (uint32_t i = 0; i < 3; i++) {
        *fake_steps(i % 2, i / 2) = 4; /* else the servers of the test refuse to wait */
    }
    assert_public_ok(memory_pull_step(slot, 4, is));
    assert_public_ok(memory_gather(slot, ids, 4, is));
    for (int i = 0; i < 8; i++) {
        assert_true(is[i] == (double)(2 * ids[i / 2] + i % 2));
    }
    assert_public_error(
        memory_gather(slot, (const int64_t[]){6}, 1, is), CADRE_OUT_OF_RANGE, "rows 0 to 5");
    assert_public_ok(cadre_variable_slice(NULL, slot, 1, 4, CADRE_SLICE_DEFAULT, &some));
    assert_true(((const double *)cadre_tensor_const_data(some))[5] == 7);
    cadre_tensor_release(some);
    cadre_variable_release(slot); /* the strategy's: nothing */
    assert_public_ok(memory_pull(slot, is));
    fault_arm("client.call", 1);
    assert_public_error(memory_pull(slot, is), CADRE_UNAVAILABLE, "variable 'w/momentum'");
    cadre_optimizer_release(optimizer);
    assert_public_ok(memory_pull(slot, is));
    fake_end(strategy);
}

/* By nothing that writes variables, and no optimizer; an update changes it. */
static void slots_are_not_written(void **state)
{
    (void)state;
    cadre_variable *variable;
    cadre_optimizer *optimizer;
    cadre_strategy *strategy = momentum_of_three_shards(&variable, &optimizer);
    cadre_variable *slot = slot_of(optimizer, variable, "momentum");
    const double numbers[12] = {9};
    double is[12];
    cadre_tensor *whole = memory_over(slot, NULL, numbers);
    cadre_tensor *ids = memory_ids((const int64_t[]){1}, 1);
    cadre_tensor *row = memory_over(slot, ids, numbers);
    const cadre_sparse sparse = {.values = row, .indices = ids, .rows = 6};
    const uint64_t keys = fake_counts().keys;
    refused(cadre_variable_assign(NULL, slot, CADRE_ASSIGN, whole));
    refused(cadre_variable_assign_literal(NULL, slot, CADRE_ASSIGN_ADD, 1));
    refused(cadre_variable_scatter(NULL, slot, CADRE_SCATTER_ADD, &sparse));
    refused(cadre_variable_push(NULL, slot, CADRE_ASSIGN_UPDATE, whole, NULL, NULL));
    refused(cadre_variable_push(NULL, slot, CADRE_ASSIGN, row, ids, NULL));
    refused(cadre_variable_begin_step(slot, 1));
    refused(cadre_optimizer_build(optimizer, &slot, 1));
    refused(cadre_optimizer_apply(NULL, optimizer, &whole, &slot, 1, NULL));
    assert_int_equal(fake_counts().keys, keys);
    assert_public_ok(memory_pull(slot, is));
    assert_true(is[0] == 0 && is[11] == 11);
    cadre_tensor_release(row);
    cadre_tensor_release(ids);
    cadre_tensor_release(whole);
    cadre_optimizer_release(optimizer);
    fake_end(strategy);
}

/* Of each variable the shard that has counted most, of the optimizer the variable; -1 where one of
 * them cannot be asked. */
static void updates_are_counted(void **state)
{
    (void)state;
    cadre_variable *variable;
    cadre_optimizer *optimizer;
    cadre_strategy *strategy = momentum_of_three_shards(&variable, &optimizer);
    cadre_variable *other = doubles(strategy, "x");
    cadre_variable *updates = slot_of(optimizer, variable, "updates");
    const double gradient[12] = {0};
    int64_t count;
    assert_public_ok(cadre_optimizer_build(optimizer, &other, 1));
    assert_int_equal(cadre_optimizer_iterations(optimizer), 0);
    assert_public_ok(memory_push_rows(variable, (const int64_t[]){5}, 1, gradient, NULL));
    assert_public_ok(memory_push(variable, gradient, NULL));
    assert_public_ok(memory_push(other, gradient, NULL));
    assert_int_equal(cadre_optimizer_iterations(optimizer), 2);
    assert_int_equal(cadre_variable_dtype(updates), CADRE_I64);
    assert_int_equal(cadre_variable_components(updates), 1);
    assert_public_ok(memory_pull(updates, &count));
    assert_int_equal(count, 2);
    assert_public_ok(memory_gather(updates, (const int64_t[]){0}, 1, &count));
    assert_public_ok(memory_pull(slot_of(optimizer, other, "updates"), &count));
    assert_int_equal(count, 1);
    fault_arm("client.call", 1);
    assert_int_equal(cadre_optimizer_iterations(optimizer), -1);
    assert_non_null(strstr(cadre_error_message(), "ps 1 is lost"));
    assert_int_equal(cadre_optimizer_iterations(optimizer), 2);
    cadre_optimizer_release(optimizer);
    fake_end(strategy);
}

/* The rate of a schedule follows from that count; a constant one needs no server. */
static void the_rate_follows_the_count(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable = doubles(strategy, "w");
    cadre_optimizer *constant =
        optimizer_of(strategy, (cadre_optimizer_options){CADRE_OPTIMIZER_SGD, .rate = 0.5});
    cadre_optimizer *halved = optimizer_of(strategy,
        (cadre_optimizer_options){CADRE_OPTIMIZER_SGD, .rate = 4,
            .schedule = {.kind = CADRE_RATE_EXPONENTIAL, .decay_steps = 1, .decay_rate = 0.5}});
    const double gradient[12] = {0};
    assert_public_ok(cadre_optimizer_build(halved, &variable, 1));
    assert_true(cadre_optimizer_learning_rate(halved) == 4);
    assert_public_ok(memory_push(variable, gradient, NULL));
    assert_public_ok(memory_push(variable, gradient, NULL));
    assert_true(cadre_optimizer_learning_rate(halved) == 1);
    fault_arm("client.call", 1);
    assert_true(isnan(cadre_optimizer_learning_rate(halved)));
    assert_true(cadre_optimizer_learning_rate(constant) == 0.5);
    cadre_optimizer_release(constant);
    cadre_optimizer_release(halved);
    fake_end(strategy);
}

/* In a closure, and in an evaluator, once the chief has given the servers the rule: of another one
 * there is no slot. */
static void closures_see_the_servers_slots(void **state)
{
    (void)state;
    const cadre_optimizer_options momentum = {CADRE_OPTIMIZER_MOMENTUM, .rate = 0.5};
    const cadre_optimizer_options adam = {CADRE_OPTIMIZER_ADAM, .rate = 0.5};
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable;
    cadre_variable *slot;
    double is[12];
    (void)doubles(strategy, "w");
    for (int trained = 0; trained < 3; trained++) {
        fake_become(trained == 2 ? ROLE_EVALUATOR : ROLE_WORKER);
        assert_public_ok(cadre_variable_find(NULL, "w", &variable));
        cadre_optimizer *own = optimizer_of(NULL, momentum);
        cadre_optimizer *other = optimizer_of(NULL, adam);
        assert_public_ok(cadre_optimizer_build(own, &variable, 1));
        assert_public_ok(cadre_optimizer_build(other, &variable, 1));
        if (trained == 0) {
            assert_public_error(cadre_optimizer_slot(own, variable, "momentum", &slot),
                CADRE_FAILED_PRECONDITION, "has no optimizer yet on its servers");
        } else {
            assert_public_error(cadre_optimizer_slot(other, variable, "m", &slot),
                CADRE_FAILED_PRECONDITION, "an optimizer of another kind");
            slot = slot_of(own, variable, "momentum");
            assert_public_ok(memory_pull(slot, is));
            assert_int_equal(cadre_optimizer_iterations(own), 0);
        }
        cadre_optimizer_release(own);
        cadre_optimizer_release(other);
        fake_become(ROLE_CHIEF);
        assert_public_ok(memory_train(strategy, doubles(strategy, "w"), &momentum));
    }
    fake_end(strategy);
}

/* The norms of all shards: |v| = 10, |g| = 5. Each push asks for them, and one shard first; what
 * the rule is a closure asks once. A synchronous one asks whether it was the last. */
static void lamb_of_shards_has_the_norms_of_all(void **state)
{
    (void)state;
    const cadre_partitioner three = {.kind = CADRE_PARTITIONER_FIXED, .shards = 3};
    const cadre_optimizer_options options = {CADRE_OPTIMIZER_LAMB, .rate = 0.25};
    const cadre_push_options synchronous = {.contributions = 2};
    const float values[12] = {6, 0, 0, 0, 0, 8};
    const float gradient[12] = {3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4};
    float is[12];
    cadre_strategy *strategy = fake_begin(2, &three);
    cadre_variable *variable = create(strategy, "v", CADRE_F32);
    assert_public_error(
        memory_push(variable, gradient, NULL), CADRE_FAILED_PRECONDITION, "has no optimizer");
    assert_public_ok(memory_train(strategy, variable, &options));
    cadre_tensor *tensor = memory_over(variable, NULL, values);
    assert_public_ok(cadre_variable_push(NULL, variable, CADRE_ASSIGN, tensor, NULL, NULL));
    cadre_tensor_release(tensor);
    fake_become(ROLE_WORKER);
    cadre_variable *found;
    assert_public_ok(cadre_variable_find(NULL, "v", &found));
    struct fake_counts before = fake_counts();
    assert_public_ok(memory_push(found, gradient, NULL));
    assert_int_equal(fake_counts().calls - before.calls, 4);
    assert_int_equal(fake_counts().requests - before.requests, 1 + 3 + 1 + 2);
    assert_public_ok(memory_pull(found, is));
    assert_true(fabsf(is[0] - 4.5F) < 1e-6F && fabsf(is[11] + 2) < 1e-6F && is[5] >= 8);
    before = fake_counts();
    assert_public_ok(memory_push(found, gradient, &synchronous));
    assert_int_equal(fake_counts().calls - before.calls, 2);
    assert_int_equal(fake_counts().requests - before.requests, 3 + 3);
    fake_become(ROLE_CHIEF);
    fake_end(strategy);
}

/* A closure says which optimizer it is; the chief's is what the servers apply. */
static void closures_apply_what_the_chief_has_built(void **state)
{
    (void)state;
    const cadre_optimizer_options options = {CADRE_OPTIMIZER_SGD, .rate = 0.5};
    const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable = create(strategy, "v", CADRE_F32);
    cadre_tensor *gradient = memory_over(variable, NULL, ones);
    assert_public_ok(memory_train(strategy, variable, &options));
    fake_become(ROLE_WORKER);
    cadre_variable *found;
    assert_public_ok(cadre_variable_find(NULL, "v", &found));
    cadre_optimizer *sgd = optimizer_of(NULL, options);
    assert_public_ok(cadre_optimizer_build(sgd, &found, 1));
    assert_public_ok(cadre_optimizer_apply(NULL, sgd, &gradient, &found, 1, NULL));
    check(found, -0.5F, -0.5F);
    cadre_optimizer_release(sgd);
    cadre_tensor_release(gradient);
    fake_become(ROLE_CHIEF);
    fake_end(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_pushed),
        cmocka_unit_test(they_are_clipped_before),
        cmocka_unit_test(what_cannot_be_built_is_reported),
        cmocka_unit_test(slots_are_read),
        cmocka_unit_test(slots_are_not_written),
        cmocka_unit_test(updates_are_counted),
        cmocka_unit_test(the_rate_follows_the_count),
        cmocka_unit_test(closures_see_the_servers_slots),
        cmocka_unit_test(lamb_of_shards_has_the_norms_of_all),
        cmocka_unit_test(closures_apply_what_the_chief_has_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
