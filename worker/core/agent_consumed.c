/* SPDX-License-Identifier: Apache-2.0
 * What the epochs that ended have consumed. A task reports the whole of an epoch once, when it
 * turns to another one; a coordinator that was away did not receive it, and one that regroups takes
 * no folded arrival. So the newest of a generation are kept, and sent for no member: on a new link,
 * and before a member's report, because the plan that is made of the reports records what was
 * consumed before its first position. The fold (agent_fold.c) and the relay call it. */
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
        group->consumed_sent -= at < group->consumed_sent ? 1 : 0;
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
    core_agent_consumed_keep(
        group, &(struct agent_consumed){
                   .cursor = *from, .applied = task->applied, .consumption = task->consumption});
}

static void agent_consumed_one(const struct agent_core *core, const struct agent_group *group,
    const struct agent_consumed *consumed, struct agent_actions *out)
{
    struct task_ref none = {.job = group->job};
    CADRE_ASSERT(consumed->cursor.stream != 0 && consumed->consumption.steps > 0);
    struct agent_up *up = agent_send(core, out, AGENT_UP_ARRIVED, none);
    if (up != NULL) {
        up->arrived = (struct agent_arrived){
            .job = group->job,
            .generation = group->generation,
            .up_to = consumed->applied,
            .applied = consumed->applied,
            .cursor = consumed->cursor,
            .consumption = consumed->consumption,
        };
    }
}

void agent_consumed_send(
    const struct agent_core *core, struct agent_group *group, struct agent_actions *out)
{
    CADRE_ASSERT(group->consumed_count <= AGENT_CONSUMED_MAX);
    CADRE_ASSERT(group->consumed_sent <= group->consumed_count);
    for (uint32_t i = group->consumed_sent; i < group->consumed_count; i++) {
        agent_consumed_one(core, group, &group->consumed[i], out);
    }
    group->consumed_sent = group->consumed_count; /* without a link: a welcome sends all again */
}

void agent_consumed_report(
    struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    if (task->group == GROUP_NONE) {
        return;
    }
    struct agent_group *group = agent_group_of(core, task);
    CADRE_ASSERT(group->job.n == task->ref.job.n);
    agent_consumed_send(core, group, out);
    if (task->arrived && task->cursor.stream != 0 && task->consumption.steps > 0) {
        agent_consumed_one(core, group,
            &(struct agent_consumed){
                .cursor = task->cursor, .applied = task->applied, .consumption = task->consumption},
            out);
    }
}
