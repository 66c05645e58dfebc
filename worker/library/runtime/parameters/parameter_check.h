/* SPDX-License-Identifier: Apache-2.0
 * What programs hand in: whether it fits the parameter. */
#ifndef CADRE_RUNTIME_PARAMETER_CHECK_H
#define CADRE_RUNTIME_PARAMETER_CHECK_H

#include "worker/library/runtime/parameters/parameters.h"

/* INVALID_ARGUMENT names both types and shapes. `what` it is: "gradient". */
cadre_status parameter_check_value(const cadre_parameter *parameter, const char *what,
    const cadre_tensor *value, struct cadre_error *error);

/* INVALID_ARGUMENT: a scalar has no rows. */
cadre_status parameter_check_rows(const cadre_parameter *parameter, struct cadre_error *error);

/* The shape of so many rows as `ids` has elements. INVALID_ARGUMENT: ids of another type than i32
 * and i64, a scalar, too many axes. */
struct row_shape {
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
};
cadre_status parameter_row_shape(const cadre_parameter *parameter, const cadre_tensor *ids,
    struct row_shape *ret_shape, struct cadre_error *error);

/* `rows` has that shape and the parameter's type. */
cadre_status parameter_check_row_values(const cadre_parameter *parameter,
    const struct row_shape *shape, const cadre_tensor *rows, struct cadre_error *error);

/* Row numbers as the servers take them: *ret_ids are the tensor's own, or *ret_memory, which is to
 * be freed. */
cadre_status parameter_take_ids(const cadre_tensor *ids, const int64_t **ret_ids,
    int64_t **ret_memory, struct cadre_error *error);

#endif
