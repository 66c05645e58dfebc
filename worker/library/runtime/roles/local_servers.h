/* SPDX-License-Identifier: Apache-2.0
 * A ps job that is made by hand: its servers and workers are threads of the chief's program, which
 * connect over 127.0.0.1 as they would anywhere. Their directories are filled here, not by a
 * coordinator. */
#ifndef CADRE_RUNTIME_ROLES_LOCAL_SERVERS_H
#define CADRE_RUNTIME_ROLES_LOCAL_SERVERS_H

#include "worker/library/runtime/ps_job/ps_job.h"

struct local_servers;

/* Makes all of them for a chief that listens: afterwards its directory has all tasks, and its
 * servers serve. In chief->hands, to be ended also after an error. */
cadre_status local_servers_open(struct ps_job_state *chief, struct cadre_error *error);

/* Starts the threads of its workers; one that fails ends the chief's directory. */
cadre_status local_servers_start_workers(
    struct local_servers *local_servers, struct cadre_error *error);

/* Ends the workers first, because what they push is still served. Accepts NULL. */
void local_servers_end_workers(struct local_servers *local_servers);
/* Ends the servers, and frees all. Accepts NULL. */
void local_servers_end_servers(struct local_servers *local_servers);

#endif
