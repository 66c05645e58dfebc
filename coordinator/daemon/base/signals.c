/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t signals_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

void signals_block(void)
{
    const sigset_t set = signals_set();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* One at a time: what follows the first of them may be that nothing is read any more. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct signals *signals = poll->data;
    struct signalfd_siginfo info;
    (void)status;
    (void)events;
    if (signals->open && read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        signals->on_signal(signals->user, (int)info.ssi_signo);
    }
}

cadre_status signals_open(struct signals *signals, uv_loop_t *loop,
    void (*on_signal)(void *user, int number), void *user, struct cadre_error *error)
{
    const sigset_t set = signals_set();
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot read signals");
    }
    int failed = uv_poll_init(loop, &signals->poll, fd);
    if (failed != 0) {
        close(fd);
        return cadre_error_set(
            error, CADRE_INTERNAL, "cannot wait for signals: %s", uv_strerror(failed));
    }
    signals->open = true;
    signals->fd = fd;
    signals->on_signal = on_signal;
    signals->user = user;
    signals->poll.data = signals;
    uv_poll_start(&signals->poll, UV_READABLE, on_readable);
    return CADRE_OK;
}

void signals_close(struct signals *signals)
{
    if (signals->open) {
        signals->open = false;
        uv_close((uv_handle_t *)&signals->poll, NULL);
        close(signals->fd);
    }
}
