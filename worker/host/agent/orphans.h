/* SPDX-License-Identifier: Apache-2.0
 * Processes that tasks started outlive an agent that is killed, and only their environment shows
 * to which daemon they belong: its tasks are killed with it. */
#ifndef CADRE_WORKER_AGENT_ORPHANS_H
#define CADRE_WORKER_AGENT_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills every process whose CADRE_SOCKET is `folder` or a path beneath it, also those that they
 * start meanwhile, and waits for their death. `reported` (may be NULL) is called for each. */
void orphans_kill(const char *folder, void (*reported)(pid_t pid));

/* The same, except for those whose socket is spared. */
void orphans_kill_except(const char *folder, bool (*spared)(const char *socket, const void *user),
    const void *user, void (*reported)(pid_t pid));

#endif
