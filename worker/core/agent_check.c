/* SPDX-License-Identifier: Apache-2.0
 * What tests and the simulator read of an agent core: its tasks, its invariants, its digest. */
#include "worker/core/agent_table.h"

#include "common/pure/assert.h"
#include "common/pure/prng.h"

bool agent_core_task(const struct agent_core *core, uint32_t i, struct agent_task_view *ret_view)
{
    if (i >= core->entries || core->tasks[i].phase == AGENT_TASK_NONE) {
        return false;
    }
    const struct agent_task *task = &core->tasks[i];
    CADRE_ASSERT(task->ref.job.n != 0);
    *ret_view = (struct agent_task_view){
        .task = task->ref,
        .phase = task->phase,
        .pid = task->pid,
        .over = task->over,
        .connected = task->connected,
        .up_to = task->up_to,
        .applied = task->applied,
    };
    if (task->group != GROUP_NONE) {
        ret_view->generation = agent_group_of(core, task)->generation;
    }
    return true;
}

static const char *task_invariant(const struct agent_core *core, const struct agent_task *task)
{
    if (task->ref.job.n == 0) {
        return "a task belongs to a job";
    }
    if (task->connected && (task->phase < AGENT_TASK_RUNNING || task->phase > AGENT_TASK_KILLED)) {
        return "only a task that runs is connected";
    }
    const struct agent_resend *resend = &core->resend[task - core->tasks];
    if (resend->has_join && (resend->hello.generation.number != 0 || resend->has_report)) {
        return "a task that joins is in no generation";
    }
    if (task->over && task->phase < AGENT_TASK_KILLED) {
        return "a task that was adopted after its end has no process";
    }
    if (task->adopted && task->connected) {
        return "a task is not adopted any more once it has sent hello";
    }
    if (task->adopted && task->phase < AGENT_TASK_RUNNING) {
        return "only a task that was started is adopted";
    }
    if (task->arrived && task->group == GROUP_NONE) {
        return "a task arrives in a generation";
    }
    if (task->group != GROUP_NONE && core->groups[task->group].job.n != task->ref.job.n) {
        return "a task's generation is of its own job";
    }
    if (task->phase == AGENT_TASK_TERMINATING && core->now_us >= task->kill_at_us) {
        return "a task is killed when its grace is over";
    }
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *other = &core->tasks[i];
        if (other == task || other->phase == AGENT_TASK_NONE) {
            continue;
        }
        if (task_ref_equal(other->ref, task->ref)) {
            return "a task has one entry";
        }
        bool same = other->ref.job.n == task->ref.job.n && other->ref.slot == task->ref.slot;
        bool both_run = other->phase >= AGENT_TASK_RUNNING && other->phase < AGENT_TASK_GONE &&
                        task->phase >= AGENT_TASK_RUNNING && task->phase < AGENT_TASK_GONE &&
                        !task->over && !other->over;
        if (same && both_run) {
            return "two incarnations of a task never run at once";
        }
    }
    return NULL;
}

static const char *group_invariant(const struct agent_core *core, uint32_t index)
{
    const struct agent_group *group = &core->groups[index];
    uint32_t members = 0;
    uint32_t arrived = 0;
    uint64_t up_to = UINT64_MAX;
    uint64_t applied = UINT64_MAX;
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_NONE || task->group != index) {
            continue;
        }
        members++;
        arrived += task->arrived ? 1 : 0;
        up_to = task->up_to < up_to ? task->up_to : up_to;
        applied = task->applied < applied ? task->applied : applied;
    }
    if ((group->job.n == 0) != (members == 0)) {
        return "a generation has an entry as long as a task is in it";
    }
    if (members > group->members || arrived > group->arrived) {
        return "members and arrivals are counted";
    }
    if (group->wanted == 0 && group->wanted_slot != 0) {
        return "a generation without wanted steps names no slot for them";
    }
    bool whole = members == group->members;
    if (group->folded && whole && (group->up_to != up_to || group->applied != applied)) {
        return "what was folded is the least over all members";
    }
    return NULL;
}

static const char *stream_invariant(const struct agent_core *core, const struct agent_stream *kept)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        bool attempts = task->phase >= AGENT_TASK_RUNNING && task->phase <= AGENT_TASK_KILLED;
        if (attempts && task->ref.job.n == kept->job.n) {
            return NULL;
        }
    }
    return "datasets are kept as long as a process of their job runs";
}

const char *agent_core_invariant(const struct agent_core *core)
{
    for (uint32_t i = 0; i < AGENT_STREAMS(core->options.slots); i++) {
        const struct agent_stream *kept = &core->streams[i];
        const char *broken = kept->job.n == 0 ? NULL : stream_invariant(core, kept);
        if (broken != NULL) {
            return broken;
        }
    }
    uint32_t alive = 0;
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        if (task->phase != AGENT_TASK_NONE) {
            const char *broken = task_invariant(core, task);
            if (broken != NULL) {
                return broken;
            }
            alive += task->phase == AGENT_TASK_RUNNING ? 1 : 0;
        }
        const char *broken = group_invariant(core, i);
        if (broken != NULL) {
            return broken;
        }
    }
    if (alive > core->options.slots) {
        return "no more tasks run than there are slots";
    }
    if (core->linked && !core->link_up) {
        return "a welcome is bound to its link";
    }
    return NULL;
}

static uint64_t agent_check_mix(uint64_t digest, uint64_t value)
{
    return prng_mix(digest ^ prng_mix(value));
}

uint64_t agent_core_digest(const struct agent_core *core)
{
    CADRE_ASSERT(core->entries == AGENT_ENTRIES(core->options.slots));
    uint64_t digest = agent_check_mix(core->now_us, core->entries);
    digest = agent_check_mix(digest, (core->link_up ? 1U : 0U) + (core->linked ? 2U : 0U) +
                                         (core->draining ? 4U : 0U) + (core->left ? 8U : 0U));
    digest = agent_check_mix(digest, core->heartbeat_at_us);
    digest = agent_check_mix(digest, core->orphan_at_us);
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        digest = agent_check_mix(digest, (uint64_t)task->phase);
        if (task->phase == AGENT_TASK_NONE) {
            continue;
        }
        digest = agent_check_mix(digest, task->ref.job.n);
        digest = agent_check_mix(digest, task->ref.slot);
        digest = agent_check_mix(digest, task->ref.incarnation);
        digest = agent_check_mix(digest, task->pid);
        digest = agent_check_mix(digest,
            (task->connected ? 1U : 0U) + (task->adopted ? 2U : 0U) + (task->over ? 4U : 0U));
        digest = agent_check_mix(digest, task->publish_at_us);
        digest = agent_check_mix(digest, task->up_to);
        digest = agent_check_mix(digest, task->applied);
        digest = agent_check_mix(digest, task->consumption.samples);
        digest = agent_check_mix(
            digest, task->group == GROUP_NONE ? 0 : core->groups[task->group].generation.number);
        const struct agent_resend *resend = &core->resend[i];
        digest = agent_check_mix(
            digest, (resend->has_join ? 1U : 0U) + (resend->has_report ? 2U : 0U) +
                        (resend->has_part ? 4U : 0U) + (resend->publishing ? 8U : 0U));
    }
    for (uint32_t i = 0; i < AGENT_STREAMS(core->options.slots); i++) {
        digest = agent_check_mix(digest, core->streams[i].job.n);
        digest = agent_check_mix(digest, core->streams[i].stream.stream);
    }
    return digest;
}
