/* SPDX-License-Identifier: Apache-2.0
 * Comparison of the tasks' states. */
#ifndef CADRE_SIM_VALUES_H
#define CADRE_SIM_VALUES_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct mesh;
struct process;
struct sim;
struct state;

/* Whether the job's tasks compare their values. */
bool values_count(const struct sim *sim, const struct job *job);
/* And whether it continues from the verified position when a task is lost. */
bool values_verify_losses(const struct sim *sim, const struct job *job);
/* 0: they do not compare. */
uint64_t value_digest(const struct sim *sim, const struct job *job, const struct state *state);
/* A bit of the process's value flips. */
void value_flips(struct sim *sim, struct process *process);
/* Its newest part is sent again as compared, if it is. */
void value_agreed(struct sim *sim, uint32_t process);
/* A bit of the copy that is being written flips. */
void value_copy_flips(struct sim *sim, struct process *process);
/* It enters the first collective of its step, or one in which all save; and that succeeded: false,
 * the values differ. */
void values_exchange(struct sim *sim, struct process *process, bool saves);
/* The comparison of its last collective: false, the values differ. */
bool values_agree(struct sim *sim, uint32_t process, bool saves);
/* A plan's source gives its value to all; one that cannot be detected taints the job. */
void values_adopted(struct sim *sim, const struct mesh *mesh);
/* VALUE, of a checkpoint or an end at this position. */
void values_check(struct sim *sim, const struct job *job, uint64_t position, uint64_t value);

#endif
