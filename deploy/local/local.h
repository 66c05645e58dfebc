/* SPDX-License-Identifier: Apache-2.0
 * `cadre run`: a whole cluster in one process. The coordinator's engine with a store in memory and
 * one agent on one libuv loop; tasks are processes of this machine in the caller's working folder.
 * No daemon, no network but the mesh on loopback. */
#ifndef CADRE_LOCAL_LOCAL_H
#define CADRE_LOCAL_LOCAL_H

#include "common/base/error.h"
#include "common/base/port_range.h"
#include "common/model/job.h"

struct local_options {
    const char *program;          /* with a slash a path, else found by PATH */
    const char *const *arguments; /* without argv[0] */
    size_t argument_count;
    const char *const *environment; /* "NAME=value", added to the caller's own */
    size_t environment_count;
    uint32_t tasks;
    const char *strategy; /* NULL: the program's choice */
    /* Of a job with parameter servers, with the strategy of that name; tasks and tasks_min are then
     * ps_job_task_count. */
    struct ps_job ps_job;
    uint32_t replicas;  /* per task; 0: the program's default */
    const char *output; /* folder for the files of tasks, made if absent; each gets
                           <output>/<slot>. NULL: the working folder */
    uint64_t grace_us;  /* SIGTERM to SIGKILL when interrupted */
    uint32_t tasks_min; /* the fewest that the job trains with; 0: `tasks` */
    /* How often it goes on after tasks failed by themselves; a task that failed is started
     * again. */
    uint32_t max_restarts;
    uint64_t checkpoint_every; /* steps between checkpoints; 0: at the end and when the program
                                  requests one */
    uint32_t checkpoints_kept; /* 0: the default */
    /* Made if absent, or "s3://bucket/key"; NULL: the tasks' output folders. */
    const char *checkpoint_folder;
    struct port_range mesh_ports; /* where tasks listen on loopback; zeroed: any */
    /* GPUs for the tasks, of those that are visible here: "all", "none" or a number; NULL: all. */
    const char *gpus;
    /* Manifest of the checkpoint to go on from, or a folder of which the newest whole one is taken;
     * NULL: from the beginning. */
    const char *restore_path;
    bool terminal; /* each task's output is a pseudo-terminal */
    /* Steps first .. end - 1 are traced; of a plain program these are numbers of its collectives.
     * trace_end 0: none. */
    uint64_t trace_first;
    uint64_t trace_end;
};

struct task_spans;
struct task_values;
struct verify_generation;

struct local_watch {
    /* The bytes that a task wrote to stream 1 or 2. */
    void (*output)(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size);
    /* The job changed: progress, state. `info` is valid during the call. */
    void (*changed)(void *user, const struct job_info *info);
    /* What a task recorded, when steps are traced; valid during the call. May be NULL. */
    void (*spans)(void *user, struct task_ref task, uint32_t pid, const struct task_spans *spans);
    /* What a task reported, and the generations of the job up to now, in order; valid during the
     * call. `evaluates`: the task is the evaluator. False: the values do not count, and the task
     * sends those that do again. May be NULL. */
    bool (*values)(void *user, bool evaluates, const struct task_values *values,
        const struct verify_generation *generations, size_t generation_count);
    /* All generations of the job, at its end. May be NULL. */
    void (*generations)(
        void *user, const struct verify_generation *generations, size_t generation_count);
    /* Receives a warning for the user, before any task starts; may be NULL. */
    void (*warn)(void *user, const char *sentence);
};

/* Runs the job to its end and fills *ret_exit_code with what the caller should exit with
 * (job_info.exit_code) and ret_message with the one sentence about its end (may be ""). SIGINT,
 * SIGTERM and SIGHUP cancel the job in order, unless the caller ignores them; a second one ends it
 * at once, with CANCELLED. SIGPIPE is ignored from here on, and the process has no other children
 * meanwhile (worker/host/agent). When this process is killed, so are its tasks. Errors before
 * anything was started: INVALID_ARGUMENT (tasks, gpus, no manifest), DATA_LOSS (the checkpoint, or
 * all in the folder, are damaged), FAILED_PRECONDITION (fewer GPUs than requested), NOT_FOUND (no
 * such program, no such file), PERMISSION_DENIED, RESOURCE_EXHAUSTED. */
cadre_status local_run(const struct local_options *options, const struct local_watch *watch,
    void *user, int *ret_exit_code, char ret_message[LIMIT_TEXT_BYTES], struct cadre_error *error);

#endif
