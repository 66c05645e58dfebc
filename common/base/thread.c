/* SPDX-License-Identifier: Apache-2.0
 * The thread begins with the mask of its maker, so no signal comes to it before it has its own. */
#include "common/base/thread.h"

#include <signal.h>
#include <time.h>

#include "common/base/clock.h"

int thread_start(pthread_t *ret_thread, void *(*run)(void *), void *argument)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(ret_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum;
}

int thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t until_us)
{
    const struct timespec until = {.tv_sec = (time_t)(until_us / CADRE_US_PER_S),
        .tv_nsec = (long)(until_us % CADRE_US_PER_S) * 1000};
    return pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &until);
}
