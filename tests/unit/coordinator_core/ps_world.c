/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/ps_servers.h"

#include <string.h>

#include "tests/lib/test.h"

const struct core_job_spec ps_world_spec = {.tasks = TASKS,
    .tasks_min = TASKS,
    .max_restarts = LIMIT_RESTARTS,
    .ps_job = {.workers = 2, .servers = 2, .evaluators = 1, .backups = true}};

bool ps_world_view(const struct ps_world *world, struct core_job_view *ret_view)
{
    return core_job(world->core, job, ret_view);
}

struct attempt *ps_world_attempt(struct ps_world *world, struct task_ref ref)
{
    for (size_t i = 0; i < ATTEMPTS; i++) {
        if (world->attempts[i].state != NOT_THERE && task_ref_equal(world->attempts[i].ref, ref)) {
            return &world->attempts[i];
        }
    }
    return NULL;
}

static struct attempt *attempt_add(struct ps_world *world, struct task_ref ref, uint32_t worker)
{
    size_t i = 0;
    while (i < ATTEMPTS && world->attempts[i].state != NOT_THERE) {
        i++;
    }
    assert_true(i < ATTEMPTS);
    world->attempts[i] = (struct attempt){.state = STARTED, .ref = ref, .worker = worker};
    return &world->attempts[i];
}

void attempt_end(struct attempt *attempt, int32_t code, int32_t signal)
{
    if (attempt->state == STARTED || attempt->state == HERE) {
        attempt->state = EXITED;
        attempt->exit = (struct task_exit){.code = code, .signal = signal};
    }
}

static uint32_t worker_of(const struct ps_world *world, struct link_id link)
{
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (link.n != 0 && world->links[w] == link.n) {
            return w;
        }
    }
    return WORKERS;
}

/* ---- what is received ---- */

static void starts(struct ps_world *world, struct link_id only)
{
    struct core_job_view view;
    for (uint32_t slot = 0; ps_world_view(world, &view) && slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct task_ref ref = {job, slot, task.incarnation};
        uint32_t w = worker_of(world, task.link);
        bool meant = task.starts && (only.n == 0 || only.n == task.link.n);
        if (!meant || w == WORKERS || ps_world_attempt(world, ref) != NULL) {
            continue;
        }
        attempt_add(world, ref, w);
        ps_server_start(world, ref, w, task.predecessor);
        assert_true(task.predecessor < task.incarnation);
        world->taken_over += task.predecessor != 0;
        struct attempt *before =
            ps_world_attempt(world, (struct task_ref){job, slot, task.predecessor});
        assert_true(before == NULL || before->worker == w); /* it may be forgotten already */
    }
}

/* How often a slot was started in a generation never goes back, also when the coordinator does. */
static void check_attempts(
    struct ps_world *world, const struct task_member *member, uint64_t generation)
{
    struct task_member *last = &world->newest[member->slot];
    uint64_t *of = &world->newest_generation[member->slot];
    assert_true(generation >= *of);
    if (generation == *of && member->incarnation == last->incarnation) {
        assert_int_equal(member->attempts, last->attempts);
    } else if (generation == *of) {
        assert_true(member->incarnation > last->incarnation && member->attempts > last->attempts);
    }
    assert_true(!member->here || (member->incarnation > 0 && member->attempts > 0));
    *last = *member;
    *of = generation;
}

static void on_members(
    struct ps_world *world, struct attempt *attempt, const struct core_job_view *view)
{
    assert_true(view->formed && world->stored.generation.number == view->generation.number);
    bool first = attempt->generation.number == 0;
    assert_true(first || generation_equal(attempt->generation, view->generation));
    attempt->generation = view->generation;
    attempt->member_count = 0;
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct task_member member = {.slot = slot,
            .incarnation = task.incarnation,
            .attempts = task.attempts,
            .here = task.here};
        if (slot == attempt->ref.slot && task.incarnation == attempt->ref.incarnation) {
            ps_server_receive(world, task.incarnation, task.backed);
        }
        enum role role = ps_job_role(&ps_world_spec.ps_job, slot);
        check_attempts(world, &member, view->generation.number);
        if (attempt->ref.slot == 0 || role == ROLE_CHIEF || role == ROLE_SERVER) {
            attempt->members[attempt->member_count++] = member;
        }
    }
    world->notified++;
}

static void on_relay_down(struct ps_world *world, const struct core_action *action)
{
    enum core_message message = action->notify_job.message;
    struct core_job_view view;
    if (!ps_world_view(world, &view) ||
        !generation_equal(view.generation, action->notify_job.generation)) {
        return;
    }
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct attempt *attempt =
            ps_world_attempt(world, (struct task_ref){job, slot, task.incarnation});
        bool server = ps_job_role(&ps_world_spec.ps_job, slot) == ROLE_SERVER;
        bool meant = !action->notify_job.one || action->notify_job.slot == slot;
        if (attempt == NULL || attempt->state != HERE || task.link.n == 0 || !meant) {
            continue;
        }
        if (message == CORE_MESSAGE_PLAN && slot == 0) {
            attempt->planned = true;
        } else if (message == CORE_MESSAGE_MEMBERS && view.formed && task.here) {
            on_members(world, attempt, &view);
        } else if (message == CORE_MESSAGE_GOODBYE && (slot == 0 || action->notify_job.one)) {
            assert_true(world->stored.done);
            attempt_end(attempt, 0, 0);
        } else if ((message == CORE_MESSAGE_GOODBYE_WORKERS && slot > 0 && !server) ||
                   (message == CORE_MESSAGE_GOODBYE_SERVERS && server)) {
            assert_true(world->stored.done);
            attempt_end(attempt, 0, 0);
        }
    }
}

static void on_task_stop(struct ps_world *world, const struct core_action *action)
{
    uint32_t w = worker_of(world, action->stop_task.link);
    struct attempt *attempt = ps_world_attempt(world, action->stop_task.task);
    if (w == WORKERS) {
        return;
    }
    if (attempt == NULL) {
        attempt = attempt_add(world, action->stop_task.task, w);
        attempt_end(attempt, 126, 0);
    } else if (attempt->state == COLLECTED && world->greets == w + 1) {
        return; /* that it ended is on its way, behind the hello */
    } else if (attempt->state == COLLECTED) {
        *attempt = (struct attempt){.state = NOT_THERE};
    } else {
        attempt_end(attempt, 0, 15);
    }
}

/* ---- the store ---- */

static void keep_task(struct ps_world *world, uint32_t slot)
{
    struct core_task_view task;
    struct core_worker_view worker;
    core_job_task(world->core, job, slot, &task);
    assert_true(core_worker_find(world->core, task.worker, &worker));
    world->tasks[slot] = (struct core_restore_task){.slot = slot,
        .incarnation = task.incarnation,
        .rank = UINT32_MAX,
        .attempts = task.attempts,
        .attempts_generation = task.attempts_generation};
    memcpy(world->tasks[slot].worker, worker.name, sizeof(worker.name));
}

static void keep(struct ps_world *world, const struct core_record *record)
{
    struct core_restore_job *stored = &world->stored;
    struct core_restore_task *task;
    switch (record->type) {
    case CORE_RECORD_STARTED:
        stored->started = true;
        stored->incarnation_max = record->incarnation_max;
        for (uint32_t slot = 0; slot < TASKS; slot++) {
            keep_task(world, slot);
        }
        break;
    case CORE_RECORD_QUEUED:
        stored->started = stored->done = stored->has_control = false;
        memset(world->tasks, 0, sizeof(world->tasks));
        break;
    case CORE_RECORD_TASK:
        task = &world->tasks[record->task.slot];
        *task = (struct core_restore_task){.slot = record->task.slot,
            .incarnation = record->task.incarnation,
            .rank = UINT32_MAX,
            .attempts = record->task.attempts,
            .attempts_generation = record->task.attempts_generation,
            .backed = {.by = record->task.backed_by}};
        memcpy(task->worker, record->task.worker, sizeof(task->worker));
        stored->incarnation_max = record->task.incarnation > stored->incarnation_max
                                      ? record->task.incarnation
                                      : stored->incarnation_max;
        break;
    case CORE_RECORD_BACKED:
        task = &world->tasks[record->backed.slot];
        assert_int_equal(task->incarnation, record->backed.incarnation);
        task->backed = record->backed.backed;
        break;
    case CORE_RECORD_PLAN:
        assert_int_equal(record->plan.generation.number, stored->generation.number + 1);
        stored->generation = record->plan.generation;
        stored->resume = stored->released = record->plan.resume;
        stored->restarts = record->plan.restarts;
        stored->has_control = false;
        stored->roster = 1;
        world->tasks[0].rank = 0;
        break;
    case CORE_RECORD_CONTROL:
        stored->has_control = record->control.halt_kind != HALT_NONE;
        stored->halt_at = record->control.halt_at;
        stored->halt_kind = record->control.halt_kind;
        stored->halt_stream = record->control.halt_stream;
        break;
    case CORE_RECORD_WATERMARK:
        stored->released = record->watermark.up_to;
        break;
    case CORE_RECORD_CHECKPOINT:
        stored->has_checkpoint = true;
        stored->checkpoint = record->checkpoint;
        break;
    case CORE_RECORD_DONE:
        stored->done = true;
        stored->done_position = record->done.position;
        break;
    case CORE_RECORD_TASK_EXIT:
        task = &world->tasks[record->task_exit.slot];
        if (task->incarnation == record->task_exit.incarnation) {
            task->gone = true;
            task->lost = record->task_exit.state == TASK_LOST;
        }
        break;
    case CORE_RECORD_ENDING:
        stored->ending = true;
        stored->ending_as = record->ended;
        break;
    case CORE_RECORD_ENDED:
        world->ended = true;
        world->end = record->ended.state;
        break;
    default:
        break;
    }
}

/* ---- steps ---- */

static void receive(struct ps_world *world, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_RECORD:
        keep(world, &action->record);
        break;
    case CORE_ACTION_REFUSE:
        if (worker_of(world, action->refuse.link) < WORKERS) {
            world->links[worker_of(world, action->refuse.link)] = 0;
        }
        break;
    case CORE_ACTION_START_JOB:
        starts(world, (struct link_id){0});
        break;
    case CORE_ACTION_START_TASKS:
        starts(world, action->start_tasks.link);
        break;
    case CORE_ACTION_STOP_JOB:
        for (size_t i = 0; i < ATTEMPTS; i++) {
            if (world->links[world->attempts[i].worker] != 0) {
                attempt_end(&world->attempts[i], 0, 15);
            }
        }
        break;
    case CORE_ACTION_STOP_TASK:
        on_task_stop(world, action);
        break;
    case CORE_ACTION_NOTIFY_JOB:
        on_relay_down(world, action);
        break;
    case CORE_ACTION_NOTIFY_TASK: {
        struct attempt *attempt = ps_world_attempt(world, action->notify_task.task);
        assert_true(action->notify_task.type == TASK_DOWN_RESET ||
                    action->notify_task.type == TASK_DOWN_SUPERSEDED);
        if (attempt != NULL && worker_of(world, action->notify_task.link) == attempt->worker) {
            attempt_end(attempt, 1, 0);
        }
        break;
    }
    default:
        break;
    }
}

void ps_world_step(struct ps_world *world, struct core_event event)
{
    const struct core_event tick = {.type = CORE_EVENT_TICK};
    const struct core_event *next = &event;
    do {
        struct core_event timed = *next;
        timed.now_us = world->now_us;
        world->actions.count = 0;
        core_step(world->core, &timed, &world->actions);
        const char *broken = core_invariant(world->core, true);
        if (broken != NULL) {
            fail_msg("invariant: %s", broken);
        }
        for (size_t i = 0; i < world->actions.count; i++) {
            if (world->actions.items[i].type == CORE_ACTION_RECORD) {
                receive(world, &world->actions.items[i]); /* durable before anything is sent */
            }
        }
        for (size_t i = 0; i < world->actions.count; i++) {
            if (world->actions.items[i].type != CORE_ACTION_RECORD) {
                receive(world, &world->actions.items[i]);
            }
        }
        next = &tick;
    } while (core_wake_us(world->core) <= world->now_us);
}

void ps_world_up(struct ps_world *world, uint32_t w, const struct agent_up *message)
{
    if (world->links[w] != 0) {
        ps_world_step(world, (struct core_event){.type = CORE_EVENT_AGENT_UP,
                                 .agent = {.link = {world->links[w]}, .up = message}});
    }
}

void ps_world_relay(
    struct ps_world *world, const struct attempt *attempt, const struct task_up *message)
{
    ps_world_up(world, attempt->worker,
        &(struct agent_up){
            .type = AGENT_UP_RELAY, .relay_up = {.task = attempt->ref, .up = *message}});
}

void ps_world_hello(struct ps_world *world, const struct attempt *attempt)
{
    struct task_up message = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .clean = true}};
    if (attempt->ref.slot == 0 && attempt->planned) {
        message.hello.generation = world->stored.generation;
        message.hello.released = world->stored.released;
    }
    ps_world_relay(world, attempt, &message);
}

void ps_world_end(struct ps_world *world, const struct attempt *attempt, bool collected)
{
    struct attempt copy = *attempt; /* it may be forgotten meanwhile */
    ps_world_up(world, copy.worker,
        &(struct agent_up){
            .type = AGENT_UP_TASK_GONE, .gone = {.task = copy.ref, .exit = copy.exit}});
    if (collected) {
        ps_world_up(world, copy.worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = copy.ref, .text = ""}});
    }
}
