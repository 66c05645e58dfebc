/* SPDX-License-Identifier: Apache-2.0
 * What tasks have started outlives an agent that is killed: its tasks die with it, and nobody is
 * left who would know the others. Their environment does. */
#ifndef CADRE_WORKER_AGENT_ORPHANS_H
#define CADRE_WORKER_AGENT_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills every process whose CADRE_SOCKET is `folder` or lies below it, and waits for its death;
 * also what they start meanwhile. `told` (may be NULL) hears of each. */
void orphans_kill(const char *folder, void (*reported)(pid_t pid));

/* The same, but for those whose socket is spared. */
void orphans_kill_except(const char *folder, bool (*spared)(const char *socket, const void *user),
    const void *user, void (*reported)(pid_t pid));

#endif
