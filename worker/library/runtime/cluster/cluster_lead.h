/* SPDX-License-Identifier: Apache-2.0
 * The coordinator in the first task of a cluster: the coordinator's core, and a peer for each task.
 * It decides which connections are accepted, which messages each peer receives, and when the job is
 * over; bytes and time come from the thread of cluster_server.c, which alone calls this.
 *
 *     GATHERING --all connected--> RUNNING --fails, is done, or the first task leaves--> ENDED
 *         └──not in time──────────────────────────────────────────────────────────────────┘
 */
#ifndef CADRE_RUNTIME_CLUSTER_LEAD_H
#define CADRE_RUNTIME_CLUSTER_LEAD_H

#include "worker/library/runtime/cluster/cluster_peer.h"
#include "worker/library/runtime/cluster/cluster_pending.h"
#include "worker/library/runtime/task/embedded_core.h"

enum cluster_phase { CLUSTER_GATHERING = 1, CLUSTER_RUNNING, CLUSTER_ENDED };

struct cluster_lead {
    const struct cluster_member *member;
    enum cluster_phase phase;
    struct embedded_core *inside;
    struct cluster_peer *peers;           /* [tasks], by member id */
    struct authenticated_peer *greetings; /* [tasks]: for writing each verdict */
    struct wire_arena *arena;
    const char *refusal; /* why the last stranger was refused, ""; for people */
    uint64_t now_us;
    uint64_t deadline_us; /* while gathering */
    uint64_t warn_us;
    uint64_t heartbeat_us;
    bool done;         /* all have received permission to exit */
    bool chief_done;   /* of a ps job: its chief has; the others follow, servers last */
    cadre_status code; /* not OK: why it ends */
    char text[LIMIT_TEXT_BYTES];
};

/* Makes the core. Borrows the member and `refusal`. A zeroed lead may be closed too. */
cadre_status cluster_lead_open(struct cluster_lead *lead, const struct cluster_member *member,
    uint64_t restored, const char *refusal, struct cadre_error *error);
/* Closes all connections and frees the core. */
void cluster_lead_close(struct cluster_lead *lead);

/* A stranger is authenticated: it becomes a peer, or is refused. `user` is the lead. */
void cluster_lead_authenticated(const struct authenticated_peer *authenticated, void *user);

/* The socket of that peer is readable. */
void cluster_lead_receive(struct cluster_lead *lead, uint32_t member_id);

/* Does what is due; `leaves`: the first task's own program has ended, and the job with it. */
void cluster_lead_tick(struct cluster_lead *lead, uint64_t now_us, bool leaves);

/* When the next tick is due if no message comes. */
uint64_t cluster_lead_wake_us(const struct cluster_lead *lead);

/* Whether a task but the first is connected. */
bool cluster_lead_has_others(const struct cluster_lead *lead);

#endif
