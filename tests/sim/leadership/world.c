/* SPDX-License-Identifier: Apache-2.0
 * Virtual time, the queue of events in the order of (time, serial), and the
 * pool of messages. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/pure/assert.h"

#define PPM 1000000

void world_break(struct world *world, const char *invariant, const char *format, ...)
{
    va_list arguments;
    if (world->broken != NULL) {
        return;
    }
    world->broken = invariant;
    va_start(arguments, format);
    vsnprintf(world->why, sizeof(world->why), format, arguments);
    va_end(arguments);
    world_trace(world, "BROKEN %s: %s", invariant, world->why);
}

void world_trace(struct world *world, const char *format, ...)
{
    va_list arguments;
    if (!world->tracing) {
        return;
    }
    char *row = world->trace[world->trace_count++ % TRACE_ROWS];
    int used = snprintf(row, TRACE_BYTES, "[%10.3f] ", (double)world->now_us / 1e3);
    va_start(arguments, format);
    vsnprintf(row + used, TRACE_BYTES - (size_t)used, format, arguments);
    va_end(arguments);
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->serial < b->serial;
}

void world_push(struct world *world, struct event event)
{
    uint32_t i = world->queued++;
    CADRE_ASSERT(world->queued <= EVENTS_MAX);
    event.serial = ++world->serial;
    while (i > 0 && is_before(&event, &world->queue[(i - 1) / 2])) {
        world->queue[i] = world->queue[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    world->queue[i] = event;
}

bool world_pop(struct world *world, struct event *ret_event)
{
    if (world->queued == 0) {
        return false;
    }
    *ret_event = world->queue[0];
    struct event last = world->queue[--world->queued];
    uint32_t i = 0;
    for (uint32_t child = 1; child < world->queued; child = 2 * i + 1) {
        if (child + 1 < world->queued &&
            is_before(&world->queue[child + 1], &world->queue[child])) {
            child++;
        }
        if (!is_before(&world->queue[child], &last)) {
            break;
        }
        world->queue[i] = world->queue[child];
        i = child;
    }
    world->queue[i] = last;
    return true;
}

uint64_t world_local_us(const struct world *world, const struct node *node)
{
    int64_t drift_us = (int64_t)world->now_us * node->rate_ppm / PPM;
    return node->offset_us + (uint64_t)((int64_t)world->now_us + drift_us) - node->slept_us;
}

uint64_t world_real_us(const struct world *world, const struct node *node, uint64_t local_us)
{
    uint64_t local_now_us = world_local_us(world, node);
    if (local_us <= local_now_us) {
        return world->now_us;
    }
    uint64_t distance_us = local_us - local_now_us;
    uint64_t real_us = distance_us * PPM / (uint64_t)(PPM + node->rate_ppm);
    return world->now_us + real_us + 2;
}

uint64_t world_delay_us(struct world *world)
{
    const struct scenario *scenario = &world->scenario;
    if (world_chance(world, scenario->long_delay_of_1000)) {
        return prng_uniform(&world->prng, 2 * scenario->lease_us) + 1;
    }
    return scenario->delay_us / 2 + prng_uniform(&world->prng, scenario->delay_us) + 1;
}

uint32_t world_take_message(struct world *world)
{
    uint32_t m = 0;
    while (m < MESSAGES_MAX && world->messages[m].used) {
        m++;
    }
    CADRE_ASSERT(m < MESSAGES_MAX);
    world->messages[m].used = true;
    return m;
}

bool world_chance(struct world *world, uint64_t of_1000)
{
    return prng_chance(&world->prng, of_1000, 1000);
}
