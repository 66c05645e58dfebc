/* SPDX-License-Identifier: Apache-2.0
 * The variables of tasks whose programs create some while they run: in steps, and with a state. */
#ifndef CADRE_SIM_LAYOUT_H
#define CADRE_SIM_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "created.h"

struct job;
struct process;
struct sim;

/* ---- truth_layout.c: the expected layouts ---- */

/* job->layouts, of a program without any fault. */
void truth_layouts(struct job *job);
/* Whether the program makes the call for the variable in the step at this position. */
bool truth_asks(const struct job *job, uint32_t creation, uint64_t position);

/* ---- layout.c: the variables of a process; without any, the functions do nothing ---- */

/* Its program has created the variables of before its first step. */
void layout_begin(struct sim *sim, struct process *process);
/* Frees them. */
void layout_end(struct process *process);

/* In a step, before each of its collectives: whether that is one of the two that create a variable.
 */
bool layout_creates(struct sim *sim, struct process *process);
/* It enters that collective. */
void layout_tells(struct sim *sim, const struct process *process);
/* All have met in the step's collective; false: it was none of these. */
bool layout_met(struct process *process);
/* The step is written into the variables. */
void layout_commit(struct sim *sim, struct process *process);
/* A step, or a state sync, was under way and is undone. */
void layout_undo(struct sim *sim, struct process *process);

/* It makes what the state has; until the state is there it may be undone. */
void layout_takes(struct sim *sim, struct process *process, uint64_t state);
/* It holds the state of its plan. `goes_on`: its program has made the calls up to it. */
void layout_synced(struct sim *sim, struct process *process, bool goes_on);

/* LAYOUT, unless these are the variables of the job's position. */
void layout_check(
    struct sim *sim, const struct job *job, uint64_t position, uint64_t layout, const char *whose);

#endif
