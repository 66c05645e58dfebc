/* SPDX-License-Identifier: Apache-2.0
 * What a uid leaves where everybody may write: the next job that has it must not find it. */
#ifndef CADRE_WORKER_ISOLATE_BELONGINGS_H
#define CADRE_WORKER_ISOLATE_BELONGINGS_H

#include <sys/types.h>

/* Files and folders at the top of /tmp, /var/tmp, /dev/shm and /dev/mqueue; System V memory, queues
 * and semaphores. What cannot be removed stays. */
void belongings_remove(uid_t uid);

#endif
