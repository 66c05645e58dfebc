/* SPDX-License-Identifier: Apache-2.0
 * /api/version, /api/cluster. */
#include "common/base/clock.h"
#include "common/json/json.h"
#include "common/view/view.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/base/authorization.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/pages/api.h"

void api_version(const struct api_request *api)
{
    struct version_response response;
    listing_version(api->daemon, api->daemon->engine, &response);
    cadre_coordinator_version *version = view_version_new(&response, NULL);
    json_t *json = version != NULL ? json_object() : NULL;
    json_object_set_new(json, "coordinator", version != NULL ? json_of_coordinator(version) : NULL);
    json_object_set_new(json, "time_us", json_integer((json_int_t)clock_wall_us()));
    cadre_result_release(version);
    api_answer(api, json);
}

static struct cluster_sums sum_cluster(struct daemon *daemon)
{
    struct cluster_sums sums = {0};
    struct worker_info info;
    uint32_t cursor = 0;
    while (engine_worker_next(daemon->engine, &cursor, &info)) {
        const cadre_worker worker = {.connected = info.connected,
            .draining = info.draining,
            .slots = info.slots,
            .slots_used = info.slots_used,
            .gpus_usable = info.gpus.usable};
        cluster_sums_add_worker(&sums, &worker);
    }
    struct engine_job_brief job;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &job); i++) {
        cluster_sums_add_job(&sums, (cadre_job_state)job.state);
    }
    return sums;
}

static json_t *of_tls(const struct daemon *daemon)
{
    const struct tls_material *material =
        daemon->tls != NULL ? rpc_tls_material(daemon->tls) : NULL;
    uint64_t ends_us = material != NULL ? (uint64_t)material->not_after_s * CADRE_US_PER_S : 0;
    json_t *json = json_object();
    json_object_set_new(json, "used", json_boolean(material != NULL));
    json_object_set_new(json, "certificate_ends_us", json_integer((json_int_t)ends_us));
    return json;
}

static json_t *json_of_allowed(const struct api_request *api)
{
    static const struct {
        const char *name;
        const char *method;
    } actions[] = {{"cancel", METHOD_JOBS_CANCEL}, {"drain", METHOD_JOBS_DRAIN}};
    json_t *json = json_object();
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        struct cadre_error error = {0};
        bool may = authorize(&api->identity, actions[i].method, &error) == CADRE_OK;
        json_object_set_new(json, actions[i].name, json_boolean(may));
    }
    return json;
}

void api_cluster(const struct api_request *api)
{
    struct cluster_sums sums = sum_cluster(api->daemon);
    json_t *json = json_of_cluster(clock_wall_us(), &sums);
    json_object_set_new(json, "version", json_string(CADRE_VERSION));
    json_object_set_new(json, "tls", of_tls(api->daemon));
    json_object_set_new(json, "role", json_string(tls_role_name(api->identity.role)));
    json_object_set_new(json, "may", json_of_allowed(api));
    api_answer(api, json);
}
