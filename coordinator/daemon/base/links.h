/* SPDX-License-Identifier: Apache-2.0
 * The streams of worker daemons, each one link of the engine: the table of links, and sending on
 * them. agents.c receives. Called on the loop only. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_LINKS_H
#define CADRE_COORDINATOR_DAEMON_BASE_LINKS_H

#include "common/rpc/server.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* An agent's Join stream. */
struct agent_link {
    struct link_id id;
    struct rpc_call *call;
    bool sent_hello;
    uint32_t protocol;   /* of the stream; 0: not welcomed yet */
    uint64_t sent_round; /* keepalive_round when something was sent last */
    size_t log_bytes;    /* of tasks' output, not written yet (log_writes.c) */
};

/* Adds a stream as the link with the next number. False: no memory. */
bool links_add(struct daemon *daemon, struct rpc_call *call, struct link_id *ret_link);
/* Removes it; false: there is none of this number. */
bool links_remove(struct daemon *daemon, struct link_id link);
/* NULL: the stream has ended. Valid until the next links_add() or links_remove(). */
struct agent_link *links_find(const struct daemon *daemon, struct link_id link);

/* The engine's sink, whose user is the daemon. Protocol, rule 12: a message is bound to its
 * connection, so one for a stream that has ended is dropped. A stream whose queue is full, or that
 * is refused, ends: on_closed of its call follows from the loop. */
void links_down(void *user, struct link_id link, const struct agent_down *down);
/* Sends a message that says nothing on each stream on which nothing was sent in the last `rounds`
 * rounds of daemon->keepalive_round, and whose daemon knows it. */
void links_keep_alive(struct daemon *daemon, uint64_t rounds);
/* Ends the stream with the error. `user`: the daemon. */
void links_refuse(void *user, struct link_id link, cadre_status code, const char *text);

#endif
