/* SPDX-License-Identifier: Apache-2.0
 * Which worker has most free slots, the oldest of equals: a tournament over the array of workers,
 * called when a worker changes and by decide/. A change costs its path to the root. The winner
 * beneath a node may have fewer GPUs than a job asks for; then both subtrees are searched, if any
 * worker there has as many. */
#include "coordinator/core/state/offers.h"

uint32_t offers_total(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->gpus <= LIMIT_GPUS_PER_WORKER);
    CADRE_ASSERT(core->slots_free[job->gpus] <= core->slots_total[job->gpus]);
    return core->slots_total[job->gpus];
}

uint32_t offers_free(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->gpus <= LIMIT_GPUS_PER_WORKER);
    CADRE_ASSERT(core->slots_total[job->gpus] <= core->slots_total[0]);
    return core->slots_free[job->gpus];
}

/* The search keeps at most one other subtree of each level. */
#define WAYS_MAX 33

static uint32_t offers_leaves(const struct core *core)
{
    CADRE_ASSERT(core->options.limits.workers_max > 0);
    return map_capacity(core->options.limits.workers_max) / 2;
}

/* Whether slots of `a` are taken before those of `b`, which may be NONE. */
static bool is_before(const struct core *core, uint32_t a, uint32_t b)
{
    const struct worker *workers = core->workers;
    CADRE_ASSERT(a == NONE || a < core->options.limits.workers_max);
    CADRE_ASSERT(b == NONE || b < core->options.limits.workers_max);
    if (a == NONE || b == NONE) {
        return a != NONE;
    }
    return workers[a].counted_free != workers[b].counted_free
               ? workers[a].counted_free > workers[b].counted_free
               : workers[a].id.n < workers[b].id.n;
}

void offers_open(struct core *core)
{
    for (uint32_t i = 0; i < 2 * offers_leaves(core); i++) {
        core->offers[i] = (struct offer){.worker = NONE};
    }
    CADRE_ASSERT(core->offers[1].worker == NONE);
}

void offers_changed(struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    struct offer *offers = core->offers;
    uint32_t at = offers_leaves(core) + worker;
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    CADRE_ASSERT(w->slot_gpus <= LIMIT_GPUS_PER_WORKER);
    offers[at] =
        w->counted_free > 0 ? (struct offer){worker, w->slot_gpus} : (struct offer){NONE, 0};
    for (at /= 2; at > 0; at /= 2) {
        const struct offer *a = &offers[2 * at];
        const struct offer *b = &offers[2 * at + 1];
        offers[at].worker = is_before(core, b->worker, a->worker) ? b->worker : a->worker;
        offers[at].gpus_max = a->gpus_max > b->gpus_max ? a->gpus_max : b->gpus_max;
    }
    CADRE_ASSERT(w->counted_free == 0 || offers[1].worker != NONE);
}

uint32_t offers_best(const struct core *core, uint32_t gpus)
{
    uint32_t ways[WAYS_MAX] = {1};
    uint32_t count = 1;
    uint32_t best = NONE;
    CADRE_ASSERT(gpus <= LIMIT_GPUS_PER_WORKER);
    while (count > 0) {
        uint32_t at = ways[--count];
        const struct offer *offer = &core->offers[at];
        if (offer->gpus_max < gpus || !is_before(core, offer->worker, best)) {
            continue;
        }
        if (core->workers[offer->worker].slot_gpus >= gpus) {
            best = offer->worker;
        } else {
            CADRE_ASSERT(count + 2 <= WAYS_MAX);
            ways[count++] = 2 * at + 1;
            ways[count++] = 2 * at;
        }
    }
    CADRE_ASSERT(best == NONE || core->workers[best].counted_free > 0);
    return best;
}

const char *offers_fault(const struct core *core)
{
    const struct list *live = &core->workers_live;
    uint32_t best = NONE;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        bool offers = core->workers[i].counted_free > 0;
        if (core->offers[offers_leaves(core) + i].worker != (offers ? i : NONE)) {
            return "the free slots of a worker are not offered";
        }
        best = offers && is_before(core, i, best) ? i : best;
    }
    return offers_best(core, 0) == best ? NULL : "another worker has most free slots";
}

static uint32_t entries_taken(const struct worker *w)
{
    CADRE_ASSERT(w->leftovers <= UINT32_MAX - w->slots_used);
    return w->slots_used + w->leftovers;
}

/* Unused slots, as far as the agent has entries left: uncollected tasks of others take some. */
static uint32_t worker_unused(const struct worker *w)
{
    uint32_t entries = AGENT_ENTRIES(w->slots);
    uint32_t taken = entries_taken(w);
    uint32_t slots = w->slots > w->slots_used ? w->slots - w->slots_used : 0;
    uint32_t left = entries > taken ? entries - taken : 0;
    CADRE_ASSERT(w->slots <= LIMIT_SLOTS_PER_WORKER);
    return slots < left ? slots : left;
}

bool worker_is_overfull(const struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state == WORKER_CONNECTED);
    return entries_taken(w) > AGENT_ENTRIES(w->slots);
}

void worker_offer(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    bool offers = w->state != WORKER_FREE && !w->draining && !w->overdue;
    uint32_t total = offers ? w->slots : 0;
    uint32_t now_free = offers && w->state == WORKER_CONNECTED ? worker_unused(w) : 0;
    bool same_gpus = w->slot_gpus == w->counted_gpus;
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    CADRE_ASSERT(w->slot_gpus <= LIMIT_GPUS_PER_WORKER);
    core->queue_head_known &= total == w->counted_total && same_gpus;
    core->placement_due |= total != w->counted_total || now_free != w->counted_free || !same_gpus;
    for (uint32_t gpus = 0; gpus <= w->counted_gpus; gpus++) {
        CADRE_ASSERT(core->slots_total[gpus] >= w->counted_total);
        CADRE_ASSERT(core->slots_free[gpus] >= w->counted_free);
        core->slots_total[gpus] -= w->counted_total;
        core->slots_free[gpus] -= w->counted_free;
    }
    for (uint32_t gpus = 0; gpus <= w->slot_gpus; gpus++) {
        core->slots_total[gpus] += total;
        core->slots_free[gpus] += now_free;
    }
    w->counted_total = total;
    w->counted_free = now_free;
    w->counted_gpus = w->slot_gpus;
    offers_changed(core, worker);
    CADRE_ASSERT(w->counted_free <= w->counted_total);
    CADRE_ASSERT(core->slots_free[0] <= core->slots_total[0]);
}

bool worker_serves(const struct core *core, uint32_t worker, const struct job *job)
{
    CADRE_ASSERT(core->workers[worker].state != WORKER_FREE);
    CADRE_ASSERT(job->gpus <= LIMIT_GPUS_PER_WORKER);
    return core->workers[worker].slot_gpus >= job->gpus;
}

bool worker_lends(const struct core *core, uint32_t worker, const struct job *job)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->counted_free <= w->counted_total);
    return w->state == WORKER_CONNECTED && w->counted_total > 0 && worker_serves(core, worker, job);
}
