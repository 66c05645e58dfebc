/* SPDX-License-Identifier: Apache-2.0
 * How both peers turn their rows into what a start of the coordinator reads. */
#ifndef CADRE_COORDINATOR_STORE_RESTORE_H
#define CADRE_COORDINATOR_STORE_RESTORE_H

#include "coordinator/core/core.h"

struct restore_streams {
    struct stream_position items[LIMIT_STREAMS]; /* in order of stream */
    size_t count;
};

/* A row of an epoch: the newest epoch of its stream counts, and of that the highest values. Stream
 * 0 has no data. */
void restore_note_stream(
    struct restore_streams *streams, const struct cursor *cursor, uint64_t applied);

/* The member of rank `rank` of the newest plan: its task, if it is still that one. `tasks` is in
 * order of slot. */
void restore_note_rank(struct core_restore_task *tasks, size_t count, uint32_t slot,
    uint64_t incarnation, uint32_t rank);

/* Raises *consumed to the position that a feed records. Runs begin with their generation at the
 * latest: one that began before the newest plan records steps that may be undone. */
void restore_note_consumed(const struct core_restore_job *restore, const struct cursor *cursor,
    uint64_t steps, uint64_t *consumed);

/* The checkpoint of another job that it goes on from may be newer than what is recorded of its own
 * states. */
void restore_note_verified(struct core_restore_job *restore);

/* The position up to which the job is surely committed: where its newest plan resumes, what feeds
 * record since, its position when it was being ended, or its end. */
uint64_t restore_committed(
    const struct core_restore_job *restore, uint64_t consumed, uint64_t ending);

#endif
