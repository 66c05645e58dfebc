/* SPDX-License-Identifier: Apache-2.0
 * The virtual mesh: a collective of (generation, n) completes when all members have entered it
 * (protocol, section 1). A member that leaves makes the incomplete one fail everywhere; a complete
 * one may fail at some members and succeed at others. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "replicas/replicas.h"
#include "sim.h"
#include "truth.h"

#define STALL_FIRST_US 1000000
#define STALL_AGAIN_US 5000000
#define KEY_FORM       UINT64_MAX

typedef unsigned long long ull;

uint32_t mesh_find(const struct sim *sim, uint32_t job, struct generation generation)
{
    for (uint32_t i = sim->mesh_count; i > 0; i--) {
        const struct mesh *mesh = &sim->meshes[i - 1];
        if (mesh->job == job && generation_equal(mesh->generation, generation)) {
            return i - 1;
        }
    }
    return SIM_NONE;
}

struct mesh *mesh_of(struct sim *sim, const struct process *process)
{
    CADRE_ASSERT(process->mesh != SIM_NONE);
    return &sim->meshes[process->mesh];
}

uint32_t mesh_member(const struct sim *sim, const struct mesh *mesh, uint32_t rank)
{
    CADRE_ASSERT(rank < mesh->count);
    return sim->members[mesh->first + rank];
}

/* The process of the incarnation in the roster, though the slot may have a newer one. */
static uint32_t process_of(
    struct sim *sim, const struct job *job, uint32_t slot, uint64_t incarnation)
{
    uint32_t index = job->processes[slot];
    if (index != SIM_NONE && sim->processes[index].ref.incarnation == incarnation) {
        return index;
    }
    for (uint32_t i = sim->process_count; i > 0; i--) {
        const struct process *process = &sim->processes[i - 1];
        if (process->ref.job.n == job->id.n && process->ref.slot == slot &&
            process->ref.incarnation == incarnation) {
            return i - 1;
        }
    }
    broken(sim, "RANKS", "job %llu: slot %u, incarnation %llu is in a roster and never ran",
        (ull)job->id.n, slot, (ull)incarnation);
    return index;
}

/* The steps behind its position are its own. */
static void counts(struct sim *sim, struct job *job, const struct mesh *mesh)
{
    check_source(sim, job, mesh);
    if (mesh->resume < job->plan->steps) {
        truth_plan(job, mesh->resume, mesh->generation.number);
    }
}

uint32_t mesh_open(struct sim *sim, struct job *job, const struct core_job_view *view)
{
    uint32_t index = sim->mesh_count++;
    sim->meshes = grown(sim->meshes, &sim->mesh_capacity, sim->mesh_count, sizeof(*sim->meshes));
    uint32_t first = sim->member_count;
    sim->member_count += view->roster;
    sim->members =
        grown(sim->members, &sim->member_capacity, sim->member_count, sizeof(*sim->members));
    struct mesh *mesh = &sim->meshes[index];
    memset(mesh, 0, sizeof(*mesh));
    mesh->job = (uint32_t)(job - sim->jobs);
    mesh->generation = view->generation;
    mesh->first = first;
    mesh->count = view->roster;
    mesh->resume = view->resume;
    mesh->admitted = view->resume;
    mesh->source = view->source;
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        struct core_task_view task;
        uint32_t slot = core_job_member(sim->coordinator.core, view->job, rank);
        core_job_task(sim->coordinator.core, view->job, slot, &task);
        bool left = task.rank != rank; /* within the turn that planned it */
        uint32_t process =
            left ? job->processes[slot] : process_of(sim, job, slot, task.incarnation);
        if (process == SIM_NONE) {
            mesh->count = rank;
            return index;
        }
        sim->members[first + rank] = process;
        if (!left && sim->scenario.replicas == 0) {
            sim->processes[process].listed_in = index;
            sim->processes[process].listed_rank = rank;
        }
        mesh->broken |= left || sim->processes[process].program == PROGRAM_DEAD;
    }
    if (sim->scenario.replicas == 0) {
        counts(sim, job, mesh);
    }
    return index;
}

void mesh_recorded(struct sim *sim, struct job *job, struct generation generation)
{
    uint32_t index = mesh_find(sim, (uint32_t)(job - sim->jobs), generation);
    if (index == SIM_NONE || sim->meshes[index].recorded) {
        return; /* its coordinator ended before it made a message of it */
    }
    struct mesh *mesh = &sim->meshes[index];
    mesh->recorded = true;
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        process->listed_in = index;
        process->listed_rank = rank;
        mesh->broken |= process->program == PROGRAM_DEAD;
    }
    counts(sim, job, mesh);
    replicas_set_mesh(sim, mesh->job, index);
    job->meshes++;
    job->planned = true;
    sim->planned_us = sim->now_us;
}

/* ---- forming ---- */

static void fails(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    schedule(sim, draw(sim, 10, 5000), ON_PEER_LEFT, process->doing, process->incarnation, index);
}

static void arm_stall(struct sim *sim, struct mesh *mesh, uint64_t key)
{
    if (!mesh->stall_armed) {
        mesh->stall_armed = true;
        schedule(sim, STALL_FIRST_US, ON_MESH_STALL, (uint32_t)(mesh - sim->meshes), 0, key);
    }
}

static uint32_t rank_of(const struct sim *sim, const struct mesh *mesh, uint32_t index)
{
    const struct process *process = &sim->processes[index];
    uint32_t listed = process->listed_rank;
    if (listed < mesh->count && mesh_member(sim, mesh, listed) == index) {
        return listed;
    }
    uint32_t rank = 0;
    while (rank < mesh->count && mesh_member(sim, mesh, rank) != index) {
        rank++;
    }
    return rank;
}

void mesh_form(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    mesh_remove(sim, index, false);
    uint32_t at = mesh_find(sim, process->job, process->core.generation);
    if (at != SIM_NONE && process->mesh != SIM_NONE && mutant_acts(sim, MUTANT_MESH_UNFENCED)) {
        at = process->mesh;
    }
    if (at == SIM_NONE || rank_of(sim, &sim->meshes[at], index) == sim->meshes[at].count) {
        broken(sim, "RANKS", "job %llu task %u forms a mesh that it is not in",
            (ull)process->ref.job.n, process->ref.slot);
        return;
    }
    struct mesh *mesh = &sim->meshes[at];
    if (!generation_equal(mesh->generation, process->core.generation)) {
        broken(sim, "RANKS", "job %llu task %u of generation %llu enters the mesh of %llu",
            (ull)process->ref.job.n, process->ref.slot, (ull)process->core.generation.number,
            (ull)mesh->generation.number);
        return;
    }
    process->rank = rank_of(sim, mesh, index);
    process->mesh = at;
    process->left_mesh = false;
    mesh->formed++;
    if (mesh->broken) {
        fails(sim, index);
    } else if (mesh->formed == mesh->count) {
        if (one_in(sim, sim->scenario.form_fails_in) && sim->now_us < sim->scenario.heal_us) {
            sim->jobs[mesh->job].breaks++;
            mesh_break(sim, mesh);
            return;
        }
        mesh->whole = true;
        mesh->key = 0;
        join_exchange(sim, mesh);
    } else {
        mesh->key = KEY_FORM;
        arm_stall(sim, mesh, KEY_FORM);
    }
}

/* ---- collectives ---- */

/* Some are in a step and some at the end: all members there learn that they disagree. */
static void disagree(struct sim *sim, struct mesh *mesh)
{
    mesh->broken = true;
    sim->jobs[mesh->job].disagreed = true;
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        uint32_t index = mesh_member(sim, mesh, rank);
        const struct process *process = &sim->processes[index];
        bool inside = process->program == PROGRAM_INSIDE && process->key == mesh->key;
        bool ended = process->program == PROGRAM_IDLE && process->core.finished;
        if ((inside || ended) && generation_equal(process->core.generation, mesh->generation)) {
            sim->jobs[mesh->job].disagreement_reported |= process->core.connected;
            program_fails(sim, index, "the programs took different paths");
        }
    }
}

void mesh_end(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct mesh *mesh = mesh_of(sim, process);
    if (!generation_equal(process->core.generation, mesh->generation)) {
        return;
    }
    mesh->ended++;
    if (!mesh->broken && mesh->entered > 0) {
        disagree(sim, mesh);
    }
}

/* The collective before which so many were left at this position is complete, and has a result. */
static void note_between_steps(struct job *job, uint64_t position, uint32_t left)
{
    if (left < job->between_steps_done[position]) {
        job->between_steps_done[position] = (uint8_t)left;
    }
}

static void complete(struct sim *sim, struct mesh *mesh)
{
    mesh->entered = 0;
    mesh->last_key = mesh->key;
    mesh->stall_armed = false;
    if ((mesh->key & 256) == 0) {
        note_between_steps(
            &sim->jobs[mesh->job], mesh->key >> 9, 255 - (uint32_t)(mesh->key & 255));
    }
    for (uint32_t i = 0; i < mesh->count; i++) {
        uint32_t index = mesh_member(sim, mesh, i);
        const struct process *process = &sim->processes[index];
        if (process->program == PROGRAM_INSIDE && process->key == mesh->key) {
            schedule(sim, draw(sim, 5, 1000), ON_COLLECTIVE_DONE, process->doing,
                process->incarnation, index);
        }
    }
}

void mesh_enter(struct sim *sim, uint32_t index, uint64_t key, bool data)
{
    struct process *process = &sim->processes[index];
    struct mesh *mesh = mesh_of(sim, process);
    process->key = key;
    if (mesh->broken || process->left_mesh) {
        fails(sim, index);
        return;
    }
    if (mesh->entered == 0) {
        mesh->key = key;
        mesh->data = false;
    }
    bool short_one = sim->jobs[mesh->job].plan->short_slot != UINT32_MAX;
    if (key != mesh->key || key <= mesh->last_key) {
        mesh->entered++;
        if (short_one) {
            sim->jobs[mesh->job].disagreement_reported |= process->core.connected;
            program_fails(sim, index, "the programs took different paths");
            disagree(sim, mesh);
            return;
        }
        broken(sim, "ORDER",
            "job %llu task %u enters collective %llx, but %llx is under way and %llx is over",
            (ull)process->ref.job.n, process->ref.slot, (ull)key, (ull)mesh->key,
            (ull)mesh->last_key);
        return;
    }
    mesh->entered++;
    mesh->data |= data;
    if (mesh->ended > 0) {
        disagree(sim, mesh);
        return;
    }
    bool short_of_one =
        mesh->entered + 1 == mesh->count && mutant_acts(sim, MUTANT_COLLECTIVE_WITHOUT_ONE);
    if (mesh->entered == mesh->count || short_of_one) {
        complete(sim, mesh);
    } else {
        arm_stall(sim, mesh, key);
    }
}

/* ---- breaking ---- */

void mesh_break(struct sim *sim, struct mesh *mesh)
{
    if (mesh->broken) {
        return;
    }
    mesh->broken = true;
    for (uint32_t i = 0; i < mesh->count; i++) {
        uint32_t index = mesh_member(sim, mesh, i);
        struct process *peer = &sim->processes[index];
        if (peer->mesh == SIM_NONE || &sim->meshes[peer->mesh] != mesh) {
            continue;
        }
        if (peer->program == PROGRAM_FORMS && !mesh->whole) {
            fails(sim, index);
        } else if (peer->program == PROGRAM_INSIDE && peer->key == mesh->key && mesh->entered > 0) {
            fails(sim, index);
        } else if (peer->program == PROGRAM_INSIDE && prng_chance(&sim->prng, 1, 2)) {
            peer->doomed = true; /* complete, but not here */
        }
    }
}

void mesh_remove(struct sim *sim, uint32_t index, bool gone)
{
    struct process *process = &sim->processes[index];
    if (process->mesh != SIM_NONE && !process->left_mesh) {
        process->left_mesh = true;
        mesh_break(sim, &sim->meshes[process->mesh]);
    }
    if (gone && process->listed_in != SIM_NONE) {
        mesh_break(sim, &sim->meshes[process->listed_in]);
    }
}

/* ---- waiting ---- */

void mesh_stalls(struct sim *sim, uint32_t at, uint64_t key)
{
    struct mesh *mesh = &sim->meshes[at];
    mesh->stall_armed = false;
    bool waits = !mesh->whole || mesh->entered > 0;
    if (mesh->broken || !waits) {
        return;
    }
    if (mesh->key != key) {
        arm_stall(sim, mesh, mesh->key);
        return;
    }
    uint32_t missing = SIM_NONE;
    for (uint32_t i = 0; i < mesh->count && missing == SIM_NONE; i++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, i)];
        bool there = process->mesh == at && (key == KEY_FORM || process->key == key);
        missing = there ? SIM_NONE : process->ref.slot;
    }
    mesh->stall_armed = true;
    schedule(sim, STALL_AGAIN_US, ON_MESH_STALL, at, 0, key);
    for (uint32_t i = 0; i < mesh->count && missing != SIM_NONE; i++) {
        uint32_t index = mesh_member(sim, mesh, i);
        const struct process *process = &sim->processes[index];
        bool inside = process->program == PROGRAM_INSIDE && process->key == key;
        bool forms = process->program == PROGRAM_FORMS && key == KEY_FORM;
        if (process->mesh == at && !process->stopped && (inside || forms)) {
            const struct task_stall stall = {
                .position = process->core.position, .slot = missing, .waited_us = STALL_FIRST_US};
            program_event(
                sim, index, &(struct task_event){.type = TASK_EVENT_STALL, .stall = &stall});
        }
    }
}
