/* SPDX-License-Identifier: Apache-2.0
 * Processes that a task left behind. Its keeper is their child subreaper: whatever the task started
 * becomes the keeper's child when its own parent dies, in whatever session it hides. */
#ifndef CADRE_WORKER_KEEPER_STRAYS_H
#define CADRE_WORKER_KEEPER_STRAYS_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills all children of this process but those that `spared` names (NULL: none is), and reaps the
 * dead among them. How many had to be killed: who dies leaves its own children, for the next pass.
 */
unsigned strays_kill(bool (*spared)(pid_t pid, const void *user), const void *user);

#endif
