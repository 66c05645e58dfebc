/* SPDX-License-Identifier: Apache-2.0
 * Lists of sample ids; see id_list.h. */
#include "worker/library/input/node/id_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

static cadre_status id_list_reserve(struct id_list *list, size_t more, struct cadre_error *error)
{
    if (more <= list->capacity - list->count) {
        return CADRE_OK;
    }
    size_t capacity = list->capacity == 0 ? 16 : list->capacity;
    while (capacity - list->count < more) {
        capacity *= 2;
    }
    uint64_t *ids = realloc(list->ids, capacity * sizeof ids[0]);
    if (ids == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu sample ids", capacity);
    }
    list->ids = ids;
    list->capacity = capacity;
    return CADRE_OK;
}

cadre_status id_list_extend(
    struct id_list *list, size_t more, uint64_t **ret_ids, struct cadre_error *error)
{
    CADRE_TRY(id_list_reserve(list, more, error));
    *ret_ids = list->ids == NULL ? NULL : list->ids + list->count; /* none of none */
    list->count += more;
    return CADRE_OK;
}

cadre_status id_list_add(struct id_list *list, uint64_t id, struct cadre_error *error)
{
    if (list == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(id_list_reserve(list, 1, error));
    list->ids[list->count++] = id;
    return CADRE_OK;
}

cadre_status id_list_add_range(struct id_list *list, const struct id_list *from, size_t first,
    size_t count, struct cadre_error *error)
{
    CADRE_ASSERT(first <= from->count && count <= from->count - first);
    if (list == NULL || count == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(id_list_reserve(list, count, error));
    memcpy(list->ids + list->count, from->ids + first, count * sizeof list->ids[0]);
    list->count += count;
    return CADRE_OK;
}

void id_list_clear(struct id_list *list)
{
    free(list->ids);
    *list = (struct id_list){0};
}
