/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: tells a loop that libuv's descriptor is ready, while gRPC waits for its
 * own. Where gRPC waits by the epoll_wait() of this folder, as in every program that is linked with
 * it, the descriptor is one more in gRPC's set, and the thread that waits there reports it: no
 * other one has to be woken. Elsewhere (a shared library, whose epoll_wait() gRPC does not find) a
 * thread waits for it.
 */
#ifndef CADRE_RPC_WATCH_H
#define CADRE_RPC_WATCH_H

#include "common/base/error.h"
#include "common/rpc/loop.h"

struct rpc_watch;

/* Finds out how gRPC waits; once, behind grpc_init(), before there is any channel or server. */
void rpc_watch_find_set(void);

/* Calls ready(user) when `fd` is readable, in any thread, once for each time that it is armed. It
 * is armed from the beginning. */
cadre_status rpc_watch_open(int fd, rpc_loop_fn *ready, void *user, struct rpc_watch **ret_watch,
    struct cadre_error *error);

/* Once again; for the thread of the loop, after ready() was called. */
void rpc_watch_arm(struct rpc_watch *watch);

/* ready() is not called any more, and does not run. */
void rpc_watch_close(struct rpc_watch *watch);

#endif
