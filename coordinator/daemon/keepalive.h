/* SPDX-License-Identifier: Apache-2.0
 * Messages that say nothing, so that each worker receives something of a coordinator that leads. */
#ifndef CADRE_COORDINATOR_DAEMON_KEEPALIVE_H
#define CADRE_COORDINATOR_DAEMON_KEEPALIVE_H

#include <stdint.h>

struct daemon;

/* From now on welcomes promise something in each third of `silence_us`, at least 12 ms, and it is
 * sent, unless it is not known whether this coordinator leads still. */
void keepalive_start(struct daemon *daemon, uint64_t silence_us);
/* Also if it was never started; before the loop is closed. */
void keepalive_close(struct daemon *daemon);

#endif
