/* SPDX-License-Identifier: Apache-2.0
 * flat_map and interleave: ids, failures, what the elements look like, what was consumed before. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/inner_datasets.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/input/nested/nested.h"
#include "worker/library/input/node/sample_id.h"

static const struct pass in_order = {.ordered = true};

static void expect_ids(cadre_dataset *data, const char *expected)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    struct id_list ids = {0};
    cadre_element element = {0};
    char text[512] = "";
    size_t used = 0;
    ASSERT_OK(dataset_iterate(data, &in_order, &iterator, &error));
    while (iterator_next(iterator, &element, &ids, &error) == CADRE_OK) {
        cadre_element_release(&element);
    }
    assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
    for (size_t i = 0; i < ids.count; i++) {
        uint64_t outer = 0;
        uint64_t ordinal = 0;
        assert_true(sample_id_split(ids.ids[i], &outer, &ordinal));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu:%llu", i > 0 ? " " : "",
            (unsigned long long)outer, (unsigned long long)ordinal);
    }
    assert_string_equal(text, expected);
    id_list_clear(&ids);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static cadre_status in_pairs(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    cadre_status status = make_inner(in, ret_data, user);
    *ret_data = cadre_dataset_batch(*ret_data, 2, false);
    return status;
}

static void ids(void **state)
{
    struct inner inner = {.lengths = {2, 1, 3, 2}};
    uint64_t outer = 0;
    uint64_t ordinal = 0;
    (void)state;
    expect_ids(cadre_dataset_flat_map(cadre_dataset_skip(range(0, 3), 1), make_inner, &inner),
        "1:0 2:0 2:1 2:2");
    for (int32_t parallel = 0; parallel < 3; parallel++) {
        expect_ids(cadre_dataset_interleave(range(0, 3), make_inner, &inner, turns(2, 1, parallel)),
            "0:0 1:0 0:1 2:0 2:1 2:2");
    }
    /* An element of the inner dataset is one sample, however many samples it is made of there. */
    expect_ids(cadre_dataset_flat_map(range(0, 3), in_pairs, &inner), "0:0 1:0 2:0 2:1");
    /* The first id of an input element that has several. */
    expect_ids(
        cadre_dataset_flat_map(
            cadre_dataset_batch(cadre_dataset_skip(range(0, 4), 1), 2, false), make_inner, &inner),
        "1:0 3:0 3:1");
    /* What does not fit is hashed. */
    assert_int_equal(sample_id_of(3, 5), UINT64_C(3) << 40 | 5);
    assert_false(
        sample_id_split(sample_id_of(UINT64_C(1) << SAMPLE_ID_OUTER_BITS, 5), &outer, &ordinal));
    assert_false(sample_id_split(sample_id_of(1, UINT64_C(1) << 40), &outer, &ordinal));
    assert_true(sample_id_of(UINT64_C(1) << 20, 5) != sample_id_of(UINT64_C(1) << 20, 6));
    assert_true(sample_id_of(UINT64_C(1) << 20, 5) != sample_id_of(UINT64_C(1) << 21, 5));
    assert_true(
        sample_id_split(sample_id_of((1 << 18) - 1, (UINT64_C(1) << 40) - 1), &outer, &ordinal));
    assert_int_equal(outer, (1 << 18) - 1);
    assert_int_equal(ordinal, (UINT64_C(1) << 40) - 1);
}

/* --- failures --- */

struct failing {
    int64_t at;
    cadre_status status;
    const char *message;
    cadre_dataset *(*make)(int64_t value); /* instead; or NULL */
};

static cadre_status fails(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    const struct failing *failing = user;
    *ret_data = range(10 * value_of(in), 10 * value_of(in) + 2);
    if (value_of(in) != failing->at) {
        return CADRE_OK;
    }
    if (failing->make != NULL) {
        cadre_dataset_release(*ret_data);
        *ret_data = failing->make(value_of(in));
        return CADRE_OK;
    }
    struct cadre_error error = {0};
    cadre_error_set(&error, failing->status, "%s", failing->message);
    return cadre_error_publish(&error);
}

static cadre_dataset *make_none(int64_t value)
{
    (void)value;
    return NULL;
}

static cadre_dataset *make_failed(int64_t value)
{
    return cadre_dataset_range(value, value + 1, 0);
}

static cadre_status torn(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)in;
    (void)ret_out;
    (void)user;
    return CADRE_DATA_LOSS;
}

static cadre_dataset *make_torn(int64_t value)
{
    return cadre_dataset_map(range(value, value + 4), torn, NULL, NULL);
}

static cadre_dataset *make_rows(int64_t value)
{
    return cadre_dataset_batch(range(value, value + 4), 2, true);
}

static cadre_dataset *make_pairs(int64_t value)
{
    cadre_dataset *const both[] = {range(0, value + 1), range(0, value + 1)};
    return cadre_dataset_zip(both, 2);
}

static void expect_each_fails(
    const struct failing *failing, cadre_status code, const char *before, const char *message)
{
    char expected[512];
    char prefix[128];
    for (int32_t parallel = -2; parallel < 3; parallel++) {
        struct failing own = *failing;
        cadre_dataset *data = parallel == -2 ? cadre_dataset_flat_map(range(0, 4), fails, &own)
                                             : cadre_dataset_interleave(
                                                   range(0, 4), fails, &own, turns(1, 1, parallel));
        snprintf(prefix, sizeof prefix, "%s: input element 2", data->ops->name);
        snprintf(expected, sizeof expected, "%s!%s ", before, cadre_status_name(code));
        const char *text = elements_text(data, &in_order, SIZE_MAX);
        assert_memory_equal(text, expected, strlen(expected));
        if (strstr(text, message) == NULL || strstr(text, "input element 2") == NULL) {
            fail_msg("%s", text);
        }
        cadre_dataset_release(data);
    }
}

static void failures_are_reported(void **state)
{
    (void)state;
    const char *both = "0 1 10 11";
    expect_each_fails(&(struct failing){2, CADRE_NOT_FOUND, "no such shard", NULL}, CADRE_NOT_FOUND,
        both, "input element 2: the function failed with NOT_FOUND: no such shard");
    expect_each_fails(&(struct failing){2, CADRE_OUT_OF_RANGE, "beyond", NULL}, CADRE_UNKNOWN, both,
        "input element 2: the function failed with OUT_OF_RANGE: beyond");
    expect_each_fails(&(struct failing){.at = 2, .make = make_none}, CADRE_RESOURCE_EXHAUSTED, both,
        "input element 2: the function made no dataset: the dataset is NULL");
    expect_each_fails(&(struct failing){.at = 2, .make = make_failed}, CADRE_INVALID_ARGUMENT, both,
        "input element 2: the function made no dataset: range: step is 0");
    expect_each_fails(&(struct failing){.at = 2, .make = make_torn}, CADRE_DATA_LOSS, both,
        "input element 2: sample 0 (from 0): map: the function failed with DATA_LOSS");
    expect_each_fails(&(struct failing){.at = 2, .make = make_rows}, CADRE_INVALID_ARGUMENT, both,
        "is i64 of rank 1, and was i64 of rank 0 before");
    expect_each_fails(&(struct failing){.at = 2, .make = make_pairs}, CADRE_INVALID_ARGUMENT, both,
        "have 2 components, and those before had 1");
}

static cadre_status fails_at_3(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    return value_of(in) == 3 ? CADRE_ABORTED : copy_element(in, ret_out, NULL);
}

/* The input's own failure comes when its element's turn comes. */
static void failing_inputs(void **state)
{
    struct inner inner = {.lengths = {2, 1, 3, 2, 2}};
    (void)state;
    cadre_dataset *input = cadre_dataset_map(range(0, 5), fails_at_3, NULL, NULL);
    for (int32_t parallel = 0; parallel < 3; parallel++) {
        cadre_dataset *data = cadre_dataset_interleave(
            cadre_dataset_retain(input), make_inner, &inner, turns(2, 1, parallel));
        const char *text = elements_text(data, &in_order, SIZE_MAX);
        assert_non_null(
            strstr(text, "0 100 1 200!ABORTED sample 3 (from 0): map: the function failed"));
        cadre_dataset_release(data);
    }
    cadre_dataset_release(input);
}

static void bad_arguments(void **state)
{
    struct inner inner = {.lengths = {1}};
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    (void)state;
    expect_failure(cadre_dataset_flat_map(range(0, 1), NULL, NULL), bad, "flat_map: the function");
    expect_failure(
        cadre_dataset_interleave(range(0, 1), NULL, NULL, NULL), bad, "interleave: the function");
    expect_failure(cadre_dataset_interleave(range(0, 1), make_inner, &inner, turns(-1, 1, 0)), bad,
        "a cycle of -1");
    expect_failure(cadre_dataset_interleave(range(0, 1), make_inner, &inner, turns(1, -5, 0)), bad,
        "blocks of -5");
    expect_failure(cadre_dataset_interleave(range(0, 1), make_inner, &inner, turns(1, 1, -2)), bad,
        "interleave: ");
    expect_failure(cadre_dataset_flat_map(cadre_dataset_range(0, 1, 0), make_inner, &inner), bad,
        "range: step is 0");
    assert_null(cadre_dataset_flat_map(NULL, make_inner, &inner));
    assert_null(cadre_dataset_interleave(NULL, make_inner, &inner, NULL));
}

/* Bytes of another pipeline are refused, whatever they say. */
static void positions_of_others(void **state)
{
    struct inner inner = {.lengths = {3, 3, 3, 3}};
    struct cadre_error error = {0};
    (void)state;
    for (int32_t parallel = 0; parallel < 2; parallel++) {
        struct iterator_state_writer saved = {0};
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        cadre_dataset *data =
            cadre_dataset_interleave(range(0, 4), make_inner, &inner, turns(3, 2, parallel));
        ASSERT_OK(dataset_iterate(data, &in_order, &iterator, &error));
        for (int i = 0; i < 5; i++) {
            ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
            cadre_element_release(&element);
        }
        ASSERT_OK(iterator_save(iterator, &saved, &error));
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
        data = cadre_dataset_interleave(range(0, 4), make_inner, &inner, turns(2, 1, parallel));
        ASSERT_OK(dataset_iterate(data, &in_order, &iterator, &error));
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        assert_int_equal(iterator_restore(iterator, &reader, &error), CADRE_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "interleave: the saved position"));
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
        iterator_state_writer_clear(&saved);
    }
}

/* A shard that has become shorter since its position was saved. */
static void shorter_than_before(void **state)
{
    struct cadre_error error = {0};
    (void)state;
    struct inner inner = {.lengths = {6, 6}};
    struct iterator_state_writer saved = {0};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_dataset *data = cadre_dataset_flat_map(range(0, 2), make_inner, &inner);
    ASSERT_OK(dataset_iterate(data, &in_order, &iterator, &error));
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(iterator_next(iterator, &element, NULL, &error));
        cadre_element_release(&element);
    }
    ASSERT_OK(iterator_save(iterator, &saved, &error));
    cadre_iterator_release(iterator);
    inner.lengths[0] = 3;
    ASSERT_OK(dataset_iterate(data, &in_order, &iterator, &error));
    struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
    assert_int_equal(iterator_restore(iterator, &reader, &error), CADRE_INVALID_ARGUMENT);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    iterator_state_writer_clear(&saved);
}

/* --- what the elements look like --- */

static cadre_status as_long_as_itself(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    int64_t length = value_of(in) / *(const int64_t *)user + 1;
    *ret_data = cadre_dataset_batch(range(0, 2 * length), length, true);
    return CADRE_OK;
}

static void specs(void **state)
{
    static int64_t one = 1;
    static int64_t two = 2;
    struct inner inner = {.lengths = {2, 2}};
    cadre_element_spec spec = {0};
    (void)state;
    cadre_dataset *data = cadre_dataset_flat_map(range(0, 2), make_inner, &inner);
    expect_spec(data, "i64 []");
    int calls = atomic_load(&inner.calls);
    expect_spec(data, "i64 []");
    assert_int_equal(atomic_load(&inner.calls), calls);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    cadre_dataset_release(data);
    /* Dimensions that differ are not known. */
    data = cadre_dataset_flat_map(range(0, 3), as_long_as_itself, &one);
    expect_spec(data, "i64 [?]");
    expect_consistent(data);
    expect_elements(data, "[0] [1] [0 1] [2 3] [0 1 2] [3 4 5]");
    /* That a later one differs does not hinder reading. */
    data = cadre_dataset_flat_map(range(0, 3), as_long_as_itself, &two);
    expect_spec(data, "i64 [1]");
    expect_elements(data, "[0] [1] [0] [1] [0 1] [2 3]");
    data = cadre_dataset_flat_map(range(0, 0), make_inner, &inner);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "flat_map: the input is empty"));
    cadre_dataset_release(data);
    data = cadre_dataset_flat_map(
        range(0, 4), fails, &(struct failing){0, CADRE_NOT_FOUND, "no such shard", NULL});
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_NOT_FOUND);
    cadre_dataset_release(data);
    /* The second is only looked at. */
    data = cadre_dataset_flat_map(
        range(0, 4), fails, &(struct failing){1, CADRE_NOT_FOUND, "no such shard", NULL});
    expect_spec(data, "i64 []");
    cadre_dataset_release(data);
}

/* Element v makes v elements of a map that says nothing of itself, as a file of v lines would. */
static cadre_status as_many_as_its_value(
    const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    *ret_data = cadre_dataset_map(range(0, value_of(in)), copy_element, NULL, NULL);
    return CADRE_OK;
}

/* That the first dataset is empty says nothing of the others. */
static void the_first_one_may_be_empty(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_flat_map(range(0, 3), as_many_as_its_value, NULL);
    expect_spec(data, "i64 []");
    expect_consistent(data);
    expect_elements(cadre_dataset_batch(data, 2, false), "[0 0] [1]");
    data = cadre_dataset_flat_map(cadre_dataset_repeat(range(0, 1), 3), as_many_as_its_value, NULL);
    cadre_element_spec spec = {0};
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_FAILED_PRECONDITION);
    assert_non_null(strstr(cadre_error_message(), "input element 0: map: the input is empty"));
    cadre_dataset_release(data);
}

/* --- distribution --- */

/* Sample `ordinal` of `outer` was consumed when the bit is set; and how many samples it was said to
 * have.
 */
struct consumed_bits {
    uint64_t bits[INNER_MAX];
    _Atomic uint64_t ended[INNER_MAX];
};

static uint64_t consumed_run(void *context, uint64_t outer_id, uint64_t ordinal, bool *ret_consumed)
{
    const struct consumed_bits *consumed = context;
    uint64_t run = 1;
    assert_true(outer_id < INNER_MAX && ordinal < 64);
    *ret_consumed = (consumed->bits[outer_id] >> ordinal & 1) != 0;
    while (ordinal + run < 64 &&
           ((consumed->bits[outer_id] >> (ordinal + run) & 1) != 0) == *ret_consumed) {
        run++;
    }
    return ordinal + run < 64 ? run : UINT64_MAX;
}

static void consumed_ended(void *context, uint64_t outer_id, uint64_t samples)
{
    assert_true(outer_id < INNER_MAX);
    ((struct consumed_bits *)context)->ended[outer_id] = samples;
}

/* Reads it to the end in the one way or the other: the ends that were reported, as text. */
static const char *ends_reported(
    cadre_dataset *data, struct consumed_bits *consumed, bool by_skipping, char *text)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    uint64_t skipped = 0;
    size_t used = 0;
    for (size_t i = 0; i < INNER_MAX; i++) {
        consumed->ended[i] = UINT64_MAX;
    }
    if (by_skipping) {
        ASSERT_OK(dataset_iterate(data, &in_order, &iterator, &error));
        ASSERT_OK(iterator_skip(iterator, 1000, &skipped, &error));
        cadre_iterator_release(iterator);
    } else {
        elements_text(data, &in_order, SIZE_MAX);
    }
    text[0] = '\0';
    for (size_t i = 0; i < INNER_MAX; i++) {
        if (consumed->ended[i] != UINT64_MAX) {
            used += (size_t)snprintf(text + used, 256 - used, "%s%zu:%llu", used > 0 ? " " : "", i,
                (unsigned long long)consumed->ended[i]);
        }
    }
    return text;
}

static void skips_what_was_consumed(void **state)
{
    struct inner inner = {.lengths = {6, 4, 3, 2}};
    /* Of 0: 0, 1, 4. Of 1: all, by a run without end. Of 2: what it does not have. 3: the last. */
    struct consumed_bits bits = {.bits = {0x13, UINT64_MAX, 0xf0, 0x2}};
    const struct nested_consumed consumed = {
        .run = consumed_run, .ended = consumed_ended, .context = &bits};
    const struct nested_consumed ends = {.ended = consumed_ended, .context = &bits};
    char text[256];
    (void)state;
    for (int32_t parallel = -1; parallel < 3; parallel++) {
        cadre_dataset *whole =
            parallel < 0
                ? cadre_dataset_flat_map(range(0, 4), make_inner, &inner)
                : cadre_dataset_interleave(range(0, 4), make_inner, &inner, turns(2, 2, parallel));
        assert_true(dataset_is_nested(whole));
        assert_false(dataset_is_nested(whole->input));
        cadre_dataset *left = dataset_nested_rebuild(whole, range(0, 4), &consumed);
        atomic_store(&inner.calls, 0);
        expect_ids(cadre_dataset_retain(left),
            parallel < 0 ? "0:2 0:3 0:5 2:0 2:1 2:2 3:0" : "0:2 0:3 0:5 2:0 2:1 3:0 2:2");
        assert_int_equal(atomic_load(&inner.calls), 3);
        expect_consistent(left);
        for (int by_skipping = 0; by_skipping < 2; by_skipping++) {
            assert_string_equal(ends_reported(left, &bits, by_skipping, text), "0:6 2:3 3:2");
            cadre_dataset *all = dataset_nested_rebuild(whole, range(0, 4), &ends);
            assert_string_equal(ends_reported(all, &bits, by_skipping, text), "0:6 1:4 2:3 3:2");
            cadre_dataset_release(all);
        }
        /* Other inputs, with what was consumed kept in mind. */
        cadre_dataset *const names[] = {cadre_dataset_skip(range(0, 4), 2)};
        cadre_dataset *rest = left->ops->rebuild(left, names);
        expect_elements(rest, parallel < 0 ? "200 201 202 300" : "200 201 300 202");
        expect_elements(
            dataset_nested_rebuild(left, cadre_dataset_skip(range(0, 4), 3), NULL), "300 301");
        expect_failure(dataset_nested_rebuild(left, cadre_dataset_range(0, 1, 0), &consumed),
            CADRE_INVALID_ARGUMENT, "range: step is 0");
        cadre_dataset_release(left);
        cadre_dataset_release(whole);
    }
}

static cadre_status open_file(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    char path[512];
    (void)user;
    assert_true(name->size < sizeof path);
    memcpy(path, name->bytes, name->size);
    path[name->size] = '\0';
    *ret_data =
        cadre_dataset_take(cadre_dataset_fixed_length((const char *const[]){path}, 1, 2, NULL), 1);
    return CADRE_OK;
}

static cadre_status open_none(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)in;
    (void)user;
    *ret_data = range(0, 3);
    return CADRE_OK;
}

static bool opens_names(cadre_dataset *data)
{
    struct cadre_error error = {0};
    bool opens = true;
    ASSERT_OK(data->ops->opens_names(data, &opens, &error));
    cadre_dataset_release(data);
    return opens;
}

static void names_that_are_opened(void **state)
{
    struct inner inner = {.lengths = {1, 1}};
    const char *path = scratch_write("records", "abcd", 4);
    cadre_tensor *tensor = NULL;
    (void)state;
    cadre_string names[] = {{path, strlen(path)}, {"/no/such/file", 13}};
    assert_int_equal(
        cadre_tensor_from_data(CADRE_STRING, 1, (const int64_t[]){2}, names, &tensor), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    assert_true(opens_names(cadre_dataset_flat_map(cadre_dataset_retain(data), open_file, NULL)));
    assert_true(opens_names(
        cadre_dataset_interleave(cadre_dataset_retain(data), open_file, NULL, turns(2, 1, 2))));
    assert_false(opens_names(cadre_dataset_flat_map(cadre_dataset_retain(data), open_none, NULL)));
    assert_false(opens_names(cadre_dataset_flat_map(
        cadre_dataset_batch(cadre_dataset_retain(data), 1, false), open_file, NULL)));
    assert_false(opens_names(cadre_dataset_flat_map(range(0, 2), make_inner, &inner)));
    assert_false(opens_names(cadre_dataset_flat_map(
        cadre_dataset_take(cadre_dataset_retain(data), 0), open_file, NULL)));
    struct cadre_error error = {0};
    bool opens = true;
    data = cadre_dataset_flat_map(cadre_dataset_skip(data, 1), open_file, NULL);
    assert_int_equal(data->ops->opens_names(data, &opens, &error), CADRE_NOT_FOUND);
    assert_false(opens);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test(failures_are_reported),
        cmocka_unit_test(failing_inputs),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(positions_of_others),
        cmocka_unit_test(shorter_than_before),
        cmocka_unit_test(specs),
        cmocka_unit_test(the_first_one_may_be_empty),
        cmocka_unit_test(skips_what_was_consumed),
        cmocka_unit_test(names_that_are_opened),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
