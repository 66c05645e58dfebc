/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

static bool is_failure(const struct task_exit *exit)
{
    return exit->signal != 0 || (exit->code != 0 && exit->code != JOB_EXIT_PREEMPTED);
}

/* A plan may come before the records of the ends that it answers. */
static void look_for_ends(struct engine *engine, struct directory_entry *entry)
{
    for (uint32_t slot = 0; slot < entry->task_count; slot++) {
        struct core_task_view task;
        core_job_task(engine->core, entry->id, slot, &task);
        bool recorded = entry->tasks[slot].state != 0;
        entry->lost |= !recorded && task.state == TASK_LOST;
        entry->failed |= !recorded && task.has_exit && is_failure(&task.exit);
    }
}

static enum engine_formed why_formed(
    const struct directory_entry *entry, const struct core_record *record, uint32_t roster)
{
    if (entry->lost) {
        return ENGINE_FORMED_LOST;
    }
    if (entry->failed) {
        return ENGINE_FORMED_FAILED;
    }
    if (record->plan.parent.number == 0 || record->plan.restarted) {
        return ENGINE_FORMED_STARTED;
    }
    return roster > entry->roster ? ENGINE_FORMED_JOINED : ENGINE_FORMED_DRAINED;
}

static void count_plan(
    struct engine *engine, struct directory_entry *entry, const struct core_record *record)
{
    struct core_job_view view;
    bool live = core_job(engine->core, entry->id, &view);
    uint32_t roster = live ? view.roster : 0;
    if (live) {
        look_for_ends(engine, entry);
    }
    engine->counts.formed[why_formed(entry, record, roster)]++;
    if (record->plan.restarts > entry->restarts) {
        engine->counts.restarts += record->plan.restarts - entry->restarts;
    }
    entry->roster = roster;
    entry->lost = false;
    entry->failed = false;
    entry->planned = engine->counts.commits + 1;
}

static void count_exit(
    struct engine *engine, struct directory_entry *entry, const struct core_record *record)
{
    bool lost = record->task_exit.state == TASK_LOST;
    bool failed = !lost && is_failure(&record->task_exit.exit);
    engine->counts.tasks_lost += lost;
    engine->counts.tasks_failed += failed;
    engine->counts.tasks_done += !lost && !failed;
    if (entry->planned != engine->counts.commits + 1) { /* else that plan knew of it */
        entry->lost |= lost;
        entry->failed |= failed;
    }
}

void engine_count_record(
    struct engine *engine, struct directory_entry *entry, const struct core_record *record)
{
    switch (record->type) {
    case CORE_RECORD_PLAN:
        count_plan(engine, entry, record);
        break;
    case CORE_RECORD_TASK_EXIT:
        count_exit(engine, entry, record);
        break;
    case CORE_RECORD_CHECKPOINT:
        engine->counts.checkpoints++;
        break;
    case CORE_RECORD_ENDED:
        CADRE_ASSERT(record->ended.state <= JOB_PREEMPTED);
        engine->counts.ended[record->ended.state]++;
        break;
    default:
        break;
    }
}

/* Steps are looked at where somebody asks, and where a job leaves the core: to count each commit
 * would cost every step something. */
void engine_count_steps(struct engine *engine, struct directory_entry *entry)
{
    struct core_job_view view;
    uint64_t committed = entry->position;
    if (core_job(engine->core, entry->id, &view) && view.committed > committed) {
        committed = view.committed;
    }
    if (committed > entry->counted) {
        engine->counts.steps += committed - entry->counted;
        entry->counted = committed;
    }
}

const struct engine_counts *engine_counts(struct engine *engine)
{
    for (size_t i = 0; i < engine->directory.count; i++) {
        engine_count_steps(engine, engine->directory.entries[i]);
    }
    engine->counts.workers_lost = core_workers_lost(engine->core);
    return &engine->counts;
}
