/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: how the other files put work on the completion queue and on the loop. */
#ifndef CADRE_RPC_LOOP_STATE_H
#define CADRE_RPC_LOOP_STATE_H

#include <grpc/grpc.h>
#include <stdbool.h>

#include "common/base/error.h"
#include "common/rpc/loop.h"

/* One outstanding operation. Each that can be outstanding at the same time has a tag of its own. */
struct rpc_tag {
    void (*complete)(void *owner, bool ok);
    void *owner;
};

/* Something to do once the present handler has returned: handlers are never called from inside our
 * functions. */
struct rpc_deferred {
    struct rpc_deferred *next;
    bool queued;
    void (*run)(void *owner);
    void *owner;
};

/* The thread sanitizer does not see through gRPC's own (uninstrumented) queue: these mark the
 * order by hand. */
#if defined(__SANITIZE_THREAD__)
#define RPC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RPC_TSAN 1
#endif
#endif
#ifdef RPC_TSAN
/* The sanitizer's: what was released through `address` happened before the acquire. */
void __tsan_acquire(void *address);
/* See __tsan_acquire(). */
void __tsan_release(void *address);
#define RPC_TAG_RELEASE(tag) __tsan_release(tag)
#define RPC_TAG_ACQUIRE(tag) __tsan_acquire(tag)
#else
#define RPC_TAG_RELEASE(tag) ((void)(tag))
#define RPC_TAG_ACQUIRE(tag) ((void)(tag))
#endif

/* The queue that all operations of this loop complete on. */
grpc_completion_queue *rpc_loop_queue(struct rpc_loop *loop);

/* Starts one batch; tag->complete runs exactly once for it. A refusal by gRPC would be a bug of
 * ours: panics. */
void rpc_loop_start(
    struct rpc_loop *loop, grpc_call *call, const grpc_op *ops, size_t count, struct rpc_tag *tag);

/* Queues deferred->run(owner) for after the present handler; nothing when it is queued already. */
void rpc_loop_defer(struct rpc_loop *loop, struct rpc_deferred *deferred);

/* Counts the servers and channels: `opened` until their close is asked for, `live` until their
 * memory is freed. */
void rpc_loop_count(struct rpc_loop *loop, int opened, int live);

/* Inside common/rpc only: a loop that the program polls. gRPC's queue has no descriptor, and its
 * sockets are read only while a thread waits in it; so a thread of this module waits there, and
 * hands events over through a list with a descriptor. Handlers still run on the loop's own
 * thread. */

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
