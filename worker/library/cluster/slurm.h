/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a step, from the variables that Slurm sets for them. */
#ifndef CADRE_WORKER_CLUSTER_SLURM_H
#define CADRE_WORKER_CLUSTER_SLURM_H

#include "worker/library/cluster/cluster_spec.h"

struct slurm_hosts {
    char **names; /* owned */
    size_t count;
};

/* Frees the names. */
void slurm_hosts_clear(struct slurm_hosts *hosts);

/* "n[01-03,7],gpu1" to n01 n02 n03 n7 gpu1: the numbers of a range are as wide as its first one. A
 * name may have several brackets; the last one runs fastest. INVALID_ARGUMENT names the fault;
 * RESOURCE_EXHAUSTED for more than CADRE_CLUSTER_TASKS_MAX names. The result is the caller's to
 * clear, also after an error. */
cadre_status slurm_hosts_expand(
    const char *text, struct slurm_hosts *ret_hosts, struct cadre_error *error);

/* "2(x3),1" to 2 2 2 1, as many as there are hosts: *ret_counts is the caller's to free. */
cadre_status slurm_counts_expand(
    const char *text, uint32_t **ret_counts, size_t *ret_count, struct cadre_error *error);

/* The values of the variables; NULL: not set. */
struct slurm_variables {
    const char *rank;     /* SLURM_PROCID */
    const char *tasks;    /* SLURM_STEP_NUM_TASKS, SLURM_NTASKS */
    const char *hosts;    /* SLURM_STEP_NODELIST, SLURM_JOB_NODELIST, SLURM_NODELIST */
    const char *per_host; /* SLURM_STEP_TASKS_PER_NODE, SLURM_TASKS_PER_NODE */
    const char *gpus;     /* SLURM_GPUS_ON_NODE */
};

/* Reads them from the environment, whose memory they borrow. */
struct slurm_variables slurm_variables_read(void);

/* Whether they are those of one task of several, though others of them may be missing: a program
 * that ignored them would train alone, as each of the others would. */
bool slurm_variables_several(const struct slurm_variables *variables);

/* The result for this process. */
struct slurm_task {
    cadre_cluster_spec *spec;
    char task_type[CADRE_CLUSTER_NAME_BYTES];
    uint32_t task_id;
    uint32_t gpus;      /* of each task */
    uint32_t gpu_first; /* of this one, on its host */
};

/* *ret_task's spec is the caller's to release; NULL after an error. */
cadre_status slurm_resolve(const struct slurm_variables *variables,
    const cadre_slurm_options *options, struct slurm_task *ret_task, struct cadre_error *error);

#endif
