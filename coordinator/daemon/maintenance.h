/* SPDX-License-Identifier: Apache-2.0
 * What the program does instead of serving: --check, --copy-contents, --export, --import,
 * --reseed, --resign. */
#ifndef CADRE_COORDINATOR_DAEMON_MAINTENANCE_H
#define CADRE_COORDINATOR_DAEMON_MAINTENANCE_H

#include "coordinator/daemon/base/options.h"

struct daemon;

bool maintenance_is_asked(const struct coordinator_options *options);

/* Does what the options ask for, and logs how it ended; the exit status: 0: it is done. The daemon
 * is closed by the caller. */
int maintenance_run(struct daemon *daemon);

#endif
