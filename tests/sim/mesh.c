/* SPDX-License-Identifier: Apache-2.0
 * The virtual mesh: a collective of (generation, n) completes when all members have entered it. A
 * member that leaves makes the one that is not complete fail everywhere, and the one that is may
 * fail at some and succeed at others. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "sim.h"

static void *grown(void *items, uint32_t *capacity, uint32_t needed, size_t size)
{
    while (*capacity < needed) {
        *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    }
    items = realloc(items, *capacity * size);
    CADRE_ASSERT(items != NULL);
    return items;
}

uint32_t mesh_open(struct sim *sim, struct job *job, const struct core_job_view *view)
{
    uint32_t index = sim->mesh_count++;
    if (sim->mesh_count > sim->mesh_capacity) {
        sim->meshes =
            grown(sim->meshes, &sim->mesh_capacity, sim->mesh_count, sizeof(*sim->meshes));
    }
    uint32_t first = sim->member_count;
    sim->member_count += view->roster;
    if (sim->member_count > sim->member_capacity) {
        sim->members =
            grown(sim->members, &sim->member_capacity, sim->member_count, sizeof(*sim->members));
    }
    struct mesh *mesh = &sim->meshes[index];
    memset(mesh, 0, sizeof(*mesh));
    mesh->job = (uint32_t)(job - sim->jobs);
    mesh->generation = view->generation;
    mesh->first = first;
    mesh->count = view->roster;
    mesh->resume = view->resume;
    mesh->position = view->resume;
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        uint32_t slot = core_job_member(sim->coordinator.core, view->job, rank);
        uint32_t process = job->processes[slot];
        CADRE_ASSERT(process != NOBODY);
        sim->members[first + rank] = process;
        mesh->broken |= sim->processes[process].program == PROGRAM_DEAD;
        if (rank == view->source) {
            mesh->source_variables = sim->processes[process].variables;
        }
    }
    job_truth(job, mesh->source_variables);
    return index;
}

static uint32_t member(const struct sim *sim, const struct mesh *mesh, uint32_t rank)
{
    return sim->members[mesh->first + rank];
}

static void fails(struct sim *sim, uint32_t process, uint64_t position)
{
    later(sim, draw(sim, 10, 5000), ON_PEER_LEFT, (uint32_t)position, 0, process);
}

void mesh_form(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->mesh = sim->jobs[process->job].mesh;
    struct mesh *mesh = &sim->meshes[process->mesh];
    uint32_t rank = 0;
    while (rank < mesh->count && member(sim, mesh, rank) != index) {
        rank++;
    }
    if (rank == mesh->count || !generation_equal(mesh->generation, process->core.generation)) {
        broken(sim, "RANKS", "job %llu task %u forms a mesh that it is not in",
            (unsigned long long)process->ref.job.n, process->ref.slot);
        return;
    }
    process->rank = rank;
    mesh->formed++;
    if (mesh->broken) {
        fails(sim, index, 0);
    } else if (mesh->formed == mesh->count) {
        for (uint32_t i = 0; i < mesh->count; i++) {
            later(sim, draw(sim, 100, 5000), ON_SYNCED, 0, 0, member(sim, mesh, i));
        }
    }
}

/* Some are in a step and some at the end: all that are there learn that they disagree. A step fails
 * as when a peer is lost; cadre_finish fails, and the program ends. */
static void disagree(struct sim *sim, struct mesh *mesh)
{
    mesh->broken = true;
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        uint32_t index = member(sim, mesh, rank);
        struct process *process = &sim->processes[index];
        if (process->program == PROGRAM_INSIDE && process->core.position == mesh->position) {
            fails(sim, index, mesh->position);
        } else if (process->program == PROGRAM_IDLE && process->core.finished) {
            process->program = PROGRAM_ENDS;
            process->exit.code = 1;
            later(sim, draw(sim, 100, 20000), ON_PROGRAM, 0, process->life, index);
        }
    }
}

void mesh_end(struct sim *sim, uint32_t index)
{
    struct mesh *mesh = &sim->meshes[sim->processes[index].mesh];
    mesh->ended++;
    if (!mesh->broken && mesh->entered > 0) {
        disagree(sim, mesh);
    }
}

void mesh_enter(struct sim *sim, uint32_t index, uint64_t position)
{
    struct mesh *mesh = &sim->meshes[sim->processes[index].mesh];
    if (mesh->broken) {
        fails(sim, index, position);
        return;
    }
    if (position != mesh->position) {
        broken(sim, "ORDER",
            "job %llu task %u enters the collective of step %llu, but that of %llu is next",
            (unsigned long long)sim->processes[index].ref.job.n, sim->processes[index].ref.slot,
            (unsigned long long)position, (unsigned long long)mesh->position);
        return;
    }
    mesh->entered++;
    if (mesh->ended > 0) {
        disagree(sim, mesh);
        return;
    }
    bool short_of_one = mesh->entered + 1 == mesh->count && mesh->entered > 0 &&
                        mutant_acts(sim, MUTANT_COLLECTIVE_WITHOUT_ONE);
    if (mesh->entered < mesh->count && !short_of_one) {
        return;
    }
    mesh->entered = 0;
    mesh->position++;
    for (uint32_t i = 0; i < mesh->count; i++) {
        if (sim->processes[member(sim, mesh, i)].program == PROGRAM_INSIDE) {
            later(sim, draw(sim, 5, 1000), ON_COLLECTIVE_DONE, (uint32_t)position, 0,
                member(sim, mesh, i));
        }
    }
}

void mesh_leave(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    uint32_t at = process->mesh;
    if (at == NOBODY) {
        /* It may be in a roster without having formed yet. */
        at = sim->jobs[process->job].mesh;
    }
    if (at == NOBODY || process->left_mesh) {
        return;
    }
    struct mesh *mesh = &sim->meshes[at];
    process->left_mesh = true;
    mesh->broken = true;
    for (uint32_t i = 0; i < mesh->count; i++) {
        uint32_t other = member(sim, mesh, i);
        struct process *peer = &sim->processes[other];
        if (other == index) {
            continue;
        }
        if (peer->program == PROGRAM_FORMS && mesh->formed < mesh->count) {
            fails(sim, other, 0);
        } else if (peer->program == PROGRAM_INSIDE && peer->core.position == mesh->position) {
            fails(sim, other, mesh->position);
        } else if (peer->program == PROGRAM_INSIDE && prng_chance(&sim->prng, 1, 2)) {
            peer->doomed = peer->core.position; /* complete, but not here */
        }
    }
}
