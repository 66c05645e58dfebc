/* SPDX-License-Identifier: Apache-2.0
 * The one task of a keeper, until no process that it left behind runs. */
#ifndef CADRE_WORKER_KEEPER_TASK_H
#define CADRE_WORKER_KEEPER_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Processes that a task left behind. Its keeper is their child subreaper: a process that the
 * task started becomes the keeper's child when its own parent dies, whatever its session. */

/* Kills all children of this process but those for which `spared` is true (NULL: none is), and
 * reaps those that are dead. Returns how many had to be killed: their children become this
 * process's, for the next pass. */
unsigned strays_kill(bool (*spared)(pid_t pid, const void *user), const void *user);

#endif
