/* SPDX-License-Identifier: Apache-2.0
 * The one stream to the coordinator. */
#ifndef CADRE_WORKER_DAEMON_LINK_H
#define CADRE_WORKER_DAEMON_LINK_H

#include "common/model/agent_message.h"

struct daemon;

/* What takes what comes: on the loop, as often as it comes. */
struct link_callbacks {
    void (*linked)(struct daemon *daemon); /* a new stream is welcome, and the agent knows */
    void (*log_acked)(struct daemon *daemon, const struct agent_log_ack *ack);
}; /* all else is the agent's */

/* A stream, opened again for as long as the daemon lives. */
void link_start(struct daemon *daemon, const struct link_callbacks *callbacks);
void link_send(struct daemon *daemon, const struct agent_up *up);

#endif
