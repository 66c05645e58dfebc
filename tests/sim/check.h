/* SPDX-License-Identifier: Apache-2.0
 * What has to be true: in each step, of what tasks do, and at the end. */
#ifndef CADRE_SIM_CHECK_H
#define CADRE_SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct core_action;
struct core_record;
struct job;
struct mesh;
struct process;
struct sim;
struct task_plan;
struct task_ref;
struct task_release;

/* ---- check.c: what is said and recorded ---- */

void check_cores(struct sim *sim, uint32_t agent, bool whole);
void check_sent(struct sim *sim, const struct core_action *action);
void check_started(struct sim *sim, const struct job *job);
void check_drains(struct sim *sim);
void check_record(struct sim *sim, struct job *job, const struct core_record *record);
void check_plan(struct sim *sim, const struct job *job, const struct task_plan *plan);
void check_release(struct sim *sim, const struct job *job, const struct task_release *release);
void check_goodbye(struct sim *sim, const struct job *job);

/* ---- check_task.c: what tasks do ---- */

void check_source(struct sim *sim, const struct job *job, const struct mesh *mesh);
void check_enter(struct sim *sim, const struct process *process, uint64_t position);
void check_applied(struct sim *sim, const struct process *process, uint64_t position);
void check_left(struct sim *sim, const struct process *process);
void check_started_on(struct sim *sim, uint32_t agent, struct task_ref ref);
void check_running(struct sim *sim, uint32_t agent);

/* ---- check_end.c: how it all ended ---- */

void check_outcomes(struct sim *sim);

#endif
