/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/device_list.h"

#include <stdlib.h>

cadre_status device_list_make(
    uint32_t count, struct device_list *ret_list, struct cadre_error *error)
{
    *ret_list = (struct device_list){.count = count,
        .names = calloc(count, sizeof ret_list->names[0]),
        .pointers = calloc(count, sizeof ret_list->pointers[0])};
    if (ret_list->names == NULL || ret_list->pointers == NULL) {
        device_list_clear(ret_list);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the names of %u devices", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        ret_list->pointers[i] = ret_list->names[i];
    }
    return CADRE_OK;
}

void device_list_clear(struct device_list *list)
{
    free(list->names);
    free(list->pointers);
    *list = (struct device_list){0};
}
