/* SPDX-License-Identifier: Apache-2.0
 * The one task of a keeper, from its start to the last of what it left behind. */
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
    bool swept; /* nothing is left of it */
    uint64_t sweep_at_us;
    uint64_t sweep_pause_us;
};

/* 0, or why it does not run, as errno says it. Blocks until its exec. */
int task_start(struct task *task, struct launch *launch);
/* To its whole group; one that is stopped goes on with it. */
void task_signal(const struct task *task, int signal);
/* Reaps what is dead, and sees the task's end. */
void task_reap(struct task *task);
/* Another pass, when it is due. */
void task_sweep(struct task *task, uint64_t now_us);

#endif
