/* SPDX-License-Identifier: Apache-2.0
 * A program's manual page from its option table, in the macros of man(7). The build asks the
 * programs for their pages: `cadre-worker __manual`. */
#ifndef CADRE_BASE_MANUAL_H
#define CADRE_BASE_MANUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/options.h"

#define MANUAL_VERB "__manual"

/* A row of a list: an exit status or a verb, and what it means. */
struct manual_item {
    const char *name;
    const char *meaning;
};

struct manual {
    const char *name;  /* of the page: "cadre-submit" */
    const char *title; /* one line, without a full stop */
    const struct option_table *table;
    const struct manual_item *verbs; /* those beneath it; may be NULL */
    size_t verb_count;
    const struct manual_item *exits;
    size_t exit_count;
    const char *const *related; /* pages of section 1, ended by NULL; that of `name` is left out */
};

/* Prints the page. Of the table's notes, lines that begin with two spaces are its examples. */
void manual_print(const struct manual *manual, FILE *out);

/* Answers `PROGRAM __manual` of a program of one table that has a title; false: the command line is
 * not that. */
bool manual_answer(const struct option_table *table, int argc, char *const *argv, FILE *out);

#endif
