/* SPDX-License-Identifier: Apache-2.0
 * The folders of `cadre run`: the working folder, that for outputs, that for sockets. */
#ifndef CADRE_WORKER_LOCAL_FOLDERS_H
#define CADRE_WORKER_LOCAL_FOLDERS_H

#include "common/base/error.h"

struct local_folders {
    char *working; /* the caller's, absolute */
    char *output;  /* absolute; NULL: the working folder */
    /* Short enough for a socket's name with a slot and an incarnation behind it; "": none. */
    char runtime[80];
};

/* Makes `output` (may be NULL) if it is not there, and a folder for sockets of this run alone, in
 * $XDG_RUNTIME_DIR or else in /tmp. To be closed also after an error; {0} may be, too. */
cadre_status local_folders_open(
    struct local_folders *folders, const char *output, struct cadre_error *error);
/* Removes the folder for sockets. */
void local_folders_close(struct local_folders *folders);

/* ---- program_path.c: finds the file of a program's name as a shell does ---- */

/* With a slash: that path; else the first executable of that name in PATH. *ret_path is absolute
 * and the caller's to free. NOT_FOUND; PERMISSION_DENIED when it is not executable;
 * INVALID_ARGUMENT when it is no regular file. */
cadre_status program_path(const char *program, char **ret_path, struct cadre_error *error);

/* ---- guard.c ----
 *
 * The guard: a process that waits for the end of `cadre run`. When that is killed, the guard kills
 * the processes that its tasks started; the tasks themselves die with `cadre run`. */

/* Starts it; before the agent is opened, which would take it for a task's process. `folder` has the
 * sockets of tasks: it is in the environment of the processes to kill, and is removed after them.
 * *ret_fd: the socket whose end the guard waits for. */
cadre_status guard_open(const char *folder, int *ret_fd, struct cadre_error *error);

/* Ends the guard, when no process is left to kill. Accepts -1. */
void guard_close(int fd);

#endif
