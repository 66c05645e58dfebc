/* SPDX-License-Identifier: Apache-2.0
 * What the memory peer holds of one job: its rows (memory_job.c), what a start reads of them
 * (memory_view.c) and what a walk visits (memory_walk.c). The simulator's ledger is made of these.
 */
#ifndef CADRE_COORDINATOR_STORE_MEMORY_JOB_H
#define CADRE_COORDINATOR_STORE_MEMORY_JOB_H

#include "coordinator/store/restore.h"
#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

enum table {
    TABLE_PLACEMENTS, /* struct placement_row, newest of each slot */
    TABLE_EXITS,      /* struct store_task_exit, newest of each slot */
    TABLE_PLANS,
    TABLE_MEMBERS,  /* struct member_row, of the newest plan */
    TABLE_STREAMS,  /* struct stream_row */
    TABLE_ENDS,     /* struct cursor, of each epoch whose end is known */
    TABLE_CONSUMED, /* struct store_epoch, of each run */
    TABLE_CHECKPOINTS,
    TABLE_VERIFIED, /* struct verified */
    TABLE_EVENTS,   /* struct event_row */
    TABLE_COUNT
};

struct placement_row {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t attempts;
    uint64_t attempts_generation;
    struct task_backed backed;
    char worker[LIMIT_NAME_BYTES];
};

struct member_row {
    uint32_t rank;
    uint32_t slot;
    uint64_t incarnation;
};

struct stream_row {
    uint32_t stream;
    uint64_t samples;
    bool shares;
    char name[LIMIT_NAME_BYTES];
};

/* The event's texts are these. */
struct event_row {
    struct history_event event;
    char worker[LIMIT_NAME_BYTES];
    char roster[LIMIT_ROSTER_BYTES];
    char text[LIMIT_TEXT_BYTES];
};

struct memory_job {
    struct store_job row; /* without its pointers */
    char text[LIMIT_TEXT_BYTES];
    struct generation control_of; /* the generation of row.restore's control */
    uint64_t up_to;               /* of the watermark */
    uint64_t ending_at;           /* committed when it was being ended */
    struct rows tables[TABLE_COUNT];
};

/* From a CORE_RECORD_JOB; the struct is the caller's. */
void memory_job_init(struct memory_job *job, const struct store_record *record);
/* False: no memory. */
bool memory_job_copy(const struct memory_job *job, struct memory_job *ret_copy);
/* Also of a copy; not the struct itself. */
void memory_job_free(struct memory_job *job);

/* Room for what the record will add: INTERNAL when it cannot be of this job, RESOURCE_EXHAUSTED. */
cadre_status memory_job_prepare(
    struct memory_job *job, const struct store_record *record, struct cadre_error *error);
/* Cannot fail once it is prepared. */
void memory_job_apply(struct memory_job *job, const struct store_record *record);
/* The same of an event. */
void memory_job_add_event(struct memory_job *job, const struct history_event *event);
/* Gives up the room of what was prepared and not applied. */
void memory_job_settle(struct memory_job *job);

/* As store_ops.history. */
void memory_job_history(const struct memory_job *job, uint64_t after, size_t max,
    void (*visit)(void *user, const struct history_event *event), void *user, uint64_t *ret_last);

/* Removes one of its checkpoints; false: there is none of this position. */
bool memory_job_drop_checkpoint(struct memory_job *job, uint64_t position);

/* memory_view.c: what a start reads of the job, except its spec. The row points into the rest of
 * the view, and into the job. */
struct memory_view {
    struct store_job row;
    struct restore_streams streams;
    struct core_restore_task *tasks;
};

/* One of its tasks, without its rank; false: it was never placed. */
bool memory_job_task(
    const struct memory_job *job, uint32_t slot, struct core_restore_task *ret_task);
/* False: no memory. The view is valid while the job is unchanged. */
bool memory_view_make(const struct memory_job *job, struct memory_view *ret_view);
/* Accepts a zeroed one. */
void memory_view_free(struct memory_view *view);
/* The newest of the positions whose states were found equal; all zero: none was. */
struct verified memory_job_verified(const struct memory_job *job);
/* Visits plans, streams, epochs and verified positions; of an epoch its newest run, with what is
 * recorded of the epoch's end. */
void memory_job_walk(const struct memory_job *job, const struct store_walk *walk);

/* For rows: of two cursors, by (stream, epoch). */
int memory_job_by_epoch(const void *a, const void *b);

#endif
