/* SPDX-License-Identifier: Apache-2.0
 * Starts functions of a test as confined tasks: what a daemon does with the library, without one.
 */
#ifndef CADRE_TESTS_ISOLATE_DRIVER_H
#define CADRE_TESTS_ISOLATE_DRIVER_H

#include "tests/lib/test.h"
#include "worker/host/isolate/isolation.h"

#define DRIVER_UID_FIRST 60810
#define DRIVER_UID_LAST  60819

struct driven {
    struct task_ref ref;
    struct isolation_user user;
    struct task_confinement confinement;
    pid_t pid;
    int output_fd; /* what it writes to its descriptor 1 */
};

/* Skips the test without root, or without groups that have the controllers. */
struct isolation *driver_open(const struct cgroup_limits *ceiling, bool groups);

/* Enters the job and runs `body` in a child that is confined; its value is the exit status. */
void driver_start(struct isolation *isolation, uint64_t job, uint32_t slot,
    const struct cgroup_limits *limits, int (*body)(void *data), void *data,
    struct driven *ret_task);

/* One byte that the task wrote. */
char driver_receive(const struct driven *task);

/* Waits for the first process to end; its status. */
int driver_wait(const struct driven *task);

/* Ends all that is left of it, in its group, and fails the test when something stays. */
void driver_end(struct isolation *isolation, struct driven *task, struct cgroup_usage *ret_report);

#endif
