/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/daemon/options.h"

#include "common/base/log_options.h"
#include "common/model/limits.h"
#include "worker/daemon/mesh_host.h"

#define ROW(member) .offset = offsetof(struct worker_options, member)

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
            "Tasks run as this user when the daemon runs as root; else as the daemon's own user."},
    {.name = "log-limit",
        .type = OPTION_BYTES,
        ROW(log_limit_bytes),
        .metavar = "BYTES",
        .fallback = "64MiB",
        .min = 1024,
        .help = "What is kept of one task's output; the rest is dropped, and the log says so."},
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
        .help = "How long tasks may run on without a coordinator before they are ended. They go on "
                "as if nothing had been when it is back before."},
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
