/* SPDX-License-Identifier: Apache-2.0
 * Prints manual pages in the macros of man(7) from option tables. Called by every program that has
 * a table, for the build. */
#include "common/base/manual.h"

#include <ctype.h>
#include <string.h>

#include "common/base/options_internal.h"

#define COLUMNS 90

/* One character of running text or of an example, as troff reads it. */
static void put_character(FILE *out, char character)
{
    switch (character) {
    case '\\':
        fputs("\\e", out);
        break;
    case '-':
        fputs("\\-", out);
        break;
    case '\'':
        fputs("\\(aq", out);
        break;
    case '`':
        fputs("\\(ga", out);
        break;
    case '^':
        fputs("\\(ha", out);
        break;
    case '~':
        fputs("\\(ti", out);
        break;
    default:
        fputc(character, out);
    }
}

static void put_plain(FILE *out, const char *text, size_t length)
{
    if (length > 0 && text[0] == '.') {
        fputs("\\&", out); /* it is no request */
    }
    for (size_t i = 0; i < length; i++) {
        put_character(out, text[i]);
    }
}

/* Running text: words on lines of a modest length, `code` in bold. */
static void manual_put_text(FILE *out, const char *text)
{
    size_t column = 0;
    bool bold = false;
    while (*(text += strspn(text, " \n")) != '\0') {
        size_t length = strcspn(text, " \n");
        if (column > 0) {
            bool wraps = column + 1 + length > COLUMNS;
            fputc(wraps ? '\n' : ' ', out);
            column = wraps ? 0 : column + 1;
        }
        if (text[0] == '.') {
            fputs("\\&", out);
        }
        for (size_t i = 0; i < length; i++) {
            if (text[i] == '`') {
                bold = !bold;
                fputs(bold ? "\\fB" : "\\fR", out);
            } else {
                put_character(out, text[i]);
            }
        }
        column += length;
        text += length;
    }
    fprintf(out, "%s\n", bold ? "\\fR" : "");
}

static void put_item(FILE *out, const char *name, const char *meaning)
{
    fputs(".TP\n\\fB", out);
    put_plain(out, name, strlen(name));
    fputs("\\fR\n", out);
    manual_put_text(out, meaning);
}

static void put_items(FILE *out, const char *section, const struct manual_item *items, size_t count)
{
    if (count > 0) {
        fprintf(out, ".SH %s\n", section);
    }
    for (size_t i = 0; i < count; i++) {
        put_item(out, items[i].name, items[i].meaning);
    }
}

/* ---- options ---- */

static void manual_put_row(FILE *out, const struct option_row *row)
{
    char facts[256];
    char text[1280];
    bool on =
        row->type == OPTION_FLAG && row->fallback != NULL && strcmp(row->fallback, "true") == 0;
    fputs(".TP\n", out);
    if (row->letter != '\0') {
        fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    }
    fprintf(out, "\\fB\\-\\-%s", on ? "[no\\-]" : "");
    put_plain(out, row->name, strlen(row->name));
    fputs("\\fR", out);
    if (row->type != OPTION_FLAG) {
        const char *value = row->metavar != NULL ? row->metavar : "VALUE";
        fputs(" \\fI", out);
        put_plain(out, value, strlen(value));
        fprintf(out, "\\fR%s", row->type == OPTION_LIST ? " (repeatable)" : "");
    }
    fputc('\n', out);
    option_describe(row, facts, sizeof facts);
    snprintf(text, sizeof text, "%s %s", row->help, facts);
    manual_put_text(out, text);
}

static void put_options(FILE *out, const struct option_table *table)
{
    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < table->row_count; i++) {
        if (table->rows[i].group != NULL) {
            fputs(".SS ", out);
            put_plain(out, table->rows[i].group, strlen(table->rows[i].group));
            fputc('\n', out);
        }
        manual_put_row(out, &table->rows[i]);
    }
    if (table->row_count > 0) {
        fputs(".SS General\n", out);
    }
    struct option_row general[OPTION_GENERAL_MAX];
    size_t count = option_general_rows(table, general);
    for (size_t i = 0; i < count; i++) {
        manual_put_row(out, &general[i]);
    }
}

/* ---- the other sections ---- */

static void put_heading(FILE *out, const struct manual *manual)
{
    fputs(".TH ", out);
    for (const char *at = manual->name; *at != '\0'; at++) {
        put_character(out, (char)toupper((unsigned char)*at));
    }
    fputs(" 1 \"\" \"Cadre " CADRE_VERSION "\" \"Cadre\"\n.SH NAME\n", out);
    put_plain(out, manual->name, strlen(manual->name));
    fputs(" \\- ", out);
    manual_put_text(out, manual->title);
    fputs(".SH SYNOPSIS\n\\fB", out);
    put_plain(out, manual->table->program, strlen(manual->table->program));
    fputs("\\fR [\\fIOPTION\\fR...]", out);
    if (manual->table->usage != NULL) {
        fputs(" \\fI", out);
        put_plain(out, manual->table->usage, strlen(manual->table->usage));
        fputs("\\fR", out);
    }
    fputc('\n', out);
}

static bool is_example(const char *text)
{
    return strncmp(text, "  ", 2) == 0;
}

/* The paragraphs of the notes behind the summary. */
static void put_description(FILE *out, const struct option_table *table)
{
    const char *at = table->notes != NULL ? table->notes : "";
    bool begins = true; /* a paragraph */
    fputs(".SH DESCRIPTION\n", out);
    manual_put_text(out, table->summary);
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");
        char text[512];
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        bool shown = length > 0 && !is_example(text);
        if (shown && begins) {
            fputs(".PP\n", out);
        }
        if (shown) {
            manual_put_text(out, text);
        }
        begins = !shown;
        at += length + (at[length] == '\n');
    }
}

static void put_examples(FILE *out, const char *notes)
{
    bool any = false;
    while (notes != NULL && *notes != '\0') {
        size_t length = strcspn(notes, "\n");
        if (is_example(notes)) {
            fputs(any ? "" : ".SH EXAMPLES\n.nf\n", out);
            any = true;
            put_plain(out, notes + 2, length - 2);
            fputc('\n', out);
        }
        notes += length + (notes[length] == '\n');
    }
    fputs(any ? ".fi\n" : "", out);
}

static void put_environment(FILE *out, const struct option_table *table)
{
    bool any = false;
    for (size_t i = 0; i < table->row_count; i++) {
        const struct option_row *row = &table->rows[i];
        if (row->environment != NULL) {
            char text[128];
            snprintf(text, sizeof text, "The value of `--%s`, which comes before it.", row->name);
            fputs(any ? "" : ".SH ENVIRONMENT\n", out);
            any = true;
            put_item(out, row->environment, text);
        }
    }
    if (table->config_environment != NULL) {
        fputs(any ? "" : ".SH ENVIRONMENT\n", out);
        put_item(
            out, table->config_environment, "Names the configuration file, as `--config` does.");
    }
    if (table->config_default != NULL) {
        fputs(".SH FILES\n", out);
        put_item(out, table->config_default,
            "The configuration file where no other is named: lines \"key = value\", the keys named "
            "as the options are. An option and a variable of the environment come before it.");
    }
}

static void put_related(FILE *out, const struct manual *manual)
{
    bool any = false;
    for (size_t i = 0; manual->related != NULL && manual->related[i] != NULL; i++) {
        if (strcmp(manual->related[i], manual->name) != 0) {
            fputs(any ? ",\n" : ".SH SEE ALSO\n", out);
            any = true;
            fputs("\\fB", out);
            put_plain(out, manual->related[i], strlen(manual->related[i]));
            fputs("\\fR(1)", out);
        }
    }
    fputs(any ? "\n" : "", out);
}

void manual_print(const struct manual *manual, FILE *out)
{
    put_heading(out, manual);
    put_description(out, manual->table);
    put_items(out, "VERBS", manual->verbs, manual->verb_count);
    put_options(out, manual->table);
    put_environment(out, manual->table);
    put_items(out, "\"EXIT STATUS\"", manual->exits, manual->exit_count);
    put_examples(out, manual->table->notes);
    put_related(out, manual);
}

bool manual_answer(const struct option_table *table, int argc, char *const *argv, FILE *out)
{
    static const struct manual_item exits[] = {{"0", "It ended in order."},
        {"1", "It failed; standard error names the cause."}, {"2", "Wrong usage."}};
    static const char *const related[] = {
        "cadre", "cadre-coordinator", "cadre-worker", "cadre-devices", NULL};
    if (argc != 2 || strcmp(argv[1], MANUAL_VERB) != 0 || table->title == NULL) {
        return false;
    }
    const struct manual manual = {.name = table->program,
        .title = table->title,
        .table = table,
        .exits = exits,
        .exit_count = sizeof exits / sizeof exits[0],
        .related = related};
    manual_print(&manual, out);
    return true;
}
