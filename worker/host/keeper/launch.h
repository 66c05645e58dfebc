/* SPDX-License-Identifier: Apache-2.0
 * Starts a process: fork, what the child does to itself, exec. libuv's uv_spawn would do all but
 * one thing: a process that dies with us. */
#ifndef CADRE_WORKER_KEEPER_LAUNCH_H
#define CADRE_WORKER_KEEPER_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "worker/host/isolate/confine.h"

struct launch {
    const char *program; /* with a slash in it; relative to `folder` */
    char **argv;
    char **environment;
    const char *folder;
    int input;      /* standard input, above 2; stays the caller's; 0: /dev/null */
    int outputs[2]; /* standard output and error; stay the caller's */
    bool terminal;  /* for the keeper: both are a pseudo-terminal, else pipes */
    int inherited;  /* another descriptor that it has, under its number, above 2; -1: none */
    struct task_confinement confinement;
};

/* Returns 0 and the pid, or the errno of a failure, negated when it cannot enter its folder. The
 * child leads a session of its own, has every signal at its default, and is killed by the kernel
 * when the calling thread ends, however that ends. */
int launch_process(const struct launch *launch, pid_t *ret_pid);

#endif
