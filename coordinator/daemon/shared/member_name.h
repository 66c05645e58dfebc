/* SPDX-License-Identifier: Apache-2.0
 * Whether this process may use its name among the coordinators of a cluster: its key in etcd says
 * which process wrote it last. No clocks of two hosts are compared: another process is alive when
 * its key changes while this one waits, and away when it does not for long enough. Pure. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_MEMBER_NAME_H
#define CADRE_COORDINATOR_DAEMON_SHARED_MEMBER_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define MEMBER_NAME_KNOWN 2

enum member_name_verdict {
    MEMBER_NAME_FREE, /* it may be written, if the key still has this revision */
    MEMBER_NAME_WAITS,
    MEMBER_NAME_TAKEN /* another process is alive that has it */
};

/* The caller's memory; what is not said is 0 at first. */
struct member_name {
    uint64_t process;                  /* of this one: drawn, not 0 */
    uint64_t known[MEMBER_NAME_KNOWN]; /* earlier ones with this state directory; 0: none */
    uint64_t away_us;                  /* a process whose key does not change for so long is away */
    int64_t revision;      /* of the key as found or written last; 0: there is no such key */
    uint64_t found;        /* the process that the key named when it was found last; 0: none */
    bool waits;            /* for another process: */
    int64_t seen_revision; /* since when its key has this revision */
    uint64_t seen_us;
};

/* The key was read: its revision, 0 if it is not there, and the process that it names, 0 if it
 * names none. `now_us` is of a clock of this host, read after the answer. */
enum member_name_verdict member_name_found(
    struct member_name *name, int64_t revision, uint64_t process, uint64_t now_us);
/* This process has written the key, at this revision. */
void member_name_written(struct member_name *name, int64_t revision);

#endif
