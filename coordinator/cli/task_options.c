/* SPDX-License-Identifier: Apache-2.0
 * How many tasks a job has, and of which types: --tasks, and --workers and --ps beside each
 * other. */
#include <inttypes.h>
#include <string.h>

#include "common/base/near_miss.h"
#include "common/model/strategy_names.h"
#include "coordinator/cli/job_options.h"

#define PS_USAGE "(--strategy parameter_server --workers N --ps N [--evaluators 1] [--ps-backups])"

/* Whether the option `name` was written with its letter, "-n". */
static bool task_options_by_letter(const struct invocation *invocation, const char *name)
{
    const struct option_table *table = invocation->table;
    for (size_t i = 0; i < table->row_count; i++) {
        if (strcmp(table->rows[i].name, name) == 0) {
            return invocation->result.by_letter[i];
        }
    }
    return false;
}

static int check_strategy(const struct invocation *invocation, const char *strategy)
{
    for (size_t i = 0; strategy != NULL && strategy_names[i] != NULL; i++) {
        if (strcmp(strategy, strategy_names[i]) == 0) {
            return CLI_DONE;
        }
    }
    if (strategy == NULL || strategy[0] == '\0') {
        return CLI_DONE;
    }
    const char *near = near_miss_find(strategy, strategy_names);
    return near != NULL
               ? invocation_usage(invocation,
                     "--strategy: there is no strategy \"%s\"; did you mean %s?", strategy, near)
               : invocation_usage(invocation,
                     "--strategy: there is no strategy \"%s\": mirrored, "
                     "multi_worker_mirrored or parameter_server",
                     strategy);
}

/* The one text that counts the tasks, and the option that it is of. */
static int choose_count(const struct invocation *invocation, const struct task_options *options,
    const char **ret_option, const char **ret_count)
{
    bool letter = task_options_by_letter(invocation, "tasks");
    *ret_option = options->tasks == NULL ? "--workers" : letter ? "-n" : "--tasks";
    *ret_count = options->tasks != NULL     ? options->tasks
                 : options->workers != NULL ? options->workers
                                            : "1";
    if (options->tasks != NULL && options->workers != NULL) {
        return invocation_usage(invocation,
            "%s and --workers both count the tasks: give --tasks, or beside --ps --workers",
            *ret_option);
    }
    if (options->tasks != NULL && !letter && options->servers > 0) {
        return invocation_usage(invocation,
            "--tasks counts tasks that are alike: with --ps give --workers, which does not count "
            "the chief and the servers");
    }
    return CLI_DONE;
}

static int check_ps_job(const struct invocation *invocation, const struct ps_job *ps_job,
    const char *strategy, uint32_t workers_min, uint32_t workers)
{
    const char *fault = ps_job_fault(ps_job, strategy != NULL ? strategy : "");
    if (fault != NULL) {
        return invocation_usage(invocation, "the job %s " PS_USAGE, fault);
    }
    if (ps_job_is_set(ps_job) && workers_min != workers) {
        return invocation_usage(invocation,
            "--workers %" PRIu32 ":%" PRIu32
            ": a job with parameter servers has a fixed number of workers; one that is lost is "
            "started again: write %" PRIu32,
            workers_min, workers, workers);
    }
    return CLI_DONE;
}

bool task_options_make(const struct invocation *invocation, const struct task_options *options,
    const char *strategy, uint32_t limit, struct task_counts *ret_counts, int *ret_exit)
{
    const char *option = NULL;
    const char *count = NULL;
    *ret_counts = (struct task_counts){.least = 1, .most = 1};
    *ret_exit = check_strategy(invocation, strategy);
    if (*ret_exit == CLI_DONE) {
        *ret_exit = choose_count(invocation, options, &option, &count);
    }
    if (*ret_exit == CLI_DONE &&
        !range_parse(count, limit, &ret_counts->least, &ret_counts->most)) {
        *ret_exit = invocation_usage(invocation,
            "%s: \"%s\" is neither a number of tasks nor MIN:MAX, within 1..%" PRIu32
            "; write 4 or 2:4",
            option, count, limit);
    }
    if (*ret_exit == CLI_DONE) {
        ret_counts->ps_job = (struct ps_job){.workers = options->servers > 0 ? ret_counts->most : 0,
            .servers = (uint32_t)options->servers,
            .evaluators = (uint32_t)options->evaluators,
            .backups = options->backups};
        *ret_exit = check_ps_job(
            invocation, &ret_counts->ps_job, strategy, ret_counts->least, ret_counts->most);
    }
    ret_counts->all = ps_job_is_set(&ret_counts->ps_job)
                          ? (uint32_t)ps_job_task_count(&ret_counts->ps_job)
                          : ret_counts->most;
    return *ret_exit == CLI_DONE;
}
