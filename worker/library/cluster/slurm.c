/* SPDX-License-Identifier: Apache-2.0
 * From Slurm's variables to a cluster, for resolver.c. Slurm's ranks fill one host after the other,
 * as its default distribution (block) does; the jobs take them in the order in which they are
 * given. */
#include "worker/library/cluster/slurm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_BASE 8888
#define PORT_MAX  65535

static const char *first_of(const char *const names[])
{
    const char *value = NULL;
    for (size_t i = 0; value == NULL && names[i] != NULL; i++) {
        value = getenv(names[i]);
    }
    return value;
}

struct slurm_variables slurm_variables_read(void)
{
    static const char *const tasks[] = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", NULL};
    static const char *const hosts[] = {
        "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST", NULL};
    static const char *const per_host[] = {
        "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", NULL};
    return (struct slurm_variables){
        .rank = getenv("SLURM_PROCID"),
        .tasks = first_of(tasks),
        .hosts = first_of(hosts),
        .per_host = first_of(per_host),
        .gpus = getenv("SLURM_GPUS_ON_NODE"),
    };
}

static bool read_number(const char *text, uint32_t most, uint32_t *ret_number)
{
    uint32_t number = 0;
    size_t digits = text == NULL ? 0 : strspn(text, "0123456789");
    bool good = digits > 0 && digits < 10 && text[digits] == '\0';
    for (size_t i = 0; good && i < digits; i++) {
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    *ret_number = number;
    return good && number <= most;
}

bool slurm_variables_several(const struct slurm_variables *variables)
{
    bool one = variables->tasks != NULL && strcmp(variables->tasks, "1") == 0;
    return variables->rank != NULL && variables->tasks != NULL && !one;
}

static cadre_status need_number(const char *name, const char *text, uint32_t most,
    uint32_t *ret_number, struct cadre_error *error)
{
    if (text == NULL) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "%s is not set; start the program with srun", name);
    }
    return read_number(text, most, ret_number)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "%s is '%.*s', not a whole number from 0 to %" PRIu32, name,
                     CLUSTER_TEXT_SHOWN, text, most);
}

/* The hosts of a step, and how many of its tasks each has. */
struct layout {
    struct slurm_hosts hosts;
    uint32_t *counts; /* [hosts.count] */
    uint32_t fullest;
    uint32_t tasks;
};

static void layout_clear(struct layout *layout)
{
    slurm_hosts_clear(&layout->hosts);
    free(layout->counts);
}

static cadre_status slurm_spread(const struct slurm_variables *variables, uint32_t per_node,
    struct layout *layout, struct cadre_error *error)
{
    size_t count = 0;
    if (per_node == 0 && variables->per_host == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "neither SLURM_STEP_TASKS_PER_NODE nor SLURM_TASKS_PER_NODE is set; start the program "
            "with srun");
    }
    if (per_node == 0) {
        CADRE_TRY(slurm_counts_expand(variables->per_host, &layout->counts, &count, error));
        return count == layout->hosts.count
                   ? CADRE_OK
                   : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                         "Slurm lists %zu hosts ('%.*s'), and numbers of tasks for %zu ('%.*s')",
                         layout->hosts.count, CLUSTER_TEXT_SHOWN, variables->hosts, count,
                         CLUSTER_TEXT_SHOWN, variables->per_host);
    }
    layout->counts = calloc(layout->hosts.count, sizeof *layout->counts);
    if (layout->counts == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the numbers of tasks");
    }
    for (size_t i = 0; i < layout->hosts.count; i++) {
        layout->counts[i] = per_node;
    }
    return CADRE_OK;
}

static cadre_status lay_out(const struct slurm_variables *variables, uint32_t per_node,
    struct layout *layout, struct cadre_error *error)
{
    uint32_t tasks;
    CADRE_TRY(need_number("SLURM_STEP_NUM_TASKS (or SLURM_NTASKS)", variables->tasks,
        CADRE_CLUSTER_TASKS_MAX, &tasks, error));
    if (variables->hosts == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "neither SLURM_STEP_NODELIST nor SLURM_JOB_NODELIST is set; start the program with "
            "srun");
    }
    CADRE_TRY(slurm_hosts_expand(variables->hosts, &layout->hosts, error));
    CADRE_TRY(slurm_spread(variables, per_node, layout, error));
    uint64_t all = 0;
    for (size_t i = 0; i < layout->hosts.count; i++) {
        all += layout->counts[i];
        layout->fullest = layout->counts[i] > layout->fullest ? layout->counts[i] : layout->fullest;
    }
    if (all != tasks) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the step has %" PRIu32 " tasks, and its hosts have room for %" PRIu64
            " (%zu hosts, '%.*s')",
            tasks, all, layout->hosts.count, CLUSTER_TEXT_SHOWN,
            per_node == 0 ? variables->per_host : "tasks_per_node");
    }
    layout->tasks = tasks;
    return CADRE_OK;
}

static cadre_status check_jobs(
    const cadre_slurm_options *options, uint32_t tasks, struct cadre_error *error)
{
    uint64_t all = 0;
    for (size_t i = 0; i < options->job_count; i++) {
        CADRE_TRY(cluster_require(
            options->jobs[i].name, "cadre_cluster_resolver_slurm", "a job's name", error));
        all += options->jobs[i].tasks;
    }
    return all == tasks ? CADRE_OK
                        : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                              "the jobs have %" PRIu64 " tasks, and the Slurm step has %" PRIu32,
                              all, tasks);
}

/* The job of the next rank. */
struct cursor {
    const cadre_slurm_job *jobs;
    size_t at;
    uint32_t index; /* in that job */
};

static cadre_status add_tasks(const struct layout *layout, const cadre_slurm_options *options,
    uint32_t rank, struct slurm_task *slurm_task_found, struct cadre_error *error)
{
    const cadre_slurm_job all = {.name = "worker", .tasks = layout->tasks};
    struct cursor cursor = {.jobs = options->jobs == NULL ? &all : options->jobs};
    uint32_t port_base = options->port_base == 0 ? PORT_BASE : options->port_base;
    uint32_t next = 0;
    for (size_t host = 0; host < layout->hosts.count; host++) {
        for (uint32_t local = 0; local < layout->counts[host]; local++, next++) {
            while (cursor.index == cursor.jobs[cursor.at].tasks) {
                cursor.at++;
                cursor.index = 0;
            }
            struct cluster_job *job;
            char address[CADRE_CLUSTER_ADDRESS_BYTES + 16];
            snprintf(address, sizeof address, "%s:%" PRIu32, layout->hosts.names[host],
                port_base + local);
            CADRE_TRY(
                cluster_spec_job(slurm_task_found->spec, cursor.jobs[cursor.at].name, &job, error));
            CADRE_TRY(cluster_spec_add(slurm_task_found->spec, job, cursor.index, address, error));
            if (next == rank) {
                snprintf(slurm_task_found->task_type, sizeof slurm_task_found->task_type, "%s",
                    job->name);
                slurm_task_found->task_id = cursor.index;
                slurm_task_found->gpu_first = local * slurm_task_found->gpus;
            }
            cursor.index++;
        }
    }
    return CADRE_OK;
}

static cadre_status share_gpus(const struct slurm_variables *variables,
    const cadre_slurm_options *options, uint32_t fullest, uint32_t *ret_each,
    struct cadre_error *error)
{
    uint32_t host = options->gpus_per_node;
    if (host == 0 && variables->gpus != NULL) {
        CADRE_TRY(need_number("SLURM_GPUS_ON_NODE", variables->gpus, 1024, &host, error));
    }
    *ret_each = options->gpus_per_task == 0 ? host / fullest : options->gpus_per_task;
    return (uint64_t)*ret_each * fullest <= host ? CADRE_OK
                                                 : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                                                       "%" PRIu32 " tasks on a host need %" PRIu32
                                                       " GPUs each, and a host has %" PRIu32,
                                                       fullest, *ret_each, host);
}

static cadre_status cluster_slurm_resolve(const struct slurm_variables *variables,
    const cadre_slurm_options *options, struct layout *layout, struct slurm_task *slurm_task_found,
    struct cadre_error *error)
{
    uint32_t rank;
    uint32_t port_base = options->port_base == 0 ? PORT_BASE : options->port_base;
    CADRE_TRY(lay_out(variables, options->tasks_per_node, layout, error));
    CADRE_TRY(
        need_number("SLURM_PROCID", variables->rank, CADRE_CLUSTER_TASKS_MAX - 1, &rank, error));
    if (rank >= layout->tasks) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "SLURM_PROCID is %" PRIu32 ", and the step has %" PRIu32 " tasks", rank, layout->tasks);
    }
    if ((uint64_t)port_base + layout->fullest - 1 > PORT_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu32 " tasks on a host have no ports from %" PRIu32 " on; give a lower port_base",
            layout->fullest, port_base);
    }
    if (options->jobs != NULL) {
        CADRE_TRY(check_jobs(options, layout->tasks, error));
    }
    CADRE_TRY(share_gpus(variables, options, layout->fullest, &slurm_task_found->gpus, error));
    CADRE_TRY(cluster_spec_new(&slurm_task_found->spec, error));
    return add_tasks(layout, options, rank, slurm_task_found, error);
}

cadre_status slurm_resolve(const struct slurm_variables *variables,
    const cadre_slurm_options *options, struct slurm_task *ret_task, struct cadre_error *error)
{
    *ret_task = (struct slurm_task){.task_id = CADRE_TASK_NONE};
    struct layout layout = {.counts = NULL};
    cadre_status status = cluster_slurm_resolve(variables, options, &layout, ret_task, error);
    if (status != CADRE_OK) {
        cadre_cluster_spec_release(ret_task->spec);
        ret_task->spec = NULL;
    }
    layout_clear(&layout);
    return status;
}
