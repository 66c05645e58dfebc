/* SPDX-License-Identifier: Apache-2.0
 * Which of the host's slots a task has, from its start to its end: what belongs to a slot (GPUs) is
 * then its own. A slot of a job has nothing to do with it. */
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
