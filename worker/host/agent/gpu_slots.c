/* SPDX-License-Identifier: Apache-2.0
 * Assigns one of the host's slots to a task, from its start to its end: what belongs to the slot
 * (GPUs) is then the task's own. It is independent of the task's slot in its job. */
#include "worker/host/agent/agent_state.h"

static uint32_t task_count_of(const struct agent *agent, int32_t gpu_slot)
{
    uint32_t count = 0;
    for (const struct agent_task *task = agent->tasks; task != NULL; task = task->next) {
        count += task->gpu_slot == gpu_slot && !task->reported ? 1U : 0U;
    }
    return count;
}

int32_t gpu_slot_choose(const struct agent *agent)
{
    int32_t best = 0;
    uint32_t fewest = UINT32_MAX;
    for (int32_t gpu_slot = 0; gpu_slot < (int32_t)agent->setup.core.slots && fewest > 0;
         gpu_slot++) {
        uint32_t count = task_count_of(agent, gpu_slot);
        best = count < fewest ? gpu_slot : best;
        fewest = count < fewest ? count : fewest;
    }
    return best;
}
