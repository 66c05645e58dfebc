/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/world.h"

#include <stdio.h>

void world_up(struct world *world, uint32_t worker, const struct agent_up *message)
{
    world_step(world, (struct core_event){.type = CORE_EVENT_AGENT_UP,
                          .agent = {.link = {world->links[worker]}, .up = message}});
}

static void relay_up(
    struct world *world, const struct process *process, const struct task_up *message)
{
    world_up(world, process->worker,
        &(struct agent_up){
            .type = AGENT_UP_RELAY, .relay_up = {.task = process->ref, .up = *message}});
}

void process_send_hello(struct world *world, const struct process *process)
{
    relay_up(world, process,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .pid = 9,
                .replicas = 1,
                .mesh_address = "x",
                .generation = process->generation,
                .position = process->position,
                .clean = true,
                .released = process->released,
                .frozen = process->attempt == FROZEN,
                .reason = process->reason}});
}

void process_send_report(struct world *world, const struct process *process)
{
    relay_up(world, process,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = process->generation,
                .position = process->position,
                .clean = true,
                .reason = process->reason,
                .begun = process->position < STEPS,
                .stream = 1,
                .text = ""}});
}

static void freeze(struct world *world, struct process *process, enum report_reason reason)
{
    process->attempt = FROZEN;
    process->reason = reason;
    process_send_report(world, process);
}

void process_send_join(struct world *world, const struct process *process)
{
    relay_up(world, process, &(struct task_up){.type = TASK_UP_JOIN, .join = {.stream = 1}});
}

void process_exits(struct process *process, int32_t code, int32_t signal)
{
    if (process->attempt != NOT_THERE && process->attempt < EXITS) {
        process->attempt = EXITS;
        process->exit = (struct task_exit){.code = code, .signal = signal};
    }
}

/* Whether all of its generation take, or took, the step that it is at. */
static bool peers_are_there(const struct world *world, const struct process *process)
{
    struct core_job_view view;
    uint32_t there = 0;
    assert_true(core_job(world->core, process->ref.job, &view));
    for (size_t i = 0; i < 64; i++) {
        const struct process *peer = &world->processes[i];
        bool same = generation_equal(peer->generation, process->generation);
        bool takes = peer->attempt == RUNS && peer->position >= process->position;
        bool took = peer->attempt == FROZEN && peer->position > process->position;
        there += same && (takes || took);
    }
    return there >= view.roster;
}

static void arrive(struct world *world, struct process *process)
{
    uint64_t up_to = process->position + 2 < STEPS ? process->position + 2 : STEPS;
    if (process->notified == up_to && process->sent_applied_count == process->position) {
        return;
    }
    process->notified = up_to;
    process->sent_applied_count = process->position;
    world_up(world, process->worker,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = process->ref.job,
                .generation = process->generation,
                .tasks = 1,
                .up_to = up_to,
                .applied = process->position,
                .cursor = {.stream = 1, .steps = STEPS},
                .consumption = {.steps = process->position, .samples = process->position}}});
}

static void run(struct world *world, struct process *process)
{
    struct core_job_view view;
    arrive(world, process);
    if (process->attempt != RUNS || !core_job(world->core, process->ref.job, &view) ||
        !generation_equal(view.generation, process->generation)) {
        return;
    }
    bool chief = core_job_member(world->core, view.job, 0) == process->ref.slot;
    if (chief && process->position % 7 == 3) {
        relay_up(world, process,
            &(struct task_up){.type = TASK_UP_PART,
                .part = {.generation = process->generation,
                    .position = process->position,
                    .path = "c.json"}});
    }
    if (process->attempt != RUNS) {
        return;
    }
    if (process->position == STEPS) {
        freeze(world, process, REPORT_FINISHED);
    } else if (process->position == view.halt_at) {
        freeze(world, process, REPORT_HALT);
    } else if (process->position < process->released && peers_are_there(world, process)) {
        process->position++;
    }
}

/* One thing that the task, or its daemon for it, does next. */
void process_act(struct world *world, struct process *process)
{
    switch (process->attempt) {
    case STARTED:
        world_up(world, process->worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_STARTED, .started = {.task = process->ref, .pid = 9}});
        process->attempt = SENT_HELLO;
        process_send_hello(world, process);
        break;
    case WARM:
        process->attempt = JOINS;
        process_send_join(world, process);
        break;
    case RUNS:
        run(world, process);
        break;
    case FREEZES:
        freeze(world, process, REPORT_ABORT);
        break;
    case EXITS:
        process->attempt = EXITED;
        world_up(world, process->worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_GONE, .gone = {.task = process->ref, .exit = process->exit}});
        break;
    case EXITED:
    case COLLECTED:
        process->attempt = COLLECTED;
        world_up(world, process->worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = process->ref, .text = ""}});
        break;
    case NOT_THERE:
    case SENT_HELLO:
    case JOINS:
    case FROZEN:
        break;
    }
}

/* ---- what the coordinator sends ---- */

static void on_task_start(struct world *world, struct job_id job, uint64_t link)
{
    struct core_job_view view;
    assert_true(core_job(world->core, job, &view));
    for (uint32_t slot = 0; slot < view.tasks; slot++) {
        struct core_task_view task;
        struct process *place = NULL;
        core_job_task(world->core, job, slot, &task);
        struct task_ref ref = {.job = job, .slot = slot, .incarnation = task.incarnation};
        bool known = false;
        for (size_t i = 0; i < 64; i++) {
            struct process *process = &world->processes[i];
            known |= process->attempt != NOT_THERE && task_ref_equal(process->ref, ref);
            place = place == NULL && process->attempt == NOT_THERE ? process : place;
        }
        if (known || !task.starts || (link != 0 && task.link.n != link)) {
            continue;
        }
        assert_non_null(place);
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (world->links[w] == task.link.n && task.link.n != 0) {
                *place = (struct process){.attempt = STARTED, .ref = ref, .worker = w};
            }
        }
    }
}

static void on_plan(struct world *world, struct process *process)
{
    struct core_job_view view;
    struct core_task_view task;
    assert_true(core_job(world->core, process->ref.job, &view));
    core_job_task(world->core, view.job, process->ref.slot, &task);
    if (task.incarnation != process->ref.incarnation || task.rank == UINT32_MAX ||
        generation_equal(process->generation, view.generation)) {
        return;
    }
    if (view.source != SOURCE_NONE && process->generation.number > 0) {
        assert_true(process->attempt == FROZEN); /* no member takes a step before it */
        assert_true(process->position <= view.resume);
    }
    process->generation = view.generation;
    process->position = view.resume;
    process->released = view.resume;
    process->notified = POSITION_NONE;
    process->attempt = RUNS;
    world->generations++;
}

static void on_relay_down(struct world *world, struct process *process, enum core_message message,
    struct generation generation)
{
    bool mine = generation_equal(generation, process->generation);
    struct core_job_view view;
    if (!core_job(world->core, process->ref.job, &view)) {
        return;
    }
    switch (message) {
    case CORE_MESSAGE_PLAN:
        on_plan(world, process);
        break;
    case CORE_MESSAGE_ABORT:
        if (mine && process->attempt == RUNS) {
            process->attempt = FREEZES;
        }
        break;
    case CORE_MESSAGE_GOODBYE:
        if (mine) {
            assert_int_equal(process->position, STEPS);
            process_exits(process, 0, 0);
        }
        break;
    case CORE_MESSAGE_RELEASE:
        if (mine && view.released > process->released) {
            process->released = view.released;
        }
        break;
    case CORE_MESSAGE_MEMBERS:
    case CORE_MESSAGE_GOODBYE_WORKERS:
    case CORE_MESSAGE_GOODBYE_SERVERS:
        fail_msg("a job of equal tasks gets messages of a ps job");
    }
}

static void receive_one(struct process *process, const struct core_action *action)
{
    if (action->type == CORE_ACTION_STOP_TASK) {
        if (process->attempt == COLLECTED) {
            process->attempt = NOT_THERE;
        } else {
            process_exits(process, 0, 15);
        }
    } else if (action->notify_task.type == TASK_DOWN_WARM) {
        process->attempt = process->attempt == SENT_HELLO ? WARM : process->attempt;
    } else {
        process_exits(process, 1, 0);
    }
}

static void keep_placement(
    struct world *world, uint32_t slot, uint64_t incarnation, const char *name)
{
    struct core_restore_task *task = &world->stored.tasks[slot];
    *task =
        (struct core_restore_task){.slot = slot, .incarnation = incarnation, .rank = UINT32_MAX};
    (void)snprintf(task->worker, sizeof(task->worker), "%s", name);
    if (incarnation > world->stored.job.incarnation_max) {
        world->stored.job.incarnation_max = incarnation;
    }
}

static void keep_started(struct world *world, struct job_id job)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct core_task_view task;
        struct core_worker_view worker;
        core_job_task(world->core, job, slot, &task);
        uint32_t cursor = 0;
        while (core_worker_next(world->core, &cursor, &worker)) {
            if (worker.worker.n == task.worker.n) {
                keep_placement(world, slot, task.incarnation, worker.name);
            }
        }
    }
    world->stored.job.started = true;
}

static void keep_plan(struct world *world, const struct core_record *record)
{
    struct core_restore_job *job = &world->stored.job;
    struct core_job_view view;
    assert_true(core_job(world->core, record->job, &view));
    job->generation = record->plan.generation;
    job->resume = record->plan.resume;
    job->released = record->plan.resume;
    job->restarts = record->plan.restarts;
    job->roster = view.roster;
    job->has_control = false;
    world->stored.synced = job->released;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        world->stored.tasks[slot].rank = UINT32_MAX;
    }
    for (uint32_t rank = 0; rank < view.roster; rank++) {
        world->stored.tasks[core_job_member(world->core, view.job, rank)].rank = rank;
    }
}

void world_keep(struct world *world, const struct core_record *record)
{
    struct core_restore_job *job = &world->stored.job;
    switch (record->type) {
    case CORE_RECORD_JOB:
        job->job = record->job;
        job->spec = record->submitted.spec;
        break;
    case CORE_RECORD_STARTED:
        keep_started(world, record->job);
        break;
    case CORE_RECORD_QUEUED:
        job->started = false;
        job->done = false;
        job->has_control = false;
        job->roster = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            world->stored.tasks[slot] = (struct core_restore_task){.rank = UINT32_MAX};
        }
        break;
    case CORE_RECORD_TASK:
        keep_placement(world, record->task.slot, record->task.incarnation, record->task.worker);
        break;
    case CORE_RECORD_PUBLISHED:
        job->published = record->published;
        break;
    case CORE_RECORD_BACKED:
        break; /* no ps job */
    case CORE_RECORD_PLAN:
        keep_plan(world, record);
        break;
    case CORE_RECORD_WATERMARK:
        job->released = record->watermark.up_to;
        break;
    case CORE_RECORD_CONTROL:
        job->has_control = record->control.halt_kind != HALT_NONE;
        job->halt_at = record->control.halt_at;
        job->halt_kind = record->control.halt_kind;
        job->halt_stream = record->control.halt_stream;
        break;
    case CORE_RECORD_CHECKPOINT:
        job->has_checkpoint = true;
        job->checkpoint = record->checkpoint;
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
    case CORE_RECORD_ORIGIN:
        fail_msg("no checkpoint is damaged here");
        break;
    case CORE_RECORD_DONE:
        job->done = true;
        job->done_position = record->done.position;
        break;
    case CORE_RECORD_TASK_EXIT: {
        struct core_restore_task *task = &world->stored.tasks[record->task_exit.slot];
        if (task->incarnation == record->task_exit.incarnation) {
            task->gone = true;
            task->lost = record->task_exit.state == TASK_LOST;
        }
        break;
    }
    case CORE_RECORD_ENDING:
        job->ending = true;
        job->ending_as = record->ended;
        break;
    case CORE_RECORD_VERIFIED:
        job->verified = record->verified;
        break;
    case CORE_RECORD_CONSUMED:
    case CORE_RECORD_STREAM:
    case CORE_RECORD_END_OF_DATA:
    case CORE_RECORD_ENDED:
    case CORE_RECORD_DIVERGED:
    case CORE_RECORD_CULPRIT:
    case CORE_RECORD_DRAINED:
    case CORE_RECORD_UNDRAINED:
    case CORE_RECORD_CHECKPOINT_DROPPED: /* the engine's */
    case CORE_RECORD_FORGOTTEN:
    case CORE_RECORD_TERM:
        break;
    }
    if (record->sync) {
        world->stored.synced = job->released;
    }
}

void world_receive(struct world *world, const struct core_action *action)
{
    for (size_t i = 0; i < 64; i++) {
        struct process *process = &world->processes[i];
        uint64_t link = world->links[process->worker];
        if (process->attempt == NOT_THERE) {
            continue;
        }
        if (action->type == CORE_ACTION_STOP_JOB && process->ref.job.n == action->job.n) {
            process_exits(process, 0, 15);
        } else if (action->type == CORE_ACTION_STOP_TASK &&
                   task_ref_equal(process->ref, action->stop_task.task) &&
                   link == action->stop_task.link.n) {
            receive_one(process, action);
        } else if (action->type == CORE_ACTION_NOTIFY_TASK &&
                   task_ref_equal(process->ref, action->notify_task.task) &&
                   link == action->notify_task.link.n) {
            receive_one(process, action);
        } else if (action->type == CORE_ACTION_NOTIFY_JOB && process->attempt < EXITS &&
                   link != 0 &&
                   (!action->notify_job.one || action->notify_job.slot == process->ref.slot)) {
            on_relay_down(
                world, process, action->notify_job.message, action->notify_job.generation);
        }
    }
    if (action->type == CORE_ACTION_START_JOB) {
        on_task_start(world, action->job, 0);
    } else if (action->type == CORE_ACTION_START_TASKS) {
        on_task_start(world, action->start_tasks.job, action->start_tasks.link.n);
    } else if (action->type == CORE_ACTION_JOB_ENDED) {
        world->ended = true;
    }
}

static void world_step_once(struct world *world, struct core_event event)
{
    struct core_action items[CORE_ACTIONS_PER_STEP_MAX];
    struct core_actions actions = {.items = items, .capacity = CORE_ACTIONS_PER_STEP_MAX};
    event.now_us = world->now_us;
    watch_event(world->watch, world->core, &event);
    core_step(world->core, &event, &actions);
    watch_actions(world->watch, world->core, &event, &actions);
    const char *broken = core_invariant(world->core, true);
    if (broken != NULL) {
        fail_msg("invariant: %s", broken);
    }
    for (size_t i = 0; i < actions.count; i++) {
        if (actions.items[i].type == CORE_ACTION_RECORD) {
            world_keep(world, &actions.items[i].record);
        }
    }
    for (size_t i = 0; i < actions.count; i++) {
        world_receive(world, &actions.items[i]);
    }
}

void world_step(struct world *world, struct core_event event)
{
    world_step_once(world, event);
    while (core_wake_us(world->core) <= world->now_us) {
        world_step_once(world, (struct core_event){.type = CORE_EVENT_TICK});
    }
}
