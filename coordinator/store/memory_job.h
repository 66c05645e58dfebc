/* SPDX-License-Identifier: Apache-2.0
 * What the memory peer holds of one job. */
#ifndef CADRE_COORDINATOR_STORE_MEMORY_JOB_H
#define CADRE_COORDINATOR_STORE_MEMORY_JOB_H

#include "coordinator/store/rows.h"
#include "coordinator/store/store.h"

enum table {
    TABLE_PLACES, /* struct place_row, newest of each slot */
    TABLE_EXITS,  /* struct store_task_exit, newest of each slot */
    TABLE_PLANS,
    TABLE_MEMBERS, /* struct member_row, of the newest plan */
    TABLE_STREAMS, /* struct stream_row */
    TABLE_ENDS,    /* struct cursor, of each epoch whose end is known */
    TABLE_FEEDS,   /* struct store_epoch, of each run */
    TABLE_CHECKPOINTS,
    TABLE_VERIFIED, /* struct verified */
    TABLE_COUNT
};

struct place_row {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t lives;
    uint64_t lives_in;
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

struct memory_job {
    struct store_job row; /* without what points somewhere */
    char text[LIMIT_TEXT_BYTES];
    struct generation control_of; /* the generation of row.restore's control */
    uint64_t up_to;               /* of the watermark */
    uint64_t ending_at;           /* committed when it was being ended */
    struct rows tables[TABLE_COUNT];
};

void memory_job_init(struct memory_job *job, const struct store_record *record);
bool memory_job_copy(const struct memory_job *job, struct memory_job *ret_copy);
void memory_job_free(struct memory_job *job);

/* Room for what the record will add: INTERNAL when it cannot be of this job, RESOURCE_EXHAUSTED. */
cadre_status memory_job_prepare(
    struct memory_job *job, const struct store_record *record, struct cadre_error *error);
/* Cannot fail after it was prepared. */
void memory_job_apply(struct memory_job *job, const struct store_record *record);
/* What was prepared and not applied is not wanted. */
void memory_job_settle(struct memory_job *job);

/* The tasks, as a start needs them, into `ret_tasks`, which has room for as many as were placed. */
void memory_job_tasks(const struct memory_job *job, struct core_restore_task *ret_tasks);
/* The farthest position that a feed tells of. */
uint64_t memory_job_fed(const struct memory_job *job);
/* The newest of the positions whose states were found equal; all zero: none was. */
struct verified memory_job_verified(const struct memory_job *job);
/* Of epochs the newest run, with what is known of the epoch's end. */
void memory_job_walk(const struct memory_job *job, const struct store_walk *walk);

/* For rows: of two cursors, by (stream, epoch). */
int memory_job_by_epoch(const void *a, const void *b);
/* For rows_filter: the checkpoint `item` is not the one of the position `user`. */
bool memory_job_is_another(const void *item, const void *user);

#endif
