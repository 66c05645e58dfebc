/* SPDX-License-Identifier: Apache-2.0
 * "<slot>.base": the newest incarnation of a task that wrote to its log, and the offset at which
 * its bytes begin. In threads. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_BASE_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_BASE_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor to read and write a file of a log, which is made where it is missing. -1: errno. */
int log_base_open_file(const char *path);

/* Of the log at `log`. False: nothing was written of this slot, or it is not recorded. */
bool log_base_read(const char *log, uint64_t *ret_incarnation, uint64_t *ret_base);

/* Written whole or not at all if this process is killed; a loss of power may lose it. False: errno.
 */
bool log_base_write(const char *log, uint64_t incarnation, uint64_t base);

#endif
