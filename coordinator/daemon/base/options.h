/* SPDX-License-Identifier: Apache-2.0
 * The values of cadre-coordinator's options, and their table. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_OPTIONS_H
#define CADRE_COORDINATOR_DAEMON_BASE_OPTIONS_H

#include "common/base/log.h"
#include "common/base/options.h"
#include "common/rpc/tls_options.h"

/* Of a coordinator that is one of several. */
struct ha_options {
    char *address;   /* "etcd://..."; NULL: it leads alone */
    char *name;      /* NULL: the host's */
    char *advertise; /* NULL: the first address that is served */
    uint64_t lease_us;
    uint64_t snapshot_bytes, snapshot_us, keep_us;
    uint64_t raise_after_us;
    struct rpc_tls_options tls; /* of connections to etcd; `dir` is not used */
    char *user;                 /* of etcd; NULL: no login */
    char *password_file;
    bool accept_restored;
};

struct coordinator_options {
    struct option_list listen; /* addresses */
    char *group; /* name of the group that may use Unix sockets; NULL: the owner only */
    char *state_dir;
    char *contents_dir; /* a folder, or a path of an object store; NULL: the state directory */
    uint64_t contents_cache_bytes;
    uint64_t lease_us;
    uint64_t rewind_us;
    uint64_t grace_us;
    uint64_t collect_us;
    uint64_t form_us;
    uint64_t report_us;
    uint64_t wait_us;
    uint64_t stall_us;
    uint64_t slow_factor;
    uint64_t slow_us;
    uint64_t ledger_sync_us;
    uint64_t drain_us;
    uint64_t workers_max;
    uint64_t jobs_max;
    uint64_t tasks_max;
    uint64_t keep_jobs;
    uint64_t log_limit_bytes;
    uint64_t output_limit_bytes;
    uint64_t storage_quota_bytes; /* 0: none */
    uint64_t job_quota_bytes;     /* 0: none */
    uint64_t keep_for_us;         /* 0: for ever */
    char *http;                   /* NULL: no HTTP */
    uint64_t disk_reserve_bytes;
    char *ready_file;
    bool check; /* the ledger only */
    bool supersede;
    char *export;
    char *copy_contents;
    bool ahead;
    bool dry_run;
    bool import;
    bool reseed;
    bool resign;
    struct ha_options ha;
    struct rpc_tls_options tls;
    struct log_options log;
};

extern const struct option_table coordinator_option_table;

#endif
