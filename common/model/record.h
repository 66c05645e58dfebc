/* SPDX-License-Identifier: Apache-2.0
 * What the coordinator records: what its core decides, each an action of a step. The engine makes
 * the records of a turn durable before it sends the turn's messages (protocol, section 4), and the
 * store keeps what a start of the coordinator needs of them. */
#ifndef CADRE_MODEL_RECORD_H
#define CADRE_MODEL_RECORD_H

#include "common/model/agent_message.h"

/* A published checkpoint. */
struct core_checkpoint {
    struct generation generation;
    uint64_t position;
    bool shared;
    uint64_t manifest_bytes;
    uint8_t manifest_sha256[LIMIT_SHA256_BYTES];
    uint64_t digest; /* of the state that it holds, as in struct verified; 0: not compared */
    char path[LIMIT_FILE_NAME_BYTES];
};

/* How a job ends. */
struct core_ending {
    enum job_state state; /* SUCCEEDED, FAILED, CANCELLED, PREEMPTED */
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
};

/* What the core uses of a job_spec. Where 0 stands for a default, the default is filled in, except
 * in wait_us and stall_us. */
struct core_job_spec {
    uint32_t tasks;     /* at most */
    uint32_t tasks_min; /* 1 to tasks */
    int32_t priority;
    uint32_t max_restarts;
    uint64_t wait_us;
    uint64_t stall_us;
    struct ps_job ps_job; /* then tasks and tasks_min are ps_job_task_count */
    uint32_t gpus;        /* that the slot of each task has at least, up to LIMIT_GPUS_PER_WORKER */
    uint64_t time_limit_us; /* since it was placed first; 0: none */
};

/* The newest checkpoint of a job that was found damaged. */
struct core_checkpoint_lost {
    uint64_t position; /* 0: none was */
    char why[LIMIT_TEXT_BYTES];
};

/* A drain of a worker, as a client ordered it. */
struct core_drained {
    char worker[LIMIT_NAME_BYTES];
    char who[LIMIT_NAME_BYTES]; /* ordered it */
    char why[LIMIT_NAME_BYTES]; /* "": no reason was given */
};

struct core_culprit {
    char worker[LIMIT_NAME_BYTES];
    uint32_t times; /* that a task on it had another state than most; in a record 0 removes it */
};

struct core_position { /* on the timeline of one generation */
    uint64_t number;   /* of the generation; 0: none */
    uint64_t position;
};

/* The numbers are those of entries of a log (ledger.proto): they stay. */
enum core_record_type {
    CORE_RECORD_JOB = 1, /* submitted; the engine adds the spec */
    CORE_RECORD_STARTED, /* placed: incarnations up to `incarnation_max` are given out; the engine
                            adds each task's slot, incarnation and worker by core_job_task; before
                            start is sent */
    CORE_RECORD_TASK,    /* one task is placed (again), before its start is sent */
    CORE_RECORD_PLAN, /* a generation, before its plan is sent; roster by core_job_member. It cuts
                         the ledger at `resume`: what is recorded of epochs that begin at or beyond
                         it is void, and pending controls are those that it restates */
    CORE_RECORD_CONTROL,     /* a halt, before the first release that carries it; NONE: lifted */
    CORE_RECORD_WATERMARK,   /* released up to; written before it is sent, its fsync may lag */
    CORE_RECORD_CONSUMED,    /* what is committed of an epoch; newest wins; its fsync may lag */
    CORE_RECORD_STREAM,      /* a dataset of the job */
    CORE_RECORD_END_OF_DATA, /* stream, epoch, steps; written before a release that reaches it */
    CORE_RECORD_CHECKPOINT,  /* published */
    CORE_RECORD_DONE,        /* final generation and position; before bye */
    CORE_RECORD_TASK_EXIT,   /* how a task ended; its fsync may lag until STOP_TASK is sent */
    CORE_RECORD_ENDING,    /* it is being stopped: what it will have ended as, unless done first */
    CORE_RECORD_ENDED,     /* final state, code, exit code and text of the job */
    CORE_RECORD_QUEUED,    /* again: nothing that was placed is left, nor a halt or an end; its
                              fsync may lag until FORGET_JOB is sent */
    CORE_RECORD_BACKED,    /* which copy of a server's variables counts; before MEMBERS */
    CORE_RECORD_DRAINED,   /* a client's drain of a worker; of no job */
    CORE_RECORD_UNDRAINED, /* it is over */
    CORE_RECORD_CHECKPOINT_LOST, /* a published one is damaged: the one before it counts */
    CORE_RECORD_ORIGIN, /* the checkpoint of another job that it goes on from is another one now */
    CORE_RECORD_PUBLISHED, /* sent as published, and may be lost */
    CORE_RECORD_DIVERGED,  /* the states differ, before the generation ends because of it */
    CORE_RECORD_CULPRIT,   /* how often a worker was one that had another state; of no job */
    CORE_RECORD_VERIFIED,  /* newest position found equal; its fsync may lag; a plan may void it */
    /* The engine's, of no step of the core: what is not kept any more, and its start. */
    CORE_RECORD_CHECKPOINT_DROPPED, /* a published one; no effect if it is not there */
    CORE_RECORD_FORGOTTEN,          /* a job that ended, with all its records */
    CORE_RECORD_TERM /* a start of the coordinator, of a higher number than all before; of no job */
};

struct core_record {
    enum core_record_type type;
    bool sync; /* fsync before any message of this turn is sent */
    struct job_id job;
    union {
        struct {
            struct core_job_spec spec;
            bool restores;
            struct core_checkpoint checkpoint;
        } submitted;
        uint64_t incarnation_max;
        struct {
            uint32_t slot;
            uint64_t incarnation;
            uint32_t attempts;
            uint64_t attempts_generation;
            uint64_t backed_by; /* this incarnation takes the server's variables over from it */
            char worker[LIMIT_NAME_BYTES];
        } task;
        struct {
            uint32_t slot;
            uint64_t incarnation;
            struct task_backed backed;
        } backed;
        struct {
            struct generation generation;
            struct generation parent;
            uint64_t resume;
            uint32_t restarts;
            bool restarted; /* no state was left: from the checkpoint, or from the beginning */
        } plan;
        struct {
            struct generation generation;
            uint64_t halt_at;
            enum halt_kind halt_kind;
            uint32_t halt_stream;
        } control;
        struct {
            struct generation generation;
            uint64_t up_to;
            struct cursor cursor; /* of position up_to - 1 */
        } watermark;
        struct {
            struct cursor cursor; /* of the epoch; begin: of its run */
            struct consumption consumption;
        } consumption;
        struct {
            uint32_t stream;
            uint64_t samples;
            bool shares;
            char name[LIMIT_NAME_BYTES];
        } stream;
        struct cursor end_of_data; /* steps is known */
        struct core_checkpoint checkpoint;
        struct core_checkpoint_lost lost;
        struct verified verified;
        struct core_position diverged, published;
        struct {
            struct generation generation;
            uint64_t position;
        } done;
        struct {
            uint32_t slot;
            uint64_t incarnation;
            enum task_state state; /* EXITED, or LOST: then only its text is set */
            struct task_exit exit;
        } task_exit;
        struct core_ending ended; /* of ENDING and ENDED */
        struct core_drained drained;
        struct core_culprit culprit;
        uint64_t dropped; /* the checkpoint's position */
        uint64_t start;   /* of TERM */
    };
};

#endif
