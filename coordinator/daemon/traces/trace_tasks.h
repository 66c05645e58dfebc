/* SPDX-License-Identifier: Apache-2.0
 * The tasks of one trace: what came from each, what is missing, and how far its clock is from the
 * coordinator's. Tasks of one host have one clock, whose best sample counts for all of them. No
 * I/O. */
#ifndef CADRE_COORDINATOR_DAEMON_TRACES_TRACE_TASKS_H
#define CADRE_COORDINATOR_DAEMON_TRACES_TRACE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/client_message.h"
#include "coordinator/daemon/traces/clock_offset.h"

/* Processes of tasks that one trace counts; of a job whose tasks are started again and again the
 * later ones are not traced. */
#define TRACE_TASKS_MAX (2 * (size_t)LIMIT_TASKS_PER_JOB)

struct traced_task {
    struct trace_task view; /* its worker is `worker` */
    char worker[LIMIT_NAME_BYTES];
    uint64_t expected; /* spans that it had sent, as far as is known */
    bool own_numbers;  /* as in task_spans */
    uint64_t first_ns; /* when it reported a position first; 0: not yet */
    uint64_t first_position;
    uint64_t newest_ns; /* and last */
    bool here;          /* it runs, and said hello */
    bool changed;       /* since it was sent to the client */
};

struct traced_clock {
    uint64_t id;
    struct clock_offset offset;
};

/* Zeroed: none. `own_clock` is the coordinator's; a task with the same one needs no measuring. */
struct trace_tasks {
    uint64_t own_clock;
    uint64_t began_ns;
    struct traced_task *items; /* owned */
    size_t count;
    size_t capacity;
    struct traced_clock *clocks; /* owned */
    size_t clock_count;
    size_t clock_capacity;
};

/* Frees what it owns. */
void trace_tasks_free(struct trace_tasks *tasks);

/* The process of a task, added if it is not there; NULL: there is no room, or no memory. Valid
 * until another is added. */
struct traced_task *trace_tasks_get(struct trace_tasks *tasks, const struct task_info *info);
/* NULL: there is none. */
struct traced_task *trace_tasks_find(
    const struct trace_tasks *tasks, uint32_t slot, uint64_t incarnation);

/* What a task sent came at `now_ns`. */
void trace_tasks_take(struct trace_tasks *tasks, struct traced_task *task,
    const struct task_spans *spans, uint64_t now_ns);

/* Before a look at the job's tasks: none is here. Those that are not found then are gone. */
void trace_tasks_begin_look(struct trace_tasks *tasks);
void trace_tasks_end_look(struct trace_tasks *tasks);

/* Whether some task has ended its trace, and all that are here have. */
bool trace_tasks_are_done(const struct trace_tasks *tasks);

/* The highest position of a task. */
uint64_t trace_tasks_position(const struct trace_tasks *tasks);

/* Of a plain program, whose numbers the coordinator does not have: a number that no task comes to
 * within `lead_ns`, as fast as they are. False: not all that are here have reported theirs for long
 * enough. */
bool trace_tasks_next_number(
    const struct trace_tasks *tasks, uint64_t lead_ns, uint64_t *ret_number);

/* Copies of up to `max` tasks that changed since they were copied last, or (`all`) of all from
 * *cursor on; with their offsets at `now_ns`. */
size_t trace_tasks_changed(struct trace_tasks *tasks, uint64_t now_ns, bool all, size_t *cursor,
    struct trace_task *ret_items, size_t max);

#endif
