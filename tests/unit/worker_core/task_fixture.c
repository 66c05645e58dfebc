/* SPDX-License-Identifier: Apache-2.0 */
#include "task_fixture.h"

#include <string.h>

struct fixture fixture_make(void)
{
    struct fixture fixture;
    memset(&fixture, 0, sizeof(fixture));
    task_core_init(&fixture.core, 1, 5, 2, 4711, "127.0.0.1:40000");
    return fixture;
}

struct fixture fixture_running(uint64_t steps)
{
    struct fixture fixture = fixture_make();
    simple(&fixture, TASK_EVENT_CONNECTED, 0);
    plan_from(&fixture, FIRST, 0, 1);
    simple(&fixture, TASK_EVENT_SYNCED, 0);
    ready(&fixture, 1, 0, steps, steps);
    forget(&fixture);
    return fixture;
}

void step(struct fixture *fixture, const struct task_event *event)
{
    static struct task_actions actions;
    task_core_step(&fixture->core, event, &actions);
    const char *broken = task_core_invariant(&fixture->core);
    if (broken != NULL) {
        fail_msg("broken: %s", broken);
    }
    transcript_task(&fixture->transcript, &actions);
}

void expect(struct fixture *fixture, const char *transcript)
{
    assert_string_equal(fixture->transcript.text, transcript);
    forget(fixture);
}

void forget(struct fixture *fixture)
{
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
}

void simple(struct fixture *fixture, enum task_event_type type, uint64_t position)
{
    step(fixture, &(struct task_event){.type = type, .position = position});
}

void ready(
    struct fixture *fixture, uint32_t stream, uint64_t first, uint64_t steps, uint64_t position)
{
    step(
        fixture, &(struct task_event){.type = TASK_EVENT_READY,
                     .position = position,
                     .cursor = {.stream = stream, .first = first, .begin = first, .steps = steps}});
}

void apply_step(struct fixture *fixture, uint64_t position)
{
    assert_true(task_core_may_enter(&fixture->core, position));
    simple(fixture, TASK_EVENT_APPLY, position);
    assert_true(fixture->core.applying);
    simple(fixture, TASK_EVENT_APPLIED, position);
}

void peer_error(struct fixture *fixture, const char *text)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_PEER_ERROR, .text = text});
}

void down(struct fixture *fixture, const struct task_down *message)
{
    step(fixture, &(struct task_event){.type = TASK_EVENT_DOWN, .down = message});
}

void sent(struct fixture *fixture, enum task_down_type type, struct generation generation)
{
    down(fixture, &(struct task_down){
                      .type = type, .generation = generation, .reason = "task 0 died of signal 9"});
}

void plan_from(
    struct fixture *fixture, struct generation generation, uint64_t resume, uint32_t source)
{
    const struct roster_entry roster[] = {
        {.slot = 0, .incarnation = 4, .replicas = 2, .mesh_address = "127.0.0.1:40001"},
        {.slot = 1, .incarnation = 5, .replicas = 2, .mesh_address = "127.0.0.1:40000"},
    };
    down(fixture, &(struct task_down){.type = TASK_DOWN_PLAN,
                      .plan = {.generation = generation,
                          .roster = roster,
                          .roster_count = 2,
                          .resume = resume,
                          .source = source,
                          .checkpoint_at = POSITION_NONE,
                          .halt_at = POSITION_NONE}});
}

void release_halt(struct fixture *fixture, struct generation generation, uint64_t up_to,
    uint64_t halt_at, enum halt_kind kind, uint32_t stream)
{
    down(fixture, &(struct task_down){.type = TASK_DOWN_RELEASE,
                      .release = {.generation = generation,
                          .up_to = up_to,
                          .checkpoint_at = POSITION_NONE,
                          .halt_at = halt_at,
                          .halt_kind = kind,
                          .halt_stream = stream,
                          .published = POSITION_NONE}});
}

void release(struct fixture *fixture, uint64_t up_to)
{
    release_halt(fixture, fixture->core.generation, up_to, POSITION_NONE, HALT_NONE, 0);
}
