/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/options.h"

#include "common/base/log_options.h"
#include "common/model/limits.h"

#define ROW(kind, flag, member, value_name, default_text)                                          \
    OPTION_ROW(kind, flag, struct coordinator_options, member, value_name, default_text)

static const struct option_row rows[] = {
    {ROW(LIST, "listen", listen, "ADDRESS", "unix:/run/cadre/coordinator.sock"), .letter = 'l',
        .environment = "CADRE_LISTEN", .group = "Network",
        .help =
            "Where clients and workers connect: unix:/PATH, 127.0.0.1:PORT (port 0 chooses a "
            "free one), or with TLS any ADDRESS:PORT; 0.0.0.0:PORT means all of this host's. "
            "May be given several times. A Unix socket needs no certificate and allows everything; "
            "127.0.0.1:PORT without TLS allows it to every process of this host, tasks too."},
    {ROW(TEXT, "group", group, "NAME", NULL), .environment = "CADRE_GROUP",
        .help = "Unix sockets are open to this group too (0660); else only to the daemon's user "
                "(0600)."},
    {ROW(TEXT, "http", http, "ADDRESS", NULL), .environment = "CADRE_COORDINATOR_HTTP",
        .help =
            "Serve /metrics (Prometheus), /healthz and the page for browsers (`cadre dashboard`) "
            "there: 127.0.0.1:9464, [::1]:9464; port 0 "
            "chooses a free one, which is logged. Loopback is plain HTTP; other addresses need the "
            "TLS files and accept certificates of any role but worker. Default: nowhere."},
    {ROW(TEXT, "ready-file", ready_file, "PATH", NULL),
        .help = "Write the addresses that are served, one a line, to this file once the daemon is "
                "ready. systemd is notified by sd_notify in any case."},
    {ROW(TEXT, "state-dir", state_dir, "PATH", "/var/lib/cadre/coordinator"), .letter = 'd',
        .environment = "CADRE_STATE_DIR", .group = "State",
        .help = "The ledger, uploaded files, logs and outputs of jobs. Made when it is not there; "
                "held by one"
                " coordinator at a time."},
    {ROW(TEXT, "contents", contents_dir, "DIR", NULL), .environment = "CADRE_CONTENTS",
        .help = "Where uploaded files, logs and outputs of jobs are instead: with --ha a folder "
                "that all coordinators share, which is to be there, or s3://BUCKET/PREFIX in an "
                "object store, with the credentials of the coordinator's environment as Amazon's "
                "tools find them."},
    {ROW(BYTES, "contents-cache", contents_cache_bytes, "BYTES", "8GiB"), .min = 1024 * 1024,
        .help = "With s3://: so much of it is kept in the state directory, too, for reading: that "
                "of uploaded files, and as much of logs. What was used longest ago goes."},
    {ROW(U64, "keep-jobs", keep_jobs, "N", "1000"), .min = 1, .max = 1000000,
        .help = "Jobs that ended and stay listed, with their logs and outputs; older ones are "
                "forgotten."},
    {ROW(BYTES, "log-limit", log_limit_bytes, "BYTES", "64MiB"), .min = 1024,
        .help = "What is kept of one task's log: its first eighth and the newest rest. What is "
                "between them is removed, and `cadre logs` reports how many bytes."},
    {ROW(BYTES, "output-limit", output_limit_bytes, "BYTES", "64GiB"), .min = 1024,
        .max = LIMIT_BLOB_BYTES,
        .help = "The largest file that a job may leave in its output folder."},
    {ROW(BYTES, "storage-quota", storage_quota_bytes, "BYTES", "0"),
        .help = "Logs, outputs and uploaded files of all jobs together; 0: no bound. At it the "
                "oldest jobs that ended are forgotten; what still does not fit is refused."},
    {ROW(BYTES, "job-quota", job_quota_bytes, "BYTES", "0"),
        .help = "Logs, outputs and checkpoints of one job; 0: no bound. An output or checkpoint "
                "beyond it is not kept, and the job goes on."},
    {ROW(DURATION, "keep-for", keep_for_us, "TIME", "0s"),
        .help = "Jobs that ended so long ago are forgotten, with their logs and outputs; 0: they "
                "stay until --keep-jobs or --storage-quota takes them."},
    {ROW(BYTES, "disk-reserve", disk_reserve_bytes, "BYTES", "64MiB"),
        .help = "What stays free on the disk of the state directory for the ledger. With less, "
                "submissions and uploads are refused, logs and outputs wait at the workers, and "
                "jobs go on."},
    {ROW(FLAG, "check", check, NULL, NULL),
        .help =
            "Check every record of the ledger in the state directory against its checksum, "
            "print what is damaged, and end: with 0 if nothing is. No coordinator may run on it. "
            "Each start does the same check first."},
    {ROW(TEXT, "copy-contents", copy_contents, "FROM", NULL),
        .help = "Copy all contents from FROM to --contents, and end. One of the two is a folder "
                "(the state directory of a coordinator without --contents), the other one "
                "s3://BUCKET/PREFIX. No coordinator may run on them. Shows how far it is, checks "
                "every hash, and goes on where it was cut off. FROM stays as it is, but for a mark "
                "with which no coordinator starts there."},
    {ROW(FLAG, "ahead", ahead, NULL, NULL),
        .help =
            "With --copy-contents, while coordinators run: copy programs, files and checkpoints, "
            "which do not change, and end. What is copied so is not copied again by the copy "
            "without this, for which they are stopped."},
    {ROW(FLAG, "dry-run", dry_run, NULL, NULL),
        .help = "With --copy-contents: print what would be copied, and copy nothing."},
    {ROW(FLAG, "supersede", supersede, NULL, NULL),
        .help = "The state directory is an older copy, or one of several, and is to be the one "
                "that counts: workers that have served a later start of it, or another copy, are "
                "accepted all the same, and from then on refuse the other. For one start: without "
                "this option such workers refuse this coordinator, and both sides log it."},
    {ROW(DURATION, "ledger-sync", ledger_sync_us, "TIME", "1s"), .min = 1000,
        .help = "Records of steps are on the disk after so long at the latest, with --ha in the "
                "log; there after 1 s for each 1,600 running jobs where they are more. The tasks' "
                "state outranks them, so losing some costs only steps that `cadre verify` could "
                "have proved."},
    {ROW(TEXT, "ha", ha.address, "etcd://HOST:PORT,.../PREFIX", NULL), .environment = "CADRE_HA",
        .group = "Several coordinators",
        .help = "This is one of several coordinators, whose ledger is a log in etcd (3.4 or newer) "
                "below this prefix. One of them leads; the others follow, and lead when it is "
                "gone. Needs --contents."},
    {ROW(TEXT, "name", ha.name, "NAME", NULL), .environment = "CADRE_COORDINATOR_NAME",
        .help = "The name of this one among them, which no other process may have. Default: the "
                "host's name."},
    {ROW(TEXT, "advertise", ha.advertise, "ADDRESS,...", NULL), .environment = "CADRE_ADVERTISE",
        .help = "Where workers and clients reach this one. Default: the first address that it "
                "serves and that names a host; 0.0.0.0 and [::] name none."},
    {ROW(DURATION, "ha-lease", ha.lease_us, "TIME", "3s"), .min = 200000, .max = 600000000,
        .help = "When the one that leads has written nothing to etcd for so long, another one "
                "leads. At least twice as long as etcd needs to elect a leader of its own, which "
                "takes 1 to 2 s unless its election timeout is lowered; the same for all."},
    {ROW(BYTES, "ha-snapshot-bytes", ha.snapshot_bytes, "BYTES", "64MiB"), .min = 4096,
        .help = "The one that leads makes a snapshot of the ledger in the contents' folder when "
                "the log in etcd has grown by so much."},
    {ROW(DURATION, "ha-snapshot-every", ha.snapshot_us, "TIME", "1h"), .min = 1000000,
        .help = "Or after so long. Entries before a snapshot are removed from etcd, but for those "
                "of --ha-keep."},
    {ROW(DURATION, "ha-keep", ha.keep_us, "TIME", "10m"),
        .help = "So much of the log stays in etcd, for coordinators that were away."},
    {ROW(DURATION, "ha-raise-format-after", ha.raise_after_us, "TIME", "10m"),
        .help = "When all coordinators, those that were there within a day, have had a version for "
                "so long that knows a newer format of the log, it is written: from then on one of "
                "an older version is refused."},
    {ROW(TEXT, "ha-ca", ha.tls.ca, "FILE", NULL), .environment = "CADRE_HA_CA",
        .help = "The CA of etcd's certificates: connections to etcd use TLS. Without it only "
                "loopback addresses are allowed."},
    {ROW(TEXT, "ha-cert", ha.tls.cert, "FILE", NULL), .environment = "CADRE_HA_CERT",
        .help = "The certificate that is shown to etcd, if it asks for one."},
    {ROW(TEXT, "ha-key", ha.tls.key, "FILE", NULL), .environment = "CADRE_HA_KEY",
        .help = "Its private key."},
    {ROW(TEXT, "ha-user", ha.user, "NAME", NULL), .environment = "CADRE_HA_USER",
        .help = "The user of etcd, if it has users."},
    {ROW(TEXT, "ha-password-file", ha.password_file, "FILE", NULL),
        .environment = "CADRE_HA_PASSWORD_FILE", .help = "The first line is its password."},
    {ROW(FLAG, "accept-restored", ha.accept_restored, NULL, NULL),
        .help = "etcd was restored from a backup and holds an older ledger than this coordinator "
                "knows: take that one all the same. For one start, of all of them."},
    {ROW(FLAG, "resign", resign, NULL, NULL),
        .help = "Let another coordinator lead at once, because the one that ran on this state "
                "directory is dead, and end. For ExecStopPost= of its unit."},
    {ROW(FLAG, "import", import, NULL, NULL),
        .help = "Bring the ledger of the state directory, of a coordinator that led alone, into "
                "etcd, which must hold none below this prefix, and end. Before that, move blobs "
                "and jobs of the state directory into --contents."},
    {ROW(TEXT, "export", export, "FILE", NULL),
        .help = "Write the ledger of the state directory to FILE, for a coordinator without --ha, "
                "and end. No coordinator may run on it; of several, take the one that was stopped "
                "last."},
    {ROW(FLAG, "reseed", reseed, NULL, NULL),
        .help = "Write a new log to etcd that begins from this coordinator's ledger, in place of "
                "an older one, and end: after etcd was restored from a backup. Run it where the "
                "most advanced coordinator ran."},
    {ROW(DURATION, "lease", lease_us, "TIME", "10s"), .min = 100000, .group = "Timing",
        .help = "A worker that has sent nothing for so long is lost, with its tasks; but tasks "
                "whose state no other connected task has are waited for: --rewind-patience."},
    {ROW(DURATION, "rewind-patience", rewind_us, "TIME", "2m"), .min = 100000,
        .help = "How long a worker may be silent before a job without its tasks begins again, as "
                "when the coordinator is cut off from all of them. Not shorter than --lease; a "
                "worker whose own --orphan-limit is shorter is waited for no longer than that."},
    {ROW(DURATION, "grace", grace_us, "TIME", "5s"),
        .help = "How long tasks that are stopped have between SIGTERM and SIGKILL."},
    {ROW(DURATION, "collect-timeout", collect_us, "TIME", "60s"), .min = 100000,
        .help = "How long a job that ended waits for its logs and outputs."},
    {ROW(DURATION, "form-timeout", form_us, "TIME", "60s"), .min = 100000,
        .help = "From the first task's hello until all tasks must have sent theirs."},
    {ROW(DURATION, "report-timeout", report_us, "TIME", "5s"), .min = 100000,
        .help = "When a task is lost: how long the others have to report their position; those "
                "that do not are replaced."},
    {ROW(DURATION, "wait", wait_us, "TIME", "10m"), .min = 100000,
        .help = "How long a job that has begun waits with fewer than its fewest tasks before it "
                "fails, unless the job sets it."},
    {ROW(DURATION, "stall-timeout", stall_us, "TIME", "10m"), .min = 100000,
        .help = "A step that does not end for so long while all wait for one task: that task is "
                "replaced, unless the job sets it."},
    {ROW(U64, "slow-factor", slow_factor, "N", "10"), .min = 2, .max = 1000000,
        .help = "A step that takes N times the median of the job's steps is reported as slow."},
    {ROW(DURATION, "slow-after", slow_us, "TIME", "5s"), .min = 1000,
        .help = "And takes at least so long."},
    {ROW(DURATION, "drain-timeout", drain_us, "TIME", "3s"),
        .help = "After SIGTERM: how long open calls may take to end."},
    {ROW(U64, "workers-max", workers_max, "N", "1024"), .min = 1, .max = LIMIT_TASKS_PER_JOB,
        .group = "Limits", .help = "Worker daemons that may join."},
    {ROW(U64, "jobs-max", jobs_max, "N", "256"), .min = 1, .max = 65536,
        .help = "Jobs that may wait or run at one time."},
    {ROW(U64, "tasks-max", tasks_max, "N", "4096"), .min = 1, .max = 1048576,
        .help = "Tasks of all these jobs together."},
    TLS_OPTION_ROWS(struct coordinator_options, tls),
    LOG_OPTION_ROWS(struct coordinator_options, log),
};

const struct option_table coordinator_option_table = {.program = "cadre-coordinator",
    .title = "coordinator of a Cadre training cluster",
    .summary = "The coordinator of a Cadre cluster: queues jobs, places their tasks on workers, "
               "admits every step, and keeps the ledger. One per cluster, or with --ha several "
               "of which one leads.",
    .notes = "SIGTERM ends it in order. SIGHUP reads the TLS files again. Try it on one machine:\n"
             "  cadre-coordinator --listen unix:/tmp/c.sock --state-dir /tmp/c &\n"
             "  cadre-worker --coordinator unix:/tmp/c.sock --state-dir /tmp/w &\n"
             "  cadre --coordinator unix:/tmp/c.sock workers\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .config = true,
    .config_environment = "CADRE_COORDINATOR_CONFIG",
    .config_default = "/etc/cadre/coordinator.conf"};
