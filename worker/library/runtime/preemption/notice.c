/* SPDX-License-Identifier: Apache-2.0
 * SIGTERM as a notice of preemption: the handler, and the thread that sends the notice and keeps
 * the grace period. preemption.c watches and raises. */
#include "worker/library/runtime/preemption/notice.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"

/* A signal is the process's, so this is one for the process. */
static struct {
    pthread_mutex_t changes; /* one begins or ends to watch at a time; before `lock` */
    pthread_mutex_t lock;    /* before a task's */
    struct notice *notices;
    pthread_t thread;
    bool closing;
    struct sigaction former;
    /* Read by the handler; set before it is installed. */
    int event_fd; /* stays open: the handler may run in a thread for longer than the watch */
    int64_t daemon_pid;
    atomic_bool signalled;
} watch = {.changes = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .event_fd = -1};

/* Async-signal-safe. */
static void notice_wake(void)
{
    const uint64_t one = 1;
    ssize_t written = write(watch.event_fd, &one, sizeof one);
    (void)written; /* it cannot be full before the thread has read it */
}

static void call_former(int signal, siginfo_t *info, void *context)
{
    if ((watch.former.sa_flags & SA_SIGINFO) != 0) {
        watch.former.sa_sigaction(signal, info, context);
    } else if (watch.former.sa_handler != SIG_DFL && watch.former.sa_handler != SIG_IGN) {
        watch.former.sa_handler(signal);
    }
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    if (info->si_code <= 0 && watch.daemon_pid != 0 && info->si_pid == watch.daemon_pid) {
        sigaction(signal, &watch.former, NULL); /* the signal comes again when this returns */
        raise(signal);
    } else {
        atomic_store(&watch.signalled, true);
        notice_wake();
        call_former(signal, info, context);
    }
    errno = saved;
}

/* --- the thread --- */

/* Under the lock. */
static void notice_report(struct notice *notice, bool signalled, uint64_t now_us)
{
    if ((signalled || notice->asked) && !notice->sent) {
        notice->sent = true;
        notice->stops_us = notice->grace_us > 0 ? now_us + notice->grace_us : 0;
        task_preempt(notice->task, notice->grace_us == 0);
    }
    if (notice->stops_us != 0 && now_us >= notice->stops_us) {
        notice->stops_us = 0;
        task_preempt(notice->task, true);
    }
}

/* Under the lock: until the next grace period is over; -1: there is none. */
static int wait_ms(uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;
    for (const struct notice *notice = watch.notices; notice != NULL; notice = notice->next) {
        if (notice->stops_us != 0 && notice->stops_us < next_us) {
            next_us = notice->stops_us;
        }
    }
    if (next_us == UINT64_MAX) {
        return -1;
    }
    uint64_t left_ms = next_us > now_us ? (next_us - now_us) / CADRE_US_PER_MS + 1 : 0;
    return left_ms > 60000 ? 60000 : (int)left_ms; /* the thread looks again then */
}

static void *watch_on(void *unused)
{
    (void)unused;
    crash_thread("preemption", 0);
    pthread_mutex_lock(&watch.lock);
    while (!watch.closing) {
        uint64_t now_us = clock_monotonic_us();
        bool signalled = atomic_exchange(&watch.signalled, false);
        for (struct notice *notice = watch.notices; notice != NULL; notice = notice->next) {
            notice_report(notice, signalled, now_us);
        }
        struct pollfd event = {.fd = watch.event_fd, .events = POLLIN};
        int timeout_ms = wait_ms(now_us);
        pthread_mutex_unlock(&watch.lock);
        if (poll(&event, 1, timeout_ms) > 0) {
            uint64_t count;
            ssize_t got = read(watch.event_fd, &count, sizeof count);
            (void)got;
        }
        pthread_mutex_lock(&watch.lock);
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

/* --- lifetime --- */

/* Under the lock. */
static cadre_status notice_begin(int64_t daemon_pid, struct cadre_error *error)
{
    CADRE_ASSERT(watch.notices == NULL);
    if (watch.event_fd < 0) {
        watch.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    if (watch.event_fd < 0) {
        return cadre_error_errno(error, errno, "cannot make what wakes the watcher of SIGTERM");
    }
    watch.closing = false;
    watch.daemon_pid = daemon_pid;
    atomic_store(&watch.signalled, false);
    int errnum = thread_start(&watch.thread, watch_on, NULL);
    if (errnum != 0) {
        return cadre_error_errno(error, errnum, "cannot start the watcher of SIGTERM");
    }
    sigaction(SIGTERM, NULL, &watch.former); /* set before the handler may read it */
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    return CADRE_OK;
}

cadre_status notice_watch(struct notice *notice, int64_t daemon_pid, struct cadre_error *error)
{
    CADRE_ASSERT(notice->next == NULL);
    pthread_mutex_lock(&watch.changes);
    pthread_mutex_lock(&watch.lock);
    cadre_status status = watch.notices == NULL ? notice_begin(daemon_pid, error) : CADRE_OK;
    if (status == CADRE_OK) {
        notice->next = watch.notices;
        watch.notices = notice;
    }
    pthread_mutex_unlock(&watch.lock);
    pthread_mutex_unlock(&watch.changes);
    return status;
}

void notice_unwatch(struct notice *notice)
{
    pthread_mutex_lock(&watch.changes);
    pthread_mutex_lock(&watch.lock);
    struct notice **at = &watch.notices;
    while (*at != NULL && *at != notice) {
        at = &(*at)->next;
    }
    bool watched = *at == notice && notice != NULL;
    if (watched) {
        *at = notice->next;
    }
    bool last = watched && watch.notices == NULL;
    if (last) {
        sigaction(SIGTERM, &watch.former, NULL);
        watch.closing = true;
        notice_wake();
    }
    pthread_mutex_unlock(&watch.lock);
    if (last) {
        pthread_join(watch.thread, NULL);
    }
    pthread_mutex_unlock(&watch.changes);
}

void notice_raise(struct notice *notice)
{
    pthread_mutex_lock(&watch.lock);
    notice->asked = true;
    notice_wake();
    pthread_mutex_unlock(&watch.lock);
}
