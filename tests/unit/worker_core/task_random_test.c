/* SPDX-License-Identifier: Apache-2.0
 * Thousands of random events, sensible and not, against the task core: plans again and again,
 * joins, halts, failures. Every invariant holds after each, and what a move may and may not do. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/core/task_core.h"

#define SEEDS   2000
#define EVENTS  400
#define STREAMS 2

/* What the events have reached. */
struct seen {
    uint64_t phases[TASK_EXIT + 1];
    uint64_t reasons[REPORT_FAILED + 1];
    uint64_t applied;
    uint64_t adopted;   /* SYNCED one step further than it stood */
    uint64_t joined;    /* SYNCED after JOIN */
    uint64_t regrouped; /* halted before a step that its program had begun */
    uint64_t generations;
    uint64_t begun_reported; /* a report said once more, for the step */
};

static struct generation any_generation(struct prng *prng, const struct task_core *core)
{
    return (struct generation){.number = core->generation.number + prng_uniform(prng, 2),
        .nonce = prng_chance(prng, 1, 10) ? 1 : 0};
}

static uint64_t any_position(struct prng *prng)
{
    return prng_chance(prng, 1, 20) ? POSITION_NONE - prng_uniform(prng, 2)
                                    : prng_uniform(prng, 24);
}

static uint32_t any_stream(struct prng *prng)
{
    return prng_chance(prng, 1, 4) ? STREAM_ANY : 1 + (uint32_t)prng_uniform(prng, STREAMS);
}

static enum task_down_type any_down_type(struct prng *prng, const struct task_core *core)
{
    if (core->phase == TASK_FROZEN && prng_chance(prng, 2, 3)) {
        return TASK_DOWN_PLAN;
    }
    uint64_t kind = prng_uniform(prng, 1000);
    if (kind < 300) {
        return TASK_DOWN_PLAN;
    }
    if (kind < 850) {
        return TASK_DOWN_RELEASE;
    }
    if (kind < 950) {
        return TASK_DOWN_ABORT;
    }
    if (kind < 965) {
        return TASK_DOWN_GOODBYE;
    }
    if (kind < 970) {
        return (enum task_down_type)(TASK_DOWN_SUPERSEDED + prng_uniform(prng, 2));
    }
    return TASK_DOWN_WARM;
}

static struct task_plan any_plan(
    struct prng *prng, const struct task_core *core, struct roster_entry *roster)
{
    bool sensible = prng_chance(prng, 29, 30);
    roster[0] = (struct roster_entry){.slot = 0, .incarnation = sensible ? 1 : 2};
    roster[1] = (struct roster_entry){.slot = 1, .incarnation = 1};
    struct task_plan plan = {.generation = any_generation(prng, core),
        .roster = roster,
        .roster_count = 2,
        .checkpoint_at = POSITION_NONE,
        .halt_at = prng_chance(prng, 1, 20) ? any_position(prng) : POSITION_NONE,
        .halt_kind = (enum halt_kind)prng_uniform(prng, 4),
        .halt_stream = any_stream(prng)};
    if (!sensible) {
        plan.resume = any_position(prng);
        plan.source = (uint32_t)prng_uniform(prng, 3);
        plan.roster_count = 1 + prng_uniform(prng, 2);
        return plan;
    }
    /* It holds r, or it is one step behind, or it is torn, or it comes from nowhere. */
    bool first = core->generation.number == 0 && !core->warm;
    bool ahead = !core->clean || prng_chance(prng, 1, 3);
    plan.resume = core->position + (core->warm ? prng_uniform(prng, 9) : ahead ? 1 : 0);
    plan.source = core->clean && !ahead && prng_chance(prng, 1, 2) ? 0 : 1;
    if (first) {
        plan.resume = prng_chance(prng, 1, 2) ? 0 : prng_uniform(prng, 9);
        plan.source = SOURCE_NONE;
    }
    return plan;
}

static struct task_down any_down(
    struct prng *prng, const struct task_core *core, struct roster_entry *roster)
{
    bool own = prng_chance(prng, 3, 4);
    struct task_down down = {.type = any_down_type(prng, core),
        .generation = own ? core->generation : any_generation(prng, core)};
    switch (down.type) {
    case TASK_DOWN_PLAN:
        down.plan = any_plan(prng, core, roster);
        break;
    case TASK_DOWN_RELEASE:
        down.release = (struct task_release){.generation = down.generation,
            .up_to = prng_chance(prng, 3, 4) ? core->arrived : any_position(prng),
            .checkpoint_at = prng_chance(prng, 1, 9) ? any_position(prng) : POSITION_NONE,
            .halt_at = POSITION_NONE,
            .published = prng_chance(prng, 1, 2) ? core->position : POSITION_NONE};
        if (prng_chance(prng, 1, 8)) {
            down.release.halt_at = prng_chance(prng, 1, 9) ? any_position(prng) : core->released;
            down.release.up_to = core->released;
            down.release.halt_kind = prng_chance(prng, 5, 6) ? HALT_REGROUP : HALT_STOP;
            down.release.halt_stream = any_stream(prng);
        }
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

static void begin_step(struct prng *prng, const struct task_core *core, struct task_event *event)
{
    event->type = TASK_EVENT_READY;
    event->position = core->position + prng_uniform(prng, 90);
    event->cursor = core->cursor;
    if (core->cursor.stream == 0 || prng_chance(prng, 1, 5)) {
        event->cursor = (struct cursor){.stream = 1 + (uint32_t)prng_uniform(prng, STREAMS),
            .first = core->position,
            .begin = core->position,
            .steps = prng_uniform(prng, 90)};
    }
}

/* What a correct shell may do in this state. */
static struct task_event any_program_event(struct prng *prng, const struct task_core *core)
{
    static const struct task_part part = {.path = "part"};
    static const struct task_stream stream = {.stream = 1, .name = "d"};
    static const struct task_stall stall = {.slot = 1};
    struct task_event event = {.text = "a peer left",
        .code = CADRE_INTERNAL,
        .consumption.samples = core->consumption.samples + 1,
        .part = &part,
        .stream = &stream,
        .stall = &stall,
        .position = core->position};
    uint64_t kind = prng_uniform(prng, 1000);
    if (core->applying && kind < 600) {
        event.type = TASK_EVENT_APPLIED;
    } else if (core->phase == TASK_SYNC && kind < 600) {
        event.type = TASK_EVENT_SYNCED;
        event.cursor.stream = 1;
    } else if (core->phase == TASK_JOIN && core->warm && kind < 300) {
        event.type = TASK_EVENT_JOIN;
        event.cursor.stream = 1 + (uint32_t)prng_uniform(prng, STREAMS);
    } else if (task_core_halts_next(core) && kind < 400) {
        event.type = TASK_EVENT_PAUSE_POINT;
    } else if (!core->applying && kind < 500) {
        event.type = task_core_may_enter(core, core->position) && core->begun ? TASK_EVENT_APPLY
                                                                              : TASK_EVENT_READY;
        if (event.type == TASK_EVENT_READY) {
            begin_step(prng, core, &event);
        }
    } else if (kind < 620 && core->begun && core->wanted > core->resume) {
        event.type = TASK_EVENT_STALLED;
    } else if (kind < 640) {
        event.type = TASK_EVENT_SYNC_FAILED;
    } else if (kind < 680) {
        event.type = TASK_EVENT_PEER_ERROR;
    } else if (kind < 760) {
        event.type = TASK_EVENT_PART;
    } else if (kind < 820) {
        event.type = core->connected ? TASK_EVENT_DISCONNECTED : TASK_EVENT_CONNECTED;
    } else if (kind < 850) {
        event.type = TASK_EVENT_FLUSH;
    } else if (kind < 880) {
        event.type = TASK_EVENT_TICK;
    } else if (kind < 885) {
        event.type = TASK_EVENT_PAUSE_POINT;
    } else if (kind < 900) {
        event.type = TASK_EVENT_END;
        event.cursor = core->cursor;
        event.cursor.steps = core->position - core->cursor.first;
    } else if (kind < 920) {
        event.type = TASK_EVENT_STREAM;
    } else if (kind < 995) {
        event.type = TASK_EVENT_STALL;
    } else if (kind < 998) {
        event.type = core->applying ? TASK_EVENT_FLUSH : TASK_EVENT_FINISH;
    } else {
        event.type = TASK_EVENT_FAILED;
    }
    return event;
}

/* What is said is true of the state that follows. */
static void check_sent_messages(const struct task_core *core, const struct task_up *up)
{
    switch (up->type) {
    case TASK_UP_REPORT: /* a report is of one that does not move on (rule 6) */
        assert_int_equal(core->phase, TASK_FROZEN);
        assert_false(core->applying);
        assert_true(up->report.begun == core->begun);
        assert_true(generation_equal(up->report.generation, core->generation));
        break;
    case TASK_UP_ARRIVE:
        assert_true(up->arrive.up_to >= core->released);
        assert_true(up->arrive.applied <= core->position);
        assert_true(up->arrive.wanted <= core->position + 1);
        assert_true(generation_equal(up->arrive.generation, core->generation));
        break;
    case TASK_UP_PART:
        assert_true(generation_equal(up->part.generation, core->generation));
        break;
    case TASK_UP_JOIN:
        assert_int_equal(core->phase, TASK_JOIN);
        break;
    case TASK_UP_STALL:
        assert_true(core->phase == TASK_SYNC || core->phase == TASK_RUN ||
                    (core->phase == TASK_FROZEN && core->reason == REPORT_FINISHED));
        break;
    case TASK_UP_HELLO:
    case TASK_UP_PREEMPT:
    case TASK_UP_PROGRESS:
    case TASK_UP_SHARDS:
    case TASK_UP_STREAM:
        break;
    case TASK_UP_BACKED: /* only servers do */
    case TASK_UP_VALUES: /* the shell sends these two */
    case TASK_UP_SPANS:
        fail();
    }
    assert_true(core->connected);
}

static void check_move(const struct task_core *before, const struct task_core *after,
    const struct task_event *event, struct seen *seen)
{
    assert_true(after->generation.number >= before->generation.number);
    assert_true(after->window_steps >= before->window_steps); /* it outlives generations */
    assert_false(before->phase == TASK_FROZEN && after->phase == TASK_RUN);
    if (after->generation.number > before->generation.number) {
        /* Nothing of the older one is claimed in the newer. */
        assert_true(after->arrived == after->resume && after->wanted == after->resume);
        assert_true(after->released == after->resume && after->position == before->position);
        assert_true(after->begun == before->begun);
        seen->generations++;
    }
    if (after->position != before->position) {
        bool applies = event->type == TASK_EVENT_APPLIED && before->released > before->position;
        assert_true(applies || (event->type == TASK_EVENT_SYNCED && !before->clean));
        seen->applied += applies ? 1 : 0;
        seen->adopted +=
            !applies && !before->warm && after->position == before->position + 1 ? 1 : 0;
    }
    seen->joined += before->joins && after->phase == TASK_RUN ? 1 : 0;
    seen->phases[after->phase]++;
    if (before->phase != TASK_FROZEN && after->phase == TASK_FROZEN) {
        seen->reasons[after->reason]++;
        if (after->reason == REPORT_HALT && after->halt_kind == HALT_STOP) {
            assert_true(event->type == TASK_EVENT_PAUSE_POINT && task_core_stops(after));
        }
        if (after->reason == REPORT_HALT && after->halt_kind == HALT_REGROUP) {
            assert_true(event->type == TASK_EVENT_PAUSE_POINT && task_core_halts_next(before));
            assert_true(after->begun && after->position == after->halt_at);
            seen->regrouped++;
        }
    }
}

static void run_task(uint64_t seed, struct seen *seen)
{
    struct prng prng = {.state = seed};
    struct task_core core;
    static struct task_actions actions;
    struct roster_entry roster[2];
    task_core_init(&core, 0, 1, 1, 1, "a");
    for (int i = 0; i < EVENTS && core.phase != TASK_EXIT; i++) {
        struct task_down down;
        struct task_event event = any_program_event(&prng, &core);
        if (prng_chance(&prng, 1, 3)) {
            down = any_down(&prng, &core, roster);
            event = (struct task_event){.type = TASK_EVENT_DOWN, .down = &down};
        }
        struct task_core before = core;
        task_core_step(&core, &event, &actions);
        const char *broken = task_core_invariant(&core);
        if (broken != NULL) {
            fail_msg("seed %" PRIu64 " event %d: broken: %s", seed, i, broken);
        }
        check_move(&before, &core, &event, seen);
        for (size_t k = 0; k < actions.count; k++) {
            if (actions.items[k].type == TASK_ACTION_SEND) {
                check_sent_messages(&core, &actions.items[k].up);
            }
            bool report = actions.items[k].type == TASK_ACTION_SEND &&
                          actions.items[k].up.type == TASK_UP_REPORT;
            seen->begun_reported += report && event.type == TASK_EVENT_READY ? 1 : 0;
        }
    }
}

static void test_task_core(void **state)
{
    (void)state;
    struct seen seen = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        run_task(seed, &seen);
    }
    /* The events reach every phase and every reason, and the rarer moves. */
    for (int phase = TASK_JOIN; phase <= TASK_EXIT; phase++) {
        assert_true(seen.phases[phase] > SEEDS / 10);
    }
    for (int reason = REPORT_HALT; reason <= REPORT_FAILED; reason++) {
        assert_true(seen.reasons[reason] > SEEDS / 10);
    }
    assert_true(seen.applied > SEEDS);
    assert_true(seen.adopted > SEEDS / 10);
    assert_true(seen.joined > SEEDS / 10);
    assert_true(seen.regrouped > SEEDS / 10);
    assert_true(seen.begun_reported > SEEDS / 10);
    assert_true(seen.generations > 2 * SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_task_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
