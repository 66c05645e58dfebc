/* SPDX-License-Identifier: Apache-2.0
 * Processes that a task left behind. Its keeper is their child subreaper: a process that the
 * task started becomes the keeper's child when its own parent dies, whatever its session. */
#ifndef CADRE_WORKER_KEEPER_STRAYS_H
#define CADRE_WORKER_KEEPER_STRAYS_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills all children of this process but those for which `spared` is true (NULL: none is), and
 * reaps those that are dead. Returns how many had to be killed: their children become this
 * process's, for the next pass. */
unsigned strays_kill(bool (*spared)(pid_t pid, const void *user), const void *user);

#endif
