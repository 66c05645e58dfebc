/* SPDX-License-Identifier: Apache-2.0
 * What the epochs that are over were fed. A task tells the whole of an epoch when it turns to
 * another one, and never again; a coordinator that was away, or had a regroup in hand, did not hear
 * it. So the newest of them are kept and said once more on a new link and in a new generation. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"

static void keep(struct agent_group *group, const struct agent_fed *fed)
{
    CADRE_ASSERT(group->fed_count <= AGENT_FED_MAX);
    CADRE_ASSERT(fed->cursor.stream != 0);
    CADRE_ASSERT(fed->feed.steps > 0);
    uint32_t at = 0;
    while (at < group->fed_count && (group->fed[at].cursor.stream != fed->cursor.stream ||
                                        group->fed[at].cursor.epoch != fed->cursor.epoch)) {
        at++;
    }
    if (at < group->fed_count && group->fed[at].feed.steps >= fed->feed.steps) {
        return; /* told by another member */
    }
    if (at == AGENT_FED_MAX) {
        at = 0; /* makes room: the oldest */
    }
    if (at < group->fed_count) {
        group->fed_count--;
        memmove(
            &group->fed[at], &group->fed[at + 1], sizeof(group->fed[0]) * (group->fed_count - at));
    }
    CADRE_ASSERT(group->fed_count < AGENT_FED_MAX);
    group->fed[group->fed_count++] = *fed;
}

void agent_fed_leave(
    struct agent_group *group, const struct agent_task *task, const struct cursor *to)
{
    CADRE_ASSERT(group->job.n == task->ref.job.n);
    const struct cursor *from = &task->cursor;
    bool turns = from->stream != to->stream || from->epoch != to->epoch;
    if (!task->arrived || !turns || from->stream == 0 || task->feed.steps == 0) {
        return;
    }
    struct agent_fed fed = {.cursor = *from, .applied = task->applied, .feed = task->feed};
    fed.cursor.begin = fed.applied; /* of the line it claims nothing */
    keep(group, &fed);
}

void agent_fed_inherit(struct agent_group *group, const struct agent_group *before, uint64_t resume)
{
    CADRE_ASSERT(before != group);
    CADRE_ASSERT(before->fed_count <= AGENT_FED_MAX);
    for (uint32_t i = 0; i < before->fed_count; i++) {
        if (before->fed[i].applied <= resume) {
            keep(group, &before->fed[i]);
        }
    }
}

void agent_fed_say(
    const struct agent_core *core, const struct agent_group *group, struct agent_actions *out)
{
    CADRE_ASSERT(group->folded); /* else it is not known how far all members are */
    CADRE_ASSERT(group->fed_count <= AGENT_FED_MAX);
    for (uint32_t i = 0; i < group->fed_count; i++) {
        const struct agent_fed *fed = &group->fed[i];
        struct task_ref none = {.job = group->job};
        /* It is said in the name of all members: one that is behind has not come there yet. */
        bool all = fed->applied <= group->applied;
        struct agent_up *up = all ? agent_say(core, out, AGENT_UP_ARRIVED, none) : NULL;
        if (up != NULL) {
            up->arrived = (struct agent_arrived){
                .job = group->job,
                .generation = group->generation,
                .tasks = group->members,
                .up_to = fed->applied,
                .applied = fed->applied,
                .cursor = fed->cursor,
                .feed = fed->feed,
            };
        }
    }
}
