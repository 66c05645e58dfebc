/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: a loop that others poll. gRPC's queue has no descriptor, and its sockets
 * are only looked at while somebody waits in it; so a thread waits there, and hands over what comes
 * through a list with a descriptor. Handlers still run on the loop's own thread. */
#ifndef CADRE_RPC_QUEUE_THREAD_H
#define CADRE_RPC_QUEUE_THREAD_H

#include "common/base/error.h"

#include <stdbool.h>

#include <grpc/grpc.h>

struct rpc_queue_thread;

/* From here on rpc_queue_thread_next() takes the place of grpc_completion_queue_next(). */
cadre_status rpc_queue_thread_open(
    grpc_completion_queue *queue, struct rpc_queue_thread **ret_thread, struct cadre_error *error);

/* After GRPC_QUEUE_SHUTDOWN came out of it. */
void rpc_queue_thread_close(struct rpc_queue_thread *queue_thread);

/* As grpc_completion_queue_next(). */
grpc_event rpc_queue_thread_next(struct rpc_queue_thread *queue_thread, gpr_timespec until);

/* Readable from the first event, or rpc_queue_thread_wake(), to rpc_queue_thread_clear() with
 * nothing left. */
int rpc_queue_thread_fd(const struct rpc_queue_thread *queue_thread);
void rpc_queue_thread_wake(struct rpc_queue_thread *queue_thread);

/* False: something is left, and it stays readable. */
bool rpc_queue_thread_clear(struct rpc_queue_thread *queue_thread);

#endif
