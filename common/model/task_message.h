/* SPDX-License-Identifier: Apache-2.0
 * What a task and the coordinator say to each other (protocol section 2). The worker daemon relays;
 * towards the coordinator it folds the arrivals of its local tasks into one (agent_arrived in
 * agent_message.h). Watermarks are cumulative: the newest wins and a resend is harmless. Position p
 * = number of ledger steps applied: the state contains steps 0..p-1. */
#ifndef CADRE_MODEL_TASK_MESSAGE_H
#define CADRE_MODEL_TASK_MESSAGE_H

#include "common/model/job.h"

/* Of the frames between a program and its daemon; both sides must be equal. Checked first, on both
 * sides. */
#define TASK_FRAME_VERSION 1

#define POSITION_NONE UINT64_MAX

/* Which samples a run of ledger steps consumes: from position `begin` on, step i of (stream, epoch)
 * is position first + i, until the program turns to something else. It may turn back: then another
 * run of the same epoch begins. A stream is a distributed dataset, numbered in order of creation
 * from 1; stream 0 has no samples (a cadre_run without a batch, one position each). All tasks must
 * say the same for the same positions. */
struct cursor {
    uint32_t stream;
    uint64_t epoch;
    uint64_t first; /* position of the epoch's step 0, as if all before were of it; at most begin */
    uint64_t begin; /* position where the run begins; of two runs the later one begins later */
    uint64_t steps; /* of this epoch; 0: not known yet */
};

enum report_reason {
    REPORT_HALT = 1,   /* reached halt_at in order */
    REPORT_ABORT,      /* told to abort */
    REPORT_PEER_ERROR, /* a collective failed */
    REPORT_FINISHED    /* the program called cadre_finish at this position */
};

enum halt_kind { HALT_NONE = 0, HALT_REGROUP, HALT_STOP, HALT_END };

/* ---- task -> coordinator ---- */

/* First on every connection: adopt or reset. Values of now. */
struct task_hello {
    uint32_t frame_version;
    const char *library_version;
    uint32_t pid;
    uint32_t replicas;            /* local replicas it will run */
    const char *mesh_address;     /* of its mesh listener */
    struct generation generation; /* number 0: a joiner, it was in none */
    uint64_t position;
    bool clean;
    uint64_t released;
    uint64_t arrived;
    bool frozen;
    enum report_reason reason; /* when frozen */
};

/* Batches of steps below up_to are in hand; steps below applied are applied. The first arrival of
 * each run is told, also when up_to does not rise: what was claimed of a run that is left belongs
 * to those that follow. */
struct task_arrive {
    struct generation generation;
    uint64_t up_to;
    uint64_t applied;
    /* The program has begun step wanted - 1: it takes at least so many steps. At most one more than
     * are released; 0: nothing is said. */
    uint64_t wanted;
    struct cursor cursor; /* of the run that the program stands in: it began it */
    uint64_t digest[2];   /* sum over the ids fed to this task's replicas in steps below applied */
};

/* Only when frozen: on abort, on a peer's error, at halt_at, at the end. */
struct task_report {
    struct generation generation;
    uint64_t position;
    bool clean;
    enum report_reason reason;
    const char *text; /* what failed; "" for orderly ones */
};

/* A checkpoint part is durable: after fsync of the file and its folder. */
struct task_part {
    struct generation generation;
    uint64_t position;
    const char *path; /* below the output folder */
    uint64_t size_bytes;
    uint8_t sha256[LIMIT_SHA256_BYTES];
};

enum task_up_type {
    TASK_UP_HELLO = 1,
    TASK_UP_ARRIVE,
    TASK_UP_REPORT,
    TASK_UP_PART,
    TASK_UP_PROGRESS /* for people; the daemon forwards the newest */
};

struct task_up {
    enum task_up_type type;
    union {
        struct task_hello hello;
        struct task_arrive arrive;
        struct task_report report;
        struct task_part part;
        struct progress progress;
    };
};

/* ---- coordinator -> task ---- */

struct roster_entry {
    uint32_t slot; /* the index in the roster is the rank */
    uint64_t incarnation;
    uint32_t replicas;
    const char *mesh_address;
};

/* A new generation. The task finds itself by its slot and incarnation. */
struct task_plan {
    struct generation generation;
    const struct roster_entry *roster;
    size_t roster_count;
    uint64_t resume; /* position; what was admitted at or beyond it is admitted again */
    uint32_t source; /* rank that sends its state to those not at `resume` */
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    uint64_t checkpoint_at; /* POSITION_NONE: none */
    uint64_t halt_at;       /* POSITION_NONE: none */
    enum halt_kind halt_kind;
};

/* Full state, never a delta: sent whenever any part changes. */
struct task_release {
    struct generation generation;
    uint64_t up_to;
    uint64_t checkpoint_at;
    uint64_t halt_at;
    enum halt_kind halt_kind;
};

enum task_down_type {
    TASK_DOWN_PLAN = 1,
    TASK_DOWN_RELEASE,
    TASK_DOWN_ABORT,      /* freeze and report */
    TASK_DOWN_RESET,      /* state is void; exit, a new incarnation is started */
    TASK_DOWN_BYE,        /* exit permission */
    TASK_DOWN_SUPERSEDED, /* exit without writing anything */
    TASK_DOWN_REFUSED     /* hello not accepted: code and text say why */
};

struct task_refused {
    cadre_status code;
    const char *text;
};

struct task_down {
    enum task_down_type type;
    struct generation generation; /* of abort and bye */
    union {
        struct task_plan plan;
        struct task_release release;
        struct task_refused refused;
        const char *reason; /* of abort: the one sentence about who died, for the program's error */
    };
};

#endif
