/* SPDX-License-Identifier: Apache-2.0
 * Calls of clients that wait until what they ask for is durable. */
#ifndef CADRE_COORDINATOR_DAEMON_JOBS_H
#define CADRE_COORDINATOR_DAEMON_JOBS_H

#include "coordinator/engine/engine.h"

struct daemon;

/* The engine's sink, whose user is the daemon: once for each call that it was given. */
void jobs_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text);
/* The engine holds the turn: whoever asked in it does not wait for its answer. */
void jobs_answer_held(struct daemon *daemon);
void jobs_close(struct daemon *daemon); /* no call is open any more */

#endif
