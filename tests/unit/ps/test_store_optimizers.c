/* SPDX-License-Identifier: Apache-2.0
 * What pushes do to elements: each kind on each type, each optimizer by its formula, rows by
 * number.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/half.h"
#include "common/pure/prng.h"
#include "store_fixture.h"
#include "worker/library/ps/store/store_isa.h"

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

static struct push push_of(uint32_t shard, enum push_kind kind, uint64_t rows)
{
    return (struct push){.shard = shard,
        .kind = kind,
        .rows = rows,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION};
}

static struct push sparse_of(
    uint32_t shard, enum push_kind kind, const int64_t *ids, uint64_t count)
{
    struct push push = push_of(shard, kind, count);
    push.sparse = true;
    push.ids = ids;
    return push;
}

/* 64 bits of any integer type in `dtype`'s width. */
static void put(void *at, cadre_dtype dtype, double value)
{
    switch (dtype) {
    case CADRE_F64:
        *(double *)at = value;
        break;
    case CADRE_F32:
        *(float *)at = (float)value;
        break;
    case CADRE_F16:
        *(uint16_t *)at = half_to_f16((float)value);
        break;
    case CADRE_BF16:
        *(uint16_t *)at = half_to_bf16((float)value);
        break;
    default: {
        int64_t whole = (int64_t)value;
        memcpy(at, &whole, cadre_dtype_bytes(dtype)); /* little-endian */
    }
    }
}

static void each_type_is_added_to(void **state)
{
    (void)state;
    for (int i = CADRE_F64; i <= CADRE_U8; i++) {
        cadre_dtype dtype = (cadre_dtype)i;
        size_t bytes = cadre_dtype_bytes(dtype);
        uint32_t shard =
            fixture_store_create(store, cadre_dtype_name(dtype), dtype, 37, 1, OPTIMIZER_NONE);
        char values[37 * 8];
        char wanted[37 * 8];
        for (size_t k = 0; k < 37; k++) {
            put(values + k * bytes, dtype, (double)k);
            put(wanted + k * bytes, dtype, 2.0 * (double)k);
        }
        struct push add = push_of(shard, PUSH_ADD, 37);
        fixture_store_push(store, &add, values);
        assert_memory_equal(store_rows(store, shard, 0, 37), values, 37 * bytes);
        fixture_store_push(store, &add, values);
        assert_memory_equal(store_rows(store, shard, 0, 37), wanted, 37 * bytes);
        struct push sub = push_of(shard, PUSH_SUB, 36);
        sub.first_row = 1;
        fixture_store_push(store, &sub, values + bytes);
        assert_memory_equal(store_rows(store, shard, 0, 37), values, 37 * bytes);
        struct push assign = push_of(shard, PUSH_ASSIGN, 37);
        fixture_store_push(store, &assign, wanted);
        assert_memory_equal(store_rows(store, shard, 0, 37), wanted, 37 * bytes);
    }
    uint32_t shard = fixture_store_create(store, "bool", CADRE_BOOL, 3, 1, OPTIMIZER_NONE);
    struct push assign = push_of(shard, PUSH_ASSIGN, 3);
    fixture_store_push(store, &assign, "\1\0\1");
    assert_memory_equal(store_rows(store, shard, 0, 3), "\1\0\1", 3);
}

static void integers_wrap(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "i8", CADRE_I8, 2, 1, OPTIMIZER_NONE);
    const int8_t values[] = {127, -128};
    const int8_t more[] = {1, -1};
    struct push assign = push_of(shard, PUSH_ASSIGN, 2);
    struct push add = push_of(shard, PUSH_ADD, 2);
    fixture_store_push(store, &assign, values);
    fixture_store_push(store, &add, more);
    assert_memory_equal(store_rows(store, shard, 0, 2), ((int8_t[]){-128, 127}), 2);
}

/* One element, step by step; the numbers of fixture_store_rule. By hand: Keras' definitions. */
struct model {
    struct optimizer_rule rule;
    double v;
    double a;
    double b;
    double c;
    unsigned t;
};

static struct model model_of(const struct optimizer_rule *rule)
{
    return (struct model){.rule = *rule, .a = rule->kind == OPTIMIZER_ADAGRAD ? 0.25 : 0};
}

static void model_step(struct model *model, double g, double rate)
{
    model->v -= model->v * model->rule.weight_decay * rate;
    switch (model->rule.kind) {
    case OPTIMIZER_SGD:
        model->v -= rate * g;
        break;
    case OPTIMIZER_MOMENTUM:
        model->a = 0.5 * model->a - rate * g;
        model->v += model->rule.nesterov ? 0.5 * model->a - rate * g : model->a;
        break;
    case OPTIMIZER_ADAGRAD:
        model->a += g * g;
        model->v -= rate * g / sqrt(model->a + 0.125);
        break;
    case OPTIMIZER_RMSPROP:
        model->a = 0.75 * model->a + 0.25 * g * g;
        model->c = 0.75 * model->c + 0.25 * g;
        model->b =
            0.5 * model->b +
            rate * g / sqrt(model->a - (model->rule.centered ? model->c * model->c : 0) + 0.125);
        model->v -= model->b;
        break;
    default:
        model->t++;
        model->a = 0.75 * model->a + 0.25 * g;
        model->b = 0.875 * model->b + 0.125 * g * g;
        /* The textbook's form, with epsilon scaled as Keras has it. */
        model->v -= rate * (model->a / (1 - pow(0.75, model->t))) /
                    ((sqrt(model->b) + 0.125) / sqrt(1 - pow(0.875, model->t)));
    }
}

static uint32_t create_by(cadre_dtype dtype, const struct optimizer_rule *rule)
{
    struct store_spec spec = {.dtype = dtype, .rows = 5, .row_elements = 7};
    snprintf(spec.name, sizeof spec.name, "v%u", store_count(store));
    struct cadre_error error = {0};
    uint32_t shard = 0;
    assert_ok(store_create(store, &spec, &shard, &error), &error);
    assert_ok(store_train(store, shard, rule, &error), &error);
    return shard;
}

static void check_optimizer(cadre_dtype dtype, struct optimizer_rule rule)
{
    uint32_t shard = create_by(dtype, &rule);
    struct model models[35];
    for (size_t i = 0; i < 35; i++) {
        models[i] = model_of(&rule);
    }
    struct prng random = {.state = 5};
    for (int step = 0; step < 6; step++) {
        double gradients[35];
        float narrow[35];
        double rate = step % 2 == 0 ? 0.5 : 0.125;
        for (size_t i = 0; i < 35; i++) {
            gradients[i] = ((double)prng_uniform(&random, 2000) - 1000) / 512;
            narrow[i] = (float)gradients[i];
            model_step(&models[i], gradients[i], rate);
        }
        struct push push = push_of(shard, PUSH_UPDATE, 5);
        push.rate = step % 2 == 0 ? (double)NAN : rate;
        fixture_store_push(store, &push, dtype == CADRE_F64 ? (void *)gradients : narrow);
    }
    double near = dtype == CADRE_F64 ? 1e-12 : 1e-5;
    for (size_t i = 0; i < 35; i++) {
        const void *rows = store_rows(store, shard, 0, 5);
        double value =
            dtype == CADRE_F64 ? ((const double *)rows)[i] : (double)((const float *)rows)[i];
        assert_true(fabs(value - models[i].v) < near);
    }
    assert_int_equal(store_updates(store, shard), 6);
}

static void optimizers_do_as_keras_does(void **state)
{
    (void)state;
    for (int dtype = CADRE_F64; dtype <= CADRE_F32; dtype++) {
        for (int kind = OPTIMIZER_SGD; kind <= OPTIMIZER_ADAMW; kind++) {
            struct optimizer_rule rule = fixture_store_rule((enum optimizer_kind)kind);
            check_optimizer((cadre_dtype)dtype, rule);
            rule.nesterov = true;
            rule.centered = true;
            rule.weight_decay = 0.25;
            check_optimizer((cadre_dtype)dtype, rule);
        }
    }
}

/* The shard's own count is the step, also where the bit pattern of a push's rate says nothing. */
static void rates_follow_their_schedule(void **state)
{
    (void)state;
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_SGD);
    rule.schedule = (struct schedule){
        .kind = SCHEDULE_PIECEWISE, .boundaries = 2, .bounds = {0, 2}, .values = {0.25, 0.125}};
    uint32_t shard = create_by(CADRE_F64, &rule);
    const double ones[7] = {1, 1, 1, 1, 1, 1, 1};
    const double wanted[] = {-0.5, -0.75, -1, -1.125, -1.25};
    for (unsigned step = 0; step < 5; step++) {
        struct push push = push_of(shard, PUSH_UPDATE, 1);
        push.closure = 1 + step;
        fixture_store_push(store, &push, ones);
        fixture_store_push(store, &push, ones); /* once more is not another step */
        assert_true(*(const double *)store_rows(store, shard, 0, 1) == wanted[step]);
    }
    struct push synchronous = push_of(shard, PUSH_UPDATE, 1);
    synchronous.closure = 9;
    synchronous.contributions = 1;
    fixture_store_push(store, &synchronous, ones);
    assert_true(*(const double *)store_rows(store, shard, 0, 1) == -1.375);
    assert_int_equal(store_updates(store, shard), 6);
}

/* By hand: v = 0, g = 2 and then 1, rate 0.5, momentum 0.5. */
static void momentum_by_hand(void **state)
{
    (void)state;
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_MOMENTUM);
    uint32_t plain = create_by(CADRE_F64, &rule);
    rule.nesterov = true;
    uint32_t nesterov = create_by(CADRE_F64, &rule);
    double gradients[7];
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 7; i++) {
            gradients[i] = step == 0 ? 2 : 1;
        }
        struct push push = push_of(plain, PUSH_UPDATE, 1);
        fixture_store_push(store, &push, gradients);
        push.shard = nesterov;
        fixture_store_push(store, &push, gradients);
    }
    /* a: -1, then -1; v: -1, -2. Nesterov: -1.5, then -1.5 - 0.5 - 0.5. */
    assert_true(*(const double *)store_rows(store, plain, 0, 1) == -2);
    assert_true(*(const double *)store_rows(store, nesterov, 0, 1) == -2.5);
    assert_true(*(double *)store_slot(store, nesterov, 0) == -1);
}

/* ---- LAMB ---- */

/* One update of `count` elements by the paper's formulas, the numbers of fixture_store_rule. */
static void lamb_step(double *v, double *m, double *w, const double *g, size_t count, unsigned t)
{
    double u[35];
    double norm_v = 0;
    double norm_u = 0;
    assert_true(count <= 35);
    for (size_t i = 0; i < count; i++) {
        m[i] = 0.75 * m[i] + 0.25 * g[i];
        w[i] = 0.875 * w[i] + 0.125 * g[i] * g[i];
        u[i] =
            m[i] / (1 - pow(0.75, t)) / (sqrt(w[i] / (1 - pow(0.875, t))) + 0.125) + 0.0625 * v[i];
        norm_v += v[i] * v[i];
        norm_u += u[i] * u[i];
    }
    double ratio = norm_v > 0 && norm_u > 0 ? sqrt(norm_v / norm_u) : 1;
    for (size_t i = 0; i < count; i++) {
        v[i] -= 0.5 * ratio * u[i];
    }
}

static struct optimizer_rule lamb(void)
{
    struct optimizer_rule rule = fixture_store_rule(OPTIMIZER_LAMB);
    rule.weight_decay = 0.0625;
    return rule;
}

static void assert_rows(uint32_t shard, const double *wanted, size_t count)
{
    const double *rows = store_rows(store, shard, 0, 5);
    for (size_t i = 0; i < count; i++) {
        assert_true(fabs(rows[i] - wanted[i]) < 1e-12);
    }
}

/* Dense, as a step of two contributions, and dense once more: norms of the whole. */
static void lamb_does_as_its_paper(void **state)
{
    (void)state;
    struct optimizer_rule rule = lamb();
    uint32_t shard = create_by(CADRE_F64, &rule);
    double v[35];
    double m[35] = {0};
    double w[35] = {0};
    double g[35];
    for (size_t i = 0; i < 35; i++) {
        v[i] = 1 + (double)(i % 5);
    }
    struct push assign = push_of(shard, PUSH_ASSIGN, 5);
    fixture_store_push(store, &assign, v);
    for (unsigned t = 1; t <= 4; t++) {
        for (size_t i = 0; i < 35; i++) {
            g[i] = (double)((i * t) % 7) - 2;
        }
        lamb_step(v, m, w, g, 35, t);
        struct push push = push_of(shard, PUSH_UPDATE, 5);
        push.closure = t;
        push.contributions = t == 2 ? 2 : 0;
        fixture_store_push(store, &push, g);
        if (t == 2) {
            push.ordinal = 1;
            fixture_store_push(store, &push, g);
        }
        assert_rows(shard, v, 35);
    }
}

/* Norms of the rows that change: the first two of five, one of which comes twice. */
static void lamb_of_rows_has_their_norms(void **state)
{
    (void)state;
    struct optimizer_rule rule = lamb();
    uint32_t shard = create_by(CADRE_F64, &rule);
    double v[35];
    double m[14] = {0};
    double w[14] = {0};
    double g[14];
    double pushed[21];
    for (size_t i = 0; i < 35; i++) {
        v[i] = 2 - (double)(i % 3);
    }
    struct push assign = push_of(shard, PUSH_ASSIGN, 5);
    fixture_store_push(store, &assign, v);
    for (size_t i = 0; i < 21; i++) {
        pushed[i] = (double)(i % 4) + 0.5;
    }
    for (size_t i = 0; i < 7; i++) { /* rows 1, 0, 1 */
        g[i] = pushed[7 + i];
        g[7 + i] = pushed[i] + pushed[14 + i];
    }
    lamb_step(v, m, w, g, 14, 1);
    struct push push = sparse_of(shard, PUSH_UPDATE, (int64_t[]){1, 0, 1}, 3);
    push.closure = 1;
    fixture_store_push(store, &push, pushed);
    fixture_store_push(store, &push, pushed);
    assert_rows(shard, v, 35);
    uint32_t other = create_by(CADRE_F64, &rule); /* and the same as a step */
    assign.shard = other;
    push.shard = other;
    push.contributions = 1;
    for (size_t i = 0; i < 35; i++) {
        v[i] = 2 - (double)(i % 3);
    }
    fixture_store_push(store, &assign, v);
    fixture_store_push(store, &push, pushed);
    assert_memory_equal(store_rows(store, other, 0, 5), store_rows(store, shard, 0, 5), 35 * 8);
}

/* ---- rows by number ---- */

static void repeated_rows_are_added_up_first(void **state)
{
    (void)state;
    for (int i = OPTIMIZER_SGD; i <= OPTIMIZER_ADAMW; i++) {
        struct optimizer_rule rule = fixture_store_rule((enum optimizer_kind)i);
        uint32_t shard = create_by(CADRE_F64, &rule);
        double gradients[4 * 7];
        for (int k = 0; k < 4 * 7; k++) {
            gradients[k] = k % 4 + 1;
        }
        struct push push = sparse_of(shard, PUSH_UPDATE, (int64_t[]){3, 1, 3, 3}, 4);
        fixture_store_push(store, &push, gradients);
        const double *rows = store_rows(store, shard, 0, 5);
        for (int k = 0; k < 7; k++) {
            struct model once = model_of(&rule);
            struct model thrice = once;
            model_step(&once, gradients[7 + k], 0.5);
            model_step(&thrice, gradients[k] + gradients[14 + k] + gradients[21 + k], 0.5);
            assert_true(fabs(rows[7 + k] - once.v) < 1e-12);
            assert_true(fabs(rows[21 + k] - thrice.v) < 1e-12);
            assert_true(rows[k] == 0 && rows[14 + k] == 0 && rows[28 + k] == 0);
        }
        if (rule.kind == OPTIMIZER_ADAM) { /* rows that it does not name keep their slots */
            fixture_store_push(store, &push, gradients);
            assert_true(((double *)store_slot(store, shard, 0))[0] == 0);
        }
    }
}

static void of_what_is_assigned_the_last_counts(void **state)
{
    (void)state;
    uint32_t shard = fixture_store_create(store, "a", CADRE_I32, 9, 1, OPTIMIZER_NONE);
    struct push push = sparse_of(shard, PUSH_ASSIGN, (int64_t[]){8, 2, 8, 2, 5}, 5);
    fixture_store_push(store, &push, ((int32_t[]){1, 2, 3, 4, 5}));
    push = sparse_of(shard, PUSH_SUB, (int64_t[]){0, 0, 8}, 3);
    fixture_store_push(store, &push, ((int32_t[]){1, 2, 3}));
    push.rows = 0;
    fixture_store_push(store, &push, NULL);
    assert_memory_equal(
        store_rows(store, shard, 0, 9), ((int32_t[]){-3, 0, 4, 0, 0, 5, 0, 0, 0}), 36);
    int32_t gathered[4];
    store_gather(store, shard, (int64_t[]){5, 0, 0, 2}, 4, gathered);
    assert_memory_equal(gathered, ((int32_t[]){5, -3, -3, 4}), 16);
}

/* Many rows, narrow and wide, against adding them one by one. */
static void many_rows(void **state)
{
    (void)state;
    static int64_t ids[20000];
    static int64_t values[100000];
    static int64_t wanted[100000];
    static const uint64_t widths[] = {1, 5, 3000, 20000};
    struct prng random = {.state = 11};
    for (size_t w = 0; w < 4; w++) {
        uint64_t rows = 100000 / widths[w];
        uint64_t count = rows < 20000 ? rows : 20000;
        char name[8];
        snprintf(name, sizeof name, "w%zu", w);
        uint32_t shard =
            fixture_store_create(store, name, CADRE_I64, rows, widths[w], OPTIMIZER_NONE);
        memset(wanted, 0, sizeof wanted);
        for (uint64_t i = 0; i < count; i++) {
            ids[i] = (int64_t)prng_uniform(&random, rows);
            for (uint64_t k = 0; k < widths[w]; k++) {
                int64_t value = (int64_t)prng_uniform(&random, 1000);
                values[i * widths[w] + k] = value;
                wanted[(uint64_t)ids[i] * widths[w] + k] += value;
            }
        }
        struct push push = sparse_of(shard, PUSH_ADD, ids, count);
        push.closure = 1;
        fixture_store_push(store, &push, values);
        fixture_store_push(store, &push, values);
        assert_memory_equal(
            store_rows(store, shard, 0, rows), wanted, (size_t)(rows * widths[w]) * 8);
    }
}

static void nothing_is_a_push_too(void **state)
{
    (void)state;
    uint32_t empty = fixture_store_create(store, "empty", CADRE_F32, 0, 4, OPTIMIZER_ADAM);
    uint32_t flat = fixture_store_create(store, "flat", CADRE_F32, 3, 0, OPTIMIZER_SGD);
    struct push push = push_of(empty, PUSH_UPDATE, 0);
    push.closure = 1;
    fixture_store_push(store, &push, NULL);
    assert_int_equal(store_version(store, empty), 1);
    push.shard = flat;
    push.rows = 3;
    fixture_store_push(store, &push, NULL);
    push = sparse_of(flat, PUSH_ADD, (int64_t[]){1, 2}, 2);
    fixture_store_push(store, &push, NULL);
    assert_int_equal(store_version(store, flat), 2);
    assert_true(store_block_rows(store, flat) > 0);
}

/* ---- instruction sets ---- */

#define MANY       1003
#define MANY_BYTES (MANY * 8 + 8)

static void compare_loops(
    element_loop *const one[STORE_DTYPES], element_loop *const other[STORE_DTYPES], int dtype)
{
    static char from[MANY_BYTES];
    static char into[2][MANY_BYTES];
    struct prng random = {.state = (uint64_t)dtype};
    if (one[dtype] == NULL) {
        assert_null(other[dtype]);
        return;
    }
    /* Of two NaN either may be the result: floats have none. */
    const char mask = dtype <= CADRE_BF16 ? (char)0xbf : (char)0xff;
    for (size_t i = 0; i < MANY_BYTES; i++) {
        from[i] = (char)prng_next(&random) & mask;
        into[0][i] = (char)prng_next(&random) & mask;
    }
    memcpy(into[1], into[0], MANY_BYTES);
    one[dtype](into[0] + 1, from + 3, MANY);
    other[dtype](into[1] + 1, from + 3, MANY);
    assert_memory_equal(into[0], into[1], MANY_BYTES);
}

static void compare_means(const struct store_isa *other, int dtype)
{
    double parts[3][MANY];
    struct prng random = {.state = (uint64_t)dtype};
    for (size_t i = 0; i < MANY; i++) {
        put((char *)parts[0] + i * cadre_dtype_bytes((cadre_dtype)dtype), (cadre_dtype)dtype,
            (double)prng_uniform(&random, 1000000) / 1e6);
    }
    store_isa_baseline.mean[dtype](parts[1], parts[0], 3, MANY);
    other->mean[dtype](parts[2], parts[0], 3, MANY);
    assert_memory_equal(parts[1], parts[2], MANY * cadre_dtype_bytes((cadre_dtype)dtype));
}

static void all_instruction_sets_give_the_same_bits(void **state)
{
    (void)state;
    const struct store_isa *best = store_isa();
    const struct store_isa *base = &store_isa_baseline;
    for (int dtype = 0; dtype < STORE_DTYPES; dtype++) {
        compare_loops(base->add, best->add, dtype);
        compare_loops(base->sub, best->sub, dtype);
        compare_loops(base->sum, best->sum, dtype);
        compare_loops(base->add_sum, best->add_sum, dtype);
        compare_loops(base->sub_sum, best->sub_sum, dtype);
    }
    compare_means(best, CADRE_F64);
    compare_means(best, CADRE_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_type_is_added_to, open_one, close_one),
        cmocka_unit_test_setup_teardown(integers_wrap, open_one, close_one),
        cmocka_unit_test_setup_teardown(optimizers_do_as_keras_does, open_one, close_one),
        cmocka_unit_test_setup_teardown(rates_follow_their_schedule, open_one, close_one),
        cmocka_unit_test_setup_teardown(lamb_does_as_its_paper, open_one, close_one),
        cmocka_unit_test_setup_teardown(lamb_of_rows_has_their_norms, open_one, close_one),
        cmocka_unit_test_setup_teardown(momentum_by_hand, open_one, close_one),
        cmocka_unit_test_setup_teardown(repeated_rows_are_added_up_first, open_one, close_one),
        cmocka_unit_test_setup_teardown(of_what_is_assigned_the_last_counts, open_one, close_one),
        cmocka_unit_test_setup_teardown(many_rows, open_one, close_one),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test_setup_teardown(nothing_is_a_push_too, open_one, close_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
