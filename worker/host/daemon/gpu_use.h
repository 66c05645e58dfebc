/* SPDX-License-Identifier: Apache-2.0
 * What the GPUs of this host do, by a child that lasts (worker/host/probe/use_child.h) while a task
 * has one. For the loop's thread; nothing here waits for the child or fails because of it: what it
 * does not answer is not known. */
#ifndef CADRE_WORKER_DAEMON_GPU_USE_H
#define CADRE_WORKER_DAEMON_GPU_USE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/model/gpus.h"
#include "common/model/job.h"

struct daemon;
struct gpu_use;

/* Starts nothing yet. RESOURCE_EXHAUSTED: there is no memory for it. */
cadre_status gpu_use_open(
    struct daemon *daemon, struct gpu_use **ret_use, struct cadre_error *error);
/* Kills the child, if any; gpu_use_free() frees it once the loop is closed. */
void gpu_use_close(struct gpu_use *use);
/* NULL is allowed. */
void gpu_use_free(struct gpu_use *use);

/* Called once a measurement. While `wanted`, a task has a GPU: starts a child or sends it the next
 * request, kills one that has not answered for --gpu-timeout, and after a failure waits for 1 s to
 * 60 s before the next start. Else it ends the child. */
void gpu_use_turn(struct gpu_use *use, bool wanted);

/* Adds what is known of those GPUs to `usage`: the mean of their percents, the sum of their memory;
 * each only where all of them have it. */
void gpu_use_add(const struct gpu_use *use, struct gpus_range range, struct resource_usage *usage);

#endif
