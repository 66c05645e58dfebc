/* SPDX-License-Identifier: Apache-2.0
 * A crew that is made by hand: its servers and workers are threads of the chief's program, and
 * meet over 127.0.0.1 as they would anywhere. What a coordinator would tell them is told here. */
#ifndef CADRE_RUNTIME_ROLES_LOCAL_SERVERS_H
#define CADRE_RUNTIME_ROLES_LOCAL_SERVERS_H

#include "worker/library/runtime/ps_job/ps_job.h"

struct local_servers;

/* All of them for a chief that listens: its directory knows everybody afterwards, and its servers
 * serve. In chief->hands, to be ended also after an error. */
cadre_status local_servers_open(struct ps_job_state *chief, struct cadre_error *error);

/* The threads of its workers begin; one that fails ends the chief's directory. */
cadre_status local_servers_start_workers(
    struct local_servers *local_servers, struct cadre_error *error);

/* Both take NULL. Workers first: what they push is still served. The latter frees all. */
void local_servers_end_workers(struct local_servers *local_servers);
void local_servers_end_servers(struct local_servers *local_servers);

#endif
