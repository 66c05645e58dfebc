/* SPDX-License-Identifier: Apache-2.0
 * The coordinator without its network: owns the core and the store, turns messages into core events
 * and core actions into messages, in the order persist, then speak. Two fronts stand on it: the
 * daemon (gRPC) and `cadre run` (tasks of this machine). A program started by hand steps the core
 * itself.
 *
 * A turn: any number of engine_* event calls, then engine_flush, which commits every record of the
 * turn in one transaction and only then calls the sink. Nothing is spoken outside engine_flush. One
 * thread owns an engine. */
#ifndef CADRE_COORDINATOR_ENGINE_H
#define CADRE_COORDINATOR_ENGINE_H

#include "common/base/error.h"
#include "common/model/client_message.h"
#include "coordinator/core/core.h"
#include "coordinator/engine/counts.h"
#include "coordinator/store/store.h"

struct engine;

struct engine_options {
    struct core_options core;
    uint32_t keep_jobs; /* jobs that ended and are still listed; older ones are forgotten, see
                           sink->job_forgotten */
    /* Records whose sync may lag are on the disk after so long at the latest. 0: only with the
     * next one that may not. */
    uint64_t sync_us;
    /* A turn for which there is no room is held and tried again after so long. 0: it breaks the
     * engine, as any other failure of the store does. */
    uint64_t retry_us;
};

/* Where speech goes. Everything is borrowed for the call. A sink may call the engine's readers, not
 * its events. */
struct engine_sink {
    void (*down)(void *user, struct link_id link, const struct agent_down *down);
    /* Tell the agent why and end its stream. */
    void (*refuse)(void *user, struct link_id link, cadre_status code, const char *text);
    void (*answer)(void *user, struct call_id call, cadre_status code, struct job_id job,
        uint32_t queued_before, const char *text);
    /* Once a turn, after all else; not for steps alone, which would cost each of them something. */
    void (*job_changed)(void *user, struct job_id job);
    void (*job_forgotten)(void *user, struct job_id job); /* its logs and outputs may go */
    /* A published checkpoint is beyond what the job keeps, and is forgotten: its contents may go.
     */
    void (*checkpoint_dropped)(
        void *user, struct job_id job, const struct core_checkpoint *checkpoint);
};

/* The engine takes the store over (on success only) and closes it. Jobs of the store are restored.
 */
cadre_status engine_open(const struct engine_options *options, struct store *store,
    const struct engine_sink *sink, void *user, uint64_t now_us, struct engine **ret_engine,
    struct cadre_error *error);
void engine_close(struct engine *engine); /* accepts NULL */

/* This start of the coordinator, as every welcome tells it: once it is on the disk. */
struct term engine_term(const struct engine *engine);
/* Gives this start a number above `start`. Who was welcomed before knows the older number. */
void engine_supersede(struct engine *engine, uint64_t start);

/* ---- events ---- */

/* Answered by sink->answer at the end of the turn. The spec is copied; one that breaks the limits
 * is refused, and one that restores from a job without a checkpoint. */
void engine_submit(
    struct engine *engine, uint64_t now_us, struct call_id call, const struct job_spec *spec);
/* One that goes on from a checkpoint which the front knows, whatever spec->restore_from says. */
void engine_submit_restored(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct job_spec *spec, const struct core_checkpoint *checkpoint);
void engine_cancel(struct engine *engine, uint64_t now_us, struct call_id call, struct job_id job);

/* Answered with job 0. */
void engine_checkpoint_now(
    struct engine *engine, uint64_t now_us, struct call_id call, struct job_id job);
/* The published checkpoint of this position cannot be read any more: it is forgotten, and who was
 * to go on from it goes on from the newest whole one. `why` is for people. */
void engine_checkpoint_damaged(
    struct engine *engine, uint64_t now_us, struct job_id job, uint64_t position, const char *why);
void engine_drain(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct drain_request *asked, const char *who);

/* Any message of an agent but AGENT_UP_LOG. */
void engine_agent_up(
    struct engine *engine, uint64_t now_us, struct link_id link, const struct agent_up *up);
void engine_link_down(struct engine *engine, uint64_t now_us, struct link_id link);
void engine_tick(struct engine *engine, uint64_t now_us);

/* Ends the turn. On an error the engine must be closed: a coordinator that cannot write must not
 * speak. When the commit failed, nothing of the turn was spoken. OK also when there was no room for
 * it (see retry_us): the turn is held, and goes on. */
cadre_status engine_flush(struct engine *engine, uint64_t now_us, struct cadre_error *error);

/* Whether it ended, and nothing of it waits for the next flush. */
bool engine_job_may_go(const struct engine *engine, struct job_id job);
/* Forgets such a job at once, as one beyond keep_jobs; sink->job_forgotten comes before it returns.
 * Not from inside the sink. On an error the engine must be closed. */
cadre_status engine_forget_job(struct engine *engine, struct job_id job, struct cadre_error *error);
/* True while a turn is held, and why. Events are taken, nothing is spoken, and for the core no time
 * passes. The front refuses what clients want changed. Readers go on: they tell of no job, and of
 * no end of one, that is not stored. */
bool engine_held(const struct engine *engine, struct cadre_error *ret_error);

/* When to call engine_tick next; UINT64_MAX: only on events. */
uint64_t engine_wake_us(const struct engine *engine);

/* ---- readers; what they point to lives until the next event or flush, the tasks of a job_info
 * until the next engine_job_info ---- */

/* False: no such job. */
bool engine_job_info(struct engine *engine, struct job_id job, struct job_info *ret_info);
/* The same without its tasks and shards: cheap. */
bool engine_job_basics(struct engine *engine, struct job_id job, struct job_info *ret_info);
/* As job_info.position, for who looks often: steps alone are not told by job_changed. */
bool engine_job_position(struct engine *engine, struct job_id job, uint64_t *ret_position);
const struct job_spec *engine_job_spec(struct engine *engine, struct job_id job);

/* The ledger lost something of it: its message says what, and it neither goes on nor is verified.
 */
bool engine_job_is_damaged(const struct engine *engine, struct job_id job);

/* The jobs known, newest first, without their tasks: i from 0 until false. */
bool engine_job_at(struct engine *engine, uint32_t i, struct job_info *ret_info);
/* The same of it that costs nothing, for those who look at all jobs. */
struct engine_job_brief {
    struct job_id id;
    enum job_state state;
    uint64_t submitted_us;
    uint64_t started_us; /* 0: not yet */
    uint64_t ended_us;   /* 0: not yet */
};
uint32_t engine_job_count(const struct engine *engine);
bool engine_job_brief_at(struct engine *engine, uint32_t i, struct engine_job_brief *ret_brief);

/* The workers known, in the order in which they joined, until false; *cursor is 0 at first. */
bool engine_worker_next(struct engine *engine, uint32_t *cursor, struct worker_info *ret_info);
/* Leaves out GPUs of the later ones where a list of all would be longer than one message may be. */
void engine_shorten_workers(struct worker_info *workers, size_t count);

/* Good until the engine is closed. */
const struct engine_counts *engine_counts(struct engine *engine);

/* A page of what the ledger knows: filled until the next event, flush or engine_verify. Nothing is
 * kept between two pages, in which the job may go on: client_message.h says why they are one proof
 * all the same. NOT_FOUND; DATA_LOSS: some of what this page tells is damaged. */
cadre_status engine_verify(struct engine *engine, const struct verify_request *request,
    struct verify_response *ret_response, struct cadre_error *error);

/* The newest published checkpoint of a job, live or ended; false: there is none. */
bool engine_checkpoint(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint);

/* The i-th of the checkpoints that are kept of a job, oldest first; false: there are not so many.
 */
bool engine_checkpoint_at(
    struct engine *engine, struct job_id job, uint32_t i, struct core_checkpoint *ret_checkpoint);

/* What the job would begin again from: that, else another job's; false: from the beginning. */
bool engine_begins_at(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint);

/* Every checkpoint that is wanted, of all jobs: what the contents at the coordinator are for. One
 * that a job goes on from is given under that job too. */
cadre_status engine_each_checkpoint(struct engine *engine,
    void (*visit)(void *user, struct job_id job, const struct core_checkpoint *checkpoint),
    void *user, struct cadre_error *error);

/* Bytes of a task's log that are stored, for job_info. */
void engine_log_bytes(struct engine *engine, struct task_ref task, uint64_t bytes);

/* The task of this job and slot runs under this incarnation and this link right now: a front may
 * accept its logs and outputs. */
bool engine_task_on_link(struct engine *engine, struct task_ref task, struct link_id link);

/* The task of this job and slot has this incarnation, and is or was placed on the worker of this
 * name. */
bool engine_task_is_of(struct engine *engine, struct task_ref task, const char *worker);
/* The job has not ended, and one of its tasks is placed on the worker of this name. */
bool engine_worker_has_job(struct engine *engine, const char *worker, struct job_id job);
/* The worker of this name is known and has a task. */
bool engine_worker_has_tasks(const struct engine *engine, const char *worker);

#endif
