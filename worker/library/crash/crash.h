/* SPDX-License-Identifier: Apache-2.0
 * What a program that dies of SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT says last: where. Then it
 * dies as it would have. A build with a sanitizer does nothing here: that tells more. */
#ifndef CADRE_WORKER_CRASH_CRASH_H
#define CADRE_WORKER_CRASH_CRASH_H

#include <stdint.h>

/* Once, early; `task` says whose process it is ("task 0 of job 3"), or is empty. A signal for which
 * the program has an action of its own keeps it, and so does a later one of the program's. */
void crash_prepare(const char *task);

/* First thing in a thread of this library: its name ("replica"), to which a number from 1 on is
 * added, and a stack on which its overflow can be told; signals of crash_prepare reach it again.
 * What it allocates goes with the thread. Before crash_prepare it does nothing but the name. */
void crash_thread(const char *name, uint32_t number);

#endif
