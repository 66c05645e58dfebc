/* SPDX-License-Identifier: Apache-2.0
 * The one stream to the coordinator. */
#ifndef CADRE_WORKER_DAEMON_LINK_H
#define CADRE_WORKER_DAEMON_LINK_H

#include "common/base/error.h"
#include "common/model/agent_message.h"
#include "common/model/term.h"

struct daemon;

/* Callbacks of the link, on the loop. All other messages are the agent's. */
struct link_callbacks {
    void (*linked)(struct daemon *daemon); /* a new stream was welcomed, after the agent's
                                            * link-up */
    void (*log_acked)(struct daemon *daemon, const struct agent_log_ack *ack);
};

/* Opens a stream, and again after each end, until the daemon ends. */
void link_start(struct daemon *daemon, const struct link_callbacks *callbacks);
/* Sends a message on the stream; drops it when there is none. */
void link_send(struct daemon *daemon, const struct agent_up *up);

/* The start of the coordinator that this worker accepts: no worker serves two that run with
 * copies of one state directory. */

struct daemon;

/* Loads daemon->term, when the agent is open. */
cadre_status term_load(struct daemon *daemon, struct cadre_error *error);
/* Accepts the coordinator that sent the welcome from now on; its term is on the disk, as far as
 * that has room, when this returns. FAILED_PRECONDITION: it is older, another one with the same
 * number, or of another cluster. */
cadre_status term_accept(
    struct daemon *daemon, const struct agent_welcome *welcome, struct cadre_error *error);
/* The log of the coordinators has this entry, as the accepted one says. In memory only. */
void term_note_index(struct daemon *daemon, uint64_t log_index);

#endif
