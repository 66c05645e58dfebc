/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/arithmetic/numbers.h"
#include "worker/library/runtime/optimizers/gradients.h"

/* A row and its index in the gradient. */
struct row {
    int64_t number;
    int64_t at;
};

/* By row number; equal ones by their order in the gradient. */
static int gradient_rows_compare(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    return x->at < y->at ? -1 : 1;
}

static cadre_status order_rows(const cadre_tensor *indices, struct row **ret_rows,
    int64_t *ret_different, struct cadre_error *error)
{
    int64_t count = cadre_tensor_count(indices);
    const int64_t *numbers = cadre_tensor_const_data(indices);
    struct row *rows =
        fault_point("optimizer.rows") ? NULL : malloc(((size_t)count + 1) * sizeof rows[0]);
    if (rows == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %lld rows of a sparse gradient", (long long)count);
    }
    for (int64_t i = 0; i < count; i++) {
        rows[i] = (struct row){.number = numbers[i], .at = i};
    }
    qsort(rows, (size_t)count, sizeof rows[0], gradient_rows_compare);
    *ret_different = 0;
    for (int64_t i = 0; i < count; i++) {
        *ret_different += i == 0 || rows[i].number != rows[i - 1].number;
    }
    *ret_rows = rows;
    return CADRE_OK;
}

static void sum_rows(const struct row *rows, int64_t count, const cadre_tensor *from,
    cadre_tensor *values, int64_t *numbers)
{
    int64_t rows_from = cadre_tensor_dim(from, 0);
    size_t bytes = rows_from == 0 ? 0 : cadre_tensor_bytes(from) / (size_t)rows_from;
    int64_t elements = rows_from == 0 ? 0 : cadre_tensor_count(from) / rows_from;
    const char *source = cadre_tensor_const_data(from);
    char *into = cadre_tensor_data(values);
    int64_t row = -1;
    for (int64_t i = 0; i < count; i++) {
        const char *one = source + (size_t)rows[i].at * bytes;
        if (i == 0 || rows[i].number != rows[i - 1].number) {
            row++;
            numbers[row] = rows[i].number;
            memcpy(into + (size_t)row * bytes, one, bytes);
        } else {
            numbers_add(into + (size_t)row * bytes, one, elements, cadre_tensor_dtype(from), false);
        }
    }
}

cadre_status gradient_rows(const cadre_sparse *sparse, cadre_tensor **ret_values,
    cadre_tensor **ret_rows, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct row *rows = NULL;
    int64_t dims[CADRE_RANK_MAX];
    int64_t different = 0;
    const cadre_tensor *values = sparse->values;
    CADRE_ASSERT(cadre_tensor_rank(values) >= 1);
    CADRE_TRY(order_rows(sparse->indices, &rows, &different, error));
    memcpy(dims, cadre_tensor_dims(values), cadre_tensor_rank(values) * sizeof dims[0]);
    dims[0] = different;
    CADRE_TRY(tensor_create_unset(
        cadre_tensor_dtype(values), cadre_tensor_rank(values), dims, ret_values, error));
    cadre_status status = tensor_create_unset(CADRE_I64, 1, &different, ret_rows, error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_values);
        *ret_values = NULL;
        return status;
    }
    sum_rows(rows, cadre_tensor_dim(sparse->indices, 0), values, *ret_values,
        cadre_tensor_data(*ret_rows));
    return CADRE_OK;
}
