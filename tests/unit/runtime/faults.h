/* SPDX-License-Identifier: Apache-2.0
 * Faults of the programs that run on a stage. Each is in the environment as "attempt:position": it
 * happens to that attempt of a task when its program is at the position. */
#ifndef CADRE_TESTS_RUNTIME_FAULTS_H
#define CADRE_TESTS_RUNTIME_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#define MARK_WAIT_US UINT64_C(5000000)

/* Whether the fault is set for this attempt and position. */
bool fault_due(const char *fault, uint64_t position);
/* Kills this process if the fault is due. */
void fault_die(const char *fault, uint64_t position);
/* Stops this thread for good if the fault is due. */
void fault_hang(const char *fault, uint64_t position);

/* A file in the output folder, which all tasks of a stage share: shows those that wait for it that
 * this task has finished. */
void mark_leave(const char *what, uint64_t position);
/* Waits for that file, MARK_WAIT_US at most. */
void mark_await(const char *what, uint64_t position);

#endif
