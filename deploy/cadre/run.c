/* SPDX-License-Identifier: Apache-2.0
 * `cadre run`: its option table, from which it fills the options of deploy/local and follows the
 * job with the monitor. */
#include "deploy/cadre/run.h"

#include <stdio.h>
#include <string.h>

#include "common/model/strategy_names.h"
#include "common/view/view.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/job_options.h"
#include "coordinator/cli/render/monitor.h"
#include "deploy/cadre/run_metrics.h"
#include "deploy/cadre/run_trace.h"
#include "deploy/local/local.h"

#define ROW(kind, flag, member, value_name, default_text)                                          \
    OPTION_ROW(kind, flag, struct run_options, member, value_name, default_text)

struct run_options {
    struct task_options task;
    char *strategy;
    uint64_t replicas;
    char *gpus;
    struct option_list environment;
    char *output;
    bool terminal;
    uint64_t grace_us;
    uint64_t max_restarts;
    char *mesh_ports;
    char *verify_state;
    bool verify_losses;
    uint64_t checkpoint_every;
    uint64_t checkpoints_kept;
    char *checkpoint_folder;
    char *restore_path;
    char *metrics;
    char *trace;
    char *trace_steps;
};

static const struct option_row rows[] = {
    {TASKS_OPTION_ROW(struct run_options),
        .help = "Tasks of the job: processes that train together. It begins with MAX and, where "
                "--max-restarts lets it survive a failure, goes on as long as MIN are left; N is "
                "N:N. Default: 1."},
    {ROW(U64, "replicas", replicas, "N", "0"), .letter = 'r', .max = LIMIT_REPLICAS_PER_TASK,
        .help = "Copies of the model in each task (beside parameter servers: in each worker); "
                "0: one per local device."},
    {ROW(TEXT, "gpus", gpus, "all|none|N", "all"), .letter = 'g', .environment = "CADRE_GPUS",
        .help =
            "GPUs of this machine that the tasks share out: all that cadre-devices shows, none, "
            "or the first N. Each task has its own; with more tasks than GPUs some have one "
            "together."},
    {ROW(LIST, "env", environment, "NAME=VALUE", NULL), .letter = 'e',
        .help = "A variable of the tasks' environment, on top of this command's own."},
    {ROW(TEXT, "output", output, "FOLDER", NULL), .letter = 'o',
        .help = "Where tasks leave files: FOLDER/0, FOLDER/1 and so on. Default: the working "
                "folder."},
    {ROW(FLAG, "tty", terminal, NULL, NULL),
        .help = "Each task's standard output and error are one pseudo-terminal, for programs that "
                "print at once to a terminal only, or in colours. Both count as standard output "
                "then. What calls cadre_init prints at once without it."},
    {ROW(DURATION, "grace", grace_us, "TIME", "5s"),
        .help = "How long tasks that are stopped have between SIGTERM and SIGKILL."},
    {ROW(U64, "max-restarts", max_restarts, "N", "0"), .max = LIMIT_RESTARTS,
        .help =
            "How often the job goes on after tasks failed; a task that failed is started again. "
            "0: the first failure ends it."},
    {ROW(TEXT, "mesh-ports", mesh_ports, "FIRST:LAST", NULL), .environment = "CADRE_MESH_PORTS",
        .help = "The TCP ports of 127.0.0.1 at which tasks listen for each other, at least one for "
                "each. Default: any free port."},
    {ROW(TEXT, "metrics", metrics, "FILE", NULL),
        .help =
            "Write what the program reports (cadre_report), by step, as `cadre metrics` does of "
            "a cluster's job: FILE.json or FILE.csv, at the end."},
    {ROW(TEXT, "trace", trace, "FILE", NULL),
        .help = "Record what the tasks do in some steps, for https://ui.perfetto.dev, and say at "
                "the end where the time of a step goes, as `cadre trace` does of a cluster's job."},
    {ROW(TEXT, "trace-steps", trace_steps, "A:B", NULL),
        .help = "From step A on to before step B; of a plain program these are its collectives. "
                "Default: 10:30."},
    VERIFY_OPTION_ROWS(struct run_options),
    {ROW(U64, "checkpoint-every", checkpoint_every, "STEPS", NULL), .max = LIMIT_POSITION,
        .group = "Checkpoints",
        .help = "Take a checkpoint each so many steps. Default: at the end, and when the program "
                "asks."},
    {ROW(U64, "keep-checkpoints", checkpoints_kept, "N", "3"), .min = 1,
        .max = LIMIT_CHECKPOINTS_KEPT, .help = "Keep the newest so many."},
    {ROW(TEXT, "checkpoint-folder", checkpoint_folder, "FOLDER", NULL),
        .help = "Their folder, or s3://BUCKET/KEY of an object store. Default: the tasks' output "
                "folders."},
    {ROW(TEXT, "restore", restore_path, "PATH", NULL),
        .help = "Go on from a checkpoint: the path of its checkpoint-STEP.json, or of a folder; "
                "either may be s3://BUCKET/KEY. Of a folder the newest whole one is taken, for all "
                "tasks, with a warning when a newer "
                "one is damaged; it is read once more for that."},
    {ROW(TEXT, "strategy", strategy, "NAME", NULL), .group = "The strategy",
        .choices = strategy_names,
        .help = "What cadre_strategy_default() gives the program. Default: the program's choice."},
    PS_OPTION_ROWS(struct run_options),
};

static const struct option_table run_table = {.program = "cadre run",
    .usage = "PROGRAM [--] [ARGUMENT...]",
    .summary = "Runs a program on this machine as a job of one or more tasks, in the working "
               "folder, with a coordinator inside this command: no daemon, no network but "
               "loopback. Exits as the job did: 42 when it was preempted (SIGTERM to a task; see "
               "cadre/preemption.h), with its state saved.",
    .notes = "  cadre run -n 2 --replicas 2 ./digits -- --epochs 20\n"
             "  cadre run -n 2:4 --max-restarts 3 --checkpoint-every 100 ./digits\n"
             "  cadre run --restore checkpoint-400.json ./digits\n"
             "  cadre run --restore . ./digits\n"
             "  cadre run -n 2 --metrics curves.csv ./digits\n"
             "  cadre run --strategy parameter_server --workers 2 --ps 2 ./wide\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .stop_at_positional = true,
    .positionals_max = LIMIT_ARGUMENTS + 2};

/* What receives the job's news. */
struct run_watch {
    struct monitor monitor;
    struct run_trace *trace;
    struct run_metrics *metrics;
};

static void on_output(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size)
{
    struct run_watch *run_watch = user;
    monitor_output(&run_watch->monitor, slot, stream, (const char *)bytes, size);
}

static void on_changed(void *user, const struct job_info *info)
{
    struct run_watch *run_watch = user;
    cadre_job *job = view_job_new(info, NULL);
    if (job != NULL) {
        monitor_job(&run_watch->monitor, job);
        cadre_result_release(job);
    }
}

static void on_spans(void *user, struct task_ref task, uint32_t pid, const struct task_spans *spans)
{
    struct run_watch *run_watch = user;
    run_trace_take(run_watch->trace, task, pid, spans);
}

static bool on_values(void *user, bool evaluates, const struct task_values *values,
    const struct verify_generation *generations, size_t generation_count)
{
    struct run_watch *run_watch = user;
    return run_metrics_take(run_watch->metrics, evaluates, values, generations, generation_count);
}

static void on_generations(
    void *user, const struct verify_generation *generations, size_t generation_count)
{
    struct run_watch *run_watch = user;
    run_metrics_finish(run_watch->metrics, generations, generation_count);
}

static void on_warning(void *user, const char *sentence)
{
    (void)user;
    fprintf(stderr, "cadre run: warning: %s\n", sentence);
}

static void print_sentence(const struct invocation *invocation, const char *sentence)
{
    (void)invocation_fail_with(invocation, CADRE_UNKNOWN, sentence);
}

static int cadre_run_run(const struct invocation *invocation, const struct local_options *options,
    struct run_trace *trace, struct run_metrics *metrics)
{
    static const struct local_watch watch = {.output = on_output,
        .changed = on_changed,
        .spans = on_spans,
        .values = on_values,
        .generations = on_generations,
        .warn = on_warning};
    struct run_watch run_watch = {.trace = trace, .metrics = metrics};
    struct cadre_error error = {0};
    char message[LIMIT_TEXT_BYTES] = "";
    int code = CLI_FAILED;
    cadre_status status = CADRE_RESOURCE_EXHAUSTED;
    if (monitor_open(&run_watch.monitor, options->tasks, true, stdout, stderr)) {
        status = local_run(options, &watch, &run_watch, &code, message, &error);
    } else {
        cadre_error_set(&error, status, "no memory to follow the tasks");
    }
    monitor_close(&run_watch.monitor);
    run_trace_finish(trace);
    if (status != CADRE_OK) {
        print_sentence(invocation, error.text);
        return status == CADRE_INVALID_ARGUMENT ? CLI_USAGE : CLI_FAILED;
    }
    if (code != 0) {
        print_sentence(invocation, message[0] != '\0' ? message : "the job failed");
    }
    return code;
}

/* Checks what the option table cannot, and runs. */
static int run_program(const struct invocation *invocation)
{
    const struct run_options *values = invocation->values;
    struct task_counts counts;
    struct port_range mesh_ports;
    struct cadre_error error = {0};
    int first = 0;
    int code = CLI_DONE;
    if (!program_options_make(invocation, &first, &code) ||
        !task_options_make(
            invocation, &values->task, values->strategy, LIMIT_SLOTS_PER_WORKER, &counts, &code)) {
        return code;
    }
    if (port_range_parse("--mesh-ports", values->mesh_ports, counts.all, &mesh_ports, &error) !=
        CADRE_OK) {
        return invocation_usage(invocation, "%s", error.text);
    }
    static const struct option_list no_files;
    struct environment_list environment = {0};
    if (!environment_options_make(
            invocation, &values->environment, &no_files, &environment, &code) ||
        !environment_options_verify(
            invocation, values->verify_state, values->verify_losses, &environment, &code)) {
        environment_list_free(&environment);
        return code;
    }
    struct run_trace trace = {0};
    struct run_metrics metrics = {0};
    struct local_options options = {.program = invocation_argument(invocation, 0),
        .arguments = (const char *const *)&invocation->argv[first],
        .argument_count = (size_t)(invocation->argc - first),
        .environment = (const char *const *)environment.items,
        .environment_count = environment.count,
        .tasks = counts.all,
        .tasks_min = ps_job_is_set(&counts.ps_job) ? counts.all : counts.least,
        .strategy = values->strategy,
        .ps_job = counts.ps_job,
        .replicas = (uint32_t)values->replicas,
        .gpus = values->gpus,
        .mesh_ports = mesh_ports,
        .output = values->output,
        .terminal = values->terminal,
        .grace_us = values->grace_us,
        .max_restarts = (uint32_t)values->max_restarts,
        .checkpoint_every = values->checkpoint_every,
        .checkpoints_kept = (uint32_t)values->checkpoints_kept,
        .checkpoint_folder = values->checkpoint_folder,
        .restore_path = values->restore_path};
    if (run_trace_open(&trace, invocation, values->trace, values->trace_steps, &options, &code) &&
        run_metrics_open(&metrics, invocation, values->metrics, &code)) {
        code = cadre_run_run(invocation, &options, &trace, &metrics);
    }
    run_metrics_close(&metrics);
    run_trace_close(&trace);
    environment_list_free(&environment);
    return invocation_end(invocation, code);
}

int verb_run(const struct cli *cli, int argc, char **argv)
{
    struct run_options values = {0};
    struct invocation invocation;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &run_table, &values, argc, argv, &code)) {
        code = run_program(&invocation);
    }
    invocation_close(&invocation);
    return code;
}
