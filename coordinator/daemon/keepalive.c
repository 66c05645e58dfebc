/* SPDX-License-Identifier: Apache-2.0
 * A coordinator that leads sends something on each stream within a third of the silence that its
 * welcomes name, so that a worker that receives nothing for so long asks which one leads (rule
 * HA11). Streams on which other messages leave cost a comparison in each round. */
#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/keepalive.h"

/* Nothing is sent for at most three rounds, a quarter of the silence: a loop that is late by a
 * round keeps the promise, too. */
#define ROUNDS_OF_SILENCE 12
#define ROUNDS            3

static void on_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    daemon->keepalive_round++;
    if (leading_holds(&daemon->leading)) {
        links_keep_alive(daemon, ROUNDS);
    }
}

void keepalive_close(struct daemon *daemon)
{
    if (daemon->keepalive_timer.data != NULL) {
        uv_close((uv_handle_t *)&daemon->keepalive_timer, NULL);
    }
}

void keepalive_start(struct daemon *daemon, uint64_t silence_us)
{
    uint64_t round_ms = silence_us / ROUNDS_OF_SILENCE / CADRE_US_PER_MS;
    round_ms = round_ms > 0 ? round_ms : 1;
    if (daemon->keepalive_timer.data == NULL) {
        uv_timer_init(rpc_loop_uv(daemon->loop), &daemon->keepalive_timer);
        daemon->keepalive_timer.data = daemon;
    }
    daemon->silence_us = silence_us;
    uv_timer_start(&daemon->keepalive_timer, on_timer, round_ms, round_ms);
}
