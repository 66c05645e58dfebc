/* SPDX-License-Identifier: Apache-2.0
 * A worker of several coordinators that receives nothing from the one that it joined asks all of
 * them which one leads, and goes there (rule HA11). */
#ifndef CADRE_WORKER_DAEMON_SILENCE_H
#define CADRE_WORKER_DAEMON_SILENCE_H

#include <stdint.h>

#include "common/base/error.h"

struct daemon;
struct silence;

/* Makes daemon->silence, when the endpoints are open. RESOURCE_EXHAUSTED: there is no memory. */
cadre_status silence_open(struct daemon *daemon, struct cadre_error *error);
/* Ends it: nothing is asked any more. Before the endpoints are closed. */
void silence_close(struct daemon *daemon);
/* Frees it, once the loop is closed; NULL is fine. */
void silence_free(struct silence *silence);

/* A message came from the coordinator, or a stream to it was opened. */
void silence_frame(struct daemon *daemon);
/* The coordinator that was joined sends something in each such time; 0: it does not promise that.
 * It holds for later streams too, until another welcome. */
void silence_limit(struct daemon *daemon, uint64_t silence_us);

#endif
