/* SPDX-License-Identifier: Apache-2.0
 * Rules against the published formulas (figures.h, by figures.py), against what Keras' documents
 * and tests print, and against themselves: in any cut, by any instruction set, the same bits. */
#include <math.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/optimizer/apply.h"
#include "worker/library/optimizer/isa.h"
#include "worker/library/optimizer/powers.h"
#include "worker/library/optimizer/rule_bytes.h"

#include "figures.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void assert_near(double value, double wanted, double within)
{
    if (!(fabs(value - wanted) <= within * (1 + fabs(wanted)))) {
        fail_msg("%.12g instead of %.12g", value, wanted);
    }
}

static void put(cadre_dtype dtype, void *into, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (dtype == CADRE_F32) {
            ((float *)into)[i] = (float)from[i];
        } else {
            ((double *)into)[i] = from[i];
        }
    }
}

static double at(cadre_dtype dtype, const void *values, size_t i)
{
    return dtype == CADRE_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

/* A variable of up to WIDTH elements, and an update of it. */
struct variable {
    const struct optimizer_rule *rule;
    cadre_dtype dtype;
    size_t count;
    uint64_t updates;
    double values[WIDTH];
    double room[OPTIMIZER_SLOTS][WIDTH];
    void *slots[OPTIMIZER_SLOTS];
};

static void begin(struct variable *variable, const struct optimizer_rule *rule, cadre_dtype dtype,
    const double *values, size_t count)
{
    *variable = (struct variable){.rule = rule, .dtype = dtype, .count = count};
    put(dtype, variable->values, values, count);
    for (uint32_t i = 0; i < optimizer_slots(rule); i++) {
        double initial[WIDTH];
        for (size_t k = 0; k < WIDTH; k++) {
            initial[k] = optimizer_slot_initial(rule, i);
        }
        put(dtype, variable->room[i], initial, WIDTH);
        variable->slots[i] = variable->room[i];
    }
}

static void update(struct variable *variable, const double *gradient)
{
    double g[WIDTH];
    const struct optimizer_rule *rule = variable->rule;
    double rate = schedule_rate(&rule->schedule, rule->rate, variable->updates);
    put(variable->dtype, g, gradient, variable->count);
    double trust = 1;
    if (rule->kind == OPTIMIZER_LAMB) {
        struct optimizer_norms norms = {0};
        optimizer_norms_add(rule, variable->dtype, variable->updates, 0, variable->count,
            variable->values, g, variable->slots, &norms);
        trust = optimizer_trust(&norms);
    }
    optimizer_apply(rule, variable->dtype, rate, variable->updates, variable->count,
        variable->values, g, variable->slots, trust);
    variable->updates++;
}

static void rules_give_the_figures_of_their_formulas(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rule_figures); i++) {
        for (int dtype = CADRE_F64; dtype <= CADRE_F32; dtype++) {
            struct variable variable;
            begin(&variable, &rule_figures[i].rule, (cadre_dtype)dtype, start, WIDTH);
            for (size_t step = 0; step < STEPS; step++) {
                update(&variable, gradients[step]);
                for (size_t k = 0; k < WIDTH; k++) {
                    assert_near(at(variable.dtype, variable.values, k),
                        rule_figures[i].values[step][k], dtype == CADRE_F64 ? 1e-9 : 1e-6);
                }
            }
        }
    }
}

/* ---- what Keras prints ---- */

static const struct optimizer_rule keras_sgd = {.kind = OPTIMIZER_SGD, .rate = 0.1};
static const struct optimizer_rule keras_momentum = {
    .kind = OPTIMIZER_MOMENTUM, .rate = 0.1, .momentum = 0.9};
static const struct optimizer_rule keras_rmsprop = {
    .kind = OPTIMIZER_RMSPROP, .rate = 0.1, .rho = 0.9, .epsilon = 1e-7};
static const struct optimizer_rule keras_adam = {
    .kind = OPTIMIZER_ADAM, .rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7};

/* The examples of the documents: the loss is var^2 / 2, so the gradient is var. */
static void documented_examples_hold(void **state)
{
    (void)state;
    static const struct {
        const struct optimizer_rule *rule;
        double from;
        unsigned steps;
        double wanted;
    } examples[] = {{&keras_sgd, 1, 1, 0.9}, {&keras_momentum, 1, 1, 0.9},
        {&keras_momentum, 1, 2, 0.72}, {&keras_adam, 10, 1, 9.9},
        {&keras_rmsprop, 10, 1, 9.683772}};
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct variable variable;
        begin(&variable, examples[i].rule, CADRE_F32, &examples[i].from, 1);
        for (unsigned step = 0; step < examples[i].steps; step++) {
            double gradient = at(CADRE_F32, variable.values, 0);
            update(&variable, &gradient);
        }
        assert_near(at(CADRE_F32, variable.values, 0), examples[i].wanted, 1e-6);
    }
}

/* One step with rate 0.5 of (1, 2, 3, 4) by (1, 6, 7, 2), to the four digits of Keras' tests. */
static void single_steps_are_those_of_keras(void **state)
{
    (void)state;
    static const double values[] = {1, 2, 3, 4};
    static const double gradient[] = {1, 6, 7, 2};
    static const struct {
        struct optimizer_rule rule;
        double wanted[4];
    } steps[] = {{{.kind = OPTIMIZER_RMSPROP, .rate = 0.5, .rho = 0.9, .epsilon = 1e-7},
                     {-0.5811, 0.4189, 1.4189, 2.4189}},
        {{.kind = OPTIMIZER_ADAMW,
             .rate = 0.5,
             .beta1 = 0.9,
             .beta2 = 0.999,
             .epsilon = 1e-7,
             .weight_decay = 0.004},
            {0.4980, 1.4960, 2.494, 3.492}},
        {{.kind = OPTIMIZER_LAMB, .rate = 0.5, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7},
            {-0.3693, 0.6306, 1.6306, 2.6306}}};
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct variable variable;
        begin(&variable, &steps[i].rule, CADRE_F32, values, 4);
        update(&variable, gradient);
        for (size_t k = 0; k < 4; k++) {
            assert_near(at(CADRE_F32, variable.values, k), steps[i].wanted[k], 1e-4);
        }
    }
}

static void rules_know_their_slots(void **state)
{
    (void)state;
    struct optimizer_rule rule = {.kind = OPTIMIZER_RMSPROP, .centered = true};
    assert_int_equal(optimizer_slots(&rule), 2);
    assert_string_equal(optimizer_slot_name(&rule, 0), "velocity");
    assert_string_equal(optimizer_slot_name(&rule, 1), "average_gradient");
    rule.momentum = 0.5;
    assert_int_equal(optimizer_slots(&rule), 3);
    assert_string_equal(optimizer_slot_name(&rule, 1), "momentum");
    assert_string_equal(optimizer_slot_name(&rule, 2), "average_gradient");
    assert_false(optimizer_counts(&rule));
    rule.schedule.warmup_steps = 1;
    assert_true(optimizer_counts(&rule));
    assert_true(optimizer_counts(&keras_adam));
    assert_false(optimizer_counts(&keras_sgd));
    assert_int_equal(optimizer_slots(&keras_sgd), 0);
    assert_string_equal(optimizer_slot_name(&keras_momentum, 0), "momentum");
    assert_string_equal(optimizer_slot_name(&keras_adam, 0), "m");
    assert_string_equal(optimizer_slot_name(&keras_adam, 1), "v");
}

/* ---- schedules ---- */

static void schedules_give_the_figures_of_their_formulas(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(schedule_figures); i++) {
        for (size_t k = 0; k < TIMES; k++) {
            assert_near(schedule_rate(&schedule_figures[i].schedule, base_rate, times[k]),
                schedule_figures[i].rates[k], 1e-11);
        }
    }
}

/* As Keras documents PiecewiseConstantDecay: a bound is the last step of its piece. */
static void pieces_end_with_their_bound(void **state)
{
    (void)state;
    const struct schedule schedule = {.kind = SCHEDULE_PIECEWISE,
        .boundaries = 3,
        .bounds = {100, 110, 120},
        .values = {0.1, 0.01, 0.001}};
    static const uint64_t steps[] = {0, 100, 101, 110, 111, 120, 121, 999};
    static const double rates[] = {1, 1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001};
    for (size_t i = 0; i < COUNT(steps); i++) {
        assert_true(schedule_rate(&schedule, 1, steps[i]) == rates[i]);
    }
}

static void powers_are_right(void **state)
{
    (void)state;
    static const double bases[] = {1e-300, 1e-9, 0.1, 0.5, 0.707, 0.96, 0.999, 1, 1.5, 10, 1e9};
    static const double exponents[] = {0, 1e-9, 0.25, 0.5, 1, 1.75, 2.5, 7, 33.3, 1000.125, 2e9};
    for (size_t i = 0; i < COUNT(bases); i++) {
        for (size_t k = 0; k < COUNT(exponents); k++) {
            double wanted = pow(bases[i], exponents[k]);
            double found = power_real(bases[i], exponents[k]);
            if (isfinite(wanted)) {
                assert_true(fabs(found - wanted) <= 1e-11 * wanted + 1e-300);
            } else {
                assert_true(found == wanted);
            }
        }
    }
    assert_true(power_real(0, 0.5) == 0);
    assert_true(power_real(0, 0) == 1);
    assert_true(power_integer(0.999, 0) == 1);
    assert_near(1 - power_integer(0.999, 100000), 1 - pow(0.999, 100000), 1e-13);
    for (unsigned i = 0; i <= 64; i++) {
        assert_near(cosine_of_pi(i / 64.0), cos(acos(-1) * i / 64), 1e-13);
    }
}

/* ---- the same bits ---- */

#define LONG 1021
struct field {
    char values[LONG * 8 + 8];
    char room[OPTIMIZER_SLOTS][LONG * 8 + 8];
    char gradient[LONG * 8 + 8];
};

/* Positive, as sums of squares have to be; `skew`: where the bytes begin. */
static void draw(struct field *field, cadre_dtype dtype, size_t skew)
{
    struct prng prng = {.state = 7};
    memset(field, 0, sizeof *field);
    size_t bytes = cadre_dtype_bytes(dtype);
    for (size_t i = 0; i < LONG; i++) {
        for (size_t part = 0; part < 2 + OPTIMIZER_SLOTS; part++) {
            char *into = part == 0   ? field->values
                         : part == 1 ? field->gradient
                                     : field->room[part - 2];
            double drawn = (double)(prng_next(&prng) >> 40) / 16777216.0 + 0.01;
            double value = part == 1 ? drawn - 0.5 : drawn;
            double element = 0;
            put(dtype, &element, &value, 1);
            memcpy(into + skew + i * bytes, &element, bytes);
        }
    }
}

/* Updates it in runs of `length`. */
static void run(const struct optimizer_rule *rule, struct field *field, cadre_dtype dtype,
    size_t skew, size_t length)
{
    size_t bytes = cadre_dtype_bytes(dtype);
    struct optimizer_norms norms = {0};
    for (int pass = rule->kind == OPTIMIZER_LAMB ? 0 : 1; pass < 2; pass++) {
        for (size_t i = 0; i < LONG; i += length) {
            size_t count = length < LONG - i ? length : LONG - i;
            size_t offset = skew + i * bytes;
            void *slots[OPTIMIZER_SLOTS] = {
                field->room[0] + offset, field->room[1] + offset, field->room[2] + offset};
            if (pass == 0) {
                optimizer_norms_add(rule, dtype, 3, i, count, field->values + offset,
                    field->gradient + offset, slots, &norms);
            } else {
                optimizer_apply(rule, dtype, 0.01, 3, count, field->values + offset,
                    field->gradient + offset, slots, optimizer_trust(&norms));
            }
        }
    }
}

static void cuts_do_not_change_a_bit(void **state)
{
    (void)state;
    static struct field whole;
    static struct field cut;
    static const size_t lengths[] = {1, 3, 8, 31, 1000};
    for (size_t i = 0; i < COUNT(rule_figures); i++) {
        for (int dtype = CADRE_F64; dtype <= CADRE_F32; dtype++) {
            for (size_t k = 0; k < COUNT(lengths); k++) {
                size_t skew = k % 2 == 0 ? 0 : 1;
                draw(&whole, (cadre_dtype)dtype, skew);
                draw(&cut, (cadre_dtype)dtype, skew);
                run(&rule_figures[i].rule, &whole, (cadre_dtype)dtype, skew, LONG);
                run(&rule_figures[i].rule, &cut, (cadre_dtype)dtype, skew, lengths[k]);
                assert_memory_equal(&whole, &cut, sizeof whole);
            }
        }
    }
}

static void instruction_sets_do_not_change_a_bit(void **state)
{
    (void)state;
#ifdef __x86_64__
    static struct field one;
    static struct field other;
    const struct optimizer_isa *sets[] = {&optimizer_isa_baseline, &optimizer_isa_avx2};
    const struct update_terms terms = {.rate = 0.0123,
        .decay = 0.017,
        .momentum = 0.9,
        .rho = 0.81,
        .rest_rho = 0.19,
        .rest1 = 0.11,
        .rest2 = 0.0031,
        .correct1 = 3.7,
        .correct2 = 211.3,
        .epsilon = 1.3e-7};
    if (!__builtin_cpu_supports("avx2")) {
        skip();
    }
    for (size_t f64 = 0; f64 < 2; f64++) {
        for (size_t kind = 0; kind <= UPDATE_KINDS; kind++) {
            struct optimizer_norms norms[2] = {0};
            for (size_t set = 0; set < 2; set++) {
                struct field *field = set == 0 ? &one : &other;
                draw(field, f64 != 0 ? CADRE_F64 : CADRE_F32, 0);
                if (kind == UPDATE_KINDS) {
                    sets[set]->norms[f64](&terms, 5, field->values, field->room[0], field->room[1],
                        field->gradient, LONG, &norms[set]);
                } else {
                    sets[set]->update[kind][f64](&terms, field->values, field->room[0],
                        field->room[1], field->room[2], field->gradient, LONG);
                }
            }
            assert_memory_equal(&one, &other, sizeof one);
            assert_memory_equal(&norms[0], &norms[1], sizeof norms[0]);
        }
    }
#else
    skip();
#endif
}

/* A norm of 0 leaves the step as it is. */
static void lamb_of_zeros_is_not_scaled(void **state)
{
    (void)state;
    struct optimizer_norms norms = {0};
    assert_true(optimizer_trust(&norms) == 1);
    norms.values[3] = 4;
    assert_true(optimizer_trust(&norms) == 1);
    norms.changes[0] = 16;
    assert_true(optimizer_trust(&norms) == 0.5);
}

/* RMSPROP centered: what is rounded below 0 is 0, so that no root is of a negative number. */
static void centered_spreads_are_never_negative(void **state)
{
    (void)state;
    const struct optimizer_rule rule = {
        .kind = OPTIMIZER_RMSPROP, .rate = 0.001, .rho = 0.5, .centered = true, .epsilon = 1e-12};
    struct variable variable;
    const double begins[WIDTH] = {0};
    const double gradient[WIDTH] = {1000.1, 3333.3, -777.7, 12345.6};
    begin(&variable, &rule, CADRE_F32, begins, WIDTH);
    for (unsigned step = 0; step < 200; step++) {
        update(&variable, gradient);
    }
    for (size_t i = 0; i < WIDTH; i++) {
        assert_true(isfinite(at(CADRE_F32, variable.values, i)));
    }
}

/* ---- checks ---- */

static void refused(struct optimizer_rule rule, const char *sentence)
{
    struct cadre_error error = {0};
    assert_int_equal(optimizer_check(&rule, &error), CADRE_INVALID_ARGUMENT);
    assert_string_equal(error.text, sentence);
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct optimizer_rule rule = keras_adam;
    assert_int_equal(optimizer_check(&rule, &error), CADRE_OK);
    assert_int_equal(optimizer_check(&(struct optimizer_rule){0}, &error), CADRE_OK);
    rule.rate = 0;
    refused(rule, "the optimizer's rate is 0; give one above 0");
    rule.schedule.warmup_steps = 10;
    rule.schedule.warmup_target = 1;
    assert_int_equal(optimizer_check(&rule, &error), CADRE_OK);
    rule.beta2 = 1;
    refused(rule, "the optimizer's beta2 is 1; give one from 0 to less than 1");
    rule = keras_adam;
    rule.weight_decay = -1;
    refused(rule, "the optimizer's weight_decay is -1; give one of 0 or more");
    rule = keras_adam;
    rule.epsilon = (double)INFINITY;
    refused(rule, "the optimizer's epsilon is inf; give one of 0 or more");
    rule = keras_adam;
    rule.schedule.kind = SCHEDULE_COSINE;
    refused(rule, "the schedule's decay_steps is 0; give one above 0");
    rule.schedule.kind = SCHEDULE_PIECEWISE;
    refused(rule, "the schedule has 0 boundaries; give 1 to 16");
    rule.schedule.boundaries = 2;
    rule.schedule.bounds[0] = 7;
    rule.schedule.bounds[1] = 7;
    refused(rule, "the schedule's boundary 1 is 7, after 7; give them in ascending order");
    rule.kind = (enum optimizer_kind)99;
    refused(rule, "99 is no kind of optimizer");
}

/* ---- as bytes ---- */

static void rules_survive_as_bytes(void **state)
{
    (void)state;
    uint8_t bytes[RULE_BYTES];
    uint8_t again[RULE_BYTES];
    struct optimizer_rule read;
    struct optimizer_rule rule = {.kind = OPTIMIZER_LAMB,
        .nesterov = true,
        .rate = 1,
        .momentum = 2,
        .rho = 3,
        .initial_accumulator = 4,
        .beta1 = 5,
        .beta2 = 6,
        .epsilon = 7,
        .weight_decay = 8,
        .schedule = {.kind = SCHEDULE_PIECEWISE,
            .cycle = true,
            .boundaries = 16,
            .decay_steps = 9,
            .decay_rate = 10,
            .end_rate = 11,
            .power = 12,
            .alpha = 13,
            .warmup_steps = 14,
            .warmup_target = 15,
            .bounds = {[0] = 16, [15] = UINT64_MAX},
            .values = {[0] = 17, [15] = 18}}};
    rule_write(&rule, bytes);
    rule_read(bytes, &read);
    rule_write(&read, again);
    assert_memory_equal(bytes, again, sizeof bytes);
    assert_true(read.nesterov);
    assert_false(read.centered);
    assert_false(read.schedule.staircase);
    assert_true(read.schedule.cycle);
    assert_true(read.weight_decay == 8);
    assert_true(read.schedule.warmup_target == 15);
    assert_true(read.schedule.bounds[15] == UINT64_MAX);
    assert_true(read.schedule.values[15] == 18);
    memset(bytes, 0xff, sizeof bytes); /* of anything, and it is refused */
    rule_read(bytes, &read);
    struct cadre_error error = {0};
    assert_int_equal(optimizer_check(&read, &error), CADRE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_give_the_figures_of_their_formulas),
        cmocka_unit_test(documented_examples_hold),
        cmocka_unit_test(single_steps_are_those_of_keras),
        cmocka_unit_test(rules_know_their_slots),
        cmocka_unit_test(schedules_give_the_figures_of_their_formulas),
        cmocka_unit_test(pieces_end_with_their_bound),
        cmocka_unit_test(powers_are_right),
        cmocka_unit_test(cuts_do_not_change_a_bit),
        cmocka_unit_test(instruction_sets_do_not_change_a_bit),
        cmocka_unit_test(lamb_of_zeros_is_not_scaled),
        cmocka_unit_test(centered_spreads_are_never_negative),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(rules_survive_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
