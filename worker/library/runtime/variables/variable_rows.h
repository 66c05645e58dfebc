/* SPDX-License-Identifier: Apache-2.0
 * Checks of row numbers that programs give. */
#ifndef CADRE_RUNTIME_VARIABLE_ROWS_H
#define CADRE_RUNTIME_VARIABLE_ROWS_H

#include "worker/library/runtime/variables/variable.h"

/* INVALID_ARGUMENT: a scalar has no rows. */
cadre_status variable_require_rows(const cadre_variable *variable, struct cadre_error *error);

/* Sets OUT_OF_RANGE, which names the row and those that exist, and returns it. */
cadre_status variable_no_row(
    const cadre_variable *variable, int64_t row, struct cadre_error *error);

/* INVALID_ARGUMENT: it holds strings. */
cadre_status variable_require_numbers(
    const cadre_variable *variable, const char *function, struct cadre_error *error);

/* The shape of as many rows as `ids` has elements. */
struct row_shape {
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
};
/* INVALID_ARGUMENT: ids of another type than i32 and i64, a scalar, too many axes. */
cadre_status variable_row_shape(const cadre_variable *variable, const cadre_tensor *ids,
    struct row_shape *ret_shape, struct cadre_error *error);

/* `rows` has that shape and the variable's type. */
cadre_status variable_check_row_values(const cadre_variable *variable,
    const struct row_shape *shape, const cadre_tensor *rows, struct cadre_error *error);

/* Row numbers as i64: *ret_ids are the tensor's own, or *ret_memory, which the caller frees. */
cadre_status variable_take_ids(const cadre_tensor *ids, const int64_t **ret_ids,
    int64_t **ret_memory, struct cadre_error *error);

#endif
