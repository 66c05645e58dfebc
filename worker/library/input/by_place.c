/* SPDX-License-Identifier: Apache-2.0
 * Reading by place: the walk down the re-indexing nodes to the one that makes the elements. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/input/element_rows.h"

static void check_places(const cadre_dataset *data, const struct place places[], size_t count)
{
    int64_t cardinality = dataset_cardinality(data);
    for (size_t i = 0; i < count && cardinality >= 0; i++) {
        CADRE_ASSERT(places[i].index < (uint64_t)cardinality);
    }
}

/* Goes down to the maker; the places become those of its elements. */
static cadre_dataset *find_maker(cadre_dataset *data, struct place places[], size_t count)
{
    CADRE_ASSERT(data->indexable);
    check_places(data, places, count);
    while (data->ops->locate != NULL) {
        data->ops->locate(data, places, count);
        data = data->input;
    }
    check_places(data, places, count);
    return data;
}

cadre_status dataset_at(cadre_dataset *data, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    data = find_maker(data, &place, 1);
    return data->ops->at(data, place, ret_element, ids, error);
}

cadre_status dataset_ids_at(cadre_dataset *data, struct place places[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    data = find_maker(data, places, count);
    return data->ops->ids_at(data, places, count, ids, error);
}

/* The generic way: an element each, then stacked. */
static cadre_status gather_each(cadre_dataset *maker, const struct place places[], size_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_CLEANUP(element_rows_clear) struct element_rows rows = {0};
    for (size_t i = 0; i < count; i++) {
        cadre_element element = {0};
        CADRE_TRY(maker->ops->at(maker, places[i], &element, ids, error));
        CADRE_TRY(element_rows_add(&rows, &element, error));
    }
    return element_rows_stack(&rows, ret_element, error);
}

cadre_status dataset_gather(cadre_dataset *data, struct place places[], size_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1);
    *ret_element = (cadre_element){0};
    data = find_maker(data, places, count);
    if (data->ops->gather != NULL) {
        return data->ops->gather(data, places, count, ret_element, ids, error);
    }
    return gather_each(data, places, count, ret_element, ids, error);
}

int64_t dataset_rows(cadre_dataset *data, struct place place)
{
    data = find_maker(data, &place, 1);
    return data->ops->rows == NULL ? CADRE_CARDINALITY_UNKNOWN : data->ops->rows(data, place);
}

cadre_status dataset_at_rows(cadre_dataset *data, struct place place, int64_t first, int64_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    data = find_maker(data, &place, 1);
    CADRE_ASSERT(count >= 1 && first >= 0 && first + count <= data->ops->rows(data, place));
    return data->ops->at_rows(data, place, first, count, ret_element, ids, error);
}
