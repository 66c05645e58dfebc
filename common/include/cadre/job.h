/* SPDX-License-Identifier: Apache-2.0
 * A job as its coordinator has it: states, tasks, progress. What the calls of cadre/client.h give;
 * texts and lists live as long as the result that they are in. */
#ifndef CADRE_JOB_H
#define CADRE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a job is; the last four are final. */
typedef enum cadre_job_state {
    CADRE_JOB_QUEUED = 1, /* waits for workers */
    CADRE_JOB_STARTING,   /* placed; not all tasks run yet */
    CADRE_JOB_RUNNING,
    CADRE_JOB_ENDING, /* its tasks have exited; logs and outputs are collected */
    CADRE_JOB_SUCCEEDED,
    CADRE_JOB_FAILED,
    CADRE_JOB_CANCELLED,
    CADRE_JOB_PREEMPTED /* its message names what was saved and how it goes on */
} cadre_job_state;

/* Where a task of a job is. */
typedef enum cadre_task_state {
    CADRE_TASK_WAITING = 1, /* not placed */
    CADRE_TASK_STARTING,
    CADRE_TASK_RUNNING,
    CADRE_TASK_EXITED,
    CADRE_TASK_LOST /* its worker was lost; how it ended is not recorded */
} cadre_task_state;

/* "queued", "running" and so on; "unknown (9)" for a state that this version of the library has no
 * name for: a coordinator of a later version may send one. Such a text is valid until the thread's
 * seventh next call. */
CADRE_API const char *cadre_job_state_name(cadre_job_state state);

/* The name of a task's state, as cadre_job_state_name() has it of a job's. */
CADRE_API const char *cadre_task_state_name(cadre_task_state state);

/* Whether the job has ended: no value of it changes any more. False for a state without a name
 * here: cadre_client_watch() ends with the job's end in any case. */
CADRE_API bool cadre_job_state_is_final(cadre_job_state state);

/* A number that the program reported, under its name. */
typedef struct cadre_job_metric {
    const char *name;
    double value;
} cadre_job_metric;

/* How far a job is, as its chief last reported it. */
typedef struct cadre_job_progress {
    const char *stream; /* the dataset's name */
    uint64_t epoch;     /* from 0 */
    uint64_t epochs;    /* 0: unknown */
    uint64_t step;      /* done in this epoch */
    uint64_t steps;     /* of an epoch; 0: unknown */
    double samples_per_s;
    double left_s; /* time left; negative: unknown */
    const cadre_job_metric *metrics;
    size_t metric_count;
} cadre_job_progress;

/* A file of a dataset that is shared out by files. */
typedef struct cadre_job_file {
    const char *name; /* without its folder */
    bool is_read;     /* to its end; else `rank` reads it */
    uint32_t rank;
    uint64_t read;  /* samples consumed, all tasks that ever read it */
    uint64_t total; /* samples it holds; 0: not known before its end */
} cadre_job_file;

/* Which task reads which file of a distributed dataset, as the chief last reported it. */
typedef struct cadre_job_shards {
    const char *dataset;
    const char *policy;          /* "FILE", "DATA", "OFF", "HINT", "FUNCTION" */
    uint64_t epoch;              /* from 0 */
    uint64_t step;               /* done in this epoch */
    uint32_t readers;            /* tasks that share it */
    uint64_t file_count;         /* 0: it is not shared out by files */
    uint64_t files_read;         /* to their end */
    const cadre_job_file *files; /* some of them: first those that are not read yet */
    size_t shown;
} cadre_job_shards;

/* How far a task is with what it lacks before its program can go on. */
typedef struct cadre_job_fetch {
    /* "files", "checkpoint": they come from the coordinator. "check": the checkpoint is in a shared
     * folder, and is checked there. "read": the program reads it. "": nothing is fetched. */
    const char *what;
    uint64_t done_bytes; /* at most whole_bytes */
    uint64_t whole_bytes;
    uint64_t elapsed_us; /* since it began: the rate is done_bytes in this time */
} cadre_job_fetch;

/* What a task or a host uses, as its worker daemon measured it last, at most some seconds ago. A
 * value whose flag is false is 0, and not known: the host does not tell, or it was not measured
 * yet. */
typedef struct cadre_usage {
    bool has_cpu;
    uint32_t cpu_thousandths; /* of one CPU over the last second or so, all processes together: 1500
                                 are one and a half */
    bool has_memory;
    uint64_t memory_bytes; /* held now: of a task in a control group what counts against
                              memory_bytes of its job; else in RAM, and what its processes share is
                              counted in each */
    bool has_memory_peak;
    uint64_t memory_peak_bytes; /* the most that was held; never of a host */
    bool has_gpu;
    uint32_t gpu_percent; /* of the time in which the GPUs that it has ran a kernel, of whatever
                             program: their mean */
    bool has_gpu_memory;
    uint64_t gpu_memory_bytes; /* used on those GPUs, by whatever program */
} cadre_usage;

/* A process of the job. */
typedef struct cadre_job_task {
    uint32_t task;        /* 0 to workers - 1 */
    uint64_t incarnation; /* of its process; 0: never placed */
    cadre_task_state state;
    const char *worker; /* name of the worker; "": not placed */
    uint32_t pid;       /* 0: not running yet */
    bool has_exit;      /* the process has ended, and it is known how */
    int32_t exit_code;  /* when exit_signal is 0 */
    int32_t exit_signal;
    const char *exit_text; /* why it did not start, or its last line on standard error; "" */
    bool uses_cadre;       /* it called cadre_init */
    uint64_t log_bytes;    /* size of its log so far */
    const char *type; /* of a job with parameter servers: "chief", "worker", "ps", "evaluator"; else
                         "" */
    uint32_t index;   /* among those of its type, from 0 */
    cadre_job_fetch fetch;
    cadre_usage usage; /* while its process runs */
    /* So long others waited for it so far, in waits of more than a second each, and since the
     * coordinator was started. */
    uint64_t waited_us;
} cadre_job_task;

/* The task that others wait for while a step does not end. */
typedef struct cadre_job_wait {
    uint32_t task;
    const char *worker;
    uint64_t waited_us; /* since the last step ended; 0: none waits for over a second, or it is not
                           known for which task */
} cadre_job_wait;

/* A job, as the coordinator has it. */
typedef struct cadre_job {
    uint64_t id; /* from 1 */
    const char *name;
    const char *program;
    cadre_job_state state;
    cadre_status code;   /* of a job that ended: OK, CANCELLED, or why it failed; when a task could
                          * not start, why that was (NOT_FOUND: a file of the job, its program's
                          * interpreter ...) */
    const char *message; /* one sentence: why it failed, what it waits for; may be "" */
    uint32_t workers;    /* tasks, of whatever type */
    uint32_t replicas;   /* of each; 0: all local devices */
    int32_t priority;
    uint64_t submitted_us; /* Unix time by the coordinator's clock; 0: not yet */
    uint64_t started_us;
    uint64_t ended_us;
    uint64_t position;      /* steps committed */
    uint64_t generation;    /* number of its newest generation */
    const char *checkpoint; /* newest one, as a path of its outputs; "": none */
    int32_t exit_code;      /* 0 for success, the first failed task's, 128 + signal */
    bool has_progress;      /* else `progress` is zeroed */
    cadre_job_progress progress;
    const cadre_job_task *tasks; /* none in a cadre_job_list */
    size_t task_count;
    uint32_t workers_min; /* the fewest tasks that it trains with; equals `workers`: not elastic */
    uint32_t roster;      /* tasks that train now */
    uint32_t restarts;    /* how often it went on after tasks failed by themselves */
    const cadre_job_shards *shards; /* of each dataset that was reported; none in a list */
    size_t shards_count;
    /* Of a job with parameter servers, whose `workers` counts all tasks; else 0. */
    uint32_t worker_tasks; /* besides the chief, the servers and the evaluator */
    uint32_t servers;
    uint32_t evaluators;
    bool has_evaluation; /* what the evaluator last reported; else `evaluation` is zeroed */
    cadre_job_progress evaluation;
    /* What it may use, as it was submitted; 0: no limit. */
    uint64_t memory_bytes;
    uint32_t cpu_thousandths;
    uint32_t pids;
    uint64_t time_limit_us;
    /* The newest position whose states were found equal on all replicas, and their digest; digest
     * 0: none was compared. */
    uint64_t verified_position;
    uint64_t verified_digest;
    cadre_job_wait wait;
    /* As it was submitted: what its tasks leave goes to OUTPUTS_FOLDER/<id>, in an object store;
     * "": to the coordinator. */
    const char *outputs_folder;
} cadre_job;

/* The result of cadre_client_jobs(). */
typedef struct cadre_job_list {
    const cadre_job *jobs; /* newest first */
    size_t count;
    bool more; /* there are older ones */
} cadre_job_list;

#ifdef __cplusplus
}
#endif
#endif
