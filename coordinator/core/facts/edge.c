/* SPDX-License-Identifier: Apache-2.0
 * Where the members of a generation stand that are frozen and reported. */
#include "coordinator/core/facts/edge.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static void edge_see(struct edge *edge, const struct core *core, const struct job *job,
    uint32_t slot, const struct task *task)
{
    bool drains = task_drains(core, job, task);
    CADRE_ASSERT(task->reported && task->rank != NONE);
    edge->draining += drains;
    if (!task_holds_state(job, task) || (edge->source != NONE && task->position < edge->position)) {
        return;
    }
    bool first = edge->source == NONE || task->position > edge->position;
    if (first) {
        *edge = (struct edge){.position = task->position,
            .source = slot,
            .aligned = true,
            .stream = task->stream,
            .draining = edge->draining,
            .staying = NONE};
    }
    edge->aligned &= task->begun && task->stream == edge->stream && !task->nested;
    if (!drains &&
        (edge->staying == NONE || task->rank < job_task(core, job, edge->staying)->rank)) {
        edge->staying = slot;
    }
    if (task->rank < job_task(core, job, edge->source)->rank) {
        edge->source = slot;
    }
}

struct edge edge_find(const struct core *core, const struct job *job)
{
    struct edge edge = {.source = NONE, .staying = NONE};
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->rank != NONE && task->reported) {
            edge_see(&edge, core, job, slot, task);
        }
    }
    edge.aligned &= edge.source != NONE && edge.stream <= LIMIT_STREAMS;
    CADRE_ASSERT(edge.staying == NONE || edge.source != NONE);
    CADRE_ASSERT(edge.draining <= job->reported);
    return edge;
}
