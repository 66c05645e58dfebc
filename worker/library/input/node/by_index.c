/* SPDX-License-Identifier: Apache-2.0
 * Reading by index: the walk down the re-indexing nodes to the one that makes the elements. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/input/node/element_stack.h"

static void check_pointers(
    const cadre_dataset *data, const struct element_position positions[], size_t count)
{
    int64_t cardinality = dataset_cardinality(data);
    for (size_t i = 0; i < count && cardinality >= 0; i++) {
        CADRE_ASSERT(positions[i].index < (uint64_t)cardinality);
    }
}

/* Goes down to the maker; the places become those of its elements. */
static cadre_dataset *find_maker(
    cadre_dataset *data, struct element_position positions[], size_t count)
{
    CADRE_ASSERT(data->indexable);
    check_pointers(data, positions, count);
    while (data->ops->locate != NULL) {
        data->ops->locate(data, positions, count);
        data = data->input;
    }
    check_pointers(data, positions, count);
    return data;
}

cadre_status dataset_at(cadre_dataset *data, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    data = find_maker(data, &position, 1);
    return data->ops->at(data, position, ret_element, ids, error);
}

cadre_status dataset_ids_at(cadre_dataset *data, struct element_position positions[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    data = find_maker(data, positions, count);
    return data->ops->ids_at(data, positions, count, ids, error);
}

/* The generic way: an element each, then stacked. */
static cadre_status gather_each(cadre_dataset *maker, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_CLEANUP(element_stack_clear) struct element_stack rows = {0};
    for (size_t i = 0; i < count; i++) {
        cadre_element element = {0};
        CADRE_TRY(maker->ops->at(maker, positions[i], &element, ids, error));
        CADRE_TRY(element_stack_add(&rows, &element, error));
    }
    return element_stack_finish(&rows, ret_element, error);
}

cadre_status dataset_gather(cadre_dataset *data, struct element_position positions[], size_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    *ret_element = (cadre_element){0};
    data = find_maker(data, positions, count);
    if (data->ops->gather != NULL) {
        return data->ops->gather(data, positions, count, ret_element, ids, error);
    }
    return gather_each(data, positions, count, ret_element, ids, error);
}

int64_t dataset_rows(cadre_dataset *data, struct element_position position)
{
    data = find_maker(data, &position, 1);
    return data->ops->rows == NULL ? CADRE_CARDINALITY_UNKNOWN : data->ops->rows(data, position);
}

cadre_status dataset_at_rows(cadre_dataset *data, struct element_position position, int64_t first,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    data = find_maker(data, &position, 1);
    CADRE_ASSERT(count >= 1 && first >= 0 && first + count <= data->ops->rows(data, position));
    return data->ops->at_rows(data, position, first, count, ret_element, ids, error);
}
