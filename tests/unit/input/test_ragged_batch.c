/* SPDX-License-Identifier: Apache-2.0
 * ragged_batch and sparse_batch: the examples of tf.data's documents, by index and in order, cut
 * for replicas of any number of workers, put apart again, and what does not fit. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "cadre/composite.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"

/* tf.range(x). */
static cadre_status count_up(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t x = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, &x, &ret_out->tensors[0]));
    ret_out->count = 1;
    for (int64_t i = 0; i < x; i++) {
        ((int64_t *)cadre_tensor_data(ret_out->tensors[0]))[i] = i;
    }
    return CADRE_OK;
}

static cadre_dataset *vectors(int64_t from, int64_t to)
{
    return cadre_dataset_map(cadre_dataset_range(from, to, 1), count_up, NULL, NULL);
}

static void documented_example(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_ragged_batch(vectors(0, 6), 2, false);
    expect_spec(data, "i64 [?] i64 [?]");
    assert_int_equal(cadre_dataset_cardinality(data), 3);
    expect_consistent(data);
    assert_int_equal(dataset_rows(data, (struct element_position){0}), 2);
    /* <tf.RaggedTensor [[], [0]]>, [[0, 1], [0, 1, 2]], [[0, 1, 2, 3], [0, 1, 2, 3, 4]] */
    expect_elements(data, "([0], [0 0 1]) ([0 1 0 1 2], [0 2 5]) ([0 1 2 3 0 1 2 3 4], [0 4 9])");
}

static void the_last_batch_and_other_components(void **state)
{
    (void)state;
    cadre_dataset *const pair[] = {cadre_dataset_range(0, 5, 1), vectors(0, 5)};
    cadre_dataset *data = cadre_dataset_ragged_batch(cadre_dataset_zip(pair, 2), 2, false);
    expect_spec(data, "i64 [?] i64 [?] i64 [?]");
    expect_consistent(data);
    cadre_dataset *dropped = cadre_dataset_ragged_batch(vectors(1, 6), 2, true);
    expect_spec(dropped, "i64 [?] i64 [3]");
    expect_consistent(dropped);
    cadre_element_spec spec;
    assert_int_equal(cadre_dataset_spec(dropped, &spec), CADRE_OK);
    assert_int_equal(spec.tensors[0].composite, CADRE_COMPOSITE_NONE);
    assert_int_equal(spec.tensors[1].composite, CADRE_COMPOSITE_RAGGED);
    assert_int_equal(dataset_batch_size(dropped, &spec), 2);
    expect_elements(dropped, "([0 0 1], [0 1 3]) ([0 1 2 0 1 2 3], [0 3 7])");
    expect_elements(data, "([0 1], [0], [0 0 1]) ([2 3], [0 1 0 1 2], [0 2 5]) "
                          "([4], [0 1 2 3], [0 4])");
    /* Of known sizes it is a plain batch. */
    data = cadre_dataset_ragged_batch(cadre_dataset_range(0, 3, 1), 2, false);
    expect_spec(data, "i64 [?]");
    expect_elements(data, "[0 1] [2]");
}

static void behind_shuffles_and_caches(void **state)
{
    (void)state;
    cadre_dataset *data = cadre_dataset_shuffle(vectors(0, 9), CADRE_SHUFFLE_ALL, 3, NULL);
    data = cadre_dataset_ragged_batch(data, 2, false);
    expect_consistent(data);
    cadre_dataset *cached = cadre_dataset_cache(cadre_dataset_retain(data), NULL);
    expect_consistent(cached);
    cadre_dataset_release(cached);
    cadre_dataset *shuffled = cadre_dataset_shuffle(data, 3, 3, NULL);
    shuffled = cadre_dataset_prefetch(shuffled, 2);
    expect_consistent(shuffled);
    cadre_dataset_release(shuffled);
    data = cadre_dataset_ragged_batch(in_order_only(vectors(0, 7)), 3, false);
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* What was held in a buffer or a file is as ragged as before: its rows are found again. */
static void marks_are_kept(void **state)
{
    (void)state;
    const char *path = scratch_path("ragged");
    cadre_dataset *data = cadre_dataset_ragged_batch(vectors(0, 9), 2, false);
    cadre_dataset *shuffled = cadre_dataset_shuffle(cadre_dataset_retain(data), 3, 3, NULL);
    shuffled = cadre_dataset_unbatch(cadre_dataset_prefetch(shuffled, 2));
    expect_consistent(shuffled);
    cadre_dataset_release(shuffled);
    for (int time = 0; time < 2; time++) { /* written, read */
        expect_elements(
            cadre_dataset_unbatch(cadre_dataset_cache(cadre_dataset_retain(data), path)),
            "[] [0] [0 1] [0 1 2] [0 1 2 3] [0 1 2 3 4] [0 1 2 3 4 5] [0 1 2 3 4 5 6] "
            "[0 1 2 3 4 5 6 7]");
    }
    cadre_dataset_release(data);
}

/* The same rows, whichever worker reads them. */
static void pieces(void **state)
{
    (void)state;
    char text[512];
    const char *expected[] = {
        [1] = "[()(0)(0 1)(0 1 2)(0 1 2 3)] / [(0 1 2 3 4)(0 1 2 3 4 5)]",
        [2] = "[()(0)(0 1)][(0 1 2)(0 1 2 3)] / [(0 1 2 3 4)][(0 1 2 3 4 5)]",
        [3] = "[()(0)][(0 1)(0 1 2)][(0 1 2 3)] / [(0 1 2 3 4)][(0 1 2 3 4 5)][]",
    };
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        for (int in_order = 0; in_order < 2; in_order++) {
            cadre_dataset *data = vectors(0, 7);
            data = in_order ? in_order_only(data) : data;
            data = cadre_dataset_ragged_batch(data, 5, false);
            assert_string_equal(steps_text(data, 1, replicas, CADRE_SHARD_DATA, text, sizeof text),
                expected[replicas]);
        }
    }
    assert_string_equal(steps_text(cadre_dataset_ragged_batch(vectors(0, 7), 5, false), 3, 1,
                            CADRE_SHARD_DATA, text, sizeof text),
        "[()(0)] | [(0 1)(0 1 2)] | [(0 1 2 3)] / [(0 1 2 3 4)] | [(0 1 2 3 4 5)] | []");
    /* A pipeline of each worker's own, with pieces of several batches. */
    struct distributed_layout layout = {.workers = 1,
        .replicas = 2,
        .policy = CADRE_SHARD_OFF,
        .rebatch = CADRE_REBATCH_TENSORFLOW};
    assert_string_equal(steps_text_of(cadre_dataset_ragged_batch(vectors(0, 7), 3, false), &layout,
                            text, sizeof text),
        "[()(0)][(0 1)] / [(0 1 2)(0 1 2 3)][(0 1 2 3 4)] / [(0 1 2 3 4 5)][]");
}

static void sparse_pieces(void **state)
{
    (void)state;
    char text[512];
    const cadre_tensor_spec six = {.rank = 1, .dims = {6}};
    const cadre_tensor_spec any = {.rank = 1, .dims = {CADRE_DIMENSION_ANY}};
    cadre_dataset *data = cadre_dataset_sparse_batch(vectors(1, 4), 2, &six, false);
    expect_spec(data, "i64 [?, 2] i64 [?] i64 [2]");
    expect_consistent(data);
    assert_int_equal(dataset_rows(data, (struct element_position){0}), 2);
    expect_elements(data, "([[0 0] [1 0] [1 1]], [0 0 1], [2 6]) "
                          "([[0 0] [0 1] [0 2]], [0 1 2], [1 6])");
    data = cadre_dataset_sparse_batch(vectors(1, 4), 2, &any, false);
    expect_consistent(data);
    assert_int_equal(dataset_rows(data, (struct element_position){0}), CADRE_CARDINALITY_UNKNOWN);
    assert_string_equal(steps_text(data, 1, 2, CADRE_SHARD_DATA, text, sizeof text),
        "[0,0=0 of 1,2][0,0=0 0,1=1 of 1,2] / [0,0=0 0,1=1 0,2=2 of 1,3][of 0,3]");
    data = cadre_dataset_sparse_batch(vectors(1, 4), 3, &six, false);
    assert_string_equal(steps_text(data, 2, 2, CADRE_SHARD_DATA, text, sizeof text),
        "[0,0=0 of 1,6][0,0=0 0,1=1 0,2=2 of 1,6] | [0,0=0 0,1=1 of 1,6][of 0,0]");
    struct distributed_layout layout = {.workers = 1,
        .replicas = 2,
        .policy = CADRE_SHARD_OFF,
        .rebatch = CADRE_REBATCH_TENSORFLOW};
    data = cadre_dataset_sparse_batch(vectors(1, 6), 3, &any, false);
    assert_string_equal(steps_text_of(data, &layout, text, sizeof text),
        "[0,0=0 1,0=0 1,1=1 of 2,3][0,0=0 0,1=1 0,2=2 of 1,3] / "
        "[0,0=0 0,1=1 0,2=2 0,3=3 1,0=0 1,1=1 1,2=2 1,3=3 1,4=4 of 2,5][of 0,0]");
}

/* Matrices: all of their numbers, zeros too. */
static cadre_status make_matrix(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t x = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    const int64_t dims[] = {2, x};
    ret_out->count = 1;
    return cadre_tensor_create(CADRE_I64, 2, dims, &ret_out->tensors[0]);
}

static cadre_dataset *matrices_said_to_be(int64_t rows, int64_t columns)
{
    const cadre_element_spec spec = {
        .count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 2, .dims = {rows, columns}}}};
    return cadre_dataset_map(
        cadre_dataset_range(0, 4, 1), make_matrix, NULL, &(cadre_map_options){.output = &spec});
}

static void more_dimensions(void **state)
{
    (void)state;
    const cadre_tensor_spec shape = {.rank = 2, .dims = {3, CADRE_DIMENSION_ANY}};
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(0, 3, 1), make_matrix, NULL, NULL);
    data = cadre_dataset_sparse_batch(data, 3, &shape, false);
    expect_consistent(data);
    expect_elements(data, "([[1 0 0] [1 1 0] [2 0 0] [2 0 1] [2 1 0] [2 1 1]], [0 0 0 0 0 0], "
                          "[3 3 2])");
    /* One unequal dimension, others that are equal. */
    data = cadre_dataset_skip(matrices_said_to_be(CADRE_DIMENSION_ANY, 1), 1);
    data = cadre_dataset_ragged_batch(cadre_dataset_take(data, 1), 3, false);
    expect_spec(data, "i64 [?, 1] i64 [?]");
    expect_elements(data, "([[0] [0]], [0 2])");
}

static cadre_status pass_on(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = in->count;
    for (uint32_t i = 0; i < in->count; i++) {
        ret_out->tensors[i] = cadre_tensor_retain(in->tensors[i]);
    }
    return CADRE_OK;
}

/* The values of the first element only: the row splits name more. */
static cadre_status lose_values(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = 2;
    ret_out->tensors[1] = cadre_tensor_retain(in->tensors[1]);
    return cadre_tensor_view_rows(in->tensors[0], 0, 1, &ret_out->tensors[0]);
}

static void through_maps(void **state)
{
    (void)state;
    char text[256];
    cadre_dataset *data = cadre_dataset_ragged_batch(vectors(0, 4), 4, false);
    data = cadre_dataset_map(data, pass_on, NULL, NULL);
    expect_spec(data, "i64 [?] i64 [?]");
    assert_string_equal(
        steps_text(data, 1, 2, CADRE_SHARD_DATA, text, sizeof text), "[()(0)][(0 1)(0 1 2)]");
    data = cadre_dataset_ragged_batch(vectors(1, 5), 4, false);
    data = cadre_dataset_map(data, lose_values, NULL, NULL);
    expect_failure(cadre_dataset_unbatch(data), CADRE_INVALID_ARGUMENT,
        "unbatch: components 0 to 1 (ragged): row splits end with 10, and there are 1 values");
    /* What is declared has to come. */
    cadre_element_spec spec;
    data = cadre_dataset_ragged_batch(vectors(1, 5), 4, false);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    cadre_dataset_release(data);
    const cadre_map_options options = {.output = &spec};
    cadre_dataset *const plain[] = {cadre_dataset_range(0, 2, 1), cadre_dataset_range(0, 2, 1)};
    data = cadre_dataset_batch(cadre_dataset_zip(plain, 2), 2, false);
    expect_failure(cadre_dataset_map(data, pass_on, NULL, &options), CADRE_INVALID_ARGUMENT,
        "output 1 is plain and was row splits");
    spec.tensors[0].composite = CADRE_COMPOSITE_SPARSE;
    expect_failure(cadre_dataset_map(vectors(0, 2), pass_on, NULL, &options),
        CADRE_INVALID_ARGUMENT, "map: output 0 is marked as composite 2");
}

static void put_apart(void **state)
{
    (void)state;
    cadre_dataset *const pair[] = {cadre_dataset_range(0, 5, 1), vectors(0, 5)};
    cadre_dataset *data = cadre_dataset_ragged_batch(cadre_dataset_zip(pair, 2), 2, false);
    data = cadre_dataset_unbatch(data);
    expect_spec(data, "i64 [] i64 [?]");
    expect_consistent(data);
    expect_elements(data, "(0, []) (1, [0]) (2, [0 1]) (3, [0 1 2]) (4, [0 1 2 3])");
    data = cadre_dataset_unbatch(cadre_dataset_ragged_batch(vectors(1, 5), 2, true));
    expect_consistent(data);
    data = cadre_dataset_ragged_batch(data, 3, false);
    expect_consistent(data);
    expect_elements(data, "([0 0 1 0 1 2], [0 1 3 6]) ([0 1 2 3], [0 4])");
    const cadre_tensor_spec six = {.rank = 1, .dims = {6}};
    data = cadre_dataset_sparse_batch(vectors(1, 4), 2, &six, false);
    expect_failure(
        cadre_dataset_unbatch(data), CADRE_INVALID_ARGUMENT, "map cadre_sparse_to_dense first");
}

static void batches_of_batches_are_refused(void **state)
{
    (void)state;
    const char *part = "are a batch of rows already; call cadre_dataset_unbatch first";
    cadre_dataset *data = cadre_dataset_ragged_batch(vectors(0, 4), 2, false);
    expect_failure(cadre_dataset_padded_batch(cadre_dataset_retain(data), 2, NULL, false),
        CADRE_INVALID_ARGUMENT, part);
    cadre_element_spec spec;
    cadre_dataset *twice = cadre_dataset_batch(cadre_dataset_retain(data), 2, false);
    assert_int_equal(cadre_dataset_spec(twice, &spec), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), part));
    expect_failure(twice, CADRE_INVALID_ARGUMENT, "not joined as a plain tensor");
    expect_failure(cadre_dataset_ragged_batch(data, 2, false), CADRE_INVALID_ARGUMENT, part);
}

static void wrong_calls(void **state)
{
    (void)state;
    const cadre_tensor_spec scalar = {.rank = 0};
    const cadre_tensor_spec one = {.rank = 1, .dims = {1}};
    const cadre_tensor_spec below = {.rank = 1, .dims = {-2}};
    expect_failure(cadre_dataset_ragged_batch(vectors(0, 3), 0, false), CADRE_INVALID_ARGUMENT,
        "ragged_batch: size 0");
    for (int64_t first = CADRE_DIMENSION_ANY; first < 3; first += 3) {
        cadre_element_spec spec;
        cadre_dataset *data =
            cadre_dataset_ragged_batch(matrices_said_to_be(first, CADRE_DIMENSION_ANY), 2, false);
        assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
        expect_failure(data, CADRE_INVALID_ARGUMENT,
            first == 2 ? "component 0 is i64 [2, ?]; only its first dimension"
                       : "component 0 is i64 [?, ?]; only its first dimension");
    }
    expect_failure(cadre_dataset_sparse_batch(vectors(0, 3), 0, &one, false),
        CADRE_INVALID_ARGUMENT, "sparse_batch: size 0");
    expect_failure(cadre_dataset_sparse_batch(vectors(0, 3), 2, NULL, false),
        CADRE_INVALID_ARGUMENT, "a row shape of 0 dimensions");
    expect_failure(cadre_dataset_sparse_batch(vectors(0, 3), 2, &scalar, false),
        CADRE_INVALID_ARGUMENT, "a row shape of 0 dimensions");
    expect_failure(cadre_dataset_sparse_batch(vectors(0, 3), 2, &below, false),
        CADRE_INVALID_ARGUMENT, "is to be within -2");
    expect_failure(cadre_dataset_sparse_batch(vectors(0, 3), 3, &one, false),
        CADRE_INVALID_ARGUMENT, "element 2 of a batch is i64 [2]");
    expect_failure(cadre_dataset_sparse_batch(cadre_dataset_range(0, 3, 1), 3, &one, false),
        CADRE_INVALID_ARGUMENT, "element 0 of a batch is i64 []");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documented_example),
        cmocka_unit_test(the_last_batch_and_other_components),
        cmocka_unit_test(behind_shuffles_and_caches),
        cmocka_unit_test(marks_are_kept),
        cmocka_unit_test(pieces),
        cmocka_unit_test(sparse_pieces),
        cmocka_unit_test(more_dimensions),
        cmocka_unit_test(through_maps),
        cmocka_unit_test(put_apart),
        cmocka_unit_test(batches_of_batches_are_refused),
        cmocka_unit_test(wrong_calls),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
