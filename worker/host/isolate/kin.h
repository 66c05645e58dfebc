/* SPDX-License-Identifier: Apache-2.0
 * Whose child a process is, and who it is. */
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

/* Real, effective, saved, of the file system: from /proc/<pid>/status, not the owner of its folder,
 * which is root for one that may not be dumped. False when it is gone. */
#define KIN_UIDS 4
bool process_uids(pid_t pid, unsigned ret_uids[KIN_UIDS]);
bool process_has_uid(pid_t pid, uid_t uid); /* any of them; not a zombie */

#endif
