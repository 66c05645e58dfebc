/* SPDX-License-Identifier: Apache-2.0
 * The last message of a program that dies of SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT: where it
 * happened. Then it dies as it would have. A build with a sanitizer does nothing here, because that
 * reports more. */
#ifndef CADRE_WORKER_CRASH_CRASH_H
#define CADRE_WORKER_CRASH_CRASH_H

#include <stdint.h>

/* Once, early; `task` names the process's task ("task 0 of job 3"), or is empty. A signal for which
 * the program has an action of its own keeps it, also one that is set afterwards. */
void crash_prepare(const char *task);

/* First in a thread of this library: its name ("replica"), to which a number from 1 on is added,
 * and a stack on which its overflow can be reported; signals of crash_prepare reach it again. What
 * it allocates is freed with the thread. Before crash_prepare it sets nothing but the name. */
void crash_thread(const char *name, uint32_t number);

#endif
