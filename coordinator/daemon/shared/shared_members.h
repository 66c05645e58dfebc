/* SPDX-License-Identifier: Apache-2.0
 * What the coordinators of a cluster say of themselves: each writes it below `member/` in etcd,
 * under its name, every few seconds, and reads what the others wrote. For people, and so that each
 * name is that of one coordinator: this one writes nothing, and is no candidate, as long as another
 * process may be alive that has its name (member_name.h). */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_SHARED_MEMBERS_H
#define CADRE_COORDINATOR_DAEMON_SHARED_SHARED_MEMBERS_H

#include "common/wire/wire.h"
#include "coordinator/daemon/base/daemon.h"

struct etcd;
struct shared_members;

/* From the loop. */
struct shared_members_owner {
    /* What this coordinator says of itself now. */
    void (*describe)(const struct daemon *daemon, struct leader_response *ret_response);
    /* The key CONTENTS_FOLDER_KEY as it is now; NULL: there is none. Before named(). */
    void (*contents_read)(struct daemon *daemon, const void *text, size_t size);
    /* What that key is to hold from now on; "": nothing is to be written. */
    const char *(*contents_due)(struct daemon *daemon);
    /* Once: its name is its own. */
    void (*named)(struct daemon *daemon);
    /* Etcd has not answered, and its name is not its own yet. */
    void (*unanswered)(struct daemon *daemon);
    /* Another process that is alive has its name: it has to end. */
    void (*refused)(struct daemon *daemon, const char *text);
};

/* Begins to read, then to write. RESOURCE_EXHAUSTED: no memory. DATA_LOSS: the file
 * STATE/process. */
cadre_status shared_members_open(struct daemon *daemon, struct etcd *etcd,
    const struct shared_members_owner *owner, struct shared_members **ret_members,
    struct cadre_error *error);
/* Before etcd_close(). NULL is fine. */
void shared_members_close(struct shared_members *members);

/* What this one says has changed: writes it now, or with the next turn of writing. NULL is fine. */
void shared_members_changed(struct shared_members *members);

/* The number of this process. Of NULL: 0. */
uint64_t shared_members_process(const struct shared_members *members);
/* Why it waits for its name; "": it does not. NULL is fine. */
const char *shared_members_waiting(const struct shared_members *members);

/* Newest format of entries that all of them have read for so long, away or not, and so does this
 * one; 0: not known. */
uint32_t shared_members_format(const struct shared_members *members, uint64_t for_us);

/* Fills in this one and the others, by name, LIMIT_COORDINATORS at most; returns how many. `leader`
 * is the name of the one that leads, as far as this one knows. Texts are of `self` and in the
 * arena. `members` may be NULL. */
size_t shared_members_list(const struct shared_members *members,
    const struct coordinator_info *self, const char *leader, struct wire_arena *arena,
    struct coordinator_info ret_infos[LIMIT_COORDINATORS]);

#endif
