/* SPDX-License-Identifier: Apache-2.0
 * Host numbers as values of variables. */
#include <math.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/arithmetic/numbers.h"

static bool is_exact(double number, cadre_dtype dtype)
{
    if (dtype <= CADRE_BF16) {
        return true;
    }
    if (dtype == CADRE_BOOL) {
        return number == 0 || number == 1;
    }
    return trunc(number) == number && numbers_fit(number, dtype);
}

cadre_status literal_tensor(const cadre_variable *variable, double number,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    if (variable->dtype == CADRE_STRING || !is_exact(number, variable->dtype)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' holds %s, which cannot be %.17g; give a number that its type holds "
            "exactly",
            variable->name, cadre_dtype_name(variable->dtype), number);
    }
    cadre_tensor *tensor = NULL;
    CADRE_TRY(tensor_create_unset(variable->dtype, variable->rank, variable->dims, &tensor, error));
    CADRE_ASSERT(cadre_tensor_count(tensor) == variable->count);
    for (int64_t i = 0; i < variable->count; i++) {
        numbers_store(cadre_tensor_data(tensor), i, variable->dtype, number);
    }
    *ret_tensor = tensor;
    return CADRE_OK;
}
