/* SPDX-License-Identifier: Apache-2.0
 * Linked between a program's runtime and its task core: the admission window is its widest from
 * the first step on. */
#include "worker/core/task_core.h"

void __real_task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation,
    uint32_t replicas, uint32_t pid, const char *mesh_address);
void __wrap_task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation,
    uint32_t replicas, uint32_t pid, const char *mesh_address);

void __wrap_task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation,
    uint32_t replicas, uint32_t pid, const char *mesh_address)
{
    __real_task_core_init(core, slot, incarnation, replicas, pid, mesh_address);
    core->window_steps = LIMIT_WINDOW_STEPS;
}
