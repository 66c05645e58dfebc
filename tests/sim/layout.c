/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "common/pure/assert.h"
#include "sim.h"
#include "truth.h"

typedef unsigned long long ull;

void layout_check(
    struct sim *sim, const struct job *job, uint64_t position, uint64_t layout, const char *whose)
{
    if (position <= job->plan->steps && layout != job->layouts[position]) {
        broken(sim, "LAYOUT", "job %llu: %s has the variables %llx at %llu, right are %llx",
            (ull)job->id.n, whose, (ull)layout, (ull)position, (ull)job->layouts[position]);
    }
}

/* ---- begin and end ---- */

void layout_begin(struct sim *sim, struct process *process)
{
    const struct scenario_job *plan = sim->jobs[process->job].plan;
    if (plan->base_count == 0) {
        return;
    }
    process->created = created_open();
    for (uint32_t i = 0; i < plan->base_count; i++) {
        uint64_t variable = created_ask(process->created, plan->bases[i], true, false);
        CADRE_ASSERT(variable != 0);
        created_put(process->created);
        created_end(process->created, false);
        created_hand_over(process->created);
    }
    process->state.layout = created_layout(process->created);
}

void layout_end(struct process *process)
{
    created_close(process->created);
    process->created = NULL;
}

/* ---- in a step ---- */

static void begin_step(struct process *process)
{
    created_step(process->created);
    process->calls = 0;
    process->birth = 0;
    process->shares = false;
}

bool layout_creates(struct sim *sim, struct process *process)
{
    const struct scenario_job *plan = sim->jobs[process->job].plan;
    if (process->created == NULL) {
        return false;
    }
    if (process->collective == 0) {
        begin_step(process);
    }
    for (; process->birth == 0 && process->calls < plan->creation_count; process->calls++) {
        const struct scenario_creation *call = &plan->creations[process->calls];
        if (truth_asks(&sim->jobs[process->job], process->calls, process->core.position)) {
            bool wrong = mutant_acts(sim, MUTANT_CREATION_RENAMED);
            process->birth = created_ask(process->created, call->name, call->between, wrong);
            trace(sim, "job %llu task %u %s %llx in step %llu", (ull)process->ref.job.n,
                process->ref.slot, process->birth != 0 ? "creates" : "has", (ull)process->birth,
                (ull)process->core.position);
        }
    }
    return process->birth != 0;
}

void layout_tells(struct sim *sim, const struct process *process)
{
    struct mesh *mesh = mesh_of(sim, process);
    uint64_t key = (process->core.position << 8 | process->collective) + 1;
    if (mesh->birth_key == key && mesh->birth != process->birth) {
        broken(sim, "LAYOUT", "job %llu task %u creates %llx in step %llu, and another one %llx",
            (ull)process->ref.job.n, process->ref.slot, (ull)process->birth,
            (ull)process->core.position, (ull)mesh->birth);
    }
    mesh->birth_key = key;
    mesh->birth = process->birth;
}

bool layout_met(struct process *process)
{
    if (process->birth == 0) {
        return false;
    }
    if (process->shares) {
        process->birth = 0;
    } else {
        created_put(process->created);
    }
    process->shares = !process->shares;
    return true;
}

void layout_commit(struct sim *sim, struct process *process)
{
    if (process->created != NULL) {
        CADRE_ASSERT(process->birth == 0);
        bool births = created_layout(process->created) != process->state.layout;
        created_end(process->created, births && mutant_acts(sim, MUTANT_CREATION_LOST));
        created_hand_over(process->created);
        process->state.layout = created_layout(process->created);
    }
}

void layout_undo(struct sim *sim, struct process *process)
{
    if (process->created == NULL) {
        return;
    }
    uint64_t had = created_layout(process->created);
    bool whole = process->birth == 0 || process->shares; /* all fresh ones are in the list */
    bool kept = whole && had != process->state.layout && mutant_acts(sim, MUTANT_CREATION_KEPT);
    process->birth = 0;
    process->shares = false;
    created_end(process->created, !kept);
    uint64_t has = created_layout(process->created);
    if (has != had) {
        trace(sim, "job %llu task %u has the variables %llx again", (ull)process->ref.job.n,
            process->ref.slot, (ull)has);
    }
    if (has != process->state.layout) {
        broken(sim, "LAYOUT", "job %llu task %u has the variables %llx, before what it undid %llx",
            (ull)process->ref.job.n, process->ref.slot, (ull)has, (ull)process->state.layout);
    }
}

/* ---- with a state ---- */

void layout_takes(struct sim *sim, struct process *process, uint64_t state)
{
    if (process->created == NULL) {
        return;
    }
    uint64_t has = created_layout(process->created);
    uint64_t lacks = state & ~has;
    if ((has & ~state) != 0) {
        broken(sim, "LAYOUT", "job %llu task %u has the variables %llx, its state's are %llx",
            (ull)process->ref.job.n, process->ref.slot, (ull)has, (ull)state);
        return;
    }
    for (uint32_t at = 0; at < 2 * LAYOUT_NAMES * LAYOUT_NUMBERS; at++) {
        uint64_t variable = lacks & UINT64_C(1) << at;
        if (variable != 0 && !mutant_acts(sim, MUTANT_LAYOUT_UNSENT)) {
            created_take(process->created, variable);
        }
    }
}

void layout_synced(struct sim *sim, struct process *process, bool goes_on)
{
    const struct job *job = &sim->jobs[process->job];
    if (process->created == NULL) {
        return;
    }
    created_end(process->created, false);
    if (goes_on) {
        created_hand_over(process->created);
    }
    uint64_t has = created_layout(process->created);
    layout_check(sim, job, process->core.resume, has, "who begins there");
    layout_check(sim, job, process->core.resume, process->state.layout, "the state");
}
