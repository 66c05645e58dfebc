/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/reported_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/task/task.h"

#define SEND_EVERY_US (CADRE_US_PER_S / 2)
#define SEND_AT       512 /* values that do not wait any longer */
#define AGAIN_US      CADRE_US_PER_S
#define KEPT_MAX      ((size_t)64 * 1024) /* of a chief; some minutes of steps of 1 ms */
#define KEPT_OTHERS   ((size_t)2048)      /* more steps than a chief may take without a release */
#define KEPT_FIRST    ((size_t)256)

struct kept_value {
    uint64_t number;
    uint64_t lap;
    struct reported_value value;
};

void reported_values_free(struct reported_values *values)
{
    free(values->values);
    *values = (struct reported_values){0};
}

/* The index of the first value with a higher number. */
static size_t index_after(const struct reported_values *values, uint64_t number)
{
    size_t low = 0;
    size_t high = values->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values->values[middle].number <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void drop_first(struct reported_values *values, size_t count)
{
    CADRE_ASSERT(count <= values->count);
    values->count -= count;
    memmove(values->values, values->values + count, values->count * sizeof values->values[0]);
}

void reported_values_begin(
    struct reported_values *values, struct generation generation, uint64_t resume, bool is_chief)
{
    size_t kept = 0;
    for (size_t i = 0; i < values->count; i++) {
        if (values->numbered || values->values[i].value.step <= resume) {
            values->values[kept++] = values->values[i];
        }
    }
    values->count = kept;
    values->generation = generation;
    values->is_chief = is_chief;
    values->sent = kept > 0 ? values->values[0].number - 1 : values->reported;
    values->stored = values->sent;
}

/* Every second value of those that were not sent yet, so that the curve keeps its shape. */
static void reported_values_thin(struct reported_values *values)
{
    size_t kept = index_after(values, values->sent);
    for (size_t i = kept + 1; i < values->count; i += 2) {
        values->values[kept++] = values->values[i];
    }
    values->count = kept;
}

static bool reported_values_make_room(struct reported_values *values)
{
    size_t most = values->is_chief ? KEPT_MAX : KEPT_OTHERS;
    if (values->count >= most && values->is_chief) {
        reported_values_thin(values);
    } else if (values->count >= most) {
        drop_first(values, most / 2);
    }
    if (values->count < values->capacity) {
        return true;
    }
    size_t capacity = values->capacity > 0 ? values->capacity * 2 : KEPT_FIRST;
    struct kept_value *grown = realloc(values->values, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    values->values = grown;
    values->capacity = capacity;
    return true;
}

/* LIMIT_METRICS: there is no room for another name. */
static uint32_t index_of(struct reported_values *values, const char *name)
{
    uint32_t at = 0;
    while (at < values->name_count && strcmp(values->names[at], name) != 0) {
        at++;
    }
    if (at == values->name_count && at < LIMIT_METRICS) {
        snprintf(values->names[at], sizeof values->names[at], "%s", name);
        values->name_count++;
    }
    return at;
}

bool reported_values_add(
    struct reported_values *values, const char *name, uint64_t step, bool numbered, double value)
{
    CADRE_ASSERT(strlen(name) < LIMIT_NAME_BYTES); /* the caller has checked it */
    uint32_t at = index_of(values, name);
    if (at == LIMIT_METRICS || !reported_values_make_room(values)) {
        return false;
    }
    values->counts[at]++;
    if (step == STEP_COUNTED) { /* a name that is reported more seldom does not go back */
        step = values->counts[at] > values->step ? values->counts[at] : values->step;
    }
    step = step <= LIMIT_POSITION ? step : LIMIT_POSITION;
    values->numbered = numbered;
    if (numbered && (values->lap == 0 || step < values->step)) {
        values->lap++;
    }
    values->step = step;
    values->reported++;
    values->values[values->count++] = (struct kept_value){.number = values->reported,
        .lap = values->lap,
        .value = {.name = at, .step = step, .value = value}};
    return true;
}

/* One message at a time: the coordinator never has later values without those before them. */
static bool can_send(const struct reported_values *values)
{
    return values->is_chief && values->generation.number > 0 && values->count > 0 &&
           values->values[values->count - 1].number > values->sent &&
           values->sent == values->stored;
}

bool reported_values_are_due(const struct reported_values *values, uint64_t now_us, bool wanted)
{
    return can_send(values) && (wanted || values->reported - values->sent >= SEND_AT ||
                                   now_us - values->sent_us >= SEND_EVERY_US);
}

bool reported_values_next(struct reported_values *values, uint64_t now_us,
    struct reported_value *items, const char **names, struct task_values *ret_message)
{
    size_t count = 0;
    if (!can_send(values)) {
        return false;
    }
    size_t first = index_after(values, values->sent);
    uint64_t lap = values->values[first].lap;
    while (count < LIMIT_REPORTED_VALUES && first + count < values->count &&
           values->values[first + count].lap == lap) {
        items[count] = values->values[first + count].value;
        count++;
    }
    for (uint32_t i = 0; i < values->name_count; i++) {
        names[i] = values->names[i];
    }
    values->sent = values->values[first + count - 1].number;
    values->sent_us = now_us;
    *ret_message = (struct task_values){.generation = values->generation,
        .numbered = values->numbered,
        .lap = lap,
        .names = names,
        .name_count = values->name_count,
        .values = items,
        .value_count = count,
        .end = values->sent};
    return true;
}

void reported_values_stored(struct reported_values *values, uint64_t end)
{
    if (end <= values->stored || end > values->sent) {
        return; /* of an earlier connection */
    }
    values->stored = end;
    drop_first(values, index_after(values, end));
}

void reported_values_again(struct reported_values *values)
{
    values->sent = values->stored;
}

bool reported_values_are_overdue(const struct reported_values *values, uint64_t now_us)
{
    return values->sent > values->stored && now_us - values->sent_us >= AGAIN_US;
}

bool reported_values_are_left(const struct reported_values *values)
{
    return values->is_chief && values->generation.number > 0 && values->count > 0;
}
