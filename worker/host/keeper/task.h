/* SPDX-License-Identifier: Apache-2.0
 * The one task of a keeper, until no process that it left behind runs. */
#ifndef CADRE_WORKER_KEEPER_TASK_H
#define CADRE_WORKER_KEEPER_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/host/keeper/packed_launch.h"

struct task {
    pid_t pid;
    struct task_cgroup group;
    int outputs[2]; /* read ends */
    bool ended;
    int status; /* as of waitpid */
    bool swept; /* no process of it is left */
    uint64_t sweep_at_us;
    uint64_t sweep_pause_us;
};

/* Starts the task and waits for its exec. Returns 0, or an errno as of launch_process(). */
int task_start(struct task *task, struct launch *launch);
/* Sends a signal to its whole group, and SIGCONT to one that is stopped. */
void task_signal(const struct task *task, int signal);
/* Reaps dead children, and records the task's end. */
void task_reap(struct task *task);
/* Does another pass over strays, when it is due. */
void task_sweep(struct task *task, uint64_t now_us);

#endif
