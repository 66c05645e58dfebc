/* SPDX-License-Identifier: Apache-2.0
 * Thousands of random events, sensible and not, against the agent core: every invariant holds after
 * each, and the limits of its action list are never reached. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/core/agent_core.h"

#define SEEDS  4000
#define EVENTS 400

static struct generation any_generation(struct prng *prng)
{
    return (struct generation){
        .number = 1 + prng_uniform(prng, 3), .nonce = prng_chance(prng, 1, 10) ? 1 : 0};
}

static uint64_t any_position(struct prng *prng)
{
    return prng_chance(prng, 1, 20) ? POSITION_NONE - prng_uniform(prng, 2)
                                    : prng_uniform(prng, 24);
}

static enum task_down_type any_down_type(struct prng *prng)
{
    uint64_t kind = prng_uniform(prng, 100);
    if (kind < 40) {
        return TASK_DOWN_PLAN;
    }
    if (kind < 90) {
        return TASK_DOWN_RELEASE;
    }
    if (kind < 97) {
        return TASK_DOWN_ABORT;
    }
    if (kind < 99) {
        return TASK_DOWN_GOODBYE;
    }
    return (enum task_down_type)(TASK_DOWN_SUPERSEDED + prng_uniform(prng, 3));
}

/* Rosters name both local tasks, or leave one out, or name a newer incarnation. */
static struct task_down any_task_down(struct prng *prng, struct roster_entry *roster)
{
    struct task_down down = {.type = any_down_type(prng), .generation = any_generation(prng)};
    switch (down.type) {
    case TASK_DOWN_PLAN:
        for (uint32_t i = 0; i < 2; i++) {
            roster[i] = (struct roster_entry){.slot = i,
                .incarnation = 1 + (prng_chance(prng, 1, 9) ? prng_uniform(prng, 3) : 0)};
        }
        down.plan = (struct task_plan){.generation = down.generation,
            .roster = roster,
            .roster_count = prng_chance(prng, 1, 5) ? prng_uniform(prng, 2) : 2,
            .resume = any_position(prng)};
        break;
    case TASK_DOWN_RELEASE:
        down.release =
            (struct task_release){.generation = down.generation, .up_to = any_position(prng)};
        break;
    case TASK_DOWN_REFUSED:
        down.refused.text = "no";
        break;
    default:
        down.reason = "a peer died";
        break;
    }
    return down;
}

struct agent_run {
    struct agent_core *core;
    struct agent_actions actions;
    uint64_t now_us;
    uint32_t entries;
};

static struct task_ref any_ref(struct prng *prng)
{
    return (struct task_ref){.job = {1 + (prng_chance(prng, 1, 9) ? 1 : 0)},
        .slot = (uint32_t)prng_uniform(prng, 2),
        .incarnation = 1 + (prng_chance(prng, 1, 30) ? prng_uniform(prng, 3) : 0)};
}

static struct agent_down any_agent_down(
    struct prng *prng, struct roster_entry *roster, struct task_ref ref)
{
    struct agent_down down = {.type = AGENT_DOWN_START};
    switch (prng_chance(prng, 1, 9) ? 0 : 1 + prng_uniform(prng, 7)) {
    case 0:
        down.type = AGENT_DOWN_STOP;
        down.stop = (struct agent_stop){.job = ref.job,
            .one = prng_chance(prng, 1, 2),
            .task = ref,
            .grace_us = prng_uniform(prng, 30)};
        break;
    case 1:
    case 2:
        down.type = AGENT_DOWN_WELCOME;
        down.welcome.lease_us = prng_uniform(prng, 50);
        break;
    case 3:
    case 4:
    case 5:
        down.type = AGENT_DOWN_RELAY;
        down.relay_down = (struct agent_relay_down){.job = ref.job,
            .one = prng_chance(prng, 1, 3),
            .task = ref,
            .down = any_task_down(prng, roster)};
        break;
    default:
        down.start.task = ref;
        break;
    }
    return down;
}

/* What a correct shell may report of the tasks it has; false: nothing now. */
static bool any_process_event(
    struct prng *prng, struct agent_run *run, const bool *spawning, struct agent_event *ret_event)
{
    struct agent_task_view view;
    uint32_t place = (uint32_t)prng_uniform(prng, run->entries);
    if (!agent_core_task(run->core, place, &view)) {
        return false;
    }
    ret_event->task = view.task;
    ret_event->text = "";
    ret_event->pid = 5;
    switch (view.phase) {
    case AGENT_TASK_PREPARING:
        ret_event->type = prng_chance(prng, 1, 8) ? AGENT_EVENT_FAILED
                          : spawning[place]       ? AGENT_EVENT_SPAWNED
                                                  : AGENT_EVENT_PREPARED;
        return true;
    case AGENT_TASK_RUNNING:
        if (prng_chance(prng, 29, 30)) {
            return false;
        }
        ret_event->type = AGENT_EVENT_EXITED;
        return true;
    case AGENT_TASK_TERMINATING:
    case AGENT_TASK_KILLED:
        ret_event->type = AGENT_EVENT_EXITED;
        return true;
    case AGENT_TASK_GONE:
        ret_event->type = AGENT_EVENT_COLLECTED;
        return true;
    case AGENT_TASK_NONE:
    case AGENT_TASK_COLLECTED:
        break;
    }
    return false;
}

/* Watermarks mostly rise. */
static struct task_up any_task_up(struct prng *prng, uint64_t clock)
{
    struct task_up up = {.type = prng_chance(prng, 1, 2)
                                     ? TASK_UP_ARRIVE
                                     : (enum task_up_type)(TASK_UP_HELLO + prng_uniform(prng, 8))};
    switch (up.type) {
    case TASK_UP_HELLO:
        up.hello = (struct task_hello){
            .frame_version = TASK_FRAME_VERSION, .library_version = "1", .mesh_address = "a"};
        break;
    case TASK_UP_ARRIVE:
        up.arrive = (struct task_arrive){.generation = any_generation(prng),
            .up_to = clock + prng_uniform(prng, 40),
            .applied = clock + prng_uniform(prng, 40),
            .wanted = prng_chance(prng, 1, 2) ? clock + prng_uniform(prng, 40) : 0,
            .consumption.samples = clock};
        break;
    case TASK_UP_REPORT:
        up.report = (struct task_report){.generation = any_generation(prng), .text = "t"};
        break;
    case TASK_UP_PART:
        up.part = (struct task_part){.generation = any_generation(prng),
            .position = prng_uniform(prng, 3),
            .shared = prng_chance(prng, 1, 5),
            .path = "p"};
        break;
    case TASK_UP_PROGRESS:
    case TASK_UP_SHARDS:
    case TASK_UP_BACKED:
    case TASK_UP_VALUES:
    case TASK_UP_SPANS:
        break;
    case TASK_UP_JOIN:
        up.join.stream = (uint32_t)prng_uniform(prng, 2);
        break;
    case TASK_UP_STREAM:
        up.stream = (struct task_stream){.stream = (uint32_t)prng_uniform(prng, 90), .name = "d"};
        break;
    case TASK_UP_STALL:
        up.stall.generation = any_generation(prng);
        break;
    case TASK_UP_PREEMPT:
        up.preempt.stops = prng_chance(prng, 1, 2);
        break;
    }
    return up;
}

static uint32_t place_of(struct agent_run *run, struct task_ref ref)
{
    struct agent_task_view view;
    for (uint32_t i = 0; i < run->entries; i++) {
        if (agent_core_task(run->core, i, &view) && task_ref_equal(view.task, ref)) {
            return i;
        }
    }
    return run->entries;
}

/* What was seen of the rarer things: that the events reach them. */
struct seen {
    uint64_t folds;
    uint64_t published;
    uint64_t joins;
    uint64_t streams;
};

static void count_sent(struct seen *seen, const struct agent_up *up)
{
    seen->folds += up->type == AGENT_UP_ARRIVED ? 1 : 0;
    if (up->type == AGENT_UP_RELAY) {
        seen->published += up->relay_up.up.type == TASK_UP_PART ? 1 : 0;
        seen->joins += up->relay_up.up.type == TASK_UP_JOIN ? 1 : 0;
        seen->streams += up->relay_up.up.type == TASK_UP_STREAM ? 1 : 0;
    }
}

struct stage {
    struct agent_run run;
    bool spawning[AGENT_ENTRIES(3)];
    bool prepared[AGENT_ENTRIES(3)];
    bool up_now;
};

/* false: nothing now. What it points to lives in the caller's. */
static bool any_event(struct prng *prng, struct stage *stage, struct agent_event *ret_event,
    struct agent_down *down, struct task_up *up, struct roster_entry *roster)
{
    struct agent_run *run = &stage->run;
    struct agent_event event = {.type = AGENT_EVENT_TICK};
    uint64_t kind = prng_uniform(prng, 100);
    if (kind < 30) {
        *down = any_agent_down(prng, roster, any_ref(prng));
        event = (struct agent_event){.type = AGENT_EVENT_DOWN, .down = down};
    } else if (kind < 50) {
        if (!any_process_event(prng, run, stage->spawning, &event)) {
            return false;
        }
        uint32_t place = place_of(run, event.task);
        if (event.type == AGENT_EVENT_PREPARED && stage->prepared[place]) {
            return false; /* it waits for its predecessor */
        }
        stage->prepared[place] = event.type == AGENT_EVENT_PREPARED;
        stage->spawning[place] = false;
    } else if (kind < 55) {
        event = (struct agent_event){.type = AGENT_EVENT_PUBLISHED,
            .task = any_ref(prng),
            .code = prng_chance(prng, 1, 4) ? CADRE_UNAVAILABLE : CADRE_OK,
            .text = ""};
    } else if (kind < 85) {
        *up = any_task_up(prng, run->now_us);
        event = (struct agent_event){.type = AGENT_EVENT_TASK_UP, .task = any_ref(prng), .up = up};
    } else if (kind < 90) {
        event = (struct agent_event){.type = AGENT_EVENT_TASK_CLOSED, .task = any_ref(prng)};
    } else if (kind < 95) {
        event.type = !stage->up_now            ? AGENT_EVENT_LINK_UP
                     : prng_chance(prng, 1, 9) ? AGENT_EVENT_LINK_DOWN
                                               : AGENT_EVENT_TICK;
        stage->up_now = stage->up_now ? event.type != AGENT_EVENT_LINK_DOWN : true;
    } else if (kind == 95 && prng_chance(prng, 1, 10)) {
        event.type = AGENT_EVENT_DRAIN;
    }
    *ret_event = event;
    return true;
}

static void note_actions(struct stage *stage, struct seen *seen)
{
    struct agent_run *run = &stage->run;
    for (size_t k = 0; k < run->actions.count; k++) {
        const struct agent_action *action = &run->actions.items[k];
        if (action->type == AGENT_ACTION_SPAWN) {
            stage->spawning[place_of(run, action->task)] = true;
        } else if (action->type == AGENT_ACTION_PREPARE) {
            stage->spawning[place_of(run, action->task)] = false;
            stage->prepared[place_of(run, action->task)] = false;
        } else if (action->type == AGENT_ACTION_PUBLISH) {
            assert_false(action->part->shared);
        } else if (action->type == AGENT_ACTION_SEND) {
            count_sent(seen, &action->up);
        }
    }
}

static uint64_t run_agent(uint64_t seed, struct seen *seen)
{
    struct prng prng = {.state = seed};
    const struct agent_options options = {.slots = 1 + (uint32_t)prng_uniform(&prng, 3),
        .heartbeat_us = 20,
        .orphan_us = 500,
        .grace_us = 10};
    struct stage stage = {.run.entries = AGENT_ENTRIES(options.slots)};
    struct agent_run *run = &stage.run;
    void *memory = malloc(agent_core_bytes(options.slots));
    assert_non_null(memory);
    run->core = agent_core_init(memory, &options);
    run->actions.capacity = AGENT_ACTIONS_PER_STEP_MAX(options.slots);
    run->actions.items = calloc(run->actions.capacity, sizeof(struct agent_action));
    assert_non_null(run->actions.items);
    for (int i = 0; i < EVENTS; i++) {
        struct agent_event event;
        struct agent_down down;
        struct task_up up;
        struct roster_entry roster[2];
        if (!any_event(&prng, &stage, &event, &down, &up, roster)) {
            continue;
        }
        run->now_us += prng_uniform(&prng, 5);
        event.now_us = run->now_us;
        run->actions.count = 0;
        agent_core_step(run->core, &event, &run->actions);
        const char *broken = agent_core_invariant(run->core);
        if (broken != NULL) {
            fail_msg("seed %" PRIu64 " event %d: broken: %s", seed, i, broken);
        }
        assert_true(agent_core_wake_us(run->core) > run->now_us);
        note_actions(&stage, seen);
    }
    uint64_t digest = agent_core_digest(run->core);
    free(run->actions.items);
    free(memory);
    return digest;
}

static void test_agent_core(void **state)
{
    (void)state;
    struct seen seen = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct seen again = {0};
        uint64_t digest = run_agent(seed, &seen);
        assert_true(digest == run_agent(seed, &again));
    }
    assert_true(seen.folds > 100);
    assert_true(seen.published > 10);
    assert_true(seen.joins > 100);
    assert_true(seen.streams > LIMIT_STREAMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
