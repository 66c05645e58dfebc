/* SPDX-License-Identifier: Apache-2.0
 * A ps job on a small cluster whose daemons and tasks keep to the protocol, under all faults: tasks
 * are killed, links break, daemons are started again and drained, the coordinator is started again.
 * A message is received at once; the next event is drawn. Whatever happened, MEMBERS follows the
 * rules, and a healed cluster trains to its end. */
#include <stdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/coordinator_core/ps_servers.h"

#define SECOND   UINT64_C(1000000)
#define RUNS     150
#define EVENTS   600
#define PATIENCE 4000 /* rounds of a healed cluster */

/* ---- what is done ---- */

static void connect(struct ps_world *world, uint32_t w)
{
    static const char *const names[WORKERS] = {"a", "b", "c", "d"};
    struct task_ref held[ATTEMPTS];
    size_t count = 0;
    world->links[w] = ++world->link_last;
    for (size_t i = 0; i < ATTEMPTS; i++) {
        if (world->attempts[i].state != NOT_THERE && world->attempts[i].worker == w) {
            held[count++] = world->attempts[i].ref;
        }
    }
    world->greets = w + 1;
    ps_world_up(world, w,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .name = names[w],
                .boot_nonce = world->boots[w],
                .slots = 2,
                .tasks = held,
                .task_count = count}});
    world->greets = 0;
    for (size_t i = 0; i < ATTEMPTS; i++) {
        struct attempt *attempt = &world->attempts[i];
        if (attempt->worker != w) {
            continue;
        }
        if (attempt->state == HERE) {
            ps_world_hello(world, attempt);
        } else if (attempt->state == NOTIFIED || attempt->state == COLLECTED) {
            ps_world_end(world, attempt, attempt->state == COLLECTED);
        }
    }
}

static void disconnect(struct ps_world *world, uint32_t w)
{
    uint64_t link = world->links[w];
    world->links[w] = 0;
    if (link != 0) {
        ps_world_step(
            world, (struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {link}});
    }
}

static void reboot(struct ps_world *world, uint32_t w)
{
    world->boots[w] += 10;
    ps_servers_drop(world, w);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        if (world->attempts[i].worker == w) {
            world->attempts[i].state = NOT_THERE;
        }
    }
    disconnect(world, w);
    connect(world, w);
}

#define MEMBERS_US 50000 /* for each task */

static const struct core_options options = {
    .limits = {.workers_max = 8, .jobs_max = 2, .tasks_max = 12},
    .seed = 5,
    .lease_us = 10 * SECOND,
    .rewind_us = 25 * SECOND,
    .grace_us = 5 * SECOND,
    .collect_us = 20 * SECOND,
    .form_us = 30 * SECOND,
    .report_us = 2 * SECOND,
    .wait_us = 100000 * SECOND,
    .stall_us = 600 * SECOND,
    .slow_factor = 10,
    .slow_us = 5 * SECOND};

/* In every other world MEMBERS to the chief is delayed. */
static struct core_options options_of(uint64_t seed)
{
    struct core_options some = options;
    some.members_us = seed % 2 * MEMBERS_US;
    return some;
}

static void restart_coordinator(struct ps_world *world)
{
    struct core_options again = options_of(world->seed);
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
    ps_world_step(
        world, (struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = world->stored});
    ps_world_step(world, (struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {1}});
}

/* The chief comes to the step where the job is to stop, and saves it. */
static void chief_stops(struct ps_world *world, struct attempt *attempt, uint64_t at)
{
    struct agent_up arrived = {.type = AGENT_UP_ARRIVED,
        .arrived = {.job = job,
            .generation = world->stored.generation,
            .tasks = 1,
            .up_to = at,
            .applied = world->stored.released}};
    ps_world_up(world, attempt->worker, &arrived);
    if (attempt->state != HERE || world->stored.released != at) {
        return;
    }
    arrived.arrived.applied = at;
    ps_world_up(world, attempt->worker, &arrived);
    ps_world_relay(world, attempt,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = world->stored.generation,
                .position = at,
                .clean = true,
                .reason = REPORT_HALT,
                .text = ""}});
    ps_world_relay(world, attempt,
        &(struct task_up){.type = TASK_UP_PART,
            .part = {.generation = world->stored.generation,
                .position = at,
                .path = "checkpoint.json",
                .size_bytes = 5}});
}

/* One thing that the task, or its daemon for it, does next. */
static void act(struct ps_world *world, struct attempt *attempt)
{
    struct core_job_view view;
    switch (attempt->state) {
    case STARTED:
        if (world->links[attempt->worker] != 0) {
            attempt->state = HERE;
            ps_world_hello(world, attempt);
        }
        break;
    case HERE:
        if (attempt->ref.slot == 0 && attempt->planned && ps_world_view(world, &view) &&
            view.halt_kind == HALT_STOP && view.formed) {
            chief_stops(world, attempt, view.halt_at);
        }
        break;
    case EXITED:
        attempt->state = NOTIFIED;
        ps_world_end(world, attempt, false);
        break;
    case NOTIFIED:
        attempt->state = COLLECTED;
        ps_world_end(world, attempt, true);
        break;
    case NOT_THERE:
    case COLLECTED:
        break;
    }
}

/* Meanwhile: each of them changes what it holds, and chooses the server that is to have a copy. */
static void servers_act(struct ps_world *world)
{
    for (size_t i = 0; i < 8 * ATTEMPTS; i++) {
        struct attempt *attempt = &world->attempts[i % ATTEMPTS];
        if (attempt->state == HERE &&
            ps_job_role(&ps_world_spec.ps_job, attempt->ref.slot) == ROLE_SERVER) {
            ps_server_act(world, attempt);
        }
    }
}

static void happens(struct ps_world *world)
{
    struct prng *prng = &world->prng;
    uint32_t w = (uint32_t)prng_uniform(prng, WORKERS);
    struct attempt *attempt = &world->attempts[prng_uniform(prng, ATTEMPTS)];
    uint64_t dice = prng_uniform(prng, 1000);
    world->now_us += prng_uniform(prng, 50000);
    if (dice < 20) {
        attempt_end(attempt, 0, 9);
    } else if (dice < 24) {
        attempt_end(attempt, attempt->ref.slot == 0 ? 1 : (int32_t)prng_uniform(prng, 2), 0);
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
        struct core_event event = {
            .type = CORE_EVENT_DRAIN, .drain = {.ends = prng_uniform(prng, 2) == 0}};
        event.drain.drained.worker[0] = (char)('a' + w);
        ps_world_step(world, event);
    } else if (dice < 112) {
        world->now_us += prng_uniform(prng, 12) * SECOND;
        for (uint32_t i = 0; i < WORKERS; i++) {
            ps_world_up(world, i, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
        ps_world_step(world, (struct core_event){.type = CORE_EVENT_TICK});
    } else {
        act(world, attempt);
    }
    servers_act(world);
}

/* ---- the end ---- */

static bool all_here(const struct ps_world *world)
{
    struct core_job_view view;
    if (!ps_world_view(world, &view) || !view.formed || view.halt_kind != HALT_NONE ||
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

/* All tasks have the current members. */
static void check_quiet(struct ps_world *world)
{
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        struct core_task_view task;
        core_job_task(world->core, job, slot, &task);
        const struct attempt *attempt =
            ps_world_attempt(world, (struct task_ref){job, slot, task.incarnation});
        assert_non_null(attempt);
        assert_int_equal(attempt->state, HERE);
        assert_true(generation_equal(attempt->generation, world->stored.generation));
        assert_int_equal(
            attempt->member_count, slot == 0 ? TASKS : 1 + ps_world_spec.ps_job.servers);
        for (size_t i = 0; i < attempt->member_count; i++) {
            struct core_task_view member;
            core_job_task(world->core, job, attempt->members[i].slot, &member);
            assert_true(attempt->members[i].here);
            assert_int_equal(attempt->members[i].incarnation, member.incarnation);
        }
    }
}

static void heal(struct ps_world *world)
{
    bool finished = false;
    if (world->ended) { /* before the first plan a failure of the chief is final */
        assert_int_equal(world->end, JOB_FAILED);
        assert_int_equal(world->stored.generation.number, 0);
        return;
    }
    for (uint32_t w = 0; w < WORKERS; w++) {
        struct core_event event = {.type = CORE_EVENT_DRAIN, .drain.ends = true};
        struct core_worker_view worker;
        event.drain.drained.worker[0] = (char)('a' + w);
        bool drains =
            core_worker_named(world->core, event.drain.drained.worker, &worker) && worker.draining;
        ps_world_step(world, event);
        if (drains) {
            reboot(world, w);
        }
    }
    for (int round = 0; round < PATIENCE && !world->ended; round++) {
        world->now_us += 100000;
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (world->links[w] == 0) {
                connect(world, w);
            }
            ps_world_up(world, w, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
        }
        for (size_t i = 0; i < ATTEMPTS; i++) {
            act(world, &world->attempts[i]);
        }
        ps_world_step(world, (struct core_event){.type = CORE_EVENT_TICK});
        if (!finished && !world->ended && all_here(world)) {
            struct core_task_view chief;
            core_job_task(world->core, job, 0, &chief);
            world->now_us += TASKS * MEMBERS_US;
            ps_world_step(world, (struct core_event){.type = CORE_EVENT_TICK});
            check_quiet(world);
            finished = true;
            ps_world_relay(world,
                ps_world_attempt(world, (struct task_ref){job, 0, chief.incarnation}),
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
        char text[LIMIT_TEXT_BYTES] = "";
        (void)ps_world_view(world, &view);
        (void)core_job_text(world->core, view.job, text);
        fail_msg("seed %llu: %s in state %d, which %s: %s", (unsigned long long)world->seed,
            world->ended ? "ended" : "does not end", (int)view.state,
            finished ? "finished" : "never was whole", text);
    }
    assert_int_equal(world->end, JOB_SUCCEEDED);
}

static void a_ps_job_comes_through(void **state)
{
    (void)state;
    struct ps_world *world = malloc(sizeof(*world));
    struct core_action *items = malloc(sizeof(*items) * CORE_ACTIONS_PER_STEP_MAX);
    void *memory = malloc(core_bytes(&options.limits));
    unsigned restarts = 0;
    unsigned notified = 0;
    unsigned taken_over = 0;
    unsigned answers = 0;
    unsigned promoted = 0;
    unsigned empty = 0;
    uint64_t generations = 0;
    assert_true(world != NULL && items != NULL && memory != NULL);
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        const struct core_options some = options_of(seed);
        *world = (struct ps_world){.memory = memory,
            .core = core_init(memory, &some),
            .actions = {.items = items, .capacity = CORE_ACTIONS_PER_STEP_MAX},
            .prng = {.state = seed},
            .seed = seed,
            .stored = {.job = job, .spec = ps_world_spec}};
        ps_world_step(world, (struct core_event){.type = CORE_EVENT_SUBMIT,
                                 .submit = {.call = {1}, .spec = ps_world_spec}});
        for (uint32_t w = 0; w < WORKERS; w++) {
            world->boots[w] = 1 + w;
            connect(world, w);
        }
        for (int i = 0; i < EVENTS; i++) {
            happens(world);
        }
        heal(world);
        restarts += world->restarts;
        notified += world->notified;
        taken_over += world->taken_over;
        answers += world->answers;
        promoted += world->promoted;
        empty += world->empty;
        generations += world->stored.generation.number;
    }
    print_message("%u starts of the coordinator, %llu generations, %u lists of members, %u servers "
                  "found their memory\n",
        restarts, (unsigned long long)generations, notified, taken_over);
    print_message("%u changes were answered, %u copies taken, %u servers began empty\n", answers,
        promoted, empty);
    assert_true(answers > RUNS && promoted > RUNS / 30 && empty > RUNS);
    assert_true(restarts > RUNS && notified > RUNS && taken_over > RUNS / 10 && generations > RUNS);
    free(memory);
    free(items);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ps_job_comes_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
