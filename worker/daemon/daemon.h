/* SPDX-License-Identifier: Apache-2.0
 * The worker daemon's inside: an agent, its link to the coordinator, and the files of its tasks. */
#ifndef CADRE_WORKER_DAEMON_H
#define CADRE_WORKER_DAEMON_H

#include <uv.h>

#include "common/rpc/channel.h"
#include "common/rpc/tls.h"
#include "common/wire/wire.h"
#include "worker/agent/agent.h"
#include "worker/daemon/options.h"

/* What the daemon keeps of a task beside the agent. */
struct task_files {
    struct task_files *next;
    struct daemon *daemon;
    struct task_ref ref;
    const struct agent_start *start; /* the agent's, until forget */
    const struct job_spec *spec;     /* of it */
    char *folder;                    /* <state>/tasks/<job>.<slot>.<incarnation> */
    /* fetching: files[next_file..] are still to come; 0 is the program */
    size_t next_file;
    struct fetch *fetch;     /* in hand */
    struct restore *restore; /* the checkpoint to go on from is being fetched */
    char *restore_path;      /* its manifest, once it is known */
    bool placing;            /* a thread makes the folders; nothing may be freed */
    cadre_status place_status;
    struct cadre_error place_error;
    uv_work_t work;
    uv_sem_t placed;             /* posted when the thread no longer reads spec */
    bool ready;                  /* folders stand */
    bool failed;                 /* it does not start any more, and the agent knows */
    struct publish *publish;     /* of its newest checkpoint, under way */
    struct published *published; /* newest first */
    /* the log */
    int log_fd;
    uint64_t log_bytes; /* written here */
    uint64_t log_sent;
    uint64_t log_acked;
    bool log_cut;
    /* collecting */
    bool collecting;
    bool forgotten;
    struct upload *upload;
    struct output_list *outputs;
};

#define FETCH_PREFIX "fetch-" /* of a file in blob_dir that has not come whole yet */

struct daemon {
    struct worker_options options;
    struct rpc_loop *loop;
    struct rpc_channel *channel;
    struct rpc_tls *tls; /* NULL: none */
    struct rpc_call *join;
    bool linked; /* the welcome came on this stream */
    bool was_linked;
    bool ready_told;   /* the ready file is ours */
    uint64_t retry_us; /* grows with each failure */
    uv_timer_t retry;
    uv_timer_t drain;
    uv_signal_t sigterm;
    uv_signal_t sigint;
    uv_signal_t sighup;
    struct agent *agent;
    struct task_files *tasks;
    struct wire_arena *arena;
    struct wire_buffer packed;
    char *blob_dir;
    char *task_dir;
    int lock_fd;
    uint64_t temporary_last;
    bool change_user;
    uid_t uid;
    gid_t gid;
    bool draining;
    bool agent_closed;
    unsigned works; /* threads at work */
    struct slot_gpus *gpus;
};

/* gpus.c: daemon->gpus; INVALID_ARGUMENT: --gpus is wrong. */
cadre_status gpus_open(struct daemon *daemon, struct cadre_error *error);

/* link.c */
void link_start(struct daemon *daemon);
void link_send(struct daemon *daemon, const struct agent_up *up);

/* tasks.c: the agent's front. */
extern const struct agent_front worker_front;
struct task_files *tasks_find(struct daemon *daemon, struct task_ref ref);
void tasks_linked(struct daemon *daemon); /* a new stream: what was interrupted goes on */
/* The placing thread is done. False: the task was forgotten or stopped meanwhile, and goes. */
bool tasks_placed(struct task_files *task);
void tasks_free_all(struct daemon *daemon);
/* Ends the preparation with the shells' exit code 126. */
void tasks_fail(struct task_files *task, const char *text);

/* fetch.c: the contents a task needs, one after the other; then restore_start. */
void fetch_next(struct task_files *task);
void fetch_cancel(struct task_files *task);

/* restore.c: the checkpoint that the task goes on from, if any; then place_start. */
void restore_start(struct task_files *task);
void restore_resume(struct task_files *task); /* a new stream */
void restore_cancel(struct task_files *task);

/* publish.c: the newest checkpoint of a task, to the coordinator; then agent_task_published. */
void publish_start(struct task_files *task, const struct task_part *part);
void publish_resume(struct task_files *task); /* a new stream */
void publish_cancel(struct task_files *task);

/* place.c: folders and files, in a thread of the pool; then agent_task_prepared. */
void place_start(struct task_files *task);
char *place_blob_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);

/* logs.c */
void logs_write(struct task_files *task, const uint8_t *bytes, size_t size);
void logs_ship(struct task_files *task);
void logs_acked(struct task_files *task, uint64_t offset);

/* outputs.c: the files in the output folder, one after the other; then agent_task_collected. */
void outputs_start(struct task_files *task);
void outputs_resume(struct task_files *task);
void outputs_cancel(struct task_files *task);

/* leftovers.c: ends what an earlier life of this daemon left running in this state directory, and
 * its folders. */
cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error);

#endif
