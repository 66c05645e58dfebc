/* SPDX-License-Identifier: Apache-2.0
 * A test that is its own program: it starts itself as the tasks of a job under an embedded cluster,
 * and looks at how that ends. */
#ifndef CADRE_TESTS_RUNTIME_JOB_H
#define CADRE_TESTS_RUNTIME_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "deploy/local/local.h"

struct job_end {
    int exit_code;
    char message[LIMIT_TEXT_BYTES];
    char printed[16384];  /* what its tasks wrote; what does not fit is left out */
    char messages[16384]; /* of the job while it ran, a line each */
};

/* Runs the job to its end; the test fails when it cannot be run. */
void job_run(const struct local_options *options, struct job_end *ret_end);

/* Whether its message or the output of its tasks has the text. */
bool job_reported(const struct job_end *end, const char *part);

/* What is shown of a job that should have ended otherwise. */
#define job_wrong(what, end)                                                                       \
    fail_msg("%s: exit code %d, message: %s\nthe tasks said:\n%s", (what), (end)->exit_code,       \
        (end)->message, (end)->printed)

/* `self what` as a job of so many tasks, started once, on a fresh folder. */
void job_run_self(
    const char *self, const char *what, uint32_t tasks, uint32_t replicas, struct job_end *ret_end);

/* The same; fails the test, with the output of the tasks, unless the job succeeds. */
void job_must_succeed(const char *self, const char *what, uint32_t tasks, uint32_t replicas);

/* The same of one that must fail, with `part` in its message or in its tasks' output. */
void job_must_fail(
    const char *self, const char *what, uint32_t tasks, uint32_t replicas, const char *part);

typedef struct cadre_strategy cadre_strategy;
/* In a task of such a job: its strategy. Fails loudly. */
cadre_strategy *job_strategy(void);

#endif
