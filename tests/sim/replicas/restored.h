/* SPDX-License-Identifier: Apache-2.0
 * A store that is restored from a backup: no coordinator that knows more takes part, until people
 * write a new log from the copy that has most, as coordinator/replication/reseed.h does. */
#ifndef CADRE_SIM_RESTORED_H
#define CADRE_SIM_RESTORED_H

#include "snapshots.h"
#include "tests/sim/leadership/store.h"

struct backup {
    bool taken;
    struct etcd store; /* without its entries, which are never written again */
    struct snapshot_file named;
};

/* After each transaction: now and then a backup is taken. */
void backup_look(struct sim *sim);
/* The store is restored from the newest backup, as soon as each coordinator knows more than that,
 * and one knows all. */
void restore_strikes(struct sim *sim);
/* ON_RESTORE. */
void restore_happens(struct sim *sim, const struct happening *happening);

#endif
