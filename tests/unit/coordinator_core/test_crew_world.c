/* SPDX-License-Identifier: Apache-2.0
 * A crew on a small cluster whose daemons and tasks keep to the protocol, under everything that may
 * befall them: tasks are killed, links break, daemons are started anew and drained, the coordinator
 * is started again. What one says is heard at once; who acts next is drawn. Whatever happened,
 * members are told as the rules say, and a healed cluster trains to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "coordinator/core/core.h"
#include "tests/lib/test.h"

#define SECOND   UINT64_C(1000000)
#define WORKERS  4
#define TASKS    6
#define LIVES    64
#define RUNS     150
#define EVENTS   600
#define PATIENCE 4000 /* rounds of a healed cluster */

static const struct core_job_spec spec = {.tasks = TASKS,
    .tasks_min = TASKS,
    .max_restarts = LIMIT_RESTARTS,
    .crew = {.workers = 2, .servers = 2, .evaluators = 1}};

enum life_state { NOT_THERE = 0, STARTED, HERE, EXITED, TOLD, COLLECTED };

/* One life of a task, as its daemon knows it. */
struct life {
    enum life_state state;
    struct task_ref ref;
    uint32_t worker;
    struct task_exit exit;
    struct generation generation; /* the only one that it ever heard of */
    bool planned;                 /* the chief */
    struct task_member members[TASKS];
    size_t member_count;
};

struct world {
    void *memory;
    struct core *core;
    struct core_actions actions;
    struct prng prng;
    uint64_t now_us;
    uint64_t link_last;
    uint64_t links[WORKERS]; /* 0: down */
    uint64_t boots[WORKERS];
    struct life lives[LIVES];
    struct core_restore_job stored;
    struct core_restore_task tasks[TASKS];
    struct task_member newest[TASKS]; /* of each slot, as it was last told to anybody */
    uint64_t newest_generation[TASKS];
    uint32_t greets; /* 1 and a worker whose hello is being answered */
    uint64_t seed;
    bool ended;
    enum job_state end;
    unsigned restarts; /* of the coordinator */
    unsigned told;
    unsigned taken_over; /* lives of servers that found their memory */
};

static const struct job_id job = {1};

static bool view_of(const struct world *world, struct core_job_view *ret_view)
{
    return core_job(world->core, job, ret_view);
}

static struct life *life_of(struct world *world, struct task_ref ref)
{
    for (size_t i = 0; i < LIVES; i++) {
        if (world->lives[i].state != NOT_THERE && task_ref_equal(world->lives[i].ref, ref)) {
            return &world->lives[i];
        }
    }
    return NULL;
}

static struct life *life_add(struct world *world, struct task_ref ref, uint32_t worker)
{
    size_t i = 0;
    while (i < LIVES && world->lives[i].state != NOT_THERE) {
        i++;
    }
    assert_true(i < LIVES);
    world->lives[i] = (struct life){.state = STARTED, .ref = ref, .worker = worker};
    return &world->lives[i];
}

static void life_ends(struct life *life, int32_t code, int32_t signal)
{
    if (life->state == STARTED || life->state == HERE) {
        life->state = EXITED;
        life->exit = (struct task_exit){.code = code, .signal = signal};
    }
}

static uint32_t worker_of(const struct world *world, struct link_id link)
{
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (link.n != 0 && world->links[w] == link.n) {
            return w;
        }
    }
    return WORKERS;
}

/* ---- what is heard ---- */

static void starts(struct world *world, struct link_id only)
{
    struct core_job_view view;
    for (uint32_t slot = 0; view_of(world, &view) && slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct task_ref ref = {job, slot, task.incarnation};
        uint32_t w = worker_of(world, task.link);
        bool meant = task.state == TASK_STARTING && (only.n == 0 || only.n == task.link.n);
        if (!meant || w == WORKERS || life_of(world, ref) != NULL) {
            continue;
        }
        life_add(world, ref, w);
        assert_true(task.predecessor < task.incarnation);
        world->taken_over += task.predecessor != 0;
        struct life *before = life_of(world, (struct task_ref){job, slot, task.predecessor});
        assert_true(before == NULL || before->worker == w); /* it may be forgotten already */
    }
}

/* How often a slot was started in a generation never goes back, also when the coordinator does. */
static void check_lives(struct world *world, const struct task_member *member, uint64_t generation)
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

static void hear_members(struct world *world, struct life *life, const struct core_job_view *view)
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
        enum role role = crew_role(&spec.crew, slot);
        check_lives(world, &member, view->generation.number);
        if (life->ref.slot == 0 || role == ROLE_CHIEF || role == ROLE_SERVER) {
            life->members[life->member_count++] = member;
        }
    }
    world->told++;
}

static void hear_tell(struct world *world, const struct core_action *action)
{
    enum core_tell tell = action->tell_job.tell;
    struct core_job_view view;
    if (!view_of(world, &view) || !generation_equal(view.generation, action->tell_job.generation)) {
        return;
    }
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        struct life *life = life_of(world, (struct task_ref){job, slot, task.incarnation});
        bool server = crew_role(&spec.crew, slot) == ROLE_SERVER;
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

static void hear_stop(struct world *world, const struct core_action *action)
{
    uint32_t w = worker_of(world, action->stop_task.link);
    struct life *life = life_of(world, action->stop_task.task);
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

static void keep_task(struct world *world, uint32_t slot)
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

static void keep(struct world *world, const struct core_record *record)
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
            .lives_in = record->task.lives_in};
        memcpy(task->worker, record->task.worker, sizeof(task->worker));
        stored->incarnation_max = record->task.incarnation > stored->incarnation_max
                                      ? record->task.incarnation
                                      : stored->incarnation_max;
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

static void hear(struct world *world, const struct core_action *action)
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
        struct life *life = life_of(world, action->tell_task.task);
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

static void step(struct world *world, struct core_event event)
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

static void up(struct world *world, uint32_t w, const struct agent_up *message)
{
    if (world->links[w] != 0) {
        step(world, (struct core_event){.type = CORE_EVENT_AGENT_UP,
                        .agent = {.link = {world->links[w]}, .up = message}});
    }
}

static void said(struct world *world, const struct life *life, const struct task_up *message)
{
    up(world, life->worker,
        &(struct agent_up){.type = AGENT_UP_SAID, .said = {.task = life->ref, .up = *message}});
}

static void say_hello(struct world *world, const struct life *life)
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
    said(world, life, &message);
}

static void say_end(struct world *world, const struct life *life, bool collected)
{
    struct life copy = *life; /* it may be forgotten meanwhile */
    up(world, copy.worker,
        &(struct agent_up){
            .type = AGENT_UP_TASK_GONE, .gone = {.task = copy.ref, .exit = copy.exit}});
    if (collected) {
        up(world, copy.worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = copy.ref, .text = ""}});
    }
}

/* ---- what is done ---- */

static void connect(struct world *world, uint32_t w)
{
    static const char *const names[WORKERS] = {"a", "b", "c", "d"};
    struct task_ref held[LIVES];
    size_t count = 0;
    world->links[w] = ++world->link_last;
    for (size_t i = 0; i < LIVES; i++) {
        if (world->lives[i].state != NOT_THERE && world->lives[i].worker == w) {
            held[count++] = world->lives[i].ref;
        }
    }
    world->greets = w + 1;
    up(world, w,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .name = names[w],
                .boot_nonce = world->boots[w],
                .slots = 2,
                .tasks = held,
                .task_count = count}});
    world->greets = 0;
    for (size_t i = 0; i < LIVES; i++) {
        struct life *life = &world->lives[i];
        if (life->worker != w) {
            continue;
        }
        if (life->state == HERE) {
            say_hello(world, life);
        } else if (life->state == TOLD || life->state == COLLECTED) {
            say_end(world, life, life->state == COLLECTED);
        }
    }
}

static void disconnect(struct world *world, uint32_t w)
{
    uint64_t link = world->links[w];
    world->links[w] = 0;
    if (link != 0) {
        step(world, (struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {link}});
    }
}

static void reboot(struct world *world, uint32_t w)
{
    world->boots[w] += 10;
    for (size_t i = 0; i < LIVES; i++) {
        if (world->lives[i].worker == w) {
            world->lives[i].state = NOT_THERE;
        }
    }
    disconnect(world, w);
    connect(world, w);
}

static const struct core_options options = {
    .limits = {.workers_max = 8, .jobs_max = 2, .tasks_max = 12},
    .seed = 5,
    .lease_us = 10 * SECOND,
    .grace_us = 5 * SECOND,
    .collect_us = 20 * SECOND,
    .form_us = 30 * SECOND,
    .report_us = 2 * SECOND,
    .wait_us = 100000 * SECOND,
    .stall_us = 600 * SECOND,
    .slow_factor = 10,
    .slow_us = 5 * SECOND};

static void restart_coordinator(struct world *world)
{
    struct core_options again = options;
    again.seed += ++world->restarts;
    memset(world->links, 0, sizeof(world->links));
    world->core = core_init(world->memory, &again);
    size_t count = 0;
    struct core_restore_task tasks[TASKS];
    for (uint32_t slot = 0; slot < TASKS && world->stored.started; slot++) {
        tasks[count++] = world->tasks[slot];
    }
    world->stored.tasks = tasks;
    world->stored.task_count = count;
    step(world, (struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = world->stored});
    step(world, (struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {1}});
}

/* The chief comes to the step where the job is to stop, and saves it. */
static void chief_stops(struct world *world, struct life *life, uint64_t at)
{
    struct agent_up arrived = {.type = AGENT_UP_ARRIVED,
        .arrived = {.job = job,
            .generation = world->stored.generation,
            .tasks = 1,
            .up_to = at,
            .applied = world->stored.released}};
    up(world, life->worker, &arrived);
    if (life->state != HERE || world->stored.released != at) {
        return;
    }
    arrived.arrived.applied = at;
    up(world, life->worker, &arrived);
    said(world, life,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = world->stored.generation,
                .position = at,
                .clean = true,
                .reason = REPORT_HALT,
                .text = ""}});
    said(world, life,
        &(struct task_up){.type = TASK_UP_PART,
            .part = {.generation = world->stored.generation,
                .position = at,
                .path = "checkpoint.json",
                .size_bytes = 5}});
}

/* One thing that the task, or its daemon for it, does next. */
static void act(struct world *world, struct life *life)
{
    struct core_job_view view;
    switch (life->state) {
    case STARTED:
        if (world->links[life->worker] != 0) {
            life->state = HERE;
            say_hello(world, life);
        }
        break;
    case HERE:
        if (life->ref.slot == 0 && life->planned && view_of(world, &view) &&
            view.halt_kind == HALT_STOP && view.formed) {
            chief_stops(world, life, view.halt_at);
        }
        break;
    case EXITED:
        life->state = TOLD;
        say_end(world, life, false);
        break;
    case TOLD:
        life->state = COLLECTED;
        say_end(world, life, true);
        break;
    case NOT_THERE:
    case COLLECTED:
        break;
    }
}

static void happens(struct world *world)
{
    struct prng *prng = &world->prng;
    uint32_t w = (uint32_t)prng_below(prng, WORKERS);
    struct life *life = &world->lives[prng_below(prng, LIVES)];
    uint64_t dice = prng_below(prng, 1000);
    world->now_us += prng_below(prng, 50000);
    if (dice < 20) {
        life_ends(life, 0, 9);
    } else if (dice < 24) {
        life_ends(life, life->ref.slot == 0 ? 1 : (int32_t)prng_below(prng, 2), 0);
    } else if (dice < 34) {
        disconnect(world, w);
    } else if (dice < 100) {
        if (world->links[w] == 0) {
            connect(world, w);
        }
    } else if (dice < 104) {
        reboot(world, w);
    } else if (dice < 107) {
        restart_coordinator(world);
    } else if (dice < 109) {
        struct core_event event = {.type = CORE_EVENT_DRAIN};
        event.drain.worker[0] = (char)('a' + w);
        step(world, event);
    } else if (dice < 112) {
        world->now_us += prng_below(prng, 12) * SECOND;
        for (uint32_t i = 0; i < WORKERS; i++) {
            up(world, i, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
        step(world, (struct core_event){.type = CORE_EVENT_TICK});
    } else {
        act(world, life);
    }
}

/* ---- the end ---- */

static bool all_here(const struct world *world)
{
    struct core_job_view view;
    if (!view_of(world, &view) || !view.formed || view.halt_kind != HALT_NONE ||
        world->stored.done) {
        return false;
    }
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        if (!task.here || task.link.n == 0) {
            return false;
        }
    }
    return true;
}

/* Everybody knows what is true. */
static void check_quiet(struct world *world)
{
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        const struct life *life = life_of(world, (struct task_ref){job, slot, task.incarnation});
        assert_non_null(life);
        assert_int_equal(life->state, HERE);
        assert_true(generation_equal(life->generation, world->stored.generation));
        assert_int_equal(life->member_count, slot == 0 ? TASKS : 1 + spec.crew.servers);
        for (size_t i = 0; i < life->member_count; i++) {
            struct core_task_view member;
            core_job_task(world->core, job, life->members[i].slot, &member);
            assert_true(life->members[i].here);
            assert_int_equal(life->members[i].incarnation, member.incarnation);
        }
    }
}

static void heal(struct world *world)
{
    bool finished = false;
    if (world->ended) { /* before the first plan a failure of the chief is final */
        assert_int_equal(world->end, JOB_FAILED);
        assert_int_equal(world->stored.generation.number, 0);
        return;
    }
    for (uint32_t w = 0; w < WORKERS; w++) {
        struct core_worker_view worker;
        for (uint32_t i = 0; core_worker(world->core, i, &worker); i++) {
            if (worker.name[0] == (char)('a' + w) && worker.draining) {
                reboot(world, w);
            }
        }
    }
    for (int round = 0; round < PATIENCE && !world->ended; round++) {
        world->now_us += 100000;
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (world->links[w] == 0) {
                connect(world, w);
            }
            up(world, w, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
        for (size_t i = 0; i < LIVES; i++) {
            act(world, &world->lives[i]);
        }
        step(world, (struct core_event){.type = CORE_EVENT_TICK});
        if (!finished && !world->ended && all_here(world)) {
            struct core_task_view chief;
            core_job_task(world->core, job, 0, &chief);
            check_quiet(world);
            finished = true;
            said(world, life_of(world, (struct task_ref){job, 0, chief.incarnation}),
                &(struct task_up){.type = TASK_UP_REPORT,
                    .report = {.generation = world->stored.generation,
                        .position = world->stored.released,
                        .clean = true,
                        .reason = REPORT_FINISHED,
                        .text = ""}});
        }
    }
    if (!world->ended || !finished) {
        struct core_job_view view = {0};
        (void)view_of(world, &view);
        fail_msg("seed %llu: %s in state %d, which %s: %s", (unsigned long long)world->seed,
            world->ended ? "ended" : "does not end", (int)view.state,
            finished ? "finished" : "never was whole", view.text);
    }
    assert_int_equal(world->end, JOB_SUCCEEDED);
}

static void a_crew_comes_through(void **state)
{
    (void)state;
    struct world *world = malloc(sizeof(*world));
    struct core_action *items = malloc(sizeof(*items) * CORE_ACTIONS_PER_STEP_MAX);
    void *memory = malloc(core_bytes(&options.limits));
    unsigned restarts = 0;
    unsigned told = 0;
    unsigned taken_over = 0;
    uint64_t generations = 0;
    assert_true(world != NULL && items != NULL && memory != NULL);
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        *world = (struct world){.memory = memory,
            .core = core_init(memory, &options),
            .actions = {.items = items, .capacity = CORE_ACTIONS_PER_STEP_MAX},
            .prng = {.state = seed},
            .seed = seed,
            .stored = {.job = job, .spec = spec}};
        step(world,
            (struct core_event){.type = CORE_EVENT_SUBMIT, .submit = {.call = {1}, .spec = spec}});
        for (uint32_t w = 0; w < WORKERS; w++) {
            world->boots[w] = 1 + w;
            connect(world, w);
        }
        for (int i = 0; i < EVENTS; i++) {
            happens(world);
        }
        heal(world);
        restarts += world->restarts;
        told += world->told;
        taken_over += world->taken_over;
        generations += world->stored.generation.number;
    }
    print_message("%u starts of the coordinator, %llu generations, %u lists of members, %u servers "
                  "found their memory\n",
        restarts, (unsigned long long)generations, told, taken_over);
    assert_true(restarts > RUNS && told > RUNS && taken_over > RUNS / 10 && generations > RUNS);
    free(memory);
    free(items);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crew_comes_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
