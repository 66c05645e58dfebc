/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

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
    uint32_t roster = core_job(engine->core, entry->id, &view) ? view.roster : 0;
    engine->counts.formed[why_formed(entry, record, roster)]++;
    if (record->plan.restarts > entry->counted_restarts) {
        engine->counts.restarts += record->plan.restarts - entry->counted_restarts;
        entry->counted_restarts = record->plan.restarts;
    }
    entry->roster = roster;
    entry->lost = false;
    entry->failed = false;
}

static void count_exit(
    struct engine *engine, struct directory_entry *entry, const struct core_record *record)
{
    const struct task_exit *exit = &record->task_exit.exit;
    bool lost = record->task_exit.state == TASK_LOST;
    bool failed =
        !lost && (exit->signal != 0 || (exit->code != 0 && exit->code != JOB_EXIT_PREEMPTED));
    engine->counts.tasks_lost += lost;
    engine->counts.tasks_failed += failed;
    engine->counts.tasks_done += !lost && !failed;
    entry->lost |= lost;
    entry->failed |= failed;
}

static void count_record(struct engine *engine, const struct core_record *record)
{
    struct directory_entry *entry = directory_find(&engine->directory, record->job);
    CADRE_ASSERT(entry != NULL || record->job.n == 0);
    switch (record->type) {
    case CORE_RECORD_JOB:
        engine->counts.submitted++;
        break;
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

static bool is_of_each_step(const struct core_record *record)
{
    return record->type == CORE_RECORD_WATERMARK || record->type == CORE_RECORD_CONSUMED;
}

void engine_count_turn(struct engine *engine)
{
    /* A plan may be recorded before the ends of the tasks that it does without. */
    for (int plans = 0; plans < 2; plans++) {
        for (size_t i = 0; i < engine->turn.count; i++) {
            const struct core_action *action = &engine->turn.items[i];
            if (action->type == CORE_ACTION_RECORD && !is_of_each_step(&action->record) &&
                (action->record.type == CORE_RECORD_PLAN) == (plans == 1)) {
                count_record(engine, &action->record);
            }
        }
    }
}

/* Steps are counted when a reader requests them, and when a job leaves the core, because counting
 * at each commit would cost every step something. */
void engine_count_steps(struct engine *engine, struct directory_entry *entry)
{
    uint64_t committed = engine_position(engine, entry);
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
