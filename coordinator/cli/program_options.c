/* SPDX-License-Identifier: Apache-2.0
 * The program of `submit` and `run`, and what stands behind it. */
#include <string.h>

#include "coordinator/cli/job_options.h"

/* Whether it is spelled like an option of this table: "--workers", "--workers=2" or "-n". */
static bool is_own_option(const struct option_table *table, const char *word)
{
    if (strcmp(word, "-n") == 0) {
        return true;
    }
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < table->row_count; i++) {
        const char *name = table->rows[i].name;
        if (strncmp(word, "--", 2) == 0 && length == strlen(name) + 2 &&
            strncmp(word + 2, name, length - 2) == 0) {
            return true;
        }
    }
    return false;
}

bool program_options_make(const struct invocation *invocation, int *ret_first, int *ret_exit)
{
    const char *verb = invocation->table->program;
    if (invocation_argument_count(invocation) == 0) {
        *ret_exit =
            invocation_usage(invocation, "which program? `%s ./PROGRAM`; --help shows more", verb);
        return false;
    }
    const char *program = invocation_argument(invocation, 0);
    int first = invocation->result.first + 1;
    *ret_first = first;
    if (first < invocation->argc && strcmp(invocation->argv[first], "--") == 0) {
        *ret_first = first + 1;
        return true;
    }
    bool apart = strcmp(invocation->argv[first - 2], "--") == 0; /* "submit -- ./PROGRAM ..." */
    for (int i = first; i < invocation->argc && !apart; i++) {
        if (is_own_option(invocation->table, invocation->argv[i])) {
            fprintf(stderr,
                "%s: %s is behind %s and goes to it: options of %s come before the program; if it "
                "is meant for the program, write `%s -- %s`\n",
                verb, invocation->argv[i], program, verb, program, invocation->argv[i]);
            break;
        }
    }
    return true;
}
