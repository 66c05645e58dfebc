/* SPDX-License-Identifier: Apache-2.0
 * The etcd of --ha, with its TLS and login. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_SHARED_ETCD_H
#define CADRE_COORDINATOR_DAEMON_SHARED_SHARED_ETCD_H

#include "common/etcd/etcd.h"
#include "common/rpc/tls.h"
#include "coordinator/daemon/base/options.h"

struct shared_etcd {
    struct rpc_tls *tls; /* NULL: none */
    struct etcd *etcd;
};

/* INVALID_ARGUMENT: the address. Errors of files name them. After an error it is to be closed, too.
 */
cadre_status shared_etcd_open(struct rpc_loop *loop, const struct ha_options *options,
    struct shared_etcd *ret_etcd, struct cadre_error *error);
/* One that is {0} is fine. */
void shared_etcd_close(struct shared_etcd *etcd);

#endif
