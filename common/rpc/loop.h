/* SPDX-License-Identifier: Apache-2.0
 * The one loop of a process: gRPC's completions, libuv's events and posted functions, on one
 * thread.
 *
 * Everything a loop calls (handlers of calls, libuv callbacks, posted functions, the end of a turn)
 * runs on the thread inside rpc_loop_run() or rpc_loop_run_until(), and every function of
 * common/rpc is called on that thread, except the two that say otherwise. A process may have
 * several loops, each with a thread of its own. */
#ifndef CADRE_RPC_LOOP_H
#define CADRE_RPC_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

/* A turn handles at most this many completions before its end is called: a flood cannot hold the
 * answers back. */
#define RPC_EVENTS_PER_TURN_MAX 256

struct rpc_loop;
struct uv_loop_s;

typedef void rpc_loop_fn(void *user);

/* Opens a loop. In a shared library it starts a thread, which only waits for libuv's descriptor.
 * Fork before, never after (spawning is fine: all descriptors are close-on-exec). Errors:
 * RESOURCE_EXHAUSTED and those of the system. */
cadre_status rpc_loop_open(struct rpc_loop **ret_loop, struct cadre_error *error);

/* Ends the loop; NULL is fine. Before: every server and channel is closed (asking for it is
 * enough: their last messages are sent in here) and every libuv handle is closed or closing. Not
 * from inside a callback. */
void rpc_loop_close(struct rpc_loop *loop);

/* Runs until rpc_loop_stop(). A stop that came before makes it return at once. */
void rpc_loop_run(struct rpc_loop *loop);

/* Runs until *done is true (set by a handler), or until clock_monotonic_us() reaches `deadline_us`
 * (CADRE_TIME_NEVER for no limit): DEADLINE_EXCEEDED, or until rpc_loop_stop(): CANCELLED. For
 * clients that block. */
cadre_status rpc_loop_run_until(struct rpc_loop *loop, const bool *done, uint64_t deadline_us);

/* Makes rpc_loop_run() return after the present turn. From any thread; not from a signal handler
 * (use uv_signal_t). */
void rpc_loop_stop(struct rpc_loop *loop);

/* A descriptor for programs that have a loop of their own: readable (poll(2), POLLIN) when
 * rpc_loop_run_until() with a deadline that has passed would handle an event; it handles all
 * that are ready. The descriptor stays the loop's. libuv's timers do not show in it. The first
 * call starts a thread. */
cadre_status rpc_loop_fd(struct rpc_loop *loop, int *ret_fd, struct cadre_error *error);

/* Calls fn(user) on the loop's thread, in the order of posting. From any thread, until
 * rpc_loop_close() begins. */
void rpc_loop_post(struct rpc_loop *loop, rpc_loop_fn *fn, void *user);

/* The libuv loop for timers, signals, child processes, sockets and uv_queue_work. The caller
 * never runs it itself. A turn in which libuv has nothing to do leaves it out: prepare and check
 * handles do not come once a turn; rpc_loop_on_turn_end() does. */
struct uv_loop_s *rpc_loop_uv(struct rpc_loop *loop);

/* Calls fn(user) at the end of each turn: when all events that are ready have been handled (at
 * most RPC_EVENTS_PER_TURN_MAX of them) and before the loop would block. What is sent in it
 * leaves at once. A server that must persist before it answers commits here, then sends. One
 * function a loop; NULL takes it away. */
void rpc_loop_on_turn_end(struct rpc_loop *loop, rpc_loop_fn *fn, void *user);

/* Process-wide settings that a program's main() makes before it opens a loop. */

/* Keeps freed memory of messages in the heap instead of giving it back and faulting it in again:
 * glibc's default halves the throughput of large messages. For main(), before other threads start.
 */
void rpc_tune_malloc(void);

enum rpc_log_level { RPC_LOG_DEBUG, RPC_LOG_INFO, RPC_LOG_ERROR };

/* Receives one line of gRPC's own log, without a newline. Called on any thread, also on gRPC's own,
 * so it must be thread-safe and must not call into common/rpc. */
typedef void rpc_log_fn(enum rpc_log_level level, const char *message);

/* Sends gRPC's log to `fn`; NULL (the default) drops it, so that a library writes nothing.
 * Before rpc_loop_open(). */
void rpc_tune_log(rpc_log_fn *fn);

/* Called by the first rpc_loop_open(): makes the default true when the program did not choose. */
void rpc_tune_log_default(void);

#endif
