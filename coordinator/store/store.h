/* SPDX-License-Identifier: Apache-2.0
 * Where the ledger is durable: one table of functions, two peers (SQLite for the daemon, memory for
 * the embedded coordinator and for tests; the memory peer loses its unsynced tail on demand).
 *
 * A commit is one transaction: all of its records or none. With `sync` it is on disk when the call
 * returns, with all commits before it; without, it survives the death of the process, but that of
 * the machine only once a following one is synced. A machine that died leaves always a prefix.
 * INTERNAL: a record of a job that the store does not have, or a duplicate. Nothing is written
 * beside commits: a store that gets the same commits has the same rows.
 *
 * The store of one of several coordinators is a copy of the log that they share: it gets the
 * entries of that log through `apply`, each with its position, and nothing through `commit`. */
#ifndef CADRE_COORDINATOR_STORE_H
#define CADRE_COORDINATOR_STORE_H

#include "common/base/error.h"
#include "common/model/history.h"
#include "common/model/term.h"
#include "coordinator/core/core.h"

/* Of the tables; a state directory of a newer version is refused, an older one is migrated. */
#define STORE_VERSION 8

#define STORE_SECRET_BYTES 32
#define STORE_HASH_BYTES   32

/* Of an entry of a shared log. */
struct store_position {
    uint64_t index; /* 0: no entry */
    uint64_t term;
    uint8_t hash[STORE_HASH_BYTES]; /* over all entries up to this one */
};

/* The cluster whose coordinators share a log. */
struct store_cluster {
    uint64_t id_high, id_low;       /* both 0: none is known */
    uint64_t etcd_id;               /* the number that etcd has given itself */
    uint64_t term_seen;             /* the highest term of a leader */
    uint8_t hash[STORE_HASH_BYTES]; /* of the log without entries */
    uint8_t secret[STORE_SECRET_BYTES];
};

/* The placement of a task, or a member of a roster. */
struct store_placement {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t attempts;            /* of the slot ... */
    uint64_t attempts_generation; /* ... in the generation of this number */
    uint64_t backed_by;
    const char *worker;
};

/* A record of the core and the shell's additions to it; or an event of the history of `job`, which
 * gets the next number of that job. Everything is borrowed for the call. */
struct store_record {
    const struct core_record *record;  /* NULL: it is an event */
    const struct history_event *event; /* without its number */
    struct job_id job;                 /* of the event */
    uint64_t wall_us;                  /* when: of submitted, started, plan, ended */
    const void *spec;                  /* of CORE_RECORD_JOB: the packed job_spec */
    size_t spec_bytes;
    const struct store_placement *placements; /* of CORE_RECORD_STARTED and of CORE_RECORD_PLAN (by
                                         rank; without the worker) */
    size_t target_count;
    uint64_t committed; /* of CORE_RECORD_ENDING: every member had applied so much */
};

/* A generation of a job: its part of the ledger's timeline. It owns the positions from its resume
 * to that of the next. */
struct store_plan {
    struct generation generation;
    struct generation parent;
    uint64_t resume;
    bool restarted;
    uint32_t members;
    uint64_t planned_us; /* wall clock */
};

/* What is committed of one epoch, as of its newest run. */
struct store_epoch {
    struct cursor cursor; /* steps: of the end-of-data record, or 0 */
    struct consumption consumption;
};

struct store_stream {
    uint32_t stream;
    const char *name;
    uint64_t samples;
    bool shares;
};

/* A job of the store; pointers are valid until the visitor returns. */
struct store_job {
    const char *damage; /* NULL: none; else what of it is lost, as in "its generations (generation
                         * 3)": then only its id, its own times, state and spec are given, and with
                         * spec NULL only its id */
    struct core_restore_job restore; /* also of a job that ended, for its checkpoint and text */
    const void *spec;
    size_t spec_bytes;
    uint64_t submitted_us;
    uint64_t started_us; /* 0: never, or it is queued again */
    uint64_t first_us;   /* when it was started first; 0: never */
    uint64_t ended_us;   /* 0: live */
    uint64_t position;   /* committed; arrivals beyond it are not recorded */
    bool restores;       /* it was submitted to go on from: */
    struct core_checkpoint origin;
    struct core_checkpoint_lost lost;
    enum job_state state; /* JOB_QUEUED while live */
    cadre_status code;
    int32_t exit_code;
    const char *text;
};

/* Which rows of a job's ledger are visited; any of the visitors may be NULL. */
struct store_walk {
    uint64_t generation; /* plans of this number and higher ones, ... */
    size_t plans_max;    /* at most so many; 0: all */
    uint32_t stream;     /* epochs of this stream from this one on, and of streams after it, ... */
    uint64_t epoch;
    size_t epochs_max;   /* at most so many; 0: all */
    uint64_t position;   /* verified positions from this one on, ... */
    size_t verified_max; /* at most so many; 0: all */
    /* Each in ascending order: plans by number, all streams, epochs by (stream, epoch). */
    void (*plan_row)(void *user, const struct store_plan *plan);
    void (*stream_row)(void *user, const struct store_stream *stream);
    void (*epoch_row)(void *user, const struct store_epoch *epoch);
    /* The newest epoch of each stream, in order of stream, also outside the page. */
    void (*newest_row)(void *user, const struct store_epoch *epoch);
    void (*verified_row)(void *user, const struct verified *verified);
    /* The newest of them, also outside the page. */
    void (*newest_verified_row)(void *user, const struct verified *verified);
    void *user;
};

struct store_task_exit {
    uint32_t slot;
    uint64_t incarnation;
    enum task_state state; /* EXITED or LOST */
    struct task_exit exit;
};

struct store {
    const struct store_ops *ops;
};

struct store_ops {
    const char *name;
    /* Without records and with `sync`: everything before it. */
    cadre_status (*commit)(struct store *store, const struct store_record *records, size_t count,
        bool sync, struct cadre_error *error);
    /* The records of the next entries of the shared log, in order, and the position of the last of
     * these entries, in one transaction; `count` may be 0. As a commit without `sync`: the log is
     * the durable copy, and a machine that lost power reads the entries behind `position` again.
     * INTERNAL also: the store has the entry of this index already. */
    cadre_status (*apply)(struct store *store, const struct store_record *records, size_t count,
        const struct store_position *at, struct cadre_error *error);
    /* Of the newest entry that was applied. */
    void (*position)(const struct store *store, struct store_position *ret_position);
    /* As it was noted last. */
    void (*cluster)(const struct store *store, struct store_cluster *ret_cluster);
    /* Keeps it, synced, with everything before it. From here on, and whenever the store is opened
     * again, `secret` is that secret, and the cluster of `term` is `id_low`. */
    cadre_status (*note_cluster)(
        struct store *store, const struct store_cluster *cluster, struct cadre_error *error);
    /* All jobs in order of id. The visitor's failure ends the walk and is returned. */
    cadre_status (*load)(struct store *store,
        cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
        void *user, struct cadre_error *error);
    /* Reads all of it again: damage of a job goes to `visit`. DATA_LOSS: the damage concerns all
     * jobs. `load` does the same, and the readers further down do it for the rows that they read.
     */
    cadre_status (*check)(struct store *store,
        void (*visit)(void *user, struct job_id job, const char *what), void *user,
        struct cadre_error *error);
    /* How the tasks of a job ended, newest incarnation of each slot, in order of slot. */
    cadre_status (*task_exits)(struct store *store, struct job_id job,
        void (*visit)(void *user, const struct store_task_exit *exit), void *user,
        struct cadre_error *error);
    /* The rows of `cadre verify`. */
    cadre_status (*ledger)(struct store *store, struct job_id job, const struct store_walk *walk,
        struct cadre_error *error);
    /* The events of a job with a number above `after`, at most `max`, in order; *ret_last is the
     * number of its newest, 0: there is none. Of more than LIMIT_EVENTS the first
     * LIMIT_EVENTS_FIRST and the newest are kept. */
    cadre_status (*history)(struct store *store, struct job_id job, uint64_t after, size_t max,
        void (*visit)(void *user, const struct history_event *event), void *user,
        uint64_t *ret_last, struct cadre_error *error);
    /* The published checkpoints of a job, oldest first. */
    cadre_status (*checkpoints)(struct store *store, struct job_id job,
        void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
        struct cadre_error *error);
    /* The workers that clients have drained, in no order. DATA_LOSS: one of them is damaged. */
    cadre_status (*drains)(struct store *store,
        void (*visit)(void *user, const struct core_drained *drained), void *user,
        struct cadre_error *error);
    /* The same of those on which a task had another state than most. */
    cadre_status (*culprits)(struct store *store,
        void (*visit)(void *user, const struct core_culprit *culprit), void *user,
        struct cadre_error *error);
    /* Random bytes, made with the store or noted with the cluster: the keys of generations are
     * derived from them. */
    void (*secret)(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES]);
    /* The newest start of the coordinator that is recorded, 0: none, with the nonce of this store's
     * opening. */
    struct term (*term)(const struct store *store);
    /* The highest job id ever given out. */
    uint64_t (*job_id_max)(const struct store *store);
    void (*close)(struct store *store); /* accepts NULL */
};

/* In the file `path`, made with mode 0600 when it does not exist, changed to 0600 when it does. For
 * this process alone, until it is closed. Errors name the file: PERMISSION_DENIED, UNAVAILABLE
 * (another process has it), FAILED_PRECONDITION (another version, a database of another program),
 * DATA_LOSS (no database, damaged). */
cadre_status store_sqlite_open(
    const char *path, struct store **ret_store, struct cadre_error *error);

/* A copy of all that is committed, as the file `path` (mode 0600), synced with its name: it is
 * whole or absent, and replaces what lies there. It is a store like any other, with the same
 * position, cluster and secret, and the same damage if there is any: store_sqlite_open() finds
 * that. The store must be of the SQLite peer; the call takes as long as the file takes to be
 * written. Errors name the copy: PERMISSION_DENIED, RESOURCE_EXHAUSTED (the disk is full),
 * NOT_FOUND (its folder is missing), DATA_LOSS (a disk fails). */
cadre_status store_sqlite_copy(struct store *store, const char *path, struct cadre_error *error);

/* The same in steps, between which the store is used: the file is not synced, and holds what is
 * committed when it is whole. The errors are as above. */
struct store_copy;
cadre_status store_sqlite_copy_begin(
    struct store *store, const char *path, struct store_copy **ret_copy, struct cadre_error *error);
/* Copies up to so many pages (4 KiB). After an error, and once it is whole, only its end may
 * follow. */
cadre_status store_sqlite_copy_step(
    struct store_copy *copy, unsigned pages, bool *ret_whole, struct cadre_error *error);
/* Before the store is closed; a file that is not whole is removed. NULL is fine. */
void store_sqlite_copy_end(struct store_copy *copy);

/* The store of the SQLite peer is the copy of a shared log no more, but a ledger of its own: with
 * the same secret, and its next starts are later ones of the same cluster. Synced. */
cadre_status store_sqlite_leave_log(struct store *store, struct cadre_error *error);

/* Empty; lost when it is closed. */
cadre_status store_memory_open(struct store **ret_store, struct cadre_error *error);

/* As if the machine lost power: everything after the last synced commit is lost. */
void store_memory_lose_tail(struct store *store);

#endif
