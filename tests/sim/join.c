/* SPDX-License-Identifier: Apache-2.0
 * How a process gets its state: alone and warm until the job has room for it, from a checkpoint, or
 * from the source of a plan. */
#include "sim.h"
#include "truth.h"

typedef unsigned long long ull;

/* ---- joiners ---- */

static const struct stream_position *find(const struct task_warm *warm, uint32_t stream)
{
    for (size_t i = 0; i < warm->stream_count; i++) {
        if (warm->streams[i].stream == stream) {
            return &warm->streams[i];
        }
    }
    return NULL;
}

/* Whether steps of the stream are left in the program, as far as its warm message says. */
static bool has_left(const struct scenario_job *plan, uint32_t stream, const struct task_warm *warm)
{
    const struct stream_position *at = find(warm, stream);
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        const struct scenario_segment *segment = &plan->segments[i];
        if (segment->stream != stream) {
            continue;
        }
        bool behind =
            at != NULL &&
            (at->epoch > segment->epoch ||
                (at->epoch == segment->epoch && at->applied >= segment->from + segment->taken));
        if (!behind) {
            return true;
        }
    }
    return false;
}

/* The stream of its program's first step. A program with no step left waits as for a step without
 * samples: it gets the end, or goodbye. */
static uint32_t first_asked(const struct scenario_job *plan, const struct task_warm *warm)
{
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        uint32_t stream = plan->segments[i].stream;
        if (stream == 0 || has_left(plan, stream, warm)) {
            return stream;
        }
    }
    return 0;
}

void join_warm(struct sim *sim, uint32_t index, const struct task_warm *warm)
{
    struct process *process = &sim->processes[index];
    const struct job *job = &sim->jobs[process->job];
    if (process->program != PROGRAM_IDLE && process->program != PROGRAM_WARMS) {
        return;
    }
    uint32_t asks_for = first_asked(job->plan, warm);
    const struct stream_position *at = find(warm, asks_for);
    process->asks.epoch = at == NULL ? 0 : at->epoch;
    if (process->core.joins) { /* it waits for its plan, and gets new stream positions */
        if (asks_for != process->asks.stream) {
            process->asks.stream = asks_for;
            program_event(sim, index,
                &(struct task_event){.type = TASK_EVENT_JOIN,
                    .cursor = {.stream = asks_for, .epoch = process->asks.epoch}});
        }
        return;
    }
    process->program = PROGRAM_WARMS;
    process->asks.stream = asks_for;
    process->doing++;
    schedule(sim, draw(sim, 1000, 300000), ON_PROGRAM, process->doing, process->incarnation, index);
}

/* It has reached its first step alone. */
void join_warmed(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->program = PROGRAM_IDLE;
    process->set_up = true;
    process_send_streams(sim, index);
    if (process->program != PROGRAM_IDLE || process->core.phase != TASK_JOIN) {
        return;
    }
    program_event(sim, index,
        &(struct task_event){.type = TASK_EVENT_JOIN,
            .cursor = {.stream = process->asks.stream, .epoch = process->asks.epoch}});
}

/* ---- sync ---- */

/* Collectives before the plan's first step that are left to a member once it has its state. */
static uint32_t left_after(const struct sim *sim, const struct mesh *mesh, uint32_t rank)
{
    const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
    if (process->core.warm) {
        return 0;
    }
    if (process->entered_at == POSITION_NONE) {
        return sim->jobs[mesh->job].plan->setup; /* it never had a state */
    }
    return process->core.position == mesh->resume
               ? program_between_steps_left(sim, process)
               : sim->jobs[mesh->job].between_steps[mesh->resume];
}

/* Members of one generation may be one collective apart: a member that missed the last one gets its
 * result. */
static void even_out(struct sim *sim, struct mesh *mesh)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        uint32_t left = left_after(sim, mesh, rank);
        least = left < least ? left : least;
    }
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        process->missed = left_after(sim, mesh, rank) - least;
        if (process->missed == 1 &&
            sim->jobs[mesh->job].between_steps_done[mesh->resume] > least + 1) {
            broken(sim, "POINT",
                "job %llu: at %llu a member is ahead by a collective that never completed",
                (ull)sim->jobs[mesh->job].id.n, (ull)mesh->resume);
        }
        if (process->missed > 1) {
            broken(sim, "POINT", "job %llu: at %llu task %u is %u collectives behind",
                (ull)sim->jobs[mesh->job].id.n, (ull)mesh->resume, process->ref.slot,
                process->missed);
        }
    }
}

void join_exchange(struct sim *sim, struct mesh *mesh)
{
    const struct job *job = &sim->jobs[mesh->job];
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        process->adopts = !process->core.clean;
        process->missed = 0;
    }
    if (mesh->source != SOURCE_NONE) {
        uint32_t source = mesh_member(sim, mesh, mesh->source);
        mesh->source_state = sim->processes[source].state;
        even_out(sim, mesh);
    } else {
        const struct process *chief = &sim->processes[mesh_member(sim, mesh, 0)];
        bool has = chief->restores && chief->restore_position == mesh->resume;
        if (mesh->resume > 0 && !has) {
            broken(sim, "RESTORE",
                "job %llu: resumes at %llu without a source, but its chief was started with %s "
                "%llu",
                (ull)job->id.n, (ull)mesh->resume,
                chief->restores ? "the checkpoint of" : "no checkpoint, not",
                (ull)chief->restore_position);
        }
        mesh->source_state = mesh->resume > 0 ? chief->restored : truth_state(job, 0);
    }
    values_adopted(sim, mesh);
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        uint32_t index = mesh_member(sim, mesh, rank);
        struct process *process = &sim->processes[index];
        if (process->adopts) {
            layout_takes(sim, process, mesh->source_state.layout);
        }
        schedule(sim, draw(sim, 100, process->adopts ? 20000 : 2000), ON_SYNCED, process->doing,
            process->incarnation, index);
    }
}

/* What is before the step is done: by the process itself in an older state, or by the others. */
static void adopt(struct sim *sim, struct process *process, const struct mesh *mesh)
{
    bool joins = process->core.warm;
    bool restarts = mesh->source == SOURCE_NONE || process->entered_at == POSITION_NONE;
    if (!mutant_acts(sim, MUTANT_STATE_NOT_TAKEN_OVER)) {
        process->state = mesh->source_state;
        process->torn = false;
    }
    if (joins || restarts) {
        process->entered_at = mesh->resume;
        process->set_up = joins;
        process->done = 0;
    } else if (process->core.position != mesh->resume) {
        process->set_up = true;
        process->done = 0;
    }
}

void join_synced(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_FORMS) {
        return;
    }
    const struct mesh *mesh = mesh_of(sim, process);
    const struct job *job = &sim->jobs[process->job];
    if (process->adopts && mesh->broken) {
        program_peer_left(sim, index);
        return;
    }
    if (process->core.warm && job->positions[mesh->resume].nested) {
        broken(sim, "LED", "job %llu task %u joins at %llu, where its program does not begin",
            (ull)job->id.n, process->ref.slot, (ull)mesh->resume);
    }
    bool goes_on = !process->core.warm && process->entered_at != POSITION_NONE;
    if (process->adopts) {
        adopt(sim, process, mesh);
    }
    layout_synced(sim, process, goes_on);
    if (process->state.once != job->once[mesh->resume] && mesh->source != SOURCE_NONE) {
        broken(sim, "ONCE", "job %llu task %u begins at %llu with another state", (ull)job->id.n,
            process->ref.slot, (ull)mesh->resume);
    }
    process->done += process->missed;
    process->program = PROGRAM_IDLE;
    process->doing++;
    struct task_event event = {.type = TASK_EVENT_SYNCED, .cursor = process->state.cursor};
    event.consumption = process->state.consumptions[event.cursor.stream];
    program_event(sim, index, &event);
    program_go(sim, index);
}
