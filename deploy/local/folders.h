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

#endif
