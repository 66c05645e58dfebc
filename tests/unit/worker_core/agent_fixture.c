/* SPDX-License-Identifier: Apache-2.0 */
#include "agent_fixture.h"

#include <stdlib.h>
#include <string.h>

struct fixture *fixture_open(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    const struct agent_options options = {
        .slots = SLOTS, .heartbeat_us = 100000, .orphan_us = 50000, .grace_us = GRACE_US};
    void *memory = malloc(agent_core_bytes(SLOTS));
    assert_non_null(memory);
    fixture->core = agent_core_init(memory, &options);
    fixture->actions.capacity = AGENT_ACTIONS_PER_STEP_MAX(SLOTS);
    fixture->actions.items = calloc(fixture->actions.capacity, sizeof(struct agent_action));
    assert_non_null(fixture->actions.items);
    return fixture;
}

void fixture_close(struct fixture *fixture)
{
    free(fixture->core);
    free(fixture->actions.items);
    free(fixture);
}

void step(struct fixture *fixture, struct agent_event event)
{
    event.now_us = fixture->now_us;
    fixture->actions.count = 0;
    agent_core_step(fixture->core, &event, &fixture->actions);
    transcript_agent(&fixture->transcript, &fixture->actions);
    const char *broken = agent_core_invariant(fixture->core);
    if (broken != NULL) {
        fail_msg("broken: %s", broken);
    }
}

void expect(struct fixture *fixture, const char *transcript)
{
    assert_string_equal(fixture->transcript.text, transcript);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
}

struct task_ref task_of(uint64_t job, uint32_t slot, uint64_t incarnation)
{
    return (struct task_ref){.job = {job}, .slot = slot, .incarnation = incarnation};
}

void happens(struct fixture *fixture, enum agent_event_type type, struct task_ref task)
{
    step(fixture, (struct agent_event){.type = type, .task = task, .pid = 4711, .text = ""});
}

void plain(struct fixture *fixture, enum agent_event_type type)
{
    happens(fixture, type, task_of(0, 0, 0));
}

void down(struct fixture *fixture, const struct agent_down *message)
{
    step(fixture, (struct agent_event){.type = AGENT_EVENT_DOWN, .down = message});
}

void welcome(struct fixture *fixture)
{
    plain(fixture, AGENT_EVENT_LINK_UP);
    down(fixture, &(struct agent_down){
                      .type = AGENT_DOWN_WELCOME, .welcome = {.worker = {1}, .lease_us = 30000}});
}

void start(struct fixture *fixture, struct task_ref task)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_START, .start = {.task = task}});
}

void stop_one(struct fixture *fixture, struct task_ref task)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_STOP,
                      .stop = {.job = task.job, .one = true, .task = task, .grace_us = GRACE_US}});
}

void exits(struct fixture *fixture, struct task_ref task, int code)
{
    step(fixture,
        (struct agent_event){.type = AGENT_EVENT_EXITED, .task = task, .exit = {.code = code}});
}

void expect_output(struct fixture *fixture, struct task_ref task, const struct task_up *up)
{
    step(fixture, (struct agent_event){.type = AGENT_EVENT_TASK_UP, .task = task, .up = up});
}

void sends_hello(struct fixture *fixture, struct task_ref task)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .library_version = "1",
                .mesh_address = "127.0.0.1:1"}});
}

void arrives(struct fixture *fixture, struct task_ref task, uint64_t up_to, uint64_t applied)
{
    expect_output(fixture, task,
        &(struct task_up){.type = TASK_UP_ARRIVE,
            .arrive = {.generation = FIRST,
                .up_to = up_to,
                .applied = applied,
                .cursor = {.stream = 1},
                .consumption = {.samples = 10 * applied}}});
}

void plan(struct fixture *fixture, uint64_t job)
{
    const struct roster_entry roster[] = {{.slot = 0, .incarnation = 1, .mesh_address = "a"},
        {.slot = 1, .incarnation = 2, .mesh_address = "b"},
        {.slot = 2, .incarnation = 3, .mesh_address = "c"}};
    down(
        fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                     .relay_down = {.job = {job},
                         .down = {.type = TASK_DOWN_PLAN,
                             .plan = {.generation = FIRST, .roster = roster, .roster_count = 3}}}});
}

void release(struct fixture *fixture, uint64_t job, struct generation generation)
{
    down(fixture, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                      .relay_down = {.job = {job},
                          .down = {.type = TASK_DOWN_RELEASE,
                              .release = {.generation = generation, .up_to = 2}}}});
}

void runs(struct fixture *fixture, struct task_ref task)
{
    start(fixture, task);
    happens(fixture, AGENT_EVENT_PREPARED, task);
    happens(fixture, AGENT_EVENT_SPAWNED, task);
    sends_hello(fixture, task);
}

/* Two tasks of job 1, slots 0 and 1, in the first generation; slot 2 is elsewhere. */
struct fixture *fixture_two_members(void)
{
    struct fixture *fixture = fixture_open();
    welcome(fixture);
    runs(fixture, task_of(1, 0, 1));
    runs(fixture, task_of(1, 1, 2));
    plan(fixture, 1);
    memset(&fixture->transcript, 0, sizeof(fixture->transcript));
    return fixture;
}
