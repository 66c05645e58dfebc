/* SPDX-License-Identifier: Apache-2.0
 * A task says that its checkpoint is at the coordinator: the engine hears of it when a thread of
 * the pool has found all of it there. One after the other, in the order in which they came, and of
 * a task only the newest: one is looked at and one waits, however often it says it. What else the
 * task says goes by meanwhile, as it does while the checkpoint is on its way. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_PART_CHECK_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_PART_CHECK_H

#include "coordinator/daemon/base/daemon.h"

/* A checkpoint counts only when it can be read without the host that wrote it. `said`, of a task on
 * that link, is the unpacked form of the message; its part is not in a shared folder. */
void part_check_start(struct daemon *daemon, struct link_id link,
    const struct agent_relay_up *relay_up, const void *message, size_t length);

#endif
