/* SPDX-License-Identifier: Apache-2.0
 * What a cluster lets a program be before its strategy says which tasks of it are the job. */
#ifndef CADRE_RUNTIME_CLUSTER_CHOICE_H
#define CADRE_RUNTIME_CLUSTER_CHOICE_H

#include "worker/library/runtime/cluster/cluster_member.h"

struct cluster_choice {
    struct cluster_member *member; /* until somebody chooses; NULL: a job by itself, or idle */
    cadre_cluster_resolver *ps_resolver; /* a cluster with ps tasks, to choose from; else NULL */
    bool idle_server;              /* a ps of a cluster that lacks what ps tasks need */
    uint32_t index;                /* of that one */
};

/* All of the cluster where that can be, else its chief and workers. Errors as of
 * cluster_member_open; for want of a chief or a worker it is none. */
cadre_status cluster_choice_open(const cadre_cluster_resolver *resolver,
    const struct environment *environment, struct cluster_choice *ret_choice,
    struct cadre_error *error);

/* The same of the cluster that the environment tells of; all zero where it tells of none. */
cadre_status cluster_choice_find(const struct environment *environment,
    struct cluster_choice *ret_choice, struct cadre_error *error);

/* The member of that part; NULL: a job by itself. `choice` has parts. */
cadre_status cluster_choice_make(const struct cluster_choice *choice, enum cluster_part part,
    const struct environment *environment, struct cluster_member **ret_member,
    struct cadre_error *error);

/* Frees the parts, and leaves it all zero; the member is somebody's. */
void cluster_choice_clear(struct cluster_choice *choice);

#endif
