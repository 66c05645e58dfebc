/* SPDX-License-Identifier: Apache-2.0
 * The program that the tests of pipelines of the tasks' own run: it counts how often each record
 * was consumed, in a variable, over PIPELINES_EPOCHS epochs, and prints the counts. */
#ifndef CADRE_TESTS_RUNTIME_PIPELINES_PROGRAM_H
#define CADRE_TESTS_RUNTIME_PIPELINES_PROGRAM_H

#define PIPELINES_RECORDS 120
#define PIPELINES_FILES   5 /* of unequal lengths */
#define PIPELINES_ZIPPED  40
#define PIPELINES_EPOCHS  2

/* PIPELINE, in the environment, what it reads:
 * - interleave, flat: the records of the files in the folder FILES, shared out by files; AUTO: with
 *   the policy that is the default
 * - list: the same files as the list of one source; SAMPLES: shared out by samples
 * - piled: the same, cut in a way that cannot be continued when tasks change
 * - own: from a function; task i has (i + 1) * 10 records of its own, if so many
 * - all: every task has every third record, all of them (OFF)
 * - filter: every third record, through a shuffle with a buffer (DATA)
 * - zip, zip_in_order: the records of two datasets, which are zipped; read by index, or in order
 *   (DATA); the ledger counts those of the first, PIPELINES_ZIPPED
 * - generated: by a function of the program's (DATA, or AUTO)
 * EVALUATES, with any value: reads `own` as a test set after each epoch.
 *
 * Faults (faults.h), when the program is at the position:
 * - DIE_NEXT, DIE_RUN, DIE_BEFORE, DIE_BETWEEN: killed before cadre_next, before cadre_run, in the
 *   step before and after its first collective
 * - MISS_APPLY: frozen after the step's last collective, once another task has applied the step
 * - MISS_AGREE: frozen after collective MISS_AGREE_CALL (from 1) of an agreement that the others
 *   completed
 * - MISS_COMPARE: likewise of the comparison of pipelines
 * - DIE_WAITING: killed in the step, once a checkpoint is published
 * - BROKEN: the record of the number that is given as the position cannot be read
 * - DIFFERS, DIFFERS_OPTION: batches of another size, epochs of 5 steps; the position is 0 */
int pipelines_program(void);

/* Writes the files. */
void pipelines_write_files(const char *folder);

#endif
