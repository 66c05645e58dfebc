/* SPDX-License-Identifier: Apache-2.0
 * What was read last of what the coordinators of a cluster say of themselves in etcd, and since
 * when this one knows it. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_MEMBERS_SEEN_H
#define CADRE_COORDINATOR_DAEMON_SHARED_MEMBERS_SEEN_H

#include "common/etcd/etcd.h"
#include "common/model/coordinator_message.h"
#include "common/model/limits.h"
#include "common/wire/wire.h"

struct member_seen {
    char key[ETCD_KEY_BYTES];
    int64_t revision;
    uint64_t seen_us; /* since when this coordinator knows that revision */
    bool is_first;    /* it was there when this process looked for the first time */
    uint32_t format;  /* newest one that it reads */
    void *value;      /* a packed leader_response */
    size_t size;
};

struct members_seen {
    struct member_seen items[LIMIT_COORDINATORS];
    size_t count;
    uint64_t read_us;         /* when etcd's answer was taken last; 0: never */
    uint32_t format;          /* newest one that all of them read; 0: nothing was read */
    uint64_t format_us;       /* since when it is at least that */
    struct wire_arena *arena; /* of what is checked now */
};

/* False: no memory. */
bool members_seen_init(struct members_seen *seen);
void members_seen_free(struct members_seen *seen);

/* Reads a value of any origin, until the next call. False: it is no such message. */
bool members_seen_read(
    struct members_seen *seen, const struct etcd_pair *pair, struct leader_response *ret_response);
/* All keys, as they are now; what is no such message is left out. */
void members_seen_take(struct members_seen *seen, const struct etcd_result *result);
/* Adds the deletion of each key but `own` that was not written for a day; returns how many
 * operations there are then. */
size_t members_seen_forget(const struct members_seen *seen, const char *own,
    struct etcd_operation *operations, size_t count);

/* As shared_members_list(). Another one that has written nothing for `away_us` is away; of none is
 * anything known when nothing was read for so long. */
size_t members_seen_list(const struct members_seen *seen, const struct coordinator_info *self,
    const char *leader, uint64_t away_us, struct wire_arena *arena,
    struct coordinator_info ret_infos[LIMIT_COORDINATORS]);

#endif
