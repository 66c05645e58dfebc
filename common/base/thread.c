/* SPDX-License-Identifier: Apache-2.0
 * The thread begins with the mask of its maker, so no signal comes to it before it has its own. */
#include "common/base/thread.h"

#include <signal.h>

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
