/* SPDX-License-Identifier: Apache-2.0
 * The program that the tests of an elastic job run: it trains over five epochs and evaluates after
 * each, and what it prints at the end depends on every sample and on the order of all steps. */
#ifndef CADRE_TESTS_RUNTIME_ELASTIC_PROGRAM_H
#define CADRE_TESTS_RUNTIME_ELASTIC_PROGRAM_H

#include "stage.h"

#define ELASTIC_SAMPLES      103
#define ELASTIC_STEPS        13 /* of an epoch */
#define ELASTIC_TEST_SAMPLES 20
#define ELASTIC_TEST_STEPS   5
#define ELASTIC_EPOCHS       5
#define ELASTIC_PHASE_STEPS  8
#define ELASTIC_POSITIONS    (ELASTIC_EPOCHS * (ELASTIC_STEPS + ELASTIC_TEST_STEPS))

/* Its faults, in the environment, each "attempt:position": what happens to that attempt of a task
 * when its program is at the position.
 * - DIE_BEFORE, DIE_BETWEEN, DIE_AFTER: killed in the step, before, between, after its collectives
 * - DIE_OUTSIDE: killed before the collectives that follow the step
 * - DIE_CREATE, DIE_FINISH: killed before it creates its second variable; before cadre_finish
 * - HANG_REDUCE, HANG_CREATE, HANG_FINISH: it stops there for good, with others in the collective
 * - MISS_APPLY: frozen after the step's last collective, once another task has applied the step
 * - MISS_OUTSIDE: likewise after the collective that follows the step
 * - MISS_CREATE: likewise in the creation of its second variable
 * - OTHER_FOLDER: its checkpoint folder is its output folder
 * - FEED_TWICE: one replica reads what is another's
 * - SLOW: waits for 1.5 s inside the step
 *
 * SHAKE, a number: attempt 0 loses its peers so often in each step; at the end all print how often.
 * OTHER_BATCHES, with any value: the batches of the training hold 4 samples and not 8. */
int elastic_program(void);

/* One that makes no variables, reads nothing and takes three steps. DIE_FINISH. */
int elastic_bare_program(void);

/* Two datasets of which each is taken once, the second after the first: ELASTIC_PHASE_STEPS each,
 * and at the beginning of the second one step that assigns; barriers wherever there can be one.
 * LATE=attempt:0: an attempt that begins the first when the others are in the second. */
int elastic_phases_program(void);

/* --- elastic_check.c: the checks of every job of it --- */

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
