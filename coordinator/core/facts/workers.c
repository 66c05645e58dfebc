/* SPDX-License-Identifier: Apache-2.0
 * The known worker daemons, each one incarnation, and until when the core waits for each. A lease
 * is moved lazily: a message of a worker costs nothing, and a deadline that comes up too early is
 * set again. */
#include "coordinator/core/facts/workers.h"

#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/states.h"

#define AGAIN_PART 4 /* of a lease: overdue workers are checked again */

void worker_seen(struct core *core, uint32_t worker)
{
    CADRE_ASSERT(core->workers[worker].state == WORKER_CONNECTED);
    core->workers[worker].last_seen_us = core->now_us;
}

void worker_clears(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state == WORKER_CONNECTED);
    if (w->leftovers > 0) { /* an agent may report it more often than it should */
        w->leftovers--;
        worker_offer(core, worker);
    }
}

uint32_t worker_add(struct core *core, const char *name)
{
    uint32_t worker = list_take(&core->workers_free);
    CADRE_ASSERT(strlen(name) < LIMIT_NAME_BYTES);
    if (worker == LIST_NONE) {
        return NONE;
    }
    struct worker *w = &core->workers[worker];
    memset(w, 0, sizeof(*w));
    w->id = (struct worker_id){.n = ++core->worker_last};
    w->task_groups = (struct task_group_ref){.job = NONE, .task_group = NONE};
    memcpy(w->name, name, strlen(name));
    w->drained = drain_of(core, name) != NULL;
    w->draining = w->drained;
    list_append(&core->workers_live, worker);
    map_add(&core->workers_by_name, worker_key(w->name), worker);
    CADRE_ASSERT(core->workers_live.count == core->workers_by_name.count);
    return worker;
}

uint64_t worker_patience_us(const struct core *core, const struct worker *worker)
{
    uint64_t wait_timeout_us = core->options.rewind_us;
    CADRE_ASSERT(worker->state != WORKER_FREE);
    if (worker->orphan_us > 0 && worker->orphan_us < wait_timeout_us) {
        wait_timeout_us = worker->orphan_us; /* it has ended them itself by then */
    }
    return wait_timeout_us > core->options.lease_us ? wait_timeout_us : core->options.lease_us;
}

void worker_lease_set(struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->last_seen_us <= core->now_us);
    CADRE_ASSERT(!w->overdue || w->state == WORKER_AWAY);
    CADRE_ASSERT(w->state != WORKER_FREE);
    uint64_t due_us = w->last_seen_us + core->options.lease_us;
    if (w->overdue) {
        uint64_t last_us = w->last_seen_us + worker_patience_us(core, w);
        uint64_t again_us = core->now_us + core->options.lease_us / AGAIN_PART;
        due_us = again_us < last_us ? again_us : last_us;
    }
    heap_set(&core->deadlines, worker, due_us);
}

uint32_t worker_expect(struct core *core, const char *name)
{
    uint32_t worker = worker_add(core, name);
    if (worker == NONE) {
        return NONE;
    }
    struct worker *w = &core->workers[worker];
    worker_move(w, WORKER_CONNECTED, ABSENCE_NONE);
    worker_move(w, WORKER_AWAY, ABSENCE_EXPECTED);
    w->last_seen_us = core->now_us;
    worker_lease_set(core, worker);
    return worker;
}

void worker_forget(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state != WORKER_FREE && w->slots_used == 0);
    CADRE_ASSERT(w->task_groups.job == NONE);
    map_remove(&core->workers_by_name, worker_key(w->name), worker);
    heap_remove(&core->deadlines, worker);
    worker_move(w, WORKER_FREE, ABSENCE_NONE);
    worker_offer(core, worker);
    list_remove(&core->workers_live, worker);
    list_append(&core->workers_free, worker);
    CADRE_ASSERT(w->counted_total == 0 && w->counted_free == 0);
    CADRE_ASSERT(core->workers_live.count == core->workers_by_name.count);
}
