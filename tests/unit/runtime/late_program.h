/* SPDX-License-Identifier: Apache-2.0
 * A program that creates variables while it trains: in its replica function and between its epochs.
 * What it prints at the end depends on all of them, on every sample and on the order of the steps.
 */
#ifndef CADRE_TESTS_RUNTIME_LATE_PROGRAM_H
#define CADRE_TESTS_RUNTIME_LATE_PROGRAM_H

#include <stdint.h>

#define LATE_EPOCHS 4
#define LATE_STEPS  6 /* of an epoch; in between one that creates a variable, and once another */

/* Where its function creates for the first time: "slot" and "slot_1"; "seen", combined when read;
 * "words", strings. At the beginning of epochs "mark1", "mark2", ..., and what it creates where it
 * has none: "early" in the first, "lazy" in the second. */
#define LATE_SLOTS     2
#define LATE_SEEN      4
#define LATE_ARGUMENTS 9
#define LATE_MARK      6
#define LATE_LAZY      7
#define LATE_MARK_2    14
#define LATE_POSITIONS (LATE_EPOCHS * (LATE_STEPS + 1))

/* Its faults (faults.h), where something is created at the position:
 * - DIE_BEFORE, DIE_AFTER: killed in the function before it creates, and after that
 * - DIE_FIRST, DIE_SECOND: killed before the first, the second meeting of a creation
 * - DIE_BETWEEN: killed before it creates between epochs
 * - DIE_WAITING: killed in the step once a checkpoint is published
 * - MISS_LAST: frozen after the last collective of the step, once others have applied it
 *
 * BACKWARDS=attempt:0: this one creates its variables of before the first step in another order. */
int late_program(void);

#endif
