/* SPDX-License-Identifier: Apache-2.0
 * The echo on gRPC's C core alone, so that only the join with libuv differs: the caller chooses
 * which thread takes the completions off the queue. */
#ifndef CADRE_BENCH_BARE_ECHO_H
#define CADRE_BENCH_BARE_ECHO_H

#include "common/rpc/loop_state.h"

/* One outstanding operation. Its first member is what common/rpc's loop expects, so that the same
 * echo runs on it. */
struct bare_tag {
    struct rpc_tag rpc;
    struct bare_tag *next; /* for callers that pass completions on */
    bool ok;
};

/* Serves on a loopback port, which is returned, until the process ends. Each completion that comes
 * off `queue` has a bare_tag, whose rpc.complete is called with its owner; one thread at a time. */
int bare_echo_open(grpc_completion_queue *queue);

/* Join "next": blocks in the queue, no libuv. Does not return. */
void bare_echo_run_next(grpc_completion_queue *queue);

/* Join "handoff": a thread of its own blocks in the queue, pushes to a stack without locks, and
 * wakes the libuv loop, on which the completions are handled. Does not return. */
void bare_echo_run_handoff(grpc_completion_queue *queue, struct uv_loop_s *uv);

#endif
