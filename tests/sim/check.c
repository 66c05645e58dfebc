/* SPDX-License-Identifier: Apache-2.0
 * The invariants of what the coordinator records and sends. They use the whole state of the
 * simulated world. */
#include <string.h>

#include "sim.h"
#include "truth.h"

typedef unsigned long long ull;

void check_cores(struct sim *sim, uint32_t agent, bool whole)
{
    if (agent == SIM_NONE) {
        const char *wrong = core_invariant(sim->coordinator.core, whole);
        if (wrong != NULL) {
            broken(sim, "COORDINATOR", "not true that %s", wrong);
        }
        return;
    }
    const char *wrong = agent_core_invariant(sim->agents[agent].core);
    if (wrong != NULL) {
        broken(sim, "AGENT", "w%u: not true that %s", agent, wrong);
    }
}

/* The worker forgets the task once it has this: an end that was recorded is durable. */
static bool end_is_durable(const struct job *job, struct task_ref ref)
{
    const struct core_restore_task *stored = &job->stored->tasks[ref.slot];
    const struct core_restore_task *durable = &job->durable->tasks[ref.slot];
    return stored->incarnation != ref.incarnation || !stored->gone ||
           (durable->incarnation == ref.incarnation && durable->gone);
}

/* Persist, then send: the record of what is about to be sent is durable (protocol, section 4). */
void check_sent(struct sim *sim, const struct core_action *action)
{
    const struct job *job = NULL;
    struct core_job_view view;
    bool durable = true;
    const char *what = "";
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        job = action->answer.code == CADRE_OK ? job_by_id(sim, action->answer.job) : NULL;
        durable = job == NULL || job->durable->known;
        what = "an answer";
        break;
    case CORE_ACTION_START_JOB:
        job = job_by_id(sim, action->job);
        durable = job->durable->started;
        what = "a start";
        break;
    case CORE_ACTION_JOB_ENDED:
        job = job_by_id(sim, action->job);
        durable = job->durable->ended;
        what = "an end";
        break;
    case CORE_ACTION_STOP_TASK:
        job = job_by_id(sim, action->stop_task.task.job);
        durable = job == NULL || end_is_durable(job, action->stop_task.task);
        what = "the acknowledgement of a task's end";
        break;
    case CORE_ACTION_FORGET_JOB:
        job = job_by_id(sim, action->forget_job.job);
        durable = job == NULL || job->stored->started || !job->durable->started;
        what = "a forget";
        break;
    case CORE_ACTION_NOTIFY_JOB:
        job = job_by_id(sim, action->notify_job.job);
        if (!core_job(sim->coordinator.core, job->id, &view)) {
            break;
        }
        if (action->notify_job.message == CORE_MESSAGE_PLAN) {
            durable = generation_equal(job->durable->generation, view.generation);
            what = "a plan";
        } else if (action->notify_job.message == CORE_MESSAGE_GOODBYE && view.roster > 0) {
            durable = job->durable->done;
            what = "a bye";
        } else if (action->notify_job.message == CORE_MESSAGE_RELEASE) {
            durable = generation_equal(job->durable->generation, view.generation);
            what = "a release of a generation";
        }
        break;
    default:
        break;
    }
    if (!durable) {
        broken(sim, "PERSIST", "%s of job %llu is sent before its record", what, (ull)job->id.n);
    }
}

/* ---- records ---- */

static void check_end_record(struct sim *sim, const struct job *job, const struct cursor *end)
{
    bool right = false;
    for (uint32_t i = 0; i < job->plan->segment_count; i++) {
        const struct scenario_segment *segment = &job->plan->segments[i];
        if (segment->stream == end->stream && segment->epoch == end->epoch) {
            uint64_t moved = mutant_acts(sim, MUTANT_END_MOVED) ? 1 : 0;
            right = segment->steps == end->steps + moved;
        }
    }
    if (!right && !job->plan->short_data) {
        broken(sim, "END", "job %llu: stream %u, epoch %llu is recorded to end after %llu steps",
            (ull)job->id.n, end->stream, (ull)end->epoch, (ull)end->steps);
    }
}

/* What is committed of an epoch is what its first steps should have consumed (CONSUMED). */
static void check_consumed_record(struct sim *sim, const struct job *job,
    const struct cursor *cursor, const struct consumption *relay_up)
{
    struct consumption consumption = *relay_up;
    if (cursor->stream == 0) {
        return;
    }
    consumption.consumed[0] += mutant_acts(sim, MUTANT_CONSUMPTION_MOVED) ? 1 : 0;
    struct consumption right =
        truth_consumption(job, cursor->stream, cursor->epoch, consumption.steps);
    bool consumed =
        consumption.samples == right.samples && consumption.consumed[0] == right.consumed[0] &&
        consumption.consumed[1] == right.consumed[1] && consumption.steps == right.steps;
    bool expected = !consumption.provable || (consumption.expected[0] == right.expected[0] &&
                                                 consumption.expected[1] == right.expected[1]);
    if (!consumed || !expected ||
        (consumption.steps > 0 && consumption.provable != right.provable)) {
        broken(sim, "CONSUMED",
            "job %llu: of stream %u, epoch %llu, %llu steps with %llu samples are committed, %s",
            (ull)job->id.n, cursor->stream, (ull)cursor->epoch, (ull)consumption.steps,
            (ull)consumption.samples,
            consumed ? "and something else was expected" : "not what should have been consumed");
    }
}

static void check_checkpoint_record(
    struct sim *sim, const struct job *job, const struct core_checkpoint *checkpoint)
{
    struct state state = checkpoint_state(job, checkpoint->position, checkpoint->manifest_sha256);
    uint64_t position = checkpoint->position;
    if (job->mesh == SIM_NONE || position > job->plan->steps) {
        broken(sim, "CKPT_TIMELINE", "job %llu: a checkpoint of %llu before a generation",
            (ull)job->id.n, (ull)position);
        return;
    }
    const struct mesh *mesh = &sim->meshes[job->mesh];
    if (state.once != job->once[position] || state.timeline != job->timeline[position] ||
        !generation_equal(checkpoint->generation, mesh->generation)) {
        broken(sim, "CKPT_TIMELINE",
            "job %llu: the checkpoint of %llu of generation %llu is not of the ledger's timeline",
            (ull)job->id.n, (ull)position, (ull)checkpoint->generation.number);
    }
    layout_check(sim, job, position, state.layout, "the checkpoint");
    values_check(sim, job, position, state.value);
    if (position > mesh->resume && mesh->applied[position - 1] < mesh->count) {
        broken(sim, "CKPT_BEHIND",
            "job %llu: a checkpoint of %llu is published, but only %u of %u have come there",
            (ull)job->id.n, (ull)position, mesh->applied[position - 1], mesh->count);
    }
    bool stored = checkpoint->shared;
    for (uint32_t i = 0; i < sim->process_count && !stored; i++) {
        stored = sim->processes[i].ref.job.n == job->id.n &&
                 (sim->processes[i].stored >> position & 1) != 0;
    }
    if (!stored) {
        broken(sim, "PUBLISHED", "job %llu: the checkpoint of %llu can be read on its host only",
            (ull)job->id.n, (ull)position);
    }
}

/* A plan that resumes at another position than the saved one. */
static bool mutant_acts_late(struct sim *sim, const struct job *job)
{
    return job->saved_at != POSITION_NONE && mutant_acts(sim, MUTANT_RESUMED_ELSEWHERE);
}

static void check_plan_record(
    struct sim *sim, const struct job *job, const struct core_record *record)
{
    const struct stored *stored = job->stored;
    struct generation generation = record->plan.generation;
    if (generation.number <= stored->generation.number || generation.nonce == 0) {
        broken(sim, "GEN_UP", "job %llu: generation %llu is planned after %llu", (ull)job->id.n,
            (ull)generation.number, (ull)stored->generation.number);
    }
    uint64_t resumed = record->plan.resume + (mutant_acts_late(sim, job) ? 1 : 0);
    if (job->saved_at != POSITION_NONE && resumed != job->saved_at) {
        broken(sim, "PREEMPT", "job %llu: was saved at %llu, and goes on at %llu", (ull)job->id.n,
            (ull)job->saved_at, (ull)resumed);
    }
    uint64_t least = stored->has_checkpoint ? stored->checkpoint.position : 0;
    bool begins = record->plan.restarted || stored->generation.number == 0;
    if (record->plan.resume < least || (begins && record->plan.resume != least)) {
        broken(sim, "CKPT_BEHIND",
            "job %llu: generation %llu resumes at %llu%s, the newest checkpoint is of %llu",
            (ull)job->id.n, (ull)generation.number, (ull)record->plan.resume,
            begins ? " without a state" : "", (ull)least);
    }
    if (record->plan.restarts < stored->restarts ||
        record->plan.restarts > job->plan->max_restarts) {
        broken(sim, "RESTARTS", "job %llu: was restarted %u times, %u before; it may be %u times",
            (ull)job->id.n, record->plan.restarts, stored->restarts, job->plan->max_restarts);
    }
    if (stored->done || stored->ended) {
        broken(sim, "GEN_UP", "job %llu: a generation is planned after its end", (ull)job->id.n);
    }
}

/* A gang: a job starts with as many tasks as it needs, or not at all. */
void check_started(struct sim *sim, const struct job *job)
{
    uint32_t placed = 0;
    for (uint32_t slot = 0; slot < job->plan->tasks; slot++) {
        placed += job->stored->tasks[slot].incarnation != 0 ? 1 : 0;
    }
    if (placed < job->plan->tasks_min) {
        broken(sim, "GANG", "job %llu is started with %u of at least %u tasks", (ull)job->id.n,
            placed, job->plan->tasks_min);
    }
}

/* Whether the coordinator received a message lately from a member of the job's generation other
 * than this one. */
static bool is_alive(const struct sim *sim, const struct job *job, uint32_t but)
{
    for (uint32_t slot = 0; slot < job->plan->tasks; slot++) {
        const struct core_restore_task *task = &job->stored->tasks[slot];
        bool member =
            task->incarnation != 0 && task->rank != SIM_NONE && !task->gone && !task->lost;
        for (uint32_t i = 0; slot != but && member && i < sim->scenario.agents; i++) {
            const struct agent *a = &sim->agents[i];
            if (strcmp(a->name, task->worker) == 0 &&
                coordinator_now(sim) - a->last_seen_us <= SCENARIO_LEASE_US) {
                return true;
            }
        }
    }
    return false;
}

/* Rule 21: a task that runs, and whose daemon was not silent for longer than the patience, is given
 * up only so that others go on. Excluded: a task that is alone, or at its end. */
void check_lost(struct sim *sim, const struct job *job, const struct core_record *record)
{
    uint32_t index = job->processes[record->task_exit.slot];
    const struct process *process = index == SIM_NONE ? NULL : &sim->processes[index];
    bool wanted = !job->stored->ending && !job->stored->ended && !job->cancel_asked &&
                  strstr(record->task_exit.exit.text, "not wanted") == NULL;
    if (process == NULL || process->ref.incarnation != record->task_exit.incarnation || !wanted ||
        record->task_exit.state != TASK_LOST) {
        return;
    }
    const struct agent *a = &sim->agents[process->agent];
    const struct core_restore_task *task = &job->stored->tasks[record->task_exit.slot];
    bool attempts = process->program != PROGRAM_DEAD && process->program != PROGRAM_UNBORN &&
                    !process->ending && !process->stopped && a->alive;
    bool member =
        task->rank != SIM_NONE && process->core.clean && !process->torn && !job->plan->keeps_state;
    uint64_t now_us = coordinator_now(sim);
    uint64_t turn_us = sim->scenario.turn_us;
    bool lately = now_us - a->last_seen_us <= turn_us;
    uint64_t silent_us = now_us - a->last_seen_us + (lately ? a->silent_us : 0);
    bool patient = silent_us + turn_us < SCENARIO_REWIND_US;
    bool stands = job->plan->plain || (member && !job->stored->done);
    if (attempts && patient && stands && !is_alive(sim, job, record->task_exit.slot)) {
        broken(sim, "REWIND", "job %llu: task %u.%llu on w%u runs, and is given up alone",
            (ull)job->id.n, process->ref.slot, (ull)process->ref.incarnation, process->agent);
    }
}

/* Drains that clients were notified of are on record. */
void check_drains(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.agents && sim->scenario.agents <= SIM_SWEEP_MAX; i++) {
        const struct agent *a = &sim->agents[i];
        bool drained = core_drain_of(sim->coordinator.core, a->name) != NULL;
        if (a->incarnation > 0 && drained != a->drain_stored) {
            broken(sim, "DRAINED", "w%u is %s, and on record is the contrary", i,
                drained ? "drained" : "not drained");
        }
    }
}

static bool is_drained(const struct sim *sim, const char *worker)
{
    bool drained = false;
    for (uint32_t i = 0; i < sim->scenario.agents && !drained; i++) {
        drained = sim->agents[i].drain_stored && strcmp(sim->agents[i].name, worker) == 0;
    }
    return drained;
}

void check_record(struct sim *sim, struct job *job, const struct core_record *record)
{
    switch (record->type) {
    case CORE_RECORD_TASK_EXIT:
        if (sim->scenario.replicas == 0) { /* else it was, when it was decided */
            check_lost(sim, job, record);
        }
        break;
    case CORE_RECORD_PLAN:
        check_plan_record(sim, job, record);
        break;
    case CORE_RECORD_TASK:
        if (record->task.incarnation <= job->stored->incarnation_max) {
            broken(sim, "IDS", "job %llu: incarnation %llu is given out twice", (ull)job->id.n,
                (ull)record->task.incarnation);
        }
        if (is_drained(sim, record->task.worker)) {
            broken(sim, "DRAINED", "job %llu: task %u is placed on %s, which is drained",
                (ull)job->id.n, record->task.slot, record->task.worker);
        }
        break;
    case CORE_RECORD_WATERMARK:
        if (generation_equal(record->watermark.generation, job->stored->generation) &&
            record->watermark.up_to < job->stored->watermark) {
            broken(sim, "ADMIT", "job %llu: the watermark falls to %llu from %llu", (ull)job->id.n,
                (ull)record->watermark.up_to, (ull)job->stored->watermark);
        }
        break;
    case CORE_RECORD_END_OF_DATA:
        check_end_record(sim, job, &record->end_of_data);
        break;
    case CORE_RECORD_CONSUMED:
        check_consumed_record(
            sim, job, &record->consumption.cursor, &record->consumption.consumption);
        break;
    case CORE_RECORD_CHECKPOINT:
        check_checkpoint_record(sim, job, &record->checkpoint);
        break;
    default:
        break;
    }
}

/* ---- messages ---- */

void check_plan(struct sim *sim, const struct job *job, const struct task_plan *plan)
{
    if (job->mesh != SIM_NONE) {
        struct generation last = sim->meshes[job->mesh].generation;
        bool same = generation_equal(last, plan->generation);
        if (!same && plan->generation.number <= last.number) {
            broken(sim, "GEN_UP", "job %llu: generation %llu is planned after %llu", (ull)job->id.n,
                (ull)plan->generation.number, (ull)last.number);
        }
    }
    if (!generation_equal(job->stored->generation, plan->generation)) {
        broken(sim, "GEN_UP", "job %llu: generation %llu is sent with a nonce that is not recorded",
            (ull)job->id.n, (ull)plan->generation.number);
    }
    if (plan->resume != job->stored->resume) {
        broken(sim, "PERSIST", "job %llu: generation %llu resumes at %llu, recorded is %llu",
            (ull)job->id.n, (ull)plan->generation.number, (ull)plan->resume,
            (ull)job->stored->resume);
    }
    bool seen[SCENARIO_AGENTS_MAX] = {false};
    for (size_t rank = 0; rank < plan->roster_count; rank++) {
        uint32_t slot = plan->roster[rank].slot;
        if (slot >= job->plan->tasks || seen[slot]) {
            broken(
                sim, "RANKS", "job %llu: slot %u has two ranks, or is none", (ull)job->id.n, slot);
            return;
        }
        seen[slot] = true;
        if (plan->roster[rank].incarnation != job->stored->tasks[slot].incarnation) {
            broken(sim, "RANKS", "job %llu: rank %zu is incarnation %llu, on record is %llu",
                (ull)job->id.n, rank, (ull)plan->roster[rank].incarnation,
                (ull)job->stored->tasks[slot].incarnation);
        }
    }
    if (ps_job_is_set(&job->plan->ps_job) && plan->roster_count > 0 &&
        (plan->roster_count != 1 || plan->roster[0].slot != 0)) {
        broken(sim, "PS_JOB", "job %llu: a generation of %zu, the first is task %u: not its chief",
            (ull)job->id.n, plan->roster_count, plan->roster[0].slot);
    }
    if (plan->roster_count > job->plan->tasks) {
        broken(sim, "RANKS", "job %llu: a generation of %zu", (ull)job->id.n, plan->roster_count);
    }
}

/* Rule 23: an epoch's length is recorded before a release that reaches its end, or what is admitted
 * behind the run before it, which can cover a short one whole. After an epoch that is left early it
 * comes with the next arrivals: what was admitted of that one can be longer. It is not required of
 * a generation that went over the end: what was before its first step was recorded earlier, if a
 * task had it. */
static void check_ends(struct sim *sim, const struct job *job, uint64_t up_to)
{
    const struct mesh *mesh = &sim->meshes[job->mesh];
    uint64_t end = 0;
    for (uint32_t i = 0; i < job->plan->segment_count; i++) {
        const struct scenario_segment *segment = &job->plan->segments[i];
        if (segment->from + segment->taken < segment->steps) {
            return;
        }
        uint64_t ahead = end + sim->behind_steps;
        end += segment->taken;
        uint64_t due = end > ahead ? end : ahead + 1;
        const struct stream_position *at = &job->stored->at[segment->stream];
        bool known = at->stream != 0 && (at->epoch > segment->epoch ||
                                            (at->epoch == segment->epoch && at->steps != 0));
        if (segment->stream != 0 && end > mesh->resume && up_to >= due && !known) {
            broken(sim, "END",
                "job %llu: released up to %llu, but the end of segment %u is not recorded",
                (ull)job->id.n, (ull)up_to, i);
        }
    }
}

static void check_controls(
    struct sim *sim, const struct job *job, const struct task_release *release)
{
    const struct stored *stored = job->durable;
    if (release->halt_kind != HALT_NONE &&
        (!stored->has_control || stored->halt_at != release->halt_at ||
            stored->halt_kind != release->halt_kind ||
            stored->halt_stream != release->halt_stream)) {
        broken(sim, "PERSIST", "job %llu: a halt at %llu is sent before its record", (ull)job->id.n,
            (ull)release->halt_at);
    }
    if (release->published != POSITION_NONE && !stored_was_published(stored, release->published)) {
        broken(sim, "PERSIST", "job %llu: the checkpoint of %llu is sent before its record",
            (ull)job->id.n, (ull)release->published);
    }
    if (release->halt_kind != HALT_NONE && release->up_to > release->halt_at) {
        broken(sim, "HALT", "job %llu: released up to %llu beyond the halt at %llu", (ull)job->id.n,
            (ull)release->up_to, (ull)release->halt_at);
    }
}

/* A task that waits in cadre_save gets the same as its peers. */
static void check_published(
    struct sim *sim, const struct job *job, const struct task_release *release)
{
    const struct mesh *mesh = &sim->meshes[job->mesh];
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        uint64_t knows = process->core.published;
        bool there = generation_equal(process->core.generation, mesh->generation);
        if (there && knows != POSITION_NONE &&
            (release->published == POSITION_NONE || release->published < knows)) {
            broken(sim, "PUBLISHED", "job %llu: task %u got %llu as published, and now gets less",
                (ull)job->id.n, process->ref.slot, (ull)knows);
        }
    }
}

/* Rule 2: at most the least of what all members have in hand. Rule 3: no control that a member has
 * passed. */
void check_release(struct sim *sim, const struct job *job, const struct task_release *release)
{
    if (job->mesh == SIM_NONE ||
        !generation_equal(sim->meshes[job->mesh].generation, release->generation)) {
        if (release->up_to > job->stored->resume) {
            broken(sim, "ARRIVED", "job %llu: a release before its plan", (ull)job->id.n);
        }
        return;
    }
    const struct mesh *mesh = &sim->meshes[job->mesh];
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        bool there = generation_equal(process->core.generation, mesh->generation);
        uint64_t arrived = there ? process->core.arrived : mesh->resume;
        if (arrived < release->up_to) {
            broken(sim, "ARRIVED", "job %llu: released up to %llu, but task %u has %llu in hand",
                (ull)job->id.n, (ull)release->up_to, process->ref.slot, (ull)arrived);
        }
        bool asks = release->checkpoint_at != process->core.checkpoint_at;
        if (there && (release->halt_at < process->core.position ||
                         (asks && release->checkpoint_at < process->core.position))) {
            broken(sim, "HALT", "job %llu: task %u is at %llu and receives a control at %llu",
                (ull)job->id.n, process->ref.slot, (ull)process->core.position,
                (ull)release->halt_at);
        }
    }
    check_published(sim, job, release);
    /* What tasks have from an older start of the coordinator may be sent again. */
    if (release->up_to > job->stored->watermark && release->up_to > mesh->admitted) {
        broken(sim, "PERSIST", "job %llu: release %llu is sent, but only %llu is written",
            (ull)job->id.n, (ull)release->up_to, (ull)job->stored->watermark);
    }
    check_controls(sim, job, release);
    if (release->up_to > mesh->admitted) {
        check_ends(sim, job, release->up_to);
    }
}

/* Rule 17: all are at the recorded stop, and that is saved. */
static void check_stopped(struct sim *sim, const struct job *job, const struct mesh *mesh)
{
    const struct stored *stored = job->durable;
    bool saved = stored->has_checkpoint && stored->checkpoint.position == stored->done_position;
    if ((!saved && !job->damaged) || stored->done_position != stored->halt_at) {
        broken(sim, "PREEMPT", "job %llu leaves at %llu, sent was %llu, and saved is %lld",
            (ull)job->id.n, (ull)stored->done_position, (ull)stored->halt_at,
            stored->has_checkpoint ? (long long)stored->checkpoint.position : -1);
    }
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        if (process->core.position != stored->done_position || !process->core.clean) {
            broken(sim, "PREEMPT", "job %llu leaves at %llu, but task %u is at %llu",
                (ull)job->id.n, (ull)stored->done_position, process->ref.slot,
                (ull)process->core.position);
        }
    }
}

/* Rule 17: all members of the final generation are at its recorded end. */
void check_goodbye(struct sim *sim, const struct job *job)
{
    if (job->mesh == SIM_NONE) {
        broken(sim, "HALT", "job %llu: bye before a plan", (ull)job->id.n);
        return;
    }
    struct mesh *mesh = &sim->meshes[job->mesh];
    if (job->durable->has_control && job->durable->halt_kind == HALT_STOP) {
        check_stopped(sim, job, mesh);
        mesh->left = true;
        return;
    }
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[mesh_member(sim, mesh, rank)];
        bool short_one = job->plan->short_slot != UINT32_MAX;
        values_check(sim, job, job->stored->done_position, process->state.value);
        layout_check(sim, job, job->stored->done_position, process->state.layout, "who ends there");
        if (!process->core.finished || process->core.position != job->stored->done_position ||
            (process->core.position != job->plan->steps && !short_one)) {
            broken(sim, "HALT", "job %llu: bye at %llu, but task %u is at %llu", (ull)job->id.n,
                (ull)job->stored->done_position, process->ref.slot, (ull)process->core.position);
        }
    }
}
