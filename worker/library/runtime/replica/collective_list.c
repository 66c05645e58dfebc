/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/replica/collective_list.h"

#include <stdlib.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

cadre_status collective_list_room(struct collective_list *list, size_t count,
    struct mesh_buffer **ret_buffers, struct cadre_error *error)
{
    if (list->capacity < count + 1) {
        size_t capacity = list->capacity * 2 > count + 1 ? list->capacity * 2 : count + 1;
        struct mesh_buffer *buffers =
            fault_point("collective.list") ? NULL : calloc(capacity, sizeof *buffers);
        if (buffers == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", count);
        }
        free(list->buffers);
        list->buffers = buffers;
        list->capacity = capacity;
    }
    CADRE_ASSERT(list->buffers != NULL);
    CADRE_ASSERT(list->capacity > count);
    *ret_buffers = list->buffers + 1;
    return CADRE_OK;
}

void collective_list_free(struct collective_list *list)
{
    free(list->buffers);
    *list = (struct collective_list){0};
}
