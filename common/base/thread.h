/* SPDX-License-Identifier: Apache-2.0
 * Threads of ours in a program that is not. */
#ifndef CADRE_BASE_THREAD_H
#define CADRE_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_create(3) without attributes, and returns what it does: 0 or the number of an error.
 * The thread takes no signals: they are handled by the program's own threads. */
int thread_start(pthread_t *ret_thread, void *(*run)(void *), void *argument);

/* As pthread_cond_timedwait(3), and returns what it does: 0 or ETIMEDOUT. `until_us` is a time of
 * clock_monotonic_us(), whatever clock the condition was made with: a wall clock that is set back
 * prolongs no wait. */
int thread_wait_until(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t until_us);

#endif
