/* SPDX-License-Identifier: Apache-2.0
 * Calls of clients that are answered once their records are durable. */
#ifndef CADRE_COORDINATOR_DAEMON_JOBS_H
#define CADRE_COORDINATOR_DAEMON_JOBS_H

#include "coordinator/engine/engine.h"

struct daemon;

/* The engine's sink, whose user is the daemon: once for each call that it was given. */
void jobs_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text);
/* The engine holds the turn: the calls of this turn are answered with the reason. */
void jobs_answer_held(struct daemon *daemon);
/* Frees what is left; no call is open any more. */
void jobs_close(struct daemon *daemon);

#endif
