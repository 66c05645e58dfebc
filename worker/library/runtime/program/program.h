/* SPDX-License-Identifier: Apache-2.0
 * What cadre_init has found, and the session it opened: this process is one task of one job. */
#ifndef CADRE_RUNTIME_PROGRAM_H
#define CADRE_RUNTIME_PROGRAM_H

#include "cadre/checkpoint.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/cluster/cluster_member.h"
#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/task/session.h"

/* Reads the environment and finds out which task this process is: of a daemon, to whose socket it
 * connects, of a cluster, or of none. Once. */
cadre_status program_begin(struct cadre_error *error);

/* NULL before program_begin. */
const struct environment *program_environment(void);

/* The cluster that the program is a task of; NULL: of none. */
const struct cluster_member *program_cluster(void);

/* The program is a task of that cluster, whatever it was of before; copied. While it has no
 * strategy. A cluster with ps tasks is a ps job, if it can be one, until program_choose_part. */
cadre_status program_set_cluster(const cadre_cluster_resolver *resolver, struct cadre_error *error);

/* The program's own settings of its checkpoints, copied. While it has no strategy; once:
 * FAILED_PRECONDITION. */
cadre_status program_set_checkpoints(
    const cadre_checkpoint_options *options, struct cadre_error *error);

/* The strategy, or what else the program becomes, takes this part of its cluster. Without a cluster
 * with ps tasks, and after the strategy, it changes nothing. Errors as of cluster_member_open. */
cadre_status program_choose_part(enum cluster_part part, struct cadre_error *error);

/* Whether a strategy may still choose which tasks of a cluster with ps tasks are its job. */
bool program_has_ps_cluster(void);

/* This task in the names of its devices: of a job by its slot, which it keeps. */
struct device_host program_host(void);

/* Whether a strategy has had that cluster's session. */
bool program_cluster_joined(void);

/* The session for a new strategy, which becomes the caller's: the one that program_begin connected,
 * a new one with the other tasks of the cluster, for which it waits, or a new coordinator inside
 * the program. It has this task's slot and incarnation. A job of several tasks has one session:
 * FAILED_PRECONDITION after that, because the job's end was reported by it. */
cadre_status program_take_session(struct session **ret_session, struct cadre_error *error);

#endif
