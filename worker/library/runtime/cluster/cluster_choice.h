/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a cluster that may be the program's job, until its strategy decides. */
#ifndef CADRE_RUNTIME_CLUSTER_CHOICE_H
#define CADRE_RUNTIME_CLUSTER_CHOICE_H

#include "worker/library/runtime/cluster/cluster_member.h"

struct cluster_choice {
    struct cluster_member *member; /* until it is taken over; NULL: a job by itself, or idle */
    cadre_cluster_resolver *ps_resolver; /* a cluster with ps tasks, to choose from; else NULL */
    bool idle_server;                    /* a ps of a cluster that lacks what ps tasks require */
    uint32_t index;                      /* of that one */
};

/* All of the cluster where that can be, else its chief and workers. Errors as of
 * cluster_member_open; without a chief or a worker the choice is empty. */
cadre_status cluster_choice_open(const cadre_cluster_resolver *resolver,
    const struct environment *environment, struct cluster_choice *ret_choice,
    struct cadre_error *error);

/* The same of the cluster in the environment; all zero where there is none. */
cadre_status cluster_choice_find(const struct environment *environment,
    struct cluster_choice *ret_choice, struct cadre_error *error);

/* The member of that part; NULL: a job by itself. `choice` has a ps_resolver. */
cadre_status cluster_choice_make(const struct cluster_choice *choice, enum cluster_part part,
    const struct environment *environment, struct cluster_member **ret_member,
    struct cadre_error *error);

/* Frees the resolver, and zeroes the choice; the member was taken over. */
void cluster_choice_clear(struct cluster_choice *choice);

#endif
