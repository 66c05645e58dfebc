/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/waiting_joins.h"

#include <stdlib.h>

#include "common/model/limits.h"
#include "common/rpc/endpoints.h"

#define WAIT_MS 1000

static void on_timer(uv_timer_t *timer)
{
    waiting_joins_end(timer->data, "");
}

void waiting_joins_open(struct waiting_joins *waiting, uv_loop_t *loop)
{
    waiting->timer = malloc(sizeof *waiting->timer);
    if (waiting->timer != NULL) {
        uv_timer_init(loop, waiting->timer);
        waiting->timer->data = waiting;
    }
}

/* libuv uses the handle until then. */
static void on_closed(uv_handle_t *timer)
{
    free(timer);
}

void waiting_joins_close(struct waiting_joins *waiting)
{
    if (waiting->timer != NULL) {
        uv_close((uv_handle_t *)waiting->timer, on_closed);
    }
    waiting->timer = NULL;
    free(waiting->calls);
    waiting->calls = NULL;
    waiting->count = 0;
    waiting->capacity = 0;
}

bool waiting_joins_add(struct waiting_joins *waiting, struct rpc_call *call)
{
    if (waiting->timer == NULL) {
        return false;
    }
    if (waiting->count == waiting->capacity) {
        size_t capacity = waiting->capacity > 0 ? waiting->capacity * 2 : 64;
        struct rpc_call **grown =
            capacity <= 2 * LIMIT_TASKS_PER_JOB
                ? realloc(waiting->calls, capacity * sizeof(struct rpc_call *))
                : NULL;
        if (grown == NULL) {
            return false;
        }
        waiting->calls = grown;
        waiting->capacity = capacity;
    }
    waiting->calls[waiting->count++] = call;
    if (waiting->count == 1) {
        uv_timer_start(waiting->timer, on_timer, WAIT_MS, 0);
    }
    return true;
}

bool waiting_joins_remove(struct waiting_joins *waiting, const struct rpc_call *call)
{
    for (size_t i = 0; i < waiting->count; i++) {
        if (waiting->calls[i] == call) {
            waiting->calls[i] = waiting->calls[--waiting->count];
            return true;
        }
    }
    return false;
}

void waiting_joins_end(struct waiting_joins *waiting, const char *leader)
{
    while (waiting->count > 0) {
        struct rpc_call *call = waiting->calls[--waiting->count];
        rpc_call_set_trailer(call, RPC_LEADER_KEY, leader);
        rpc_call_finish(call, CADRE_UNAVAILABLE,
            leader[0] != '\0' ? "another coordinator leads: join that one"
                              : "it is not known yet which coordinator leads: try again");
    }
    if (waiting->timer != NULL) {
        uv_timer_stop(waiting->timer);
    }
}
