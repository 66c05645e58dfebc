/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's version and where its pages are, from the model structs to the public ones. */
#include "common/view/result.h"
#include "common/view/view.h"

cadre_coordinator_version *view_version_new(
    const struct version_response *response, struct wire_arena *arena)
{
    cadre_coordinator_version *version = result_new(sizeof *version, arena);
    if (version != NULL) {
        *version = (cadre_coordinator_version){.version = response->version,
            .agent_protocol = response->agent_protocol,
            .task_frame = response->task_frame,
            .started_us = response->started_us,
            .jobs_live = response->jobs_live,
            .workers = response->workers,
            .request_ids = response->request_ids,
            .objects = response->objects};
    }
    return version;
}

cadre_login *view_login_new(const struct login_response *response, struct wire_arena *arena)
{
    cadre_login *login = result_new(sizeof *login, arena);
    if (login != NULL) {
        *login = (cadre_login){.token = response->token,
            .expires_us = response->expires_us,
            .role = response->role,
            .name = response->name,
            .http = response->http,
            .http_tls = response->http_tls};
    }
    return login;
}
