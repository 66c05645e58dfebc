/* SPDX-License-Identifier: Apache-2.0
 * Elements that a function of the program makes: passes that begin and end once, what the function
 * may not do, and what is said of it. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"

/* What the functions below do, and what was asked of them. */
struct plan {
    int64_t elements;    /* of a pass */
    int64_t fails_at;    /* the element that fails; -1: none */
    cadre_status status; /* with which it fails; CADRE_OK: it is of the wrong kind */
    uint64_t begun;
    uint64_t ended;
    uint64_t calls;
    cadre_status begin_status;
};

struct one_pass {
    uint64_t epoch;
    int64_t at;
};

static cadre_status begin(uint64_t epoch, void **ret_pass, void *user)
{
    struct plan *plan = user;
    plan->begun++;
    if (plan->begin_status != CADRE_OK) {
        return plan->begin_status;
    }
    struct one_pass *pass = malloc(sizeof *pass);
    assert_non_null(pass);
    *pass = (struct one_pass){.epoch = epoch};
    *ret_pass = pass;
    return CADRE_OK;
}

/* Element i is (100 * epoch + i, [i i]), of the wrong kind (100 * epoch + i, i). */
static cadre_status next(void *pass_of, cadre_element *ret_out, void *user)
{
    struct plan *plan = user;
    struct one_pass *pass = pass_of;
    int64_t number = pass->at++;
    const int64_t dims[] = {2};
    const int64_t twice[] = {number, number};
    plan->calls++;
    if (number == plan->fails_at && plan->status != CADRE_OK) {
        CADRE_TRY(cadre_tensor_from_i64(0, &ret_out->tensors[0]));
        ret_out->count = 1;
        struct cadre_error error = {0};
        cadre_error_set(&error, plan->status, "the well ran dry"); /* as cadre_fail does it */
        cadre_error_publish(&error);
        return plan->status;
    }
    if (number == plan->elements) {
        return CADRE_OUT_OF_RANGE;
    }
    CADRE_TRY(cadre_tensor_from_i64((int64_t)pass->epoch * 100 + number, &ret_out->tensors[0]));
    ret_out->count = 1;
    CADRE_TRY(cadre_tensor_from_data(
        CADRE_I64, number == plan->fails_at ? 0 : 1, dims, twice, &ret_out->tensors[1]));
    ret_out->count = 2;
    return CADRE_OK;
}

static void end(void *pass, void *user)
{
    ((struct plan *)user)->ended++;
    free(pass);
}

static const cadre_element_spec output = {
    .count = 2, .tensors = {{.dtype = CADRE_I64}, {.dtype = CADRE_I64, .rank = 1, .dims = {2}}}};

static cadre_dataset *generated(struct plan *plan, int64_t cardinality)
{
    const cadre_generator generator = {.output = &output,
        .begin = begin,
        .next = next,
        .end = end,
        .cardinality = cardinality,
        .user = plan};
    return cadre_dataset_generator(&generator);
}

static void passes(void **state)
{
    (void)state;
    struct plan plan = {.elements = 3, .fails_at = -1};
    cadre_dataset *data = generated(&plan, 0);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    expect_spec(data, "i64 [] i64 [2]");
    assert_int_equal(plan.begun, 0);
    assert_string_equal(elements_text(data, &(struct pass){.epoch = 2}, SIZE_MAX),
        "(200, [0 0]) (201, [1 1]) (202, [2 2])");
    assert_int_equal(plan.begun, 1);
    assert_int_equal(plan.ended, 1);
    /* Given up in the middle. */
    assert_string_equal(elements_text(data, &(struct pass){0}, 1), "(0, [0 0])");
    assert_int_equal(plan.begun, 2);
    assert_int_equal(plan.ended, 2);
    /* Each pass of a repetition is another epoch. */
    data = cadre_dataset_repeat(data, 2);
    expect_elements(cadre_dataset_batch(data, 2, false),
        "([0 1], [[0 0] [1 1]]) ([2 100], [[2 2] [0 0]]) ([101 102], [[1 1] [2 2]])");
    assert_int_equal(plan.begun, 4);
    assert_int_equal(plan.ended, 4);
}

/* The end stays the end, and the pass is over at once, not when the iterator is freed. */
static void the_end(void **state)
{
    (void)state;
    struct plan plan = {.elements = 1, .fails_at = -1};
    cadre_dataset *data = generated(&plan, 0);
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    cadre_element_release(&element);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
        assert_int_equal(plan.ended, 1);
        assert_int_equal(plan.calls, 2);
    }
    cadre_iterator_release(iterator);
    assert_int_equal(plan.ended, 1);
    cadre_dataset_release(data);
}

static cadre_status count_to_three(void *pass, cadre_element *ret_out, void *user)
{
    int64_t *number = user;
    assert_null(pass);
    if (*number == 3) {
        return CADRE_OUT_OF_RANGE;
    }
    CADRE_TRY(cadre_tensor_from_i64((*number)++, &ret_out->tensors[0]));
    ret_out->count = 1;
    return CADRE_OK;
}

static void never_called(void *pass, void *user)
{
    (void)pass;
    (void)user;
    fail_msg("end of a pass that was not begun");
}

static void without_a_pass(void **state)
{
    (void)state;
    int64_t number = 0;
    const cadre_element_spec scalar = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    expect_elements(cadre_dataset_generator(&(cadre_generator){
                        .output = &scalar, .next = count_to_three, .user = &number}),
        "0 1 2");
    number = 0;
    expect_elements(
        cadre_dataset_generator(&(cadre_generator){
            .output = &scalar, .next = count_to_three, .end = never_called, .user = &number}),
        "0 1 2");
}

static void failures(void **state)
{
    (void)state;
    struct plan plan = {.elements = 5, .fails_at = 2, .status = CADRE_INTERNAL};
    expect_failure(generated(&plan, 0), CADRE_INTERNAL,
        "generator: element 2 (from 0) of epoch 0: next: the function failed with INTERNAL: the "
        "well ran dry");
    assert_int_equal(plan.ended, 1);
    plan.status = CADRE_CANCELLED;
    expect_failure(generated(&plan, 0), CADRE_CANCELLED, "element 2 (from 0)");
    plan.status = (cadre_status)-1;
    expect_failure(generated(&plan, 0), CADRE_UNKNOWN, "element 2 (from 0)");
    plan.status = CADRE_OK;
    expect_failure(generated(&plan, 0), CADRE_INVALID_ARGUMENT,
        "element 2 (from 0) of epoch 0: next: output 1 is i64 [] and was declared as i64 [2]");
    assert_int_equal(plan.begun, plan.ended);
    assert_int_equal(plan.calls, 4 * 3);
    plan.begin_status = CADRE_UNAVAILABLE;
    expect_failure(generated(&plan, 0), CADRE_UNAVAILABLE,
        "generator: a pass over epoch 0: begin: the function failed with UNAVAILABLE");
    assert_int_equal(plan.ended, 4);
    /* It cannot be mistaken for an empty dataset. */
    plan.begin_status = CADRE_OUT_OF_RANGE;
    expect_failure(generated(&plan, 0), CADRE_UNKNOWN, "begin: the function failed");
}

static void declared_numbers(void **state)
{
    (void)state;
    struct plan plan = {.elements = 2, .fails_at = -1};
    cadre_dataset *data = generated(&plan, 2);
    assert_int_equal(cadre_dataset_cardinality(data), 2);
    expect_elements(data, "(0, [0 0]) (1, [1 1])");
    expect_failure(generated(&plan, 3), CADRE_FAILED_PRECONDITION,
        "has only 2 elements, and cadre_generator.cardinality says 3");
    expect_failure(generated(&plan, 1), CADRE_FAILED_PRECONDITION,
        "has more than 1 elements, and cadre_generator.cardinality says 1");
    data = generated(&plan, CADRE_CARDINALITY_INFINITE);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_INFINITE);
    expect_failure(data, CADRE_FAILED_PRECONDITION, "ended after 2 elements");
    assert_int_equal(plan.begun, plan.ended);
}

static cadre_status next_number(void *pass_of, cadre_element *ret_out, void *user)
{
    cadre_element both = {0};
    CADRE_TRY(next(pass_of, &both, user));
    *ret_out = (cadre_element){.count = 1, .tensors = {both.tensors[0]}};
    cadre_tensor_release(both.tensors[1]);
    return CADRE_OK;
}

/* Every worker generates all of it and takes its own. */
static void distributed(void **state)
{
    (void)state;
    char text[512];
    struct plan plan = {.elements = 7, .fails_at = -1};
    const cadre_element_spec scalar = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    const cadre_generator generator = {.output = &scalar,
        .begin = begin,
        .next = next_number,
        .end = end,
        .cardinality = 7,
        .user = &plan};
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_generator(&generator), 4, false);
    assert_int_equal(cadre_dataset_cardinality(data), 2);
    assert_string_equal(
        step_text(data, 2, 1, CADRE_SHARD_DATA, 0, 0, text, sizeof text), "[0 1] | [2 3]");
    assert_string_equal(
        step_text(data, 2, 1, CADRE_SHARD_DATA, 3, 1, text, sizeof text), "[304 305] | [306]");
    assert_string_equal(step_text(data, 2, 1, CADRE_SHARD_DATA, 0, 2, text, sizeof text), "end");
    assert_string_equal(
        step_text(data, 2, 1, CADRE_SHARD_OFF, 1, 0, text, sizeof text), "[100 101] | [100 101]");
    cadre_dataset_release(data);
    assert_int_equal(plan.begun, plan.ended);
}

static void wrong_descriptions(void **state)
{
    (void)state;
    struct plan plan = {.elements = 1};
    const cadre_element_spec none = {0};
    const cadre_element_spec many = {.count = 65};
    const cadre_element_spec typeless = {.count = 1};
    const cadre_element_spec deep = {.count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 9}}};
    const cadre_element_spec negative = {.count = 2,
        .tensors = {{.dtype = CADRE_I64}, {.dtype = CADRE_I64, .rank = 1, .dims = {-2}}}};
    const struct {
        cadre_generator generator;
        const char *message;
    } cases[] = {
        {{.output = &output}, "cadre_generator.next is NULL"},
        {{.next = next}, "cadre_generator.output is NULL"},
        {{.next = next, .output = &none}, "0 components declared"},
        {{.next = next, .output = &many}, "65 components declared"},
        {{.next = next, .output = &typeless}, "component 0 is declared with type 0"},
        {{.next = next, .output = &deep}, "component 0 is declared with type"},
        {{.next = next, .output = &negative}, "dimension 0 of component 1 is declared as -2"},
        {{.next = next, .output = &output, .cardinality = CADRE_CARDINALITY_UNKNOWN},
            "-1 elements declared"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_failure(
            cadre_dataset_generator(&cases[i].generator), CADRE_INVALID_ARGUMENT, cases[i].message);
    }
    expect_failure(
        cadre_dataset_generator(NULL), CADRE_INVALID_ARGUMENT, "the description is NULL");
    cadre_dataset *data = generated(&plan, 7);
    char *text = dataset_describe(data);
    assert_non_null(strstr(text, "generator: 7 elements, i64 [], i64 [2]"));
    free(text);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes),
        cmocka_unit_test(the_end),
        cmocka_unit_test(without_a_pass),
        cmocka_unit_test(failures),
        cmocka_unit_test(declared_numbers),
        cmocka_unit_test(distributed),
        cmocka_unit_test(wrong_descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
