/* SPDX-License-Identifier: Apache-2.0
 * What the daemon keeps of each task, and what of it is asked or said anywhere. Of the loop alone,
 * but for what is said to be a thread's. */
#ifndef CADRE_WORKER_DAEMON_TASK_FILES_H
#define CADRE_WORKER_DAEMON_TASK_FILES_H

#include "common/rpc/file_work.h"
#include "worker/host/agent/agent.h"
#include "worker/host/daemon/log_file.h"
#include "worker/host/isolate/isolation.h"

struct daemon;

/* Chunks of a log on their way at one time. */
#define LOG_IN_FLIGHT_MAX 64

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
    struct fetch *fetch;       /* in hand */
    struct restore *restore;   /* the checkpoint to go on from is being fetched */
    char *restore_path;        /* its manifest, once it is known */
    uint64_t damaged_step;     /* the checkpoint of this step was found damaged; 0: none was */
    bool staging_in;           /* a thread makes the folders; nothing may be freed */
    unsigned damages;          /* contents were found damaged, so often */
    struct stage_in *stage_in; /* the thread's, of stage_in.c */
    struct file_work files;    /* of its folders: until it is placed, and when it is gone */
    int opened_fd;             /* of the log, by the thread that makes the folder */
    cadre_status stage_in_status;
    struct cadre_error stage_in_error;
    bool emptying;   /* a thread removes what others left under its uid */
    bool uid_waits;  /* for that */
    bool name_waits; /* until an earlier start of its name has set its folder aside */
    void (*then)(struct task_files *task); /* when one of the two is over */
    bool uid_answered;                     /* it is over; while those that waited are started */
    char *aside;                           /* gone: what its folder was renamed to, the thread's */
    bool left;                   /* gone, and the last of its job: its uid is being emptied */
    bool entered;                /* its job counts it */
    struct isolation_user user;  /* then: who it runs as */
    struct task_cgroup group;    /* made, and gone with its process unless that never was */
    bool ready;                  /* folders stand */
    bool failed;                 /* it does not start any more, and the agent knows */
    struct publish *publish;     /* of its newest checkpoint, under way */
    struct published *published; /* newest first */
    /* the log */
    struct log_file log;  /* as the last turn left it */
    struct log_io log_io; /* the thread's while log_work runs */
    struct file_work log_work;
    uint8_t *log_incoming; /* to be written by the next turn; NULL: nothing came */
    size_t log_incoming_bytes;
    size_t log_missed;        /* came after that, when there was no memory */
    bool log_reports_dropped; /* how much was dropped, if there is room now */
    bool log_paused;          /* the task's pipes are not read until what came is written */
    uint64_t log_sent;
    uint64_t log_acked;
    uint64_t log_ends[LOG_IN_FLIGHT_MAX]; /* of chunks that are not answered yet: a ring, whose */
    unsigned log_first;                   /* oldest is here; answers come in their order */
    unsigned log_in_flight;
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

/* NULL: it is not here, or forgotten. */
struct task_files *tasks_find(struct daemon *daemon, struct task_ref ref);
/* 0 is the program, 1 to spec->file_count its files. */
const struct job_file *tasks_file(const struct task_files *task, size_t i);
/* task->folder, which need not be there. */
cadre_status tasks_name_folder(struct task_files *task, struct cadre_error *error);
/* Ends the preparation with the shells' exit code 126. */
void tasks_fail(struct task_files *task, const char *text);

/* Nothing of its log is left to be written or to be sent. */
static inline bool tasks_log_is_stored(const struct task_files *task)
{
    return task->log_acked >= task->log.bytes && task->log_incoming_bytes + task->log_missed == 0 &&
           !task->log_work.running;
}

#endif
