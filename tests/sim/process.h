/* SPDX-License-Identifier: Apache-2.0
 * A task's process, its program, and how both get and save a state. */
#ifndef CADRE_SIM_PROCESS_H
#define CADRE_SIM_PROCESS_H

#include "scenario.h"

struct sim;
struct job;
struct mesh;
struct process;
struct state;
struct happening;
struct task_up;
struct task_down;
struct task_event;
struct task_warm;

/* ---- process.c: a task's process and its core ---- */

/* Its process runs: its program starts after a while. */
void process_spawned(struct sim *sim, uint32_t process);
/* It has ended: its mesh and its socket close, its daemon is notified. */
void process_exit(struct sim *sim, uint32_t process, int32_t code, int32_t signal);
/* A signal of its daemon, or of the operator. */
void process_signal(struct sim *sim, uint32_t process, int signal);
/* A message of its daemon. */
void process_receive(struct sim *sim, uint32_t process, const struct task_down *down);
/* Its socket breaks; `returns`: it connects again. */
void process_disconnect(struct sim *sim, uint32_t process, bool returns);
/* A message to its daemon, unless it has no connection. */
void process_send(struct sim *sim, uint32_t process, const struct task_up *up);
/* Its datasets, after each hello. */
void process_send_streams(struct sim *sim, uint32_t process);
/* The event that its program or its core waited for. */
void process_happens(struct sim *sim, const struct happening *happening);
/* One event into the task's core, its actions executed. */
void program_event(struct sim *sim, uint32_t process, const struct task_event *event);
/* The death that the scenario has for it at this point; NULL: none. */
const struct scenario_death *process_dies(
    struct sim *sim, uint32_t process, enum death_when when, uint64_t step);
/* It ends as the scenario has it. */
void process_die(struct sim *sim, uint32_t process, const struct scenario_death *death);

/* ---- runtime.c: the training loop of a process ---- */

/* Goes as far as its core allows. */
void program_go(struct sim *sim, uint32_t process);
/* The gradients of the step are computed. */
void program_computed(struct sim *sim, uint32_t process);
/* Its collective succeeded. */
void program_collective_done(struct sim *sim, uint32_t process);
/* Its collective failed: a peer left. */
void program_peer_left(struct sim *sim, uint32_t process);
/* The step is written into the variables. */
void program_applied(struct sim *sim, uint32_t process);
/* It has waited for a release for long. */
void program_waits(struct sim *sim, uint32_t process);
/* Its own function failed, or the programs disagree. */
void program_fails(struct sim *sim, uint32_t process, const char *text);
/* Collectives outside of steps that are left before the step at its position. */
uint32_t program_between_steps_left(const struct sim *sim, const struct process *process);

/* ---- join.c: how a process comes to the state that it goes on from ---- */

/* WARM: its program prepares, or gets newer stream positions. */
void join_warm(struct sim *sim, uint32_t process, const struct task_warm *warm);
/* Its program is prepared and joins. */
void join_warmed(struct sim *sim, uint32_t process);
/* All have formed the mesh: members take the source's state. */
void join_exchange(struct sim *sim, struct mesh *mesh);
/* It holds the state of its plan. */
void join_synced(struct sim *sim, uint32_t process);

/* ---- saving.c: checkpoints ---- */

/* Begins to write when one is due at this step. */
void saving_at_step(struct sim *sim, uint32_t process);
/* false: another is being written. */
bool saving_begin(struct sim *sim, uint32_t process);
/* The chief waits until what it saves is published. */
void saving_awaits(struct sim *sim, uint32_t process);
/* Its job stops at its position: the chief saves, and all wait for goodbye. */
void saving_to_stop(struct sim *sim, uint32_t process);
/* It is on the disk. */
void saving_written(struct sim *sim, uint32_t process);
/* The coordinator finds that it cannot use a part: a content is gone, or there is no room. */
bool saving_is_refused(struct sim *sim, const struct agent_up *up);
/* The state that a checkpoint's manifest names. */
struct state checkpoint_state(const struct job *job, uint64_t position, const uint8_t *sha256);
/* The name of a checkpoint with this state. */
void checkpoint_name(uint8_t *sha256, const struct state *state);

#endif
