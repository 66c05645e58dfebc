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

/* "A:B", "A:" or ":B" with A <= B and 1 <= B <= 2^62; *ret_last 0: open. False: it is something
 * else. */
bool step_range_parse(const char *text, uint64_t *ret_first, uint64_t *ret_last);

/* "A:B" with A < B, or "+N"; at most LIMIT_TRACE_STEPS. False: it is something else. */
bool trace_steps_parse(
    const char *text, bool *ret_from_first, uint64_t *ret_first, uint64_t *ret_steps);

/* "JOB" or "JOB@STEP" with 1 <= JOB and 1 <= STEP < 2^63; *ret_step 0: none is named. False: it is
 * something else. */
bool restore_point_parse(const char *text, uint64_t *ret_job, uint64_t *ret_step);

/* ---- task_options.c: how many tasks, and of which types ---- */

struct task_options {
    char *tasks;
    char *workers;
    uint64_t servers;
    uint64_t evaluators;
    bool backups;
};

/* Rows of a table whose values have a `struct task_options task`. This one is followed by .group
 * and .help of the verb's own, and "}": what happens with fewer tasks differs. */
#define TASKS_OPTION_ROW(table_values)                                                             \
    OPTION_ROW(TEXT, "tasks", table_values, task.tasks, "N|MIN:MAX", NULL), .letter = 'n'

/* And these go behind the strategy's. */
#define PS_OPTION_ROWS(table_values)                                                               \
    {OPTION_ROW(U64, "ps", table_values, task.servers, "N", NULL), .max = LIMIT_TASKS_PER_JOB,     \
        .group = "Parameter servers",                                                              \
        .help = "Tasks that hold the variables, with --strategy parameter_server. A worker or a "  \
                "server that ends is started again; when the chief does, all begin again from "    \
                "the newest checkpoint."},                                                         \
        {OPTION_ROW(TEXT, "workers", table_values, task.workers, "N", NULL),                       \
            .help = "Tasks that run closures; the chief that schedules them comes on top. -n is "  \
                    "the same. Default: 1. Without --ps, as in older scripts, the same as "        \
                    "--tasks."},                                                                   \
        {OPTION_ROW(U64, "evaluators", table_values, task.evaluators, "N", NULL),                  \
            .max = LIMIT_TASKS_PER_JOB,                                                            \
            .help = "0 or 1: a task that reads the servers' variables beside the training."},      \
    {                                                                                              \
        OPTION_ROW(FLAG, "ps-backups", table_values, task.backups, NULL, NULL),                    \
            .help =                                                                                \
                "Each server holds a copy of another one's variables, so that one may be lost "    \
                "with its machine."                                                                \
    }

struct task_counts {
    uint32_t least; /* that train, or with servers the workers: least == most */
    uint32_t most;
    uint32_t all;         /* of whatever type, at most */
    struct ps_job ps_job; /* not set: all tasks are alike */
};

/* At most `limit` tasks that train. False: *ret_exit, and the error was printed; also of a strategy
 * that there is not. */
bool task_options_make(const struct invocation *invocation, const struct task_options *options,
    const char *strategy, uint32_t limit, struct task_counts *ret_counts, int *ret_exit);

/* ---- program_options.c: the program and its arguments ---- */

/* Checks that a program was given; returns the index in argv of its first argument, behind a "--".
 * What looks like an option of the verb's own there is named on standard error, without "--", as
 * it goes to the program. False: *ret_exit, and the error was printed. */
bool program_options_make(const struct invocation *invocation, int *ret_first, int *ret_exit);

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
