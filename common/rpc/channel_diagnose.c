/* SPDX-License-Identifier: Apache-2.0
 * Why a channel does not connect: asked once in a while, in a thread of the pool, and told to all
 * calls that failed for it. */
#include <stdlib.h>
#include <string.h>

#include <grpc/support/alloc.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/channel_state.h"
#include "common/rpc/tls_state.h"
#include "common/tls/diagnose.h"

#define TIMEOUT_US (1500 * CADRE_US_PER_MS)
#define FRESH_US   (10 * CADRE_US_PER_S) /* so long one answer is good for */

/* What the thread works on: copies, for what was read may change and channels go meanwhile. The
 * paths of `tls` stay. */
struct rpc_diagnosing {
    uv_work_t work;
    struct rpc_loop *loop;
    struct rpc_channel *channel; /* NULL: nobody wants to know any more */
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
    struct rpc_diagnosing *asked = work->data;
    asked->found = tls_diagnose(&asked->target, TIMEOUT_US, &asked->error);
}

static void free_asked(struct rpc_diagnosing *asked)
{
    rpc_tls_unref(asked->tls);
    tls_material_free(&asked->material);
    gpr_free(asked);
}

static void tell_all(struct rpc_channel *channel)
{
    struct rpc_client_call *next = NULL;
    for (struct rpc_client_call *call = channel->calls; call != NULL; call = next) {
        next = rpc_client_call_next(call);
        rpc_client_call_diagnosed(call);
    }
}

static void tell_all_later(void *user)
{
    tell_all(user);
}

static void thread_done(uv_work_t *work, int status)
{
    struct rpc_diagnosing *asked = work->data;
    struct rpc_channel *channel = asked->channel;
    struct rpc_loop *loop = asked->loop;
    (void)status;
    if (channel != NULL) {
        channel->diagnosing = NULL;
        channel->diagnosed_us = clock_monotonic_us();
        channel->diagnosis_found = asked->found;
        channel->diagnosis = asked->error;
        tell_all(channel);
    }
    free_asked(asked);
    rpc_loop_count(loop, 0, -1);
}

static void take_tls(struct rpc_diagnosing *asked, struct rpc_tls *tls)
{
    const struct tls_material *material = rpc_tls_material(tls);
    asked->material = *material;
    asked->material.cert_pem = strdup(material->cert_pem);
    asked->material.key_pem = strdup(material->key_pem);
    asked->material.ca_pem = strdup(material->ca_pem);
    CADRE_ASSERT(asked->material.cert_pem != NULL && asked->material.key_pem != NULL &&
                 asked->material.ca_pem != NULL);
    asked->tls = tls;
    rpc_tls_ref(tls);
    asked->target.material = &asked->material;
    asked->target.cert_file = rpc_tls_cert_file(tls);
    asked->target.ca_file = rpc_tls_ca_file(tls);
}

static void ask(struct rpc_channel *channel)
{
    struct rpc_diagnosing *asked = gpr_zalloc(sizeof *asked);
    asked->work.data = asked;
    asked->loop = channel->loop;
    asked->channel = channel;
    memcpy(asked->host, channel->address.host, sizeof asked->host);
    memcpy(asked->shown, channel->address.host_port, sizeof asked->shown);
    asked->target = (struct tls_target){
        .host = asked->host, .port = channel->address.port, .shown = asked->shown};
    if (channel->tls != NULL) {
        take_tls(asked, channel->tls);
    }
    rpc_loop_count(channel->loop, 0, 1);
    channel->diagnosing = asked;
    int failed = uv_queue_work(rpc_loop_uv(channel->loop), &asked->work, in_thread, thread_done);
    CADRE_ASSERT(failed == 0);
}

static bool anybody_waits(const struct rpc_channel *channel)
{
    for (struct rpc_client_call *call = channel->calls; call != NULL;
         call = rpc_client_call_next(call)) {
        if (rpc_client_call_waits(call)) {
            return true;
        }
    }
    return false;
}

enum rpc_diagnosis rpc_channel_diagnose(
    struct rpc_channel *channel, struct rpc_connection *connection)
{
    if (channel->address.is_unix || channel->closing) {
        return RPC_DIAGNOSIS_NONE;
    }
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(connection->grpc, 0);
    if (state != GRPC_CHANNEL_TRANSIENT_FAILURE && state != GRPC_CHANNEL_CONNECTING) {
        return RPC_DIAGNOSIS_NONE; /* it is not the connection that failed */
    }
    if (channel->diagnosing != NULL) {
        return RPC_DIAGNOSIS_COMES;
    }
    bool fresh = channel->diagnosed_us != 0 &&
                 channel->diagnosed_generation == connection->generation &&
                 clock_monotonic_us() - channel->diagnosed_us < FRESH_US;
    if (fresh) {
        return channel->diagnosis_found ? RPC_DIAGNOSIS_FOUND : RPC_DIAGNOSIS_NONE;
    }
    channel->diagnosed_generation = connection->generation;
    ask(channel);
    return RPC_DIAGNOSIS_COMES;
}

void rpc_channel_diagnose_stop(struct rpc_channel *channel)
{
    if (channel->diagnosing == NULL) {
        return;
    }
    struct rpc_diagnosing *asked = channel->diagnosing;
    asked->channel = NULL;
    channel->diagnosing = NULL;
    channel->diagnosis_found = false;
    uv_cancel((uv_req_t *)&asked->work);
    if (anybody_waits(channel)) { /* such a call keeps the channel's memory until then */
        rpc_loop_post(channel->loop, tell_all_later, channel);
    }
}
