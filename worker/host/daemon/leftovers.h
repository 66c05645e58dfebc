/* SPDX-License-Identifier: Apache-2.0
 * What an earlier incarnation of the daemon left in its state directory. */
#ifndef CADRE_WORKER_DAEMON_LEFTOVERS_H
#define CADRE_WORKER_DAEMON_LEFTOVERS_H

#include "common/base/error.h"

struct daemon;

/* Takes over the tasks that an earlier incarnation of this daemon left running under their
 * keepers in this state directory: only with --keep-tasks, and before the first link. */
void leftovers_adopt(struct daemon *daemon);
/* Ends the other processes that it left, and removes its folders. */
cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error);

#endif
