/* SPDX-License-Identifier: Apache-2.0
 * Tasks and daemons that keep to the protocol, in random order, while tasks are killed, daemons are
 * started anew, connections break and workers drain: as long as there is a place left, every job
 * comes to its end, all its steps done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/unit/coordinator_core/watch.h"

#define SECOND   UINT64_C(1000000)
#define WORKERS  4
#define SLOTS    3
#define STEPS    40
#define FAULTS   8
#define PATIENCE 20000

enum life {
    NOT_THERE = 0,
    STARTED,
    SAID_HELLO,
    WARM,
    JOINS,
    RUNS,
    FREEZES,
    FROZEN,
    EXITS,
    EXITED,
    COLLECTED
};

struct process {
    enum life life;
    struct task_ref ref;
    uint32_t worker;
    struct generation generation;
    uint64_t position;
    uint64_t told; /* arrived; POSITION_NONE: not in this generation */
    uint64_t told_applied;
    enum report_reason reason;
    struct task_exit exit;
};

struct world {
    void *memory;
    struct core *core;
    struct watch *watch;
    struct core_actions actions;
    struct prng prng;
    uint64_t now_us;
    uint64_t link_last;
    uint64_t links[WORKERS];
    uint64_t boots[WORKERS];
    struct process processes[64];
    uint32_t faults;
    uint64_t generations;
    bool ended;
};

static void world_step(struct world *world, struct core_event event);

static void up(struct world *world, uint32_t worker, const struct agent_up *message)
{
    world_step(world, (struct core_event){.type = CORE_EVENT_AGENT_UP,
                          .agent = {.link = {world->links[worker]}, .up = message}});
}

static void said(struct world *world, const struct process *process, const struct task_up *message)
{
    up(world, process->worker,
        &(struct agent_up){.type = AGENT_UP_SAID, .said = {.task = process->ref, .up = *message}});
}

static void say_hello(struct world *world, const struct process *process)
{
    said(world, process,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .pid = 9,
                .replicas = 1,
                .mesh_address = "x",
                .generation = process->generation,
                .position = process->position,
                .clean = true,
                .frozen = process->life == FROZEN,
                .reason = process->reason}});
}

static void say_report(struct world *world, const struct process *process)
{
    said(world, process,
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
    process->life = FROZEN;
    process->reason = reason;
    say_report(world, process);
}

static void say_join(struct world *world, const struct process *process)
{
    said(world, process, &(struct task_up){.type = TASK_UP_JOIN, .join = {.stream = 1}});
}

static void exits(struct process *process, int32_t code, int32_t signal)
{
    if (process->life != NOT_THERE && process->life < EXITS) {
        process->life = EXITS;
        process->exit = (struct task_exit){.code = code, .signal = signal};
    }
}

/* Whether all of its generation take, or took, the step where it stands. */
static bool peers_are_there(const struct world *world, const struct process *process)
{
    struct core_job_view view;
    uint32_t there = 0;
    assert_true(core_job(world->core, process->ref.job, &view));
    for (size_t i = 0; i < 64; i++) {
        const struct process *peer = &world->processes[i];
        bool same = generation_equal(peer->generation, process->generation);
        bool takes = peer->life == RUNS && peer->position >= process->position;
        bool took = peer->life == FROZEN && peer->position > process->position;
        there += same && (takes || took);
    }
    return there >= view.roster;
}

static void arrive(struct world *world, struct process *process)
{
    uint64_t up_to = process->position + 2 < STEPS ? process->position + 2 : STEPS;
    if (process->told == up_to && process->told_applied == process->position) {
        return;
    }
    process->told = up_to;
    process->told_applied = process->position;
    up(world, process->worker,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = process->ref.job,
                .generation = process->generation,
                .tasks = 1,
                .up_to = up_to,
                .applied = process->position,
                .cursor = {.stream = 1, .steps = STEPS},
                .feed = {.steps = process->position, .samples = process->position}}});
}

static void run(struct world *world, struct process *process)
{
    struct core_job_view view;
    arrive(world, process);
    if (process->life != RUNS || !core_job(world->core, process->ref.job, &view) ||
        !generation_equal(view.generation, process->generation)) {
        return;
    }
    bool chief = core_job_member(world->core, view.job, 0) == process->ref.slot;
    if (chief && process->position % 7 == 3) {
        said(world, process,
            &(struct task_up){.type = TASK_UP_PART,
                .part = {.generation = process->generation,
                    .position = process->position,
                    .path = "c.json"}});
    }
    if (process->life != RUNS) {
        return;
    }
    if (process->position == STEPS) {
        freeze(world, process, REPORT_FINISHED);
    } else if (process->position == view.halt_at) {
        freeze(world, process, REPORT_HALT);
    } else if (process->position < view.released && peers_are_there(world, process)) {
        process->position++;
    }
}

/* One thing that the task, or its daemon for it, does next. */
static void act(struct world *world, struct process *process)
{
    switch (process->life) {
    case STARTED:
        up(world, process->worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_STARTED, .started = {.task = process->ref, .pid = 9}});
        process->life = SAID_HELLO;
        say_hello(world, process);
        break;
    case WARM:
        process->life = JOINS;
        say_join(world, process);
        break;
    case RUNS:
        run(world, process);
        break;
    case FREEZES:
        freeze(world, process, REPORT_ABORT);
        break;
    case EXITS:
        process->life = EXITED;
        up(world, process->worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_GONE, .gone = {.task = process->ref, .exit = process->exit}});
        break;
    case EXITED:
    case COLLECTED:
        process->life = COLLECTED;
        up(world, process->worker,
            &(struct agent_up){
                .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = process->ref, .text = ""}});
        break;
    case NOT_THERE:
    case SAID_HELLO:
    case JOINS:
    case FROZEN:
        break;
    }
}

/* ---- what the coordinator says ---- */

static void hear_start(struct world *world, struct job_id job, uint64_t link)
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
            known |= process->life != NOT_THERE && task_ref_equal(process->ref, ref);
            place = place == NULL && process->life == NOT_THERE ? process : place;
        }
        if (known || task.state != TASK_STARTING || (link != 0 && task.link.n != link)) {
            continue;
        }
        assert_non_null(place);
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (world->links[w] == task.link.n && task.link.n != 0) {
                *place = (struct process){.life = STARTED, .ref = ref, .worker = w};
            }
        }
    }
}

static void hear_plan(struct world *world, struct process *process)
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
        assert_true(process->life == FROZEN); /* nobody in a plan moves before it */
        assert_true(process->position <= view.resume);
    }
    process->generation = view.generation;
    process->position = view.resume;
    process->told = POSITION_NONE;
    process->life = RUNS;
    world->generations++;
}

static void hear_tell(
    struct world *world, struct process *process, enum core_tell tell, struct generation generation)
{
    bool mine = generation_equal(generation, process->generation);
    switch (tell) {
    case CORE_TELL_PLAN:
        hear_plan(world, process);
        break;
    case CORE_TELL_ABORT:
        if (mine && process->life == RUNS) {
            process->life = FREEZES;
        }
        break;
    case CORE_TELL_BYE:
        if (mine) {
            assert_int_equal(process->position, STEPS);
            exits(process, 0, 0);
        }
        break;
    case CORE_TELL_RELEASE:
        break; /* looked at when it acts */
    }
}

static void hear_one(struct process *process, const struct core_action *action)
{
    if (action->type == CORE_ACTION_STOP_TASK) {
        if (process->life == COLLECTED) {
            process->life = NOT_THERE;
        } else {
            exits(process, 0, 15);
        }
    } else if (action->tell_task.type == TASK_DOWN_WARM) {
        process->life = process->life == SAID_HELLO ? WARM : process->life;
    } else {
        exits(process, 1, 0);
    }
}

static void hear(struct world *world, const struct core_action *action)
{
    for (size_t i = 0; i < 64; i++) {
        struct process *process = &world->processes[i];
        uint64_t link = world->links[process->worker];
        if (process->life == NOT_THERE) {
            continue;
        }
        if (action->type == CORE_ACTION_STOP_JOB && process->ref.job.n == action->job.n) {
            exits(process, 0, 15);
        } else if (action->type == CORE_ACTION_STOP_TASK &&
                   task_ref_equal(process->ref, action->stop_task.task) &&
                   link == action->stop_task.link.n) {
            hear_one(process, action);
        } else if (action->type == CORE_ACTION_TELL_TASK &&
                   task_ref_equal(process->ref, action->tell_task.task) &&
                   link == action->tell_task.link.n) {
            hear_one(process, action);
        } else if (action->type == CORE_ACTION_TELL_JOB && process->life < EXITS && link != 0 &&
                   (!action->tell_job.one || action->tell_job.slot == process->ref.slot)) {
            hear_tell(world, process, action->tell_job.tell, action->tell_job.generation);
        }
    }
    if (action->type == CORE_ACTION_START_JOB) {
        hear_start(world, action->job, 0);
    } else if (action->type == CORE_ACTION_START_AGAIN) {
        hear_start(world, action->start_again.job, action->start_again.link.n);
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
        hear(world, &actions.items[i]);
    }
}

static void world_step(struct world *world, struct core_event event)
{
    world_step_once(world, event);
    while (core_wake_us(world->core) <= world->now_us) {
        world_step_once(world, (struct core_event){.type = CORE_EVENT_TICK});
    }
}

/* ---- faults ---- */

static void come_up(struct world *world, uint32_t w)
{
    static const char *const names[WORKERS] = {"a", "b", "c", "d"};
    struct task_ref held[64];
    size_t count = 0;
    for (size_t i = 0; i < 64; i++) {
        const struct process *process = &world->processes[i];
        if (process->life != NOT_THERE && process->worker == w) {
            held[count++] = process->ref;
        }
    }
    world->links[w] = ++world->link_last;
    up(world, w,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .name = names[w],
                .boot_nonce = world->boots[w],
                .slots = 1,
                .tasks = held,
                .task_count = count}});
    for (size_t i = 0; i < 64; i++) {
        struct process *process = &world->processes[i];
        enum life life = process->life;
        if (life == NOT_THERE || life >= EXITS || process->worker != w || life == STARTED) {
            continue;
        }
        say_hello(world, process);
        if (process->life == FROZEN && life == FROZEN) {
            say_report(world, process);
        } else if (process->life == JOINS) {
            say_join(world, process);
        }
        process->told = POSITION_NONE;
    }
}

static void go_down(struct world *world, uint32_t w)
{
    uint64_t link = world->links[w];
    world->links[w] = 0;
    world_step(world, (struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {link}});
}

static void fault(struct world *world)
{
    uint32_t w = (uint32_t)prng_below(&world->prng, WORKERS);
    uint64_t which = prng_below(&world->prng, 8);
    if (world->links[w] == 0) {
        come_up(world, w);
        return;
    }
    world->faults++;
    if (which < 4) { /* a task is killed */
        struct process *process = &world->processes[prng_below(&world->prng, 8)];
        exits(process, 0, 9);
    } else if (which < 6) { /* a connection breaks */
        go_down(world, w);
    } else if (which < 7) { /* a daemon is started anew, its tasks are gone */
        go_down(world, w);
        world->boots[w] += 10;
        for (size_t i = 0; i < 64; i++) {
            if (world->processes[i].worker == w) {
                world->processes[i] = (struct process){.life = NOT_THERE};
            }
        }
        come_up(world, w);
    } else if (w == WORKERS - 1) {
        struct core_event event = {.type = CORE_EVENT_DRAIN, .drain = {.worker = "d"}};
        world_step(world, event);
    }
}

static void pass_time(struct world *world)
{
    world->now_us += prng_below(&world->prng, SECOND / 20);
    world_step(world, (struct core_event){.type = CORE_EVENT_TICK});
    for (uint32_t w = 0; w < WORKERS; w++) {
        if (world->links[w] != 0) {
            up(world, w, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
    }
}

static void world_run(struct world *world, uint64_t seed, const struct core_options *options)
{
    struct core_job_spec spec = {.tasks = SLOTS, .max_restarts = 100};
    world->core = core_init(world->memory, options);
    memset(world->watch, 0, sizeof(*world->watch));
    memset(world->processes, 0, sizeof(world->processes));
    world->prng = (struct prng){.state = seed};
    world->now_us = 0;
    world->link_last = 0;
    world->faults = 0;
    world->ended = false;
    spec.tasks_min = 1 + (uint32_t)prng_below(&world->prng, SLOTS);
    for (uint32_t w = 0; w < WORKERS; w++) {
        world->boots[w] = w + 1;
        come_up(world, w);
    }
    world_step(world, (struct core_event){.type = CORE_EVENT_SUBMIT, .submit = {.spec = spec}});
    for (int i = 0; i < PATIENCE && !world->ended; i++) {
        struct process *process = &world->processes[prng_below(&world->prng, 12)];
        if (world->links[process->worker] != 0) {
            act(world, process);
        }
        if (world->faults < FAULTS && prng_chance(&world->prng, 1, 60)) {
            fault(world);
        }
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (world->links[w] == 0 && prng_chance(&world->prng, 1, 40)) {
                come_up(world, w);
            }
        }
        if (prng_chance(&world->prng, 1, 8)) {
            pass_time(world);
        }
    }
}

static void jobs_come_to_their_end(void **state)
{
    (void)state;
    const struct core_options options = {
        .limits = {.workers_max = 8, .jobs_max = 2, .tasks_max = 8},
        .seed = 5,
        .lease_us = 10 * SECOND,
        .grace_us = 5 * SECOND,
        .collect_us = 5 * SECOND,
        .form_us = 100 * SECOND,
        .report_us = 2 * SECOND,
        .wait_us = 1000 * SECOND,
        .stall_us = 1000 * SECOND,
        .slow_factor = 10,
        .slow_us = SECOND};
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->memory = malloc(core_bytes(&options.limits));
    world->watch = malloc(sizeof(*world->watch));
    assert_true(world->memory != NULL && world->watch != NULL);
    uint64_t succeeded = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world_run(world, seed, &options);
        if (!world->ended) {
            struct core_job_view view;
            assert_true(core_job(world->core, (struct job_id){1}, &view));
            for (size_t i = 0; i < 64; i++) {
                const struct process *process = &world->processes[i];
                if (process->life != NOT_THERE) {
                    print_message(
                        "task %u#%llu on %u: life %d, generation %llu at %llu, told %lld\n",
                        process->ref.slot, (unsigned long long)process->ref.incarnation,
                        process->worker, (int)process->life,
                        (unsigned long long)process->generation.number,
                        (unsigned long long)process->position, (long long)process->told);
                }
            }
            fail_msg("seed %llu: generation %llu at %llu of %u: %s", (unsigned long long)seed,
                (unsigned long long)view.generation.number, (unsigned long long)view.released,
                view.roster, view.text);
        }
        succeeded += world->watch->succeeded;
    }
    print_message("%llu of 300 succeeded, %llu times a task was planned in\n",
        (unsigned long long)succeeded, (unsigned long long)world->generations);
    assert_true(succeeded > 200); /* one that dies after bye has failed */
    free(world->watch);
    free(world->memory);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_come_to_their_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
