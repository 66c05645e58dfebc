/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/options.h"

#include "common/base/log_options.h"
#include "common/model/limits.h"
#include "worker/host/daemon/mesh_host.h"

#define ROW(kind, flag, member, value_name, default_text)                                          \
    OPTION_ROW(kind, flag, struct worker_options, member, value_name, default_text)

static const char *const limits_choices[] = {"strict", "best-effort", NULL};

static const struct option_row rows[] = {
    {ROW(TEXT, "coordinator", coordinator, "ADDRESS[,ADDRESS...]",
         "unix:/run/cadre/coordinator.sock"),
        .letter = 'c', .environment = "CADRE_COORDINATOR", .group = "Cluster",
        .help = "Where the coordinator is: unix:/PATH, 127.0.0.1:PORT, or with TLS HOST:PORT. "
                "Several, up to 16, are tried one after the other until one takes this worker. It "
                "need not be there yet: the worker tries again until it is."},
    {ROW(TEXT, "name", name, "NAME", NULL), .letter = 'n', .environment = "CADRE_WORKER_NAME",
        .help = "This worker's name, unique in the cluster. Default: the one in its certificate, "
                "else the name of the host."},
    {ROW(U64, "slots", slots, "N", "1"), .letter = 's', .environment = "CADRE_SLOTS", .min = 1,
        .max = LIMIT_SLOTS_PER_WORKER,
        .help =
            "Tasks that may run here at one time. They share out the host's GPUs: with one slot "
            "a task has all of them, a replica on each; with as many slots as GPUs each has one."},
    {ROW(TEXT, "gpus", gpus, "all|none|N", "all"), .letter = 'g', .environment = "CADRE_GPUS",
        .help =
            "GPUs that tasks get: all that cadre-devices shows here (CUDA_VISIBLE_DEVICES of the "
            "daemon counts), none, or the first N."},
    {ROW(TEXT, "mesh-host", mesh_host, "ADDRESS", MESH_HOST_AUTO), .environment = "CADRE_MESH_HOST",
        .help =
            "The address of this host on which its tasks listen for those of other hosts. auto is "
            "the one from which it reaches the coordinator; 127.0.0.1 where that is a Unix socket "
            "or loopback. A host with several interfaces names the one that its peers reach, or "
            "the fastest, by its address."},
    {ROW(TEXT, "mesh-ports", mesh_ports, "FIRST:LAST", NULL), .environment = "CADRE_MESH_PORTS",
        .help =
            "The TCP ports at which tasks listen there, for hosts with a firewall between them: "
            "each takes the first that is free, so at least as many as --slots. Default: any free "
            "port."},
    {ROW(TEXT, "http", http, "ADDRESS", NULL), .environment = "CADRE_WORKER_HTTP",
        .help =
            "Serve /metrics (Prometheus) and /healthz there: 127.0.0.1:9465, [::1]:9465; port 0 "
            "chooses a free one, which the log names. Loopback is plain HTTP; other addresses need "
            "the TLS files and use TLS, for certificates of any role but worker. Default: "
            "nowhere."},
    {ROW(TEXT, "ready-file", ready_file, "PATH", NULL),
        .help = "Write this file when the worker has joined the coordinator for the first time."},
    {ROW(TEXT, "state-dir", state_dir, "PATH", "/var/lib/cadre/worker"), .letter = 'd',
        .environment = "CADRE_STATE_DIR", .group = "Tasks",
        .help = "Fetched files and the folders of running tasks. Made when it is not there; held "
                "by one worker at a"
                " time."},
    {ROW(TEXT, "task-user", task_user, "USER", "nobody"), .letter = 'u',
        .environment = "CADRE_TASK_USER",
        .help =
            "When the daemon runs as root: the user of tasks without a uid of their job's own "
            "(--job-uids none, or --checkpoint-folder). Else tasks run as the daemon's own user."},
    {ROW(TEXT, "job-uids", job_uids, "FIRST-LAST|none", "60928-61183"),
        .environment = "CADRE_JOB_UIDS",
        .help = "When the daemon runs as root: each job that runs here has a uid of these for "
                "itself. None of them may be a user of the host."},
    {ROW(BYTES, "task-memory", task_memory_bytes, "BYTES", "0"), .max = LIMIT_MEMORY_MAX,
        .group = "Limits",
        .help = "Memory of a task whose job names no --memory, and the most that a job may name. "
                "0: no limit."},
    {ROW(U64, "task-pids", task_pids, "N", "4096"), .max = LIMIT_PIDS_MAX,
        .help = "The same for processes and threads. 0: no limit."},
    {ROW(CHOICE, "limits", limits, NULL, "strict"), .choices = limits_choices,
        .help = "A task whose job names a limit that this host cannot keep: it is "
                "not started (strict), or without the limit (best-effort)."},
    {ROW(TEXT, "cgroup", cgroup, "PATH", NULL), .environment = "CADRE_CGROUP",
        .help = "The cgroup below which those of tasks are made: /cadre, or from the daemon's own "
                "../cadre-tasks.service. Default: the daemon's own. It has to be delegated to it."},
    {ROW(FLAG, "keep-tasks", keep_tasks, NULL, "false"), .environment = "CADRE_KEEP_TASKS",
        .help = "Tasks run on when the daemon is killed, or exits at once after SIGUSR1: the next "
                "daemon with this state directory takes them over. Without one they end after "
                "--orphan-limit. Without this option they end with the daemon."},
    {ROW(BYTES, "log-limit", log_limit_bytes, "BYTES", "64MiB"), .min = 4096,
        .help = "What is kept here of one task's log until the coordinator has it; while it is "
                "full, what the task prints is dropped, and the log says how much."},
    {ROW(BYTES, "cache-limit", cache_limit_bytes, "BYTES", "0"),
        .help = "Programs and files of jobs that stay here for the next job that has them; those "
                "that were used longest ago and that no task needs go first. 0: no bound."},
    {ROW(DURATION, "cache-check", cache_check_us, "TIME", "1h"), .min = 10000,
        .help = "How often the programs and files that running jobs took from here are compared "
                "with their hashes; each start of a task does so, too. What is damaged is removed "
                "and fetched again, and logged."},
    {ROW(BYTES, "object-cache-limit", object_cache_limit_bytes, "BYTES", "16GiB"),
        .environment = "CADRE_OBJECT_CACHE_LIMIT", .group = "Object stores",
        .help = "What tasks read of objects stays here, for the next epoch and the next job that "
                "has the same keys: so much of it, and an eighth of the disk at most; what was "
                "used longest ago goes first. 0, or less than 64 MiB: nothing."},
    {ROW(FLAG, "host-credentials", host_credentials, NULL, "false"),
        .environment = "CADRE_HOST_CREDENTIALS",
        .help = "What the daemon itself reads and writes there for jobs whose environment has no "
                "keys: with the credentials that the metadata service of this instance, or of the "
                "daemon's container, gives. Each job that runs here can then use them. Without "
                "this option such a job's tasks do it alone, or it fails."},
    {ROW(DURATION, "grace", grace_us, "TIME", "10s"), .group = "Timing",
        .help = "When the daemon itself ends tasks: their time between SIGTERM and SIGKILL. Before "
                "that, a daemon that drains gives the coordinator as long to move them elsewhere."},
    {ROW(DURATION, "orphan-limit", orphan_us, "TIME", "15m"), .min = 100000,
        .help = "How long tasks may run on without a coordinator before they are ended. When it is "
                "back before that, and before its --rewind-patience, they go on as if nothing had "
                "been; those that others could do without were replaced after its --lease."},
    {ROW(DURATION, "heartbeat", heartbeat_us, "TIME", "1s"), .min = 10000, .max = 60000000,
        .help = "How often the worker sends a heartbeat; at least every third of the "
                "coordinator's lease."},
    {ROW(DURATION, "gpu-timeout", gpu_timeout_us, "TIME", "30s"), .min = 10000,
        .help =
            "At its start the daemon runs the program cadre-devices, installed beside it, to list "
            "the host's GPUs. When it has not ended by then it is killed, and tasks get no GPU. So "
            "long may it take, too, to answer for the use of GPUs while tasks run; else it is "
            "started again, and their use is not known meanwhile."},
    {ROW(DURATION, "drain-timeout", drain_us, "TIME", "40s"),
        .help = "After SIGTERM: how long tasks, their logs and outputs may take to end before the "
                "daemon does."},
    TLS_OPTION_ROWS(struct worker_options, tls),
    LOG_OPTION_ROWS(struct worker_options, log),
};

const struct option_table worker_option_table = {.program = "cadre-worker",
    .title = "worker of a Cadre training cluster",
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
