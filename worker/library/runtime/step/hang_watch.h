/* SPDX-License-Identifier: Apache-2.0
 * A replica that hangs: the others of its task wait for it, and no daemon can see it, because the
 * process is alive. A thread reads twice a second what the replicas store of their activity, so a
 * step costs nothing more. It names the replica after 10 s, also to the coordinator, and ends the
 * process when the time of a collective is over, because a thread cannot be stopped. */
#ifndef CADRE_RUNTIME_HANG_WATCH_H
#define CADRE_RUNTIME_HANG_WATCH_H

#include "common/base/error.h"

struct cadre_strategy;
struct hang_watch;

/* Starts the watch of a strategy with several local replicas; else *ret_watch is NULL. */
cadre_status hang_watch_open(
    struct cadre_strategy *strategy, struct hang_watch **ret_watch, struct cadre_error *error);
/* Ends the thread. Accepts NULL. */
void hang_watch_close(struct hang_watch *watch);

#endif
