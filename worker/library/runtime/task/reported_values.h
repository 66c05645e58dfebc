/* SPDX-License-Identifier: Apache-2.0
 * The values that the program reported and that the coordinator has not stored yet, each with its
 * step. The chief sends them; every other task keeps its newest ones, because it may be the next
 * chief: then it sends those that the one before may not have sent. An evaluator sends its own.
 * Called under the task's lock. */
#ifndef CADRE_RUNTIME_REPORTED_VALUES_H
#define CADRE_RUNTIME_REPORTED_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/limits.h"
#include "common/model/task_message.h"

struct kept_value;

/* Zeroed: none. */
struct reported_values {
    struct generation generation; /* number 0: none yet */
    bool is_chief;                /* in that generation: it sends */
    bool numbered;                /* steps are the program's own numbers */
    uint64_t lap;
    uint64_t step; /* the newest of that lap */
    uint32_t name_count;
    char names[LIMIT_METRICS][LIMIT_NAME_BYTES];
    uint64_t counts[LIMIT_METRICS]; /* values of each name */
    struct kept_value *values;      /* owned; by rising numbers */
    size_t count;
    size_t capacity;
    uint64_t reported; /* the number of the newest value, from 1 */
    uint64_t sent;
    uint64_t stored;
    uint64_t sent_us; /* when something was sent last */
};

/* Frees what it owns. */
void reported_values_free(struct reported_values *values);

/* A generation begins with the steps after `resume`. The steps of the ledger that it does again
 * have no values any more; all others are of this generation, and are sent again. */
void reported_values_begin(
    struct reported_values *values, struct generation generation, uint64_t resume, bool is_chief);

/* Adds a value. `numbered`: `step` is the program's own number, or STEP_COUNTED; else a position.
 * Always the same. False: no memory, or a name beyond LIMIT_METRICS; nothing changed. */
bool reported_values_add(
    struct reported_values *values, const char *name, uint64_t step, bool numbered, double value);

/* Whether there is enough to send, or it has waited long enough; or all that is there is `wanted`.
 */
bool reported_values_are_due(const struct reported_values *values, uint64_t now_us, bool wanted);

/* The next message: at most LIMIT_REPORTED_VALUES values, in `items`, which has room for so many.
 * False: there is none now; the one before it is not acknowledged, say. Borrowed until the next
 * call of this file. */
bool reported_values_next(struct reported_values *values, uint64_t now_us,
    struct reported_value *items, const char **names, struct task_values *ret_message);

/* The coordinator has stored all up to `end`. */
void reported_values_stored(struct reported_values *values, uint64_t end);

/* What is not stored is sent again, because the connection is new or the answer is overdue. */
void reported_values_again(struct reported_values *values);
/* Whether the coordinator has not answered for so long that it may not have received it. */
bool reported_values_are_overdue(const struct reported_values *values, uint64_t now_us);

/* Whether this task is to deliver more than is stored. */
bool reported_values_are_left(const struct reported_values *values);

#endif
