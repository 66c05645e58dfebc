/* SPDX-License-Identifier: Apache-2.0
 * Whose the fields of struct sim are that describe the coordinator, and the jobs as it knows them.
 */
#include "common/pure/assert.h"
#include "replicas.h"

#define SWAP(type, a, b)                                                                           \
    do {                                                                                           \
        type swapped_ = (a);                                                                       \
        (a) = (b);                                                                                 \
        (b) = swapped_;                                                                            \
    } while (0)

static void swap_job(struct job *job, struct replica_job *its)
{
    SWAP(struct job_id, job->id, its->id);
    SWAP(struct stored *, job->stored, its->stored);
    SWAP(struct stored *, job->durable, its->durable);
    SWAP(struct newest_messages, job->newest, its->newest);
    SWAP(struct members_sent, job->members_sent, its->members_sent);
    SWAP(uint32_t, job->mesh, its->mesh);
    SWAP(uint64_t, job->begun_us, its->begun_us);
    SWAP(uint64_t, job->away_us, its->away_us);
}

static void swap_worker(struct agent *agent, struct replica_worker *its)
{
    SWAP(uint64_t, agent->last_seen_us, its->last_seen_us);
    SWAP(uint64_t, agent->silent_us, its->silent_us);
    SWAP(bool, agent->drain_stored, its->drain_stored);
    SWAP(uint32_t, agent->culprit_stored, its->culprit_stored);
}

static void swap_all(struct sim *sim, struct replica *replica)
{
    SWAP(struct coordinator, sim->coordinator, replica->coordinator);
    SWAP(struct disk, sim->disk, replica->disk);
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        swap_job(&sim->jobs[i], &replica->jobs[i]);
    }
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        swap_worker(&sim->agents[i], &replica->workers[i]);
    }
}

void replica_enters(struct sim *sim, uint32_t r)
{
    CADRE_ASSERT(sim->replicas->entered == SIM_NONE);
    swap_all(sim, replica_of(sim, r));
    sim->replicas->entered = r;
}

void replica_leaves(struct sim *sim)
{
    if (sim->replicas->entered != SIM_NONE) {
        swap_all(sim, replica_of(sim, sim->replicas->entered));
        sim->replicas->entered = SIM_NONE;
    }
}

const struct stored *replicas_stored(const struct sim *sim, uint32_t job)
{
    const struct replicas *all = sim->replicas;
    return all->entered == SIM_NONE ? sim->jobs[job].stored
                                    : all->replicas[all->entered].jobs[job].stored;
}

bool replicas_drained(const struct sim *sim, uint32_t agent)
{
    const struct replicas *all = sim->replicas;
    return all->entered == SIM_NONE ? sim->agents[agent].drain_stored
                                    : all->replicas[all->entered].workers[agent].drain_stored;
}

void replicas_set_mesh(struct sim *sim, uint32_t job, uint32_t mesh)
{
    struct replicas *all = sim->replicas;
    if (all->entered == SIM_NONE) {
        sim->jobs[job].mesh = mesh;
    } else {
        all->replicas[all->entered].jobs[job].mesh = mesh;
    }
}

bool replica_is_newest(const struct sim *sim, uint32_t r)
{
    const struct replica *replica = &sim->replicas->replicas[r];
    return replica->leads && sim->replicas->term_newest == replica->term;
}
