/* SPDX-License-Identifier: Apache-2.0
 * The worker daemon's inside: an agent, its link to the coordinator, and the files of its tasks. */
#ifndef CADRE_WORKER_DAEMON_H
#define CADRE_WORKER_DAEMON_H

#include <stdatomic.h>
#include <uv.h>

#include "common/rpc/channel.h"
#include "common/rpc/file_work.h"
#include "common/rpc/tls.h"
#include "common/service/notifier.h"
#include "common/wire/wire.h"
#include "worker/host/agent/agent.h"
#include "worker/host/daemon/log_file.h"
#include "worker/host/daemon/options.h"
#include "worker/host/isolate/isolation.h"

/* Chunks of a log on their way at one time. */
#define LOG_FLYING_MAX 64

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
    struct fetch *fetch;         /* in hand */
    struct restore *restore;     /* the checkpoint to go on from is being fetched */
    char *restore_path;          /* its manifest, once it is known */
    uint64_t damaged_step;       /* the checkpoint of this step was found damaged; 0: none was */
    bool placing;                /* a thread makes the folders; nothing may be freed */
    unsigned damages;            /* contents were found damaged, so often */
    struct placement *placement; /* the thread's, of place.c */
    struct file_work files;      /* of its folders: until it is placed, and when it is gone */
    int opened_fd;               /* of the log, by the thread that makes the folder */
    cadre_status place_status;
    struct cadre_error place_error;
    bool emptying;   /* a thread removes what others left under its uid */
    bool uid_waits;  /* for that */
    bool name_waits; /* until an earlier start of its name has set its folder aside */
    void (*then)(struct task_files *task); /* when one of the two is over */
    bool uid_answered;                     /* it is over; while those that waited are started */
    char *aside;                           /* gone: what its folder was renamed to, the thread's */
    bool left;                   /* gone, and the last of its job: its uid is being emptied */
    bool entered;                /* its job counts it */
    struct isolation_user user;  /* then: who it runs as */
    struct task_group group;     /* made, and gone with its process unless that never was */
    bool ready;                  /* folders stand */
    bool failed;                 /* it does not start any more, and the agent knows */
    struct publish *publish;     /* of its newest checkpoint, under way */
    struct published *published; /* newest first */
    /* the log */
    struct log_file log;      /* as the last turn left it */
    struct log_turn log_turn; /* the thread's while log_work runs */
    struct file_work log_work;
    uint8_t *log_came; /* to be written by the next turn; NULL: nothing came */
    size_t log_came_bytes;
    size_t log_missed; /* came after that, when there was no memory */
    bool log_tells;    /* how much was dropped, if there is room now */
    bool log_held;     /* the task's pipes are not read until what came is written */
    uint64_t log_sent;
    uint64_t log_acked;
    uint64_t log_ends[LOG_FLYING_MAX]; /* of chunks that are not answered yet: a ring, whose */
    unsigned log_first;                /* oldest is here; answers come in their order */
    unsigned log_flying;
    unsigned log_stale; /* so many of them were sent before log_sent was set back */
    bool counted_start; /* in the daemon's counts */
    bool counted_end;
    bool log_waits;         /* the coordinator has no room for the next chunk */
    bool log_probes;        /* one chunk, until it has */
    bool publish_waits;     /* the coordinator has no room for its checkpoint */
    unsigned publish_tries; /* so often */
    bool start_waits;       /* there was no room for its files */
    unsigned starts;        /* so often */
    /* collecting */
    bool collecting;
    bool forgotten;
    struct upload *upload;
    struct output_list *outputs;
};

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

#define FETCH_PREFIX "fetch-" /* of a file in blob_dir that has not come whole yet */

struct daemon {
    struct worker_options options;
    struct rpc_loop *loop;
    struct rpc_channel *channel;
    struct rpc_tls *tls; /* NULL: none */
    struct rpc_call *join;
    bool linked; /* the welcome came on this stream */
    bool was_linked;
    struct term term;             /* the newest coordinator that was obeyed */
    uint64_t told_certificate_us; /* what the coordinator knows of when it expires */
    bool ready_told;              /* the ready file is ours */
    uint64_t retry_us;            /* grows with each failure */
    uv_timer_t retry;
    uv_timer_t drain;
    uv_timer_t later;
    void (*again)(struct daemon *daemon); /* when it is over */
    const struct link_front *link_front;
    uv_signal_t sigterm;
    uv_signal_t sigint;
    struct notifier notifier;
    char refusal[200];   /* why there is no link; "" before the first answer */
    uint64_t refusal_us; /* when the log was told */
    uint64_t tries;      /* in vain, since it was linked */
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
    bool change_user;
    uid_t uid;
    gid_t gid;
    bool draining;
    void (*leaves)(struct daemon *daemon); /* when all logs are written; NULL: it stays */
    bool agent_closed;
    struct file_works works;    /* on files, by threads */
    struct task_files *leaving; /* forgotten, and their folders still bear their names */
    struct task_files *gone;    /* what they left is to be removed, in this order */
    bool removes;               /* a thread has the first */
    atomic_ullong gone_last;    /* of the names of their folders */
    struct slot_gpus *gpus;
    struct isolation *isolation;
    struct worker_counts counts;
    struct http_server *http; /* NULL: none */
    uint64_t cache_bytes;     /* in blob_dir */
    bool cache_shrinks;       /* a thread lets contents go */
    bool cache_grew;          /* meanwhile */
    bool closes;              /* no work for the pool is begun any more */
    struct cache_check *cache_check;
};

/* term.c: daemon->term, when the agent is there. */
cadre_status term_load(struct daemon *daemon, struct cadre_error *error);
/* The coordinator at hand is obeyed from now on. FAILED_PRECONDITION: it may not be. */
cadre_status term_take(struct daemon *daemon, const struct term *term, struct cadre_error *error);

/* gpus.c: daemon->gpus; INVALID_ARGUMENT: --gpus is wrong. */
cadre_status gpus_open(struct daemon *daemon, struct cadre_error *error);

/* isolate.c: daemon->isolation, once the state directory is there. */
cadre_status isolate_open(struct daemon *daemon, struct cadre_error *error);
/* The task's user; and what its process is to do, with its group made. */
cadre_status isolate_enter(struct task_files *task, struct cadre_error *error);
cadre_status isolate_prepare(
    struct task_files *task, struct task_confinement *ret_confinement, struct cadre_error *error);
/* The same for one of an earlier life: whose its files are. */
cadre_status isolate_adopt(struct task_files *task, struct cadre_error *error);
/* Groups of an earlier life whose tasks are not here. */
void isolate_clear(struct daemon *daemon);
/* True: isolate_empty is due, then isolate_emptied. */
bool isolate_leave(struct task_files *task);
/* Of a task that was entered: what earlier jobs left under its uid is removed; it is not: who asks
 * does isolate_empty, then isolate_emptied; or somebody does so already. */
enum uid_state { UID_CLEAN, UID_DIRTY, UID_BEING_EMPTIED };
enum uid_state isolate_uid_state(struct task_files *task);
void isolate_empty(const struct task_files *task); /* in any thread; may take long */
/* The user of all tasks of its job is another when something else runs under the uid. False: and no
 * other is free. */
bool isolate_emptied(struct task_files *task);

/* link.c */
/* What takes what comes: on the loop, as often as it comes. */
struct link_front {
    void (*linked)(struct daemon *daemon); /* a new stream is welcome, and the agent knows */
    void (*log_acked)(struct daemon *daemon, const struct agent_log_ack *ack);
}; /* all else is the agent's */
/* A stream, opened again for as long as the daemon lives. */
void link_start(struct daemon *daemon, const struct link_front *front);
void link_send(struct daemon *daemon, const struct agent_up *up);

/* tasks.c: the agent's front, and the link's. */
extern const struct agent_front worker_front;
extern const struct link_front worker_link_front;
void tasks_linked(struct daemon *daemon); /* a new stream: what was interrupted goes on */
/* What waits for room is tried again: see later_open(). */
void tasks_try_again(struct daemon *daemon);
void tasks_free_all(struct daemon *daemon);

/* task_files.c */
struct task_files *tasks_find(struct daemon *daemon, struct task_ref ref);
/* 0 is the program, 1 to spec->file_count its files. */
const struct job_file *tasks_file(const struct task_files *task, size_t i);
/* task->folder, which need not be there. */
cadre_status tasks_name_folder(struct task_files *task, struct cadre_error *error);
/* Ends the preparation with the shells' exit code 126. */
void tasks_fail(struct task_files *task, const char *text);

/* prepare.c: from the beginning, or when what it waited for is there; then agent_task_prepared. */
void prepare_start(struct task_files *task);
void prepare_resume(struct task_files *task); /* a new stream */
/* What comes from the coordinator does not come any more. A thread in its folder ends by itself,
 * and then removes or collects what was forgotten or stopped meanwhile. */
void prepare_cancel(struct task_files *task);

/* fetch.c: the contents that a task needs and that are still to come, one after the other; then
 * done(task), on the loop and once: perhaps before this returns. It does not come when the fetch is
 * cancelled or put off (later_start), or when the link breaks: then this is called again. */
void fetch_files(struct task_files *task, void (*done)(struct task_files *task));
void fetch_cancel(struct task_files *task);
/* A content of a task that runs, for the cache alone. Nothing if another one is under way. */
void fetch_renew(struct task_files *task, const struct job_file *file);

/* restore.c: the checkpoint that the task goes on from, if any; then done(task), on the loop and
 * once: perhaps before this returns. It does not come when this is cancelled, put off (later_start)
 * or fails (tasks_fail). */
void restore_start(struct task_files *task, void (*done)(struct task_files *task));
void restore_resume(struct task_files *task); /* a new stream */
void restore_cancel(struct task_files *task);

/* removal.c: of a task that is forgotten, and in no list: its name is not free any more. */
void removal_expect(struct task_files *task);
/* Then, when no thread is at work for it: its folder goes, in the pool; then who it was, and if it
 * was the last of its job here what their uid left. Frees it. */
void removal_start(struct task_files *task);
/* A folder of an earlier life in task_dir. */
cadre_status removal_folder(struct daemon *daemon, const char *path, struct cadre_error *error);
/* False: the folder of an earlier start still bears the task's name; when it does not any more
 * comes then(task), on the loop, unless task->name_waits was taken back. */
bool removal_name_is_free(struct task_files *task, void (*then)(struct task_files *task));
/* False: what others left under the task's uid is being removed; then comes then(task), or, when no
 * other uid is free, later_start(); on the loop, unless task->uid_waits was taken back. */
bool removal_is_clean(struct task_files *task, void (*then)(struct task_files *task));

/* publish.c: the newest checkpoint of a task, to the coordinator; then agent_task_published. */
void publish_start(struct task_files *task, const struct task_part *part);
void publish_resume(struct task_files *task); /* a new stream */
void publish_cancel(struct task_files *task);

/* launch.c. In the thread, when the files stand: looks at the program, makes the task's socket. */
cadre_status launch_open(const struct task_files *task, const char *program, int *ret_listener,
    struct cadre_error *error);
/* Then, on the loop. *listener is the agent's afterwards, and -1, unless the task fails here. */
void launch_start(struct task_files *task, int *listener);

/* logs.c */
/* Of a task that was adopted: what its log holds already. */
cadre_status logs_reopen(struct task_files *task, struct cadre_error *error);
/* The task's pipes are not read any more until a thread has written it. */
void logs_write(struct task_files *task, const uint8_t *bytes, size_t size);
/* Of no task anything is read any more; true: all that was read is written. */
bool logs_hold_all(struct daemon *daemon);
/* Nothing is left to be written or to be sent. */
static inline bool logs_are_there(const struct task_files *task)
{
    return task->log_acked >= task->log.bytes && task->log_came_bytes + task->log_missed == 0 &&
           !task->log_work.runs;
}
void logs_linked(struct task_files *task); /* a new stream */
void logs_ship(struct task_files *task);
/* The answer to the oldest chunk under way: what lies before `offset` is stored or dropped. */
void logs_acked(struct task_files *task, uint64_t offset);

/* later.c: what there was no room for is tried again. */
/* again(daemon) on the loop, a second after something said that it waits: as often as needed. */
void later_open(struct daemon *daemon, void (*again)(struct daemon *daemon));
void later_close(struct daemon *daemon);
void later_arm(struct daemon *daemon);
/* The coordinator has no room for the task's checkpoint: it goes again, or false: it went too
 * often.
 */
bool later_publish(struct task_files *task, const char *reason);
/* The task's files could not be kept: its start is tried again, or it fails. */
void later_start(struct task_files *task, const struct cadre_error *error);

/* outputs.c: collects the task: the files in the output folder, one after the other; then
 * agent_task_collected. */
void outputs_start(struct task_files *task);
void outputs_resume(struct task_files *task);
void outputs_cancel(struct task_files *task);

/* leftovers.c: takes over the tasks that an earlier life of this daemon left running under their
 * keepers in this state directory: only with --keep-tasks, and before the first link. */
void leftovers_adopt(struct daemon *daemon);
/* Ends what else it left running, and removes its folders. */
cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error);

/* cache.c: the contents in blob_dir. At the start, and when one came, the least recently used that
 * no task here needs are removed down to --cache-limit. */
cadre_status cache_open(struct daemon *daemon, struct cadre_error *error);
/* Where a content lies; malloc'ed, NULL: no memory. In any thread. */
char *cache_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);
/* In any thread. */
void cache_used(const char *path);
/* `was_here`: two tasks fetched it at one time. */
void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here);
/* The content was found damaged for the task, and is not in the cache any more: says so.
 * `state` is an enum content_state. */
void cache_damaged(struct task_files *task, const struct job_file *file, int state);
/* One that was removed for that counts no more. */
void cache_removed(struct daemon *daemon, uint64_t bytes);

/* cache_check.c: what jobs that run here took, looked at again every --cache-check. */
cadre_status cache_check_open(struct daemon *daemon, struct cadre_error *error);
void cache_check_close(struct daemon *daemon); /* when no thread is at work any more */

/* metrics.c: the pages of --http, if any. */
cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error);
void metrics_close(struct daemon *daemon);
/* What is known of the TLS files goes to the log; new ones are the pages', too. */
void metrics_tls_told(enum rpc_tls_event event, const char *text, void *user);

#endif
