/* SPDX-License-Identifier: Apache-2.0
 * Clients who read and follow logs. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOGS_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOGS_H

struct daemon;

/* At the end of a turn: those who follow read what is fresh (log_followers.h). */
void logs_flush(struct daemon *daemon);

#endif
