/* SPDX-License-Identifier: Apache-2.0
 * Hashes again, every --cache-check, what jobs that run here took from the cache. */
#ifndef CADRE_WORKER_DAEMON_CACHE_CHECK_H
#define CADRE_WORKER_DAEMON_CACHE_CHECK_H

#include "common/base/error.h"

struct daemon;

/* Starts the checks; the first round begins after --cache-check. */
cadre_status cache_check_open(struct daemon *daemon, struct cadre_error *error);
/* Ends them; when no thread is at work any more. */
void cache_check_close(struct daemon *daemon);

#endif
