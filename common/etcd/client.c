/* SPDX-License-Identifier: Apache-2.0
 * The client: opening and closing, and the calls that programs make. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/etcd/etcd_state.h"
#include "common/pure/assert.h"

#define SCRATCH_BYTES  ((size_t)1024 * 1024)
#define WATCH_PAUSE_US (500 * CADRE_US_PER_MS)

/* etcd ends the connections of clients that ping more often than every 5 s, or while they have no
 * call open (--grpc-keepalive-min-time). */
#define KEEPALIVE_IDLE_US    (10 * CADRE_US_PER_S)
#define KEEPALIVE_TIMEOUT_US (5 * CADRE_US_PER_S)

static cadre_status copy_login(
    struct etcd *etcd, const struct etcd_options *options, struct cadre_error *error)
{
    if (options->user == NULL || options->user[0] == '\0') {
        return CADRE_OK;
    }
    const char *password = options->password != NULL ? options->password : "";
    if (strlen(options->user) > ETCD_USER_BYTES_MAX || strlen(password) > ETCD_USER_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the user or the password for etcd has more than %d characters", ETCD_USER_BYTES_MAX);
    }
    etcd->has_user = true;
    memcpy(etcd->user, options->user, strlen(options->user) + 1);
    memcpy(etcd->password, password, strlen(password) + 1);
    return CADRE_OK;
}

static cadre_status open_channels(struct etcd *etcd, struct rpc_tls *tls, struct cadre_error *error)
{
    const struct rpc_channel_options options = {
        .message_bytes_max = ETCD_ANSWER_BYTES_MAX,
        .keepalive = {.idle_us = KEEPALIVE_IDLE_US, .timeout_us = KEEPALIVE_TIMEOUT_US},
        .tls = tls,
        .foreign = "etcd",
    };
    for (size_t i = 0; i < etcd->address.endpoint_count; i++) {
        CADRE_TRY(rpc_channel_open(
            etcd->loop, etcd->address.endpoints[i], &options, &etcd->channels[i], error));
    }
    return CADRE_OK;
}

cadre_status etcd_open(struct rpc_loop *loop, const struct etcd_options *options,
    struct etcd **ret_etcd, struct cadre_error *error)
{
    *ret_etcd = NULL;
    CADRE_ASSERT(options->address->endpoint_count > 0);
    struct etcd *etcd = fault_point("etcd.memory") ? NULL : calloc(1, sizeof *etcd);
    if (etcd == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a client of etcd");
    }
    *etcd = (struct etcd){
        .loop = loop,
        .address = *options->address,
        .cluster_id = options->cluster_id,
        .cluster_of = "the one that this program knows",
        .watch_pause_us = options->watch_pause_us != 0 ? options->watch_pause_us : WATCH_PAUSE_US,
        .users = 1,
    };
    etcd->scratch = fault_point("etcd.memory") ? NULL : wire_arena_new(SCRATCH_BYTES);
    etcd->arena = fault_point("etcd.memory") ? NULL : wire_arena_new(ETCD_ARENA_BYTES);
    cadre_status status = CADRE_OK;
    if (etcd->scratch == NULL || etcd->arena == NULL) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a client of etcd");
    }
    if (status == CADRE_OK) {
        status = copy_login(etcd, options, error);
    }
    if (status == CADRE_OK) {
        status = open_channels(etcd, options->tls, error);
    }
    if (status != CADRE_OK) {
        etcd_close(etcd);
        return status;
    }
    *ret_etcd = etcd;
    return CADRE_OK;
}

void etcd_close(struct etcd *etcd)
{
    if (etcd == NULL) {
        return;
    }
    CADRE_ASSERT(!etcd->closed);
    etcd->closed = true;
    while (etcd->watches != NULL) {
        etcd_watch_close(etcd->watches);
    }
    for (size_t i = 0; i < etcd->address.endpoint_count; i++) {
        rpc_channel_close(etcd->channels[i]); /* the calls end with it, from the loop */
    }
    etcd_unref(etcd);
}

/* ---- calls ---- */

cadre_status etcd_transact(struct etcd *etcd, const struct etcd_transaction *transaction,
    const struct etcd_then *then, struct cadre_error *error)
{
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_TRANSACTION, etcd->present, then, error);
    if (call == NULL) {
        return error->code;
    }
    cadre_status status = etcd_pack_transaction(
        transaction, etcd->address.prefix, etcd->scratch, &call->request, error);
    if (status != CADRE_OK) {
        etcd_call_free(call);
        return status;
    }
    etcd_shape_of(transaction, &call->shape);
    return etcd_call_start(call, error);
}

cadre_status etcd_range(struct etcd *etcd, const char *key, const char *end, uint32_t limit,
    const struct etcd_then *then, struct cadre_error *error)
{
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_RANGE, etcd->present, then, error);
    if (call == NULL) {
        return error->code;
    }
    cadre_status status =
        etcd_pack_range(key, end, limit, etcd->address.prefix, &call->request, error);
    if (status != CADRE_OK) {
        etcd_call_free(call);
        return status;
    }
    return etcd_call_start(call, error);
}

cadre_status etcd_status(
    struct etcd *etcd, size_t endpoint, const struct etcd_then *then, struct cadre_error *error)
{
    endpoint = endpoint == ETCD_ENDPOINT_PRESENT ? etcd->present : endpoint;
    CADRE_ASSERT(endpoint < etcd->address.endpoint_count);
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_STATUS, endpoint, then, error);
    if (call == NULL) {
        return error->code;
    }
    etcd_pack_status(&call->request);
    return etcd_call_start(call, error);
}
