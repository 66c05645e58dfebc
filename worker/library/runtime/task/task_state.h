/* SPDX-License-Identifier: Apache-2.0
 * The inside of the task: for the shell of its core (task.c) and its waits (task_wait.c). */
#ifndef CADRE_RUNTIME_TASK_STATE_H
#define CADRE_RUNTIME_TASK_STATE_H

#include <pthread.h>

#include "worker/core/task_core.h"
#include "worker/library/runtime/task/reported_values.h"
#include "worker/library/runtime/task/task.h"
#include "worker/library/runtime/task/task_trace.h"

/* A dataset that was reported. */
struct announced_stream {
    struct task_stream stream; /* its name is `name` */
    char name[LIMIT_NAME_BYTES];
};

struct task {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task_core core;
    struct task_actions actions; /* of the step at hand */
    struct session *session;
    struct directory *directory; /* of a ps job's chief; else NULL */
    struct mesh *meshes;         /* that are attached */
    bool abort_mesh;             /* in this generation */
    struct task_roster roster;
    bool roster_due; /* a plan came that no thread took yet */
    bool warm;       /* ordered to prepare alone */
    bool warm_news;  /* newer positions of the streams came, which no thread read since */
    uint32_t warm_tasks;
    struct stream_position warm_streams[LIMIT_STREAMS];
    size_t warm_stream_count;
    struct announced_stream *streams; /* owned */
    size_t stream_count;
    struct reported_values values;
    struct trace_sender trace;
    uint64_t ticked_us;           /* the last tick that was for all */
    _Atomic uint64_t collectives; /* of a plain program, as task_spans.own_numbers */
    bool void_exit;
    char exit_text[LIMIT_TEXT_BYTES];
    char abort_text[LIMIT_TEXT_BYTES]; /* what the mesh was aborted for */
    char cause_text[LIMIT_TEXT_BYTES]; /* the coordinator's reason for it */
    bool lost;
    struct cadre_error lost_error;
};

/* Steps the core and carries out its actions. Under the lock. */
void task_step(struct task *task, const struct task_event *event);

/* --- task_values.c, under the lock --- */

/* Sends the values that are due; `wanted`: all. */
void task_send_values(struct task *task, bool wanted);
/* Those that were not acknowledged for long, too. */
void task_tick_values(struct task *task);

#endif
