/* SPDX-License-Identifier: Apache-2.0
 * Files of a task, opened as if its program were hostile: it may put a link there at any time. */
#ifndef CADRE_WORKER_DAEMON_BELOW_H
#define CADRE_WORKER_DAEMON_BELOW_H

#include <stdint.h>

#include "common/base/error.h"

/* Opens the regular file `name` below `folder` for reading, without following a link anywhere
 * below; *ret_size is its size now. `name` passed file_name_check. Thread-safe. */
cadre_status below_open(const char *folder, const char *name, int *ret_fd, uint64_t *ret_size,
    struct cadre_error *error);

#endif
