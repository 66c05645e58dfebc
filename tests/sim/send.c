/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's sender: the production makes the messages (coordinator/engine/messages.c); here
 * they are checked, changed by mutants, and sent. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "coordinator/engine/messages.h"
#include "replicas/replicas.h"
#include "sim.h"

typedef unsigned long long ull;

struct job *job_by_id(struct sim *sim, struct job_id id)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        if (id.n != 0 && sim->jobs[i].id.n == id.n) {
            return &sim->jobs[i];
        }
    }
    return NULL;
}

static void answer(struct sim *sim, const struct core_action *action)
{
    uint64_t call = action->answer.call.n;
    trace(
        sim, "answer to call %llu: %d %.100s", (ull)call, action->answer.code, action->answer.text);
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->call == call) {
            if (sim->scenario.replicas > 0) {
                replica_sends_answer(sim, i, call, action->answer.code);
            } else {
                job->answered = true;
            }
            if (action->answer.code != CADRE_OK) {
                broken(sim, "TRUTH", "a submit that fits was refused: %s", action->answer.text);
            }
        }
    }
}

/* ---- what is sent ---- */

static void check_start(struct sim *sim, struct link_id link, const struct agent_start *start)
{
    struct job *job = job_by_id(sim, start->task.job);
    uint64_t recorded = job->durable->tasks[start->task.slot].incarnation;
    if (recorded != start->task.incarnation) {
        broken(sim, "PERSIST",
            "job %llu: task %u.%llu is started, but incarnation %llu is the newest on record",
            (ull)start->task.job.n, start->task.slot, (ull)start->task.incarnation, (ull)recorded);
    }
    job->touches += sim->agents[sim->links[link.n - 1].agent].faulty ? 1 : 0;
}

/* A server is notified which copy of it counts, after that is recorded. */
static void check_members(struct sim *sim, const struct agent_relay_down *relay_down)
{
    const struct task_members *members = &relay_down->down.members;
    const struct stored *stored = job_by_id(sim, relay_down->job)->durable;
    for (size_t i = 0; i < members->member_count; i++) {
        const struct task_member *member = &members->members[i];
        const struct task_backed *recorded = &stored->tasks[member->slot].backed;
        if (member->here &&
            (member->backed.number != recorded->number || member->backed.by != recorded->by)) {
            broken(sim, "PERSIST",
                "job %llu: server %u.%llu is notified of the copy %llu before its record",
                (ull)relay_down->job.n, member->slot, (ull)member->incarnation,
                (ull)member->backed.by);
        }
    }
}

/* Whether a mutant drops it. */
static bool is_lost(struct sim *sim, struct agent_down *down)
{
    if (down->type != AGENT_DOWN_START) {
        return false;
    }
    if (down->start.restores && mutant_acts(sim, MUTANT_RESTORE_FORGOTTEN)) {
        down->start.restores = false;
    }
    return mutant_acts(sim, MUTANT_START_LOST);
}

/* Only hosts of servers keep memory that a FORGET could remove. */
static bool is_idle(struct sim *sim, const struct agent_down *down)
{
    const struct job *job = down->type == AGENT_DOWN_FORGET ? job_by_id(sim, down->forget) : NULL;
    return down->type == AGENT_DOWN_FORGET && (job == NULL || !ps_job_is_set(&job->plan->ps_job));
}

/* Each message after a welcome uses the number of that welcome. */
static void note_sent(struct sim *sim, struct link *link, const struct agent_down *down)
{
    if (down->type == AGENT_DOWN_WELCOME) {
        link->sent_start = down->welcome.term.start;
        supersede_is_over(sim);
    } else {
        check_known(sim, link);
    }
}

static void drop_shared(struct sim *sim)
{
    message_drop(&sim->pool, sim->shared);
    sim->shared = NULL;
}

static void send(void *user, struct link_id link, const struct agent_down *given)
{
    struct sim *sim = user;
    struct agent_down down = *given;
    bool relays = down.type == AGENT_DOWN_RELAY;
    if (is_idle(sim, &down)) {
        return;
    }
    if (down.type == AGENT_DOWN_START) {
        check_start(sim, link, &down.start);
    } else if (relays && down.relay_down.down.type == TASK_DOWN_MEMBERS) {
        check_members(sim, &down.relay_down);
        struct task_members *members = &down.relay_down.down.members;
        if (members->changes && mutant_acts(sim, MUTANT_CHANGE_UNSENT)) {
            members->member_count--;
        }
    }
    if (is_lost(sim, &down)) {
        return;
    }
    /* A message to all members is one message, unless it is a plan with a part of the roster. */
    bool part = relays && down.relay_down.down.type == TASK_DOWN_PLAN &&
                down.relay_down.down.plan.members > 0;
    if (sim->shared == NULL || !relays || down.relay_down.one || part) {
        drop_shared(sim);
        sim->shared = message_of_down(&sim->pool, &down);
    }
    note_sent(sim, &sim->links[link.n - 1], &down);
    if (sim->scenario.replicas > 0) {
        replica_sends_down(sim, (uint32_t)(link.n - 1), sim->shared);
    } else {
        send_down(sim, (uint32_t)(link.n - 1), sim->shared);
    }
}

/* ---- what messages are made from ---- */

/* The fields that daemons here read. */
static const struct job_spec *spec_of(void *user, struct job_id id)
{
    struct sim *sim = user;
    const struct job *job = job_by_id(sim, id);
    sim->spec = (struct job_spec){.ps_job = job->plan->ps_job};
    return &sim->spec;
}

/* Different for each generation; it protects nothing here. */
static void key_of(void *user, struct job_id job, struct generation generation,
    uint8_t ret_key[LIMIT_JOB_KEY_BYTES])
{
    (void)user;
    (void)job;
    memset(ret_key, 0, LIMIT_JOB_KEY_BYTES);
    memcpy(ret_key, &generation.nonce, sizeof(generation.nonce));
}

static struct members_sent *members_of(void *user, struct job_id id)
{
    return &job_by_id(user, id)->members_sent;
}

static void note_start(void *user, struct job_id id, uint32_t slot)
{
    (void)user;
    (void)id;
    (void)slot;
}

static struct sender sender_of(struct sim *sim)
{
    return (struct sender){.core = sim->coordinator.core,
        .lease_us = SCENARIO_LEASE_US,
        .grace_us = SCENARIO_GRACE_US,
        .term = sim->coordinator.term,
        .user = sim,
        .down = send,
        .spec = spec_of,
        .key = key_of,
        .members = members_of,
        .starts = note_start,
        .whole_max = 1};
}

/* A task that lost its worker in this very turn gets its START when that is back. */
static void note_placed(struct sim *sim, struct job_id id, bool again)
{
    struct core_job_view view;
    if (!core_job(sim->coordinator.core, id, &view)) {
        return;
    }
    struct job *job = job_by_id(sim, id);
    for (uint32_t slot = 0; slot < view.tasks; slot++) {
        struct core_task_view task;
        core_job_task(sim->coordinator.core, id, slot, &task);
        job->touches += !again && task.link.n == 0 ? 1 : 0;
    }
    job->placed = true;
}

/* ---- generations ---- */

static void mutate_roster(
    struct sim *sim, const struct core_job_view *view, struct roster_entry *roster)
{
    if (view->generation.number > 1 && mutant_acts(sim, MUTANT_PLAN_TO_SUCCESSOR)) {
        roster[0].incarnation++;
    }
    if (ps_job_is_set(&view->ps_job) && mutant_acts(sim, MUTANT_PS_TASK_PLANNED)) {
        struct core_task_view server;
        roster[0].slot = ps_job_first_slot(&view->ps_job, ROLE_SERVER);
        core_job_task(sim->coordinator.core, view->job, roster[0].slot, &server);
        roster[0].incarnation = server.incarnation;
    }
    if (view->roster > 1 && mutant_acts(sim, MUTANT_TWO_OF_A_RANK)) {
        roster[1] = roster[0];
    }
}

/* The rank of a member at another position; else the source. */
static uint32_t rank_elsewhere(
    struct sim *sim, const struct core_job_view *view, const struct job *job, bool behind)
{
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        uint32_t slot = core_job_member(sim->coordinator.core, view->job, rank);
        const struct process *process = &sim->processes[job->processes[slot]];
        bool elsewhere = process->core.position != view->resume && !process->core.warm;
        if (elsewhere && (!behind || process->core.clean)) {
            return rank;
        }
    }
    return view->source;
}

/* The result of another choice of position: a plan from the least of the positions. */
static void mutate_plan(struct sim *sim, struct core_job_view *view, const struct job *job)
{
    if (view->source == SOURCE_NONE) {
        return;
    }
    uint32_t rank = rank_elsewhere(sim, view, job, true);
    if (rank == view->source) {
        return;
    }
    uint32_t slot = core_job_member(sim->coordinator.core, view->job, rank);
    if (mutant_acts(sim, MUTANT_SOURCE_ELSEWHERE)) {
        view->source = rank;
    } else if (mutant_acts(sim, MUTANT_RESUME_AT_MIN)) {
        view->source = rank;
        view->resume = sim->processes[job->processes[slot]].core.position;
    }
}

/* Of several coordinators: once its plan is in the log. */
static void note_opened(struct sim *sim, struct job *job)
{
    uint32_t index = (uint32_t)(job - sim->jobs);
    const struct mesh *mesh = &sim->meshes[job->mesh];
    if (sim->scenario.replicas == 0) {
        job->meshes++;
        job->planned = true;
        sim->planned_us = sim->now_us;
    } else if (generation_equal(replicas_stored(sim, index)->generation, mesh->generation)) {
        mesh_recorded(sim, job, mesh->generation);
    }
}

static void look_at_plan(
    struct sim *sim, const struct core_job_view *view, struct job *job, struct fanout *fanout)
{
    struct task_plan *plan = &fanout->down.relay_down.down.plan;
    mutate_roster(sim, view, fanout->roster);
    if (mutant_acts(sim, MUTANT_OTHER_NONCE)) {
        plan->generation.nonce++;
    }
    check_plan(sim, job, plan);
    bool opened = job->mesh != SIM_NONE &&
                  generation_equal(sim->meshes[job->mesh].generation, view->generation);
    if (!opened && view->roster > 0) {
        struct core_job_view seen = *view;
        mutate_plan(sim, &seen, job);
        job->mesh = mesh_open(sim, job, &seen);
        note_opened(sim, job);
    }
    if (view->roster > 0) {
        plan->resume = sim->meshes[job->mesh].resume;
        plan->source = sim->meshes[job->mesh].source;
    }
}

static void look_at_release(struct sim *sim, const struct core_job_view *view,
    const struct job *job, struct task_release *release)
{
    if (mutant_acts(sim, MUTANT_RELEASE_AHEAD)) {
        release->up_to++;
    }
    if (view->has_checkpoint && mutant_acts(sim, MUTANT_CHECKPOINT_AHEAD)) {
        release->published++;
    }
    if (view->checkpoint_at != POSITION_NONE && view->released > view->resume &&
        mutant_goes_on(sim, MUTANT_ASKED_LATE)) {
        release->checkpoint_at = view->released - 1; /* a member may be in this step */
    }
    if (view->committed > view->resume && mutant_acts(sim, MUTANT_HALT_PASSED)) {
        release->halt_at = 0;
        release->halt_kind = HALT_STOP;
    }
    if (sim->scenario.replicas > 0) {
        if (replica_is_newest(sim, sim->replicas->entered)) {
            check_release(sim, job, release);
        }
        return;
    }
    check_release(sim, job, release);
    if (job->mesh != SIM_NONE && sim->meshes[job->mesh].admitted < release->up_to) {
        sim->meshes[job->mesh].admitted = release->up_to;
    }
}

/* false: a mutant drops it. */
static bool look_at_message(
    struct sim *sim, const struct core_action *action, struct fanout *fanout)
{
    struct core_job_view view;
    struct job *job = job_by_id(sim, action->notify_job.job);
    struct task_down *body = &fanout->down.relay_down.down;
    CADRE_ASSERT(core_job(sim->coordinator.core, action->notify_job.job, &view));
    if (body->type == TASK_DOWN_RELEASE && mutant_acts(sim, MUTANT_GOODBYE_EARLY)) {
        body->type = TASK_DOWN_GOODBYE;
    }
    if (body->type == TASK_DOWN_RELEASE && job->coordinator_crashed && !action->notify_job.one &&
        mutant_goes_on(sim, MUTANT_RAISED_UNSENT)) {
        return false;
    }
    if (body->type == TASK_DOWN_PLAN) {
        look_at_plan(sim, &view, job, fanout);
    } else if (body->type == TASK_DOWN_RELEASE) {
        look_at_release(sim, &view, job, &body->release);
    } else if (body->type == TASK_DOWN_GOODBYE) {
        bool newest = sim->scenario.replicas == 0 || replica_is_newest(sim, sim->replicas->entered);
        if (view.roster > 0 &&
            newest) { /* else all have ended meanwhile, and no task receives it */
            check_goodbye(sim, job);
        }
        return !mutant_acts(sim, MUTANT_GOODBYE_LOST);
    }
    return true;
}

static void notify_job(
    struct sim *sim, const struct sender *sender, const struct core_action *action)
{
    struct fanout fanout;
    struct cadre_error error;
    CADRE_ASSERT(messages_make(sender, action, &fanout, &error) == CADRE_OK);
    if (!fanout.outdated && look_at_message(sim, action, &fanout)) {
        messages_fan_out(sender, action, &fanout);
    }
    messages_free(&fanout);
}

/* Its daemon is as new to its jobs: what it gets from here on it keeps. Not a daemon that began to
 * drain after its hello, because it may still get a task. */
void agent_is_welcomed(struct sim *sim, const struct link *link)
{
    struct agent *agent = &sim->agents[link->agent];
    bool receives = !link->cut && !link->mute_up && !link->mute_down && !link->lost_up &&
                    !link->lost_down && !agent->pause.on;
    if (agent->incarnation == link->incarnation && receives &&
        (!agent->draining || link->sent_draining)) {
        agent->faulty = false;
    }
}

static void refuse(struct sim *sim, const struct core_action *action)
{
    uint32_t link = (uint32_t)(action->refuse.link.n - 1);
    if (sim->scenario.replicas > 0) {
        replica_sends_refused(sim, link, action->refuse.code, action->refuse.text);
    } else {
        link_refuse(sim, link, action->refuse.code, action->refuse.text);
    }
}

static void send_action(struct sim *sim, const struct core_action *action)
{
    const struct sender sender = sender_of(sim);
    struct cadre_error error;
    if (sim->cost != NULL) {
        cost_action(sim->cost, &sender, action);
    }
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        answer(sim, action);
        break;
    case CORE_ACTION_WELCOME:
        if (sim->scenario.replicas == 0) {
            agent_is_welcomed(sim, &sim->links[action->welcome.link.n - 1]);
        }
        break;
    case CORE_ACTION_REFUSE:
        refuse(sim, action);
        break;
    case CORE_ACTION_START_JOB:
        note_placed(sim, action->job, false);
        break;
    case CORE_ACTION_START_TASKS:
        note_placed(sim, action->start_tasks.job, true);
        break;
    case CORE_ACTION_STOP_JOB:
        if (mutant_acts(sim, MUTANT_STOP_LOST)) {
            return;
        }
        break;
    default:
        break;
    }
    if (messages_fan_out_job(action)) {
        notify_job(sim, &sender, action);
    } else {
        CADRE_ASSERT(messages_dispatch(&sender, action, &error) == CADRE_OK);
    }
    drop_shared(sim);
}

static struct newest_messages *newest_messages(void *user, struct job_id id)
{
    struct job *job = job_by_id(user, id);
    return job != NULL ? &job->newest : NULL;
}

static void swap_durable(struct sim *sim, struct stored *durable[SCENARIO_JOBS_MAX])
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct stored *was = sim->jobs[i].durable;
        sim->jobs[i].durable = durable[i];
        durable[i] = was;
    }
}

/* Of several coordinators: what waits for an entry of the log is sent when all is there that was
 * recorded until now (SAID). */
static void send_behind(struct sim *sim, const struct core_action *action)
{
    struct stored *durable[SCENARIO_JOBS_MAX];
    sim->replicas->awaited = replica_awaits(sim, action);
    bool waits = sim->replicas->awaited != 0;
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        durable[i] = waits ? sim->jobs[i].stored : sim->jobs[i].durable;
    }
    swap_durable(sim, durable);
    check_sent(sim, action);
    send_action(sim, action);
    swap_durable(sim, durable);
}

void send_turn(struct sim *sim, const struct core_actions *turn)
{
    const struct newest_of newest = {.find = newest_messages, .user = sim};
    outdated_note(turn, &newest);
    for (size_t i = 0; i < turn->count && sim->broken == NULL; i++) {
        const struct core_action *action = &turn->items[i];
        bool outdated = sim->scenario.terse && outdated_is(turn, i, &newest);
        if (action->type != CORE_ACTION_RECORD && !outdated) {
            if (sim->scenario.replicas > 0) {
                send_behind(sim, action);
            } else {
                check_sent(sim, action);
                send_action(sim, action);
            }
        }
    }
}
