/* SPDX-License-Identifier: Apache-2.0
 * Options that `submit` and `run` share. */
#ifndef CADRE_CLI_JOB_OPTIONS_H
#define CADRE_CLI_JOB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ps_job.h"
#include "coordinator/cli/cli.h"

/* "N" or "MIN:MAX" with 1 <= MIN <= MAX <= `limit`. False: it is something else. */
bool range_parse(const char *text, uint32_t limit, uint32_t *ret_least, uint32_t *ret_most);

/* "JOB" or "JOB@STEP" with 1 <= JOB and 1 <= STEP < 2^63; *ret_step 0: none is named. False: it is
 * something else. */
bool restore_point_parse(const char *text, uint64_t *ret_job, uint64_t *ret_step);

/* ---- parameter servers ---- */

struct ps_options {
    uint64_t servers;
    uint64_t evaluators;
    bool backups;
};

/* Rows of a table whose values have a `struct ps_options ps_job`; put them behind the
 * strategy's. */
#define PS_OPTION_ROWS(table_values)                                                               \
    {OPTION_ROW(U64, "ps", table_values, ps_job.servers, "N", NULL), .max = LIMIT_TASKS_PER_JOB,   \
        .group = "Parameter servers",                                                              \
        .help = "Tasks that hold the variables, with --strategy parameter_server. --workers then " \
                "counts the tasks that run closures, and the chief that schedules them comes on "  \
                "top. A worker or a server that ends is started again; when the chief does, all "  \
                "begin again from the newest checkpoint."},                                        \
        {OPTION_ROW(U64, "evaluators", table_values, ps_job.evaluators, "N", NULL),                \
            .max = LIMIT_TASKS_PER_JOB,                                                            \
            .help = "0 or 1: a task that reads the servers' variables beside the training."},      \
    {                                                                                              \
        OPTION_ROW(FLAG, "ps-backups", table_values, ps_job.backups, NULL, NULL),                  \
            .help =                                                                                \
                "Each server holds a copy of another one's variables, so that one may be lost "    \
                "with its machine."                                                                \
    }

/* The tasks of the ps job; zeroed when no option of these was given. False: *ret_exit, and the
 * error was printed. */
bool ps_options_make(const struct invocation *invocation, const struct ps_options *options,
    const char *strategy, uint32_t workers_min, uint32_t workers, struct ps_job *ret_ps_job,
    int *ret_exit);

/* ---- --env and --env-file: the variables of the tasks; no message shows a value ---- */

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
