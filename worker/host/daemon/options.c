/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/options.h"

#include "common/base/log_options.h"
#include "common/model/limits.h"
#include "worker/host/daemon/mesh_host.h"

#define ROW(member) .offset = offsetof(struct worker_options, member)

static const char *const limits_choices[] = {"strict", "best-effort", NULL};

static const struct option_row rows[] = {
    {.name = "coordinator",
        .letter = 'c',
        .type = OPTION_TEXT,
        ROW(coordinator),
        .metavar = "ADDRESS",
        .environment = "CADRE_COORDINATOR",
        .fallback = "unix:/run/cadre/coordinator.sock",
        .group = "Cluster",
        .help = "Where the coordinator is: unix:/PATH, 127.0.0.1:PORT, or with TLS HOST:PORT. It "
                "need not be there yet: the worker tries"
                " again until it is."},
    {.name = "name",
        .letter = 'n',
        .type = OPTION_TEXT,
        ROW(name),
        .metavar = "NAME",
        .environment = "CADRE_WORKER_NAME",
        .help = "This worker's name, unique in the cluster. Default: the one in its certificate, "
                "else the name of the host."},
    {.name = "slots",
        .letter = 's',
        .type = OPTION_U64,
        ROW(slots),
        .metavar = "N",
        .environment = "CADRE_SLOTS",
        .fallback = "1",
        .min = 1,
        .max = LIMIT_SLOTS_PER_WORKER,
        .help =
            "Tasks that may run here at one time. They share out the host's GPUs: with one slot "
            "a task has all of them, a replica on each; with as many slots as GPUs each has one."},
    {.name = "gpus",
        .letter = 'g',
        .type = OPTION_TEXT,
        ROW(gpus),
        .metavar = "all|none|N",
        .environment = "CADRE_GPUS",
        .fallback = "all",
        .help =
            "GPUs that tasks get: all that cadre-devices shows here (CUDA_VISIBLE_DEVICES of the "
            "daemon counts), none, or the first N."},
    {.name = "mesh-host",
        .type = OPTION_TEXT,
        ROW(mesh_host),
        .metavar = "ADDRESS",
        .environment = "CADRE_MESH_HOST",
        .fallback = MESH_HOST_AUTO,
        .help =
            "The address of this host on which its tasks listen for those of other hosts. auto is "
            "the one from which it reaches the coordinator; 127.0.0.1 where that is a Unix socket "
            "or loopback. A host with several interfaces names the one that its peers reach, or "
            "the fastest, by its address."},
    {.name = "http",
        .type = OPTION_TEXT,
        ROW(http),
        .metavar = "ADDRESS",
        .environment = "CADRE_WORKER_HTTP",
        .help =
            "Serve /metrics (Prometheus) and /healthz there: 127.0.0.1:9465, [::1]:9465; port 0 "
            "chooses a free one, which the log tells. Loopback is plain HTTP; other addresses need "
            "the TLS files and speak TLS, to certificates of any role but worker. Default: "
            "nowhere."},
    {.name = "ready-file",
        .type = OPTION_TEXT,
        ROW(ready_file),
        .metavar = "PATH",
        .help = "Write this file when the coordinator has taken the worker in for the first time."},
    {.name = "state-dir",
        .letter = 'd',
        .type = OPTION_TEXT,
        ROW(state_dir),
        .metavar = "PATH",
        .environment = "CADRE_STATE_DIR",
        .fallback = "/var/lib/cadre/worker",
        .group = "Tasks",
        .help = "Fetched files and the folders of running tasks. Made when it is not there; held "
                "by one worker at a"
                " time."},
    {.name = "task-user",
        .letter = 'u',
        .type = OPTION_TEXT,
        ROW(task_user),
        .metavar = "USER",
        .environment = "CADRE_TASK_USER",
        .fallback = "nobody",
        .help =
            "When the daemon runs as root: the user of tasks without a uid of their job's own "
            "(--job-uids none, or --checkpoint-folder). Else tasks run as the daemon's own user."},
    {.name = "job-uids",
        .type = OPTION_TEXT,
        ROW(job_uids),
        .metavar = "FIRST-LAST|none",
        .environment = "CADRE_JOB_UIDS",
        .fallback = "60928-61183",
        .help = "When the daemon runs as root: each job that runs here has a uid of these for "
                "itself. None of them may be a user of the host."},
    {.name = "task-memory",
        .type = OPTION_BYTES,
        ROW(task_memory_bytes),
        .metavar = "BYTES",
        .fallback = "0",
        .max = LIMIT_MEMORY_MAX,
        .group = "Limits",
        .help = "Memory of a task whose job names no --memory, and the most that a job may name. "
                "0: no limit."},
    {.name = "task-pids",
        .type = OPTION_U64,
        ROW(task_pids),
        .metavar = "N",
        .fallback = "4096",
        .max = LIMIT_PIDS_MAX,
        .help = "The same for processes and threads. 0: no limit."},
    {.name = "limits",
        .type = OPTION_CHOICE,
        ROW(limits),
        .choices = limits_choices,
        .fallback = "strict",
        .help = "What becomes of a task whose job names a limit that this host cannot keep: it is "
                "not started (strict), or without the limit (best-effort)."},
    {.name = "cgroup",
        .type = OPTION_TEXT,
        ROW(cgroup),
        .metavar = "PATH",
        .environment = "CADRE_CGROUP",
        .help = "The cgroup below which those of tasks are made: /cadre, or from the daemon's own "
                "../cadre-tasks.service. Default: the daemon's own. It has to be delegated to it."},
    {.name = "keep-tasks",
        .type = OPTION_FLAG,
        ROW(keep_tasks),
        .environment = "CADRE_KEEP_TASKS",
        .fallback = "false",
        .help = "Tasks run on when the daemon is killed, or leaves at once after SIGUSR1: its next "
                "life with this state directory takes them over. Without one they end after "
                "--orphan-limit. Else they end with the daemon."},
    {.name = "log-limit",
        .type = OPTION_BYTES,
        ROW(log_limit_bytes),
        .metavar = "BYTES",
        .fallback = "64MiB",
        .min = 4096,
        .help = "What is kept here of one task's log until the coordinator has it; while it is "
                "full, what the task prints is dropped, and the log says how much."},
    {.name = "cache-limit",
        .type = OPTION_BYTES,
        ROW(cache_limit_bytes),
        .metavar = "BYTES",
        .fallback = "0",
        .help = "Programs and files of jobs that stay here for the next job that has them; those "
                "that were used longest ago and that no task needs go first. 0: no bound."},
    {.name = "cache-check",
        .type = OPTION_DURATION,
        ROW(cache_check_us),
        .metavar = "TIME",
        .fallback = "1h",
        .min = 10000,
        .help = "How often the programs and files that running jobs took from here are compared "
                "with their hashes; each start of a task does so, too. What is damaged is removed "
                "and fetched anew, and the log says so."},
    {.name = "grace",
        .type = OPTION_DURATION,
        ROW(grace_us),
        .metavar = "TIME",
        .fallback = "10s",
        .group = "Timing",
        .help = "When the daemon itself ends tasks: their time between SIGTERM and SIGKILL. Before "
                "that, a daemon that drains gives the coordinator as long to move them elsewhere."},
    {.name = "orphan-limit",
        .type = OPTION_DURATION,
        ROW(orphan_us),
        .metavar = "TIME",
        .fallback = "15m",
        .min = 100000,
        .help = "How long tasks may run on without a coordinator before they are ended. When it is "
                "back before that, and before its --rewind-patience, they go on as if nothing had "
                "been; those that others could do without were replaced after its --lease."},
    {.name = "heartbeat",
        .type = OPTION_DURATION,
        ROW(heartbeat_us),
        .metavar = "TIME",
        .fallback = "1s",
        .min = 10000,
        .max = 60000000,
        .help = "How often the worker shows that it lives; at least every third of the "
                "coordinator's lease."},
    {.name = "gpu-timeout",
        .type = OPTION_DURATION,
        ROW(gpu_timeout_us),
        .metavar = "TIME",
        .fallback = "30s",
        .min = 10000,
        .help =
            "At its start the daemon asks the program cadre-devices, which stands beside it, for "
            "the host's GPUs. One that has not answered by then is ended, and tasks get no GPU."},
    {.name = "drain-timeout",
        .type = OPTION_DURATION,
        ROW(drain_us),
        .metavar = "TIME",
        .fallback = "40s",
        .help = "After SIGTERM: how long tasks, their logs and outputs may take to end before the "
                "daemon does."},
    TLS_OPTION_ROWS(struct worker_options, tls),
    LOG_OPTION_ROWS(struct worker_options, log),
};

const struct option_table worker_option_table = {.program = "cadre-worker",
    .summary = "A host's agent in a Cadre cluster: joins the coordinator, runs tasks as processes "
               "of their own, ships"
               " their logs and outputs.",
    .notes = "SIGTERM drains it: jobs go on without its tasks or start them elsewhere, what these "
             "left is shipped, the daemon exits with 0. SIGHUP reads the TLS files again.\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .config = true,
    .config_environment = "CADRE_WORKER_CONFIG",
    .config_default = "/etc/cadre/worker.conf"};
