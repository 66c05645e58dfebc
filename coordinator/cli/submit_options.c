/* SPDX-License-Identifier: Apache-2.0
 * The option table of `cadre submit`, and its values as options of the client; used by submit.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/near_miss.h"
#include "common/model/limits.h"
#include "common/model/strategy_names.h"
#include "coordinator/cli/job_options.h"
#include "coordinator/cli/submit.h"

#define ROW(kind, flag, member, value_name, default_text)                                          \
    OPTION_ROW(kind, flag, struct submit_options, member, value_name, default_text)

static const struct option_row rows[] = {
    CLI_COORDINATOR_ROW,
    CLI_JSON_ROW("With --detach: print the job's number as JSON."),
    {TASKS_OPTION_ROW(struct submit_options), .group = "The job",
        .help = "Tasks of the job: processes that train together, each on a slot of a worker. It "
                "begins once MIN are free, goes on as long as MIN are left, and takes in more, up "
                "to MAX, whenever there is room; N is N:N. Default: 1."},
    {ROW(U64, "replicas", replicas, "N", "0"), .letter = 'r', .max = LIMIT_REPLICAS_PER_TASK,
        .help = "Copies of the model in each task (beside parameter servers: in each worker); "
                "0: one per local device."},
    {ROW(U64, "gpus", gpus, "N", "0"), .letter = 'g', .max = LIMIT_GPUS_PER_WORKER,
        .help =
            "Each task needs N GPUs to itself: it is placed only on workers whose slots have as "
            "many each (`cadre workers NAME`). 0: anywhere, with the GPUs that its slot has."},
    {ROW(LIST, "file", files, "PATH[:NAME]", NULL), .letter = 'f',
        .help = "A file that the tasks find as NAME in their working folder; NAME is relative, by "
                "default the last part of PATH. A folder: all files in it, hidden ones too, with "
                "their folders, beneath NAME (\".\": beside the program). A quoted pattern, "
                "'data/*.bin': each file and folder that matches, beneath NAME if there is one. "
                "Links count as what they lead to. A path that holds a colon needs a NAME. "
                "s3://BUCKET/KEY or https://HOST/PATH: an object that each worker fetches with the "
                "credentials in the job's environment (--env-file); all tasks get the same bytes "
                "of it. Patterns are of local files only."},
    {ROW(TEXT, "outputs", outputs, "s3://BUCKET/KEY", NULL),
        .help = "Where the files go that tasks leave in their output folders: each worker writes "
                "them to s3://BUCKET/KEY/JOB/TASK/..., with the credentials in the job's "
                "environment. Default: to the coordinator; `cadre get` fetches them."},
    {ROW(LIST, "env", environment, "NAME[=VALUE]", NULL), .letter = 'e',
        .help = "A variable of the tasks' environment; without a value, this command's own, which "
                "then is in no listing of processes."},
    {ROW(LIST, "env-file", environment_files, "FILE", NULL),
        .help = "Variables from a file, each a line NAME=VALUE or NAME; \"#\" begins a comment. "
                "Those of --env come before them."},
    {ROW(FLAG, "tty", terminal, NULL, NULL),
        .help = "Each task's standard output and error are one pseudo-terminal, for programs that "
                "print at once to a terminal only, or in colours. Both count as standard output "
                "then. It has 80 columns, and TERM is xterm unless --env sets it. What calls "
                "cadre_init prints at once without it."},
    {ROW(TEXT, "name", name, "NAME", NULL),
        .help = "What listings call the job. Default: the program's name."},
    {ROW(TEXT, "priority", priority, "N", NULL),
        .help = "Jobs with a higher number are placed first; may be negative. Default: 0."},
    {ROW(TEXT, "strategy", strategy, "NAME", NULL), .choices = strategy_names,
        .help = "What cadre_strategy_default() gives the program. Default: the program's choice."},
    PS_OPTION_ROWS(struct submit_options),
    {ROW(BYTES, "memory", memory_bytes, "BYTES", NULL), .min = LIMIT_MEMORY_MIN,
        .max = LIMIT_MEMORY_MAX, .group = "Limits",
        .help = "Of each task, with all that it starts: 2GiB. One that uses more is killed, and "
                "the job's message names the limit. Default: the worker's."},
    {ROW(TEXT, "cpus", cpus, "N", NULL),
        .help = "CPU time of each task, as so many CPUs: 1.5. Default: no limit."},
    {ROW(U64, "pids", pids, "N", NULL), .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX,
        .help = "Processes and threads of each task at one time. Default: the worker's."},
    {ROW(DURATION, "time-limit", time_limit_us, "TIME", NULL), .max = LIMIT_TIME_US,
        .help = "How long the job may run, from its first start, preempted or not: 2h. Then its "
                "state is saved, as for a preemption, and it fails."},
    {ROW(U64, "max-restarts", max_restarts, "N", "3"), .max = LIMIT_RESTARTS,
        .group = "When something fails",
        .help = "How often the job goes on after tasks failed by themselves. Workers that are lost "
                "or drained do not count. 0: the first failure ends it."},
    {ROW(DURATION, "wait", wait_us, "TIME", NULL),
        .help = "How long it waits, once it has begun, with fewer than MIN tasks before it fails; "
                "in the queue it waits as long as it takes. Default: the coordinator's."},
    {ROW(DURATION, "stall-timeout", stall_us, "TIME", NULL),
        .help = "A step that does not end for so long while others wait for one task: that task is "
                "replaced. Default: the coordinator's."},
    VERIFY_OPTION_ROWS(struct submit_options),
    {ROW(U64, "checkpoint-every", checkpoint_every, "STEPS", NULL), .max = LIMIT_POSITION,
        .group = "Checkpoints",
        .help = "Take a checkpoint each so many steps. Default: at the end, and when the program "
                "asks."},
    {ROW(U64, "keep-checkpoints", checkpoints_kept, "N", "3"), .min = 1,
        .max = LIMIT_CHECKPOINTS_KEPT, .help = "Keep the newest so many."},
    {ROW(TEXT, "checkpoint-folder", checkpoint_folder, "PATH", NULL),
        .help = "Where they go: an absolute path that every worker sees under this name, or "
                "s3://BUCKET/KEY of an object store, for which the tasks have credentials. "
                "Default: to the coordinator; `cadre get` fetches them."},
    {ROW(TEXT, "restore", restore, "JOB[@STEP]", NULL),
        .help =
            "Go on from the newest whole checkpoint of this job, or from that of a step, with as "
            "many tasks as you like. If the newest is damaged, the one before it is taken, and the "
            "command prints that; one that is named by its step is not replaced. Or from a "
            "checkpoint in an object store, of any origin: its checkpoint-STEP.json, or what "
            "it lies in, of which the newest is taken. This command looks whether it is there, "
            "with the store and the credentials that --env sets, else with its own; the tasks "
            "read it with theirs."},
    {ROW(FLAG, "raw", raw, NULL, NULL), .group = "Here",
        .help = "Write what the tasks print to the terminal byte by byte. Without it control "
                "characters are shown there, \\x1b for escape, so that they do not act on the "
                "terminal; files and pipes get the bytes in any case."},
    {ROW(FLAG, "detach", detach, NULL, NULL), .letter = 'd',
        .help = "Submit and return; else the job is followed, and its exit code is that of this "
                "command (128 + N for a task that signal N ended)."},
};

const struct option_table submit_table = {.program = "cadre submit",
    .usage = "./PROGRAM [--] [ARGUMENT...]",
    .summary = "Sends an executable and its files to the cluster, where none of them has to exist, "
               "and follows the job: what its tasks print, and its progress. Contents that the "
               "coordinator has already are not sent again.",
    .notes =
        "SIGTERM to a task is a notice of preemption: the job saves at one step, leaves, and\n"
        "goes on from there when --max-restarts allows it; else this exits with 42. See\n"
        "cadre/preemption.h; --env CADRE_PREEMPTION=off leaves SIGTERM alone.\n"
        "While it is followed, Ctrl-C cancels the job and waits for its end; a second Ctrl-C\n"
        "leaves it alone.\n\n"
        "  cadre submit -n 2 --replicas 2 --file train.bin ./digits -- --epochs 20\n"
        "  cadre submit -n 2 --file data --file 'conf/*.json:conf' ./digits\n"
        "  cadre submit --env-file store.env --file s3://data/train.bin --outputs s3://runs/digits "
        "./digits\n"
        "  cadre submit -n 2:4 --checkpoint-every 500 ./digits\n"
        "  cadre submit -n 8 --restore 3 ./digits             goes on where job 3 was\n"
        "  cadre submit --restore 3@400 ./digits              goes on at its step 400\n"
        "  cadre submit --restore s3://models/run-7 ./digits  goes on from the newest there\n"
        "  cadre submit --strategy parameter_server --workers 4 --ps 2 --evaluators 1 ./wide\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .stop_at_positional = true,
    .positionals_max = LIMIT_ARGUMENTS + 2};

static bool parse_priority(
    const struct invocation *invocation, const char *text, int32_t *ret_priority, int *ret_exit)
{
    char *end = NULL;
    *ret_priority = 0;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < INT32_MIN || value > INT32_MAX) {
        *ret_exit = invocation_usage(invocation,
            "--priority: \"%s\" is not a whole number from %" PRId32 " to %" PRId32, text,
            INT32_MIN, INT32_MAX);
        return false;
    }
    *ret_priority = (int32_t)value;
    return true;
}

/* "1.5" to 1500. */
static bool parse_cpus(
    const struct invocation *invocation, const char *text, uint32_t *ret_thousandths, int *ret_exit)
{
    char *end = NULL;
    *ret_thousandths = 0;
    if (text == NULL) {
        return true;
    }
    double value = strtod(text, &end) * 1000;
    bool number = text[0] >= '0' && text[0] <= '9' && end != text && *end == '\0';
    if (!number || !(value >= LIMIT_CPU_MIN && value <= LIMIT_CPU_MAX)) {
        *ret_exit = invocation_usage(invocation,
            "--cpus: \"%s\" is not a number of CPUs from 0.01 to %d; write 2 or 1.5", text,
            LIMIT_CPU_MAX / 1000);
        return false;
    }
    *ret_thousandths = (uint32_t)(value + 0.5);
    return true;
}

/* Cuts "PATH:NAME" in two, in place; what is at PATH goes into the list. */
static bool add_files(
    const struct invocation *invocation, char *text, struct file_list *list, int *ret_exit)
{
    struct cadre_error error = {0};
    const char *name = file_list_name_of(text);
    char *colon = name != NULL ? text + (name - text) - 1 : NULL;
    if (text[0] == '\0' || colon == text || (colon != NULL && colon[1] == '\0')) {
        *ret_exit = invocation_usage(invocation, "--file: \"%s\" has an empty %s: write PATH:NAME",
            text, text[0] == '\0' || colon == text ? "path" : "name");
        return false;
    }
    if (colon != NULL) {
        *colon = '\0';
    }
    cadre_status status = file_list_add(list, text, name, &error);
    if (status != CADRE_OK) {
        status = cadre_error_wrap(&error, status, "--file");
        *ret_exit = invocation_fail_with(invocation, status, error.text);
    }
    return status == CADRE_OK;
}

/* Before anything is asked of a coordinator; what else is wrong with it the client finds. */
static bool program_exists(const struct invocation *invocation, int *ret_exit)
{
    const char *program = invocation_argument(invocation, 0);
    char near[NEAR_MISS_PATH_BYTES];
    if (access(program, F_OK) == 0 || errno != ENOENT || program[0] == '\0') {
        return true;
    }
    bool found = near_miss_file(program, true, near);
    fprintf(stderr, "%s: program %s: there is no such file%s%s%s\n", invocation->table->program,
        program, found ? "; did you mean " : "", found ? near : "", found ? "?" : "");
    *ret_exit = CLI_FAILED;
    return false;
}

bool submit_request_make(
    const struct invocation *invocation, struct submit_request *ret_request, int *ret_exit)
{
    struct submit_options *values = invocation->values;
    *ret_request = (struct submit_request){0};
    int32_t priority = 0;
    int first = 0;
    struct task_counts counts;
    if (!program_options_make(invocation, &first, ret_exit) ||
        !parse_priority(invocation, values->priority, &priority, ret_exit) ||
        !task_options_make(
            invocation, &values->task, values->strategy, LIMIT_TASKS_PER_JOB, &counts, ret_exit)) {
        return false;
    }
    uint32_t cpu_thousandths = 0;
    if (!parse_cpus(invocation, values->cpus, &cpu_thousandths, ret_exit) ||
        !restore_option_parse(invocation, values->restore, &ret_request->restore, ret_exit) ||
        !environment_options_make(invocation, &values->environment, &values->environment_files,
            &ret_request->environment, ret_exit) ||
        !environment_options_verify(invocation, values->verify_state, values->verify_losses,
            &ret_request->environment, ret_exit)) {
        return false;
    }
    ret_request->tasks = counts.all;
    for (size_t i = 0; i < values->files.count; i++) {
        if (!add_files(invocation, values->files.items[i], &ret_request->files, ret_exit)) {
            return false;
        }
    }
    if (!program_exists(invocation, ret_exit) ||
        !object_versions_find(
            invocation, &ret_request->files, &ret_request->environment, ret_exit) ||
        !restore_option_read(
            invocation, &ret_request->environment, &ret_request->restore, ret_exit)) {
        return false;
    }
    ret_request->options = (cadre_submit_options){.program = invocation_argument(invocation, 0),
        .arguments = (const char *const *)&invocation->argv[first],
        .argument_count = (size_t)(invocation->argc - first),
        .environment = (const char *const *)ret_request->environment.items,
        .environment_count = ret_request->environment.count,
        .files = ret_request->files.files,
        .file_count = ret_request->files.count,
        .name = values->name,
        .workers = counts.most,
        .workers_min = counts.least,
        .max_restarts = values->max_restarts > 0 ? (int32_t)values->max_restarts : -1,
        .wait_us = values->wait_us,
        .stall_us = values->stall_us,
        .checkpoint_every = values->checkpoint_every,
        .checkpoints_kept = (uint32_t)values->checkpoints_kept,
        .checkpoint_folder = values->checkpoint_folder,
        .outputs_folder = values->outputs,
        .restore_from = ret_request->restore.job,
        .restore_step = ret_request->restore.step,
        .restore_stored = ret_request->restore.is_stored ? &ret_request->restore.stored : NULL,
        .replicas = (uint32_t)values->replicas,
        .gpus = (uint32_t)values->gpus,
        .memory_bytes = values->memory_bytes,
        .cpu_thousandths = cpu_thousandths,
        .pids = (uint32_t)values->pids,
        .time_limit_us = values->time_limit_us,
        .strategy = values->strategy,
        .priority = priority,
        .terminal = values->terminal,
        .servers = counts.ps_job.servers,
        .evaluators = counts.ps_job.evaluators,
        .server_backups = counts.ps_job.backups};
    return true;
}

void submit_request_free(struct submit_request *request)
{
    file_list_free(&request->files);
    environment_list_free(&request->environment);
    restore_option_free(&request->restore);
}
