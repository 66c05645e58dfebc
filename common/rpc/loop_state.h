/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: how the other files put work on the completion queue and on the loop. */
#ifndef CADRE_RPC_LOOP_STATE_H
#define CADRE_RPC_LOOP_STATE_H

#include "common/rpc/loop.h"

#include <grpc/grpc.h>

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

#endif
