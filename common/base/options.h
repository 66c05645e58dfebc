/* SPDX-License-Identifier: Apache-2.0
 * One table describes a program's options: flags, environment, configuration file, defaults, checks
 * and help all come from it. A value is taken from the first of these that has one: flag >
 * environment > configuration file > default. */
#ifndef CADRE_BASE_OPTIONS_H
#define CADRE_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

#define OPTION_ROWS_MAX         64
#define OPTION_CONFIG_BYTES_MAX (1024 * 1024)

/* The comment behind each is the type of the destination. */
enum option_type {
    OPTION_FLAG, /* bool; --name, --no-name, --name=false; elsewhere true/yes/on/1 or false/no/off/0
                  */
    OPTION_TEXT, /* char *, owned; NULL without a default */
    OPTION_U64,  /* uint64_t within min..max */
    OPTION_DURATION, /* uint64_t microseconds within min..max; 250ms, 5s, 2m; units us ms s m h, or
                        a bare 0 */
    OPTION_BYTES,    /* uint64_t bytes within min..max; 4096, 64KiB, 8MiB, 1GiB, 2TiB */
    OPTION_CHOICE,   /* unsigned, the index in `choices` */
    OPTION_LIST      /* struct option_list; each use of the flag appends; one item only elsewhere */
};

struct option_list {
    char **items; /* owned, each and all */
    size_t count;
};

struct option_row {
    const char *name; /* "task-user": --task-user, and the key in a configuration file */
    char letter;      /* 'u' for -u, or 0 */
    enum option_type type;
    size_t offset;           /* of the destination in the values' struct */
    const char *metavar;     /* what help calls the value, and what it is for completion.h; not for
                                flags */
    const char *environment; /* "CADRE_TASK_USER", or NULL */
    const char *fallback;    /* the default as a user would write it, or NULL: false, 0 or NULL */
    uint64_t min;
    uint64_t max;               /* 0: no upper limit */
    const char *const *choices; /* names, ended by NULL; of OPTION_TEXT what shells offer */
    bool required;              /* an error when no source has it */
    const char *group;          /* heading in the help; NULL: that of the row before */
    const char *help;           /* one or two sentences */
};

/* What each row begins with: its flag, OPTION_<kind>, the member of the values' struct, what help
 * calls the value (NULL for a flag), and the default as a user would write it (NULL: none). */
#define OPTION_ROW(kind, flag, values, member, value_name, default_text)                           \
    .name = (flag), .type = OPTION_##kind, .offset = offsetof(values, member),                     \
    .metavar = (value_name), .fallback = (default_text)

struct option_table {
    const char *program; /* "cadre-worker" or "cadre submit": starts the usage line */
    const char *title;   /* of a program's manual page: one line; NULL: it has none of its own */
    const char *usage;   /* what follows the options, "PROGRAM [-- ARGUMENT...]", in the names of
                            metavar; NULL: nothing */
    const char *summary; /* what the program does; wrapped, after the usage line */
    const char *notes;   /* printed as it is after the options: examples; may be NULL */
    const struct option_row *rows;
    size_t row_count;        /* at most OPTION_ROWS_MAX */
    size_t positionals_max;  /* more positional arguments than this are an error */
    bool stop_at_positional; /* options end at the first positional argument: the rest belongs to
                              * another program */
    bool config;             /* --config FILE and --print-config are understood */
    const char *config_environment; /* names the file too; may be NULL */
    const char *config_default;     /* read when it exists; may be NULL */
};

enum option_request { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_PRINT_CONFIG };

enum option_source { OPTION_UNSET, OPTION_DEFAULT, OPTION_FILE, OPTION_ENVIRONMENT, OPTION_ARGV };

struct option_result {
    enum option_request request;
    int first; /* index in argv of the first positional argument; argc when there is none */
    enum option_source sources[OPTION_ROWS_MAX]; /* by row: where its value came from */
    bool by_letter[OPTION_ROWS_MAX];             /* by row: written as "-n" at least once */
    char config_path[512];                       /* the file that was read, or "" */
};

/* Fills `values`, a struct that was zeroed before, from argv[1] on. Unless stop_at_positional is
 * set, positional arguments are moved behind the options, in order; "--" ends the options and is
 * dropped. --help and --version win over everything behind them, and over missing or bad values.
 * On success and on error alike the values are released by options_free(). Every error is
 * INVALID_ARGUMENT or that of reading the file, and names the flag, variable or file and line,
 * the value, and what is accepted. Reads the environment; call it before threads start. */
cadre_status options_parse(const struct option_table *table, int argc, char **argv, void *values,
    struct option_result *ret_result, struct cadre_error *error);

/* Frees the texts and lists in `values` and clears them; tolerates zeroed values and a second call.
 */
void options_free(const struct option_table *table, void *values);

/* Answers --help, --version or --print-config on `out`; false when the program is to run instead.
 */
bool options_answer(const struct option_table *table, const void *values,
    const struct option_result *result, FILE *out);

/* The effective options in the form of a configuration file, each with its help as a comment and
 * where it came from. */
void options_print_config(const struct option_table *table, const void *values,
    const struct option_result *result, FILE *out);

#endif
