/* SPDX-License-Identifier: Apache-2.0
 * Threads of ours in a program that is not. */
#ifndef CADRE_BASE_THREAD_H
#define CADRE_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create(3) without attributes, and returns what it does: 0 or the number of an error.
 * The thread takes no signals: they are handled by the program's own threads. */
int thread_start(pthread_t *ret_thread, void *(*run)(void *), void *argument);

#endif
