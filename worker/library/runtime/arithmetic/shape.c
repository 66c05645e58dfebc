/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/arithmetic/shape.h"

bool shape_same(const cadre_tensor *a, const cadre_tensor *b)
{
    bool same = cadre_tensor_rank(a) == cadre_tensor_rank(b);
    for (uint32_t axis = 0; same && axis < cadre_tensor_rank(a); axis++) {
        same = cadre_tensor_dim(a, axis) == cadre_tensor_dim(b, axis);
    }
    return same;
}

cadre_status shape_check_axis(
    int32_t axis, int64_t rank, const char *what, struct cadre_error *error)
{
    if (axis < -rank || axis >= rank) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "axis %d is outside of [-%lld, %lld), the axes of %s", (int)axis, (long long)rank,
            (long long)rank, what);
    }
    return CADRE_OK;
}
