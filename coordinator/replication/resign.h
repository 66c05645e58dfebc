/* SPDX-License-Identifier: Apache-2.0
 * Takes the lead from a process that is dead, by its nonce, so that another coordinator leads
 * without waiting for the lease. Who calls it knows that the process is dead (a service manager
 * does, when it runs what follows the end of a service); should it live, it steps down. On the
 * loop's thread. */
#ifndef CADRE_COORDINATOR_REPLICATION_RESIGN_H
#define CADRE_COORDINATOR_REPLICATION_RESIGN_H

#include "common/etcd/etcd.h"
#include "coordinator/leadership/log_store.h"

struct resign;

struct resign_options {
    struct etcd *etcd;      /* the caller's; closed after it */
    struct log_nonce nonce; /* of the term that the process led: replica_show() within lead() */
    uint64_t lease_us;      /* an attempt that etcd does not answer is repeated after a quarter */
    uint64_t patience_us;   /* after so long it fails */
    /* Once, from the loop: OK: the process does not lead, with a sentence that says since when.
     * DEADLINE_EXCEEDED: etcd has not answered in time; the sentence names the newest failure. */
    void (*done)(void *user, cadre_status status, const char *text);
    void *user;
};

/* RESOURCE_EXHAUSTED: no memory. */
cadre_status resign_open(struct rpc_loop *loop, const struct resign_options *options,
    struct resign **ret_resign, struct cadre_error *error);
/* Not from within done(). Before etcd_close() and rpc_loop_close(). NULL is fine. */
void resign_close(struct resign *resign);

#endif
