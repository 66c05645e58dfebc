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
