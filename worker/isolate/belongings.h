/* SPDX-License-Identifier: Apache-2.0
 * What a uid leaves on the host: the next job that has it must not find it. */
#ifndef CADRE_WORKER_ISOLATE_BELONGINGS_H
#define CADRE_WORKER_ISOLATE_BELONGINGS_H

#include <sys/types.h>

/* Kills all that runs under the uid, which therefore has to be one of our own, a job's; then
 * removes System V memory, queues and semaphores, and files and folders at the top of /tmp,
 * /var/tmp, /dev/shm and /dev/mqueue. What cannot be removed stays. For root, or the capabilities
 * to kill, to become another user and to remove its files. Thread-safe. */
void belongings_remove(uid_t uid);

#endif
