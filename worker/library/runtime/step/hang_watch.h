/* SPDX-License-Identifier: Apache-2.0
 * A replica that hangs: the others of its task wait for it, and no daemon can see it, for the
 * process lives. A thread looks twice a second at what the replicas say of themselves with plain
 * stores, so a step costs nothing more. It names the replica after 10 s, also to the coordinator,
 * and ends the process when the time of a collective is over, since a thread cannot be stopped. */
#ifndef CADRE_RUNTIME_HANG_WATCH_H
#define CADRE_RUNTIME_HANG_WATCH_H

#include "common/base/error.h"

struct cadre_strategy;
struct hang_watch;

/* Of a strategy with several local replicas; else *ret_watch is NULL. */
cadre_status hang_watch_open(
    struct cadre_strategy *strategy, struct hang_watch **ret_watch, struct cadre_error *error);
void hang_watch_close(struct hang_watch *watch); /* NULL is allowed */

#endif
