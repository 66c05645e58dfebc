/* SPDX-License-Identifier: Apache-2.0
 * What the daemon keeps of each task, and functions on it. For the loop's thread alone, but for
 * members that a comment gives to a thread. */
#ifndef CADRE_WORKER_DAEMON_TASK_FILES_H
#define CADRE_WORKER_DAEMON_TASK_FILES_H

#include <sys/stat.h>

#include "common/base/error.h"
#include "common/rpc/file_work.h"
#include "worker/host/agent/agent.h"
#include "worker/host/daemon/fetch_report.h"
#include "worker/host/daemon/log_file.h"
#include "worker/host/daemon/usage_report.h"
#include "worker/host/isolate/isolation.h"

struct daemon;

/* Chunks of a log under way at one time. */
#define LOG_IN_FLIGHT_MAX 64

/* The daemon's record of a task, beside the agent's. */
struct task_files {
    struct task_files *next;
    struct daemon *daemon;
    struct task_ref ref;
    const struct agent_start *start; /* the agent's, until forget */
    const struct job_spec *spec;     /* of it */
    char *folder;                    /* <state>/tasks/<job>.<slot>.<incarnation> */
    /* fetching: files[next_file..] are still to come; 0 is the program */
    size_t next_file;
    struct fetch *fetch;                  /* under way */
    struct object_fetch *object;          /* the same, of an object */
    struct job_file *objects;             /* NULL: none was fetched; else of spec->files, with hash
                                           * and size of those that were */
    struct checkpoint_counts file_counts; /* of those that are not cached */
    struct fetch_account fetching;        /* what is reported of all this */
    struct restore *restore;              /* the checkpoint to go on from is being fetched */
    char *restore_path;                   /* the path of its manifest, once it is fetched */
    char *object_folder;                  /* where it may keep objects; NULL: nowhere */
    uint64_t damaged_step;     /* the checkpoint of this step was found damaged; 0: none was */
    bool staging_in;           /* a thread makes the folders; nothing may be freed */
    unsigned damages;          /* contents were found damaged, so often */
    struct stage_in *stage_in; /* the thread's, of stage_in.c */
    struct file_work files;    /* of its folders: until they are made, and at the removal */
    int opened_fd;             /* of the log, by the thread that makes the folder */
    int opened_marks_fd;       /* of its marks, the same */
    cadre_status stage_in_status;
    struct cadre_error stage_in_error;
    bool emptying;   /* a thread removes what others left under its uid */
    bool uid_waits;  /* it waits until emptying is over */
    bool name_waits; /* until an earlier start of its name has set its folder aside */
    void (*then)(struct task_files *task); /* called when one of the two waits is over */
    bool uid_answered;                     /* uid_waits is over; set while those that waited are
                                            * started */
    char *aside;                           /* at the removal: the new name of its folder, the
                                            * thread's */
    bool left;                   /* at the removal: it was the last of its job, whose uid is
                                  * being emptied */
    bool entered;                /* its job counts it */
    struct isolation_user user;  /* then: the user that it runs as */
    struct task_cgroup group;    /* made, and removed with its process unless it never had one */
    bool ready;                  /* the folders are made */
    bool failed;                 /* it does not start any more, as the agent was notified */
    struct publish *publish;     /* of its newest checkpoint, under way */
    struct published *published; /* newest first */
    /* the log */
    struct log_file log;  /* as the last turn left it */
    struct log_io log_io; /* the thread's while log_work runs */
    struct file_work log_work;
    uint8_t *log_incoming; /* to be written by the next turn; NULL: nothing came */
    size_t log_incoming_bytes;
    struct log_mark *log_incoming_marks; /* of them, by the offset in log_incoming */
    size_t log_incoming_mark_count;
    size_t log_missed;        /* came after that, when there was no memory */
    bool log_reports_dropped; /* the next turn reports how much was dropped, if there is room */
    bool log_paused;          /* the task's pipes are not read until what came is written */
    uint64_t log_sent;
    uint64_t log_due_us; /* short pieces are not sent before */
    uint64_t log_acked;
    uint64_t log_ends[LOG_IN_FLIGHT_MAX]; /* of chunks that are not answered yet: a ring, whose */
    unsigned log_first;                   /* oldest is here; answers come in their order */
    unsigned log_in_flight;
    unsigned log_stale;         /* so many of them were sent before log_sent was set back */
    struct usage_account usage; /* of its processes */
    bool counted_start;         /* in the daemon's counts */
    bool counted_end;
    bool log_waits;         /* the coordinator has no room for the next chunk */
    bool log_probes;        /* sends one chunk at a time, until it has room */
    bool publish_waits;     /* the coordinator has no room for its checkpoint */
    unsigned publish_tries; /* so often */
    bool start_waits;       /* there was no room for its files */
    unsigned starts;        /* so often */
    /* collecting */
    bool collecting;
    bool forgotten;
    struct upload *upload;
    struct object_put *put; /* to an object store; also the trial before its start */
    struct output_list *outputs;
};

/* The record of a task; NULL: it is not here, or forgotten. */
struct task_files *tasks_find(struct daemon *daemon, struct task_ref ref);
/* A file of the task: 0 is the program, 1 to spec->file_count its files. */
const struct job_file *tasks_file(const struct task_files *task, size_t i);
/* Sets task->folder, which need not exist. */
cadre_status tasks_name_folder(struct task_files *task, struct cadre_error *error);
/* Ends the preparation with the shells' exit code 126. The cause's code becomes the job's. */
void tasks_fail(struct task_files *task, const struct cadre_error *cause);
/* The same for want of memory for `what`. */
void tasks_fail_memory(struct task_files *task, const char *what);

/* True when all of its log is written and the coordinator has it. */
static inline bool tasks_log_is_stored(const struct task_files *task)
{
    return task->log_acked >= task->log.bytes && task->log_incoming_bytes + task->log_missed == 0 &&
           !task->log_work.running;
}

/* Opens files of a task safely although its program may be hostile and may put a link there at
 * any time. */

/* Opens the regular file `name` beneath `folder` for reading, without following a link anywhere
 * on the way; *ret_status is its state now. `name` passed file_name_check. Thread-safe. */
cadre_status open_beneath(const char *folder, const char *name, int *ret_fd,
    struct stat *ret_status, struct cadre_error *error);

#endif
