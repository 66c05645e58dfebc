/* SPDX-License-Identifier: Apache-2.0
 * A table of texts, printed with columns as wide as their longest text. */
#ifndef CADRE_CLI_RENDER_TABLE_H
#define CADRE_CLI_RENDER_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "coordinator/cli/render/terminal.h"

#define TABLE_COLUMNS_MAX 12

struct table_column {
    const char *title;
    bool right; /* aligned to the right: numbers */
};

struct table_cell {
    char *text;
    enum colour colour;
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    struct table_cell *cells; /* row after row */
    size_t cell_count;
    size_t cell_capacity;
    bool out_of_memory;
};

/* Begins an empty table; `columns` outlives it. */
void table_open(struct table *table, const struct table_column *columns, size_t column_count);
/* Frees the cells. */
void table_close(struct table *table);

/* The next cell, row after row; the text is copied. */
void table_add(struct table *table, enum colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints a line of titles and one per row; nothing for a table without rows. The last column is cut
 * where the line would exceed look->columns. False: memory ran out while it was filled; nothing was
 * printed. */
bool table_print(const struct table *table, const struct text_style *text_style, FILE *out);

#endif
