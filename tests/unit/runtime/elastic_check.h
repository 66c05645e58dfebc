/* SPDX-License-Identifier: Apache-2.0
 * The checks of every job of the elastic program. */
#ifndef CADRE_TESTS_RUNTIME_ELASTIC_CHECK_H
#define CADRE_TESTS_RUNTIME_ELASTIC_CHECK_H

#include "stage.h"

extern const char *elastic_self;      /* this test's executable */
extern char elastic_undisturbed[256]; /* what a job of one task prints, but for their number */

/* Of a group of tests: runs the job that nothing happens to. */
int elastic_learn(void **state);

/* The elastic program as a job of so many tasks. */
struct stage_job elastic_job(uint32_t tasks, uint32_t replicas, const char *const *environment);

/* The text line that an attempt printed at its end, without its number of tasks. */
void elastic_outcome(const char *printed, char line[256]);
/* Prints the output of all attempts, for a test that fails. */
void elastic_show(const struct stage_end *end);

/* The job succeeds; the attempts that run to its end have the same state. `dead`: an attempt that
 * does not; UINT32_MAX: none. */
void elastic_check(const struct stage_job *job, uint32_t dead, struct stage_end *ret_end);

/* Every epoch consumed what it is defined to hold. */
void elastic_check_consumption(const struct stage_end *end);

#endif
