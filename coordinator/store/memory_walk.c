/* SPDX-License-Identifier: Apache-2.0
 * The rows of a job's ledger that a walk visits, table by table. */
#include "coordinator/store/memory_job.h"

static void walk_plans(const struct memory_job *job, const struct store_walk *walk)
{
    const struct rows *plans = &job->tables[TABLE_PLANS];
    size_t visited = 0;
    for (size_t i = 0; i < plans->count && (visited < walk->plans_max || walk->plans_max == 0);
         i++) {
        const struct store_plan *plan = rows_at(plans, i);
        if (plan->generation.number >= walk->generation) {
            walk->plan_row(walk->user, plan);
            visited++;
        }
    }
}

static void walk_streams(const struct memory_job *job, const struct store_walk *walk)
{
    const struct rows *streams = &job->tables[TABLE_STREAMS];
    for (size_t i = 0; i < streams->count; i++) {
        const struct stream_row *row = rows_at(streams, i);
        walk->stream_row(walk->user, &(struct store_stream){.stream = row->stream,
                                         .name = row->name,
                                         .samples = row->samples,
                                         .shares = row->shares});
    }
}

static void walk_epoch(const struct memory_job *job, const struct store_epoch *run,
    void (*visit)(void *user, const struct store_epoch *epoch), void *user)
{
    struct store_epoch epoch = *run;
    const struct cursor *end = rows_find(&job->tables[TABLE_ENDS], &epoch.cursor);
    epoch.cursor.steps = end != NULL ? end->steps : epoch.cursor.steps;
    visit(user, &epoch);
}

static void walk_epochs(const struct memory_job *job, const struct store_walk *walk)
{
    const struct rows *consumptions = &job->tables[TABLE_CONSUMED];
    const struct cursor from = {.stream = walk->stream, .epoch = walk->epoch};
    size_t visited = 0;
    for (size_t i = 0;
         i < consumptions->count && (visited < walk->epochs_max || walk->epochs_max == 0); i++) {
        const struct store_epoch *run = rows_at(consumptions, i);
        const struct store_epoch *next =
            i + 1 < consumptions->count ? rows_at(consumptions, i + 1) : NULL;
        bool newer =
            next != NULL && memory_job_by_epoch(&next->cursor, &run->cursor) == 0; /* newer */
        if (!newer && memory_job_by_epoch(&run->cursor, &from) >= 0) {
            walk_epoch(job, run, walk->epoch_row, walk->user);
            visited++;
        }
    }
}

static void walk_newest(const struct memory_job *job, const struct store_walk *walk)
{
    const struct rows *consumptions = &job->tables[TABLE_CONSUMED];
    for (size_t i = 0; i < consumptions->count; i++) {
        const struct store_epoch *run = rows_at(consumptions, i);
        const struct store_epoch *next =
            i + 1 < consumptions->count ? rows_at(consumptions, i + 1) : NULL;
        if (next == NULL || next->cursor.stream != run->cursor.stream) {
            walk_epoch(job, run, walk->newest_row, walk->user);
        }
    }
}

static void walk_verified(const struct memory_job *job, const struct store_walk *walk)
{
    const struct rows *rows = &job->tables[TABLE_VERIFIED];
    size_t visited = 0;
    for (size_t i = 0; i < rows->count && (visited < walk->verified_max || walk->verified_max == 0);
         i++) {
        const struct verified *verified = rows_at(rows, i);
        if (verified->position >= walk->position) {
            walk->verified_row(walk->user, verified);
            visited++;
        }
    }
}

void memory_job_walk(const struct memory_job *job, const struct store_walk *walk)
{
    if (walk->plan_row != NULL) {
        walk_plans(job, walk);
    }
    if (walk->stream_row != NULL) {
        walk_streams(job, walk);
    }
    if (walk->epoch_row != NULL) {
        walk_epochs(job, walk);
    }
    if (walk->newest_row != NULL) {
        walk_newest(job, walk);
    }
    if (walk->verified_row != NULL) {
        walk_verified(job, walk);
    }
    if (walk->newest_verified_row != NULL && job->tables[TABLE_VERIFIED].count > 0) {
        const struct verified newest = memory_job_verified(job);
        walk->newest_verified_row(walk->user, &newest);
    }
}
