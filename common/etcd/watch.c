/* SPDX-License-Identifier: Apache-2.0
 * A watch of one key. It says only that it is time to read the key, so what is missed while it is
 * broken is made up for by one OK when it is opened again.
 *
 *    PREPARING ──> STREAMING ──> PAUSED ──> PREPARING ...
 *        └──────────────────────────^                        */
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/etcd/etcd_state.h"
#include "common/pure/assert.h"

#define PREPARE_TIMEOUT_US (5 * CADRE_US_PER_S)

struct etcd_watch {
    struct etcd *etcd;
    struct etcd_watch *next;
    char key[ETCD_KEY_BYTES];
    etcd_watch_fn *handler;
    void *user;
    uv_timer_t timer;
    unsigned users; /* the timer, and what is under way */
    size_t endpoint;
    struct rpc_call *stream;
    struct cadre_error broken; /* why this end gave the stream up; code OK: it did not */
    uint64_t began_us;
    bool closed;
};

static void watch_prepare(struct etcd_watch *watch);

static void watch_unref(struct etcd_watch *watch)
{
    CADRE_ASSERT(watch->users > 0);
    if (--watch->users == 0) {
        etcd_unref(watch->etcd);
        free(watch);
    }
}

static void pause_over(uv_timer_t *timer)
{
    struct etcd_watch *watch = timer->data;
    watch_prepare(watch);
}

/* It is broken: says so, and begins the pause. */
static void watch_pause(struct etcd_watch *watch, const struct cadre_error *error)
{
    watch->handler(error->code, error->text, watch->user);
    if (!watch->closed) {
        uv_timer_start(&watch->timer, pause_over, watch->etcd->watch_pause_us / CADRE_US_PER_MS, 0);
    }
}

static struct etcd_failure watch_failure(const struct etcd_watch *watch)
{
    const struct etcd *etcd = watch->etcd;
    return (struct etcd_failure){.endpoint = etcd->address.endpoints[watch->endpoint],
        .operation = "watch",
        .prefix = etcd->address.prefix,
        .user = etcd->has_user ? etcd->user : NULL,
        .waited_us = clock_monotonic_us() - watch->began_us};
}

/* ---- the stream ---- */

static void give_up(struct etcd_watch *watch, const struct cadre_error *error)
{
    if (watch->broken.code == CADRE_OK) {
        watch->broken = *error;
        rpc_call_cancel(watch->stream);
    }
}

static void stream_canceled(struct etcd_watch *watch, const char *reason)
{
    struct etcd_failure failure = watch_failure(watch);
    struct etcd_verdict verdict;
    const char *theirs = strstr(reason, "etcdserver: ");
    /* etcd before 3.5 gives no reason when the user may not read the key. */
    etcd_judge(&failure, CADRE_UNAVAILABLE,
        theirs != NULL ? theirs : "etcdserver: permission denied", &verdict);
    give_up(watch, &verdict.error);
}

static void stream_message(struct rpc_call *stream, const void *data, size_t size, void *user)
{
    struct etcd_watch *watch = user;
    struct etcd *etcd = watch->etcd;
    const struct etcd_message message = {
        .data = data, .size = size, .prefix = etcd->address.prefix, .arena = etcd->arena};
    struct etcd_notice notice;
    struct cadre_error error = {0};
    (void)stream;
    if (watch->closed || watch->broken.code != CADRE_OK) {
        return;
    }
    cadre_status status = etcd_unpack_watch(&message, &notice, &error);
    if (status == CADRE_OK) {
        status = etcd_check_cluster(etcd, watch->endpoint, notice.cluster_id, &error);
    }
    if (status != CADRE_OK) {
        struct etcd_failure failure = watch_failure(watch);
        etcd_blame(&failure, &error);
        give_up(watch, &error);
    } else if (notice.canceled) {
        stream_canceled(watch, notice.reason);
    } else if (notice.created || notice.changed) {
        watch->handler(CADRE_OK, "", watch->user);
    }
}

static void stream_status(
    struct rpc_call *stream, cadre_status status, const char *text, void *user)
{
    struct etcd_watch *watch = user;
    struct etcd *etcd = watch->etcd;
    (void)stream;
    watch->stream = NULL;
    if (!watch->closed) {
        struct etcd_failure failure = watch_failure(watch);
        struct etcd_verdict verdict;
        etcd_judge(&failure, status != CADRE_OK ? status : CADRE_UNAVAILABLE,
            status != CADRE_OK ? text : "it ended the watch", &verdict);
        bool is_own = watch->broken.code != CADRE_OK;
        if (verdict.elsewhere && !is_own) {
            etcd_leave(etcd, watch->endpoint);
        }
        if (verdict.token_is_void) { /* the next login is the preparation's */
            free(etcd->token);
            etcd->token = NULL;
        }
        const struct cadre_error error = is_own ? watch->broken : verdict.error;
        watch_pause(watch, &error);
    }
    watch_unref(watch);
}

static cadre_status open_stream(struct etcd_watch *watch, struct cadre_error *error)
{
    static const struct rpc_client_ops ops = {
        .on_message = stream_message, .on_status = stream_status};
    const struct etcd *etcd = watch->etcd;
    /* With "hasleader" a member that is cut off from the others ends the stream. */
    const struct rpc_metadata metadata[] = {
        {.key = "hasleader", .value = "true"}, {.key = "token", .value = etcd->token}};
    const struct rpc_call_options options = {
        .path = ETCD_PATH_WATCH,
        .client_streams = true,
        .server_streams = true,
        .metadata = metadata,
        .metadata_count = etcd->token != NULL ? 2 : 1,
        .ops = &ops,
        .user = watch,
    };
    struct rpc_buffer request;
    CADRE_TRY(etcd_pack_watch(watch->key, etcd->address.prefix, &request, error));
    watch->broken = (struct cadre_error){.code = CADRE_OK};
    watch->began_us = clock_monotonic_us();
    cadre_status status =
        fault_point("etcd.call")
            ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a watch of etcd")
            : rpc_channel_call(etcd->channels[watch->endpoint], &options, &watch->stream, error);
    if (status == CADRE_OK) {
        watch->users++;
        cadre_status sent = rpc_call_send_buffer(watch->stream, &request, error);
        CADRE_ASSERT(sent == CADRE_OK);
    }
    rpc_buffer_free(&request);
    return status;
}

/* ---- the preparation ---- */

static void prepared(const struct etcd_answer *answer, void *user)
{
    struct etcd_watch *watch = user;
    struct cadre_error error = {0};
    if (!watch->closed) {
        cadre_status status = answer->status == CADRE_OK
                                  ? open_stream(watch, &error)
                                  : cadre_error_set(&error, answer->status, "%s", answer->text);
        if (status != CADRE_OK) {
            watch_pause(watch, &error);
        }
    }
    watch_unref(watch);
}

static cadre_status start_preparation(struct etcd_watch *watch, struct cadre_error *error)
{
    struct etcd *etcd = watch->etcd;
    const struct etcd_then then = {.deadline_us = clock_monotonic_us() + PREPARE_TIMEOUT_US,
        .handler = prepared,
        .user = watch};
    watch->endpoint = etcd->present;
    struct etcd_call *call = etcd_call_new(etcd, ETCD_CALL_PREPARE, watch->endpoint, &then, error);
    if (call == NULL) {
        return error->code;
    }
    CADRE_TRY(etcd_call_start(call, error));
    watch->users++;
    return CADRE_OK;
}

static void watch_prepare(struct etcd_watch *watch)
{
    struct cadre_error error = {0};
    if (!watch->closed && start_preparation(watch, &error) != CADRE_OK) {
        watch_pause(watch, &error);
    }
}

/* Begins again, elsewhere, the watches at an endpoint that failed. */
static void watches_leave(struct etcd *etcd, size_t endpoint)
{
    for (struct etcd_watch *watch = etcd->watches; watch != NULL; watch = watch->next) {
        if (watch->stream != NULL && watch->endpoint == endpoint) {
            struct cadre_error error;
            cadre_error_set(&error, CADRE_UNAVAILABLE,
                "etcd at %s, watch: this endpoint does not answer other calls; the next one is "
                "used",
                etcd->address.endpoints[endpoint]);
            give_up(watch, &error);
        }
    }
}

/* ---- open and close ---- */

static void timer_closed(uv_handle_t *handle)
{
    watch_unref(handle->data);
}

cadre_status etcd_watch_open(struct etcd *etcd, const char *key, etcd_watch_fn *handler, void *user,
    struct etcd_watch **ret_watch, struct cadre_error *error)
{
    struct rpc_buffer unused;
    *ret_watch = NULL;
    CADRE_ASSERT(!etcd->closed);
    CADRE_TRY(etcd_pack_watch(key, etcd->address.prefix, &unused, error)); /* it is a key */
    rpc_buffer_free(&unused);
    struct etcd_watch *watch = fault_point("etcd.memory") ? NULL : calloc(1, sizeof *watch);
    if (watch == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a watch of etcd: end something else");
    }
    *watch = (struct etcd_watch){
        .etcd = etcd, .handler = handler, .user = user, .users = 1, .next = etcd->watches};
    memcpy(watch->key, key, strlen(key) + 1);
    int failed = uv_timer_init(rpc_loop_uv(etcd->loop), &watch->timer);
    CADRE_ASSERT(failed == 0);
    watch->timer.data = watch;
    etcd_ref(etcd);
    etcd->watches = watch;
    etcd->on_leave = watches_leave;
    cadre_status status = start_preparation(watch, error);
    if (status != CADRE_OK) {
        etcd_watch_close(watch);
        return status;
    }
    *ret_watch = watch;
    return CADRE_OK;
}

void etcd_watch_close(struct etcd_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    CADRE_ASSERT(!watch->closed);
    watch->closed = true;
    struct etcd_watch **link = &watch->etcd->watches;
    while (*link != watch) {
        link = &(*link)->next;
    }
    *link = watch->next;
    if (watch->stream != NULL) {
        rpc_call_cancel(watch->stream);
    }
    uv_close((uv_handle_t *)&watch->timer, timer_closed);
}
