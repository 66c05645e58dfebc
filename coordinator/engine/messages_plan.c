/* SPDX-License-Identifier: Apache-2.0
 * A plan's roster, whole or in parts. A part names the members on one host, and the neighbours of
 * each in the tree over which tasks pass the whole one on (common/model/roster_tree.h):
 *
 *     members * daemons     whole, to all: one message, and no task waits for another one
 *     above a limit         parts: bytes in proportion to the members, whatever hosts they are on
 */
#include "coordinator/engine/messages_plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/model/roster_tree.h"
#include "common/pure/assert.h"

/* A member, sorted by its worker, then by its rank. */
struct member_worker {
    uint64_t worker;
    uint32_t rank;
};

struct roster_split {
    struct member_worker *by_worker; /* [members] */
    struct roster_entry *part;       /* [members]: of the daemon that is sent to */
    bool *taken;                     /* [members]: by rank, those in the part */
    size_t count;                    /* in the part */
};

/* ---- making ---- */

static void roster_split_free(struct roster_split *split)
{
    if (split != NULL) {
        free(split->by_worker);
        free(split->part);
        free(split->taken);
        free(split);
    }
}

static struct roster_split *roster_split_new(uint32_t members)
{
    struct roster_split *split = calloc(1, sizeof *split);
    if (split == NULL) {
        return NULL;
    }
    split->by_worker = calloc(members, sizeof *split->by_worker);
    split->part = calloc(members, sizeof *split->part);
    split->taken = calloc(members, sizeof *split->taken);
    if (split->by_worker == NULL || split->part == NULL || split->taken == NULL) {
        roster_split_free(split);
        return NULL;
    }
    return split;
}

static int compare_workers(const void *left, const void *right)
{
    const struct member_worker *a = left;
    const struct member_worker *b = right;
    if (a->worker != b->worker) {
        return a->worker < b->worker ? -1 : 1;
    }
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool make_roster(
    const struct sender *sender, const struct core_job_view *view, struct fanout *fanout)
{
    uint32_t whole_max = sender->whole_max > 0 ? sender->whole_max : MESSAGES_WHOLE_MAX;
    bool is_split = (uint64_t)view->workers * view->roster > whole_max;
    fanout->roster = calloc(view->roster + 1, sizeof(struct roster_entry));
    fanout->addresses = calloc(view->roster + 1, LIMIT_ADDRESS_BYTES);
    fanout->split = is_split ? roster_split_new(view->roster) : NULL;
    if (fanout->roster == NULL || fanout->addresses == NULL ||
        (is_split && fanout->split == NULL)) {
        return false;
    }
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        struct core_task_view task;
        core_job_task(
            sender->core, view->job, core_job_member(sender->core, view->job, rank), &task);
        memcpy(fanout->addresses[rank], task.mesh_address, LIMIT_ADDRESS_BYTES);
        fanout->roster[rank] = (struct roster_entry){.slot = task.slot,
            .incarnation = task.incarnation,
            .replicas = task.replicas,
            .mesh_address = fanout->addresses[rank],
            .rank = rank};
        if (is_split) {
            fanout->split->by_worker[rank] =
                (struct member_worker){.worker = task.worker.n, .rank = rank};
        }
    }
    if (is_split) {
        qsort(
            fanout->split->by_worker, view->roster, sizeof(struct member_worker), compare_workers);
    }
    return true;
}

bool messages_plan_make(
    const struct sender *sender, const struct core_job_view *view, struct fanout *fanout)
{
    if (!make_roster(sender, view, fanout)) {
        return false;
    }
    struct task_plan *plan = &fanout->down.relay_down.down.plan;
    *plan = (struct task_plan){.generation = view->generation,
        .roster = fanout->roster,
        .roster_count = view->roster,
        .resume = view->resume,
        .source = view->source,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream};
    sender->key(sender->user, view->job, view->generation, plan->key);
    return true;
}

void messages_plan_free(struct fanout *fanout)
{
    roster_split_free(fanout->split);
    free(fanout->roster);
    free(fanout->addresses);
    fanout->split = NULL;
    fanout->roster = NULL;
    fanout->addresses = NULL;
}

/* ---- sending ---- */

static void part_add(struct roster_split *split, const struct fanout *fanout, uint32_t rank)
{
    if (!split->taken[rank]) {
        split->taken[rank] = true;
        split->part[split->count++] = fanout->roster[rank];
    }
}

static void part_add_neighbours(
    struct roster_split *split, const struct fanout *fanout, uint32_t rank, uint32_t members)
{
    part_add(split, fanout, rank);
    if (rank > 0) {
        part_add(split, fanout, roster_parent(rank));
    }
    uint32_t first = roster_first_child(rank);
    for (uint32_t child = first; child < members && child < first + ROSTER_FAN_OUT; child++) {
        part_add(split, fanout, child);
    }
}

/* The index of the worker's first member. */
static uint32_t first_of_worker(const struct roster_split *split, uint32_t members, uint64_t worker)
{
    uint32_t low = 0;
    uint32_t high = members;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (split->by_worker[middle].worker < worker) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The part of one worker; empty: it has no members any more. Rank 0 passes all on. */
static void make_part(const struct fanout *fanout, uint32_t members, struct worker_id worker)
{
    struct roster_split *split = fanout->split;
    for (size_t i = 0; i < split->count; i++) {
        split->taken[split->part[i].rank] = false;
    }
    split->count = 0;
    uint32_t at = first_of_worker(split, members, worker.n);
    bool whole =
        at < members && split->by_worker[at].worker == worker.n && split->by_worker[at].rank == 0;
    for (uint32_t rank = 0; whole && rank < members; rank++) {
        part_add(split, fanout, rank);
    }
    for (; at < members && split->by_worker[at].worker == worker.n; at++) {
        part_add_neighbours(split, fanout, split->by_worker[at].rank, members);
    }
}

static void send_part(const struct sender *sender, const struct fanout *fanout,
    struct worker_id worker, struct link_id link, struct agent_down *down)
{
    struct task_plan *plan = &down->relay_down.down.plan;
    uint32_t members = (uint32_t)fanout->down.relay_down.down.plan.roster_count;
    make_part(fanout, members, worker);
    if (fanout->split->count > 0) {
        plan->roster = fanout->split->part;
        plan->roster_count = fanout->split->count;
        plan->members = members;
        messages_send(sender, link, down);
    }
}

void messages_plan_fan_out(const struct sender *sender, const struct core_job_view *view,
    const struct fanout *fanout, const struct core_action *one)
{
    struct agent_down down = fanout->down;
    if (one != NULL) {
        struct core_task_view task;
        core_job_task(sender->core, view->job, one->notify_job.slot, &task);
        down.relay_down.one = true;
        down.relay_down.task =
            (struct task_ref){.job = view->job, .slot = task.slot, .incarnation = task.incarnation};
        send_part(sender, fanout, task.worker, one->notify_job.link, &down);
        return;
    }
    for (uint32_t i = 0; i < view->workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(sender->core, view->job, i, &worker, &link, &members);
        if (members > 0) {
            send_part(sender, fanout, worker, link, &down);
        }
    }
}
