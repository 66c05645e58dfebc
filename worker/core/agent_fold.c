/* SPDX-License-Identifier: Apache-2.0
 * Folding: the arrivals of the local members of a generation become one, the least of each
 * watermark. The begin of a run is a watermark too, so that each run is reported. Members at a
 * minimum are counted, so that the table is walked only when the last of them moves on. The
 * consumption is that of the member that has applied least, because each task reports the sums of
 * all tasks. Of `wanted` the most is sent, at once: the member that holds the minimum may have
 * finished, and would hide it for ever. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"

uint32_t agent_group_join(struct agent_core *core, struct job_id job, struct generation generation)
{
    CADRE_ASSERT(job.n != 0);
    uint32_t free_entry = GROUP_NONE;
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_group *group = &core->groups[i];
        if (group->job.n == job.n && generation_equal(group->generation, generation)) {
            CADRE_ASSERT(group->members > 0);
            core->groups[i].members++;
            return i;
        }
        if (group->job.n == 0 && free_entry == GROUP_NONE) {
            free_entry = i;
        }
    }
    /* As many groups as tasks, and the joining one has left its own. */
    CADRE_ASSERT(free_entry != GROUP_NONE);
    core->groups[free_entry] =
        (struct agent_group){.job = job, .generation = generation, .members = 1};
    return free_entry;
}

void agent_group_remove(struct agent_core *core, struct agent_task *task)
{
    if (task->group == GROUP_NONE) {
        return;
    }
    uint32_t group = task->group;
    CADRE_ASSERT(agent_group_of(core, task) == &core->groups[group]);
    task->group = GROUP_NONE;
    task->arrived = false;
    for (uint32_t i = 0; i < core->entries; i++) {
        if (core->tasks[i].phase != AGENT_TASK_NONE && core->tasks[i].group == group) {
            core->groups[group].broken = true;
            return;
        }
    }
    memset(&core->groups[group], 0, sizeof(core->groups[group]));
}

/* The others may have arrived already: what was folded without it does not count, because the
 * coordinator drops an arrival of fewer members than the roster has here. */
void agent_group_rejoin(
    struct agent_core *core, struct agent_task *task, struct generation generation)
{
    CADRE_ASSERT(task->group == GROUP_NONE);
    CADRE_ASSERT(!task->arrived);
    task->group = agent_group_join(core, task->ref.job, generation);
    core->groups[task->group].folded = false;
}

void agent_group_reset(struct agent_core *core, uint32_t group)
{
    CADRE_ASSERT(group < core->entries);
    CADRE_ASSERT(core->groups[group].job.n != 0);
    struct agent_group *reset = &core->groups[group];
    struct agent_group before = *reset;
    *reset = (struct agent_group){.job = before.job,
        .generation = before.generation,
        .members = before.members,
        .broken = before.broken,
        .verified = before.verified,
        .consumed_count = before.consumed_count,
        .consumed_sent = before.consumed_sent};
    memcpy(reset->consumed, before.consumed, sizeof(before.consumed));
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase != AGENT_TASK_NONE && task->group == group) {
            task->arrived = false;
            task->up_to = 0;
            task->applied = 0;
            task->cursor = (struct cursor){0};
            task->consumption = (struct consumption){0};
        }
    }
}

void agent_send_arrived(
    const struct agent_core *core, const struct agent_group *group, struct agent_actions *out)
{
    CADRE_ASSERT(group->job.n != 0);
    CADRE_ASSERT(group->members > 0);
    CADRE_ASSERT(group->wanted > 0 || group->wanted_slot == 0);
    struct task_ref none = {.job = group->job};
    struct agent_up *up = agent_send(core, out, AGENT_UP_ARRIVED, none);
    if (up != NULL) {
        up->arrived = (struct agent_arrived){
            .job = group->job,
            .generation = group->generation,
            .tasks = group->members,
            .up_to = group->up_to,
            .applied = group->applied,
            .wanted = group->wanted,
            .wanted_slot = group->wanted_slot,
            .cursor = group->cursor,
            .consumption = group->consumption,
            .verified = group->verified,
        };
    }
}

/* The minima over the members, and how many are at them. The consumption is that of the member that
 * has applied least; of those, of the one in the earliest run, whose epoch is the cursor's. */
static void agent_fold_fold(struct agent_core *core, uint32_t index)
{
    struct agent_group *group = &core->groups[index];
    CADRE_ASSERT(!group->broken);
    CADRE_ASSERT(group->arrived == group->members);
    group->folded = true;
    group->up_to = UINT64_MAX;
    group->applied = UINT64_MAX;
    group->cursor.begin = UINT64_MAX;
    group->behind_up_to = 0;
    group->behind_applied = 0;
    group->behind_begin = 0;
    const struct agent_task *least = NULL;
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_NONE || task->group != index) {
            continue;
        }
        if (task->up_to < group->up_to) {
            group->up_to = task->up_to;
            group->behind_up_to = 0;
        }
        if (task->applied < group->applied) {
            group->applied = task->applied;
            group->behind_applied = 0;
        }
        if (task->cursor.begin < group->cursor.begin) {
            group->cursor = task->cursor;
            group->behind_begin = 0;
        }
        group->behind_up_to += task->up_to == group->up_to ? 1 : 0;
        group->behind_applied += task->applied == group->applied ? 1 : 0;
        group->behind_begin += task->cursor.begin == group->cursor.begin ? 1 : 0;
        bool earlier =
            least == NULL || task->applied < least->applied ||
            (task->applied == least->applied && task->cursor.begin < least->cursor.begin);
        least = earlier ? task : least;
    }
    CADRE_ASSERT(least != NULL);
    CADRE_ASSERT(group->behind_up_to >= 1 && group->behind_up_to <= group->members);
    CADRE_ASSERT(group->behind_applied >= 1 && group->behind_applied <= group->members);
    CADRE_ASSERT(group->behind_begin >= 1 && group->behind_begin <= group->members);
    CADRE_ASSERT(least->applied == group->applied);
    group->consumption = least->consumption;
}

/* A member at a minimum that moves on is counted off there. */
static void remove_from_minima(struct agent_group *group, const struct agent_task *task,
    const struct task_arrive *arrive, uint64_t up_to)
{
    CADRE_ASSERT(group->folded);
    if (task->up_to == group->up_to && up_to > task->up_to) {
        CADRE_ASSERT(group->behind_up_to > 0);
        group->behind_up_to--;
    }
    if (task->applied == group->applied && arrive->applied > task->applied) {
        CADRE_ASSERT(group->behind_applied > 0);
        group->behind_applied--;
    }
    if (task->cursor.begin == group->cursor.begin && arrive->cursor.begin > task->cursor.begin) {
        CADRE_ASSERT(group->behind_begin > 0);
        group->behind_begin--;
    }
}

/* Whether its position is newer than the recorded one. */
static bool take_verified(struct agent_group *group, const struct verified *verified)
{
    bool newer = group->verified.digest == 0 || verified->position > group->verified.position;
    if (verified->digest == 0 || (!newer && verified->position < group->verified.position)) {
        return false;
    }
    group->verified = *verified;
    return newer;
}

void agent_arrive(struct agent_core *core, struct agent_task *task,
    const struct task_arrive *arrive, struct agent_actions *out)
{
    struct agent_group *group = agent_group_of(core, task);
    CADRE_ASSERT(generation_equal(arrive->generation, group->generation));
    CADRE_ASSERT(task->connected);
    if (task->arrived &&
        (arrive->applied < task->applied || arrive->cursor.begin < task->cursor.begin)) {
        return; /* watermarks never decrease */
    }
    /* What an epoch consumed that was left with steps claimed behind it is sent again without. */
    uint64_t up_to = task->arrived && task->up_to > arrive->up_to ? task->up_to : arrive->up_to;
    if (!task->arrived) {
        task->arrived = true;
        group->arrived++;
        CADRE_ASSERT(group->arrived <= group->members);
    } else if (group->folded) {
        remove_from_minima(group, task, arrive, up_to);
    }
    agent_consumed_keep(group, task, &arrive->cursor);
    bool compared = take_verified(group, &arrive->verified);
    task->up_to = up_to;
    task->applied = arrive->applied;
    task->cursor = arrive->cursor;
    task->consumption = arrive->consumption;
    bool wants_more = arrive->wanted > group->wanted;
    if (wants_more) {
        group->wanted = arrive->wanted;
        group->wanted_slot = task->ref.slot;
    }
    bool moved = group->behind_up_to == 0 || group->behind_applied == 0 || group->behind_begin == 0;
    bool first = !group->folded;
    bool due = first ? group->arrived == group->members : moved;
    if (due && !group->broken) {
        agent_fold_fold(core, task->group);
    }
    /* Before what claims steps behind them: the lengths of these epochs are recorded first. */
    if (first && group->folded) {
        agent_consumed_send(core, group, out);
    }
    /* If no member moves on, as when all of them save, no other message reports it. */
    if ((due || wants_more || (compared && group->folded)) && !group->broken) {
        agent_send_arrived(core, group, out);
    }
}
