/* SPDX-License-Identifier: Apache-2.0
 * Responses of the service cadre.v1.Coordinators, whose requests are empty. Borrowed strings and
 * arrays, as in job.h. */
#ifndef CADRE_MODEL_COORDINATOR_MESSAGE_H
#define CADRE_MODEL_COORDINATOR_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/term.h"

/* Words of coordinator_info.state; another version may have others. */
#define COORDINATOR_FOLLOWER    "follower"
#define COORDINATOR_CANDIDATE   "candidate"
#define COORDINATOR_CATCHING_UP "catching up"
#define COORDINATOR_LEADING     "leading"
#define COORDINATOR_SUSPENDED   "suspended"
#define COORDINATOR_LEAVING     "leaving"
#define COORDINATOR_REFUSED     "refused"
/* Of another one: */
#define COORDINATOR_AWAY    "away"    /* it has written nothing for some time */
#define COORDINATOR_UNKNOWN "unknown" /* what it writes cannot be read now */

struct coordinator_info {
    const char *name;
    const char *addresses; /* where it is reached: "HOST:PORT,HOST:PORT"; "": not known */
    const char *state;
    const char *text;  /* for people, why; "": nothing to say */
    bool leads;        /* and its time to send has not passed */
    struct term term;  /* of the newest leadership that it knows; of cluster 0: none yet */
    uint64_t since_us; /* of that leadership: wall clock; 0: not known */
    uint64_t applied;  /* number of the newest entry of the log in its ledger; 0: none */
    uint64_t head;     /* of the newest entry that it knows */
    const char *version;
    uint64_t age_us;     /* how old this is; 0: the coordinator says it of itself */
    uint64_t process;    /* drawn at its start; 0: of a version without it */
    uint32_t format_max; /* newest format of the log's entries that it reads; 0: that is 1 */
    uint64_t written_us; /* when it said this: wall clock; 0: of a version without it */
};

/* Coordinators.Leader. */
struct leader_response {
    struct coordinator_info self;
    uint64_t may_lead_us; /* how much of its time to send is left; 0: it does not lead, or has no
                           * limit */
    const char *leader;   /* name and addresses of the coordinator that leads, as far as this one
                           * knows; "": none is known */
    const char *leader_addresses;
};

/* Coordinators.List. */
struct list_coordinators_response {
    const struct coordinator_info *coordinators; /* by name; at most LIMIT_COORDINATORS */
    size_t count;
};

#endif
