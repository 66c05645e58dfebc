/* SPDX-License-Identifier: Apache-2.0
 * Each table once: what a row of it records, and the columns that its checksum covers. A row's
 * `sum` is row_sum('<table>', <job>, <columns>); a new column is added here. */
#ifndef CADRE_COORDINATOR_STORE_SQLITE_TABLES_H
#define CADRE_COORDINATOR_STORE_SQLITE_TABLES_H

/* Of each table, in the order in which they are written and summed; `job` goes before them. */
#define META_COLUMNS "version, secret, job_id_max, schema_sum, cluster, starts"
#define JOB_COLUMNS                                                                                \
    "spec, tasks, priority, submitted_us, started_us, ended_us, incarnation_max, state, code,"     \
    " exit_code, text, tasks_min, max_restarts, wait_us, stall_us, restarts, first_us"
#define PLAN_COLUMNS                                                                               \
    "number, nonce, parent_number, parent_nonce, resume, restarted, members, planned_us"
#define WATERMARK_COLUMNS   "number, nonce, up_to, stream, epoch, first, start, steps"
#define END_OF_DATA_COLUMNS "stream, epoch, first, start, steps"
#define DONE_COLUMNS        "number, nonce, position"
#define TASK_EXIT_COLUMNS   "slot, incarnation, state, code, signal, text"
#define CHECKPOINT_COLUMNS                                                                         \
    "position, number, nonce, shared, path, manifest_bytes, manifest_sha256, digest"
#define LOST_COLUMNS      "position, why"
#define VERIFIED_COLUMNS  "position, digest"
#define DIVERGED_COLUMNS  "number, position"
#define PUBLISHED_COLUMNS "number, position"
#define TASK_COLUMNS      "slot, incarnation, worker, lives, lives_in"
#define BACKED_COLUMNS    "slot, number, backed_by"
#define ROSTER_COLUMNS    "members"
#define CONTROL_COLUMNS   "number, nonce, halt_at, halt_kind, halt_stream"
#define STREAM_COLUMNS    "stream, name, samples, shares"
#define CONSUMED_COLUMNS                                                                           \
    "stream, epoch, start, first, epoch_steps, steps, samples, fed_0, fed_1, expected_0,"          \
    " expected_1, provable"
#define EVENT_COLUMNS                                                                              \
    "number, time_us, kind, generation, position, task, incarnation, tasks, undone, restarted,"    \
    " waited_us, exit_code, exit_signal, state, code, worker, roster, text"
#define ENDING_COLUMNS "state, code, exit_code, text, committed"

/* The checksum that a row should have. */
#define META_SUM "row_sum('meta', " META_COLUMNS ")"
/* Of no job: which workers clients have drained. */
#define DRAIN_COLUMNS "worker, who, why"
#define DRAIN_SUM     "row_sum('drain', " DRAIN_COLUMNS ")"
/* Likewise: how often a task on a worker had another state than most. */
#define CULPRIT_COLUMNS "worker, times"
#define CULPRIT_SUM     "row_sum('culprit', " CULPRIT_COLUMNS ")"

/* Of no job either: the one row about the shared log. */
#define SHARED_LOG_COLUMNS                                                                         \
    "one, id_high, id_low, etcd_id, term_seen, hash, applied, applied_term, applied_hash"
#define SHARED_LOG_SUM "row_sum('shared_log', " SHARED_LOG_COLUMNS ")"

#define JOB_SUM               "row_sum('job', id, " JOB_COLUMNS ")"
#define SUM_OF(name, columns) "row_sum('" name "', job, " columns ")"

struct ledger_table {
    const char *name;
    const char *columns;
    const char *meaning; /* of its rows, in messages */
    const char *which;   /* SQL: a text that names a row; NULL: a job has one row */
};

/* Every table whose rows belong to a job; their first column is `job`. */
#define LEDGER_TABLE_COUNT 19
extern const struct ledger_table ledger_tables[LEDGER_TABLE_COUNT];

#endif
