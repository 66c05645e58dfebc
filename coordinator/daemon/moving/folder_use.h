/* SPDX-License-Identifier: Apache-2.0
 * CONTENTS/in-use, a file that a coordinator which leads with that folder holds a shared lock of,
 * and a copy from or to the folder an exclusive one. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_FOLDER_USE_H
#define CADRE_COORDINATOR_DAEMON_MOVING_FOLDER_USE_H

#include <stdbool.h>

#include "common/base/error.h"

/* Held as long as *ret_fd stays open; -1, with OK: the file system has no locks.
 * FAILED_PRECONDITION: others use the folder, or it is being copied. */
cadre_status folder_use(const char *folder, bool exclusive, int *ret_fd, struct cadre_error *error);

#endif
