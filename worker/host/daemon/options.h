/* SPDX-License-Identifier: Apache-2.0
 * The one table of cadre-worker's options. */
#ifndef CADRE_WORKER_DAEMON_OPTIONS_H
#define CADRE_WORKER_DAEMON_OPTIONS_H

#include "common/base/log.h"
#include "common/base/options.h"
#include "common/rpc/tls_options.h"

struct worker_options {
    char *coordinator; /* address */
    char *name;        /* NULL: that of the certificate, else the host's */
    char *state_dir;
    char *task_user; /* used when the daemon runs as root */
    char *job_uids;  /* FIRST-LAST, "none" */
    uint64_t task_memory_bytes;
    uint64_t task_pids;
    unsigned limits; /* index of --limits */
    char *cgroup;
    char *mesh_host;
    char *mesh_ports; /* FIRST:LAST; NULL: any */
    uint64_t slots;
    char *gpus; /* "all", "none" or a number */
    uint64_t gpu_timeout_us;
    uint64_t heartbeat_us;
    uint64_t orphan_us;
    bool keep_tasks;
    uint64_t grace_us;
    uint64_t drain_us;
    uint64_t log_limit_bytes;
    uint64_t cache_limit_bytes; /* 0: none */
    uint64_t cache_check_us;
    bool host_credentials;
    uint64_t object_cache_limit_bytes; /* 0: none */
    char *http;                        /* NULL: no HTTP */
    char *ready_file;
    struct rpc_tls_options tls;
    struct log_options log;
};

extern const struct option_table worker_option_table;

#endif
