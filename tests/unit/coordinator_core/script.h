/* SPDX-License-Identifier: Apache-2.0
 * A coordinator's core on a stage: short functions that feed it one event each, and a transcript of
 * its actions, so that a test reads like the protocol. After every step the whole core's
 * invariants are checked. */
#ifndef CADRE_TESTS_COORDINATOR_CORE_SCRIPT_H
#define CADRE_TESTS_COORDINATOR_CORE_SCRIPT_H

#include "coordinator/core/core.h"
#include "tests/lib/test.h"

#define SECOND UINT64_C(1000000)

struct script {
    uint32_t gpus; /* of each worker that joins from now on */
    void *memory;
    struct core *core;
    uint64_t now_us;
    bool shows_changes; /* JOB_CHANGED is in the transcript */
    bool shows_endings; /* and the record of what an ending job will have ended as */
    struct core_actions actions;
    struct generation planned[16]; /* the newest of each job, by its number */
    char job_text[LIMIT_TEXT_BYTES];
    size_t length;
    char transcript[64 * 1024];
};

/* lease 10 s, rewind 40 s, grace 5 s, collect 20 s, form 30 s, report 2 s, wait 60 s; 8 workers, 8
 * jobs, 64 tasks unless given. */
struct script *script_open(const struct core_limits *limits);
/* Frees the script; the transcript may be unread. */
void script_close(struct script *s);

/* Fails the test when the transcript since the last call differs; each row ends with a newline. */
#define expect_output(s, expected) script_expect((s), (expected), __FILE__, __LINE__)
/* What expect_output() calls. */
void script_expect(struct script *s, const char *expected, const char *file, int line);
/* Adds an action to the transcript. */
void script_show(struct script *s, const struct core_action *action);
/* Empties the transcript. */
void script_skip(struct script *s);

/* The core takes the event, and ticks until nothing is left over. */
void step(struct script *s, const struct core_event *event);
/* What is left over is not done yet. */
void step_once(struct script *s, const struct core_event *event);
/* Time passes; with a tick at each core_wake_us(). */
void wait_us(struct script *s, uint64_t for_us);
/* A client submits a job of so many tasks, all of which it needs. */
void submit(struct script *s, uint64_t call, uint32_t tasks, int32_t priority);
/* A client submits a job of this spec. */
void submit_spec(struct script *s, uint64_t call, const struct core_job_spec *spec);
/* A client cancels the job. */
void cancel(struct script *s, uint64_t call, uint64_t job);
/* A client drains the worker. */
void drain(struct script *s, uint64_t call, const char *worker);

/* A worker's hello with so many tasks that it holds. */
void hello(struct script *s, uint64_t link, const char *name, uint64_t nonce, uint32_t slots,
    const struct task_ref *tasks, size_t task_count);
/* The hello of a new worker without tasks; its boot nonce is 1000 + link. */
void join(struct script *s, uint64_t link, const char *name, uint32_t slots);
/* The same of one that drains. */
void join_draining(struct script *s, uint64_t link, const char *name, uint32_t slots);
/* The stream of the worker ends. */
void link_down(struct script *s, uint64_t link);
/* A heartbeat on the link. */
void heartbeat(struct script *s, uint64_t link);
/* The daemon drains itself. */
void draining(struct script *s, uint64_t link);
/* A task's process runs. */
void started(struct script *s, uint64_t link, uint64_t job, uint32_t slot);
/* A task's process exited. */
void gone(struct script *s, uint64_t link, uint64_t job, uint32_t slot, int32_t code,
    int32_t signal, const char *text);
/* A task never had a process, with the exit code 126, because of `cause`. */
void not_started(struct script *s, uint64_t link, uint64_t job, uint32_t slot, cadre_status cause,
    const char *text);
/* An exited task's logs and outputs are collected. */
void collected(struct script *s, uint64_t link, uint64_t job, uint32_t slot);
/* They could not be, for this reason. */
void not_collected(struct script *s, uint64_t link, uint64_t job, uint32_t slot, const char *text);

/* A task's hello; generation 0 is a joiner, else the job's own. */
void task_hello(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t generation);
/* The job's newest planned generation. */
struct generation generation_of(const struct script *s, uint64_t job);
/* Relays a message of the task. */
void relay_up(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, const struct task_up *up);
/* A report: the program called cadre_finish. */
void finished(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position);
/* A report: the member lost its peers. */
void peer_error(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position);
/* A report, sent as of the job's generation. */
void report(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, const struct task_report *report);
/* After an abort, or a halt: clean, and the program has begun the step of this stream. */
void frozen(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint32_t stream);
/* The report of a member that reached a halt. */
void halted(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint32_t stream);
/* A joiner has come to a step of the stream. */
void joins(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint32_t stream);
/* The chief saved a checkpoint at this path. */
void part(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path);
/* The fold of `tasks` local tasks, in stream 1, epoch 0, which begins at 0. */
void arrived(struct script *s, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied);
/* The states after `position` steps were compared, and all have this digest. */
void compared(struct script *s, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied, struct verified verified);
/* As finished, halted and part, with the digest of the state. */
void finished_as(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint64_t digest);
/* As halted(), with the digest of the state. */
void halted_as(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint64_t digest);
/* As part(), with the digest of the state. */
void part_of(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path, uint64_t digest);
/* The chief has seen that this digest is what all held there. */
void part_agreed(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path, uint64_t digest);
/* States differ after divergence.position steps. */
void diverged(struct script *s, uint64_t link, uint64_t job, uint32_t slot,
    struct divergence divergence, const char *text);
/* As arrived(), at this cursor. */
void arrived_at(struct script *s, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied, struct cursor cursor);

/* A member's program takes at least so many steps; no watermark moves. */
void wants(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t steps);
/* The same, beside an arrival. */
void wants_after(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t applied,
    uint64_t up_to, uint64_t steps);
/* The program of task 0, the only one there, is in the step behind those that it has applied. */
void begins(struct script *s, uint64_t link, uint64_t job, uint64_t applied, uint64_t up_to);

/* What names the task in messages. */
struct task_ref ref(const struct script *s, uint64_t job, uint32_t slot);
/* core_job() of a live job. */
struct core_job_view job_view(const struct script *s, uint64_t job);
/* What people read of it, until the next call. */
const char *script_job_text(struct script *s, uint64_t job);
/* Of job 1. */
struct core_task_view task_view(const struct script *s, uint32_t slot);
/* The link of the worker where it is. */
uint64_t link_of(const struct script *s, uint32_t slot);

/* Two workers "a" (link 1) and "b" (link 2) with one slot each, job 1 with two tasks, as far as
 * named; the transcript is empty afterwards. */
struct script *stage_started(void); /* placed, start was sent */
struct script *stage_joined(void);  /* both said hello, the plan was sent */
struct script *stage_released(uint64_t up_to);
/* So many workers "a", "b" ... with one slot each, and job 1 with a task on each as far as it wants
 * them: planned, and released. */
struct script *stage_running(const struct core_job_spec *spec, uint32_t workers, uint64_t up_to);

/* A job with parameter servers, slots: 0 chief, 1 and 2 workers, 3 and 4 servers, 5 evaluator. */
extern const struct core_job_spec ps_job_spec;
extern const struct core_job_spec ps_job_spec_backups; /* of its servers, too */

/* Workers "a" (link 1), "b", "c" with two slots each, job 1 on all of them: chief and worker 0 on
 * "a", worker 1 and ps 0 on "b", ps 1 and the evaluator on "c". */
struct script *stage_ps_job_placed(const struct core_job_spec *spec);
/* The same; all said hello, and the plan was sent. */
struct script *stage_ps_job(const struct core_job_spec *spec);

/* Killed by signal 9, and collected. */
void collect(struct script *s, uint64_t link, uint64_t job, uint32_t slot);

#endif
