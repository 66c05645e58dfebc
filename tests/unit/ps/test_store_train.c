/* SPDX-License-Identifier: Apache-2.0
 * Optimizers of shards: given once, after the shard was made; what is refused; what survives. */
#include <math.h>
#include <string.h>
#include <unistd.h>

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

static void a_shard_is_trained_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint32_t shard = fixture_store_create(store, "a", CADRE_F32, 4, 3, OPTIMIZER_NONE);
    assert_int_equal(store_rule(store, shard)->kind, OPTIMIZER_NONE);
    assert_null(store_slot(store, shard, 0));
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_RMSPROP);
    rule.centered = true;
    assert_ok(store_train(store, shard, &rule, &error), &error);
    assert_int_equal(store_rule(store, shard)->kind, OPTIMIZER_RMSPROP);
    float *slots[3];
    for (uint32_t i = 0; i < 3; i++) {
        slots[i] = store_slot(store, shard, i);
        assert_non_null(slots[i]);
        assert_true(slots[i][11] == 0);
        slots[i][11] = 1;
    }
    assert_null(store_slot(store, shard, 3));
    assert_ok(store_train(store, shard, &rule, &error), &error);
    assert_ptr_equal(store_slot(store, shard, 2), slots[2]);
    assert_true(slots[0][11] == 1);
    assert_int_equal(store_version(store, shard), 0);
    rule.schedule.warmup_steps = 3;
    assert_error(store_train(store, shard, &rule, &error), CADRE_ALREADY_EXISTS, &error,
        "shard 0 of `a` has an optimizer already, of another kind or with other numbers");
    assert_int_equal(fixture_store_create(store, "a", CADRE_F32, 4, 3, OPTIMIZER_NONE), shard);
}

static void slots_begin_with_what_they_are_to(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, 1000, 3, OPTIMIZER_ADAGRAD);
    const double *slot = store_slot(store, shard, 0);
    for (size_t i = 0; i < 3000; i++) {
        assert_true(slot[i] == 0.25);
    }
}

static void what_is_no_rule_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint32_t whole = fixture_store_create(store, "whole", CADRE_F32, 4, 1, OPTIMIZER_NONE);
    uint32_t integers = fixture_store_create(store, "integers", CADRE_I32, 4, 1, OPTIMIZER_NONE);
    struct store_spec spec = {.name = "part", .shard = 1, .dtype = CADRE_F32, .rows = 1};
    uint32_t part = 0;
    assert_ok(store_create(store, &spec, &part, &error), &error);
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_ADAM);
    assert_error(store_train(store, integers, &rule, &error), CADRE_INVALID_ARGUMENT, &error,
        "`integers`: optimizers need f32 or f64, and it is i32");
    rule.beta2 = (double)NAN;
    assert_error(store_train(store, whole, &rule, &error), CADRE_INVALID_ARGUMENT, &error,
        "`whole`: the optimizer's beta2 is nan");
    rule = fixture_store_rule(OPTIMIZER_NONE);
    assert_error(store_train(store, whole, &rule, &error), CADRE_INVALID_ARGUMENT, &error,
        "optimizer of no kind");
    rule = fixture_store_rule((enum optimizer_kind)99);
    assert_error(store_train(store, whole, &rule, &error), CADRE_INVALID_ARGUMENT, &error,
        "99 is no kind of optimizer");
    rule = fixture_store_rule(OPTIMIZER_LAMB);
    assert_ok(store_train(store, whole, &rule, &error), &error);
    assert_int_equal(store_rule(store, part)->kind, OPTIMIZER_NONE);
}

static void slots_need_room(void **state)
{
    (void)state;
    struct store_options options = {.fd = -1, .limit_bytes = 3 << 20};
    struct store *small = NULL;
    bool kept = true;
    struct cadre_error error = {0};
    assert_ok(store_open(&options, &small, &kept, &error), &error);
    uint32_t shard =
        fixture_store_create(small, "wide", CADRE_F32, 1 << 18, 1, OPTIMIZER_NONE); /* 1 MiB */
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_ADAM);
    assert_error(store_train(small, shard, &rule, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "ps has no room for the slots of the optimizer of shard 0 of `wide`: 2.0 MiB");
    assert_int_equal(store_rule(small, shard)->kind, OPTIMIZER_NONE);
    rule = fixture_store_rule(OPTIMIZER_MOMENTUM);
    assert_ok(store_train(small, shard, &rule, &error), &error);
    store_close(small);
}

static struct push update_of(uint32_t shard, uint64_t closure)
{
    return (struct push){.shard = shard,
        .kind = PUSH_UPDATE,
        .closure = closure,
        .rows = 4,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION};
}

/* Pushes that add go on while it is trained, and what they left is put back. */
static void it_is_kept_with_its_slots(void **state)
{
    (void)state;
    int fd = fixture_store_memory();
    struct cadre_error error = {0};
    const double values[] = {1, 2, 3, 4};
    struct store *one = fixture_store_open(fd);
    uint32_t shard = fixture_store_create(one, "a", CADRE_F64, 4, 1, OPTIMIZER_NONE);
    struct push push = update_of(shard, 1);
    struct pushing pushing;
    assert_error(store_push_begin(one, 0, &push, &pushing, &error), CADRE_FAILED_PRECONDITION,
        &error, "`a` has no optimizer; build one for it, or assign or add to it instead");
    push.kind = PUSH_ADD;
    fixture_store_push(one, &push, values);
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_ADAM);
    rule.schedule =
        (struct schedule){.kind = SCHEDULE_EXPONENTIAL, .decay_steps = 2, .decay_rate = 0.5};
    assert_ok(store_train(one, shard, &rule, &error), &error);
    push = update_of(shard, 2);
    fixture_store_push(one, &push, values);
    uint64_t digest = fixture_store_digest(one);
    store_close(one);
    one = fixture_store_open(fd);
    assert_int_equal(store_rule(one, shard)->kind, OPTIMIZER_ADAM);
    assert_int_equal(store_rule(one, shard)->schedule.decay_steps, 2);
    assert_true(fixture_store_digest(one) == digest);
    assert_ok(store_train(one, shard, &rule, &error), &error);
    store_close(one);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_shard_is_trained_once, open_one, close_one),
        cmocka_unit_test_setup_teardown(slots_begin_with_what_they_are_to, open_one, close_one),
        cmocka_unit_test_setup_teardown(what_is_no_rule_is_refused, open_one, close_one),
        cmocka_unit_test(slots_need_room),
        cmocka_unit_test(it_is_kept_with_its_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
