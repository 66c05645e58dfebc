/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/notifier.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#define TICK_MS_MAX       1000
#define TICKS_OF_WATCHDOG 4 /* one late tick does not mean that the loop is stuck */

static void send_status(struct notifier *notifier)
{
    char text[NOTIFIER_STATUS_BYTES] = "";
    if (notifier->stopping) {
        return;
    }
    notifier->status(notifier->user, text, sizeof text);
    if (strcmp(text, notifier->last) != 0) {
        (void)sd_notifyf(0, "STATUS=%s", text);
        memcpy(notifier->last, text, sizeof text);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct notifier *notifier = timer->data;
    if (notifier->watched) {
        (void)sd_notify(0, "WATCHDOG=1");
    }
    send_status(notifier);
}

void notifier_open(
    struct notifier *notifier, uv_loop_t *loop, notifier_status_fn *status, void *user)
{
    uint64_t watchdog_us = 0;
    uint64_t tick_ms = TICK_MS_MAX;
    notifier->status = status;
    notifier->user = user;
    notifier->open = true;
    notifier->watched = sd_watchdog_enabled(0, &watchdog_us) > 0;
    uv_timer_init(loop, &notifier->timer);
    notifier->timer.data = notifier;
    if (notifier->watched && watchdog_us / 1000 / TICKS_OF_WATCHDOG < tick_ms) {
        tick_ms = watchdog_us / 1000 / TICKS_OF_WATCHDOG + 1;
    }
    if (sd_notify(0, "READY=1") > 0) { /* a service manager receives it */
        send_status(notifier);
        uv_timer_start(&notifier->timer, on_tick, tick_ms, tick_ms);
    }
}

void notifier_stopping(struct notifier *notifier, const char *status)
{
    notifier->stopping = true;
    (void)sd_notifyf(0, "STOPPING=1\nSTATUS=%s", status);
}

void notifier_close(struct notifier *notifier)
{
    if (notifier->open) {
        uv_close((uv_handle_t *)&notifier->timer, NULL);
        notifier->open = false;
    }
}
