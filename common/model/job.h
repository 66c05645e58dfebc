/* SPDX-License-Identifier: Apache-2.0
 * What a client submits (job_spec) and what it receives (job_info, task_info, worker_info,
 * progress). Strings and arrays are borrowed: they are valid as long as the arena or object that
 * the struct came with. */
#ifndef CADRE_MODEL_JOB_H
#define CADRE_MODEL_JOB_H

#include <stddef.h>

#include "cadre/status.h"
#include "common/pure/log_mark.h"
#include "common/model/ps_job.h"
#include "common/model/gpus.h"
#include "common/model/ids.h"
#include "common/model/limits.h"

enum job_state {
    JOB_QUEUED = 1, /* waits for workers */
    JOB_STARTING,   /* placed; not all tasks run yet */
    JOB_RUNNING,
    JOB_ENDING, /* all tasks have ended or are being stopped; logs and outputs are collected */
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_PREEMPTED /* it had to leave its machines; its text says what of its state is saved */
};

/* What a preempted task and job exit with, as in TensorFlow; CADRE_EXIT_PREEMPTED of the runtime.
 */
#define JOB_EXIT_PREEMPTED 42

enum task_state {
    TASK_WAITING = 1, /* not placed */
    TASK_STARTING,
    TASK_RUNNING,
    TASK_EXITED,
    TASK_LOST /* its worker is lost; how it ended is not known */
};

/* What a job may use; of each of its tasks, but for the time. 0: no limit. */
struct job_limits {
    uint64_t memory_bytes;
    uint32_t cpu_thousandths; /* of one CPU */
    uint32_t pids;            /* processes and threads at one time */
    uint64_t time_limit_us;   /* since its first start */
};

static inline bool job_limits_any(const struct job_limits *limits)
{
    return limits->memory_bytes > 0 || limits->cpu_thousandths > 0 || limits->pids > 0 ||
           limits->time_limit_us > 0;
}

/* A file that travels by content, or an object that each worker daemon fetches itself. */
struct job_file {
    const char *name;                   /* relative path in the task's working folder */
    uint8_t sha256[LIMIT_SHA256_BYTES]; /* of an object no content's: see the .proto file */
    uint64_t size_bytes;
    bool executable;
    const char *url; /* "s3://bucket/key", "https://host/path"; "": it travels by content */
    /* Of an object, its ETag when the job was submitted, and then size_bytes is its size; "": the
     * submitter could not read it, or the store gives none. */
    const char *version;
};

static inline bool job_file_is_object(const struct job_file *file)
{
    return file->url != NULL && file->url[0] != '\0';
}

/* A published checkpoint: readable without the host that wrote it. */
struct checkpoint_ref {
    uint64_t position;
    /* It is in the job's checkpoint folder, or where `path` says; else its contents are at the
     * coordinator. */
    bool shared;
    /* Of the manifest: relative to the checkpoint folder, or the name it had; or "s3://..." */
    const char *path;
    uint64_t manifest_bytes;
    uint8_t manifest_sha256[LIMIT_SHA256_BYTES];
};

struct job_spec {
    const char *name;             /* for people; need not be unique */
    struct job_file program;      /* started as ./<name> in the working folder */
    const char *const *arguments; /* without argv[0] */
    size_t argument_count;
    const char *const *environment; /* "NAME=value" */
    size_t environment_count;
    const struct job_file *files;
    size_t file_count;
    uint32_t workers; /* tasks of the job; of an elastic one the most */
    /* Of a job with parameter servers: what its tasks are; workers is then ps_job_task_count, and
     * so is workers_min. */
    struct ps_job ps_job;
    uint32_t workers_min; /* the fewest that it trains with, 1 to workers; 0: `workers` */
    uint32_t replicas;    /* per task; 0: all local devices */
    const char *strategy; /* "" is the default of the program */
    int32_t priority;     /* higher first; FIFO within one */
    /* How often the job goes on after tasks failed by themselves (a status other than 0, a signal);
     * workers that are lost or drained are not counted. */
    uint32_t max_restarts;
    /* How long it waits with fewer than workers_min tasks before it fails; 0: the coordinator's
     * default. */
    uint64_t wait_us;
    /* A step that does not end for so long while others wait for one task: that task is replaced;
     * 0: the coordinator's default. */
    uint64_t stall_us;
    uint64_t checkpoint_every; /* steps between checkpoints; 0: only at the end and when asked */
    uint32_t checkpoints_kept; /* newest that are kept; 0: LIMIT_CHECKPOINTS_KEPT_DEFAULT */
    /* Absolute, seen by all workers, or "s3://bucket/key"; "": in the coordinator. */
    const char *checkpoint_folder;
    /* Goes on from the newest checkpoint of this job; 0: from the beginning. */
    struct job_id restore_from;
    uint64_t restore_step; /* not the newest, but that of this step; 0: the newest */
    /* Goes on from this checkpoint, of an object store, of any origin; then restore_from does not
     * count. */
    bool has_restore_checkpoint;
    struct checkpoint_ref restore_checkpoint;
    uint32_t gpus; /* that the slot of each task has at least; 0: any slot will do */
    struct job_limits limits;
    bool terminal; /* each task's standard output and error are one pseudo-terminal */
    /* "s3://bucket/key": what tasks leave is written there by their daemons, as
     * FOLDER/<job>/<slot>/<path>; "": in the coordinator. */
    const char *outputs_folder;
    /* Drawn by the client: a submission with the id of a job is that job's, repeated. */
    bool has_request_id;
    uint8_t request_id[LIMIT_REQUEST_ID_BYTES];
};

/* How a task's process ended. */
struct task_exit {
    int32_t code;                /* exit status, when signal is 0 */
    int32_t signal;              /* the signal that ended it, or 0 */
    char text[LIMIT_TEXT_BYTES]; /* why it did not start, or its last line on stderr; may be "" */
};

/* What a task lacks before its program can go on. */
enum fetch_kind {
    FETCH_NONE = 0,
    FETCH_FILES,      /* its program and files, from the coordinator */
    FETCH_CHECKPOINT, /* the checkpoint that it goes on from, from the coordinator */
    FETCH_CHECK,      /* that checkpoint is in a shared folder, and the daemon checks it there */
    FETCH_READ        /* that checkpoint, and the program reads it */
};

/* How much of it there is; for people, never for a decision. */
struct task_fetch {
    enum fetch_kind kind; /* FETCH_NONE: all zero */
    uint64_t done_bytes;
    uint64_t whole_bytes; /* that travel or are read */
    uint64_t elapsed_us;  /* since it began */
};

/* What a task or a host uses, as its worker daemon measured it; for people, never for a decision. A
 * value whose flag is false is 0, and not known. */
struct resource_usage {
    bool has_cpu;
    bool has_memory;
    bool has_memory_peak;
    bool has_gpu;
    bool has_gpu_memory;
    uint32_t cpu_thousandths; /* of one CPU, since the measurement before */
    uint32_t gpu_percent;     /* of the time: the mean of its GPUs, of all programs on them */
    uint64_t memory_bytes;
    uint64_t memory_peak_bytes; /* never of a host */
    uint64_t gpu_memory_bytes;  /* on its GPUs, of all programs on them */
};

static inline bool resource_usage_any(const struct resource_usage *usage)
{
    return usage->has_cpu || usage->has_memory || usage->has_memory_peak || usage->has_gpu ||
           usage->has_gpu_memory;
}

struct metric {
    const char *name;
    double value;
};

/* What the chief last reported; for people, never for a decision. */
struct progress {
    const char *stream; /* the dataset's name */
    uint64_t epoch;     /* from 0 */
    uint64_t epochs;    /* 0: unknown */
    uint64_t step;      /* steps of this epoch that are done */
    uint64_t steps;     /* steps of an epoch; 0: unknown */
    double samples_per_s;
    double left_s; /* time left; negative: unknown */
    const struct metric *metrics;
    size_t metric_count;
    struct task_fetch fetch; /* of any task that does not train yet: then all else is empty */
};

/* A file of a dataset that is shared out by files. */
struct shard_file {
    const char *name; /* without its folder */
    uint32_t rank;    /* of the task that reads it; SHARD_NO_TASK: it is read */
    uint64_t read;    /* samples consumed, of all tasks that ever read it */
    uint64_t total;   /* samples it holds; 0: not known before its end */
};

#define SHARD_NO_TASK UINT32_MAX

/* Which task reads which file of a distributed dataset, as the chief last reported; for people. */
struct shards_report {
    const char *name;
    const char *policy; /* "FILE", "DATA", ... */
    uint64_t epoch;
    uint64_t step;
    uint32_t readers; /* tasks that share it */
    uint64_t files;   /* of the dataset; 0: it is not shared out by files */
    uint64_t files_read;
    const struct shard_file *shown; /* the first that are not read yet, then others */
    size_t shown_count;
};

struct task_info {
    uint32_t slot;
    enum role role; /* of a ps job, and the index in it */
    uint32_t index;
    uint64_t incarnation;
    enum task_state state;
    const char *worker; /* name of the worker daemon; "" when not placed */
    uint32_t pid;
    bool has_exit;
    struct task_exit exit;
    bool uses_cadre; /* it has sent hello */
    uint64_t log_bytes;
    struct task_fetch fetch;
    struct resource_usage usage;
    uint64_t waited_us; /* so long others waited for it so far, each time for over a second */
};

/* A task that others have waited for, for over a second. */
struct job_wait {
    uint32_t slot;
    const char *worker; /* name of its daemon */
    uint64_t waited_us; /* since the last step ended; 0: none waits */
};

struct job_info {
    struct job_id id;
    const char *name;
    const char *program;
    enum job_state state;
    cadre_status code;   /* of a job that ended: OK, CANCELLED, or why it failed */
    const char *message; /* one sentence: why it failed, what it waits for, where its outputs are */
    uint32_t workers;
    uint32_t workers_min;
    uint32_t roster; /* members of its generation: tasks that train now */
    uint32_t restarts;
    uint32_t replicas;
    int32_t priority;
    uint64_t submitted_us; /* wall clock; 0: not yet */
    uint64_t started_us;
    uint64_t ended_us;
    uint64_t position; /* steps committed */
    /* The newest position whose states were found equal on all replicas; digest 0: none. */
    uint64_t verified_position;
    uint64_t verified_digest;
    uint64_t generation;
    const char
        *checkpoint;   /* newest published one, as a path below the job's output; "" when none */
    int32_t exit_code; /* what `cadre submit` exits with: 0 success, the first failed task's status,
                          128+signal */
    struct ps_job ps_job;
    struct job_limits limits;
    bool has_progress;
    struct progress progress;
    bool has_evaluation; /* what the evaluator of a ps job last reported */
    struct progress evaluation;
    struct job_wait wait;
    const struct task_info *tasks;
    size_t task_count;
    const struct shards_report *shards;
    size_t shards_count;
    const char *outputs_folder; /* as in the spec */
};

struct worker_info {
    struct worker_id id;
    const char *name;
    const char *host;
    const char *version;
    uint32_t slots;
    uint32_t slots_used;
    uint32_t cpus;
    uint64_t memory_bytes;
    bool draining;
    bool connected;
    const char *drained_by;  /* the client that drained it; "": none */
    const char *drained_why; /* its reason; "": none was given */
    bool expected;      /* it had tasks when the coordinator was started, and is not back yet */
    uint64_t joined_us; /* wall clock; 0: it is expected */
    struct gpus gpus;
    uint64_t certificate_ends_us; /* wall clock; 0: none, or not reported */
    struct resource_usage usage;  /* of its host */
};

/* A file that a job left in its output folder: "<slot>/<path>". */
struct output_info {
    const char *path;
    uint64_t size_bytes;
};

/* A piece of a task's output. */
struct log_chunk {
    struct job_id job;
    uint32_t slot;
    uint64_t offset; /* of the first byte in the task's log */
    const uint8_t *bytes;
    size_t size_bytes;
    bool end; /* nothing follows for this task */
    const struct log_mark *marks;
    size_t mark_count;
    uint64_t skipped_bytes; /* before these: of the other stream */
};

/* "queued" and so on: what people and --json see. */
const char *job_state_name(enum job_state state);
/* "waiting" and so on. */
const char *task_state_name(enum task_state state);
static inline bool job_state_is_final(enum job_state state)
{
    return state >= JOB_SUCCEEDED && state <= JOB_PREEMPTED; /* not one of a later coordinator */
}

#endif
