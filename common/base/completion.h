/* SPDX-License-Identifier: Apache-2.0
 * What the shells offer for the word that is being typed, from the option tables: options, choices,
 * and what a value is by the name that help gives it. The scripts of deploy/completion ask with
 * `PROGRAM __complete -- WORD...`.
 *
 * An answer is lines "CANDIDATE" or "CANDIDATE\tDESCRIPTION", and a last line ":files", ":folders"
 * or ":none": whether names of files are candidates, too. */
#ifndef CADRE_BASE_COMPLETION_H
#define CADRE_BASE_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/options.h"

#define COMPLETION_VERB          "__complete"
#define COMPLETION_ARGUMENTS_MAX 4096
#define COMPLETION_POSITIONALS   16
#define COMPLETION_KIND_BYTES    48

enum completion_at {
    COMPLETION_OPTION,     /* "-", "--wor" */
    COMPLETION_VALUE,      /* the value of `row`, attached by "=" or a word of its own */
    COMPLETION_POSITIONAL, /* what `usage` names */
    COMPLETION_FOREIGN     /* a word of another program, behind the first positional argument */
};

/* Where the last word of a command line stands. All pointers are into the table or the words. */
struct completion {
    const struct option_table *table;
    enum completion_at at;
    const struct option_row *row;     /* of COMPLETION_VALUE; of --config none */
    const char *typed;                /* the beginning of the value or the word, maybe "" */
    const char *attached;             /* the word whose part behind "=" is typed, or NULL */
    char kind[COMPLETION_KIND_BYTES]; /* what help calls the value: "PATH[:NAME]", "WORKER", "" */
    int positional_count;             /* of those before the last word */
    int positionals[COMPLETION_POSITIONALS]; /* the indexes of the first of them */
    const char *values[OPTION_ROWS_MAX];     /* by row: what the words before give it, or NULL */
};

/* Finds it; `words` are those behind the program's name, the last is the one that is typed. */
void completion_find(const struct option_table *table, int count, char *const *arguments,
    struct completion *ret_completion);

/* Whether the kind begins with this name: "JOB" for "JOB[@STEP]", but not for "JOBS". */
bool completion_is(const struct completion *completion, const char *name);

/* One candidate; left out unless it begins with what is typed. Tabs and newlines of the description
 * become spaces. */
void completion_offer(
    const struct completion *completion, const char *candidate, const char *description, FILE *out);

/* What the table alone answers, and the last line. */
void completion_print(const struct completion *completion, FILE *out);

/* Answers `PROGRAM __complete -- WORD...` of a program of one table; false: the words are not
 * that. */
bool completion_answer(const struct option_table *table, int argc, char *const *argv, FILE *out);

#endif
