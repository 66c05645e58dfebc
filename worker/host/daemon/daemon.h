/* SPDX-License-Identifier: Apache-2.0
 * Private to the worker daemon: an agent, its link to the coordinator, and the files of its
 * tasks. */
#ifndef CADRE_WORKER_DAEMON_H
#define CADRE_WORKER_DAEMON_H

#include <stdatomic.h>
#include <uv.h>

#include "common/base/error.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/file_work.h"
#include "common/rpc/tls.h"
#include "common/service/notifier.h"
#include "common/wire/wire.h"
#include "worker/host/agent/agent.h"
#include "worker/host/daemon/objects/object_cache.h"
#include "worker/host/daemon/options.h"

/* For metrics. */
struct worker_counts {
    uint64_t tasks_started;
    uint64_t tasks_done; /* status 0, or preempted */
    uint64_t tasks_failed;
    uint64_t tasks_killed; /* by a signal */
    uint64_t log_read_bytes;
    uint64_t log_sent_bytes;
    uint64_t log_dropped_bytes;
    uint64_t links_lost;
    uint64_t fetched_bytes;
    uint64_t cache_hits;
    uint64_t cache_evicted_bytes;
    uint64_t cache_damaged; /* contents */
};

struct http_server;
struct isolation;
struct link_callbacks;
struct silence;
struct slot_gpus;
struct task_files;
struct cache_check;
struct usage_report;

#define FETCH_PREFIX "fetch-" /* of a file in blob_dir that has not come whole yet */

struct daemon {
    struct worker_options options;
    struct rpc_loop *loop;
    struct rpc_endpoints *endpoints; /* of the coordinator, with the channels */
    struct rpc_channel *channel;     /* the one that the newest stream is on, for all calls */
    struct rpc_attempt attempt;      /* which endpoints failed since the last welcome */
    struct rpc_tls *tls;             /* NULL: none */
    struct rpc_call *join;
    bool linked;       /* the welcome came on this stream */
    uint32_t protocol; /* version of the stream, as the welcome has it */
    bool was_linked;
    struct term term;                 /* the newest coordinator that was accepted */
    uint64_t log_index;               /* the highest that is known in that term */
    struct silence *silence;          /* silence.c */
    uint64_t reported_certificate_us; /* the expiry that the coordinator was sent */
    bool ready_file_written;          /* the ready file is ours */
    uint64_t opened_us;               /* the stream */
    uint64_t reconnect_us;            /* grows with each failure */
    uv_timer_t reconnect_timer;
    uv_timer_t drain;
    bool resume_waits; /* a call found no coordinator; see retry_when_linked() */
    uv_timer_t retry_timer;
    uv_timer_t fetch_timer; /* of fetch_report.c */
    uv_timer_t log_timer;   /* of log_pause.c */
    uint64_t log_pause_us;  /* between two messages of short pieces of output */
    void (*on_log_pause)(struct daemon *daemon);
    void (*on_retry)(struct daemon *daemon); /* called when the time has passed */
    const struct link_callbacks *link_callbacks;
    uv_signal_t sigterm;
    uv_signal_t sigint;
    struct notifier notifier;
    char refusal[200];   /* why there is no link; "" before the first answer */
    uint64_t refusal_us; /* when it was last logged */
    uint64_t tries;      /* failed ones since the last link */
    uv_signal_t sigusr1;
    uv_signal_t sighup;
    struct agent *agent;
    struct task_files *tasks;
    struct wire_arena *arena;
    struct wire_buffer packed;
    char *blob_dir;
    char *task_dir;
    int lock_fd;
    uint64_t temporary_last;
    struct port_range mesh_ports;
    bool change_user;
    uid_t uid;
    gid_t gid;
    bool draining;
    void (*exit_now)(struct daemon *daemon); /* when all logs are written; NULL: the daemon runs
                                              * on */
    bool agent_closed;
    struct file_work_pool file_pool;     /* on files, by threads */
    struct file_work_pool store_pool;    /* what waits for an object store, by threads of its own */
    struct task_files *removals_waiting; /* forgotten, and their folders not renamed yet */
    struct task_files *removals;         /* what they left is to be removed, in this order */
    bool removing;                       /* a thread has the first */
    atomic_ullong removal_last;          /* of the names of their folders */
    struct slot_gpus *gpus;
    struct isolation *isolation;
    struct worker_counts counts;
    struct http_server *http; /* NULL: none */
    uint64_t cache_bytes;     /* in blob_dir */
    bool cache_evicting;      /* a thread removes contents */
    bool cache_evict_again;   /* meanwhile */
    bool closes;              /* no work for the pool is begun any more */
    struct cache_check *cache_check;
    struct object_cache objects; /* where tasks keep blocks of objects */
    struct file_work object_look;
    uint64_t object_look_bytes; /* the thread's */
    uv_timer_t object_timer;
    struct usage_report *usage_report;
};

/* The GPUs of this host, for the log and the slots. */

struct daemon;

/* Sets daemon->gpus and logs them; INVALID_ARGUMENT: --gpus is wrong. */
cadre_status gpus_open(struct daemon *daemon, struct cadre_error *error);

/* The pages of --http, if any. */

struct daemon;

/* Opens the HTTP server of --http, if any. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
/* Closes the HTTP server; nothing without --http. */
void metrics_close(struct daemon *daemon);
/* Logs an event of the TLS files; the HTTP server uses new ones, too. */
void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user);

#endif
