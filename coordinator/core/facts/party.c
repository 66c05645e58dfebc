/* SPDX-License-Identifier: Apache-2.0
 * Parties: the tasks of one job on one worker, which arrive as one. They lie without gaps at the
 * start of the job's array; when one is given up the last takes its place. */
#include "coordinator/core/facts/party.h"

#include "coordinator/core/facts/line.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"

static uint32_t party_open(struct core *core, struct job *job, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    struct party_ref ref = {.job = job_index(core, job), .party = job->parties++};
    struct party *party = job_party(core, job, ref.party);
    CADRE_ASSERT(w->state != WORKER_FREE);
    CADRE_ASSERT(job->parties <= job->tasks);
    CADRE_ASSERT(party_find(core, job, worker) == NONE);
    *party = (struct party){.worker = worker,
        .worker_id = w->id,
        .first = NONE,
        .last = NONE,
        .prev = {.job = NONE, .party = NONE},
        .next = w->parties};
    if (w->parties.job != NONE) {
        job_party(core, &core->jobs[w->parties.job], w->parties.party)->prev = ref;
    }
    w->parties = ref;
    map_add(&core->parties_by_place, party_key(core, job, worker), ref.party);
    CADRE_ASSERT(party_find(core, job, worker) == ref.party);
    return ref.party;
}

/* Takes it out of its worker's list. */
static void party_unlink(struct core *core, struct job *job, uint32_t number)
{
    struct party *party = job_party(core, job, number);
    CADRE_ASSERT(party->worker == NONE || party_find(core, job, party->worker) == number);
    if (party->worker == NONE) {
        return;
    }
    if (party->prev.job == NONE) {
        core->workers[party->worker].parties = party->next;
    } else {
        job_party(core, &core->jobs[party->prev.job], party->prev.party)->next = party->next;
    }
    if (party->next.job != NONE) {
        job_party(core, &core->jobs[party->next.job], party->next.party)->prev = party->prev;
    }
    map_remove(&core->parties_by_place, party_key(core, job, party->worker), number);
}

/* The last party of the job moves to `number`. */
static void party_move(struct core *core, struct job *job, uint32_t from, uint32_t number)
{
    struct party *party = &core->parties[job->first + number];
    struct party_ref ref = {.job = job_index(core, job), .party = number};
    CADRE_ASSERT(number < from);
    CADRE_ASSERT(from == job->parties);
    *party = core->parties[job->first + from];
    for (uint32_t slot = party->first; slot != NONE; slot = job_task(core, job, slot)->next) {
        job_task(core, job, slot)->party = number;
    }
    line_party_moved(job, from, number);
    if (party->worker == NONE) {
        return;
    }
    if (party->prev.job == NONE) {
        core->workers[party->worker].parties = ref;
    } else {
        core->parties[core->jobs[party->prev.job].first + party->prev.party].next = ref;
    }
    if (party->next.job != NONE) {
        core->parties[core->jobs[party->next.job].first + party->next.party].prev = ref;
    }
    map_remove(&core->parties_by_place, party_key(core, job, party->worker), from);
    map_add(&core->parties_by_place, party_key(core, job, party->worker), number);
    CADRE_ASSERT(job_party(core, job, number)->tasks > 0);
}

static void party_close(struct core *core, struct job *job, uint32_t number)
{
    struct party *party = job_party(core, job, number);
    uint32_t worker = party->worker;
    CADRE_ASSERT(party->first == NONE && party->last == NONE);
    CADRE_ASSERT(!party->again || job->agains > 0);
    CADRE_ASSERT(party->tasks == 0);
    if (party->again) {
        job->agains--;
    }
    party_unlink(core, job, number);
    line_party_moved(job, number, NONE);
    uint32_t last = --job->parties;
    if (number != last) {
        party_move(core, job, last, number);
    }
    if (worker != NONE) {
        const struct worker *w = &core->workers[worker];
        if (w->leaves && w->state == WORKER_AWAY && w->parties.job == NONE) {
            worker_forget(core, worker); /* which was drained */
        }
    }
}

void party_enter(struct core *core, struct job *job, uint32_t slot, uint32_t worker)
{
    struct task *task = job_task(core, job, slot);
    uint32_t number = party_find(core, job, worker);
    CADRE_ASSERT(core->workers[worker].state != WORKER_FREE);
    CADRE_ASSERT(task->party == NONE);
    if (number == NONE) {
        number = party_open(core, job, worker);
    }
    struct party *party = job_party(core, job, number);
    task->party = number;
    task->prev = party->last;
    task->next = NONE;
    if (party->last == NONE) {
        party->first = slot;
    } else {
        job_task(core, job, party->last)->next = slot;
    }
    party->last = slot;
    party->tasks++;
    CADRE_ASSERT(party->tasks <= job->tasks);
}

void party_leave(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    uint32_t number = task->party;
    struct party *party = job_party(core, job, number);
    CADRE_ASSERT(task->party != NONE);
    CADRE_ASSERT(party->tasks > 0);
    if (task->prev == NONE) {
        party->first = task->next;
    } else {
        job_task(core, job, task->prev)->next = task->next;
    }
    if (task->next == NONE) {
        party->last = task->prev;
    } else {
        job_task(core, job, task->next)->prev = task->prev;
    }
    task->party = NONE;
    if (--party->tasks == 0) {
        party_close(core, job, number);
    }
}

uint32_t party_first(const struct core *core, const struct job *job, uint32_t worker)
{
    uint32_t number = party_find(core, job, worker);
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    return number == NONE ? NONE : job_party(core, job, number)->first;
}

uint32_t party_next(const struct core *core, const struct job *job, uint32_t worker, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    if (task->party != NONE && task->party == party_find(core, job, worker)) {
        return task->next;
    }
    return party_first(core, job, worker);
}

void party_orphan(struct core *core, struct job *job, uint32_t number)
{
    struct party *party = job_party(core, job, number);
    CADRE_ASSERT(party->worker != NONE);
    party_unlink(core, job, number);
    if (party->again) {
        party->again = false;
        job->agains--;
    }
    party->worker = NONE;
}

void party_again(struct core *core, struct job *job, uint32_t number)
{
    struct party *party = job_party(core, job, number);
    CADRE_ASSERT(party->worker != NONE);
    if (!party->again) {
        party->again = true;
        job->agains++;
        job_due(core, job, 0);
    }
    CADRE_ASSERT(job->agains <= job->parties);
}
