/* SPDX-License-Identifier: Apache-2.0
 * What the coordinator keeps of each job beside the core's live state: its spec, its times, how its
 * tasks ended, its last progress. Live jobs and the newest of those that ended; in order of id. */
#ifndef CADRE_COORDINATOR_DIRECTORY_H
#define CADRE_COORDINATOR_DIRECTORY_H

#include "common/base/error.h"
#include "common/wire/wire.h"
#include "coordinator/core/core.h"
#include "coordinator/engine/directory_requests.h"
#include "coordinator/engine/directory_shards.h"
#include "coordinator/engine/lagging.h"
#include "coordinator/engine/members_sent.h"
#include "coordinator/engine/outdated.h"
#include "coordinator/store/store.h"

struct directory_task {
    uint64_t incarnation;
    char worker[LIMIT_NAME_BYTES];
    uint32_t pid;
    bool sent_hello;
    enum task_state state; /* EXITED or LOST once it ended; 0 before */
    bool has_exit;
    struct task_exit exit;
    uint64_t log_bytes;
    struct task_fetch fetch;     /* of this incarnation, as last reported */
    struct resource_usage usage; /* likewise, then: */
    uint64_t usage_us;
    uint64_t started; /* the newest incarnation whose start is in the history */
};

/* What history.c compares the job with. */
struct directory_history {
    uint64_t reached;   /* steps that were applied by all in the newest generation */
    uint32_t members;   /* of that one */
    uint64_t note_hash; /* of the core's text when it was planned */
    bool stalled;       /* a stall is recorded, and not its end: */
    bool culprit_known;
    uint64_t stall_position;
    uint64_t stall_generation;
    uint64_t stalled_us; /* since when, by the wall clock */
};

struct directory_progress {
    bool present;
    struct progress value; /* its pointers point into this struct */
    char stream[LIMIT_NAME_BYTES];
    struct metric metrics[LIMIT_METRICS];
    char names[LIMIT_METRICS][LIMIT_NAME_BYTES];
};

struct directory_entry {
    struct job_id id;
    struct wire_arena *arena; /* of spec */
    struct job_spec spec;
    struct wire_buffer packed; /* the spec for the store; freed when it is there */
    uint64_t submitted_us;
    uint64_t started_us;
    uint64_t ended_us;
    enum job_state state; /* final one once it ended */
    cadre_status code;
    int32_t exit_code;
    uint64_t position;        /* surely committed: of a live job the core may have more */
    struct verified verified; /* as recorded */
    uint64_t generation;
    char text[LIMIT_TEXT_BYTES];                 /* of a live job: the last one shown */
    char checkpoint[LIMIT_FILE_NAME_BYTES + 16]; /* the newest, as "checkpoints/<name>" */
    bool damaged;  /* the ledger's record is damaged; the text gives details */
    bool restores; /* it goes on from: */
    struct core_checkpoint origin;
    struct core_checkpoint_lost newest_lost;
    struct core_checkpoint *checkpoints; /* published and kept, oldest first */
    size_t checkpoint_count;
    size_t checkpoint_capacity;
    uint32_t restarts;
    struct directory_task *tasks;
    uint32_t task_count;
    struct directory_progress progress;
    struct directory_progress evaluation; /* of the evaluator of a ps job */
    struct directory_shards shards;
    bool changed;      /* in this turn */
    bool end_unstored; /* its end is in a turn that is not stored yet */
    bool going;        /* that it is removed is not stored yet in the shared log */
    struct newest_messages newest;
    struct lagging_of_job lagging; /* its records in the engine's `lagging` */
    bool lagging_listed;           /* for the entry that is made */
    uint64_t entry; /* of the log, that the newest delayed message of the job waits for */
    struct members_sent members_sent;
    struct directory_history history;
    /* For counts.c: */
    uint64_t counted; /* steps that are in the count already */
    uint32_t roster;  /* of the newest generation */
    bool lost;        /* since that was formed, a task was lost with its worker */
    bool failed;      /* or failed */
    uint32_t counted_restarts;
};

struct directory {
    struct directory_entry **entries; /* in order of id */
    size_t ended;                     /* of them, jobs that directory_note_ended was called for */
    size_t going;                     /* of these, jobs that are going */
    size_t count;
    size_t capacity;
    struct directory_requests requests; /* of the entries that have one */
};

/* Frees all entries; the struct is the caller's. */
void directory_clear(struct directory *directory);

/* Packs the spec and makes an entry with a copy of it; not yet in the directory, because it has no
 * id. */
cadre_status directory_entry_new(
    const struct job_spec *spec, struct directory_entry **ret_entry, struct cadre_error *error);
/* Accepts NULL. */
void directory_entry_free(struct directory_entry *entry);

/* From the store at start; task ends and checkpoints are filled in by the caller. */
cadre_status directory_entry_load(
    const struct store_job *job, struct directory_entry **ret_entry, struct cadre_error *error);

/* A job of which the ledger lost something: if it had not ended, it has failed now. */
cadre_status directory_entry_damaged(
    const struct store_job *job, struct directory_entry **ret_entry, struct cadre_error *error);

/* Takes the entry over on success. Ids only grow. */
cadre_status directory_add(
    struct directory *directory, struct directory_entry *entry, struct cadre_error *error);
/* NULL: no such job. */
struct directory_entry *directory_find(const struct directory *directory, struct job_id id);

/* The job that was submitted with this request id; NULL: none, or the spec has no id. */
struct directory_entry *directory_find_request(
    const struct directory *directory, const struct job_spec *spec);

/* The entry has its final state now, or was added with it. */
void directory_note_ended(struct directory *directory);

/* The entry of a job that ended is removed soon: once. */
void directory_note_going(struct directory *directory, struct directory_entry *entry);

/* Frees the entry of a job that ended. */
void directory_remove(struct directory *directory, struct job_id id);

/* The newest of the entry, or one that was added before. */
cadre_status directory_checkpoint_add(struct directory_entry *entry,
    const struct core_checkpoint *checkpoint, struct cadre_error *error);
/* How many of the oldest are beyond what its spec keeps. */
size_t directory_checkpoints_surplus(const struct directory_entry *entry);
/* Of those that are kept. */
void directory_checkpoint_drop_oldest(struct directory_entry *entry);
/* The checkpoint of this position, if there is one, was found damaged. */
void directory_checkpoint_lose(
    struct directory_entry *entry, const struct core_checkpoint_lost *lost);
/* The newest of its own at a lower position, else the one that it goes on from, if that is at a
 * lower one; NULL: there is none. */
const struct core_checkpoint *directory_checkpoint_before(
    const struct directory_entry *entry, uint64_t position);

/* A task was placed again: what was recorded of its last process is reset. */
void directory_task_placed(
    struct directory_entry *entry, uint32_t slot, uint64_t incarnation, const char *worker);
/* Keeps how the task ended, if it is its newest incarnation. */
void directory_task_exit(struct directory_entry *entry, const struct store_task_exit *exit);

/* Replaces the progress by a copy. */
void directory_progress_set(struct directory_progress *progress, const struct progress *value);

#endif
