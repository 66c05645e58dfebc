/* SPDX-License-Identifier: Apache-2.0
 * A thread of a task's program that breaks the task's mesh at any moment, as when a connection
 * ends. */
#ifndef CADRE_TESTS_SHAKER_H
#define CADRE_TESTS_SHAKER_H

#include <stdbool.h>
#include <stdint.h>

struct task;

/* Starts the only one of this process. It pauses for less than `pause_ms`, breaks the mesh unless
 * variables are written just then, and begins again, until it has broken that of `most`
 * generations or is stopped. False: there is no thread. */
bool shaker_start(struct task *task, unsigned pause_ms, uint32_t most);

/* Waits until it has broken the mesh of so many generations, `most` or fewer. */
void shaker_await(uint32_t generations);

/* Ends it. */
void shaker_stop(void);

#endif
