/* SPDX-License-Identifier: Apache-2.0
 * Workers that join while no coordinator leads: their calls wait here, so that they need not ask
 * again and again, and end with the address of the one that leads as soon as it is known. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_WAITING_JOINS_H
#define CADRE_COORDINATOR_DAEMON_SHARED_WAITING_JOINS_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "common/rpc/call.h"

struct waiting_joins {
    struct rpc_call **calls;
    size_t count, capacity;
    uv_timer_t *timer; /* NULL: not open */
};

/* Their longest wait begins with the first of them; then they end without an address, and the
 * workers ask the other coordinators, one of which may know more. */
void waiting_joins_open(struct waiting_joins *waiting, uv_loop_t *loop);
/* The calls stay, and end with their server. One that was never opened is fine. */
void waiting_joins_close(struct waiting_joins *waiting);

/* False: there is no memory, or there are very many. */
bool waiting_joins_add(struct waiting_joins *waiting, struct rpc_call *call);
/* It has ended. Whether it waited. */
bool waiting_joins_remove(struct waiting_joins *waiting, const struct rpc_call *call);

/* Ends all of them with UNAVAILABLE; `leader`: an address, or "". */
void waiting_joins_end(struct waiting_joins *waiting, const char *leader);

#endif
