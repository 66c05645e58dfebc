/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/summaries/generation_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

#define HEAD          "| generation | after step | tasks | which | why |\n|---|---|---|---|---|\n"
#define ROW_BYTES_MAX (GENERATION_TASKS_TEXT + GENERATION_WHY_TEXT + 96)

void generation_table_clear(struct generation_table *table)
{
    free(table->slots);
    *table = (struct generation_table){0};
}

/* --- text of a fixed size: what does not fit ends with "..." --- */

__attribute__((format(printf, 3, 4))) static void table_append(
    char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
    if (wanted < 0 || (size_t)wanted >= size - used) {
        memcpy(text + size - 4, "...", 4);
    }
}

static int compare_slots(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* "0-3, 5" of slots that rise. */
static void describe_slots(const uint32_t slots[], uint32_t count, char *text, size_t size)
{
    for (uint32_t i = 0; i < count;) {
        uint32_t last = i;
        while (last + 1 < count && slots[last + 1] == slots[last] + 1) {
            last++;
        }
        table_append(text, size, "%s%" PRIu32, i > 0 ? ", " : "", slots[i]);
        if (last > i) {
            table_append(text, size, "%s%" PRIu32, last > i + 1 ? "-" : ", ", slots[last]);
        }
        i = last + 1;
    }
}

/* --- why --- */

/* Those of `slots` that are not in `others`; both rise. */
static uint32_t select_new(const uint32_t slots[], uint32_t count, const uint32_t others[],
    uint32_t other_count, uint32_t ret_new[])
{
    uint32_t found = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (at < other_count && others[at] < slots[i]) {
            at++;
        }
        if (at == other_count || others[at] != slots[i]) {
            ret_new[found++] = slots[i];
        }
    }
    return found;
}

static void describe_change(
    const uint32_t slots[], uint32_t count, const char *what, char *text, size_t size)
{
    if (count > 0) {
        table_append(text, size, "%stask%s ", text[0] != '\0' ? "; " : "", count > 1 ? "s" : "");
        char list[GENERATION_TASKS_TEXT] = "";
        describe_slots(slots, count, list, sizeof list);
        table_append(text, size, "%s %s", list, what);
    }
}

static void describe_why(const struct generation_table *table, const struct generation_row *row,
    const uint32_t slots[], uint32_t scratch[], bool restores, char *text, size_t size)
{
    if (table->count > 0) {
        uint32_t left =
            select_new(table->slots, table->slot_count, slots, row->task_count, scratch);
        describe_change(scratch, left, "left", text, size);
        uint32_t joined =
            select_new(slots, row->task_count, table->slots, table->slot_count, scratch);
        describe_change(scratch, joined, "joined", text, size);
        if (left + joined == 0) {
            table_append(text, size, "a connection was lost, or a task started again");
        }
    } else if (restores) {
        table_append(text, size, "all began again from the checkpoint after %" PRIu64 " steps",
            row->position);
    } else if (row->position > 0) {
        table_append(text, size, "this task joined");
    } else {
        table_append(text, size, row->number > 1 ? "all began again from the start" : "started");
    }
}

/* --- the table --- */

cadre_status generation_table_add(struct generation_table *table, uint64_t number,
    uint64_t position, const uint32_t slots[], uint32_t slot_count, bool restores,
    struct cadre_error *error)
{
    CADRE_ASSERT(slot_count > 0);
    bool fails = fault_point("event.memory");
    uint32_t *sorted = fails ? NULL : calloc(slot_count, sizeof *sorted);
    uint32_t *scratch = calloc((size_t)slot_count + table->slot_count, sizeof *scratch);
    if (sorted == NULL || scratch == NULL) {
        free(sorted);
        free(scratch);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a generation's row");
    }
    memcpy(sorted, slots, slot_count * sizeof *sorted);
    qsort(sorted, slot_count, sizeof *sorted, compare_slots);
    struct generation_row row = {.number = number, .position = position, .task_count = slot_count};
    describe_slots(sorted, slot_count, row.tasks, sizeof row.tasks);
    describe_why(table, &row, sorted, scratch, restores, row.why, sizeof row.why);
    free(scratch);
    free(table->slots);
    table->slots = sorted;
    table->slot_count = slot_count;
    if (table->count == GENERATION_ROWS_MAX) {
        memmove(table->rows, table->rows + 1, sizeof table->rows - sizeof table->rows[0]);
        table->count--;
    }
    table->rows[table->count++] = row;
    return CADRE_OK;
}

char *generation_table_text(const struct generation_table *table)
{
    size_t size = sizeof HEAD + (size_t)table->count * ROW_BYTES_MAX;
    char *text = fault_point("event.memory") ? NULL : malloc(size);
    if (text == NULL) {
        return NULL;
    }
    size_t used = (size_t)snprintf(text, size, "%s", HEAD);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct generation_row *row = &table->rows[i];
        used += (size_t)snprintf(text + used, size - used,
            "| %" PRIu64 " | %" PRIu64 " | %" PRIu32 " | %s | %s |\n", row->number, row->position,
            row->task_count, row->tasks, row->why);
        CADRE_ASSERT(used < size);
    }
    return text;
}
