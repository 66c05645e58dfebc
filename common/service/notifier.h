/* SPDX-License-Identifier: Apache-2.0
 * What a daemon tells the service manager that started it (systemd's protocol of sd_notify): that
 * it is ready, that it stops, a line of status for people, and that its loop still turns. Without a
 * manager nothing is sent. */
#ifndef CADRE_SERVICE_NOTIFIER_H
#define CADRE_SERVICE_NOTIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define NOTIFIER_STATUS_BYTES 256

/* Writes one line, without its end: what the daemon is at. */
typedef void notifier_status_fn(void *user, char *ret_text, size_t size);

struct notifier {
    uv_timer_t timer;
    notifier_status_fn *status;
    void *user;
    char last[NOTIFIER_STATUS_BYTES]; /* as it was told */
    bool open;
    bool watched;  /* the manager wants to hear of the loop */
    bool stopping; /* and that is the status */
};

/* Says READY, and from now on, by a timer of the loop: the status when it changes, and WATCHDOG as
 * often as the manager asks for it. A loop that is stuck says neither. Zeroed before. */
void notifier_open(
    struct notifier *notifier, uv_loop_t *loop, notifier_status_fn *status, void *user);

/* Says STOPPING; the line is the status from now on. */
void notifier_stopping(struct notifier *notifier, const char *status);

/* Closes the timer; one that was never opened is fine. The memory is the loop's until that ran
 * again. */
void notifier_close(struct notifier *notifier);

#endif
