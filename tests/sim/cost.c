/* SPDX-License-Identifier: Apache-2.0 */
#include "cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/pure/assert.h"

#define ADDRESS "10.11.12.13:40123/5e1c07a9d2f4" /* as a task's mesh listener has it */

static const char *const kind_names[COST_KINDS] = {[COST_JOIN] = "joins",
    [COST_PLAN] = "plans",
    [COST_STEP] = "steps",
    [COST_CHECKPOINT] = "checkpoints",
    [COST_DRAIN] = "drains",
    [COST_END] = "ends",
    [COST_OTHER] = "other"};

void cost_open(struct cost *cost)
{
    *cost = (struct cost){.arena = wire_arena_new(LIMIT_UNPACK_BYTES),
        .roster = calloc(LIMIT_TASKS_PER_JOB, sizeof *cost->roster)};
    CADRE_ASSERT(cost->arena != NULL && cost->roster != NULL);
}

void cost_close(struct cost *cost)
{
    wire_buffer_free(&cost->buffer);
    wire_arena_free(cost->arena);
    free(cost->roster);
}

void cost_print(const struct cost *cost, uint32_t tasks)
{
    printf("%-12s %9s %9s %11s %11s %8s %8s %8s\n", "coordinator", "down", "up", "bytes down",
        "bytes up", "largest", "a task", "CPU ms");
    for (int kind = 0; kind < COST_KINDS; kind++) {
        const struct cost_row *row = &cost->rows[kind];
        printf("%-12s %9" PRIu64 " %9" PRIu64 " %11" PRIu64 " %11" PRIu64 " %8" PRIu64
               " %8.0f %8.1f\n",
            kind_names[kind], row->down, row->up, row->down_bytes, row->up_bytes, row->largest,
            (double)(row->down_bytes + row->up_bytes) / tasks, row->seconds * 1e3);
    }
}

double cost_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- up ---- */

static enum cost_kind kind_of_task_up(enum task_up_type type)
{
    switch (type) {
    case TASK_UP_HELLO:
    case TASK_UP_JOIN:
        return COST_JOIN;
    case TASK_UP_REPORT:
        return COST_PLAN;
    case TASK_UP_ARRIVE:
        return COST_STEP;
    case TASK_UP_PART:
    case TASK_UP_PREEMPT:
        return COST_CHECKPOINT;
    default:
        return COST_OTHER;
    }
}

static enum cost_kind kind_of_up(const struct agent_up *up)
{
    switch (up->type) {
    case AGENT_UP_HELLO:
    case AGENT_UP_TASK_STARTED:
        return COST_JOIN;
    case AGENT_UP_ARRIVED:
        return COST_STEP;
    case AGENT_UP_DRAINING:
        return COST_DRAIN;
    case AGENT_UP_TASK_GONE:
    case AGENT_UP_TASK_COLLECTED:
        return COST_END;
    case AGENT_UP_RELAY:
        return kind_of_task_up(up->relay_up.up.type);
    default:
        return COST_OTHER;
    }
}

enum cost_kind cost_of_event(const struct core_event *event)
{
    switch (event->type) {
    case CORE_EVENT_AGENT_UP:
        return kind_of_up(event->agent.up);
    case CORE_EVENT_CHECKPOINT:
        return COST_CHECKPOINT;
    case CORE_EVENT_DRAIN:
        return COST_DRAIN;
    default:
        return COST_OTHER;
    }
}

/* Processes and addresses that a real one would have. */
static struct agent_up with_what_is_not_modelled(const struct agent_up *up)
{
    struct agent_up sent = *up;
    if (sent.type == AGENT_UP_TASK_STARTED) {
        sent.started.pid = 41123;
    } else if (sent.type == AGENT_UP_RELAY && sent.relay_up.up.type == TASK_UP_HELLO) {
        sent.relay_up.up.hello.pid = 41123;
        sent.relay_up.up.hello.mesh_address = ADDRESS;
    }
    return sent;
}

void cost_event(struct cost *cost, const struct core_event *event, double seconds)
{
    struct cost_row *row = &cost->rows[cost_of_event(event)];
    struct cadre_error error;
    struct agent_up received;
    row->seconds += seconds;
    if (event->type != CORE_EVENT_AGENT_UP) {
        return;
    }
    const struct agent_up sent = with_what_is_not_modelled(event->agent.up);
    wire_buffer_clear(&cost->buffer);
    wire_arena_reset(cost->arena);
    CADRE_ASSERT(wire_pack_agent_up(&sent, &cost->buffer, &error) == CADRE_OK);
    double start_s = cost_now();
    CADRE_ASSERT(wire_unpack_agent_up(cost->buffer.bytes, cost->buffer.size, cost->arena, &received,
                     &error) == CADRE_OK);
    row->seconds += cost_now() - start_s;
    row->up++;
    row->up_bytes += cost->buffer.size;
    row->largest = cost->buffer.size > row->largest ? cost->buffer.size : row->largest;
}

/* ---- down ---- */

static enum cost_kind kind_of_down(const struct agent_down *down)
{
    if (down->type != AGENT_DOWN_RELAY) {
        return down->type == AGENT_DOWN_STOP || down->type == AGENT_DOWN_FORGET ? COST_END
                                                                                : COST_JOIN;
    }
    const struct task_down *body = &down->relay_down.down;
    switch (body->type) {
    case TASK_DOWN_PLAN:
    case TASK_DOWN_ABORT:
        return COST_PLAN;
    case TASK_DOWN_RELEASE:
        return COST_STEP;
    case TASK_DOWN_GOODBYE:
        return COST_END;
    case TASK_DOWN_WARM:
        return COST_JOIN;
    default:
        return COST_OTHER;
    }
}

/* The cost is behind the sender's user. */
struct costed {
    struct cost *cost;
    const struct sender *of;
    enum cost_kind kind;
};

static void on_down(void *user, struct link_id link, const struct agent_down *down)
{
    struct costed *costed = user;
    struct cost *cost = costed->cost;
    struct cadre_error error;
    struct agent_down sent = *down;
    (void)link;
    costed->kind = kind_of_down(down);
    if (down->type == AGENT_DOWN_RELAY && down->relay_down.down.type == TASK_DOWN_PLAN) {
        struct task_plan *plan = &sent.relay_down.down.plan;
        for (size_t i = 0; i < plan->roster_count; i++) {
            cost->roster[i] = plan->roster[i];
            cost->roster[i].mesh_address = ADDRESS;
        }
        plan->roster = cost->roster;
    }
    struct cost_row *row = &cost->rows[costed->kind];
    wire_buffer_clear(&cost->buffer);
    CADRE_ASSERT(wire_pack_agent_down(&sent, &cost->buffer, &error) == CADRE_OK);
    row->down++;
    row->down_bytes += cost->buffer.size;
    row->largest = cost->buffer.size > row->largest ? cost->buffer.size : row->largest;
}

static const struct job_spec *spec_of(void *user, struct job_id job)
{
    const struct sender *of = ((struct costed *)user)->of;
    return of->spec(of->user, job);
}

static void key_of(void *user, struct job_id job, struct generation generation,
    uint8_t ret_key[LIMIT_JOB_KEY_BYTES])
{
    const struct sender *of = ((struct costed *)user)->of;
    of->key(of->user, job, generation, ret_key);
}

static void on_start(void *user, struct job_id job, uint32_t slot)
{
    (void)user;
    (void)job;
    (void)slot;
}

void cost_action(struct cost *cost, const struct sender *sender, const struct core_action *action)
{
    struct costed costed = {.cost = cost, .of = sender, .kind = COST_OTHER};
    struct sender counted = *sender;
    struct cadre_error error;
    counted.user = &costed;
    counted.down = on_down;
    counted.spec = spec_of;
    counted.key = key_of;
    counted.members = NULL;
    counted.starts = on_start;
    double start_s = cost_now();
    CADRE_ASSERT(messages_dispatch(&counted, action, &error) == CADRE_OK);
    cost->rows[costed.kind].seconds += cost_now() - start_s;
}
