/* SPDX-License-Identifier: Apache-2.0
 * The invariants of what tasks do: which steps they enter and apply, and what their state holds.
 * runtime.c, join.c and daemon.c call them. */
#include "sim.h"

typedef unsigned long long ull;

/* Rules 8 and 9: the state of the new generation's source is whole, and of the ledger's timeline.
 */
void check_source(struct sim *sim, const struct job *job, const struct mesh *mesh)
{
    uint64_t resume = mesh->resume;
    if (resume > job->plan->steps) {
        broken(sim, "EXISTS", "job %llu: generation %llu resumes at %llu of %llu", (ull)job->id.n,
            (ull)mesh->generation.number, (ull)resume, (ull)job->plan->steps);
        return;
    }
    if (mesh->source == SOURCE_NONE) {
        return;
    }
    if (mesh->source >= mesh->count) {
        broken(sim, "RANKS", "job %llu: rank %u of %u is the source", (ull)job->id.n, mesh->source,
            mesh->count);
        return;
    }
    const struct process *source = &sim->processes[mesh_member(sim, mesh, mesh->source)];
    if (source->core.position != resume || !source->core.clean) {
        broken(sim, "TIMELINE", "job %llu: task %u is the source of %llu and is %s at %llu",
            (ull)job->id.n, source->ref.slot, (ull)resume, source->core.clean ? "clean" : "torn",
            (ull)source->core.position);
    } else if (source->state.once != job->once[resume] ||
               source->state.timeline != job->timeline[resume]) {
        broken(sim, "TIMELINE", "job %llu: task %u, source of %llu, is not on the timeline",
            (ull)job->id.n, source->ref.slot, (ull)resume);
    }
    if (source->core.plain) {
        broken(sim, "OWN_STATE",
            "job %llu: task %u keeps its state itself, and is the source of %llu", (ull)job->id.n,
            source->ref.slot, (ull)resume);
    }
    layout_check(sim, job, resume, source->state.layout, "the source");
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        bool holds = process->core.clean && process->core.generation.number != 0 &&
                     process->core.position == resume;
        if (process->core.clean && process->core.generation.number != 0 &&
            process->core.position > resume) {
            broken(sim, "TIMELINE", "job %llu: resumes at %llu, task %u has come to %llu",
                (ull)job->id.n, (ull)resume, process->ref.slot, (ull)process->core.position);
        }
        if (holds && process->state.timeline != job->timeline[resume]) {
            broken(sim, "TIMELINE", "job %llu: the state of task %u at %llu is not on the timeline",
                (ull)job->id.n, process->ref.slot, (ull)resume);
        }
    }
}

void check_enter(struct sim *sim, const struct process *process, uint64_t position)
{
    const struct job *job = &sim->jobs[process->job];
    const struct mesh *mesh = mesh_of(sim, process);
    if (position >= job->plan->steps) {
        broken(sim, "EXISTS", "job %llu task %u enters step %llu of %llu", (ull)job->id.n,
            process->ref.slot, (ull)position, (ull)job->plan->steps);
    }
    const struct stored *stored = job->stored;
    bool stops = stored->has_control && stored->halt_kind == HALT_STOP &&
                 generation_equal(stored->generation, mesh->generation);
    if (stops && stored->halt_at > 0 && position >= stored->halt_at) {
        broken(sim, "PREEMPT", "job %llu task %u enters step %llu, and the job stops at %llu",
            (ull)job->id.n, process->ref.slot, (ull)position, (ull)stored->halt_at);
    }
    if (process->rank == 0 && process->core.checkpoint_at == position &&
        process->asked_at != position) {
        broken(sim, "ASKED", "job %llu task %u enters step %llu without saving what was asked for",
            (ull)job->id.n, process->ref.slot, (ull)position);
    }
    if (position >= mesh->admitted) {
        broken(sim, "ADMIT", "job %llu task %u enters step %llu, but only %llu are admitted",
            (ull)job->id.n, process->ref.slot, (ull)position, (ull)mesh->admitted);
    }
}

/* `position` is the step that was just written into the variables. */
void check_applied(struct sim *sim, const struct process *process, uint64_t position)
{
    struct job *job = &sim->jobs[process->job];
    struct mesh *mesh = mesh_of(sim, process);
    ull slot = process->ref.slot;
    if (position >= mesh->admitted) {
        broken(sim, "ADMIT", "job %llu task %llu applies step %llu, but only %llu are admitted",
            (ull)job->id.n, slot, (ull)position, (ull)mesh->admitted);
    }
    mesh->applied[position]++;
    if (position > mesh->resume && mesh->applied[position - 1] != mesh->count) {
        broken(sim, "DRIFT",
            "job %llu task %llu applied step %llu, but only %u of %u the one before",
            (ull)job->id.n, slot, (ull)position, mesh->applied[position - 1], mesh->count);
    }
    if (process->state.once != job->once[position + 1]) {
        broken(sim, "ONCE",
            "job %llu task %llu: after step %llu its state is not that of steps 0 to it, each once",
            (ull)job->id.n, slot, (ull)position);
    }
    layout_check(sim, job, position + 1, process->state.layout, "who applied the step before");
    uint64_t *timeline = &mesh->timelines[position + 1];
    if (*timeline != 0 && *timeline != process->state.timeline) {
        broken(sim, "EQUAL", "job %llu task %llu: after step %llu it holds what no peer holds",
            (ull)job->id.n, slot, (ull)position);
    }
    *timeline = process->state.timeline;
    bool newest = &sim->meshes[job->mesh] == mesh;
    if (newest && process->state.timeline != job->timeline[position + 1]) {
        broken(sim, "TIMELINE", "job %llu task %llu: step %llu is not on the ledger's timeline",
            (ull)job->id.n, slot, (ull)position);
    }
    if (newest && mesh->applied[position] == mesh->count && sim->broke_us != 0 &&
        sim->resumed_us == 0 && mesh->generation.number > 1) {
        sim->resumed_us = sim->now_us;
    }
}

/* Rule 16: only a member of the final generation may run what follows the training. */
void check_left(struct sim *sim, const struct process *process)
{
    const struct job *job = &sim->jobs[process->job];
    if (ps_is_ps_task(sim, process)) {
        return; /* of no generation of the ledger */
    }
    bool by_itself = process->program == PROGRAM_DEAD && process->exit.code == 0 &&
                     process->exit.signal == 0 && process->exit_sent;
    /* Its job was preempted, and has gone on elsewhere since: the program has a bye of a stop. */
    bool stopped = process->core.halt_kind == HALT_STOP && process->core.reason == REPORT_HALT &&
                   process->mesh != SIM_NONE && sim->meshes[process->mesh].left;
    if (by_itself && !stopped && job->mesh != SIM_NONE &&
        !generation_equal(process->core.generation, sim->meshes[job->mesh].generation)) {
        broken(sim, "HALT", "job %llu task %u of generation %llu got bye, the final one is %llu",
            (ull)job->id.n, process->ref.slot, (ull)process->core.generation.number,
            (ull)sim->meshes[job->mesh].generation.number);
    }
}

void check_begins_again(struct sim *sim, const struct process *process)
{
    const struct task_core *core = &process->core;
    bool saved = core->published != POSITION_NONE && core->published >= core->position;
    bool kept = saved || core->position == core->resume;
    if (core->plain && core->phase == TASK_FROZEN && core->reason == REPORT_HALT && !kept) {
        broken(sim, "OWN_STATE",
            "job %llu task %u is reset at the halt of step %llu, which it has not saved",
            (ull)sim->jobs[process->job].id.n, process->ref.slot, (ull)core->position);
    }
}

void check_started_on(struct sim *sim, uint32_t agent, struct task_ref ref)
{
    uint32_t taken = 0;
    struct agent_task_view view;
    for (uint32_t i = 0; i < AGENT_ENTRIES(sim->scenario.slots[agent]); i++) {
        if (agent_core_task(sim->agents[agent].core, i, &view)) {
            if (task_ref_equal(view.task, ref)) {
                return; /* a duplicate */
            }
            taken += view.phase != AGENT_TASK_COLLECTED ? 1 : 0;
        }
    }
    if (taken == AGENT_ENTRIES(sim->scenario.slots[agent])) {
        broken(sim, "SLOTS", "job %llu task %u is started on w%u, which has no entry left",
            (ull)ref.job.n, ref.slot, agent);
    }
}

void check_running(struct sim *sim, uint32_t agent)
{
    uint32_t running = 0;
    struct agent_task_view view;
    for (uint32_t i = 0; i < AGENT_ENTRIES(sim->scenario.slots[agent]); i++) {
        if (agent_core_task(sim->agents[agent].core, i, &view)) {
            bool runs = view.phase >= AGENT_TASK_RUNNING && view.phase < AGENT_TASK_GONE;
            running += runs && !view.over ? 1 : 0;
        }
    }
    if (running > sim->scenario.slots[agent]) {
        broken(sim, "SLOTS", "w%u runs %u tasks in %u slots", agent, running,
            sim->scenario.slots[agent]);
    }
}
