/* SPDX-License-Identifier: Apache-2.0
 * Coordinators, from model structs to the public ones. */
#include "common/view/result.h"
#include "common/view/view.h"

cadre_coordinator_list *view_coordinators_new(
    const struct list_coordinators_response *response, struct wire_arena *arena)
{
    cadre_coordinator_list *list = result_new(sizeof *list, arena);
    cadre_coordinator *coordinators =
        list != NULL ? result_array(list, 0, response->count, sizeof *coordinators) : NULL;
    if (coordinators == NULL) {
        result_discard(list);
        return NULL;
    }
    for (size_t i = 0; i < response->count; i++) {
        const struct coordinator_info *info = &response->coordinators[i];
        coordinators[i] = (cadre_coordinator){.name = info->name,
            .addresses = info->addresses,
            .state = info->state,
            .text = info->text,
            .leads = info->leads,
            .term = info->term.start,
            .since_us = info->since_us,
            .applied = info->applied,
            .head = info->head,
            .version = info->version,
            .age_us = info->age_us};
    }
    *list = (cadre_coordinator_list){.coordinators = coordinators, .count = response->count};
    return list;
}
