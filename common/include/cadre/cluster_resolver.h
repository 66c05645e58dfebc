/* SPDX-License-Identifier: Apache-2.0
 * Which tasks a cluster has, and which of them this process is: tf.train.ClusterSpec and
 * tf.distribute.cluster_resolver.
 *
 * A program seldom uses this header. Under a daemon the daemon supplies all of it; started by hand
 * the program reads TF_CONFIG, or what Slurm sets for the tasks of `srun`, and several such
 * processes find each other and train as one job (cadre/program.h says how). With
 * cadre_cluster_resolver_use a program sets its cluster itself.
 *
 * Of a resolver's questions there is none about a master, an rpc layer or an environment, for a job
 * here has no session that a master holds, and gRPC is the only layer.
 *
 * A spec and a resolver are the caller's to release, also while others made of them live: what is
 * given to a function is copied. Texts that are returned are valid until their owner is released
 * or changed. All functions may be called in any context; one object is used by one thread at a
 * time. Common errors: INVALID_ARGUMENT names what is wrong in the input and what should be there;
 * RESOURCE_EXHAUSTED: more than the limits below, or no memory. */
#ifndef CADRE_CLUSTER_RESOLVER_H
#define CADRE_CLUSTER_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A task id that is not given, or not known. */
#define CADRE_TASK_NONE UINT32_MAX

#define CADRE_CLUSTER_TEXT_BYTES_MAX (1024 * 1024) /* of a text that describes a cluster */
#define CADRE_CLUSTER_TASKS_MAX      16384         /* of all jobs of a cluster together */
#define CADRE_CLUSTER_JOBS_MAX       64            /* of a cluster */
#define CADRE_CLUSTER_NAME_BYTES     128           /* of a job's name, terminated */
#define CADRE_CLUSTER_ADDRESS_BYTES  256           /* of a task's address, terminated */

/* --- the tasks of a cluster (tf.train.ClusterSpec) --- */

/* Named jobs, each with the addresses of its tasks by index. A job is a list, with the indices 0 to
 * n - 1, or indexed, with gaps. Any name is a job's here; what a training cluster may have is
 * checked by the questions below. */
typedef struct cadre_cluster_spec cadre_cluster_spec;

/* Makes a spec of JSON: {"worker": ["host:port", ...], "ps": {"0": "host:port", "3": "host:port"}};
 * of "{}" one without tasks. Keys that stand twice are INVALID_ARGUMENT. */
CADRE_API cadre_status cadre_cluster_spec_from_json(
    const char *text, cadre_cluster_spec **ret_spec);

/* Adds a task, to a job that is made when there is none. ALREADY_EXISTS when the index is taken. */
CADRE_API cadre_status cadre_cluster_spec_add_task(
    cadre_cluster_spec *spec, const char *job, uint32_t index, const char *address);

/* Frees the description and the texts in it. NULL is allowed. */
CADRE_API void cadre_cluster_spec_release(cadre_cluster_spec *spec);

/* How many jobs it has. */
CADRE_API size_t cadre_cluster_spec_num_jobs(const cadre_cluster_spec *spec);

/* The name of job `at`, from 0, in the order in which they were given; NULL past the end. The
 * spec's. (ClusterSpec.jobs.) */
CADRE_API const char *cadre_cluster_spec_job(const cadre_cluster_spec *spec, size_t at);

/* How many tasks the job has; 0 for one that is not there. (ClusterSpec.num_tasks, without its
 * error for unknown jobs.) */
CADRE_API uint32_t cadre_cluster_spec_num_tasks(const cadre_cluster_spec *spec, const char *job);

/* The index of the job's task `at`, from 0, in ascending order; CADRE_TASK_NONE past the end.
 * (ClusterSpec.task_indices.) */
CADRE_API uint32_t cadre_cluster_spec_task_index(
    const cadre_cluster_spec *spec, const char *job, uint32_t at);

/* The address of a task, as it was given; the spec's. NOT_FOUND: there is no such job, or no task
 * of that index in it. (ClusterSpec.task_address.) */
CADRE_API cadre_status cadre_cluster_spec_task_address(
    const cadre_cluster_spec *spec, const char *job, uint32_t index, const char **ret_address);

/* --- questions about a training cluster (tf.distribute's multi_worker_util) --- */

/* Checks that the cluster is one of training: its jobs are chief (at most one task), worker, ps and
 * evaluator (at most one task; it may be absent from the spec of its own cluster). INVALID_ARGUMENT
 * when the spec has another job or two of those, when the task's type is none of them or not in the
 * spec, or when its id is not less than the number of tasks of its job. A type that is NULL or ""
 * is a task of no cluster. All questions check that first. */
CADRE_API cadre_status cadre_cluster_spec_validate(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t task_id);

/* Whether a task is the chief of its cluster: a chief and an evaluator are; without a chief worker
 * 0 is; a ps is not. (is_chief.) */
CADRE_API cadre_status cadre_cluster_is_chief(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t task_id, bool *ret_is_chief);

/* How many tasks train: the chief and the workers; for an evaluator the number of evaluators.
 * INVALID_ARGUMENT for a ps. (worker_count.) */
CADRE_API cadre_status cadre_cluster_worker_count(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t *ret_count);

/* The number of a task among those that train: 0 for the chief, after it the workers; for an
 * evaluator its own id. INVALID_ARGUMENT for a ps. (id_in_cluster.) */
CADRE_API cadre_status cadre_cluster_id_in_cluster(
    const cadre_cluster_spec *spec, const char *task_type, uint32_t task_id, uint32_t *ret_id);

/* The name of the task that leads collectives: "/job:chief/replica:0/task:0", or of worker 0 where
 * there is no chief; "" for an evaluator and for an empty spec. A constant. (collective_leader.) */
CADRE_API cadre_status cadre_cluster_collective_leader(const cadre_cluster_spec *spec,
    const char *task_type, uint32_t task_id, const char **ret_leader);

/* --- resolvers (tf.distribute.cluster_resolver) --- */

/* Where a spec comes from, and which task of it this process is. What a resolver read stays as it
 * was when the resolver was made. */
typedef struct cadre_cluster_resolver cadre_cluster_resolver;

/* A resolver of TF_CONFIG. (TFConfigClusterResolver.) `text`: a TF_CONFIG document; NULL: the
 * environment variable, which means an empty cluster when it is not set.
 *
 *     {"cluster": {"chief": ["h0:4000"], "worker": ["h1:4000", "h2:4000"]},
 *      "task": {"type": "worker", "index": 0}}
 *
 * All keys are optional and others are passed over. To be another task than the document says:
 * cadre_cluster_resolver_set_task. */
CADRE_API cadre_status cadre_cluster_resolver_tf_config(
    const char *text, cadre_cluster_resolver **ret_resolver);

/* One job of a Slurm step, and how many of its tasks it has. */
typedef struct cadre_slurm_job {
    const char *name;
    uint32_t tasks;
} cadre_slurm_job;

/* How the tasks of a Slurm step are numbered. Zeroed: the defaults. (SlurmClusterResolver.) */
typedef struct cadre_slurm_options {
    const cadre_slurm_job *jobs; /* in the order of Slurm's ranks; NULL: all are "worker" */
    size_t job_count;
    uint32_t port_base;      /* of the first task on a host, the next has one more; 0: 8888 */
    uint32_t tasks_per_node; /* on every host; 0: as Slurm says */
    uint32_t gpus_per_node;  /* 0: SLURM_GPUS_ON_NODE, or none */
    uint32_t gpus_per_task;  /* 0: gpus_per_node shared by the tasks of the fullest host */
} cadre_slurm_options;

/* A resolver of the variables that `srun` sets, those of the step first: SLURM_PROCID,
 * SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_STEP_NODELIST or SLURM_JOB_NODELIST
 * ("n[01-03,7],gpu1"), SLURM_STEP_TASKS_PER_NODE or SLURM_TASKS_PER_NODE ("2(x3),1"). `options` may
 * be NULL. FAILED_PRECONDITION when one that is needed is not set; INVALID_ARGUMENT when one is
 * malformed, when they do not fit each other or the jobs, or when tasks take more GPUs than a host
 * has. */
CADRE_API cadre_status cadre_cluster_resolver_slurm(
    const cadre_slurm_options *options, cadre_cluster_resolver **ret_resolver);

/* A resolver of a spec and which task of it this process is (SimpleClusterResolver); NULL and
 * CADRE_TASK_NONE where that is not known. */
CADRE_API cadre_status cadre_cluster_resolver_simple(const cadre_cluster_spec *spec,
    const char *task_type, uint32_t task_id, cadre_cluster_resolver **ret_resolver);

/* A resolver of the jobs of several others. (UnionResolver.) A job that all of them have as a list
 * has their addresses one after the other; one that any has with gaps is indexed by all, and an
 * index that stands twice is ALREADY_EXISTS. Type and id are those of the first that has them, GPUs
 * those of the first. */
CADRE_API cadre_status cadre_cluster_resolver_union(const cadre_cluster_resolver *const resolvers[],
    size_t count, cadre_cluster_resolver **ret_resolver);

/* A resolver of the job that runs: the workers of the open strategy, by their rank, with the
 * addresses at which their replicas meet; where TF_CONFIG, Slurm or the program gave the cluster,
 * that one. An empty cluster for a program that is the whole job. FAILED_PRECONDITION before the
 * strategy. */
CADRE_API cadre_status cadre_cluster_resolver_cadre(cadre_cluster_resolver **ret_resolver);

/* Frees the resolver and what it lent. NULL is allowed. */
CADRE_API void cadre_cluster_resolver_release(cadre_cluster_resolver *resolver);

/* The tasks of the cluster; the resolver's. (ClusterResolver.cluster_spec.) */
CADRE_API const cadre_cluster_spec *cadre_cluster_resolver_spec(
    const cadre_cluster_resolver *resolver);

/* The type of this task, the name of its job; NULL where it is not known. The resolver's.
 * (ClusterResolver.task_type.) */
CADRE_API const char *cadre_cluster_resolver_task_type(const cadre_cluster_resolver *resolver);

/* The index of this task in its job; CADRE_TASK_NONE where it is not known.
 * (ClusterResolver.task_id.) */
CADRE_API uint32_t cadre_cluster_resolver_task_id(const cadre_cluster_resolver *resolver);

/* Changes which task this process is. (The setters of the class.) */
CADRE_API cadre_status cadre_cluster_resolver_set_task(
    cadre_cluster_resolver *resolver, const char *task_type, uint32_t task_id);
/* Which GPUs of its host are this task's, under Slurm: *ret_count from *ret_first on, none
 * elsewhere. (What TensorFlow sets CUDA_VISIBLE_DEVICES to; num_accelerators is *ret_count.) */
CADRE_API void cadre_cluster_resolver_gpus(
    const cadre_cluster_resolver *resolver, uint32_t *ret_first, uint32_t *ret_count);

/* Makes the next strategy one of this cluster, whatever TF_CONFIG and Slurm say: the
 * chief and the workers of it are one job, and with parameter servers all of it is
 * (cadre/program.h). After
 * cadre_init, before the strategy: else FAILED_PRECONDITION, as under a daemon, whose job is given.
 * INVALID_ARGUMENT as of cadre_cluster_spec_validate. Cross-replica context.
 * (MultiWorkerMirroredStrategy(cluster_resolver=...).) */
CADRE_API cadre_status cadre_cluster_resolver_use(const cadre_cluster_resolver *resolver);

#ifdef __cplusplus
}
#endif
#endif
