/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's actions become messages, with the content that the core's views have when they
 * are spoken. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "sim.h"

struct job *job_by_id(struct sim *sim, struct job_id id)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        if (id.n != 0 && sim->jobs[i].id.n == id.n) {
            return &sim->jobs[i];
        }
    }
    return NULL;
}

static void send_one(struct sim *sim, struct link_id link, const struct agent_down *down)
{
    if (link.n == 0) {
        return;
    }
    struct message *message = message_of_down(&sim->pool, down);
    send_down(sim, (uint32_t)(link.n - 1), message);
    message_drop(&sim->pool, message);
}

static void answer(struct sim *sim, const struct core_action *action)
{
    uint64_t call = action->answer.call.n;
    trace(sim, "answer to call %llu: %d %.100s", (unsigned long long)call, action->answer.code,
        action->answer.text);
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->call == call) {
            job->answered = true;
            if (action->answer.code != CADRE_OK) {
                broken(sim, "TRUTH", "a submit that fits was refused: %s", action->answer.text);
            }
        }
    }
}

static struct agent_start start_of(
    struct sim *sim, const struct core_job_view *view, struct task_ref task)
{
    struct agent_start start = {.task = task, .task_count = view->tasks, .spec.crew = view->crew};
    struct core_task_view seen;
    core_job_task(sim->coordinator.core, view->job, task.slot, &seen);
    start.predecessor = seen.predecessor;
    if (view->restores && !mutant_acts(sim, MUTANT_RESTORE_FORGOTTEN)) {
        start.restores = true;
        start.checkpoint.position = view->checkpoint.position;
        start.checkpoint.shared = view->checkpoint.shared;
        start.checkpoint.path = "checkpoints/checkpoint.json";
        start.checkpoint.manifest_bytes = view->checkpoint.manifest_bytes;
        memcpy(start.checkpoint.manifest_sha256, view->checkpoint.manifest_sha256,
            sizeof(start.checkpoint.manifest_sha256));
    }
    return start;
}

static void start_one(
    struct sim *sim, const struct core_job_view *view, const struct core_task_view *task)
{
    struct job *job = job_by_id(sim, view->job);
    struct task_ref ref = {.job = view->job, .slot = task->slot, .incarnation = task->incarnation};
    const struct stored_task *stored = &job->durable->tasks[task->slot];
    if (stored->incarnation != task->incarnation) {
        broken(sim, "PERSIST",
            "job %llu: task %u.%llu is started, but incarnation %llu is the newest on record",
            (unsigned long long)view->job.n, task->slot, (unsigned long long)task->incarnation,
            (unsigned long long)stored->incarnation);
    }
    uint32_t agent = sim->links[task->link.n - 1].agent;
    job->touches += sim->agents[agent].faulty ? 1 : 0;
    if (mutant_acts(sim, MUTANT_START_LOST)) {
        return;
    }
    send_one(sim, task->link,
        &(struct agent_down){.type = AGENT_DOWN_START, .start = start_of(sim, view, ref)});
}

/* Every task of the job, or those that are STARTING on one link. */
static void start(struct sim *sim, struct job_id id, struct link_id only)
{
    struct core_job_view view;
    if (!core_job(sim->coordinator.core, id, &view)) {
        return;
    }
    struct job *job = job_by_id(sim, id);
    for (uint32_t slot = 0; slot < view.tasks; slot++) {
        struct core_task_view task;
        core_job_task(sim->coordinator.core, id, slot, &task);
        job->placed = true;
        if (only.n == 0 && task.link.n == 0) {
            job->touches++; /* lost its worker in this very turn, or will be told when it is back */
        }
        if (task.link.n != 0 && task.starts && (only.n == 0 || task.link.n == only.n)) {
            start_one(sim, &view, &task);
        }
    }
}

static void to_workers(struct sim *sim, struct job_id id, const struct agent_down *down,
    struct link_id only, bool members)
{
    struct core_job_view view;
    if (!core_job(sim->coordinator.core, id, &view)) {
        return;
    }
    struct message *message = message_of_down(&sim->pool, down);
    for (uint32_t i = 0; i < view.workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t count;
        core_job_worker(sim->coordinator.core, id, i, &worker, &link, &count);
        if (link.n != 0 && (only.n == 0 || only.n == link.n) && (!members || count > 0)) {
            send_down(sim, (uint32_t)(link.n - 1), message);
        }
    }
    message_drop(&sim->pool, message);
}

static void stop_job(struct sim *sim, struct job_id id)
{
    struct agent_down down = {
        .type = AGENT_DOWN_STOP, .stop = {.job = id, .grace_us = SCENARIO_GRACE_US}};
    if (!mutant_acts(sim, MUTANT_STOP_LOST)) {
        to_workers(sim, id, &down, (struct link_id){0}, false);
    }
}

static struct roster_entry *roster_make(struct sim *sim, const struct core_job_view *view)
{
    struct roster_entry *roster = malloc((view->roster + 1) * sizeof(*roster));
    CADRE_ASSERT(roster != NULL);
    for (uint32_t rank = 0; rank < view->roster; rank++) {
        struct core_task_view task;
        uint32_t slot = core_job_member(sim->coordinator.core, view->job, rank);
        core_job_task(sim->coordinator.core, view->job, slot, &task);
        roster[rank] = (struct roster_entry){.slot = task.slot,
            .incarnation = task.incarnation,
            .replicas = task.replicas,
            .mesh_address = "virtual"};
    }
    if (view->generation.number > 1 && mutant_acts(sim, MUTANT_PLAN_TO_SUCCESSOR)) {
        roster[0].incarnation++;
    }
    if (crew_is(&view->crew) && mutant_acts(sim, MUTANT_ATTENDANT_PLANNED)) {
        struct core_task_view server;
        roster[0].slot = crew_first(&view->crew, ROLE_SERVER);
        core_job_task(sim->coordinator.core, view->job, roster[0].slot, &server);
        roster[0].incarnation = server.incarnation;
    }
    if (view->roster > 1 && mutant_acts(sim, MUTANT_TWO_OF_A_RANK)) {
        roster[1] = roster[0];
    }
    return roster;
}

/* The rank of a member that stands elsewhere; else the source. */
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

/* What another way to choose would have given: a plan from the least of the positions. */
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

static void fill_plan(struct sim *sim, const struct core_job_view *view, struct job *job,
    struct roster_entry *roster, struct task_down *told)
{
    told->type = TASK_DOWN_PLAN;
    told->plan = (struct task_plan){.generation = view->generation,
        .roster = roster,
        .roster_count = view->roster,
        .resume = view->resume,
        .source = view->source,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream};
    if (mutant_acts(sim, MUTANT_OTHER_NONCE)) {
        told->plan.generation.nonce++;
    }
    check_plan(sim, job, &told->plan);
    bool opened = job->mesh != NOBODY &&
                  generation_equal(sim->meshes[job->mesh].generation, view->generation);
    if (!opened && view->roster > 0) {
        struct core_job_view seen = *view;
        mutate_plan(sim, &seen, job);
        job->mesh = mesh_open(sim, job, &seen);
        job->meshes++;
        job->planned = true;
        sim->planned_us = sim->now_us;
    }
    if (view->roster > 0) {
        told->plan.resume = sim->meshes[job->mesh].resume;
        told->plan.source = sim->meshes[job->mesh].source;
    }
}

static void fill_release(struct sim *sim, const struct core_job_view *view, const struct job *job,
    struct task_down *told)
{
    told->type = TASK_DOWN_RELEASE;
    told->release = (struct task_release){.generation = view->generation,
        .up_to = view->released,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream,
        .published = view->published};
    if (mutant_acts(sim, MUTANT_RELEASE_AHEAD)) {
        told->release.up_to++;
    }
    if (view->has_checkpoint && mutant_acts(sim, MUTANT_CHECKPOINT_AHEAD)) {
        told->release.published++;
    }
    if (view->checkpoint_at != POSITION_NONE && view->released > view->resume &&
        mutant_goes_on(sim, MUTANT_ASKED_LATE)) {
        told->release.checkpoint_at = view->released - 1; /* somebody may be in this step */
    }
    if (view->committed > view->resume && mutant_acts(sim, MUTANT_HALT_PASSED)) {
        told->release.halt_at = 0;
        told->release.halt_kind = HALT_STOP;
    }
    check_release(sim, job, &told->release);
    if (job->mesh != NOBODY && sim->meshes[job->mesh].admitted < told->release.up_to) {
        sim->meshes[job->mesh].admitted = told->release.up_to;
    }
}

/* To the tasks of a crew by name: MEMBERS with a key that tells generations apart, or bye. */
static void tell_crew(
    struct sim *sim, const struct core_action *action, const struct core_job_view *view)
{
    enum core_tell tell = action->tell_job.tell;
    const struct stored *stored = job_by_id(sim, view->job)->durable;
    struct task_member *all = calloc(view->tasks, sizeof(*all));
    struct task_member *members = calloc(view->tasks, sizeof(*members));
    struct core_task_view *tasks = calloc(view->tasks, sizeof(*tasks));
    size_t count = 0;
    CADRE_ASSERT(all != NULL && members != NULL && tasks != NULL);
    bool formed = view->formed && generation_equal(view->generation, action->tell_job.generation);
    for (uint32_t slot = 0; slot < view->tasks; slot++) {
        core_job_task(sim->coordinator.core, view->job, slot, &tasks[slot]);
        enum role role = crew_role(&view->crew, slot);
        all[slot] = (struct task_member){.slot = slot,
            .incarnation = tasks[slot].incarnation,
            .lives = tasks[slot].lives,
            .here = tasks[slot].here,
            .address = "",
            .backed = tasks[slot].backed};
        if (role == ROLE_CHIEF || role == ROLE_SERVER) {
            members[count++] = all[slot];
        }
        bool recorded = all[slot].backed.number == stored->tasks[slot].backed.number &&
                        all[slot].backed.by == stored->tasks[slot].backed.by;
        if (formed && tasks[slot].here && !recorded) {
            broken(sim, "PERSIST",
                "job %llu: server %u.%llu is told that %llu has its copy before that is recorded",
                (unsigned long long)view->job.n, slot, (unsigned long long)tasks[slot].incarnation,
                (unsigned long long)all[slot].backed.by);
        }
    }
    for (uint32_t slot = 0; slot < view->tasks && formed; slot++) {
        bool server = crew_role(&view->crew, slot) == ROLE_SERVER;
        bool meant = tell == CORE_TELL_MEMBERS
                         ? !action->tell_job.one || action->tell_job.slot == slot
                         : slot > 0 && server == (tell == CORE_TELL_BYE_SERVERS);
        if (!tasks[slot].here || !meant) {
            continue;
        }
        struct agent_down down = {.type = AGENT_DOWN_TELL,
            .tell = {.job = view->job,
                .one = true,
                .task = {view->job, slot, tasks[slot].incarnation},
                .down = {.type = TASK_DOWN_BYE, .generation = view->generation}}};
        if (tell == CORE_TELL_MEMBERS) {
            down.tell.down = (struct task_down){.type = TASK_DOWN_MEMBERS,
                .members = {.generation = view->generation,
                    .members = slot == 0 ? all : members,
                    .member_count = slot == 0 ? view->tasks : count}};
            memcpy(down.tell.down.members.key, &view->generation.nonce, sizeof(uint64_t));
        }
        send_one(sim, tasks[slot].link, &down);
    }
    free(all);
    free(members);
    free(tasks);
}

static void tell_job(struct sim *sim, const struct core_action *action)
{
    struct core_job_view view;
    struct job_id id = action->tell_job.job;
    if (!core_job(sim->coordinator.core, id, &view)) {
        return;
    }
    struct job *job = job_by_id(sim, id);
    struct agent_down down = {.type = AGENT_DOWN_TELL,
        .tell = {.job = id,
            .one = action->tell_job.one,
            .down = {.generation = action->tell_job.generation}}};
    struct task_down *told = &down.tell.down;
    struct roster_entry *roster = NULL;
    if (action->tell_job.one) {
        struct core_task_view task;
        core_job_task(sim->coordinator.core, id, action->tell_job.slot, &task);
        down.tell.task =
            (struct task_ref){.job = id, .slot = task.slot, .incarnation = task.incarnation};
    }
    enum core_tell tell = action->tell_job.tell;
    if (tell == CORE_TELL_RELEASE && mutant_acts(sim, MUTANT_BYE_EARLY)) {
        tell = CORE_TELL_BYE;
    }
    if (tell == CORE_TELL_RELEASE && job->coordinator_crashed && !action->tell_job.one &&
        mutant_goes_on(sim, MUTANT_RAISED_UNSAID)) {
        return;
    }
    switch (tell) {
    case CORE_TELL_PLAN:
        roster = roster_make(sim, &view);
        fill_plan(sim, &view, job, roster, told);
        break;
    case CORE_TELL_RELEASE:
        fill_release(sim, &view, job, told);
        break;
    case CORE_TELL_ABORT:
        told->type = TASK_DOWN_ABORT;
        told->reason = action->tell_job.reason;
        break;
    case CORE_TELL_BYE:
        told->type = TASK_DOWN_BYE;
        if (view.roster > 0) { /* else all have gone meanwhile, and nobody hears it */
            check_bye(sim, job);
        }
        break;
    case CORE_TELL_MEMBERS:
    case CORE_TELL_BYE_CREW:
    case CORE_TELL_BYE_SERVERS:
        tell_crew(sim, action, &view);
        return;
    }
    if (tell != CORE_TELL_BYE || !mutant_acts(sim, MUTANT_BYE_LOST)) {
        to_workers(sim, id, &down, action->tell_job.link, true);
    }
    free(roster);
}

/* Its daemon is as new to its jobs: what it is given from here on it keeps. Not one that was told
 * to drain after it had said hello: it may still be given a task. */
static void welcome(struct sim *sim, const struct link *link)
{
    struct agent *agent = &sim->agents[link->agent];
    bool hears =
        !link->cut && !link->mute_up && !link->mute_down && !link->lost_up && !link->lost_down;
    if (agent->life == link->life && hears && (!agent->draining || link->told_draining)) {
        agent->faulty = false;
    }
}

static void tell_task(struct sim *sim, const struct core_action *action)
{
    struct core_job_view view;
    struct stream_position streams[LIMIT_STREAMS];
    size_t count = 0;
    if (action->tell_task.type == TASK_DOWN_WARM) {
        if (!core_job(sim->coordinator.core, action->tell_task.task.job, &view)) {
            return;
        }
        while (count < LIMIT_STREAMS &&
               core_job_stream(sim->coordinator.core, view.job, (uint32_t)count, &streams[count])) {
            count++;
        }
        struct agent_down down = {.type = AGENT_DOWN_TELL,
            .tell = {.job = view.job,
                .one = true,
                .task = action->tell_task.task,
                .down = {.type = TASK_DOWN_WARM}}};
        down.tell.down.warm =
            (struct task_warm){.streams = streams, .stream_count = count, .tasks = view.roster};
        send_one(sim, action->tell_task.link, &down);
        return;
    }
    send_one(sim, action->tell_task.link,
        &(struct agent_down){.type = AGENT_DOWN_TELL,
            .tell = {.job = action->tell_task.task.job,
                .one = true,
                .task = action->tell_task.task,
                .down = {.type = action->tell_task.type,
                    .refused = {.code = action->tell_task.code, .text = action->tell_task.text}}}});
}

static void forget(struct sim *sim, struct job_id id, struct link_id only)
{
    const struct agent_down down = {.type = AGENT_DOWN_FORGET, .forget = id};
    struct core_worker_view worker;
    uint32_t cursor = 0;
    const struct job *job = job_by_id(sim, id);
    while (job != NULL && crew_is(&job->plan->crew) &&
           core_worker_next(sim->coordinator.core, &cursor, &worker)) {
        if (only.n == 0 || only.n == worker.link.n) {
            send_one(sim, worker.link, &down);
        }
    }
}

void speak(struct sim *sim, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        answer(sim, action);
        break;
    case CORE_ACTION_WELCOME:
        welcome(sim, &sim->links[action->welcome.link.n - 1]);
        send_one(sim, action->welcome.link,
            &(struct agent_down){.type = AGENT_DOWN_WELCOME,
                .welcome = {.worker = action->welcome.worker,
                    .lease_us = SCENARIO_LEASE_US,
                    .term = sim->coordinator.term}});
        break;
    case CORE_ACTION_REFUSE:
        link_refuse(
            sim, (uint32_t)(action->refuse.link.n - 1), action->refuse.code, action->refuse.text);
        break;
    case CORE_ACTION_START_JOB:
        start(sim, action->job, (struct link_id){0});
        break;
    case CORE_ACTION_START_AGAIN:
        start(sim, action->start_again.job, action->start_again.link);
        break;
    case CORE_ACTION_STOP_JOB:
        stop_job(sim, action->job);
        break;
    case CORE_ACTION_STOP_TASK:
        send_one(sim, action->stop_task.link,
            &(struct agent_down){.type = AGENT_DOWN_STOP,
                .stop = {.job = action->stop_task.task.job,
                    .one = true,
                    .task = action->stop_task.task,
                    .grace_us = SCENARIO_GRACE_US}});
        break;
    case CORE_ACTION_TELL_JOB:
        tell_job(sim, action);
        break;
    case CORE_ACTION_TELL_TASK:
        tell_task(sim, action);
        break;
    case CORE_ACTION_FORGET_JOB:
        forget(sim, action->forget_job.job, action->forget_job.link);
        break;
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
    case CORE_ACTION_RECORD:
        break;
    }
}
