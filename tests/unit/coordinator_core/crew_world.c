/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/crew_servers.h"

#include <string.h>

#include "tests/lib/test.h"

const struct core_job_spec crew_world_spec = {.tasks = TASKS,
    .tasks_min = TASKS,
    .max_restarts = LIMIT_RESTARTS,
    .crew = {.workers = 2, .servers = 2, .evaluators = 1, .backups = true}};

bool crew_world_view(const struct crew_world *world, struct core_job_view *ret_view)
{
    return core_job(world->core, job, ret_view);
}

struct life *crew_world_life(struct crew_world *world, struct task_ref ref)
{
    for (size_t i = 0; i < LIVES; i++) {
        if (world->lives[i].state != NOT_THERE && task_ref_equal(world->lives[i].ref, ref)) {
            return &world->lives[i];
        }
    }
    return NULL;
}

static struct life *life_add(struct crew_world *world, struct task_ref ref, uint32_t worker)
{
    size_t i = 0;
    while (i < LIVES && world->lives[i].state != NOT_THERE) {
        i++;
    }
    assert_true(i < LIVES);
    world->lives[i] = (struct life){.state = STARTED, .ref = ref, .worker = worker};
    return &world->lives[i];
}

void life_ends(struct life *life, int32_t code, int32_t signal)
{
    if (life->state == STARTED || life->state == HERE) {
        life->state = EXITED;
        life->exit = (struct task_exit){.code = code, .signal = signal};
    }
}

static uint32_t worker_of(const struct crew_world *world, struct link_id link)
{
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (link.n != 0 && world->links[w] == link.n) {
            return w;
        }
    }
    return WORKERS;
}

/* ---- what is heard ---- */

static void starts(struct crew_world *world, struct link_id only)
{
    struct core_job_view view;
    for (uint32_t slot = 0; crew_world_view(world, &view) && slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct task_ref ref = {job, slot, task.incarnation};
        uint32_t w = worker_of(world, task.link);
        bool meant = task.starts && (only.n == 0 || only.n == task.link.n);
        if (!meant || w == WORKERS || crew_world_life(world, ref) != NULL) {
            continue;
        }
        life_add(world, ref, w);
        crew_server_starts(world, ref, w, task.predecessor);
        assert_true(task.predecessor < task.incarnation);
        world->taken_over += task.predecessor != 0;
        struct life *before =
            crew_world_life(world, (struct task_ref){job, slot, task.predecessor});
        assert_true(before == NULL || before->worker == w); /* it may be forgotten already */
    }
}

/* How often a slot was started in a generation never goes back, also when the coordinator does. */
static void check_lives(
    struct crew_world *world, const struct task_member *member, uint64_t generation)
{
    struct task_member *last = &world->newest[member->slot];
    uint64_t *of = &world->newest_generation[member->slot];
    assert_true(generation >= *of);
    if (generation == *of && member->incarnation == last->incarnation) {
        assert_int_equal(member->lives, last->lives);
    } else if (generation == *of) {
        assert_true(member->incarnation > last->incarnation && member->lives > last->lives);
    }
    assert_true(!member->here || (member->incarnation > 0 && member->lives > 0));
    *last = *member;
    *of = generation;
}

static void hear_members(
    struct crew_world *world, struct life *life, const struct core_job_view *view)
{
    assert_true(view->formed && world->stored.generation.number == view->generation.number);
    bool first = life->generation.number == 0;
    assert_true(first || generation_equal(life->generation, view->generation));
    life->generation = view->generation;
    life->member_count = 0;
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct task_member member = {
            .slot = slot, .incarnation = task.incarnation, .lives = task.lives, .here = task.here};
        if (slot == life->ref.slot && task.incarnation == life->ref.incarnation) {
            crew_server_hears(world, task.incarnation, task.backed);
        }
        enum role role = crew_role(&crew_world_spec.crew, slot);
        check_lives(world, &member, view->generation.number);
        if (life->ref.slot == 0 || role == ROLE_CHIEF || role == ROLE_SERVER) {
            life->members[life->member_count++] = member;
        }
    }
    world->told++;
}

static void hear_tell(struct crew_world *world, const struct core_action *action)
{
    enum core_tell tell = action->tell_job.tell;
    struct core_job_view view;
    if (!crew_world_view(world, &view) ||
        !generation_equal(view.generation, action->tell_job.generation)) {
        return;
    }
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct life *life = crew_world_life(world, (struct task_ref){job, slot, task.incarnation});
        bool server = crew_role(&crew_world_spec.crew, slot) == ROLE_SERVER;
        bool meant = !action->tell_job.one || action->tell_job.slot == slot;
        if (life == NULL || life->state != HERE || task.link.n == 0 || !meant) {
            continue;
        }
        if (tell == CORE_TELL_PLAN && slot == 0) {
            life->planned = true;
        } else if (tell == CORE_TELL_MEMBERS && view.formed && task.here) {
            hear_members(world, life, &view);
        } else if (tell == CORE_TELL_BYE && (slot == 0 || action->tell_job.one)) {
            assert_true(world->stored.done);
            life_ends(life, 0, 0);
        } else if ((tell == CORE_TELL_BYE_CREW && slot > 0 && !server) ||
                   (tell == CORE_TELL_BYE_SERVERS && server)) {
            assert_true(world->stored.done);
            life_ends(life, 0, 0);
        }
    }
}

static void hear_stop(struct crew_world *world, const struct core_action *action)
{
    uint32_t w = worker_of(world, action->stop_task.link);
    struct life *life = crew_world_life(world, action->stop_task.task);
    if (w == WORKERS) {
        return;
    }
    if (life == NULL) {
        life = life_add(world, action->stop_task.task, w);
        life_ends(life, 126, 0);
    } else if (life->state == COLLECTED && world->greets == w + 1) {
        return; /* that it ended is on its way, behind the hello */
    } else if (life->state == COLLECTED) {
        *life = (struct life){.state = NOT_THERE};
    } else {
        life_ends(life, 0, 15);
    }
}

/* ---- the store ---- */

static void keep_task(struct crew_world *world, uint32_t slot)
{
    struct core_task_view task;
    struct core_worker_view worker;
    core_job_task(world->core, job, slot, &task);
    assert_true(core_worker_find(world->core, task.worker, &worker));
    world->tasks[slot] = (struct core_restore_task){.slot = slot,
        .incarnation = task.incarnation,
        .rank = UINT32_MAX,
        .lives = task.lives,
        .lives_in = task.lives_in};
    memcpy(world->tasks[slot].worker, worker.name, sizeof(worker.name));
}

static void keep(struct crew_world *world, const struct core_record *record)
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
            .lives = record->task.lives,
            .lives_in = record->task.lives_in,
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

static void hear(struct crew_world *world, const struct core_action *action)
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
    case CORE_ACTION_START_AGAIN:
        starts(world, action->start_again.link);
        break;
    case CORE_ACTION_STOP_JOB:
        for (size_t i = 0; i < LIVES; i++) {
            if (world->links[world->lives[i].worker] != 0) {
                life_ends(&world->lives[i], 0, 15);
            }
        }
        break;
    case CORE_ACTION_STOP_TASK:
        hear_stop(world, action);
        break;
    case CORE_ACTION_TELL_JOB:
        hear_tell(world, action);
        break;
    case CORE_ACTION_TELL_TASK: {
        struct life *life = crew_world_life(world, action->tell_task.task);
        assert_true(action->tell_task.type == TASK_DOWN_RESET ||
                    action->tell_task.type == TASK_DOWN_SUPERSEDED);
        if (life != NULL && worker_of(world, action->tell_task.link) == life->worker) {
            life_ends(life, 1, 0);
        }
        break;
    }
    default:
        break;
    }
}

void crew_world_step(struct crew_world *world, struct core_event event)
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
                hear(world, &world->actions.items[i]); /* durable before anything is spoken */
            }
        }
        for (size_t i = 0; i < world->actions.count; i++) {
            if (world->actions.items[i].type != CORE_ACTION_RECORD) {
                hear(world, &world->actions.items[i]);
            }
        }
        next = &tick;
    } while (core_wake_us(world->core) <= world->now_us);
}

void crew_world_up(struct crew_world *world, uint32_t w, const struct agent_up *message)
{
    if (world->links[w] != 0) {
        crew_world_step(world, (struct core_event){.type = CORE_EVENT_AGENT_UP,
                                   .agent = {.link = {world->links[w]}, .up = message}});
    }
}

void crew_world_said(
    struct crew_world *world, const struct life *life, const struct task_up *message)
{
    crew_world_up(world, life->worker,
        &(struct agent_up){.type = AGENT_UP_SAID, .said = {.task = life->ref, .up = *message}});
}

void crew_world_hello(struct crew_world *world, const struct life *life)
{
    struct task_up message = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .clean = true}};
    if (life->ref.slot == 0 && life->planned) {
        message.hello.generation = world->stored.generation;
        message.hello.released = world->stored.released;
    }
    crew_world_said(world, life, &message);
}

void crew_world_end(struct crew_world *world, const struct life *life, bool collected)
{
    struct life copy = *life; /* it may be forgotten meanwhile */
    crew_world_up(world, copy.worker,
        &(struct agent_up){
            .type = AGENT_UP_TASK_GONE, .gone = {.task = copy.ref, .exit = copy.exit}});
    if (collected) {
        crew_world_up(world, copy.worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = copy.ref, .text = ""}});
    }
}
