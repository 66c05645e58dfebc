/* SPDX-License-Identifier: Apache-2.0
 * The table of `cadre submit`, and what its values mean. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/limits.h"
#include "coordinator/cli/range.h"
#include "coordinator/cli/submit.h"

#define ROW(member) .offset = offsetof(struct submit_options, member)

static const struct option_row rows[] = {
    CLI_COORDINATOR_ROW,
    CLI_JSON_ROW("With --detach: print the job's number as JSON."),
    {.name = "workers",
        .letter = 'n',
        .type = OPTION_TEXT,
        ROW(workers),
        .metavar = "N|MIN:MAX",
        .fallback = "1",
        .group = "The job",
        .help = "Tasks of the job: processes, each on a slot of a worker. It begins once MIN are "
                "free, goes on as long as MIN are left, and takes in more, up to MAX, whenever "
                "there is room; N is N:N."},
    {.name = "replicas",
        .letter = 'r',
        .type = OPTION_U64,
        ROW(replicas),
        .metavar = "N",
        .fallback = "0",
        .max = LIMIT_REPLICAS_PER_TASK,
        .help = "Copies of the model in each task (beside parameter servers: in each worker); "
                "0: one per local device."},
    {.name = "gpus",
        .letter = 'g',
        .type = OPTION_U64,
        ROW(gpus),
        .metavar = "N",
        .fallback = "0",
        .max = LIMIT_GPUS_PER_WORKER,
        .help =
            "Each task needs N GPUs to itself: it is placed only on workers whose slots have as "
            "many each (`cadre workers NAME`). 0: anywhere, with the GPUs that its slot has."},
    {.name = "file",
        .letter = 'f',
        .type = OPTION_LIST,
        ROW(files),
        .metavar = "PATH[:NAME]",
        .help = "A file that the tasks find as NAME in their working folder; NAME is relative, by "
                "default the last part of PATH. A path that holds a colon needs a NAME."},
    {.name = "env",
        .letter = 'e',
        .type = OPTION_LIST,
        ROW(environment),
        .metavar = "NAME[=VALUE]",
        .help = "A variable of the tasks' environment; without a value, this command's own, which "
                "then is in no listing of processes."},
    {.name = "env-file",
        .type = OPTION_LIST,
        ROW(environment_files),
        .metavar = "FILE",
        .help = "Variables from a file, each a line NAME=VALUE or NAME; \"#\" begins a comment. "
                "Those of --env come before them."},
    {.name = "name",
        .type = OPTION_TEXT,
        ROW(name),
        .metavar = "NAME",
        .help = "What listings call the job. Default: the program's name."},
    {.name = "priority",
        .type = OPTION_TEXT,
        ROW(priority),
        .metavar = "N",
        .help = "Jobs with a higher number are placed first; may be negative. Default: 0."},
    {.name = "strategy",
        .type = OPTION_TEXT,
        ROW(strategy),
        .metavar = "NAME",
        .help = "What cadre_strategy_default() gives the program. Default: the program's choice."},
    PS_OPTION_ROWS(struct submit_options),
    {.name = "memory",
        .type = OPTION_BYTES,
        ROW(memory_bytes),
        .metavar = "BYTES",
        .min = LIMIT_MEMORY_MIN,
        .max = LIMIT_MEMORY_MAX,
        .group = "Limits",
        .help = "Of each task, with all that it starts: 2GiB. One that uses more is ended, and "
                "says so. Default: the worker's."},
    {.name = "cpus",
        .type = OPTION_TEXT,
        ROW(cpus),
        .metavar = "N",
        .help = "CPU time of each task, as so many CPUs: 1.5. Default: no limit."},
    {.name = "pids",
        .type = OPTION_U64,
        ROW(pids),
        .metavar = "N",
        .min = LIMIT_PIDS_MIN,
        .max = LIMIT_PIDS_MAX,
        .help = "Processes and threads of each task at one time. Default: the worker's."},
    {.name = "time-limit",
        .type = OPTION_DURATION,
        ROW(time_limit_us),
        .metavar = "TIME",
        .max = LIMIT_TIME_US,
        .help = "How long the job may run, from its first start, preempted or not: 2h. Then its "
                "state is saved, as for a preemption, and it fails."},
    {.name = "max-restarts",
        .type = OPTION_U64,
        ROW(max_restarts),
        .metavar = "N",
        .fallback = "3",
        .max = LIMIT_RESTARTS,
        .group = "When something fails",
        .help = "How often the job goes on after tasks failed by themselves. Workers that are lost "
                "or drained do not count. 0: the first failure ends it."},
    {.name = "wait",
        .type = OPTION_DURATION,
        ROW(wait_us),
        .metavar = "TIME",
        .help = "How long it waits, once it has begun, with fewer than MIN tasks before it fails; "
                "in the queue it waits as long as it takes. Default: the coordinator's."},
    {.name = "stall-timeout",
        .type = OPTION_DURATION,
        ROW(stall_us),
        .metavar = "TIME",
        .help = "A step that does not end for so long while others wait for one task: that task is "
                "replaced. Default: the coordinator's."},
    VERIFY_OPTION_ROWS(struct submit_options),
    {.name = "checkpoint-every",
        .type = OPTION_U64,
        ROW(checkpoint_every),
        .metavar = "STEPS",
        .max = LIMIT_POSITION,
        .group = "Checkpoints",
        .help = "Take a checkpoint each so many steps. Default: at the end, and when the program "
                "asks."},
    {.name = "keep-checkpoints",
        .type = OPTION_U64,
        ROW(checkpoints_kept),
        .metavar = "N",
        .fallback = "3",
        .min = 1,
        .max = LIMIT_CHECKPOINTS_KEPT,
        .help = "Keep the newest so many."},
    {.name = "checkpoint-folder",
        .type = OPTION_TEXT,
        ROW(checkpoint_folder),
        .metavar = "PATH",
        .help = "Where they go: an absolute path that every worker sees under this name. Default: "
                "to the coordinator; `cadre get` fetches them."},
    {.name = "restore",
        .type = OPTION_TEXT,
        ROW(restore),
        .metavar = "JOB[@STEP]",
        .help =
            "Go on from the newest whole checkpoint of this job, or from that of a step, with as "
            "many tasks as you like. If the newest is damaged, the one before it is taken, and "
            "it is said; one that is named by its step is not replaced."},
    {.name = "raw",
        .type = OPTION_FLAG,
        ROW(raw),
        .group = "Here",
        .help = "Let the terminal have what the tasks print byte by byte. Without it control "
                "characters are shown there, \\x1b for escape, so that it does not obey a job; "
                "files and pipes get the bytes in any case."},
    {.name = "detach",
        .letter = 'd',
        .type = OPTION_FLAG,
        ROW(detach),
        .help = "Submit and return; else the job is followed, and its exit code is that of this "
                "command (128 + N for a task that signal N ended)."},
};

const struct option_table submit_table = {.program = "cadre submit",
    .usage = "./PROGRAM [--] [ARGUMENT...]",
    .summary = "Sends an executable and its files to the cluster, where nothing of them needs to "
               "be, and follows the job: what its tasks print, and its progress. Contents that the "
               "coordinator has already are not sent again.",
    .notes =
        "SIGTERM to a task is a notice of preemption: the job saves at one step, leaves, and\n"
        "goes on from there when --max-restarts allows it; else this exits with 42. See\n"
        "cadre/preemption.h; --env CADRE_PREEMPTION=off leaves SIGTERM alone.\n"
        "While it is followed, Ctrl-C cancels the job and waits for its end; a second Ctrl-C\n"
        "leaves it alone.\n\n"
        "  cadre submit --workers 2 --replicas 2 --file train.bin ./digits -- --epochs 20\n"
        "  cadre submit --workers 2:4 --checkpoint-every 500 ./digits\n"
        "  cadre submit --workers 8 --restore 3 ./digits      goes on where job 3 was\n"
        "  cadre submit --restore 3@400 ./digits              goes on at its step 400\n"
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

/* "3" or "3@400". */
static bool parse_restore(const struct invocation *invocation, const char *text, uint64_t *ret_job,
    uint64_t *ret_step, int *ret_exit)
{
    *ret_job = 0;
    *ret_step = 0;
    if (text == NULL || restore_point_parse(text, ret_job, ret_step)) {
        return true;
    }
    *ret_exit = invocation_usage(invocation,
        "--restore: \"%s\" is neither the number of a job nor JOB@STEP; write 3 or 3@400", text);
    return false;
}

/* Cuts "PATH:NAME" in two, in place. */
static bool parse_file(
    const struct invocation *invocation, char *text, cadre_file *ret_file, int *ret_exit)
{
    char *colon = strrchr(text, ':');
    *ret_file = (cadre_file){.path = text};
    if (colon == NULL) {
        return true;
    }
    *colon = '\0';
    ret_file->name = colon + 1;
    if (colon == text || colon[1] == '\0') {
        *colon = ':';
        *ret_exit = invocation_usage(invocation, "--file: \"%s\" has an empty %s: write PATH:NAME",
            text, colon == text ? "path" : "name");
        return false;
    }
    return true;
}

bool submit_request_make(
    const struct invocation *invocation, struct submit_request *ret_request, int *ret_exit)
{
    struct submit_options *values = invocation->values;
    *ret_request = (struct submit_request){0};
    if (invocation_argument_count(invocation) == 0) {
        *ret_exit = invocation_usage(
            invocation, "which program? `cadre submit ./PROGRAM`; --help shows more");
        return false;
    }
    int32_t priority = 0;
    uint32_t workers_min = 1;
    uint32_t workers = 1;
    if (!parse_priority(invocation, values->priority, &priority, ret_exit)) {
        return false;
    }
    if (!range_parse(values->workers, LIMIT_TASKS_PER_JOB, &workers_min, &workers)) {
        *ret_exit = invocation_usage(invocation,
            "--workers: \"%s\" is neither a number of tasks nor MIN:MAX, within 1..%d; write 4 or "
            "2:4",
            values->workers, LIMIT_TASKS_PER_JOB);
        return false;
    }
    uint32_t cpu_thousandths = 0;
    uint64_t restore_from = 0;
    uint64_t restore_step = 0;
    if (!parse_cpus(invocation, values->cpus, &cpu_thousandths, ret_exit) ||
        !parse_restore(invocation, values->restore, &restore_from, &restore_step, ret_exit) ||
        !environment_options_make(invocation, &values->environment, &values->environment_files,
            &ret_request->environment, ret_exit) ||
        !environment_options_verify(invocation, values->verify_state, values->verify_losses,
            &ret_request->environment, ret_exit)) {
        return false;
    }
    struct ps_job ps_job;
    if (!ps_options_make(invocation, &values->ps_job, values->strategy, workers_min, workers,
            &ps_job, ret_exit)) {
        return false;
    }
    ret_request->tasks = ps_job_is_set(&ps_job) ? (uint32_t)ps_job_task_count(&ps_job) : workers;
    ret_request->files = calloc(values->files.count + 1, sizeof *ret_request->files);
    if (ret_request->files == NULL) {
        *ret_exit = CLI_FAILED;
        fprintf(stderr, "%s: no memory\n", invocation->table->program);
        return false;
    }
    for (size_t i = 0; i < values->files.count; i++) {
        if (!parse_file(invocation, values->files.items[i], &ret_request->files[i], ret_exit)) {
            return false;
        }
    }
    int first = 1; /* a "--" behind the program separates it from its arguments */
    if (invocation_argument_count(invocation) > 1 &&
        strcmp(invocation_argument(invocation, 1), "--") == 0) {
        first = 2;
    }
    ret_request->options = (cadre_submit_options){.program = invocation_argument(invocation, 0),
        .arguments = (const char *const *)&invocation->argv[invocation->result.first + first],
        .argument_count = (size_t)(invocation_argument_count(invocation) - first),
        .environment = (const char *const *)ret_request->environment.items,
        .environment_count = ret_request->environment.count,
        .files = ret_request->files,
        .file_count = values->files.count,
        .name = values->name,
        .workers = workers,
        .workers_min = workers_min,
        .max_restarts = values->max_restarts > 0 ? (int32_t)values->max_restarts : -1,
        .wait_us = values->wait_us,
        .stall_us = values->stall_us,
        .checkpoint_every = values->checkpoint_every,
        .checkpoints_kept = (uint32_t)values->checkpoints_kept,
        .checkpoint_folder = values->checkpoint_folder,
        .restore_from = restore_from,
        .restore_step = restore_step,
        .replicas = (uint32_t)values->replicas,
        .gpus = (uint32_t)values->gpus,
        .memory_bytes = values->memory_bytes,
        .cpu_thousandths = cpu_thousandths,
        .pids = (uint32_t)values->pids,
        .time_limit_us = values->time_limit_us,
        .strategy = values->strategy,
        .priority = priority,
        .servers = ps_job.servers,
        .evaluators = ps_job.evaluators,
        .server_backups = ps_job.backups};
    return true;
}

void submit_request_free(struct submit_request *request)
{
    free(request->files);
    request->files = NULL;
    environment_list_free(&request->environment);
}
