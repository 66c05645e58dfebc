/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Metrics: what the program of a job reported, by step. */
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/series/series_jobs.h"

static void metrics_answer(void *user, const struct wire_buffer *packed, struct cadre_error *error)
{
    struct rpc_call *call = user;
    rpc_call_set_user(call, NULL);
    cadre_status status = error->code;
    if (status == CADRE_OK) {
        status = rpc_call_send(call, packed->bytes, packed->size, error);
    }
    if (status == CADRE_OK) {
        rpc_call_finish(call, CADRE_OK, "");
    } else {
        rpc_call_fail(call, error);
    }
}

static void metrics_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct metrics_request request;
    rpc_call_set_user(call, NULL);
    wire_arena_reset(daemon->arena);
    if (wire_unpack_metrics_request(data, length, daemon->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    struct series_item *item = series_query(daemon, &request, metrics_answer, call, &error);
    if (item != NULL) {
        rpc_call_set_user(call, item);
    } else {
        rpc_call_fail(call, &error);
    }
}

static void metrics_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct series_item *item = rpc_call_user(call);
    if (item != NULL) {
        series_query_cancel(item);
    }
}

const struct rpc_server_ops metrics_ops = {
    .on_message = metrics_message, .on_closed = metrics_closed};
