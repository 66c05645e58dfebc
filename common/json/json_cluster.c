/* SPDX-License-Identifier: Apache-2.0
 * A cluster in a few numbers. */
#include "common/json/json.h"
#include "common/json/json_value.h"

json_t *json_of_cluster(uint64_t time_us, const struct cluster_sums *sums)
{
    json_t *json = json_object();
    json_object_set_new(json, "time_us", json_number(time_us));
    json_object_set_new(json, "workers_ready", json_number(sums->workers_ready));
    json_object_set_new(json, "workers_draining", json_number(sums->workers_draining));
    json_object_set_new(json, "workers_away", json_number(sums->workers_away));
    json_object_set_new(json, "slots", json_number(sums->slots));
    json_object_set_new(json, "slots_used", json_number(sums->slots_used));
    json_object_set_new(json, "gpus", json_number(sums->gpus));
    json_object_set_new(json, "jobs_running", json_number(sums->jobs_running));
    json_object_set_new(json, "jobs_queued", json_number(sums->jobs_queued));
    return json;
}
