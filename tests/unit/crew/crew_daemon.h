/* SPDX-License-Identifier: Apache-2.0
 * Worker daemons and a coordinator as the tasks of one crew see them: a socket for each slot, the
 * coordinator's core for the chief, and for the others who is where and when it is over. */
#ifndef CADRE_TESTS_CREW_DAEMON_H
#define CADRE_TESTS_CREW_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/task_message.h"

#define CREW_DAEMON_TASKS_MAX 8

struct crew_daemon;

/* Its sockets are "<folder>/<slot>". */
struct crew_daemon *crew_daemon_open(const struct crew *crew, const char *folder);
void crew_daemon_close(struct crew_daemon *daemon);

/* The incarnation to give the program of a slot. */
uint64_t crew_daemon_incarnation(const struct crew_daemon *daemon, uint32_t slot);

/* What the evaluator told people last: of its first number, and how often. */
double crew_daemon_metric(struct crew_daemon *daemon, unsigned *ret_count);

/* Why a task that is not the chief said that it failed; "" if none did. */
void crew_daemon_failure(struct crew_daemon *daemon, char ret_text[LIMIT_TEXT_BYTES]);

#endif
