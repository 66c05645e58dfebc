/* SPDX-License-Identifier: Apache-2.0
 * Sources and transformations by plain reading: what comes, in which order, how much, and that the
 * indexable and the sequential way of each transformation agree. */
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/input/reading.h"
#include "worker/library/input/node/node.h"

/* Reads and releases `data`; its values are those given, and its cardinality is right. */
static void expect(cadre_dataset *data, const int64_t *values, size_t count, int64_t cardinality)
{
    struct numbers numbers;
    assert_int_equal(cadre_dataset_status(data), CADRE_OK);
    assert_int_equal(cadre_dataset_cardinality(data), cardinality);
    read_epoch(data, 0, &numbers);
    assert_int_equal(numbers.count, count);
    assert_memory_equal(numbers.values, values, count * 8);
    read_epoch(data, 0, &numbers);
    assert_int_equal(numbers.count, count);
    cadre_dataset_release(data);
}

#define EXPECT(data, cardinality, ...)                                                             \
    do {                                                                                           \
        const int64_t values_[] = {__VA_ARGS__};                                                   \
        expect(data, values_, sizeof values_ / 8, cardinality);                                    \
    } while (0)

#define EXPECT_NOTHING(data, cardinality) expect(data, (const int64_t[]){0}, 0, cardinality)

static void ranges(void **state)
{
    (void)state;
    EXPECT(cadre_dataset_range(2, 6, 1), 4, 2, 3, 4, 5);
    EXPECT(cadre_dataset_range(0, 10, 4), 3, 0, 4, 8);
    EXPECT(cadre_dataset_range(5, 0, -2), 3, 5, 3, 1);
    EXPECT_NOTHING(cadre_dataset_range(5, 5, 1), 0);
    EXPECT_NOTHING(cadre_dataset_range(5, 0, 1), 0);
    EXPECT(cadre_dataset_range(INT64_MIN, INT64_MAX, INT64_MAX), 3, INT64_MIN, -1, INT64_MAX - 1);
    EXPECT(cadre_dataset_range(INT64_MAX, INT64_MIN, INT64_MIN), 2, INT64_MAX, -1);
}

static cadre_dataset *ten(bool sequential)
{
    cadre_dataset *data = cadre_dataset_range(0, 10, 1);
    return sequential ? make_sequential(data) : data;
}

static cadre_status double_it(const cadre_element *in, cadre_element *ret_out, void *user)
{
    int64_t factor = *(const int64_t *)user;
    const int64_t *value = cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(cadre_tensor_from_i64(*value * factor, &ret_out->tensors[0]));
    ret_out->count = 1;
    return CADRE_OK;
}

static void transformations(void **state)
{
    (void)state;
    static int64_t two = 2;
    for (int s = 0; s < 2; s++) {
        bool sequential = s == 1;
        EXPECT(cadre_dataset_take(ten(sequential), 3), 3, 0, 1, 2);
        EXPECT(cadre_dataset_take(ten(sequential), 30), 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
        EXPECT_NOTHING(cadre_dataset_take(ten(sequential), 0), 0);
        EXPECT(cadre_dataset_skip(ten(sequential), 7), 3, 7, 8, 9);
        EXPECT_NOTHING(cadre_dataset_skip(ten(sequential), INT64_MAX), 0);
        EXPECT(cadre_dataset_shard(ten(sequential), 4, 1), 3, 1, 5, 9);
        EXPECT(cadre_dataset_shard(ten(sequential), 4, 3), 2, 3, 7);
        EXPECT_NOTHING(cadre_dataset_shard(ten(sequential), 20, 19), 0);
        EXPECT(cadre_dataset_map(cadre_dataset_take(ten(sequential), 4), double_it, &two, NULL), 4,
            0, 2, 4, 6);
        EXPECT(cadre_dataset_prefetch(cadre_dataset_skip(ten(sequential), 8), 4), 2, 8, 9);
        EXPECT(
            cadre_dataset_repeat(cadre_dataset_skip(ten(sequential), 8), 3), 6, 8, 9, 8, 9, 8, 9);
        EXPECT_NOTHING(cadre_dataset_repeat(ten(sequential), 0), 0);
        EXPECT_NOTHING(cadre_dataset_repeat(cadre_dataset_take(ten(sequential), 0), -1), 0);
        EXPECT(cadre_dataset_take(cadre_dataset_repeat(ten(sequential), CADRE_REPEAT_FOREVER), 12),
            12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1);
        EXPECT(cadre_dataset_batch(ten(sequential), 4, true), 2, 0, 1, 2, 3, 4, 5, 6, 7);
        EXPECT(cadre_dataset_skip(cadre_dataset_batch(ten(sequential), 4, false), 2), 1, 8, 9);
        EXPECT(
            cadre_dataset_take(
                cadre_dataset_batch(cadre_dataset_batch(ten(sequential), 2, false), 2, false), 2),
            2, 0, 1, 2, 3, 4, 5, 6, 7);
        EXPECT_NOTHING(cadre_dataset_batch(cadre_dataset_take(ten(sequential), 0), 3, false), 0);
    }
}

static void batches_have_shapes(void **state)
{
    (void)state;
    cadre_element_spec spec;
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_dataset *data = cadre_dataset_batch(ten(false), 4, false);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(spec.count, 1);
    assert_int_equal(spec.tensors[0].dtype, CADRE_I64);
    assert_int_equal(spec.tensors[0].rank, 1);
    assert_int_equal(spec.tensors[0].dims[0], CADRE_DIMENSION_ANY);
    data = cadre_dataset_batch(data, 2, true);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(spec.tensors[0].rank, 2);
    assert_int_equal(spec.tensors[0].dims[0], 2);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    assert_int_equal(cadre_tensor_dim(element.tensors[0], 0), 2);
    assert_int_equal(cadre_tensor_dim(element.tensors[0], 1), 4);
    cadre_element_release(&element);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void tensor_slices(void **state)
{
    (void)state;
    const int64_t dims[] = {3, 2};
    const int64_t values[] = {1, 2, 3, 4, 5, 6};
    const float labels[] = {0.5f, 1.5f, 2.5f};
    cadre_tensor *tensors[2] = {NULL, NULL};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    assert_int_equal(cadre_tensor_from_data(CADRE_I64, 2, dims, values, &tensors[0]), CADRE_OK);
    assert_int_equal(cadre_tensor_from_data(CADRE_F32, 1, dims, labels, &tensors[1]), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    cadre_dataset_release(data); /* the iterator has a reference of its own */
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    cadre_element_release(&element);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    cadre_iterator_release(iterator); /* and the element one of the memory */
    assert_int_equal(element.count, 2);
    assert_int_equal(cadre_tensor_rank(element.tensors[0]), 1);
    assert_int_equal(((const int64_t *)cadre_tensor_const_data(element.tensors[0]))[1], 4);
    assert_int_equal(cadre_tensor_rank(element.tensors[1]), 0);
    assert_true(*(const float *)cadre_tensor_const_data(element.tensors[1]) == 1.5f);
    cadre_element_release(&element);
}

/* The order is a fixed one: in another process, on another machine, by another compiler. */
static void shuffled_order_is_fixed(void **state)
{
    (void)state;
    EXPECT(cadre_dataset_shuffle(ten(false), CADRE_SHUFFLE_ALL, 42, NULL), 10, 3, 7, 9, 6, 0, 8, 5,
        4, 1, 2);
    EXPECT(cadre_dataset_shuffle(ten(false), 4, 42, NULL), 10, 1, 4, 0, 2, 3, 5, 8, 9, 7, 6);
}

static void shuffles_hold_each_element_once(void **state)
{
    (void)state;
    const int64_t buffers[] = {CADRE_SHUFFLE_ALL, 1, 7, 100, 1000000};
    for (size_t b = 0; b < 5; b++) {
        cadre_dataset *data =
            cadre_dataset_shuffle(cadre_dataset_range(0, 100, 1), buffers[b], 1, NULL);
        struct numbers epochs[2];
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            bool seen[100] = {false};
            read_epoch(data, epoch, &epochs[epoch]);
            assert_int_equal(epochs[epoch].count, 100);
            for (size_t i = 0; i < 100; i++) {
                int64_t value = epochs[epoch].values[i];
                assert_false(seen[value]);
                seen[value] = true;
                assert_true(buffers[b] < 0 || value <= (int64_t)i + buffers[b] - 1);
            }
        }
        bool same = memcmp(epochs[0].values, epochs[1].values, 800) == 0;
        assert_int_equal(same, buffers[b] == 1);
        cadre_dataset_release(data);
    }
}

/* Each pass of a repeat is an epoch of its own to the shuffle before it; the next epoch goes on. */
static void repeats_reshuffle(void **state)
{
    (void)state;
    for (int s = 0; s < 2; s++) {
        cadre_dataset *shuffle =
            cadre_dataset_shuffle(cadre_dataset_range(0, 50, 1), s == 0 ? -1 : 50, 5, NULL);
        cadre_dataset *twice = cadre_dataset_repeat(cadre_dataset_retain(shuffle), 2);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            struct numbers both;
            struct numbers one;
            read_epoch(twice, epoch, &both);
            assert_int_equal(both.count, 100);
            for (uint64_t pass = 0; pass < 2; pass++) {
                read_epoch(shuffle, 2 * epoch + pass, &one);
                assert_memory_equal(both.values + 50 * pass, one.values, 400);
            }
        }
        cadre_dataset_release(shuffle);
        cadre_dataset_release(twice);
    }
}

/* Fails at 5 with a message, at 6 without one, at 7 with the code of the end; returns junk at 8, 9.
 */
static cadre_status faulty(const cadre_element *in, cadre_element *ret_out, void *user)
{
    int64_t value = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    const int64_t negative = -4;
    (void)user;
    if (value == 5) {
        return cadre_tensor_create(CADRE_F32, 1, &negative, &ret_out->tensors[0]);
    }
    if (value == 6) {
        return CADRE_ABORTED;
    }
    if (value == 7) {
        return CADRE_OUT_OF_RANGE;
    }
    if (value == 8) {
        return CADRE_OK;
    }
    if (value == 9) {
        ret_out->count = 2;
        ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
        return CADRE_OK;
    }
    return copy_element(in, ret_out, NULL);
}

static void failing_maps_are_reported(void **state)
{
    (void)state;
    static const struct {
        cadre_status status;
        const char *message;
    } expected[] = {
        {CADRE_INVALID_ARGUMENT, "map: the function failed with INVALID_ARGUMENT: dimension 0 is "
                                 "-4; sizes are 0 or more"},
        {CADRE_ABORTED,
            "map: the function failed with ABORTED: it left no message; say why with cadre_fail"},
        {CADRE_UNKNOWN, "map: the function failed with OUT_OF_RANGE: it left no message; say why "
                        "with cadre_fail"},
        {CADRE_INVALID_ARGUMENT, "map: the function returned 0 tensors; an element has 1 to 64"},
        {CADRE_INVALID_ARGUMENT, "map: the function left output 1 of 2 NULL"},
    };
    for (int64_t i = 0; i < 5; i++) {
        for (int sequential = 0; sequential < 2; sequential++) {
            cadre_iterator *iterator = NULL;
            cadre_element element = {0};
            cadre_dataset *data = cadre_dataset_skip(ten(sequential == 1), 5 + i);
            data = cadre_dataset_map(data, faulty, NULL, NULL);
            data = cadre_dataset_batch(data, 2, false);
            assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
            for (int again = 0; again < 2; again++) {
                assert_int_equal(cadre_iterator_next(iterator, &element), expected[i].status);
                char wanted[CADRE_ERROR_TEXT_BYTES];
                snprintf(wanted, sizeof wanted, "sample %" PRId64 " (from 0): %s", 5 + i,
                    expected[i].message);
                assert_string_equal(cadre_error_message(), wanted);
                assert_int_equal(element.count, 0);
            }
            cadre_iterator_release(iterator);
            cadre_dataset_release(data);
        }
    }
}

static void declared_outputs_are_checked(void **state)
{
    (void)state;
    cadre_element_spec output = {
        .count = 1, .tensors = {{.dtype = CADRE_F32, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    const cadre_map_options options = {.output = &output};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_element_spec spec;
    cadre_dataset *data = cadre_dataset_map(ten(false), copy_element, NULL, &options);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(spec.tensors[0].dtype, CADRE_F32);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_INVALID_ARGUMENT);
    assert_string_equal(cadre_error_message(),
        "sample 0 (from 0): map: output 0 is i64 [] and was declared as f32 [?]");
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);

    /* Not declared: seen at the first element, and impossible without one. */
    data = cadre_dataset_map(cadre_dataset_batch(ten(true), 3, false), copy_element, NULL, NULL);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(spec.tensors[0].rank, 1);
    assert_int_equal(spec.tensors[0].dims[0], CADRE_DIMENSION_ANY);
    cadre_dataset_release(data);
    data = cadre_dataset_map(cadre_dataset_take(ten(false), 0), copy_element, NULL, NULL);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_FAILED_PRECONDITION);
    cadre_dataset_release(data);
}

/* One component up to 4, then another type, or two. */
static cadre_status changes_its_mind(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const int64_t value = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    const bool two = *(const bool *)user;
    ret_out->count = 1;
    ret_out->tensors[0] = cadre_tensor_retain(in->tensors[0]);
    if (value > 4 && two) {
        ret_out->tensors[ret_out->count++] = cadre_tensor_retain(in->tensors[0]);
    } else if (value > 4) {
        cadre_tensor_release(ret_out->tensors[0]);
        return cadre_tensor_from_f32(0, &ret_out->tensors[0]);
    }
    return CADRE_OK;
}

/* What was seen at the first element holds for all, but for sizes. */
static void functions_that_change_their_mind(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        bool two = i % 2 == 1;
        cadre_dataset *data = ten(i / 2 % 2 == 1);
        data = cadre_dataset_map(data, changes_its_mind, &two, NULL);
        data = i < 4 ? data : cadre_dataset_prefetch(data, 2);
        data = cadre_dataset_batch(data, 8, false);
        struct cadre_error error = {0};
        cadre_element_spec spec;
        assert_int_equal(dataset_spec(data, &spec, &error), CADRE_OK);
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_INVALID_ARGUMENT);
        assert_non_null(strstr(cadre_error_message(), "map: "));
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
}

/* A map that says what it makes needs to know nothing of what is before it. */
static void a_declared_output_is_all_that_is_asked(void **state)
{
    (void)state;
    const cadre_element_spec output = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    cadre_element_spec spec = {0};
    for (int32_t parallel = 0; parallel < 3; parallel += 2) {
        const cadre_map_options options = {.output = &output, .parallel = parallel};
        cadre_dataset *data = cadre_dataset_take(ten(true), 0);
        data = cadre_dataset_map(data, copy_element, NULL, NULL);
        data = cadre_dataset_map(data, copy_element, NULL, &options);
        assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
        assert_int_equal(spec.tensors[0].dtype, CADRE_I64);
        cadre_dataset_release(data);
    }
}

/* Elements of different shapes cannot be stacked. */
static cadre_status as_long_as_its_value(
    const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = 1;
    return cadre_tensor_create(
        CADRE_U8, 1, cadre_tensor_const_data(in->tensors[0]), &ret_out->tensors[0]);
}

static void ragged_batches_are_refused(void **state)
{
    (void)state;
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_dataset *data = cadre_dataset_map(ten(false), as_long_as_its_value, NULL, NULL);
    data = cadre_dataset_batch(data, 3, false);
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_INVALID_ARGUMENT);
    assert_string_equal(cadre_error_message(),
        "component 0 of 2 elements cannot be stacked (cadre_dataset_padded_batch pads them; sizes "
        "that differ are declared in cadre_map_options.output): part 1 is u8 [2] and part 0 is u8 "
        "[1]; only equal shapes can be joined");
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void expect_failed(cadre_dataset *data, cadre_status status, const char *message)
{
    cadre_iterator *iterator = NULL;
    cadre_element_spec spec;
    /* The first error is kept through whatever is put on top. */
    data = cadre_dataset_batch(cadre_dataset_take(data, -5), 0, false);
    data = cadre_dataset_repeat(cadre_dataset_shard(data, 0, 0), -2);
    data = cadre_dataset_prefetch(cadre_dataset_shuffle(data, 0, 0, NULL), 0);
    data = cadre_dataset_map(cadre_dataset_skip(data, -1), NULL, NULL, NULL);
    assert_int_equal(cadre_dataset_status(data), status);
    if (strstr(cadre_error_message(), message) == NULL) {
        fail_msg("'%s' is not in '%s'", message, cadre_error_message());
    }
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), status);
    assert_null(iterator);
    assert_int_equal(cadre_dataset_spec(data, &spec), status);
    assert_int_equal(cadre_dataset_cardinality(data), CADRE_CARDINALITY_UNKNOWN);
    cadre_dataset_release(data);
}

/* Refused at once: not after all memory was taken. */
static void batches_beyond_memory_are_refused(void **state)
{
    (void)state;
    for (int buffered = 0; buffered < 2; buffered++) {
        cadre_dataset *data = cadre_dataset_repeat(cadre_dataset_range(0, 9, 1), -1);
        data = buffered == 0 ? data : cadre_dataset_shuffle(data, 3, 0, NULL);
        data = cadre_dataset_batch(data, INT64_C(1) << 45, false);
        cadre_iterator *iterator = NULL;
        cadre_element element;
        assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(cadre_error_message(), "35184372088832 elements"));
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
    /* The last batch of a finite set is as small as the set. */
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 9, 1), INT64_MAX, false);
    cadre_iterator *iterator = NULL;
    cadre_element element;
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    assert_int_equal(cadre_tensor_rows(element.tensors[0]), 9);
    cadre_element_release(&element);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void nulls_are_named(void **state)
{
    (void)state;
    cadre_iterator *iterator = NULL;
    cadre_element element;
    cadre_element_spec spec;
    cadre_dataset *data = cadre_dataset_range(0, 1, 1);
    assert_int_equal(cadre_dataset_iterate(data, 0, NULL), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "'ret_iterator'"));
    assert_int_equal(cadre_dataset_iterate(NULL, 0, &iterator), CADRE_RESOURCE_EXHAUSTED);
    assert_int_equal(cadre_iterator_next(NULL, &element), CADRE_INVALID_ARGUMENT);
    assert_int_equal(element.count, 0);
    assert_int_equal(cadre_dataset_spec(data, NULL), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_dataset_spec(NULL, &spec), CADRE_RESOURCE_EXHAUSTED);
    cadre_element_release(NULL);
    cadre_iterator_release(NULL);
    cadre_dataset_release(data);
}

static void bad_arguments_are_kept(void **state)
{
    (void)state;
    cadre_tensor *scalar = NULL;
    cadre_tensor *rows[2] = {NULL, NULL};
    const int64_t dims[] = {2, 3};
    assert_int_equal(cadre_tensor_from_i64(1, &scalar), CADRE_OK);
    assert_int_equal(cadre_tensor_create(CADRE_F32, 1, &dims[0], &rows[0]), CADRE_OK);
    assert_int_equal(cadre_tensor_create(CADRE_F32, 1, &dims[1], &rows[1]), CADRE_OK);
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    expect_failed(cadre_dataset_range(0, 5, 0), bad, "range: step is 0");
    expect_failed(cadre_dataset_range(INT64_MIN, INT64_MAX, 1), bad, "range: 2^63 values");
    expect_failed(cadre_dataset_tensor_slices(rows, 0), bad, "0 tensors given");
    expect_failed(cadre_dataset_tensor_slices(rows, 65), bad, "65 tensors given");
    expect_failed(cadre_dataset_tensor_slices(&scalar, 1), bad, "tensor 0 is a scalar");
    expect_failed(cadre_dataset_tensor_slices(rows, 2), bad, "tensor 1 has 3 rows");
    rows[1] = (cadre_tensor_release(rows[1]), NULL);
    expect_failed(cadre_dataset_tensor_slices(rows, 2), bad, "tensor 1 is NULL");
    expect_failed(cadre_dataset_batch(ten(false), 0, false), bad, "batch: size 0");
    expect_failed(cadre_dataset_batch(ten(false), -3, true), bad, "batch: size -3");
    expect_failed(cadre_dataset_take(ten(false), -1), bad, "take: count -1");
    expect_failed(cadre_dataset_skip(ten(false), -2), bad, "skip: count -2");
    expect_failed(cadre_dataset_shard(ten(false), 3, 3), bad, "shard: index 3 of 3 shards");
    expect_failed(cadre_dataset_shard(ten(false), 3, -1), bad, "shard: index -1");
    expect_failed(cadre_dataset_shard(ten(false), 0, 0), bad, "shard: index 0 of 0");
    expect_failed(cadre_dataset_repeat(ten(false), -2), bad, "repeat: count -2");
    expect_failed(cadre_dataset_repeat(ten(false), INT64_MAX), bad, "more than can be counted");
    expect_failed(cadre_dataset_prefetch(ten(false), 0), bad, "prefetch: depth 0");
    expect_failed(cadre_dataset_shuffle(ten(false), 0, 1, NULL), bad, "shuffle: buffer size 0");
    expect_failed(cadre_dataset_shuffle(ten(true), CADRE_SHUFFLE_ALL, 1, NULL), bad, "indexable");
    expect_failed(
        cadre_dataset_shuffle(cadre_dataset_repeat(ten(false), -1), -1, 1, NULL), bad, "finite");
    expect_failed(cadre_dataset_map(ten(false), NULL, NULL, NULL), bad, "function is NULL");
    cadre_element_spec output = {.count = 1, .tensors = {{.dtype = CADRE_F32, .rank = 9}}};
    expect_failed(
        cadre_dataset_map(ten(false), copy_element, NULL, &(cadre_map_options){.output = &output}),
        bad, "rank 9");
    expect_failed(NULL, CADRE_RESOURCE_EXHAUSTED, "NULL");
    cadre_tensor_release(scalar);
    cadre_tensor_release(rows[0]);
}

/* A long chain is refused, and freed without recursion into the stack's end. */
static void long_chains(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_range(0, 10, 1);
    for (int i = 0; i < DATASET_DEPTH_MAX; i++) {
        data = cadre_dataset_take(data, 10);
    }
    struct numbers numbers;
    read_epoch(cadre_dataset_retain(data), 0, &numbers);
    assert_int_equal(numbers.count, 10);
    cadre_dataset_release(data);
    data = cadre_dataset_take(data, 10);
    expect_failed(cadre_dataset_take(data, 10), CADRE_INVALID_ARGUMENT, "more than 1000");
}

/* Each doubles what a walk of the tree meets. */
static void broad_trees(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_range(0, 10, 1);
    for (int i = 0; i < 60; i++) {
        data = cadre_dataset_concatenate(cadre_dataset_retain(data), data);
    }
    expect_failed(data, CADRE_INVALID_ARGUMENT, "more than 100000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(transformations),
        cmocka_unit_test(batches_have_shapes),
        cmocka_unit_test(tensor_slices),
        cmocka_unit_test(shuffled_order_is_fixed),
        cmocka_unit_test(shuffles_hold_each_element_once),
        cmocka_unit_test(repeats_reshuffle),
        cmocka_unit_test(failing_maps_are_reported),
        cmocka_unit_test(declared_outputs_are_checked),
        cmocka_unit_test(functions_that_change_their_mind),
        cmocka_unit_test(a_declared_output_is_all_that_is_asked),
        cmocka_unit_test(ragged_batches_are_refused),
        cmocka_unit_test(batches_beyond_memory_are_refused),
        cmocka_unit_test(nulls_are_named),
        cmocka_unit_test(bad_arguments_are_kept),
        cmocka_unit_test(long_chains),
        cmocka_unit_test(broad_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
