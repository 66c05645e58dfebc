/* SPDX-License-Identifier: Apache-2.0
 * Whose child a process is. */
#ifndef CADRE_WORKER_ISOLATE_KIN_H
#define CADRE_WORKER_ISOLATE_KIN_H

#include <stdbool.h>
#include <sys/types.h>

struct kin {
    char state; /* 'Z': a zombie */
    int parent;
    int session;
};

/* From /proc/<pid>/stat; false when it is gone. */
bool process_kin(pid_t pid, struct kin *ret_kin);

#endif
