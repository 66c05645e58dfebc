/* SPDX-License-Identifier: Apache-2.0
 * Two tasks of one replica each that are processes, with the mesh for devices between them. Nothing
 * of devices is touched before they are apart. */
#ifndef CADRE_TESTS_GPU_MESH_PAIR_H
#define CADRE_TESTS_GPU_MESH_PAIR_H

#include <stdio.h>
#include <sys/types.h>

#include "worker/library/mesh/mesh_device.h"

#define PAIR_TIMEOUT_US UINT64_C(20000000)

struct pair {
    struct mesh_listener *listeners[2];
    struct mesh_member members[2];
    pid_t pids[2];
    int ready; /* pair_ready writes here */
    int is_ready;
};

/* A check in a process: on failure its line, and `return 1`. `rank` and `error` are there. */
#define PAIR_CHECK(condition)                                                                      \
    if (!(condition)) {                                                                            \
        fprintf(stderr, "task %u: not true: %s (%s)\n", rank, #condition, error.text);             \
        return 1;                                                                                  \
    }

/* Starts both; `run` gives a process's exit code. */
void pair_start(struct pair *pair, int (*run)(const struct pair *pair, uint32_t rank));
/* Its exit code; or minus the signal that ended it. */
int pair_wait(struct pair *pair, uint32_t rank);
/* Waits until one of them calls pair_ready; false: both ended. */
bool pair_await(struct pair *pair);
void pair_finish(struct pair *pair);

/* --- in a process --- */

void pair_ready(const struct pair *pair);

/* Forms the mesh of a generation, and closes no other. */
cadre_status pair_form(const struct pair *pair, uint32_t rank, uint64_t generation,
    struct device **device, struct mesh **ret_mesh, struct cadre_error *error);

/* The sum of both's `values`, which go through the device; settled. */
cadre_status pair_sum(struct mesh *mesh, struct device *device, float *values, size_t count,
    struct cadre_error *error);

#endif
