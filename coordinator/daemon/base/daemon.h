/* SPDX-License-Identifier: Apache-2.0
 * The coordinator daemon's inside: one loop, one engine, its links, its clients' calls, its files.
 */
#ifndef CADRE_COORDINATOR_BASE_DAEMON_H
#define CADRE_COORDINATOR_BASE_DAEMON_H

#include <uv.h>

#include "common/rpc/file_work.h"
#include "common/rpc/standard_services.h"
#include "common/rpc/server.h"
#include "common/rpc/tls.h"
#include "common/service/notifier.h"
#include "common/wire/wire.h"
#include "coordinator/daemon/base/leading.h"
#include "coordinator/daemon/base/login_token.h"
#include "coordinator/daemon/base/options.h"
#include "coordinator/daemon/base/signals.h"
#include "coordinator/engine/engine.h"

/* disk.c: the disk of the state directory. */
struct disk {
    uv_timer_t timer;
    struct file_work work;            /* a probe of it */
    struct file_work store_work;      /* a try of the object store, which is away */
    uint64_t free_bytes;              /* by the last probe */
    uint64_t granted_bytes;           /* granted since that probe began */
    uint64_t granted_meanwhile_bytes; /* since the probe in progress began */
    uint64_t probed_bytes;            /* the thread's */
    bool probed;
    uint64_t held_us;
    bool away; /* the object store of --contents is */
    bool low;  /* less is free than the reserve */
    bool held; /* the engine holds a turn */
};

/* log_writes.c: by job and slot. */
#define LOG_BUCKETS 256
struct log_queue;

struct pending_call;
struct watcher;
struct agent_link;
struct log_follower;
struct content_references;
struct worker_contents;
struct contents;
struct submission;
struct part_check;
struct quota;
struct http_server;
struct answer_cache;
struct api_deferred;
struct proof;
struct rpc_counts;
struct logged_job;
struct job_series;
struct trace;
struct shared_ledger;
struct objects;
struct object_cache;
struct log_copies;

struct daemon {
    struct coordinator_options options;
    char name[LIMIT_NAME_BYTES];      /* among the coordinators of a cluster */
    char addresses[LIMIT_TEXT_BYTES]; /* where it is reached, separated by commas */
    struct rpc_loop *loop;
    struct rpc_server *server;
    struct rpc_tls *tls; /* NULL: none */
    struct rpc_health *health;
    struct rpc_reflection *reflection;
    struct engine *engine;
    struct leading leading;       /* of several coordinators: until when this one leads */
    struct shared_ledger *shared; /* of --ha; NULL: none */
    int lock_fd;
    char *ledger_path;
    char *blob_dir; /* with an object store the folders have copies */
    char *job_dir;
    struct wire_arena *arena; /* of the message that is handled now */
    struct wire_buffer packed;
    uint64_t link_last;
    uint64_t call_last;
    uint64_t upload_last;
    struct part_check *part_checks; /* in the order in which they came */
    struct agent_link *links;       /* in order of id */
    size_t link_count;
    size_t link_capacity;
    uint64_t silence_us;      /* as each welcome has it; 0: not promised (keepalive.c) */
    uint64_t log_index;       /* of the newest entry of the shared log; 0: none is shared */
    uint64_t keepalive_round; /* counts the looks at all links */
    uv_timer_t keepalive_timer;
    /* With a shared log: a worker has seen a higher term than this coordinator's, or its term and
     * an entry that it does not know (rule HA12). NULL: no log is shared. */
    void (*hello_ahead)(struct daemon *daemon, uint64_t term, uint64_t index);
    /* Likewise, while it does not lead: why it shows no page, with the name of the one that does.
     */
    cadre_status (*refuse_page)(const struct daemon *daemon, struct cadre_error *error);
    struct pending_call *pending;
    struct watcher *watchers;
    struct log_follower *log_followers;
    struct log_queue *log_queues[LOG_BUCKETS];
    struct trace *traces;          /* under way (traces.c) */
    uint64_t trace_last;           /* the number of the newest */
    struct job_series *job_series; /* jobs with values or queries (series_jobs.c) */
    uv_timer_t tick;
    uv_timer_t watch_timer;
    uv_timer_t trace_timer;
    bool steps_pending; /* since the last update of watchers some job may have committed steps */
    struct signals signals;
    struct notifier notifier;
    uint64_t started_us;                   /* wall clock */
    struct quota *quota;                   /* how much is kept; NULL: not counted */
    struct http_server *http;              /* NULL: none */
    int http_port;                         /* that it serves */
    struct login_key login_key;            /* of the tokens of this start */
    struct answer_cache *answer_cache;     /* of the pages of http; NULL: nothing is kept */
    struct api_deferred *deferred_answers; /* that are being made, for the pages of http */
    struct proof *proof;                   /* of those the one at work; others wait behind it */
    struct rpc_counts *rpc_counts;
    struct logged_job *logged_jobs; /* what was logged of jobs that have not ended, by id */
    size_t logged_count;
    size_t logged_capacity;
    struct content_references
        *content_references;     /* which job or checkpoint needs which contents */
    bool references_dropped;     /* since the last refresh some job needs fewer contents */
    bool references_added;       /* a job changed since the refresh for a worker's call */
    uint64_t references_next_us; /* no refresh before */
    uint64_t cleaned_us;         /* when unused contents were last collected */
    struct worker_contents
        *worker_contents; /* by worker, where certificates name them: the contents that it had */
    struct contents *contents; /* the index of contents */
    int contents_fd;           /* holds the lock of a folder of --contents; -1: none */
    struct objects *objects;   /* the store of --contents; NULL: they lie in a folder, and: */
    struct recent_outputs *recent_outputs; /* that were put there last; NULL: none */
    struct object_cache *object_cache;     /* its contents on the disk; NULL: none */
    struct log_copies *log_copies;         /* its logs on the disk; NULL: none */
    struct submission *submissions;        /* that wait for the disk */
    char *outputs_synced;                  /* a folder whose own name is on the disk; NULL: none */
    struct disk disk;
    struct file_work_pool file_pool;  /* on files, by threads */
    struct file_work_pool write_pool; /* likewise, what adds, replaces or removes some of jobs */
    bool draining;
    bool starts_again;       /* by exec: another coordinator leads */
    bool ready_file_written; /* the ready file is ours */
    cadre_status failed;     /* the failure that ends it; OK: none */
    struct cadre_error failure;
    bool is_refused; /* that is why */
};

/* daemon.c: ends the daemon with a failure, because what is not durable must not be sent. */
void daemon_fail(struct daemon *daemon, const struct cadre_error *error);
/* Ends it, because it is not to run beside what else there is. */
void daemon_refuse(struct daemon *daemon, const struct cadre_error *error);

/* Whether every process of this host may call all methods over TCP, without TLS: then the page
 * shows to all of them what they can have anyway. */
bool daemon_is_open_to_host(const struct daemon *daemon);

/* Packs with one of the wire functions and sends it: DAEMON_SEND(daemon, call, job_info, &info). A
 * message that cannot be packed or queued ends the call with the reason. */
#define DAEMON_SEND(daemon, call, name, message)                                                   \
    do {                                                                                           \
        struct cadre_error send_error_ = {0};                                                      \
        wire_buffer_clear(&(daemon)->packed);                                                      \
        cadre_status send_status_ = wire_pack_##name((message), &(daemon)->packed, &send_error_);  \
        daemon_send_packed((daemon), (call), send_status_, &send_error_);                          \
    } while (0)
/* daemon.c: sends a packed message on the call; `status` other than OK ends the call with
 * `error`. */
void daemon_send_packed(
    struct daemon *daemon, struct rpc_call *call, cadre_status status, struct cadre_error *error);

#endif
