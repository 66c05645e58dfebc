/* SPDX-License-Identifier: Apache-2.0
 * Removes what a uid leaves on the host: the next job that has the uid must not find it. What
 * another daemon of this kernel runs under the same uid must stay. */
#ifndef CADRE_WORKER_ISOLATE_UID_CLEANUP_H
#define CADRE_WORKER_ISOLATE_UID_CLEANUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "worker/host/isolate/uid_holder.h"

/* Makes `holder` hold the uid; then removes what is left of it: System V memory, queues and
 * semaphores, and files and folders at the top of /tmp, /var/tmp, /dev/shm and /dev/mqueue. What
 * cannot be removed stays. False: something runs under the uid, nothing was touched, and the uid
 * is not held. For root, or the capabilities to kill, to become another user and to remove its
 * files. Thread-safe. */
bool uid_cleanup_claim(uid_t uid, struct uid_holder *holder);

/* Kills what this process started under the uid, a job's own: its descendants and those of the
 * children that died, which it adopts as a subreaper. Then, when nothing else runs under it
 * either, removes what belongs to it, as above; else the next uid_cleanup_claim does that. The
 * holder, if any is left, ends. */
void uid_cleanup_remove(uid_t uid, struct uid_holder *holder);

#endif
