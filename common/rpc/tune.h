/* SPDX-License-Identifier: Apache-2.0
 * Process-wide settings that a program's main() makes before it opens a loop. */
#ifndef CADRE_RPC_TUNE_H
#define CADRE_RPC_TUNE_H

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
