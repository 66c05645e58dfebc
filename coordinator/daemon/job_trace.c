/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Trace: what the tasks of a job do in some of its steps to come. */
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/traces/traces.h"

static void trace_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct trace_request request;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_trace_request(data, length, daemon->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    traces_begin(daemon, call, &request);
}

static void trace_shutdown(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_UNAVAILABLE, "the coordinator is shutting down");
}

static void trace_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    traces_closed(user, call);
}

const struct rpc_server_ops trace_ops = {
    .on_message = trace_message, .on_shutdown = trace_shutdown, .on_closed = trace_closed};
