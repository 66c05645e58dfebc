/* SPDX-License-Identifier: Apache-2.0
 * Opens files of a task safely although its program may be hostile and may put a link there at
 * any time. */
#ifndef CADRE_WORKER_DAEMON_OPEN_BENEATH_H
#define CADRE_WORKER_DAEMON_OPEN_BENEATH_H

#include <sys/stat.h>

#include "common/base/error.h"

/* Opens the regular file `name` beneath `folder` for reading, without following a link anywhere
 * on the way; *ret_status is its state now. `name` passed file_name_check. Thread-safe. */
cadre_status open_beneath(const char *folder, const char *name, int *ret_fd,
    struct stat *ret_status, struct cadre_error *error);

#endif
