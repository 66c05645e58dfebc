/* SPDX-License-Identifier: Apache-2.0
 * What the coordinators of a cluster say of themselves: each writes it below `member/` in etcd,
 * every few seconds, and reads what the others wrote. For people; nothing is decided by it. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_SHARED_MEMBERS_H
#define CADRE_COORDINATOR_DAEMON_SHARED_SHARED_MEMBERS_H

#include "common/wire/wire.h"
#include "coordinator/daemon/base/daemon.h"

struct etcd;
struct shared_members;

/* What this coordinator says of itself now. */
typedef void shared_members_describe_fn(
    const struct daemon *daemon, struct leader_response *ret_response);

/* Begins to write and to read. RESOURCE_EXHAUSTED: no memory. */
cadre_status shared_members_open(struct daemon *daemon, struct etcd *etcd,
    shared_members_describe_fn *describe, struct shared_members **ret_members,
    struct cadre_error *error);
/* Before etcd_close(). NULL is fine. */
void shared_members_close(struct shared_members *members);

/* What this one says has changed: writes it now, or with the next turn of writing. NULL is fine. */
void shared_members_changed(struct shared_members *members);

/* Fills in this one and the others, by name, LIMIT_COORDINATORS at most; returns how many. `leader`
 * is the name of the one that leads, as far as this one knows. Texts are of `self` and in the
 * arena. `members` may be NULL. */
size_t shared_members_list(const struct shared_members *members,
    const struct coordinator_info *self, const char *leader, struct wire_arena *arena,
    struct coordinator_info ret_infos[LIMIT_COORDINATORS]);

#endif
