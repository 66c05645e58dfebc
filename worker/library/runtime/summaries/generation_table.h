/* SPDX-License-Identifier: Apache-2.0
 * The generations that a task was in, as a table in Markdown: which tasks, after which step, why.
 * Pure. */
#ifndef CADRE_RUNTIME_SUMMARIES_GENERATION_TABLE_H
#define CADRE_RUNTIME_SUMMARIES_GENERATION_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

#define GENERATION_ROWS_MAX   32
#define GENERATION_TASKS_TEXT 96
#define GENERATION_WHY_TEXT   224

struct generation_row {
    uint64_t number;
    uint64_t position; /* steps that were applied before it */
    uint32_t task_count;
    char tasks[GENERATION_TASKS_TEXT]; /* "0-3, 5" */
    char why[GENERATION_WHY_TEXT];
};

/* {0} is empty. */
struct generation_table {
    struct generation_row rows[GENERATION_ROWS_MAX]; /* the newest, the oldest first */
    uint32_t count;
    uint32_t *slots; /* owned; of the newest generation, rising */
    uint32_t slot_count;
};

/* Frees what it owns, and empties it. */
void generation_table_clear(struct generation_table *table);

/* Adds generation `number`, of the tasks `slots` in any order; `restores`: it goes on from a
 * checkpoint. Why it came follows from these and the generation before, if the task was in one.
 * RESOURCE_EXHAUSTED: no memory; nothing is added. */
cadre_status generation_table_add(struct generation_table *table, uint64_t number,
    uint64_t position, const uint32_t slots[], uint32_t slot_count, bool restores,
    struct cadre_error *error);

/* The table as text; *ret_text is the caller's to free(). NULL: no memory. */
char *generation_table_text(const struct generation_table *table);

#endif
