/* SPDX-License-Identifier: Apache-2.0
 * This program as one task of a cluster whose tasks are started by hand: which one, the addresses
 * of all, and the key that they authenticate each other with. */
#ifndef CADRE_RUNTIME_CLUSTER_MEMBER_H
#define CADRE_RUNTIME_CLUSTER_MEMBER_H

#include "worker/library/cluster/resolver.h"
#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/cluster/cluster_address.h"
#include "worker/library/runtime/cluster/cluster_greeting.h"

/* "task 1 (worker 0 at h1:4000)" */
#define CLUSTER_MEMBER_TEXT_BYTES (CADRE_CLUSTER_ADDRESS_BYTES + 64)

struct cluster_member {
    cadre_cluster_resolver *resolver; /* a copy */
    uint32_t member_id;               /* its id in the cluster: 0 runs the coordinator */
    uint32_t tasks;                   /* the chief and the workers; of a ps job all */
    uint32_t chiefs;                  /* 0 or 1 */
    struct ps_job ps_job;             /* CLUSTER_PS_JOB with ps tasks; its slots are member ids */
    enum role role;                   /* in the ps job; else NONE */
    struct cluster_address own;
    bool keyed;
    uint8_t key[GREETING_KEY_BYTES]; /* zeros without one */
    uint8_t cluster[GREETING_CLUSTER_BYTES];
    uint64_t wait_us;  /* for all tasks at the start */
    uint64_t grace_us; /* for a program in the stead of one that is lost */
};

/* Which tasks of a cluster with ps tasks are the job: its strategy decides. Of a cluster without
 * them both are the same. */
enum cluster_part {
    CLUSTER_PS_JOB, /* all, under one chief */
    CLUSTER_PEERS   /* the chief, if there is one, and the workers */
};

/* Whether the cluster has ps tasks. */
bool cluster_has_servers(const cadre_cluster_resolver *resolver);
/* FAILED_PRECONDITION when it has ps tasks, but lacks the other tasks that they require. */
cadre_status cluster_ps_job_check(
    const cadre_cluster_resolver *resolver, struct cadre_error *error);

/* Which task the resolver names this process. NULL when it is a job by itself: of an empty cluster
 * or one of one task, or the evaluator of one without ps tasks. INVALID_ARGUMENT for a cluster that
 * breaks the rules, UNAVAILABLE for a host that cannot be resolved, FAILED_PRECONDITION when the
 * tasks have no key, or the program is not of that part. The resolver stays the caller's. */
cadre_status cluster_member_open(const cadre_cluster_resolver *resolver, enum cluster_part part,
    const struct environment *environment, struct cluster_member **ret_member,
    struct cadre_error *error);
/* Frees it. Accepts NULL. */
void cluster_member_close(struct cluster_member *member);

/* The cluster of the environment: TF_CONFIG's, else that of Slurm's variables; NULL for
 * neither. The caller's. */
cadre_status cluster_find(const struct environment *environment,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error);

/* The address of a task as the cluster has it; borrowed from the member. */
const char *cluster_member_address(const struct cluster_member *member, uint32_t member_id);

/* The text that names a task in messages. */
const char *cluster_member_text(const struct cluster_member *member, uint32_t member_id,
    char ret_text[CLUSTER_MEMBER_TEXT_BYTES]);

/* --- cluster_choice.c: the tasks that may be the program's job, until its strategy decides --- */

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
