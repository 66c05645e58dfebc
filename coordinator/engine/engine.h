/* SPDX-License-Identifier: Apache-2.0
 * The coordinator without its network: owns the core and the store, turns messages into core events
 * and core actions into messages, in the order persist, then send. Two fronts use it: the daemon
 * (gRPC) and `cadre run` (tasks of this machine). A program started by hand steps the core itself.
 *
 * A turn: any number of engine_* event calls, then engine_flush, which commits every record of the
 * turn in one transaction and only then calls the sink. Nothing is sent outside engine_flush. One
 * thread owns an engine. */
#ifndef CADRE_COORDINATOR_ENGINE_H
#define CADRE_COORDINATOR_ENGINE_H

#include "common/base/error.h"
#include "common/model/client_message.h"
#include "coordinator/core/core.h"
#include "coordinator/engine/counts.h"
#include "coordinator/store/store.h"

struct engine;

/* A log that several coordinators share, of which this one is the leader. Its entries take the
 * place of the commits of turns: the engine numbers them from 1, and its store gets the records of
 * an entry from the log's reader, as those of the other coordinators do. The engine writes nothing
 * to the store itself. */
struct engine_log {
    void *user;
    struct term term; /* of this leadership */
    /* Appends the records, which are borrowed for the call, as the next entry. `waits`: messages
     * are held back until engine_log_stored() names the entry; without records it is the question
     * whether this coordinator leads still, asked after this call. Else the entry may become part
     * of the next one. It calls nothing of the engine. An error breaks the engine. */
    cadre_status (*append)(void *user, const struct store_record *records, size_t count, bool waits,
        struct cadre_error *error);
};

struct engine_options {
    struct core_options core;
    const struct engine_log *log; /* NULL: the store is the ledger; borrowed while it is open */
    uint32_t keep_jobs; /* jobs that ended and are still listed; older ones are removed, see
                         * sink->job_forgotten */
    /* The longest time for which a record whose sync may lag is not on the disk, or in no entry;
     * in none, longer where LAGGING_RECORDS_PER_S (lagging.h) asks for it. 0: until the next one
     * (of an entry: of the same job) that may not lag. */
    uint64_t sync_us;
    /* A turn for which the disk has no room is held and tried again after so long. 0: it breaks the
     * engine, as any other failure of the store does. */
    uint64_t retry_us;
    uint32_t whole_max; /* as in struct sender; 0: the default */
};

/* The receiver of messages. Everything is borrowed for the call. A sink may call the engine's
 * readers, not its events. */
struct engine_sink {
    void (*down)(void *user, struct link_id link, const struct agent_down *down);
    /* Send the agent the reason and end its stream. */
    void (*refuse)(void *user, struct link_id link, cadre_status code, const char *text);
    void (*answer)(void *user, struct call_id call, cadre_status code, struct job_id job,
        uint32_t queued_before, const char *text);
    /* Once a turn, after all else; not for steps alone, because that would cost each step
     * something. */
    void (*job_changed)(void *user, struct job_id job);
    void (*job_forgotten)(void *user, struct job_id job); /* its logs and outputs may be removed */
    /* A published checkpoint is beyond what the job keeps, and is dropped: its contents may be
     * removed. With a shared log this and job_forgotten come when the entry is stored. */
    void (*checkpoint_dropped)(
        void *user, struct job_id job, const struct core_checkpoint *checkpoint);
};

/* Takes over the store (on success only) and closes it. Jobs of the store are restored. */
cadre_status engine_open(const struct engine_options *options, struct store *store,
    const struct engine_sink *sink, void *user, uint64_t now_us, struct engine **ret_engine,
    struct cadre_error *error);
/* The state as it is in the store, for readers alone: it has no events and no flush, and leaves the
 * store to its owner, who must not close it first. What the store is given later is not in it. */
cadre_status engine_open_reader(const struct engine_options *options, struct store *store,
    uint64_t now_us, struct engine **ret_engine, struct cadre_error *error);
/* Accepts NULL. */
void engine_close(struct engine *engine);

/* This start of the coordinator, as in every welcome: once it is on the disk. */
struct term engine_term(const struct engine *engine);
/* Gives this start a number above `start`. Workers that were welcomed before have the older number.
 */
void engine_supersede(struct engine *engine, uint64_t start);

/* The first `entry` entries of the log are in it, and in the store: what waited for them is sent by
 * the next flush. */
void engine_log_stored(struct engine *engine, uint64_t entry);
/* This coordinator may send nothing, for it does not know whether it leads still: turns are held
 * and the core's clock stops, until engine_resume(). `why` is shown to clients. */
void engine_suspend(struct engine *engine, uint64_t now_us, const struct cadre_error *why);
void engine_resume(struct engine *engine, uint64_t now_us);

/* ---- events ---- */

/* Answered by sink->answer at the end of the turn. The spec is copied; one that breaks the limits
 * is refused, and one that restores from a job without a checkpoint. With the request id of a job
 * that is known, live or ended, it is answered with that job, and ALREADY_EXISTS if that has
 * another spec. */
void engine_submit(
    struct engine *engine, uint64_t now_us, struct call_id call, const struct job_spec *spec);
/* Whether a submission of this spec would be answered so: it brings nothing that must be checked.
 */
bool engine_knows_request(const struct engine *engine, const struct job_spec *spec);
/* A job that goes on from a checkpoint that the front gives, whatever spec->restore_from is. */
void engine_submit_restored(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct job_spec *spec, const struct core_checkpoint *checkpoint);
/* Answered with the job. */
void engine_cancel(struct engine *engine, uint64_t now_us, struct call_id call, struct job_id job);

/* Answered with job 0. */
void engine_checkpoint_now(
    struct engine *engine, uint64_t now_us, struct call_id call, struct job_id job);
/* The published checkpoint of this position cannot be read any more: it is dropped, and jobs that
 * were to go on from it go on from the newest whole one. `why` is for people. */
void engine_checkpoint_damaged(
    struct engine *engine, uint64_t now_us, struct job_id job, uint64_t position, const char *why);
/* Answered with job 0. `who` is the client, for listings. */
void engine_drain(struct engine *engine, uint64_t now_us, struct call_id call,
    const struct drain_request *asked, const char *who);

/* Any message of an agent except AGENT_UP_LOG. */
void engine_agent_up(
    struct engine *engine, uint64_t now_us, struct link_id link, const struct agent_up *up);
/* The agent's stream ended. */
void engine_link_down(struct engine *engine, uint64_t now_us, struct link_id link);
/* At engine_wake_us. */
void engine_tick(struct engine *engine, uint64_t now_us);

/* Ends the turn. On an error the engine must be closed: a coordinator that cannot write must not
 * send. When the commit failed, nothing of the turn was sent. OK also when the disk had no room for
 * it (see retry_us): the turn is held, and goes on. */
cadre_status engine_flush(struct engine *engine, uint64_t now_us, struct cadre_error *error);

/* Whether it ended, no message of it waits for the next flush, and it is not going already. */
bool engine_job_may_go(const struct engine *engine, struct job_id job);
/* Removes such a job at once, as one beyond keep_jobs; sink->job_forgotten comes before it returns.
 * With a shared log its removal is recorded by the next flush: the job stays, and is going, until
 * that entry is stored, and sink->job_forgotten comes then. Not from inside the sink. On an error
 * the engine must be closed. */
cadre_status engine_forget_job(struct engine *engine, struct job_id job, struct cadre_error *error);
/* True while a turn is held, and why. Events are taken, nothing is sent, and for the core no time
 * passes. The front refuses requests that change something. Readers go on: they show no job, and no
 * end of one, that is not stored. */
bool engine_held(const struct engine *engine, struct cadre_error *ret_error);

/* When to call engine_tick next; UINT64_MAX: only on events. */
uint64_t engine_wake_us(const struct engine *engine);

/* ---- readers; what they point to is valid until the next event or flush, the tasks of a job_info
 * until the next engine_job_info ---- */

/* False: no such job. */
bool engine_job_info(struct engine *engine, struct job_id job, struct job_info *ret_info);
/* The same without its tasks and shards: cheap. */
bool engine_job_basics(struct engine *engine, struct job_id job, struct job_info *ret_info);
/* As job_info.position, for frequent readers: job_changed is not called for steps alone. */
bool engine_job_position(struct engine *engine, struct job_id job, uint64_t *ret_position);
/* NULL: no such job. */
const struct job_spec *engine_job_spec(struct engine *engine, struct job_id job);

/* The ledger lost something of it: its message gives details, and it neither goes on nor is
 * verified. */
bool engine_job_is_damaged(const struct engine *engine, struct job_id job);

/* The jobs of the directory, newest first, without their tasks: i from 0 until false. */
bool engine_job_at(struct engine *engine, uint32_t i, struct job_info *ret_info);
/* The same at no cost, for readers of all jobs. */
struct engine_job_brief {
    struct job_id id;
    enum job_state state;
    uint64_t submitted_us;
    uint64_t started_us; /* 0: not yet */
    uint64_t ended_us;   /* 0: not yet */
};
/* Of the directory, also those that ended. */
uint32_t engine_job_count(const struct engine *engine);
/* By index, newest first; false: there are not so many. */
bool engine_job_brief_at(struct engine *engine, uint32_t i, struct engine_job_brief *ret_brief);

/* The workers, in the order in which they joined, until false; *cursor is 0 at first. */
bool engine_worker_next(struct engine *engine, uint32_t *cursor, struct worker_info *ret_info);
/* Omits GPUs of workers further down where a list of all would exceed one message. */
void engine_shorten_workers(struct worker_info *workers, size_t count);

/* Valid until the engine is closed. */
const struct engine_counts *engine_counts(struct engine *engine);

/* The generations of a job with a number above `after`, of more than `max` the newest, in order.
 * NOT_FOUND; DATA_LOSS: a row of them is damaged. None of a job whose records are damaged. */
cadre_status engine_generations(struct engine *engine, struct job_id job, uint64_t after,
    struct verify_generation *ret_items, size_t max, size_t *ret_count, struct cadre_error *error);

/* A page of a job's history: valid until the next event, flush or engine_history. NOT_FOUND;
 * DATA_LOSS: an event of it is damaged. */
cadre_status engine_history(struct engine *engine, const struct history_request *request,
    struct history_response *ret_response, struct cadre_error *error);

/* A page of the ledger: valid until the next event, flush or engine_verify. Nothing is kept between
 * two pages, in which the job may go on: client_message.h explains why they are one proof all the
 * same. NOT_FOUND; DATA_LOSS: a row of this page is damaged. */
cadre_status engine_verify(struct engine *engine, const struct verify_request *request,
    struct verify_response *ret_response, struct cadre_error *error);

/* The newest published checkpoint of a job, live or ended; false: there is none. */
bool engine_checkpoint(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint);

/* The i-th of the checkpoints that are kept of a job, oldest first; false: there are not so many.
 */
bool engine_checkpoint_at(
    struct engine *engine, struct job_id job, uint32_t i, struct core_checkpoint *ret_checkpoint);

/* The checkpoint from which the job would begin again: its newest, else another job's; false: from
 * the beginning. */
bool engine_begins_at(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint);

/* Every checkpoint that is kept, of all jobs: it keeps its contents at the coordinator. One that a
 * job goes on from is given under that job too, and with a shared log those whose removal is not
 * stored yet. */
cadre_status engine_each_checkpoint(struct engine *engine,
    void (*visit)(void *user, struct job_id job, const struct core_checkpoint *checkpoint),
    void *user, struct cadre_error *error);

/* Bytes of a task's log that are stored, for job_info. */
void engine_log_bytes(struct engine *engine, struct task_ref task, uint64_t bytes);

/* The task of this job and slot runs under this incarnation and this link right now: a front may
 * accept its logs and outputs. */
bool engine_task_on_link(struct engine *engine, struct task_ref task, struct link_id link);

/* Its role in a ps job; ROLE_NONE: its job is none, or there is no such task. */
enum role engine_task_role(struct engine *engine, struct task_ref task);

/* The link over which messages reach the task, if it runs under this incarnation and its worker is
 * connected; n 0: none. */
struct link_id engine_task_link(struct engine *engine, struct task_ref task);
/* The first step that no task has begun, as far as the messages sent so far allow; false: the job
 * is not live. */
bool engine_job_next_step(struct engine *engine, struct job_id job, uint64_t *ret_step);

/* The task of this job and slot has this incarnation, and is or was placed on the worker of this
 * name. */
bool engine_task_is_of(struct engine *engine, struct task_ref task, const char *worker);
/* The job has not ended, and one of its tasks is placed on the worker of this name. */
bool engine_worker_has_job(struct engine *engine, const char *worker, struct job_id job);
/* The worker of this name is connected or expected, and has a task. */
bool engine_worker_has_tasks(const struct engine *engine, const char *worker);

#endif
