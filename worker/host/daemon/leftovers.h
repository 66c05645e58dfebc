/* SPDX-License-Identifier: Apache-2.0
 * What an earlier life of the daemon left in its state directory. */
#ifndef CADRE_WORKER_DAEMON_LEFTOVERS_H
#define CADRE_WORKER_DAEMON_LEFTOVERS_H

#include "common/base/error.h"

struct daemon;

/* Takes over the tasks that an earlier life of this daemon left running under their
 * keepers in this state directory: only with --keep-tasks, and before the first link. */
void leftovers_adopt(struct daemon *daemon);
/* Ends what else it left running, and removes its folders. */
cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error);

#endif
