/* SPDX-License-Identifier: Apache-2.0
 * See source.h. */
#include "worker/library/input/node/source.h"

#include <string.h>

#include "worker/library/device/tensor.h"

cadre_status source_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    (void)self;
    uint64_t *to = NULL;
    if (ids == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(id_list_extend(ids, count, &to, error));
    for (size_t i = 0; i < count; i++) {
        to[i] = positions[i].index;
    }
    return CADRE_OK;
}

cadre_status stacked_rows_create(const cadre_tensor_spec *row, size_t count,
    cadre_tensor **ret_tensor, struct cadre_error *error)
{
    int64_t dims[CADRE_RANK_MAX] = {(int64_t)count};
    *ret_tensor = NULL;
    if (row->rank >= CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "elements of %d dimensions cannot be stacked: that is the limit", CADRE_RANK_MAX);
    }
    memcpy(dims + 1, row->dims, row->rank * sizeof dims[0]);
    return tensor_create_unset(row->dtype, row->rank + 1, dims, ret_tensor, error);
}
