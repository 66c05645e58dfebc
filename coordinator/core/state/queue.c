/* SPDX-License-Identifier: Apache-2.0
 * The queue: jobs that wait, in order of placement. Thousands may wait, and each event asks for the
 * next job or the number before one; so both are kept until they may have changed, and are found
 * again once for all later queries. */
#include "coordinator/core/state/queue.h"

#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"

static bool could_hold(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->state == JOB_QUEUED);
    return !job->over_time_limit && !job->behind && job->tasks_min <= offers_total(core, job);
}

/* The first job from `index` on that the cluster could hold. */
static uint32_t first_of(const struct core *core, uint32_t index)
{
    while (index != LIST_NONE && !could_hold(core, &core->jobs[index])) {
        index = core->queue.nodes[index].next;
    }
    return index;
}

void queue_insert(struct core *core, struct list *list, const struct job *job)
{
    uint32_t at = LIST_NONE;
    uint32_t before = list->last;
    CADRE_ASSERT(list == &core->queue || list == &core->underfilled);
    while (before != LIST_NONE && (core->jobs[before].priority < job->priority ||
                                      (core->jobs[before].priority == job->priority &&
                                          core->jobs[before].id.n > job->id.n))) {
        at = before;
        before = list->nodes[before].prev;
    }
    list_insert(list, at, job_index(core, job));
    CADRE_ASSERT(before == LIST_NONE || core->jobs[before].priority >= job->priority);
    CADRE_ASSERT(at == LIST_NONE || core->jobs[at].priority <= job->priority);
}

/* Numbers a new last job if the others are numbered. */
static void number_added(struct core *core, uint32_t index)
{
    uint32_t before = core->queue.nodes[index].prev;
    bool last = core->queue.last == index;
    CADRE_ASSERT(core->queue.count > 0);
    core->queue_numbered = last && (core->queue_numbered || before == LIST_NONE);
    core->queue_numbers[index] = before == LIST_NONE ? 0 : core->queue_numbers[before] + 1;
}

void queue_add(struct core *core, struct job *job)
{
    uint32_t index = job_index(core, job);
    CADRE_ASSERT(job->state == JOB_QUEUED);
    CADRE_ASSERT(job->task_groups == 0 && job->alive == 0);
    queue_insert(core, &core->queue, job);
    number_added(core, index);
    if (!core->queue_head_known || !could_hold(core, job)) {
        return;
    }
    if (core->queue_head == NONE) {
        core->queue_head = index;
    } else if (core->queue.last != index) {
        core->queue_head_known = false;
    }
}

void queue_remove(struct core *core, struct job *job)
{
    uint32_t index = job_index(core, job);
    CADRE_ASSERT(core->queue.count > 0);
    core->queue_numbered =
        core->queue_numbered && (core->queue.first == index || core->queue.last == index);
    if (core->queue_head_known &&
        core->queue_head == index) { /* no job before it could be the head */
        core->queue_head = first_of(core, core->queue.nodes[index].next);
    }
    list_remove(&core->queue, index);
    CADRE_ASSERT(!core->queue_head_known || core->queue_head != index);
}

uint32_t queue_head(const struct core *core)
{
    CADRE_ASSERT(!core->queue_head_known || core->queue_head == NONE ||
                 core->jobs[core->queue_head].id.n != 0);
    return core->queue_head_known ? core->queue_head : first_of(core, core->queue.first);
}

void queue_settle_head(struct core *core)
{
    core->queue_head = queue_head(core);
    core->queue_head_known = true;
    CADRE_ASSERT(core->queue_head == LIST_NONE || core->jobs[core->queue_head].state == JOB_QUEUED);
}

void queue_settle(struct core *core)
{
    queue_settle_head(core);
    uint32_t number = 0;
    for (uint32_t i = core->queue.first; !core->queue_numbered && i != LIST_NONE;
         i = core->queue.nodes[i].next) {
        core->queue_numbers[i] = number++;
    }
    core->queue_numbered = true;
    CADRE_ASSERT(number == 0 || number == core->queue.count);
}

uint32_t queue_before(const struct core *core, const struct job *job)
{
    uint32_t index = job_index(core, job);
    CADRE_ASSERT(core->queue.count > 0);
    CADRE_ASSERT(job->state == JOB_QUEUED);
    if (core->queue_numbered) {
        return core->queue_numbers[index] - core->queue_numbers[core->queue.first];
    }
    uint32_t count = 0;
    for (uint32_t i = core->queue.nodes[index].prev; i != LIST_NONE;
         i = core->queue.nodes[i].prev) {
        count++;
    }
    CADRE_ASSERT(count < core->queue.count);
    return count;
}

const char *queue_fault(const struct core *core)
{
    const struct list *queue = &core->queue;
    uint32_t before = 0;
    for (uint32_t i = queue->first; i != LIST_NONE; i = queue->nodes[i].next) {
        const struct job *job = &core->jobs[i];
        uint32_t next = queue->nodes[i].next;
        if (job->state != JOB_QUEUED) {
            return "a job is queued and placed";
        }
        if (next != LIST_NONE && job->priority < core->jobs[next].priority) {
            return "the queue is out of order";
        }
        if (core->queue_numbered && queue_before(core, job) != before++) {
            return "the queue is misnumbered";
        }
    }
    if (core->queue_head_known && core->queue_head != first_of(core, queue->first)) {
        return "the head of the queue is another";
    }
    return NULL;
}
