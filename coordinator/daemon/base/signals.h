/* SPDX-License-Identifier: Apache-2.0
 * SIGTERM, SIGINT and SIGHUP, read by the loop. They are blocked in all threads from before the
 * first one to the end, so that one that nothing reads any more is kept for the program that exec
 * starts. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_SIGNALS_H
#define CADRE_COORDINATOR_DAEMON_BASE_SIGNALS_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/error.h"

struct signals {
    uv_poll_t poll;
    bool open;
    int fd; /* a signalfd */
    void (*on_signal)(void *user, int number);
    void *user;
};

/* In this thread and those that it starts from now on. */
void signals_block(void);

/* on_signal(user, number) is called on the loop. `signals` is zeroed before. INTERNAL: no
 * descriptor can be had, or the loop does not take it. */
cadre_status signals_open(struct signals *signals, uv_loop_t *loop,
    void (*on_signal)(void *user, int number), void *user, struct cadre_error *error);

/* No signal is read any more. More than once is fine; `signals` stays until the loop has run. */
void signals_close(struct signals *signals);

#endif
