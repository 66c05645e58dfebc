/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: a loop that the program polls. gRPC's queue has no descriptor, and its
 * sockets are read only while a thread waits in it; so a thread of this module waits there, and
 * hands events over through a list with a descriptor. Handlers still run on the loop's own
 * thread. */
#ifndef CADRE_RPC_QUEUE_THREAD_H
#define CADRE_RPC_QUEUE_THREAD_H

#include "common/base/error.h"

#include <stdbool.h>

#include <grpc/grpc.h>

struct rpc_queue_thread;

/* Starts the thread; from here on rpc_queue_thread_next() replaces grpc_completion_queue_next(). */
cadre_status rpc_queue_thread_open(
    grpc_completion_queue *queue, struct rpc_queue_thread **ret_thread, struct cadre_error *error);

/* To be called after GRPC_QUEUE_SHUTDOWN came out of it. */
void rpc_queue_thread_close(struct rpc_queue_thread *queue_thread);

/* As grpc_completion_queue_next(). */
grpc_event rpc_queue_thread_next(struct rpc_queue_thread *queue_thread, gpr_timespec until);

/* Readable from the first event, or rpc_queue_thread_wake(), to rpc_queue_thread_clear() with
 * nothing left. */
int rpc_queue_thread_fd(const struct rpc_queue_thread *queue_thread);
/* Makes the descriptor readable without an event; from any thread. */
void rpc_queue_thread_wake(struct rpc_queue_thread *queue_thread);

/* Makes the descriptor unreadable. False: an event is left, and it stays readable. */
bool rpc_queue_thread_clear(struct rpc_queue_thread *queue_thread);

#endif
