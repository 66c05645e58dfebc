/* SPDX-License-Identifier: Apache-2.0
 * Thousands of random events, sensible and not, against both cores: every invariant holds after
 * each, and the limits of their action lists are never reached. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/core/agent_core.h"
#include "worker/core/task_core.h"

#define SEEDS  400
#define EVENTS 400

static struct generation any_generation(struct prng *prng)
{
    return (struct generation){
        .number = 1 + prng_below(prng, 2), .nonce = prng_chance(prng, 1, 10) ? 1 : 0};
}

/* The task's own one, the next, or any. */
static struct generation near_generation(struct prng *prng, const struct task_core *core)
{
    struct generation generation = any_generation(prng);
    if (core != NULL) {
        generation.number = core->generation.number + prng_below(prng, 2);
    }
    return generation;
}

static uint64_t any_position(struct prng *prng)
{
    return prng_chance(prng, 1, 20) ? POSITION_NONE - prng_below(prng, 2) : prng_below(prng, 24);
}

static enum task_down_type any_down_type(struct prng *prng)
{
    uint64_t kind = prng_below(prng, 100);
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
        return TASK_DOWN_BYE;
    }
    return (enum task_down_type)(TASK_DOWN_SUPERSEDED + prng_below(prng, 2));
}

static struct task_down any_task_down(
    struct prng *prng, const struct task_core *core, struct roster_entry *roster)
{
    bool own = core != NULL && prng_chance(prng, 3, 4);
    struct task_down down = {
        .type = any_down_type(prng), .generation = own ? core->generation : any_generation(prng)};
    switch (down.type) {
    case TASK_DOWN_PLAN:
        roster[0] = (struct roster_entry){.slot = 0, .incarnation = 1 + prng_below(prng, 2)};
        roster[1] = (struct roster_entry){.slot = 1, .incarnation = 1 + prng_below(prng, 2)};
        down.plan = (struct task_plan){.generation = near_generation(prng, core),
            .roster = roster,
            .roster_count = prng_chance(prng, 1, 9) ? 0 : 2,
            .resume =
                prng_chance(prng, 19, 20) && core != NULL ? core->position : any_position(prng),
            .source = (uint32_t)prng_below(prng, prng_chance(prng, 1, 20) ? 3 : 2),
            .checkpoint_at = POSITION_NONE,
            .halt_at = prng_chance(prng, 1, 20) ? any_position(prng) : POSITION_NONE};
        break;
    case TASK_DOWN_RELEASE:
        down.release = (struct task_release){.generation = down.generation,
            .up_to = core != NULL && prng_chance(prng, 3, 4) ? core->arrived : any_position(prng),
            .checkpoint_at = prng_chance(prng, 1, 5) ? any_position(prng) : POSITION_NONE,
            .halt_at = prng_chance(prng, 1, 20) ? any_position(prng) : POSITION_NONE};
        break;
    case TASK_DOWN_REFUSED:
        down.refused.text = "no";
        break;
    default:
        down.reason = "somebody died";
        break;
    }
    return down;
}

/* What a correct shell may do in this state. */
static struct task_event any_program_event(struct prng *prng, const struct task_core *core)
{
    static const struct task_part part = {.path = "part"};
    struct task_event event = {.text = "a peer left", .digest = {1, 1}};
    if (core->applying && prng_chance(prng, 2, 3)) {
        event.type = TASK_EVENT_APPLIED;
        event.position = core->position;
        return event;
    }
    switch (prng_below(prng, 9)) {
    case 0:
    case 1:
    case 2:
        event.type =
            task_core_may_enter(core, core->position) ? TASK_EVENT_APPLY : TASK_EVENT_READY;
        event.position =
            event.type == TASK_EVENT_APPLY ? core->position : core->position + prng_below(prng, 90);
        event.cursor = (struct cursor){.stream = 1, .first = core->position};
        event.cursor.begin = core->position;
        event.cursor.steps = prng_below(prng, 90);
        break;
    case 3:
        event.type = prng_chance(prng, 1, 9) ? TASK_EVENT_SYNC_FAILED : TASK_EVENT_SYNCED;
        break;
    case 4:
        event.type = TASK_EVENT_STALLED;
        event.position = core->position;
        break;
    case 5:
        event.type = prng_chance(prng, 1, 6) ? TASK_EVENT_PEER_ERROR : TASK_EVENT_STALLED;
        break;
    case 6:
        event.type = TASK_EVENT_PART;
        event.part = &part;
        break;
    case 7:
        event.type = core->connected ? TASK_EVENT_DISCONNECTED : TASK_EVENT_CONNECTED;
        break;
    default:
        event.type = prng_chance(prng, 1, 40) ? TASK_EVENT_FINISH : TASK_EVENT_READY;
        break;
    }
    return event;
}

static void test_task_core(void **state)
{
    (void)state;
    uint64_t phases[TASK_EXIT + 1] = {0};
    uint64_t applied = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct prng prng = {.state = seed};
        struct task_core core;
        static struct task_actions actions;
        struct roster_entry roster[2];
        task_core_init(&core, 0, 1, 1, 1, "a");
        for (int i = 0; i < EVENTS && core.phase != TASK_EXIT; i++) {
            struct task_down down;
            struct task_event event = any_program_event(&prng, &core);
            if (prng_chance(&prng, 1, 3)) {
                down = any_task_down(&prng, &core, roster);
                event = (struct task_event){.type = TASK_EVENT_DOWN, .down = &down};
            }
            bool was_frozen = core.phase == TASK_FROZEN;
            uint64_t before = core.position;
            uint64_t released = core.released;
            struct generation generation = core.generation;
            task_core_step(&core, &event, &actions);
            const char *broken = task_core_invariant(&core);
            if (broken != NULL) {
                fail_msg("seed %" PRIu64 " event %d: broken: %s", seed, i, broken);
            }
            if (core.position == before + 1 && event.type == TASK_EVENT_APPLIED) {
                applied++;
                assert_true(released > before);
            }
            assert_true(core.generation.number >= generation.number);
            if (was_frozen && core.phase == TASK_RUN) {
                fail_msg("seed %" PRIu64 ": ran on without a plan", seed);
            }
            for (size_t k = 0; k < actions.count; k++) {
                bool frozen_report = actions.items[k].type != TASK_ACTION_SEND ||
                                     actions.items[k].up.type != TASK_UP_REPORT ||
                                     core.phase == TASK_FROZEN;
                assert_true(frozen_report); /* a report is of one that does not move on (rule 6) */
            }
            phases[core.phase]++;
        }
    }
    for (int phase = TASK_JOIN; phase <= TASK_EXIT; phase++) {
        assert_true(phases[phase] > 0); /* the events reach every phase */
    }
    assert_true(applied > SEEDS);
}

struct agent_run {
    struct agent_core *core;
    struct agent_actions actions;
    uint64_t now_us;
    uint32_t places;
};

static struct task_ref any_ref(struct prng *prng)
{
    return (struct task_ref){.job = {1 + (prng_chance(prng, 1, 9) ? 1 : 0)},
        .slot = (uint32_t)prng_below(prng, 2),
        .incarnation = 1 + (prng_chance(prng, 1, 30) ? prng_below(prng, 3) : 0)};
}

static struct agent_down any_agent_down(
    struct prng *prng, struct roster_entry *roster, struct task_ref ref)
{
    struct agent_down down = {.type = AGENT_DOWN_START};
    switch (prng_chance(prng, 1, 9) ? 0 : 1 + prng_below(prng, 7)) {
    case 0:
        down.type = AGENT_DOWN_STOP;
        down.stop = (struct agent_stop){.job = ref.job,
            .one = prng_chance(prng, 1, 2),
            .task = ref,
            .grace_us = prng_below(prng, 30)};
        break;
    case 1:
    case 2:
        down.type = AGENT_DOWN_WELCOME;
        down.welcome.lease_us = prng_below(prng, 50);
        break;
    case 3:
    case 4:
    case 5:
        down.type = AGENT_DOWN_TELL;
        down.tell = (struct agent_tell){.job = ref.job,
            .one = prng_chance(prng, 1, 3),
            .task = ref,
            .down = any_task_down(prng, NULL, roster)};
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
    uint32_t place = (uint32_t)prng_below(prng, run->places);
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
                                     : (enum task_up_type)(TASK_UP_HELLO + prng_below(prng, 5))};
    switch (up.type) {
    case TASK_UP_HELLO:
        up.hello = (struct task_hello){
            .frame_version = TASK_FRAME_VERSION, .library_version = "1", .mesh_address = "a"};
        break;
    case TASK_UP_ARRIVE:
        up.arrive = (struct task_arrive){.generation = any_generation(prng),
            .up_to = clock + prng_below(prng, 40),
            .applied = clock + prng_below(prng, 40),
            .wanted = prng_chance(prng, 1, 2) ? clock + prng_below(prng, 40) : 0};
        break;
    case TASK_UP_REPORT:
        up.report = (struct task_report){.generation = any_generation(prng), .text = "t"};
        break;
    case TASK_UP_PART:
        up.part = (struct task_part){.generation = any_generation(prng), .path = "p"};
        break;
    case TASK_UP_PROGRESS:
        break;
    }
    return up;
}

static uint32_t place_of(struct agent_run *run, struct task_ref ref)
{
    struct agent_task_view view;
    for (uint32_t i = 0; i < run->places; i++) {
        if (agent_core_task(run->core, i, &view) && task_ref_equal(view.task, ref)) {
            return i;
        }
    }
    return run->places;
}

static uint64_t run_agent(uint64_t seed, uint64_t *ret_folds)
{
    struct prng prng = {.state = seed};
    const struct agent_options options = {.slots = 1 + (uint32_t)prng_below(&prng, 3),
        .heartbeat_us = 20,
        .orphan_us = 500,
        .grace_us = 10};
    struct agent_run run = {.places = AGENT_PLACES(options.slots)};
    void *memory = malloc(agent_core_bytes(options.slots));
    assert_non_null(memory);
    run.core = agent_core_init(memory, &options);
    run.actions.capacity = AGENT_ACTIONS_PER_STEP_MAX(options.slots);
    run.actions.items = calloc(run.actions.capacity, sizeof(struct agent_action));
    assert_non_null(run.actions.items);
    bool spawning[AGENT_PLACES(3)] = {false};
    bool prepared[AGENT_PLACES(3)] = {false};
    struct roster_entry roster[2];
    bool up_now = false;
    for (int i = 0; i < EVENTS; i++) {
        struct agent_event event = {.type = AGENT_EVENT_TICK};
        struct agent_down down;
        struct task_up up;
        uint64_t kind = prng_below(&prng, 100);
        if (kind < 30) {
            down = any_agent_down(&prng, roster, any_ref(&prng));
            event = (struct agent_event){.type = AGENT_EVENT_DOWN, .down = &down};
        } else if (kind < 55) {
            if (!any_process_event(&prng, &run, spawning, &event)) {
                continue;
            }
            uint32_t place = place_of(&run, event.task);
            if (event.type == AGENT_EVENT_PREPARED && prepared[place]) {
                continue; /* it waits for its predecessor */
            }
            prepared[place] = event.type == AGENT_EVENT_PREPARED;
            spawning[place] = false;
        } else if (kind < 85) {
            up = any_task_up(&prng, run.now_us);
            event = (struct agent_event){
                .type = AGENT_EVENT_TASK_UP, .task = any_ref(&prng), .up = &up};
        } else if (kind < 90) {
            event = (struct agent_event){.type = AGENT_EVENT_TASK_CLOSED, .task = any_ref(&prng)};
        } else if (kind < 95) {
            event.type = !up_now                    ? AGENT_EVENT_LINK_UP
                         : prng_chance(&prng, 1, 9) ? AGENT_EVENT_LINK_DOWN
                                                    : AGENT_EVENT_TICK;
            up_now = up_now ? event.type != AGENT_EVENT_LINK_DOWN : true;
        } else if (kind == 95 && prng_chance(&prng, 1, 10)) {
            event.type = AGENT_EVENT_DRAIN;
        }
        run.now_us += prng_below(&prng, 5);
        event.now_us = run.now_us;
        run.actions.count = 0;
        agent_core_step(run.core, &event, &run.actions);
        const char *broken = agent_core_invariant(run.core);
        if (broken != NULL) {
            fail_msg("seed %" PRIu64 " event %d: broken: %s", seed, i, broken);
        }
        assert_true(agent_core_wake_us(run.core) > run.now_us);
        for (size_t k = 0; k < run.actions.count; k++) {
            const struct agent_action *action = &run.actions.items[k];
            if (action->type == AGENT_ACTION_SPAWN) {
                spawning[place_of(&run, action->task)] = true;
            } else if (action->type == AGENT_ACTION_PREPARE) {
                spawning[place_of(&run, action->task)] = false;
                prepared[place_of(&run, action->task)] = false;
            } else if (action->type == AGENT_ACTION_SEND && action->up.type == AGENT_UP_ARRIVED) {
                (*ret_folds)++;
            }
        }
    }
    uint64_t digest = agent_core_digest(run.core);
    free(run.actions.items);
    free(memory);
    return digest;
}

static void test_agent_core(void **state)
{
    (void)state;
    uint64_t folds = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t again = 0;
        uint64_t digest = run_agent(seed, &folds);
        assert_true(digest == run_agent(seed, &again));
    }
    assert_true(folds > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_task_core),
        cmocka_unit_test(test_agent_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
