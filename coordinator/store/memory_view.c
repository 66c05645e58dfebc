/* SPDX-License-Identifier: Apache-2.0
 * What a start of the coordinator reads of a job of the memory peer. */
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "coordinator/store/memory_job.h"

static struct core_restore_task task_of(
    const struct memory_job *job, const struct placement_row *placement)
{
    const struct store_task_exit *exit = rows_find(&job->tables[TABLE_EXITS], &placement->slot);
    bool gone = exit != NULL && exit->incarnation >= placement->incarnation;
    struct core_restore_task task = {.slot = placement->slot,
        .incarnation = placement->incarnation,
        .rank = UINT32_MAX,
        .gone = gone,
        .lost = gone && exit->state == TASK_LOST,
        .attempts = placement->attempts,
        .attempts_generation = placement->attempts_generation,
        .backed = placement->backed};
    memcpy(task.worker, placement->worker, sizeof placement->worker);
    return task;
}

bool memory_job_task(
    const struct memory_job *job, uint32_t slot, struct core_restore_task *ret_task)
{
    const struct placement_row *placement = rows_find(&job->tables[TABLE_PLACEMENTS], &slot);
    if (placement != NULL) {
        *ret_task = task_of(job, placement);
    }
    return placement != NULL;
}

/* The tasks, as a start reads them, into `ret_tasks`, which has room for as many as were placed. */
static void fill_tasks(const struct memory_job *job, struct core_restore_task *ret_tasks)
{
    const struct rows *placements = &job->tables[TABLE_PLACEMENTS];
    for (size_t i = 0; i < placements->count; i++) {
        ret_tasks[i] = task_of(job, rows_at(placements, i));
    }
    const struct rows *members = &job->tables[TABLE_MEMBERS];
    for (size_t i = 0; i < members->count; i++) {
        const struct member_row *member = rows_at(members, i);
        restore_note_rank(
            ret_tasks, placements->count, member->slot, member->incarnation, member->rank);
    }
}

struct verified memory_job_verified(const struct memory_job *job)
{
    const struct rows *rows = &job->tables[TABLE_VERIFIED];
    return rows->count > 0 ? *(const struct verified *)rows_at(rows, rows->count - 1)
                           : (struct verified){0};
}

/* The highest position that a feed records as applied. */
static uint64_t consumed_up_to(const struct memory_job *job)
{
    const struct rows *consumptions = &job->tables[TABLE_CONSUMED];
    uint64_t consumed = 0;
    for (size_t i = 0; i < consumptions->count; i++) {
        const struct store_epoch *run = rows_at(consumptions, i);
        restore_note_consumed(&job->row.restore, &run->cursor, run->consumption.steps, &consumed);
    }
    return consumed;
}

static void note_epoch(void *user, const struct store_epoch *epoch)
{
    restore_note_stream(user, &epoch->cursor, epoch->consumption.steps);
}

bool memory_view_make(const struct memory_job *job, struct memory_view *ret_view)
{
    const struct rows *placements = &job->tables[TABLE_PLACEMENTS];
    const struct rows *ends = &job->tables[TABLE_ENDS];
    const struct rows *checkpoints = &job->tables[TABLE_CHECKPOINTS];
    *ret_view = (struct memory_view){.row = job->row,
        .tasks = fault_point("store.allocate")
                     ? NULL
                     : calloc(placements->count + 1, sizeof(struct core_restore_task))};
    struct core_restore_job *restore = &ret_view->row.restore;
    struct restore_streams *streams = &ret_view->streams;
    if (ret_view->tasks == NULL) {
        return false;
    }
    fill_tasks(job, ret_view->tasks);
    memory_job_walk(job, &(struct store_walk){.epoch_row = note_epoch, .user = streams});
    for (size_t i = 0; i < ends->count; i++) {
        restore_note_stream(streams, rows_at(ends, i), 0);
    }
    restore_note_stream(streams, &restore->cursor, 0);
    restore->roster = (uint32_t)job->tables[TABLE_MEMBERS].count;
    restore->tasks = ret_view->tasks;
    restore->task_count = placements->count;
    restore->streams = streams->items;
    restore->stream_count = streams->count;
    restore->has_control =
        restore->halt_kind != HALT_NONE && generation_equal(job->control_of, restore->generation);
    restore->has_checkpoint = checkpoints->count > 0 || job->row.restores;
    restore->checkpoint = checkpoints->count > 0 ? *(struct core_checkpoint *)rows_at(
                                                       checkpoints, checkpoints->count - 1)
                                                 : job->row.origin;
    restore->verified = memory_job_verified(job);
    restore_note_verified(restore);
    ret_view->row.text = job->text;
    ret_view->row.position = restore_committed(restore, consumed_up_to(job), job->ending_at);
    return true;
}

void memory_view_free(struct memory_view *view)
{
    free(view->tasks);
    view->tasks = NULL;
}
