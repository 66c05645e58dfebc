/* SPDX-License-Identifier: Apache-2.0
 * What --help prints, all of it from the table. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/base/options_internal.h"

#define HELP_LEAD     "          "
#define WIDTH_MIN     40
#define WIDTH_MAX     100
#define WIDTH_DEFAULT 80

static size_t width_of(FILE *out)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    size_t width = WIDTH_DEFAULT;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        width = size.ws_col;
    } else if (columns != NULL && strtoul(columns, NULL, 10) > 0) {
        width = strtoul(columns, NULL, 10);
    }
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* Prints `text` on lines that start with `lead`; a line ends before the word that would cross
 * `width`. */
static void print_wrapped(FILE *out, const char *text, const char *lead, size_t width)
{
    size_t column = 0;
    while (*(text += strspn(text, " \n")) != '\0') {
        size_t length = strcspn(text, " \n");
        if (column > 0 && column + 1 + length > width) {
            fputc('\n', out);
            column = 0;
        }
        column += (size_t)(column == 0 ? fprintf(out, "%s", lead) : fprintf(out, " "));
        fwrite(text, 1, length, out);
        column += length;
        text += length;
    }
    fputc('\n', out);
}

void option_describe(const struct option_row *row, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    const char *gap = "[";
    for (size_t i = 0; row->type == OPTION_CHOICE && row->choices[i] != NULL; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", gap, row->choices[i]);
        gap = ", ";
        if (used >= size) {
            return;
        }
    }
    if (row->type == OPTION_CHOICE) {
        gap = "; ";
    }
    bool plain_off =
        row->type == OPTION_FLAG && (row->fallback == NULL || strcmp(row->fallback, "false") == 0);
    if (row->required) {
        used += (size_t)snprintf(text + used, size - used, "%srequired", gap);
        gap = "; ";
    } else if (row->fallback != NULL && !plain_off) {
        used += (size_t)snprintf(text + used, size - used, "%sdefault: %s", gap, row->fallback);
        gap = "; ";
    }
    if (used < size && row->environment != NULL) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", gap, row->environment);
    }
    if (used > 0 && used < size) {
        snprintf(text + used, size - used, "]");
    }
}

void option_print_description(
    const struct option_row *row, FILE *out, const char *lead, size_t width)
{
    char facts[256];
    char text[1024];
    option_describe(row, facts, sizeof facts);
    snprintf(text, sizeof text, "%s %s", row->help, facts);
    print_wrapped(out, text, lead, width);
}

static void print_row(const struct option_row *row, FILE *out, size_t width)
{
    bool on =
        row->type == OPTION_FLAG && row->fallback != NULL && strcmp(row->fallback, "true") == 0;
    if (row->letter != '\0') {
        fprintf(out, "  -%c, ", row->letter);
    } else {
        fprintf(out, "      ");
    }
    fprintf(out, "--%s%s", on ? "[no-]" : "", row->name);
    if (row->type != OPTION_FLAG) {
        fprintf(out, " %s%s", row->metavar != NULL ? row->metavar : "VALUE",
            row->type == OPTION_LIST ? " (repeatable)" : "");
    }
    fputc('\n', out);
    option_print_description(row, out, HELP_LEAD, width);
}

size_t option_general_rows(
    const struct option_table *table, struct option_row ret_rows[OPTION_GENERAL_MAX])
{
    size_t count = 0;
    if (table->config) {
        ret_rows[count++] = (struct option_row){.name = "config",
            .type = OPTION_TEXT,
            .metavar = "FILE",
            .environment = table->config_environment,
            .fallback = table->config_default,
            .help =
                "Read options from FILE: \"key = value\" lines, the keys named as the flags are."};
        ret_rows[count++] = (struct option_row){.name = "print-config",
            .type = OPTION_FLAG,
            .help = "Print the effective options and where each came from, and exit."};
    }
    ret_rows[count++] = (struct option_row){
        .name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "Print this help and exit."};
    ret_rows[count++] = (struct option_row){
        .name = "version", .type = OPTION_FLAG, .help = "Print the version and exit."};
    return count;
}

/* Help from the table, wrapped to the terminal behind `out`, or to $COLUMNS, or to 80 columns. */
static void options_print_help(const struct option_table *table, FILE *out)
{
    struct option_row general[OPTION_GENERAL_MAX];
    size_t count = option_general_rows(table, general);
    size_t width = width_of(out);
    fprintf(out, "usage: %s [OPTION...]%s%s\n\n", table->program, table->usage != NULL ? " " : "",
        table->usage != NULL ? table->usage : "");
    print_wrapped(out, table->summary, "", width);
    for (size_t i = 0; i < table->row_count; i++) {
        if (i == 0 || table->rows[i].group != NULL) {
            const char *group = table->rows[i].group;
            fprintf(out, "\n%s:\n", group != NULL ? group : "Options");
        }
        print_row(&table->rows[i], out, width);
    }
    fprintf(out, "\nGeneral:\n");
    for (size_t i = 0; i < count; i++) {
        print_row(&general[i], out, width);
    }
    if (table->notes != NULL) {
        fprintf(out, "\n%s\n", table->notes);
    }
}

bool options_answer(const struct option_table *table, const void *values,
    const struct option_result *result, FILE *out)
{
    switch (result->request) {
    case OPTIONS_RUN:
        return false;
    case OPTIONS_HELP:
        options_print_help(table, out);
        return true;
    case OPTIONS_VERSION:
        fprintf(out, "%s %s\n", table->program, CADRE_VERSION);
        return true;
    case OPTIONS_PRINT_CONFIG:
        options_print_config(table, values, result, out);
        return true;
    }
    return false;
}
