/* SPDX-License-Identifier: Apache-2.0
 * Why a channel does not connect: looked up in a thread of the pool, at most every 10 s, and
 * reported to all calls that failed for it. */
#include <stdlib.h>
#include <string.h>

#include <grpc/support/alloc.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/channel_state.h"
#include "common/rpc/tls_state.h"
#include "common/tls/diagnose.h"

#define TIMEOUT_US           (1500 * CADRE_US_PER_MS)
#define DIAGNOSIS_MAX_AGE_US (10 * CADRE_US_PER_S) /* how long one result is used */

/* What the thread works on: copies, because files may be read again and channels closed
 * meanwhile. The paths of `tls` stay valid. */
struct rpc_diagnosis_request {
    uv_work_t work;
    struct rpc_loop *loop;
    struct rpc_channel *channel; /* NULL: the channel was closed, the result is dropped */
    char host[RPC_HOST_BYTES];
    char shown[RPC_ADDRESS_TEXT_BYTES];
    struct rpc_tls *tls; /* NULL: plain text */
    struct tls_material material;
    struct tls_target target;
    bool found;
    struct cadre_error error;
};

static void in_thread(uv_work_t *work)
{
    struct rpc_diagnosis_request *request = work->data;
    request->found = tls_diagnose(&request->target, TIMEOUT_US, &request->error);
}

static void free_request(struct rpc_diagnosis_request *request)
{
    rpc_tls_unref(request->tls);
    tls_material_free(&request->material);
    gpr_free(request);
}

static void report_all(struct rpc_channel *channel)
{
    struct rpc_client_call *next = NULL;
    for (struct rpc_client_call *call = channel->calls; call != NULL; call = next) {
        next = rpc_client_call_next(call);
        rpc_client_call_diagnosed(call);
    }
}

static void defer_report_all(void *user)
{
    report_all(user);
}

static void thread_done(uv_work_t *work, int status)
{
    struct rpc_diagnosis_request *request = work->data;
    struct rpc_channel *channel = request->channel;
    struct rpc_loop *loop = request->loop;
    (void)status;
    if (channel != NULL) {
        channel->diagnosis_request = NULL;
        channel->diagnosed_us = clock_monotonic_us();
        channel->diagnosis_found = request->found;
        channel->diagnosis = request->error;
        report_all(channel);
    }
    free_request(request);
    rpc_loop_count(loop, 0, -1);
}

/* A foreign server may want no certificate of this end. */
static char *copy_pem(const char *pem)
{
    char *copy = pem != NULL ? strdup(pem) : NULL;
    CADRE_ASSERT(copy != NULL || pem == NULL);
    return copy;
}

static void copy_tls(struct rpc_diagnosis_request *request, struct rpc_tls *tls)
{
    const struct tls_material *material = rpc_tls_material(tls);
    request->material = *material;
    request->material.cert_pem = copy_pem(material->cert_pem);
    request->material.key_pem = copy_pem(material->key_pem);
    request->material.ca_pem = copy_pem(material->ca_pem);
    request->tls = tls;
    rpc_tls_ref(tls);
    request->target.material = &request->material;
    request->target.cert_file = rpc_tls_cert_file(tls);
    request->target.ca_file = rpc_tls_ca_file(tls);
}

static void channel_diagnose_ask(struct rpc_channel *channel)
{
    struct rpc_diagnosis_request *request = gpr_zalloc(sizeof *request);
    request->work.data = request;
    request->loop = channel->loop;
    request->channel = channel;
    memcpy(request->host, channel->address.host, sizeof request->host);
    memcpy(request->shown, channel->address.host_port, sizeof request->shown);
    request->target = (struct tls_target){.host = request->host,
        .name = channel->address.is_localhost ? "localhost" : request->host,
        .port = channel->address.port,
        .shown = request->shown,
        .foreign = channel->foreign};
    if (channel->tls != NULL) {
        copy_tls(request, channel->tls);
    }
    rpc_loop_count(channel->loop, 0, 1);
    channel->diagnosis_request = request;
    int failed = uv_queue_work(rpc_loop_uv(channel->loop), &request->work, in_thread, thread_done);
    CADRE_ASSERT(failed == 0);
}

static bool is_any_call_waiting(const struct rpc_channel *channel)
{
    for (struct rpc_client_call *call = channel->calls; call != NULL;
         call = rpc_client_call_next(call)) {
        if (rpc_client_call_awaits_diagnosis(call)) {
            return true;
        }
    }
    return false;
}

enum rpc_diagnosis rpc_channel_diagnose(
    struct rpc_channel *channel, struct rpc_connection *connection, uint64_t deadline_us)
{
    uint64_t now_us = clock_monotonic_us();
    bool has_time = deadline_us > now_us && deadline_us - now_us > TIMEOUT_US;
    if (channel->address.is_unix || channel->closing) {
        return RPC_DIAGNOSIS_NONE;
    }
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(connection->grpc, 0);
    if (state != GRPC_CHANNEL_TRANSIENT_FAILURE && state != GRPC_CHANNEL_CONNECTING) {
        return RPC_DIAGNOSIS_NONE; /* it is not the connection that failed */
    }
    if (channel->diagnosis_request != NULL) {
        return has_time ? RPC_DIAGNOSIS_PENDING : RPC_DIAGNOSIS_NONE;
    }
    bool fresh = channel->diagnosed_us != 0 &&
                 channel->diagnosed_generation == connection->generation &&
                 now_us - channel->diagnosed_us < DIAGNOSIS_MAX_AGE_US;
    if (fresh) {
        return channel->diagnosis_found ? RPC_DIAGNOSIS_FOUND : RPC_DIAGNOSIS_NONE;
    }
    channel->diagnosed_generation = connection->generation;
    channel_diagnose_ask(channel);
    return has_time ? RPC_DIAGNOSIS_PENDING : RPC_DIAGNOSIS_NONE;
}

void rpc_channel_diagnose_stop(struct rpc_channel *channel)
{
    if (channel->diagnosis_request == NULL) {
        return;
    }
    struct rpc_diagnosis_request *request = channel->diagnosis_request;
    request->channel = NULL;
    channel->diagnosis_request = NULL;
    channel->diagnosis_found = false;
    uv_cancel((uv_req_t *)&request->work);
    if (is_any_call_waiting(channel)) { /* such a call keeps the channel's memory until then */
        rpc_loop_post(channel->loop, defer_report_all, channel);
    }
}
