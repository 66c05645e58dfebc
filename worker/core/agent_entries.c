/* SPDX-License-Identifier: Apache-2.0
 * The entries and slots of the host: which task takes one, which waits for one, which is removed.
 */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"

void agent_forget_task(struct agent_core *core, struct agent_task *task, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase == AGENT_TASK_COLLECTED);
    CADRE_ASSERT(!task->connected);
    CADRE_ASSERT(task->ended >= 1 && task->ended <= core->ended);
    agent_append(out, AGENT_ACTION_FORGET, task->ref);
    agent_group_remove(core, task);
    memset(agent_resend_of(core, task), 0, sizeof(struct agent_resend));
    memset(task, 0, sizeof(*task));
}

uint32_t agent_slots_used(const struct agent_core *core)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        bool runs = task->phase >= AGENT_TASK_RUNNING && task->phase < AGENT_TASK_GONE;
        runs = runs && !task->over;
        used += runs || (task->phase == AGENT_TASK_PREPARING && task->spawning) ? 1 : 0;
    }
    CADRE_ASSERT(used <= core->entries);
    return used;
}

struct agent_task *agent_take_entry(
    struct agent_core *core, struct task_ref ref, struct agent_actions *out)
{
    struct agent_task *taken = NULL;
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_NONE) {
            taken = task;
            break;
        }
        if (task->phase == AGENT_TASK_COLLECTED && (taken == NULL || task->ended < taken->ended)) {
            taken = task;
        }
    }
    if (taken == NULL) {
        return NULL;
    }
    if (taken->phase == AGENT_TASK_COLLECTED) {
        agent_forget_task(core, taken, out);
    }
    /* Nothing is left of the task that had it before. */
    CADRE_ASSERT(taken->phase == AGENT_TASK_NONE);
    CADRE_ASSERT(taken->ref.job.n == 0);
    CADRE_ASSERT(!agent_resend_of(core, taken)->publishing);
    taken->ref = ref;
    taken->group = GROUP_NONE;
    return taken;
}

bool agent_is_of_slot(const struct agent_task *task, struct task_ref ref)
{
    return task->phase != AGENT_TASK_NONE && task->ref.job.n == ref.job.n &&
           task->ref.slot == ref.slot;
}

/* Whether a process of an older incarnation may still be alive. */
static bool predecessor_runs(const struct agent_core *core, const struct agent_task *task)
{
    CADRE_ASSERT(task->phase == AGENT_TASK_PREPARING);
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *other = &core->tasks[i];
        if (agent_is_of_slot(other, task->ref) && other->ref.incarnation < task->ref.incarnation &&
            other->phase < AGENT_TASK_GONE && !other->over) {
            return true;
        }
    }
    return false;
}

void agent_spawn_ready(struct agent_core *core, struct agent_actions *out)
{
    uint32_t used = agent_slots_used(core);
    for (uint32_t i = 0; i < core->entries && used < core->options.slots; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_PREPARING && task->prepared && !task->spawning &&
            !predecessor_runs(core, task)) {
            CADRE_ASSERT(!task->stopping); /* it would be over: no process was on its way */
            CADRE_ASSERT(task->group == GROUP_NONE);
            CADRE_ASSERT(!task->adopted);
            task->spawning = true;
            agent_append(out, AGENT_ACTION_SPAWN, task->ref);
            used++;
        }
    }
}
