/* SPDX-License-Identifier: Apache-2.0
 * The disk of the state directory as it fills up. Below --disk-reserve what can wait or be refused
 * is; the reserve is the ledger's, so that jobs go on. Without any room the engine holds its turn
 * (engine_held): jobs wait, and what clients want changed is refused. Both end by themselves. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_DISK_H
#define CADRE_COORDINATOR_DAEMON_BASE_DISK_H

#include "coordinator/daemon/base/daemon.h"

/* A thread of the pool looks at the disk each second, and after a refusal: daemon->disk is as old
 * as that and as the look takes. What was granted since is taken off what was free then. */
void disk_open(struct daemon *daemon);
void disk_close(struct daemon *daemon);

/* Whether so many bytes more may be kept, of a job, an upload, a log or an output: OK, and they are
 * counted as taken; or RESOURCE_EXHAUSTED in words for whoever is refused. */
cadre_status disk_check(struct daemon *daemon, uint64_t bytes, struct cadre_error *error);

/* Whether anything may be changed now: the same for all that goes into the ledger alone. */
cadre_status disk_check_ledger(struct daemon *daemon, struct cadre_error *error);

/* A write of ours failed so: true when it was for want of room. */
bool disk_is_full(int errnum);

/* At the end of a turn: true when the engine began to hold its turn since the last one, or goes on
 * (daemon->disk.held). The log and the health were told. */
bool disk_flush(struct daemon *daemon);

#endif
