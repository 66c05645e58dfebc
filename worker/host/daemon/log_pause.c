/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/log_pause.h"

#include "common/base/clock.h"
#include "worker/host/daemon/daemon.h"

static void on_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    daemon->on_log_pause(daemon);
}

void log_pause_open(struct daemon *daemon, void (*on_pause)(struct daemon *daemon))
{
    daemon->on_log_pause = on_pause;
    uv_timer_init(rpc_loop_uv(daemon->loop), &daemon->log_timer);
    daemon->log_timer.data = daemon;
    daemon->log_pause_us = LOG_PAUSE_US;
}

void log_pause_close(struct daemon *daemon)
{
    uv_close((uv_handle_t *)&daemon->log_timer, NULL);
}

void log_pause_arm(struct daemon *daemon, uint64_t after_us)
{
    uv_timer_t *timer = &daemon->log_timer;
    uint64_t after_ms = after_us / CADRE_US_PER_MS + 1;
    bool sooner = uv_is_active((uv_handle_t *)timer) && uv_timer_get_due_in(timer) <= after_ms;
    if (!sooner && !uv_is_closing((uv_handle_t *)timer)) {
        uv_timer_start(timer, on_timer, after_ms, 0);
    }
}
