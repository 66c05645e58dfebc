/* SPDX-License-Identifier: Apache-2.0
 * Files of a task, opened as if its program were hostile: it may put a link there at any time. */
#ifndef CADRE_WORKER_DAEMON_OPEN_BENEATH_H
#define CADRE_WORKER_DAEMON_OPEN_BENEATH_H

#include <sys/stat.h>

#include "common/base/error.h"

/* Opens the regular file `name` below `folder` for reading, without following a link anywhere
 * below; *ret_status is what it is now. `name` passed file_name_check. Thread-safe. */
cadre_status open_beneath(const char *folder, const char *name, int *ret_fd,
    struct stat *ret_status, struct cadre_error *error);

#endif
