/* SPDX-License-Identifier: Apache-2.0
 * The memory of parameter servers, which outlives their processes. */
#ifndef CADRE_WORKER_AGENT_PS_MEMORY_H
#define CADRE_WORKER_AGENT_PS_MEMORY_H

#include "worker/host/agent/agent_state.h"

/* Whether the task is a parameter server. */
bool ps_memory_is_for(const struct agent_start *start);

/* Reserves memory for a server that will be started: that of its predecessor here, else empty
 * memory. False: out of memory. */
bool ps_memory_reserve(struct agent *agent, const struct agent_start *start);

/* The descriptor of the memory: *ret_fd stays the agent's; a child of this process may inherit
 * it. ABORTED: the job was forgotten meanwhile. */
cadre_status ps_memory_open(
    struct agent *agent, struct task_ref task, int *ret_fd, struct cadre_error *error);

/* Takes over what an earlier incarnation of this process kept for a task that runs; takes *fd. */
cadre_status ps_memory_adopt(
    struct agent *agent, struct task_ref task, int *fd, struct cadre_error *error);

/* The job is over here: frees its memory; a process that has it mapped keeps it. */
void ps_memory_forget(struct agent *agent, struct job_id job);
/* Frees all memory, at the agent's end. */
void ps_memory_close(struct agent *agent);

/* The jobs that have memory here, each once; returns how many, at most `room`. */
size_t ps_memory_jobs(const struct agent *agent, struct job_id *ret_jobs, size_t room);

#endif
