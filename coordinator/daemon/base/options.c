/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/options.h"

#include "common/base/log_options.h"
#include "common/model/limits.h"

#define ROW(member) .offset = offsetof(struct coordinator_options, member)

static const struct option_row rows[] = {
    {.name = "listen",
        .letter = 'l',
        .type = OPTION_LIST,
        ROW(listen),
        .metavar = "ADDRESS",
        .environment = "CADRE_LISTEN",
        .fallback = "unix:/run/cadre/coordinator.sock",
        .group = "Network",
        .help = "Where clients and workers connect: unix:/PATH, 127.0.0.1:PORT (port 0 chooses a "
                "free one), or with TLS any ADDRESS:PORT; 0.0.0.0:PORT means all of this host's. "
                "May be given several times. Who connects to a Unix socket needs no certificate "
                "and may do everything; at 127.0.0.1:PORT without TLS that is whoever is on this "
                "host, tasks too."},
    {.name = "group",
        .type = OPTION_TEXT,
        ROW(group),
        .metavar = "NAME",
        .environment = "CADRE_GROUP",
        .help = "Unix sockets are open to this group too (0660); else only to the daemon's user "
                "(0600)."},
    {.name = "http",
        .type = OPTION_TEXT,
        ROW(http),
        .metavar = "ADDRESS",
        .environment = "CADRE_COORDINATOR_HTTP",
        .help =
            "Serve /metrics (Prometheus) and /healthz there: 127.0.0.1:9464, [::1]:9464; port 0 "
            "chooses a free one, which the log tells. Loopback is plain HTTP; other addresses need "
            "the TLS files and speak TLS, to certificates of any role but worker. Default: "
            "nowhere."},
    {.name = "ready-file",
        .type = OPTION_TEXT,
        ROW(ready_file),
        .metavar = "PATH",
        .help = "Write the addresses that are served, one a line, to this file once the daemon is "
                "ready. systemd is"
                " told by sd_notify in any case."},
    {.name = "state-dir",
        .letter = 'd',
        .type = OPTION_TEXT,
        ROW(state_dir),
        .metavar = "PATH",
        .environment = "CADRE_STATE_DIR",
        .fallback = "/var/lib/cadre/coordinator",
        .group = "State",
        .help = "The ledger, uploaded files, logs and outputs of jobs. Made when it is not there; "
                "held by one"
                " coordinator at a time."},
    {.name = "keep-jobs",
        .type = OPTION_U64,
        ROW(keep_jobs),
        .metavar = "N",
        .fallback = "1000",
        .min = 1,
        .max = 1000000,
        .help = "Jobs that ended and stay listed, with their logs and outputs; older ones are "
                "forgotten."},
    {.name = "log-limit",
        .type = OPTION_BYTES,
        ROW(log_limit_bytes),
        .metavar = "BYTES",
        .fallback = "64MiB",
        .min = 1024,
        .help = "What is kept of one task's log: its first eighth and the newest rest. What lies "
                "between is let go, and `cadre logs` says how much."},
    {.name = "output-limit",
        .type = OPTION_BYTES,
        ROW(output_limit_bytes),
        .metavar = "BYTES",
        .fallback = "64GiB",
        .min = 1024,
        .max = LIMIT_BLOB_BYTES,
        .help = "The largest file that a job may leave in its output folder."},
    {.name = "storage-quota",
        .type = OPTION_BYTES,
        ROW(storage_quota_bytes),
        .metavar = "BYTES",
        .fallback = "0",
        .help = "Logs, outputs and uploaded files of all jobs together; 0: no bound. At it the "
                "oldest jobs that ended are forgotten; what still does not fit is refused."},
    {.name = "job-quota",
        .type = OPTION_BYTES,
        ROW(job_quota_bytes),
        .metavar = "BYTES",
        .fallback = "0",
        .help = "Logs, outputs and checkpoints of one job; 0: no bound. An output or checkpoint "
                "beyond it is not kept, and the job goes on."},
    {.name = "keep-for",
        .type = OPTION_DURATION,
        ROW(keep_for_us),
        .metavar = "TIME",
        .fallback = "0s",
        .help = "Jobs that ended so long ago are forgotten, with their logs and outputs; 0: they "
                "stay until --keep-jobs or --storage-quota takes them."},
    {.name = "disk-reserve",
        .type = OPTION_BYTES,
        ROW(disk_reserve_bytes),
        .metavar = "BYTES",
        .fallback = "64MiB",
        .help = "What stays free on the disk of the state directory for the ledger. With less, "
                "submissions and uploads are refused, logs and outputs wait at the workers, and "
                "jobs go on."},
    {.name = "check",
        .type = OPTION_FLAG,
        ROW(check),
        .help = "Check every record of the ledger in the state directory against its checksum, "
                "say what is damaged, and end: with 0 if nothing is. No coordinator may run on it. "
                "Each start does the same check first."},
    {.name = "supersede",
        .type = OPTION_FLAG,
        ROW(supersede),
        .help = "The state directory is an older copy, or one of several, and shall be the one "
                "that counts: workers that know a later start of it, or a twin, are taken all the "
                "same, and from then on refuse the other. For one start: without this option such "
                "workers refuse this coordinator, and both sides say so."},
    {.name = "ledger-sync",
        .type = OPTION_DURATION,
        ROW(ledger_sync_us),
        .metavar = "TIME",
        .fallback = "1s",
        .min = 1000,
        .help = "Records of steps are on the disk after so long at the latest. What the tasks hold "
                "outranks them, so"
                " losing some costs nothing but what `cadre verify` could prove."},
    {.name = "lease",
        .type = OPTION_DURATION,
        ROW(lease_us),
        .metavar = "TIME",
        .fallback = "10s",
        .min = 100000,
        .group = "Timing",
        .help =
            "A worker that is silent for so long is lost, with its tasks; but those whose state "
            "nobody else has, as far as is heard, are waited for: --rewind-patience."},
    {.name = "rewind-patience",
        .type = OPTION_DURATION,
        ROW(rewind_us),
        .metavar = "TIME",
        .fallback = "2m",
        .min = 100000,
        .help = "How long a worker may be silent before a job begins again for want of its tasks, "
                "as when the coordinator is cut off from all of them. Not shorter than --lease; a "
                "worker whose own --orphan-limit is shorter is waited for no longer than that."},
    {.name = "grace",
        .type = OPTION_DURATION,
        ROW(grace_us),
        .metavar = "TIME",
        .fallback = "5s",
        .help = "How long tasks that are stopped have between SIGTERM and SIGKILL."},
    {.name = "collect-timeout",
        .type = OPTION_DURATION,
        ROW(collect_us),
        .metavar = "TIME",
        .fallback = "60s",
        .min = 100000,
        .help = "How long a job that ended waits for its logs and outputs."},
    {.name = "form-timeout",
        .type = OPTION_DURATION,
        ROW(form_us),
        .metavar = "TIME",
        .fallback = "60s",
        .min = 100000,
        .help = "From the first task's greeting until all tasks must have said theirs."},
    {.name = "report-timeout",
        .type = OPTION_DURATION,
        ROW(report_us),
        .metavar = "TIME",
        .fallback = "5s",
        .min = 100000,
        .help = "When a task is lost: how long the others have to say where they stand; the silent "
                "are replaced."},
    {.name = "wait",
        .type = OPTION_DURATION,
        ROW(wait_us),
        .metavar = "TIME",
        .fallback = "10m",
        .min = 100000,
        .help = "How long a job that has begun waits with fewer than its fewest tasks before it "
                "fails, if it does not say."},
    {.name = "stall-timeout",
        .type = OPTION_DURATION,
        ROW(stall_us),
        .metavar = "TIME",
        .fallback = "10m",
        .min = 100000,
        .help = "A step that does not end for so long while all wait for one task: that task is "
                "replaced, if the job"
                " does not say."},
    {.name = "slow-factor",
        .type = OPTION_U64,
        ROW(slow_factor),
        .metavar = "N",
        .fallback = "10",
        .min = 2,
        .max = 1000000,
        .help = "A step that takes N times the median of the job's steps is told as slow."},
    {.name = "slow-after",
        .type = OPTION_DURATION,
        ROW(slow_us),
        .metavar = "TIME",
        .fallback = "5s",
        .min = 1000,
        .help = "And takes at least so long."},
    {.name = "drain-timeout",
        .type = OPTION_DURATION,
        ROW(drain_us),
        .metavar = "TIME",
        .fallback = "3s",
        .help = "After SIGTERM: how long open calls may take to end."},
    {.name = "workers-max",
        .type = OPTION_U64,
        ROW(workers_max),
        .metavar = "N",
        .fallback = "1024",
        .min = 1,
        .max = LIMIT_TASKS_PER_JOB,
        .group = "Limits",
        .help = "Worker daemons that may join."},
    {.name = "jobs-max",
        .type = OPTION_U64,
        ROW(jobs_max),
        .metavar = "N",
        .fallback = "256",
        .min = 1,
        .max = 65536,
        .help = "Jobs that may wait or run at one time."},
    {.name = "tasks-max",
        .type = OPTION_U64,
        ROW(tasks_max),
        .metavar = "N",
        .fallback = "4096",
        .min = 1,
        .max = 1048576,
        .help = "Tasks of all these jobs together."},
    TLS_OPTION_ROWS(struct coordinator_options, tls),
    LOG_OPTION_ROWS(struct coordinator_options, log),
};

const struct option_table coordinator_option_table = {.program = "cadre-coordinator",
    .summary = "The coordinator of a Cadre cluster: queues jobs, places their tasks on workers, "
               "admits every step, and keeps the ledger. One per cluster.",
    .notes = "SIGTERM ends it in order. SIGHUP reads the TLS files again. Try it on one machine:\n"
             "  cadre-coordinator --listen unix:/tmp/c.sock --state-dir /tmp/c &\n"
             "  cadre-worker --coordinator unix:/tmp/c.sock --state-dir /tmp/w &\n"
             "  cadre --coordinator unix:/tmp/c.sock workers\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .config = true,
    .config_environment = "CADRE_COORDINATOR_CONFIG",
    .config_default = "/etc/cadre/coordinator.conf"};
