/* SPDX-License-Identifier: Apache-2.0
 * What tasks compare of their states. */
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
/* And whether it goes on from what they have compared when a task is lost. */
bool values_verify_losses(const struct sim *sim, const struct job *job);
/* 0: they do not. */
uint64_t value_digest(const struct sim *sim, const struct job *job, const struct state *state);
void value_flips(struct sim *sim, struct process *process);
void value_agreed(struct sim *sim, uint32_t process);
void value_copy_flips(struct sim *sim, struct process *process);
/* It enters the first collective of its step, or one in which all save; and that succeeded: false,
 * the values differ. */
void values_exchange(struct sim *sim, struct process *process, bool saves);
bool values_agree(struct sim *sim, uint32_t process, bool saves);
void values_adopted(struct sim *sim, const struct mesh *mesh);
void values_check(struct sim *sim, const struct job *job, uint64_t position, uint64_t value);

#endif
