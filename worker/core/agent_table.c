/* SPDX-License-Identifier: Apache-2.0
 * The entries of the table, and how an action and a message are appended. All files of the agent
 * core call it. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

/* ---- the table ---- */

struct agent_task *agent_find(struct agent_core *core, struct task_ref ref)
{
    CADRE_ASSERT(core->entries == AGENT_ENTRIES(core->options.slots));
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase != AGENT_TASK_NONE && task_ref_equal(task->ref, ref)) {
            return task;
        }
    }
    return NULL;
}

struct agent_resend *agent_resend_of(const struct agent_core *core, const struct agent_task *task)
{
    CADRE_ASSERT(task >= core->tasks);
    CADRE_ASSERT(task < core->tasks + core->entries);
    return &core->resend[task - core->tasks];
}

struct agent_group *agent_group_of(const struct agent_core *core, const struct agent_task *task)
{
    CADRE_ASSERT(task->phase != AGENT_TASK_NONE);
    CADRE_ASSERT(task->group < core->entries);
    struct agent_group *group = &core->groups[task->group];
    CADRE_ASSERT(group->job.n == task->ref.job.n);
    CADRE_ASSERT(group->members > 0);
    return group;
}

bool agent_is_current(
    const struct agent_core *core, const struct agent_task *task, struct generation generation)
{
    return task->group != GROUP_NONE &&
           generation_equal(agent_group_of(core, task)->generation, generation);
}

/* ---- actions and messages ---- */

struct agent_action *agent_append(
    struct agent_actions *out, enum agent_action_type type, struct task_ref ref)
{
    CADRE_ASSERT(out->count < out->capacity);
    CADRE_ASSERT(type >= AGENT_ACTION_SEND && type <= AGENT_ACTION_EXIT);
    struct agent_action *action = &out->items[out->count++];
    memset(&action->up, 0, sizeof(action->up));
    action->type = type;
    action->task = ref;
    action->part = NULL;
    action->signal = 0;
    action->code = CADRE_OK;
    action->text[0] = '\0';
    return action;
}

struct agent_up *agent_send(const struct agent_core *core, struct agent_actions *out,
    enum agent_up_type type, struct task_ref ref)
{
    /* A hello comes before the welcome, and the shell sends the log. */
    CADRE_ASSERT(type > AGENT_UP_HELLO && type < AGENT_UP_LOG);
    if (!core->linked) {
        return NULL;
    }
    CADRE_ASSERT(core->link_up);
    struct agent_up *up = &agent_append(out, AGENT_ACTION_SEND, ref)->up;
    up->type = type;
    return up;
}

void agent_send_relay(const struct agent_core *core, struct task_ref ref,
    const struct task_up *relay_up, struct agent_actions *out)
{
    CADRE_ASSERT(relay_up->type != TASK_UP_ARRIVE); /* it is folded */
    struct agent_up *up = agent_send(core, out, AGENT_UP_RELAY, ref);
    if (up != NULL) {
        up->relay_up = (struct agent_relay_up){.task = ref, .up = *relay_up};
    }
}

void agent_copy_text(char *to, size_t size, const char *from)
{
    CADRE_ASSERT(size > 0);
    CADRE_ASSERT(from != to); /* it would be emptied before it is read */
    struct text text = text_begin(to, size);
    text_add(&text, from == NULL ? "" : from);
}
