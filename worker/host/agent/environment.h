/* SPDX-License-Identifier: Apache-2.0
 * The environment that a task starts with. */
#ifndef CADRE_WORKER_AGENT_ENVIRONMENT_H
#define CADRE_WORKER_AGENT_ENVIRONMENT_H

#include "worker/host/agent/agent_state.h"

/* A NULL-terminated list of "NAME=value", each one malloc'ed. {0} is an empty one. */
struct environment {
    char **items;
    size_t count;
    size_t capacity;
};

/* In rising precedence: this process's own (only when the launch asks for it) or PATH, HOME,
 * LANG and TMPDIR, and the GPU settings of the host's operator (CADRE_PLUGIN, CADRE_NCCL,
 * CUDA_DEVICE_ORDER, NCCL_*); the job's; Cadre's CADRE_* variables and CUDA_VISIBLE_DEVICES,
 * which a job cannot override. */
cadre_status environment_of_task(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error);
/* Frees the list. */
void environment_free(struct environment *environment);

/* The variable that shows to which task a stray process belongs:
 * "CADRE_TASK=<job>.<slot>.<incarnation>". */
#define ENVIRONMENT_TASK "CADRE_TASK"

#endif
