/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/table.h"

#include <stdarg.h>
#include <stdlib.h>

#include "common/pure/assert.h"

#define COLUMN_GAP 2

void table_open(struct table *table, const struct table_column *columns, size_t column_count)
{
    CADRE_ASSERT(column_count > 0 && column_count <= TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns, .column_count = column_count};
}

void table_close(struct table *table)
{
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i].text);
    }
    free(table->cells);
    *table = (struct table){0};
}

static bool table_reserve(struct table *table)
{
    if (table->cell_count < table->cell_capacity) {
        return true;
    }
    size_t capacity = table->cell_capacity * 2 + 64;
    struct table_cell *cells = realloc(table->cells, capacity * sizeof *cells);
    if (cells == NULL) {
        return false;
    }
    table->cells = cells;
    table->cell_capacity = capacity;
    return true;
}

void table_add(struct table *table, enum colour colour, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0 || !table_reserve(table)) {
        table->out_of_memory = true;
        if (length >= 0) {
            free(text);
        }
        return;
    }
    table->cells[table->cell_count++] = (struct table_cell){.text = text, .colour = colour};
}

static void print_spaces(FILE *out, size_t count)
{
    fprintf(out, "%*s", (int)count, "");
}

static void print_cell(FILE *out, const struct text_style *text_style, const char *text,
    enum colour colour, size_t limit)
{
    fputs(colour_start(text_style, colour), out);
    text_print(out, text, limit);
    fputs(colour_end(text_style, colour), out);
}

/* Prints one row; `cells` NULL: the titles. */
static void print_row(const struct table *table, const struct table_cell *cells,
    const size_t *widths, const struct text_style *text_style, FILE *out)
{
    size_t used = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const char *text = cells != NULL ? cells[i].text : table->columns[i].title;
        enum colour colour = cells != NULL ? cells[i].colour : COLOUR_DIM;
        size_t own = text_columns(text);
        bool last = i + 1 == table->column_count;
        size_t room = text_style->columns > used ? text_style->columns - used : 1;
        if (table->columns[i].right) {
            print_spaces(out, widths[i] - own);
        }
        print_cell(out, text_style, text, colour, last && text_style->columns > 0 ? room : 0);
        if (!last) {
            print_spaces(out, (table->columns[i].right ? 0 : widths[i] - own) + COLUMN_GAP);
        }
        used += widths[i] + COLUMN_GAP;
    }
    fputc('\n', out);
}

bool table_print(const struct table *table, const struct text_style *text_style, FILE *out)
{
    size_t widths[TABLE_COLUMNS_MAX];
    if (table->out_of_memory) {
        return false;
    }
    CADRE_ASSERT(table->cell_count % table->column_count == 0);
    if (table->cell_count == 0) {
        return true;
    }
    for (size_t i = 0; i < table->column_count; i++) {
        widths[i] = text_columns(table->columns[i].title);
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t own = text_columns(table->cells[i].text);
        size_t *width = &widths[i % table->column_count];
        *width = own > *width ? own : *width;
    }
    print_row(table, NULL, widths, text_style, out);
    for (size_t i = 0; i < table->cell_count; i += table->column_count) {
        print_row(table, &table->cells[i], widths, text_style, out);
    }
    return true;
}
