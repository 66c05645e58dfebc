/* SPDX-License-Identifier: Apache-2.0
 * What the files of the options, completion.c and manual.c share; no other file includes it. */
#ifndef CADRE_BASE_OPTIONS_INTERNAL_H
#define CADRE_BASE_OPTIONS_INTERNAL_H

#include "common/base/options.h"

/* Where a value was written, for messages: "--jobs", "CADRE_JOBS" or "/etc/cadre.conf:7: jobs". */
struct option_origin {
    enum option_source source;
    const char *where;
};

/* Checks `text` and stores it, unless a stronger source has set the row already. */
cadre_status option_assign(const struct option_table *table, size_t row, const char *text,
    const struct option_origin *origin, void *values, struct option_result *result,
    struct cadre_error *error);

/* The index of the row of this name, or row_count. */
size_t option_find(const struct option_table *table, const char *name, size_t length);

/* Reads the configuration file; `required` is false for the default path, which need not exist. */
cadre_status option_read_file(const struct option_table *table, const char *path, bool required,
    void *values, struct option_result *result, struct cadre_error *error);

/* "; did you mean --name?" into ret_text, or "". `dashes` is the prefix of a name. */
void option_hint(
    const struct option_table *table, const char *name, const char *dashes, char ret_text[96]);

/* "[default: 5s; CADRE_TIMEOUT]" or "[text, json; default: text]"; "" when the row has neither. */
void option_describe(const struct option_row *row, char *ret_text, size_t size);

#define OPTION_GENERAL_MAX 4

/* The options of every program: those of configuration files where the table has them, --help and
 * --version. Returns how many. */
size_t option_general_rows(
    const struct option_table *table, struct option_row ret_rows[OPTION_GENERAL_MAX]);

/* Prints what an option is for, and its facts, on lines that start with `lead` and end before the
 * word that would cross `width`. */
void option_print_description(
    const struct option_row *row, FILE *out, const char *lead, size_t width);

#endif
