/* SPDX-License-Identifier: Apache-2.0
 * The version of a coordinator. */
#include "common/json/json.h"
#include "common/json/json_value.h"

json_t *json_of_coordinator(const cadre_coordinator_version *version)
{
    json_t *coordinator = json_object();
    json_object_set_new(coordinator, "version", json_text(version->version));
    json_object_set_new(coordinator, "agent_protocol", json_number(version->agent_protocol));
    json_object_set_new(coordinator, "task_frame", json_number(version->task_frame));
    json_object_set_new(coordinator, "started_us", json_number(version->started_us));
    json_object_set_new(coordinator, "jobs_live", json_number(version->jobs_live));
    json_object_set_new(coordinator, "workers", json_number(version->workers));
    return coordinator;
}
