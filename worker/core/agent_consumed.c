/* SPDX-License-Identifier: Apache-2.0
 * What the epochs that ended have consumed. A task reports the whole of an epoch once, when it
 * turns to another one; a coordinator that was away or in a regroup did not receive it. So the
 * newest of them are kept and sent once more on a new link and in a new generation. The fold
 * (agent_fold.c) and the relay of plans call it. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/core/task_core.h"

_Static_assert(AGENT_CONSUMED_MAX >= TASK_CONSUMED_MAX, "what a task may send again is kept");

static void core_agent_consumed_keep(
    struct agent_group *group, const struct agent_consumed *consumed)
{
    CADRE_ASSERT(group->consumed_count <= AGENT_CONSUMED_MAX);
    CADRE_ASSERT(consumed->cursor.stream != 0);
    CADRE_ASSERT(consumed->consumption.steps > 0);
    uint32_t at = 0;
    while (at < group->consumed_count &&
           (group->consumed[at].cursor.stream != consumed->cursor.stream ||
               group->consumed[at].cursor.epoch != consumed->cursor.epoch)) {
        at++;
    }
    if (at < group->consumed_count &&
        group->consumed[at].consumption.steps >= consumed->consumption.steps) {
        return; /* reported by another member */
    }
    if (at == AGENT_CONSUMED_MAX) {
        at = 0; /* removes the oldest */
    }
    if (at < group->consumed_count) {
        group->consumed_count--;
        memmove(&group->consumed[at], &group->consumed[at + 1],
            sizeof(group->consumed[0]) * (group->consumed_count - at));
    }
    CADRE_ASSERT(group->consumed_count < AGENT_CONSUMED_MAX);
    group->consumed[group->consumed_count++] = *consumed;
}

void agent_consumed_keep(
    struct agent_group *group, const struct agent_task *task, const struct cursor *to)
{
    CADRE_ASSERT(group->job.n == task->ref.job.n);
    const struct cursor *from = &task->cursor;
    bool turns = from->stream != to->stream || from->epoch != to->epoch;
    if (!task->arrived || !turns || from->stream == 0 || task->consumption.steps == 0) {
        return;
    }
    struct agent_consumed consumed = {
        .cursor = *from, .applied = task->applied, .consumption = task->consumption};
    consumed.cursor.begin = consumed.applied; /* it claims no steps of the timeline */
    core_agent_consumed_keep(group, &consumed);
}

void agent_consumed_inherit(
    struct agent_group *group, const struct agent_group *before, uint64_t resume)
{
    CADRE_ASSERT(before != group);
    CADRE_ASSERT(before->consumed_count <= AGENT_CONSUMED_MAX);
    for (uint32_t i = 0; i < before->consumed_count; i++) {
        if (before->consumed[i].applied <= resume) {
            core_agent_consumed_keep(group, &before->consumed[i]);
        }
    }
}

void agent_consumed_send(
    const struct agent_core *core, const struct agent_group *group, struct agent_actions *out)
{
    CADRE_ASSERT(group->folded); /* else the members' positions are not all known */
    CADRE_ASSERT(group->consumed_count <= AGENT_CONSUMED_MAX);
    for (uint32_t i = 0; i < group->consumed_count; i++) {
        const struct agent_consumed *consumed = &group->consumed[i];
        struct task_ref none = {.job = group->job};
        /* It is sent for all members: one that is behind has not reached that position. */
        bool all = consumed->applied <= group->applied;
        struct agent_up *up = all ? agent_send(core, out, AGENT_UP_ARRIVED, none) : NULL;
        if (up != NULL) {
            up->arrived = (struct agent_arrived){
                .job = group->job,
                .generation = group->generation,
                .tasks = group->members,
                .up_to = consumed->applied,
                .applied = consumed->applied,
                .cursor = consumed->cursor,
                .consumption = consumed->consumption,
            };
        }
    }
}
