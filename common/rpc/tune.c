/* SPDX-License-Identifier: Apache-2.0
 * The allocator's settings and the route of gRPC's log lines. */
#include "common/rpc/loop.h"

#include "common/rpc/tls_state.h"

#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

#include <grpc/support/log.h>

#define MMAP_THRESHOLD_BYTES (1 << 30)
#define TOP_PAD_BYTES        (64 << 20)

static _Atomic(rpc_log_fn *) log_fn;

void rpc_tune_malloc(void)
{
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, TOP_PAD_BYTES);
}

static void tune_route(gpr_log_func_args *event)
{
    rpc_log_fn *fn = atomic_load(&log_fn);
    rpc_handshake_log_receive(event->message);
    if (fn == NULL) {
        return;
    }
    enum rpc_log_level level = RPC_LOG_DEBUG;
    if (event->severity == GPR_LOG_SEVERITY_ERROR) {
        level = RPC_LOG_ERROR;
    } else if (event->severity == GPR_LOG_SEVERITY_INFO) {
        level = RPC_LOG_INFO;
    }
    fn(level, event->message);
}

void rpc_tune_log(rpc_log_fn *fn)
{
    atomic_store(&log_fn, fn);
    gpr_set_log_function(tune_route);
}

void rpc_tune_log_default(void)
{
    gpr_set_log_function(tune_route);
}
