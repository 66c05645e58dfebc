/* SPDX-License-Identifier: Apache-2.0
 * Ragged and sparse values: made, cut, joined, as dense tensors and as text, against a plain list
 * of rows; parts that do not belong together are refused, whatever they are (see it under a
 * sanitizer). */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/composite.h"
#include "common/pure/prng.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"

#define assert_public_ok(call)                                                                     \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", #call, cadre_error_message());                                      \
        }                                                                                          \
    } while (0)

#define assert_refused(call, code, part)                                                           \
    do {                                                                                           \
        assert_int_equal((call), (code));                                                          \
        if (strstr(cadre_error_message(), (part)) == NULL) {                                       \
            fail_msg("'%s' does not contain '%s'", cadre_error_message(), (part));                 \
        }                                                                                          \
    } while (0)

static cadre_tensor *numbers(int64_t count, const int64_t *values)
{
    cadre_tensor *tensor = NULL;
    assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, &count, values, &tensor));
    return tensor;
}

static cadre_tensor *matrix(int64_t rows, int64_t columns, const int64_t *values)
{
    const int64_t dims[] = {rows, columns};
    cadre_tensor *tensor = NULL;
    assert_public_ok(cadre_tensor_from_data(CADRE_I64, 2, dims, values, &tensor));
    return tensor;
}

#define NUMBERS(...)                                                                               \
    numbers(                                                                                       \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static void release(cadre_tensor *tensors[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cadre_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

static void expect_text(cadre_composite kind, cadre_tensor *const tensors[], const char *expected)
{
    struct cadre_error error = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(composite_print(kind, tensors, to, &error), CADRE_OK);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
    free(text);
}

/* [[1, 2], [], [3]] */
static void make_small(cadre_tensor *tensors[2])
{
    cadre_tensor *splits = NUMBERS(0, 2, 2, 3);
    tensors[0] = NUMBERS(1, 2, 3);
    assert_public_ok(cadre_ragged_from_row_splits(tensors[0], splits, &tensors[1]));
    assert_ptr_not_equal(splits, tensors[1]);
    cadre_tensor_release(splits);
}

static void rows_of_ragged(void **state)
{
    (void)state;
    cadre_tensor *small[2];
    cadre_tensor *row = NULL;
    const int64_t lengths[] = {2, 0, 1};
    make_small(small);
    for (int64_t i = 0; i < 3; i++) {
        assert_public_ok(cadre_ragged_row(small[0], small[1], i, &row));
        assert_int_equal(cadre_tensor_rows(row), lengths[i]);
        cadre_tensor_release(row);
    }
    assert_refused(cadre_ragged_row(small[0], small[1], 3, &row), CADRE_OUT_OF_RANGE,
        "row 3 is outside of 3 ragged rows");
    assert_null(row);
    assert_refused(cadre_ragged_row(small[0], small[1], -1, &row), CADRE_OUT_OF_RANGE, "row -1");
    expect_text(CADRE_COMPOSITE_RAGGED, small, "<RaggedTensor [[1, 2], [], [3]]>");
    release(small, 2);
}

static void ragged_as_dense(void **state)
{
    (void)state;
    cadre_tensor *small[2];
    cadre_tensor *dense = NULL;
    cadre_tensor *nine = NULL;
    make_small(small);
    assert_public_ok(cadre_tensor_from_i64(9, &nine));
    assert_public_ok(cadre_ragged_to_dense(small[0], small[1], CADRE_DIMENSION_ANY, NULL, &dense));
    assert_int_equal(cadre_tensor_dim(dense, 1), 2);
    assert_memory_equal(cadre_tensor_data(dense), ((const int64_t[]){1, 2, 0, 0, 3, 0}), 48);
    cadre_tensor_release(dense);
    assert_public_ok(cadre_ragged_to_dense(small[0], small[1], 1, nine, &dense));
    assert_memory_equal(cadre_tensor_data(dense), ((const int64_t[]){1, 9, 3}), 24);
    cadre_tensor_release(dense);
    assert_public_ok(cadre_ragged_to_dense(small[0], small[1], 0, nine, &dense));
    assert_int_equal(cadre_tensor_count(dense), 0);
    cadre_tensor_release(dense);
    assert_refused(cadre_ragged_to_dense(small[0], small[1], -2, nine, &dense),
        CADRE_INVALID_ARGUMENT, "cannot be -2 values wide");
    assert_refused(cadre_ragged_to_dense(small[0], small[1], 1, small[0], &dense),
        CADRE_INVALID_ARGUMENT, "default_value is i64 [3]; it is a scalar");
    assert_refused(cadre_ragged_to_dense(small[0], small[1], INT64_MAX / 4, nine, &dense),
        CADRE_INVALID_ARGUMENT, "more bytes than can be addressed");
    /* Strings, which live on without those they came from. */
    const cadre_string words[] = {{"a", 1}, {"bc", 2}, {"d", 1}};
    const int64_t three = 3;
    cadre_tensor *strings = NULL;
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &three, words, &strings));
    assert_public_ok(cadre_ragged_to_dense(strings, small[1], 2, NULL, &dense));
    cadre_tensor_release(strings);
    const cadre_string *cells = cadre_tensor_const_data(dense);
    assert_int_equal(cells[1].size, 2);
    assert_memory_equal(cells[1].bytes, "bc", 2);
    assert_int_equal(cells[2].size, 0);
    cadre_tensor_release(dense);
    cadre_tensor_release(nine);
    release(small, 2);
}

static void wrong_row_splits(void **state)
{
    (void)state;
    static const struct {
        int64_t splits[4];
        int64_t count;
        const char *reason;
    } cases[] = {
        {{0}, 0, "row splits are empty"},
        {{1, 3}, 2, "row splits begin with 1"},
        {{0, 3, 2, 3}, 4, "row splits fall from 3 to 2 at row 1"},
        {{0, INT64_MIN, 3}, 3, "row splits fall"},
        {{0, 2}, 2, "row splits end with 2, and there are 3 values"},
        {{0, INT64_MAX}, 2, "row splits end with 9223372036854775807"},
        {{0}, 1, "row splits end with 0"},
    };
    cadre_tensor *values = NUMBERS(1, 2, 3);
    cadre_tensor *scalar = NULL;
    cadre_tensor *made = values;
    assert_public_ok(cadre_tensor_from_i64(1, &scalar));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_tensor *splits = numbers(cases[i].count, cases[i].splits);
        assert_refused(cadre_ragged_from_row_splits(values, splits, &made), CADRE_INVALID_ARGUMENT,
            cases[i].reason);
        assert_null(made);
        cadre_tensor_release(splits);
    }
    assert_refused(cadre_ragged_from_row_splits(values, scalar, &made), CADRE_INVALID_ARGUMENT,
        "row splits are i64 [] here; they are i64 of 1 dimension");
    assert_refused(cadre_ragged_from_row_splits(scalar, values, &made), CADRE_INVALID_ARGUMENT,
        "are a scalar");
    assert_refused(
        cadre_ragged_from_row_splits(NULL, values, &made), CADRE_INVALID_ARGUMENT, "'values'");
    assert_refused(
        cadre_ragged_from_row_splits(values, NULL, &made), CADRE_INVALID_ARGUMENT, "'row_splits'");
    assert_refused(cadre_ragged_from_row_splits(values, values, NULL), CADRE_INVALID_ARGUMENT,
        "'ret_row_splits'");
    /* A row is looked at alone. */
    cadre_tensor *splits = NUMBERS(0, 1, INT64_MAX, -1, 2);
    const char *part = "which cannot be; give the row splits of these values";
    assert_public_ok(cadre_ragged_row(values, splits, 0, &made));
    cadre_tensor_release(made);
    for (int64_t i = 1; i < 4; i++) {
        assert_refused(cadre_ragged_row(values, splits, i, &made), CADRE_INVALID_ARGUMENT, part);
    }
    cadre_tensor_release(splits);
    cadre_tensor_release(values);
    cadre_tensor_release(scalar);
}

/* The doc's [[1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]. */
static void make_sparse(cadre_tensor *tensors[3])
{
    cadre_tensor *shape = NUMBERS(3, 4);
    tensors[0] = matrix(2, 2, (const int64_t[]){0, 0, 1, 2});
    tensors[1] = NUMBERS(1, 2);
    assert_public_ok(cadre_sparse_from_indices(tensors[0], tensors[1], shape, &tensors[2]));
    cadre_tensor_release(shape);
}

static void sparse_as_dense(void **state)
{
    (void)state;
    cadre_tensor *sparse[3];
    cadre_tensor *dense = NULL;
    make_sparse(sparse);
    expect_text(CADRE_COMPOSITE_SPARSE, sparse,
        "SparseTensor(indices=cadre_tensor(\n[[0 0]\n [1 2]], shape=(2, 2), dtype=int64), "
        "values=cadre_tensor([1 2], shape=(2,), dtype=int64), "
        "dense_shape=cadre_tensor([3 4], shape=(2,), dtype=int64))");
    assert_public_ok(cadre_sparse_to_dense(sparse[0], sparse[1], sparse[2], NULL, &dense));
    assert_memory_equal(
        cadre_tensor_data(dense), ((const int64_t[]){1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0}), 96);
    cadre_tensor_release(dense);
    cadre_tensor *twice = matrix(2, 2, (const int64_t[]){1, 2, 1, 2});
    cadre_tensor *back = matrix(2, 2, (const int64_t[]){1, 2, 0, 3});
    const char *part = "index 1 of a sparse value does not come behind the one before it";
    assert_refused(cadre_sparse_to_dense(twice, sparse[1], sparse[2], NULL, &dense),
        CADRE_INVALID_ARGUMENT, part);
    assert_refused(cadre_sparse_to_dense(back, sparse[1], sparse[2], NULL, &dense),
        CADRE_INVALID_ARGUMENT, part);
    assert_null(dense);
    release((cadre_tensor *[]){twice, back}, 2);
    release(sparse, 3);
}

static void wrong_sparse_parts(void **state)
{
    (void)state;
    static const struct {
        int64_t indices[4];
        int64_t shape[4];
        int64_t rank;
        const char *reason;
    } cases[] = {
        {{0, 0, 1, 2}, {3, 2}, 2, "index 2 of sparse value 1 along axis 1 is outside of [0, 2)"},
        {{-1, 0, 1, 2}, {3, 3}, 2, "index -1 of sparse value 0 along axis 0"},
        {{INT64_MAX, 0, 1, 2}, {3, 3}, 2, "index 9223372036854775807 of sparse value 0"},
        {{0, 0, 1, 2}, {3, -3}, 2, "dimension 1 of a dense shape is -3"},
        {{0, 0, 1, 2}, {3}, 1, "of a dense shape of 1 dimensions; they are [n] with [n, 1]"},
        {{0, 0, 1, 2}, {3}, 0, "a dense shape has 0 dimensions"},
    };
    cadre_tensor *values = NUMBERS(1, 2);
    cadre_tensor *three = NUMBERS(1, 2, 3);
    cadre_tensor *made = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_tensor *indices = matrix(2, 2, cases[i].indices);
        cadre_tensor *shape = numbers(cases[i].rank, cases[i].shape);
        assert_refused(cadre_sparse_from_indices(indices, values, shape, &made),
            CADRE_INVALID_ARGUMENT, cases[i].reason);
        assert_refused(cadre_sparse_to_dense(indices, values, shape, NULL, &made),
            CADRE_INVALID_ARGUMENT, cases[i].reason);
        release((cadre_tensor *[]){indices, shape}, 2);
    }
    cadre_tensor *indices = matrix(2, 2, cases[0].indices);
    cadre_tensor *huge = NUMBERS(INT64_MAX, INT64_MAX);
    assert_refused(cadre_sparse_from_indices(indices, three, huge, &made), CADRE_INVALID_ARGUMENT,
        "sparse values are i64 [3] with indices i64 [2, 2]");
    assert_refused(cadre_sparse_from_indices(values, values, huge, &made), CADRE_INVALID_ARGUMENT,
        "sparse indices are i64 [2] here");
    assert_refused(cadre_sparse_to_dense(indices, values, huge, NULL, &made),
        CADRE_INVALID_ARGUMENT, "more bytes than can be addressed");
    assert_refused(cadre_sparse_to_dense(NULL, values, huge, NULL, &made), CADRE_INVALID_ARGUMENT,
        "'indices'");
    /* It may be that large as long as it is not made dense. */
    assert_public_ok(cadre_sparse_from_indices(indices, values, huge, &made));
    cadre_tensor *const parts[] = {indices, values, made};
    const cadre_element elements[] = {{.count = 3, .tensors = {indices, values, made}},
        {.count = 3, .tensors = {indices, values, made}}};
    const struct composite whole = {.kind = CADRE_COMPOSITE_SPARSE, .count = 3};
    cadre_tensor *joined[3] = {NULL};
    struct cadre_error error = {0};
    assert_int_equal(composite_rows(CADRE_COMPOSITE_SPARSE, parts), INT64_MAX);
    assert_int_equal(composite_concat(&whole, elements, 2, joined, &error), CADRE_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sparse parts have more rows than can be counted");
    assert_null(joined[0]);
    release((cadre_tensor *[]){indices, huge, values, three, made}, 5);
}

/* --- against a list of rows --- */

#define ROWS_MAX    12
#define COLUMNS_MAX 5

/* Row r has `lengths[r]` numbers; they stand at the columns 0, 1, ... of the sparse one. */
struct table {
    int64_t rows;
    int64_t lengths[ROWS_MAX];
    int64_t numbers[ROWS_MAX][COLUMNS_MAX];
};

static void make_table(struct prng *prng, struct table *table)
{
    table->rows = (int64_t)prng_uniform(prng, ROWS_MAX + 1);
    for (int64_t r = 0; r < table->rows; r++) {
        table->lengths[r] = (int64_t)prng_uniform(prng, COLUMNS_MAX + 1);
        for (int64_t i = 0; i < table->lengths[r]; i++) {
            table->numbers[r][i] = (int64_t)prng_uniform(prng, 1000);
        }
    }
}

/* The values of a sparse one in any order, which `shuffles`. */
static void fill(
    struct prng *prng, const struct table *table, cadre_composite kind, cadre_tensor *tensors[3])
{
    int64_t values[ROWS_MAX * COLUMNS_MAX];
    int64_t indices[ROWS_MAX * COLUMNS_MAX][2];
    int64_t splits[ROWS_MAX + 1] = {0};
    int64_t count = 0;
    for (int64_t r = 0; r < table->rows; r++) {
        for (int64_t i = 0; i < table->lengths[r]; i++, count++) {
            int64_t at = count;
            if (kind == CADRE_COMPOSITE_SPARSE) {
                at = (int64_t)prng_uniform(prng, (uint64_t)count + 1);
                values[count] = values[at];
                memcpy(indices[count], indices[at], sizeof indices[at]);
            }
            values[at] = table->numbers[r][i];
            indices[at][0] = r;
            indices[at][1] = i;
        }
        splits[r + 1] = count;
    }
    tensors[2] = NULL;
    if (kind == CADRE_COMPOSITE_RAGGED) {
        cadre_tensor *plain = numbers(table->rows + 1, splits);
        tensors[0] = numbers(count, values);
        assert_public_ok(cadre_ragged_from_row_splits(tensors[0], plain, &tensors[1]));
        cadre_tensor_release(plain);
    } else {
        cadre_tensor *plain = NUMBERS(table->rows, COLUMNS_MAX);
        tensors[0] = matrix(count, 2, &indices[0][0]);
        tensors[1] = numbers(count, values);
        assert_public_ok(cadre_sparse_from_indices(tensors[0], tensors[1], plain, &tensors[2]));
        cadre_tensor_release(plain);
    }
}

static void expect_row(const struct table *table, int64_t row, cadre_composite kind,
    cadre_tensor *const tensors[], int64_t at)
{
    int64_t found = 0;
    if (kind == CADRE_COMPOSITE_RAGGED) {
        cadre_tensor *view = NULL;
        assert_public_ok(cadre_ragged_row(tensors[0], tensors[1], at, &view));
        assert_int_equal(cadre_tensor_rows(view), table->lengths[row]);
        assert_memory_equal(cadre_tensor_data(view), table->numbers[row],
            (size_t)table->lengths[row] * sizeof(int64_t));
        cadre_tensor_release(view);
        return;
    }
    const int64_t *index = cadre_tensor_const_data(tensors[0]);
    const int64_t *values = cadre_tensor_const_data(tensors[1]);
    for (int64_t k = 0; k < cadre_tensor_rows(tensors[1]); k++) {
        if (index[2 * k] == at) {
            assert_int_equal(values[k], table->numbers[row][index[2 * k + 1]]);
            found++;
        }
    }
    assert_int_equal(found, table->lengths[row]);
}

/* Rows [first, first + count) of the table are all that there is. */
static void expect_rows(const struct table *table, int64_t first, int64_t count,
    cadre_composite kind, cadre_tensor *const tensors[])
{
    struct cadre_error error = {0};
    assert_int_equal(composite_check(kind, tensors, &error), CADRE_OK);
    assert_int_equal(composite_rows(kind, tensors), count);
    for (int64_t i = 0; i < count; i++) {
        expect_row(table, first + i, kind, tensors, i);
    }
}

static void any_cuts_joined_are_the_whole(void **state)
{
    (void)state;
    struct prng prng = {.state = 58};
    for (int round = 0; round < 2000; round++) {
        const cadre_composite kind =
            round % 2 == 0 ? CADRE_COMPOSITE_RAGGED : CADRE_COMPOSITE_SPARSE;
        const uint32_t count = kind == CADRE_COMPOSITE_RAGGED ? 2 : 3;
        struct cadre_error error = {0};
        struct table table;
        cadre_tensor *whole[3];
        cadre_tensor *joined[3] = {NULL};
        cadre_element pieces[4] = {{0}};
        int64_t first = 0;
        make_table(&prng, &table);
        fill(&prng, &table, kind, whole);
        for (int i = 0; i < 4; i++) {
            int64_t rows = i == 3
                               ? table.rows - first
                               : (int64_t)prng_uniform(&prng, (uint64_t)(table.rows - first) + 1);
            pieces[i].count = count;
            assert_int_equal(
                composite_slice(kind, whole, first, rows, pieces[i].tensors, &error), CADRE_OK);
            expect_rows(&table, first, rows, kind, pieces[i].tensors);
            first += rows;
        }
        const struct composite all = composite_of_element(&pieces[0], 0);
        assert_int_equal(all.kind, kind);
        assert_int_equal(all.count, count);
        assert_int_equal(composite_concat(&all, pieces, 4, joined, &error), CADRE_OK);
        expect_rows(&table, 0, table.rows, kind, joined);
        cadre_tensor *none[3] = {NULL};
        assert_int_equal(
            composite_slice(kind, whole, 1, table.rows, none, &error), CADRE_OUT_OF_RANGE);
        assert_null(none[0]);
        release(joined, 3);
        release(whole, 3);
        for (int i = 0; i < 4; i++) {
            release(pieces[i].tensors, 3);
        }
    }
}

/* Any numbers as row splits, indices and dense shapes are cut as what they are, or refused. */
static void any_parts_are_safe(void **state)
{
    (void)state;
    static const int64_t odd[] = {0, 1, 2, 3, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, 1 << 20};
    struct prng prng = {.state = 2027};
    size_t refused = 0;
    for (int round = 0; round < 20000; round++) {
        const bool ragged = round % 2 == 0;
        const cadre_composite kind = ragged ? CADRE_COMPOSITE_RAGGED : CADRE_COMPOSITE_SPARSE;
        struct cadre_error error = {0};
        int64_t any[8];
        for (int i = 0; i < 8; i++) {
            any[i] =
                i == 0 && round % 3 != 0 ? 0 : odd[prng_uniform(&prng, round % 5 == 0 ? 9 : 4)];
        }
        cadre_tensor *tensors[3] = {ragged ? NUMBERS(1, 2, 3) : matrix(2, 2, any),
            ragged ? numbers((int64_t)prng_uniform(&prng, 6), any) : NUMBERS(1, 2),
            numbers(2, any + 4)};
        cadre_tensor *cut[3] = {NULL};
        const int64_t rows = composite_rows(kind, tensors);
        const int64_t first = (int64_t)prng_uniform(&prng, (uint64_t)(rows < 5 ? rows : 5) + 1);
        assert_true(rows >= 0);
        if (composite_slice(kind, tensors, first, rows - first, cut, &error) == CADRE_OK) {
            assert_int_equal(composite_check(kind, cut, &error), CADRE_OK);
            assert_int_equal(composite_rows(kind, cut), rows - first);
        } else {
            assert_int_equal(error.code, CADRE_INVALID_ARGUMENT);
            assert_null(cut[0]);
            refused++;
        }
        release(cut, 3);
        release(tensors, 3);
    }
    assert_true(refused > 2000 && refused < 19900);
}

/* --- text --- */

static void expect_ragged(
    const cadre_tensor *values, int64_t rows, const int64_t *splits, const char *expected)
{
    cadre_tensor *tensors[] = {(cadre_tensor *)(uintptr_t)values, numbers(rows + 1, splits)};
    expect_text(CADRE_COMPOSITE_RAGGED, tensors, expected);
    cadre_tensor_release(tensors[1]);
}

static void texts(void **state)
{
    (void)state;
    cadre_tensor *four = NUMBERS(1, 2, 3, 4);
    cadre_tensor *none = numbers(0, NULL);
    /* Rows of one length are an array, as in TensorFlow. */
    expect_ragged(four, 2, (const int64_t[]){0, 2, 4}, "<RaggedTensor [[1, 2],\n [3, 4]]>");
    expect_ragged(four, 1, (const int64_t[]){0, 4}, "<RaggedTensor [[1, 2, 3, 4]]>");
    expect_ragged(none, 0, (const int64_t[]){0}, "<RaggedTensor []>");
    expect_ragged(none, 2, (const int64_t[]){0, 0, 0}, "<RaggedTensor [[], []]>");
    const float reals[] = {1, 0.1f, 100};
    const int64_t three = 3;
    cadre_tensor *floats = NULL;
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 1, &three, reals, &floats));
    expect_ragged(floats, 2, (const int64_t[]){0, 1, 3}, "<RaggedTensor [[1.0], [0.1, 100.0]]>");
    cadre_tensor *pairs = matrix(3, 2, (const int64_t[]){1, 2, 3, 4, 5, 6});
    expect_ragged(
        pairs, 2, (const int64_t[]){0, 2, 3}, "<RaggedTensor [[[1, 2],\n  [3, 4]], [[5, 6]]]>");
    release((cadre_tensor *[]){four, none, floats, pairs}, 4);
    /* The guide's words, in lines of 75 characters. */
    const cadre_string words[] = {{"Who", 3}, {"is", 2}, {"Dan", 3}, {"Smith?", 6}, {"Pause", 5},
        {"Will", 4}, {"it", 2}, {"rain", 4}, {"later", 5}, {"today?", 6}};
    const int64_t ten = 10;
    cadre_tensor *strings = NULL;
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &ten, words, &strings));
    expect_ragged(strings, 3, (const int64_t[]){0, 4, 5, 10},
        "<RaggedTensor [[b'Who', b'is', b'Dan', b'Smith?'], [b'Pause'],\n"
        " [b'Will', b'it', b'rain', b'later', b'today?']]>");
    cadre_tensor_release(strings);
}

static void long_texts(void **state)
{
    (void)state;
    int64_t many[2001];
    for (int64_t i = 0; i < 2001; i++) {
        many[i] = i;
    }
    cadre_tensor *values = numbers(2001, many);
    expect_ragged(values, 2, (const int64_t[]){0, 1, 2001},
        "<RaggedTensor [[0], [1, 2, 3, ..., 1998, 1999, 2000]]>");
    expect_ragged(
        values, 1, (const int64_t[]){0, 2001}, "<RaggedTensor [[0, 1, 2, ..., 1998, 1999, 2000]]>");
    cadre_tensor_release(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_ragged),
        cmocka_unit_test(ragged_as_dense),
        cmocka_unit_test(wrong_row_splits),
        cmocka_unit_test(sparse_as_dense),
        cmocka_unit_test(wrong_sparse_parts),
        cmocka_unit_test(any_cuts_joined_are_the_whole),
        cmocka_unit_test(any_parts_are_safe),
        cmocka_unit_test(texts),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
