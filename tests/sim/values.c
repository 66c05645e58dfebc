/* SPDX-License-Identifier: Apache-2.0
 * The values of replicas' states, as tasks compare them: in the first collective of each step, when
 * all save, and with their report at the end. Only with --compare; and then a bit of a value flips
 * now and then. */
#include <stdio.h>

#include "common/pure/assert.h"
#include "sim.h"
#include "truth.h"

#define FLIPS_MAX 2

/* A step whose only collective comes when a part of it is written could not be undone. */
bool values_count(const struct sim *sim, const struct job *job)
{
    return sim->compares && !(job->plan->bucketed && job->plan->collectives == 1);
}

bool values_verify_losses(const struct sim *sim, const struct job *job)
{
    return values_count(sim, job) && scenario_world(sim->seed) >= 2 && (job - sim->jobs) % 2 == 0;
}

uint64_t value_digest(const struct sim *sim, const struct job *job, const struct state *state)
{
    uint64_t layout = state->layout * UINT64_C(0x9E3779B97F4A7C15); /* 0 without variables */
    return values_count(sim, job) ? (state->value ^ layout) | 1 : 0;
}

/* One of the job's values is not the result of its steps; with one task it could not be noticed. */
void value_flips(struct sim *sim, struct process *process)
{
    struct job *job = &sim->jobs[process->job];
    if (values_count(sim, job) && job->flips < FLIPS_MAX && mesh_of(sim, process)->count > 1 &&
        one_in(sim, 200)) {
        job->flips++;
        process->state.value ^= UINT64_C(2) << job->flips; /* no two the same */
        trace(sim, "the value of task %u of job %llu flips", process->ref.slot,
            (unsigned long long)job->id.n);
    }
}

/* The same of the copy that the chief writes; its task continues with the right one. */
void value_copy_flips(struct sim *sim, struct process *process)
{
    struct job *job = &sim->jobs[process->job];
    if (values_count(sim, job) && job->flips < FLIPS_MAX && mesh_of(sim, process)->count > 1 &&
        one_in(sim, 50)) {
        job->flips++;
        process->written.value ^= UINT64_C(2) << job->flips;
        trace(sim, "the copy that task %u of job %llu writes flips", process->ref.slot,
            (unsigned long long)job->id.n);
    }
}

static bool is_news(const struct process *process)
{
    const struct task_part *part = &process->core.part;
    return part->path != NULL && !part->compared && part->position == process->agreed.position &&
           part->digest == process->agreed.digest;
}

/* All held this: a part with that position is sent with it, or again. */
static void agree(struct sim *sim, uint32_t index, const struct verified *verified)
{
    struct process *process = &sim->processes[index];
    if (process->written_at == verified->position) {
        process->agreed = *verified;
    }
    if (is_news(process)) {
        schedule(sim, draw(sim, 1, 50), ON_WRITTEN, 1, 0, index);
    }
}

void value_agreed(struct sim *sim, uint32_t index)
{
    const struct process *process = &sim->processes[index];
    char path[LIMIT_FILE_NAME_BYTES];
    struct task_part part = process->core.part;
    if (is_news(process)) {
        snprintf(path, sizeof(path), "%s", process->core.part_path); /* processes may move */
        part.path = path;
        part.compared = true;
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_PART, .part = &part});
    }
}

/* The only task of a job that has saved at its end enters twice. */
static void tell(struct tally *tally, uint32_t members, uint64_t position, uint64_t digest)
{
    if (tally->position != position + 1 || tally->count == members) {
        *tally = (struct tally){.position = position + 1, .digest = digest};
    }
    tally->differs |= tally->digest != digest;
    tally->count++;
}

static struct tally *tally_of(struct sim *sim, const struct process *process, bool saves)
{
    struct mesh *mesh = mesh_of(sim, process);
    return saves ? &mesh->saved : &mesh->tally[process->core.position % 2];
}

void values_exchange(struct sim *sim, struct process *process, bool saves)
{
    const struct job *job = &sim->jobs[process->job];
    if (values_count(sim, job)) {
        tell(tally_of(sim, process, saves), mesh_of(sim, process)->count, process->core.position,
            value_digest(sim, job, &process->state));
    }
}

/* The result of the comparison, for one of them; false: they differ, and it does not continue. */
static bool learn(struct sim *sim, uint32_t index, const struct tally *tally)
{
    struct process *process = &sim->processes[index];
    uint64_t verified =
        process->core.verified.digest != 0 ? process->core.verified.position : process->core.resume;
    if (!tally->differs || mutant_goes_on(sim, MUTANT_VALUES_UNCOMPARED)) {
        const struct verified equal = {.position = tally->position - 1, .digest = tally->digest};
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_VERIFIED, .verified = equal});
        agree(sim, index, &equal);
        return true;
    }
    const struct divergence divergence = {.position = tally->position - 1, .verified = verified};
    program_event(sim, index,
        &(struct task_event){
            .type = TASK_EVENT_DIVERGED, .divergence = &divergence, .text = "their values differ"});
    return false;
}

bool values_agree(struct sim *sim, uint32_t index, bool saves)
{
    struct process *process = &sim->processes[index];
    const struct job *job = &sim->jobs[process->job];
    uint64_t position = process->core.position;
    if (!values_count(sim, job) || process->core.phase != TASK_RUN) {
        return true;
    }
    const struct tally *tally = tally_of(sim, process, saves);
    CADRE_ASSERT(tally->position == position + 1);
    CADRE_ASSERT(tally->count == mesh_of(sim, process)->count);
    return learn(sim, index, tally);
}

/* ---- the expected values ---- */

/* A wrong state that all adopt from one task cannot be detected, unless the job only continues from
 * verified states; nor one that a single task holds. */
void values_adopted(struct sim *sim, const struct mesh *mesh)
{
    struct job *job = &sim->jobs[mesh->job];
    bool wrong = mesh->source_state.value != job->once[mesh->resume];
    job->tainted |= wrong && !values_verify_losses(sim, job);
    for (uint32_t rank = 0; rank < mesh->count && mesh->count == 1; rank++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        job->tainted |= process->state.value != job->once[mesh->resume];
        job->tainted |= process->written_at <= mesh->resume && process->written_in.number > 0 &&
                        process->written.value != job->once[process->written_at]; /* its copy */
        const struct task_part *part = &process->core.part; /* of that copy or an earlier one */
        bool kept = part->path != NULL && part->position <= mesh->resume;
        const struct state right = truth_state(job, kept ? part->position : 0);
        job->tainted |= kept && part->digest != value_digest(sim, job, &right);
    }
}

void values_check(struct sim *sim, const struct job *job, uint64_t position, uint64_t value)
{
    if (values_count(sim, job) && !job->tainted && value != job->once[position]) {
        broken(sim, "VALUE", "job %llu: a wrong value of position %llu is taken as right",
            (unsigned long long)job->id.n, (unsigned long long)position);
    }
}
