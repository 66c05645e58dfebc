/* SPDX-License-Identifier: Apache-2.0
 * A task reports that its checkpoint is at the coordinator: the engine receives the report when a
 * thread of the pool has found all of it there. The checks run one after the other, in order of
 * arrival; of each task at most one runs and one, the newest, waits. Other messages of the task are
 * not delayed. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_PART_CHECK_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_PART_CHECK_H

#include "coordinator/daemon/base/daemon.h"

/* Starts the check. Protocol, section 4: a checkpoint counts only when it can be read without the
 * host that wrote it. `said`, of a task on that link, is the unpacked message; its part is not in a
 * shared folder. */
void part_check_start(struct daemon *daemon, struct link_id link,
    const struct agent_relay_up *relay_up, const void *message, size_t length);

#endif
