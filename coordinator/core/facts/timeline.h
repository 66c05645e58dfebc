/* SPDX-License-Identifier: Apache-2.0
 * The timeline of a generation, and the samples of its committed steps. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TIMELINE_H
#define CADRE_COORDINATOR_CORE_FACTS_TIMELINE_H

#include "coordinator/core/state/state.h"

/* ---- timeline.c ---- */

/* Keeps the claim of an arrival; false: it contradicts an older one, and the job has failed. */
bool timeline_claim(
    struct core *core, struct job *job, uint32_t task_group, const struct agent_arrived *arrived);
/* Records the length of the cursor's epoch, if it is known and not recorded yet. */
void timeline_end(struct core *core, struct job *job, const struct cursor *cursor);
/* The cursor of a position. False and zeroed: no task is known to have begun its range. */
bool timeline_at(const struct job *job, uint64_t position, struct cursor *ret_cursor);
/* The position behind the last range that a task has begun; the generation's first: none has. */
uint64_t timeline_known(const struct job *job);
/* Task group `from` has the index `to` from now on; NONE: it was removed. */
void timeline_group_moved(struct job *job, uint32_t from, uint32_t to);

/* ---- sample_audit.c ---- */

/* Whether all steps of the stream's newest epoch are applied, as far as is known. */
bool sample_audit_stream_ended(const struct job *job, uint32_t stream);

/* Whether the stream is in a later epoch than this one. */
bool sample_audit_stream_is_past(const struct job *job, uint32_t stream, uint64_t epoch);
/* Takes an arrival's sums of its epoch, also while the generation is broken up. */
void sample_audit_arrived(struct core *core, struct job *job, const struct agent_arrived *arrived);
/* A task reports a dataset. */
void sample_audit_stream(struct core *core, struct job *job, const struct task_stream *stream);
/* Records the sums up to `applied` that are not recorded; unless `all`, of complete epochs only. */
void sample_audit_record(struct core *core, struct job *job, bool all, uint64_t applied);
/* The plan cuts the ledger at job->resume. */
void sample_audit_cut(struct job *job);

#endif
