/* SPDX-License-Identifier: Apache-2.0
 * A replica whose core does nothing but resign. */
#include "coordinator/replication/resign.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "coordinator/replication/replica_state.h"

struct resign {
    struct resign_options options;
    struct replica *replica;
    uv_timer_t timer;
    bool is_done;
};

static void finish(struct resign *resign, cadre_status status, const char *text)
{
    if (!resign->is_done) {
        resign->is_done = true;
        uv_timer_stop(&resign->timer);
        resign->options.done(resign->options.user, status, text);
    }
}

static void on_step_down(void *user, const char *text)
{
    finish(user, CADRE_OK, text);
}

static void on_leader(void *user, const struct leader_value *leader)
{
    (void)user;
    (void)leader;
}

static void on_timer(uv_timer_t *timer)
{
    struct resign *resign = timer->data;
    struct replica_view view;
    struct cadre_error error;
    replica_show(resign->replica, &view);
    cadre_error_set(&error, CADRE_DEADLINE_EXCEEDED,
        "etcd has not answered within %" PRIu64
        " ms; the other coordinators wait for the lease%s%s",
        resign->options.patience_us / CADRE_US_PER_MS, view.failure[0] != '\0' ? ": " : "",
        view.failure);
    finish(resign, error.code, error.text);
}

static cadre_status open_replica(
    struct resign *resign, struct rpc_loop *loop, struct cadre_error *error)
{
    /* All that a core asks for that resigns. */
    static const struct replica_ops ops = {.step_down = on_step_down, .leader_changed = on_leader};
    const struct resign_options *from = &resign->options;
    const struct replica_options options = {.etcd = from->etcd,
        .name = "resign",
        .addresses = "",
        .version = "",
        .format_max = UINT32_MAX,
        .lease_us = from->lease_us,
        .tickets_max = 1,
        .ops = &ops,
        .user = resign};
    return replica_open(loop, &options, &resign->replica, error);
}

cadre_status resign_open(struct rpc_loop *loop, const struct resign_options *options,
    struct resign **ret_resign, struct cadre_error *error)
{
    *ret_resign = NULL;
    struct resign *resign = fault_point("replication.memory") ? NULL : calloc(1, sizeof *resign);
    if (resign == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to resign");
    }
    resign->options = *options;
    uv_timer_init(rpc_loop_uv(loop), &resign->timer);
    resign->timer.data = resign;
    cadre_status status = open_replica(resign, loop, error);
    if (status != CADRE_OK) {
        resign_close(resign);
        return status;
    }
    struct leadership_event event = {.type = LEADERSHIP_EVENT_RESIGN, .nonce = options->nonce};
    replica_run(resign->replica, &event);
    uv_timer_start(&resign->timer, on_timer,
        (options->patience_us + CADRE_US_PER_MS - 1) / CADRE_US_PER_MS, 0);
    *ret_resign = resign;
    return CADRE_OK;
}

static void timer_closed(uv_handle_t *handle)
{
    struct resign *resign = handle->data;
    free(resign);
}

void resign_close(struct resign *resign)
{
    if (resign != NULL) {
        replica_close(resign->replica);
        uv_close((uv_handle_t *)&resign->timer, timer_closed);
    }
}
