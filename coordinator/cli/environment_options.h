/* SPDX-License-Identifier: Apache-2.0
 * --env and --env-file: the variables of the tasks. No message shows a value. */
#ifndef CADRE_CLI_ENVIRONMENT_OPTIONS_H
#define CADRE_CLI_ENVIRONMENT_OPTIONS_H

#include "coordinator/cli/cli.h"

struct environment_list {
    char **items; /* "NAME=value" */
    size_t count;
};

/* Both lists into one, without a name twice: the last one of `entries` counts, then the last of the
 * files. False: *ret_exit, and the error was printed. */
bool environment_options_make(const struct invocation *invocation,
    const struct option_list *entries, const struct option_list *files,
    struct environment_list *ret_list, int *ret_exit);

/* Rows for `verify_state` and `verify_losses` of a struct of values. */
#define VERIFY_OPTION_ROWS(values)                                                                 \
    {OPTION_ROW(TEXT, "verify-state", values, verify_state, "N|off", NULL),                        \
        .help =                                                                                    \
            "Compare the states of all replicas each N steps, or not at all. Default: as often "   \
            "as costs a hundredth of the training's time."},                                       \
    {                                                                                              \
        OPTION_ROW(FLAG, "verify-losses", values, verify_losses, NULL, NULL),                      \
            .help = "When a task is lost, go on from the newest state that was compared, which "   \
                    "is most often a checkpoint's. Without it the others go on from their "        \
                    "position, and what the lost task contributed since the last comparison "      \
                    "counts as correct."                                                           \
    }

/* --verify-state and --verify-losses, put into the list as CADRE_VERIFY_STATE and
 * CADRE_VERIFY_LOSSES, over entries of these names. NULL, false: left as they are. False as
 * above. */
bool environment_options_verify(const struct invocation *invocation, const char *verify_state,
    bool verify_losses, struct environment_list *list, int *ret_exit);
/* Wipes and frees the list; a zeroed one is allowed. */
void environment_list_free(struct environment_list *list);

#endif
