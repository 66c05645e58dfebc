/* SPDX-License-Identifier: Apache-2.0
 * The virtual store: transactions in order, of which a crash of the host keeps a prefix that holds
 * at least all fsynced ones. A start of the coordinator reads what it keeps of a job. */
#ifndef CADRE_SIM_STORE_H
#define CADRE_SIM_STORE_H

#include "common/base/error.h"
#include "coordinator/core/core.h"
#include "coordinator/engine/placements.h"
#include "coordinator/store/memory_job.h"

#define STORED_STREAMS     3
#define STORED_CHECKPOINTS 4 /* that a job keeps */

/* What is kept of a job, in the rows of the production's store, and what they contain. */
struct stored {
    struct memory_job ledger;
    bool known;
    bool started;
    uint64_t first_us; /* when it was started first; 0: never */
    uint64_t incarnation_max;
    uint32_t restarts;
    struct generation generation;
    uint64_t resume;
    uint64_t watermark;
    bool has_control;
    uint64_t halt_at;
    enum halt_kind halt_kind;
    uint32_t halt_stream;
    bool done;
    uint64_t done_position;
    bool ending;
    bool ended;
    struct core_ending ended_as;
    bool has_checkpoint; /* the newest, which may be another job's: */
    struct core_checkpoint checkpoint;
    bool restores;
    struct core_checkpoint origin;
    uint64_t lost_at;          /* checkpoint of the newest timeline that turned out to be damaged,
                                */
    uint64_t lost_in;          /* found when this generation was the newest; 0: none did */
    uint64_t first_step;       /* the lowest position at which a generation began without a state */
    uint32_t checkpoint_count; /* its own */
    struct stream_position at[STORED_STREAMS];
    uint32_t task_count;
    struct core_restore_task *tasks; /* by slot; incarnation 0: never placed */
};

/* A record with the shell's additions. */
struct entry {
    uint32_t job; /* index in the simulator */
    struct core_record record;
    uint64_t at_us;
    struct placements placements; /* of STARTED and PLAN, owned */
};

struct disk {
    struct entry *log; /* what is written but not known to be durable */
    uint32_t count;
    uint32_t capacity;
    uint32_t *ends; /* of each transaction in the log */
    uint32_t transactions;
    uint32_t transaction_capacity;
    uint64_t job_max; /* highest id given out, as written */
    uint64_t job_max_durable;
    uint64_t term_start;    /* newest start of a coordinator that sent anything */
    uint64_t written;       /* records, ever */
    uint64_t full_until_us; /* its disk is */
    bool fails;             /* the next commit does, for good */
};

struct sim;
struct job;

/* Whether the timeline was published up to there, also when that turned out to be damaged since. */
bool stored_was_published(const struct stored *stored, uint64_t position);
/* What `cadre verify` would read of the epoch; false: nothing is on record, and all of it is zero.
 */
bool stored_epoch(
    const struct stored *stored, uint32_t stream, uint64_t epoch, struct store_epoch *ret_epoch);
/* The one before the newest of its own; false: there is none. */
bool stored_previous(const struct stored *stored, struct core_checkpoint *ret_previous);

/* The run is over: an empty store again, its memory kept. */
/* Empty. */
void store_open(struct sim *sim);
void store_close(struct sim *sim);
/* Frees all of it. */
void store_free(struct sim *sim);
/* One that is empty, of so many tasks. */
struct stored *stored_new(uint32_t tasks);
/* Empty again. */
void stored_clear(struct stored *stored);
/* Accepts NULL. */
void stored_free(struct stored *stored);
/* Makes `to` a copy. */
void stored_copy(struct stored *to, const struct stored *from);
/* The effect of a record. */
void stored_apply(struct stored *stored, const struct entry *entry);
/* The record of a job is written, and what follows from that in the world. */
void store_note(struct sim *sim, struct job *job, struct entry *entry);
/* The same of a record of a worker. */
void store_note_worker(struct sim *sim, const struct core_record *record);
/* Its effect alone. */
void store_keep_worker(struct sim *sim, const struct core_record *record);
/* Whether a commit succeeds now. */
cadre_status store_can_write(struct sim *sim, struct cadre_error *error);
/* Adds to the open transaction; written at once, as a page cache is. Takes over the placements. */
void store_add(struct sim *sim, const struct core_record *record, struct placements *placements);
/* Ends it; with `sync` it and all before are durable. */
void store_commit(struct sim *sim, bool sync);
/* Everything written is durable. */
void store_sync(struct sim *sim);
/* The disk lies from now on: of this job nothing that follows survives a crash. */
void store_freeze(struct job *job);
/* The host crashes: some prefix of what was not fsynced is kept. */
void store_crash(struct sim *sim);
/* Restores all jobs into a coordinator that starts. */
void store_restore(struct sim *sim);

#endif
