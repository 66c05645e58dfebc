/* SPDX-License-Identifier: Apache-2.0
 * The job of a cluster as its first task holds it together: the coordinator's core, and a peer for
 * each task. What is decided here is who is let in, what is told to whom, and when it is over;
 * bytes and time come from the thread of cluster_server.h, which alone calls this.
 *
 *     GATHERING --all are there--> RUNNING --fails, is done, or the first task leaves--> ENDED
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
    struct cluster_peer *peers;           /* [tasks], by place */
    struct authenticated_peer *greetings; /* [tasks]: what each verdict is written with */
    struct wire_arena *arena;
    const char *refusal; /* why the last stranger was refused, ""; for people */
    uint64_t now_us;
    uint64_t deadline_us; /* while gathering */
    uint64_t warn_us;
    uint64_t heartbeat_us;
    bool done;         /* all were told that they may go */
    bool chief_done;   /* of a crew: its chief was; the others follow, servers last */
    cadre_status code; /* not OK: why it ends */
    char text[LIMIT_TEXT_BYTES];
};

/* Borrows the member and `trouble`. A zeroed job may be closed too. */
cadre_status cluster_lead_open(struct cluster_lead *lead, const struct cluster_member *member,
    uint64_t restored, const char *refusal, struct cadre_error *error);
void cluster_lead_close(struct cluster_lead *lead);

/* A stranger has proved itself: it is let in, or told why not. `user` is the job. */
void cluster_lead_authenticated(const struct authenticated_peer *authenticated, void *user);

/* There is something to read from the peer of that place. */
void cluster_lead_receive(struct cluster_lead *lead, uint32_t member_id);

/* What is due now; `leaves`: the first task's own program has ended, and the job with it. */
void cluster_lead_tick(struct cluster_lead *lead, uint64_t now_us, bool leaves);

/* When something is due without anybody saying anything. */
uint64_t cluster_lead_wake_us(const struct cluster_lead *lead);

/* Whether a task but the first is connected. */
bool cluster_lead_has_others(const struct cluster_lead *lead);

#endif
