/* SPDX-License-Identifier: Apache-2.0
 * Clients that read and follow logs. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOGS_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOGS_H

struct daemon;

/* At the end of a turn: sends new bytes to followers (log_followers.h). */
void logs_flush(struct daemon *daemon);

#endif
