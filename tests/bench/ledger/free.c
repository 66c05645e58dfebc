/* SPDX-License-Identifier: Apache-2.0
 * Linked between a program's runtime and its task core: every step is released from the start and
 * no arrival is ever said. What such a job takes for a step is what it takes without a barrier and
 * without a ledger. */
#include "worker/core/task_parts.h"

void __real_task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out);
void __wrap_task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out);
bool __wrap_task_arrive(struct task_core *core, bool asked, struct task_actions *out);

void __wrap_task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    __real_task_core_step(core, event, out);
    if (core->phase == TASK_RUN) {
        core->arrived = LIMIT_POSITION;
        core->released = LIMIT_POSITION;
    }
}

bool __wrap_task_arrive(struct task_core *core, bool asked, struct task_actions *out)
{
    (void)core;
    (void)asked;
    (void)out;
    return false;
}
