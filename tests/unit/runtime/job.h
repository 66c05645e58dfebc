/* SPDX-License-Identifier: Apache-2.0
 * A test that is its own program: it starts itself as the tasks of a job under an embedded cluster,
 * and looks at how that ends. */
#ifndef CADRE_TESTS_RUNTIME_JOB_H
#define CADRE_TESTS_RUNTIME_JOB_H

#include <stdint.h>

/* Runs `self what` as a job of so many tasks; fails the test, with what the tasks said, unless it
 * succeeds. */
void job_must_succeed(const char *self, const char *what, uint32_t tasks, uint32_t replicas);

/* The same of one that must fail, and say `part` in its message or on its tasks' output. */
void job_must_fail(
    const char *self, const char *what, uint32_t tasks, uint32_t replicas, const char *part);

/* In a task of such a job: its strategy. Fails loudly. */
typedef struct cadre_strategy cadre_strategy;
cadre_strategy *job_strategy(void);

#endif
