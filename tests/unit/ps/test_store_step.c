/* SPDX-License-Identifier: Apache-2.0
 * Synchronous pushes, and threads that push at once. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/half.h"
#include "store_fixture.h"

static struct store *store;

static int open_one(void **state)
{
    (void)state;
    store = fixture_store_open(-1);
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    store_close(store);
    return 0;
}

static struct push part_of(
    uint32_t shard, enum push_kind kind, uint64_t rows, uint64_t closure, uint64_t step)
{
    return (struct push){.shard = shard,
        .kind = kind,
        .rows = rows,
        .closure = closure,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION,
        .contributions = 3,
        .step = step};
}

static void the_mean_is_applied_once(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_F32, 2, 2, OPTIMIZER_SGD);
    for (uint64_t i = 1; i <= 3; i++) {
        const float gradients[] = {(float)i, 6, 0, -1};
        struct push push = part_of(shard, PUSH_UPDATE, 2, i, 0);
        fixture_store_push(store, &push, gradients);
        fixture_store_push(store, &push, gradients); /* counts once */
        assert_int_equal(store_version(store, shard), i / 3);
    }
    assert_int_equal(store_steps(store, shard), 1);
    assert_int_equal(store_updates(store, shard), 1);
    assert_memory_equal(store_rows(store, shard, 0, 2), ((float[]){-1, -3, 0, .5f}), 16);
    for (uint64_t i = 1; i <= 3; i++) { /* and the next step begins at nothing */
        struct push push = part_of(shard, PUSH_UPDATE, 2, 10 + i, 1);
        fixture_store_push(store, &push, ((float[]){0, 0, 0, 2}));
    }
    assert_memory_equal(store_rows(store, shard, 0, 2), ((float[]){-1, -3, 0, -.5f}), 16);
    assert_int_equal(store_steps(store, shard), 2);
}

static void sums_are_added(void **state)
{
    (void)state;
    uint32_t ints = fixture_store_create(store, "i", CADRE_I16, 2, 1, OPTIMIZER_NONE);
    uint32_t halves = fixture_store_create(store, "h", CADRE_BF16, 1, 1, OPTIMIZER_NONE);
    uint16_t one = half_to_bf16(1);
    uint16_t tiny = half_to_bf16(0.00390625f); /* too small to be added to 1 alone */
    struct push assign = {.shard = halves, .kind = PUSH_ASSIGN, .rows = 1};
    fixture_store_push(store, &assign, &one);
    for (uint64_t i = 1; i <= 3; i++) {
        struct push push = part_of(ints, PUSH_SUB, 2, i, 0);
        fixture_store_push(store, &push, ((int16_t[]){(int16_t)i, 5}));
        push = part_of(halves, PUSH_ADD, 1, i, 0);
        fixture_store_push(store, &push, &tiny);
    }
    assert_memory_equal(store_rows(store, ints, 0, 2), ((int16_t[]){-6, -15}), 4);
    uint16_t wanted = half_to_bf16(1 + 3 * 0.00390625f);
    assert_memory_equal(store_rows(store, halves, 0, 1), &wanted, 2);
    assert_true(wanted != one);
}

static void only_rows_that_are_named_change(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, 200, 1, OPTIMIZER_ADAM);
    double *slot = store_slot(store, shard, 0);
    for (int i = 0; i < 200; i++) {
        slot[i] = 1;
    }
    for (uint64_t i = 1; i <= 3; i++) {
        struct push push = part_of(shard, PUSH_UPDATE, 2, i, 0);
        const int64_t ids[] = {(int64_t)i * 60, 7};
        push.sparse = true;
        push.ids = ids;
        fixture_store_push(store, &push, ((double[]){3, 0}));
    }
    const double *rows = store_rows(store, shard, 0, 200);
    for (int i = 0; i < 200; i++) {
        bool named = i == 7 || i == 60 || i == 120 || i == 180;
        assert_true((rows[i] != 0) == named);
        double wanted = !named ? 1 : i == 7 ? 0.75 : 1; /* 0.75 + 0.25 * (3 / 3) */
        assert_true(slot[i] == wanted);
    }
}

/* Two steps change all rows; a third begins to, and is begun again, or does not begin at all. */
static void sparse_step_after_dense_ones(const char *name, bool again)
{
    enum { WIDTH = 100 };
    uint32_t shard = fixture_store_create(store, name, CADRE_F64, WIDTH, 1, OPTIMIZER_MOMENTUM);
    double all[WIDTH];
    double before[WIDTH];
    const int64_t id = 70;
    for (int i = 0; i < WIDTH; i++) {
        all[i] = 8;
    }
    for (uint64_t i = 0; i < (again ? 8 : 6); i++) {
        struct push push = part_of(shard, PUSH_UPDATE, WIDTH, 1 + i, i / 3);
        fixture_store_push(store, &push, all);
    }
    if (again) {
        assert_int_equal(store_begin_step(store, shard, 2), CADRE_OK);
    }
    memcpy(before, store_rows(store, shard, 0, WIDTH), sizeof before);
    for (uint64_t i = 0; i < 3; i++) {
        struct push push = part_of(shard, PUSH_UPDATE, 1, 30 + i, 2);
        push.sparse = true;
        push.ids = &id;
        fixture_store_push(store, &push, all);
    }
    const double *rows = store_rows(store, shard, 0, WIDTH);
    assert_int_equal(store_steps(store, shard), 3);
    for (int i = 0; i < WIDTH; i++) {
        assert_true((rows[i] == before[i]) == (i != id)); /* momentum alone would move them */
    }
}

static void rows_of_a_step_before_do_not_change(void **state)
{
    (void)state;
    sparse_step_after_dense_ones("a", false);
    sparse_step_after_dense_ones("b", true);
}

static void the_early_wait_and_the_late_are_refused(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, 1, 1, OPTIMIZER_SGD);
    struct cadre_error error = {0};
    struct pushing pushing;
    const double one = 1;
    struct push early = part_of(shard, PUSH_UPDATE, 1, 9, 1);
    assert_int_equal(store_push_begin(store, 0, &early, &pushing, &error), CADRE_PENDING);
    struct push first = part_of(shard, PUSH_UPDATE, 1, 1, 0);
    fixture_store_push(store, &first, &one);
    struct push other = part_of(shard, PUSH_UPDATE, 1, 2, 0);
    other.contributions = 2;
    assert_error(store_push_begin(store, 0, &other, &pushing, &error), CADRE_INVALID_ARGUMENT,
        &error, "step 0 has 3 contributions of kind 1");
    other = part_of(shard, PUSH_ADD, 1, 2, 0);
    assert_error(store_push_begin(store, 0, &other, &pushing, &error), CADRE_INVALID_ARGUMENT,
        &error, "all have to agree");
    other = part_of(shard, PUSH_ASSIGN, 1, 2, 0);
    assert_error(store_push_begin(store, 0, &other, &pushing, &error), CADRE_INVALID_ARGUMENT,
        &error, "a synchronous push updates, adds or subtracts");
    other = part_of(shard, PUSH_UPDATE, 1, 2, 0);
    fixture_store_push(store, &other, &one);
    struct push third = part_of(shard, PUSH_UPDATE, 1, 3, 0);
    assert_ok(store_push_begin(store, 0, &third, &pushing, &error), &error);
    struct push fourth = part_of(shard, PUSH_UPDATE, 1, 4, 0);
    struct pushing extra;
    assert_error(store_push_begin(store, 1, &fourth, &extra, &error), CADRE_FAILED_PRECONDITION,
        &error, "step 0 has its 3 contributions already; closure 4 is one too many");
    store_push_abandon(store, &pushing); /* it is sent again */
    fixture_store_push(store, &third, &one);
    assert_error(store_push_begin(store, 1, &fourth, &extra, &error), CADRE_FAILED_PRECONDITION,
        &error, "step 0 is over, 1 steps were applied; closure 4 comes too late");
    fixture_store_push(store, &first, &one); /* was applied: no error */
    fixture_store_push(store, &early, &one);
    assert_true(*(const double *)store_rows(store, shard, 0, 1) == -0.5);
}

/* A contribution is whole, one in part, when the batch fails; then the step is taken once more. */
static void a_step_begun_again_is_without_the_old(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, 4, 1, OPTIMIZER_SGD);
    struct cadre_error error = {0};
    struct pushing pushing;
    const double wrong[] = {100, 100, 100, 100};
    const double right[] = {2, 2, 2, 2};
    struct push push = part_of(shard, PUSH_UPDATE, 4, 1, 0);
    fixture_store_push(store, &push, wrong);
    struct push second = part_of(shard, PUSH_UPDATE, 4, 2, 0);
    assert_ok(store_push_begin(store, 0, &second, &pushing, &error), &error);
    store_push_block(store, &pushing, wrong, 2);
    assert_int_equal(store_begin_step(store, shard, 0), CADRE_PENDING);
    store_push_abandon(store, &pushing);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(store_begin_step(store, shard, 0), CADRE_OK);
    }
    fixture_store_push(
        store, &second, wrong); /* of those that were dropped: it counts as applied */
    for (uint64_t closure = 3; closure <= 5; closure++) {
        assert_int_equal(store_steps(store, shard), 0);
        push = part_of(shard, PUSH_UPDATE, 4, closure, 0);
        fixture_store_push(store, &push, right);
    }
    assert_int_equal(store_steps(store, shard), 1);
    assert_int_equal(store_updates(store, shard), 1);
    assert_memory_equal(store_rows(store, shard, 0, 4), ((double[]){-1, -1, -1, -1}), 32);
}

/* It had all of the step that others did not have: the step is not applied again. */
static void a_shard_that_is_ahead_passes_a_step_over(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, 1, 1, OPTIMIZER_SGD);
    struct cadre_error error = {0};
    struct pushing pushing;
    const double one = 1;
    for (uint64_t closure = 1; closure <= 3; closure++) {
        struct push push = part_of(shard, PUSH_UPDATE, 1, closure, 0);
        fixture_store_push(store, &push, &one);
    }
    assert_int_equal(store_begin_step(store, shard, 0), CADRE_OK);
    for (uint64_t closure = 4; closure <= 9; closure++) { /* step 0 once more, and step 1 */
        struct push push = part_of(shard, PUSH_UPDATE, 1, closure, closure >= 7);
        fixture_store_push(store, &push, &one);
    }
    assert_int_equal(store_steps(store, shard), 2);
    assert_true(*(const double *)store_rows(store, shard, 0, 1) == -1);
    assert_int_equal(store_begin_step(store, shard, 1), CADRE_OK);
    struct push older = part_of(shard, PUSH_UPDATE, 1, 19, 0); /* only one step is passed over */
    assert_error(store_push_begin(store, 0, &older, &pushing, &error), CADRE_FAILED_PRECONDITION,
        &error, "step 0 is over, 2 steps were applied; closure 19 comes too late");
    assert_int_equal(store_begin_step(store, shard, 7), CADRE_OK); /* numbered again */
    assert_int_equal(store_steps(store, shard), 7);
    struct push late = part_of(shard, PUSH_UPDATE, 1, 20, 6);
    assert_error(store_push_begin(store, 0, &late, &pushing, &error), CADRE_FAILED_PRECONDITION,
        &error, "cadre_variable_begin_step");
    assert_int_equal(store_begin_step(store, shard, 0), CADRE_OK);
    assert_int_equal(store_steps(store, shard), 0);
}

/* ---- threads ---- */

#define THREADS 4
#define STEPS   30
#define ROWS    20000

static void *push_steps(void *user)
{
    uint32_t thread = *(uint32_t *)user;
    double *gradients = malloc(ROWS * sizeof *gradients);
    int64_t ids[50];
    struct cadre_error error = {0};
    for (uint64_t i = 0; i < 50; i++) {
        ids[i] = (int64_t)(i * i % 97);
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < ROWS; i++) {
            gradients[i] = (double)thread;
        }
        struct push push = part_of(0, PUSH_UPDATE, ROWS, 1 + step * THREADS + thread, step);
        push.contributions = THREADS;
        cadre_status status = CADRE_PENDING;
        while (status == CADRE_PENDING) {
            status = fixture_store_push_blocks(store, thread, &push, gradients, 3000, &error);
        }
        assert_ok(status, &error);
        struct push sparse = {.shard = 1,
            .kind = PUSH_ADD,
            .closure = push.closure,
            .ordinal = 1,
            .sparse = true,
            .ids = ids,
            .rows = 50,
            .based_on = PUSH_ANY_VERSION};
        assert_ok(fixture_store_push_blocks(store, thread, &sparse, gradients, 0, &error), &error);
        /* Others may still have the sparse push of the step before this one to make. */
        store_forget(store, step == 0 ? 0 : (step - 1) * THREADS);
    }
    free(gradients);
    return NULL;
}

static void threads_take_steps_together(void **state)
{
    (void)state;
    fixture_store_create(store, "a", CADRE_F64, ROWS, 1, OPTIMIZER_SGD);
    fixture_store_create(store, "b", CADRE_F64, 100, 1, OPTIMIZER_NONE);
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, push_steps, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    const double *rows = store_rows(store, 0, 0, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(rows[i] == -0.5 * 1.5 * STEPS);
    }
    double sum = 0;
    const double *others = store_rows(store, 1, 0, 100);
    for (size_t i = 0; i < 100; i++) {
        sum += others[i];
    }
    assert_true(sum == STEPS * 50.0 * (0 + 1 + 2 + 3));
    assert_int_equal(store_steps(store, 0), STEPS);
    assert_int_equal(store_version(store, 1), STEPS * THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_mean_is_applied_once, open_one, close_one),
        cmocka_unit_test_setup_teardown(sums_are_added, open_one, close_one),
        cmocka_unit_test_setup_teardown(only_rows_that_are_named_change, open_one, close_one),
        cmocka_unit_test_setup_teardown(rows_of_a_step_before_do_not_change, open_one, close_one),
        cmocka_unit_test_setup_teardown(
            the_early_wait_and_the_late_are_refused, open_one, close_one),
        cmocka_unit_test_setup_teardown(a_step_begun_again_is_without_the_old, open_one, close_one),
        cmocka_unit_test_setup_teardown(
            a_shard_that_is_ahead_passes_a_step_over, open_one, close_one),
        cmocka_unit_test_setup_teardown(threads_take_steps_together, open_one, close_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
