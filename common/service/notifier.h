/* SPDX-License-Identifier: Apache-2.0
 * What a daemon sends to the service manager that started it (systemd's protocol of sd_notify):
 * that it is ready, that it stops, a line of status for people, and that its loop still turns.
 * Without a manager nothing is sent. */
#ifndef CADRE_SERVICE_NOTIFIER_H
#define CADRE_SERVICE_NOTIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <uv.h>

#define NOTIFIER_STATUS_BYTES 256

/* Writes one line, without its end: what the daemon does now. */
typedef void notifier_status_fn(void *user, char *ret_text, size_t size);

struct notifier {
    uv_timer_t timer;
    notifier_status_fn *status;
    void *user;
    char last[NOTIFIER_STATUS_BYTES]; /* as it was sent */
    bool open;
    bool watched;  /* the manager expects WATCHDOG=1 */
    bool stopping; /* STOPPING was sent; the status stays as it is */
};

/* Sends READY, and from then on, by a timer of the loop: the status when it changes, and
 * WATCHDOG as often as the manager expects it. A loop that is stuck sends neither. Zeroed
 * before. */
void notifier_open(
    struct notifier *notifier, uv_loop_t *loop, notifier_status_fn *status, void *user);

/* Sends STOPPING, with `status` as the status from now on. */
void notifier_stopping(struct notifier *notifier, const char *status);

/* Closes the timer; one that was never opened is fine. The memory stays in use until the loop
 * ran again. */
void notifier_close(struct notifier *notifier);

/* Sends a daemon's log to the journal with its fields. */

/* Sends one entry, made of "FIELD=value"; the argument of log_set_journal(). Zero, or a negative
 * errno. */
int journal_send(const struct iovec *fields, int count);

#endif
