/* SPDX-License-Identifier: Apache-2.0
 * The parent, state and uids of a process. */
#ifndef CADRE_WORKER_ISOLATE_PROCESS_STAT_H
#define CADRE_WORKER_ISOLATE_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

struct process_stat {
    char state; /* 'Z': a zombie */
    int parent;
    int session;
};

/* From /proc/<pid>/stat; false when it has exited. */
bool process_stat_read(pid_t pid, struct process_stat *ret_stat);

/* Real, effective, saved, of the file system: from /proc/<pid>/status, not the owner of its
 * folder, which is root for one that may not be dumped. False when it has exited. */
#define PROCESS_UIDS 4
/* Reads them, as described above. */
bool process_uids(pid_t pid, unsigned ret_uids[PROCESS_UIDS]);
/* Whether one of its uids is `uid`; false for a zombie. */
bool process_has_uid(pid_t pid, uid_t uid);

#endif
