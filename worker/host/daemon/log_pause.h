/* SPDX-License-Identifier: Apache-2.0
 * Short pieces of output are sent together: a message for each line would cost the daemon and the
 * coordinator more than all that they do for the steps of a job which prints one each few
 * milliseconds. The first piece after a pause is sent at once. */
#ifndef CADRE_WORKER_DAEMON_LOG_PAUSE_H
#define CADRE_WORKER_DAEMON_LOG_PAUSE_H

#include <stdint.h>

struct daemon;

#define LOG_PAUSE_US UINT64_C(200000) /* between two messages of short pieces of a task */

/* Calls on_pause(daemon) on the loop when the time of log_pause_arm() has passed. */
void log_pause_open(struct daemon *daemon, void (*on_pause)(struct daemon *daemon));
/* Closes the timer. */
void log_pause_close(struct daemon *daemon);
/* Sets the timer, unless it is to end sooner. */
void log_pause_arm(struct daemon *daemon, uint64_t after_us);

#endif
