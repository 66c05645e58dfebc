/* SPDX-License-Identifier: Apache-2.0
 * What an operator does to a shared log while this coordinator does not run: each function opens
 * etcd, runs the daemon's loop until it is done, and closes etcd. The state directory is locked. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_LOG_TOOLS_H
#define CADRE_COORDINATOR_DAEMON_SHARED_LOG_TOOLS_H

#include "coordinator/daemon/base/daemon.h"
#include "coordinator/store/store.h"

/* Lets another coordinator lead at once, if the process that ran here last led and is dead. */
cadre_status log_tools_resign(struct daemon *daemon, struct cadre_error *error);

/* Brings the ledger of a coordinator that led alone into an etcd that holds none. `store` is closed
 * in any case. Afterwards ledger.db is a copy of that log. ALREADY_EXISTS: etcd holds one. */
cadre_status log_tools_import(
    struct daemon *daemon, struct store *store, struct cadre_error *error);

/* Writes a new log, which begins from this coordinator's copy, in place of an older one, as after a
 * restored backup of etcd. `store` is closed in any case. */
cadre_status log_tools_reseed(
    struct daemon *daemon, struct store *store, struct cadre_error *error);

#endif
