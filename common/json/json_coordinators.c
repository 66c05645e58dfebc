/* SPDX-License-Identifier: Apache-2.0
 * The coordinators of a cluster. */
#include "common/json/json.h"
#include "common/json/json_value.h"

static json_t *of_coordinator(const cadre_coordinator *coordinator)
{
    uint64_t missing =
        coordinator->head > coordinator->applied ? coordinator->head - coordinator->applied : 0;
    json_t *json = json_object();
    json_object_set_new(json, "name", json_text(coordinator->name));
    json_object_set_new(json, "address", json_text(coordinator->addresses));
    json_object_set_new(json, "state", json_text(coordinator->state));
    json_object_set_new(json, "text", json_text(coordinator->text));
    json_object_set_new(json, "leader", json_boolean(coordinator->leads));
    json_object_set_new(json, "term", json_number(coordinator->term));
    json_object_set_new(json, "since_us", json_number(coordinator->since_us));
    json_object_set_new(json, "applied", json_number(coordinator->applied));
    json_object_set_new(json, "head", json_number(coordinator->head));
    json_object_set_new(json, "lag_entries", json_number(missing));
    json_object_set_new(json, "version", json_text(coordinator->version));
    json_object_set_new(json, "age_us", json_number(coordinator->age_us));
    return json;
}

json_t *json_of_coordinators(const cadre_coordinator_list *list)
{
    json_t *coordinators = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(coordinators, of_coordinator(&list->coordinators[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "coordinators", coordinators);
    return json;
}
