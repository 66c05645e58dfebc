/* SPDX-License-Identifier: Apache-2.0
 * What jobs that run here took from the cache, looked at again every --cache-check. */
#ifndef CADRE_WORKER_DAEMON_CACHE_CHECK_H
#define CADRE_WORKER_DAEMON_CACHE_CHECK_H

#include "common/base/error.h"

struct daemon;

/* What jobs that run here took, looked at again every --cache-check. */
cadre_status cache_check_open(struct daemon *daemon, struct cadre_error *error);
void cache_check_close(struct daemon *daemon); /* when no thread is at work any more */

#endif
