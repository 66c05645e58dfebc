/* SPDX-License-Identifier: Apache-2.0
 * Optimizers of variables on servers: built once, applied by pushes, refused where they cannot be.
 */
#include <math.h>

#include "cadre/optimizer.h"
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

static void what_cannot_be_built_is_told(void **state)
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
    assert_public_error(cadre_optimizer_slot(adam, variable, "m", &slot), CADRE_FAILED_PRECONDITION,
        "find it in checkpoints, as 'v/m'");
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
        cmocka_unit_test(what_cannot_be_built_is_told),
        cmocka_unit_test(lamb_of_shards_has_the_norms_of_all),
        cmocka_unit_test(closures_apply_what_the_chief_has_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
