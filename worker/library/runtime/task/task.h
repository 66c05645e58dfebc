/* SPDX-License-Identifier: Apache-2.0
 * This process as a member of its job: the shell of worker/core/task_core. One lock guards the
 * core; the thread of the session and the thread of the program both step it. The core's actions
 * are carried out at once: messages go to the session, the mesh is aborted, waiting threads are
 * woken. */
#ifndef CADRE_RUNTIME_TASK_H
#define CADRE_RUNTIME_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/ps/directory.h"
#include "worker/library/runtime/task/session.h"

/* A generation as the plan describes it. */
struct task_roster {
    struct generation generation;
    uint64_t resume;
    uint32_t source; /* rank that has the state at `resume`; SOURCE_NONE */
    uint32_t rank;
    uint32_t member_count;
    struct mesh_member *members; /* owned; by rank */
    uint32_t *slots;             /* owned; by rank */
    bool part;                   /* only the entries of this task and its neighbours are there */
    uint8_t key[MESH_KEY_BYTES];
};

/* Frees what it owns, and zeroes it. */
void task_roster_clear(struct task_roster *roster);

struct task_identity {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t replicas;
    const char *mesh_address;    /* copied; of a ps job's chief: where the others dial it */
    struct directory *directory; /* of a ps job's chief: receives the members, and an end without
                                  * permission; borrowed until task_close. NULL: of no ps job */
    bool plain; /* the program keeps its state itself: with other tasks, and when a member is lost,
                 * the job begins again, from the newest checkpoint */
};

struct task;

/* Sends hello through the session, which is taken over, also on error. *ret_task is the caller's to
 * close. */
cadre_status task_open(struct session *session, const struct task_identity *identity,
    struct task **ret_task, struct cadre_error *error);

/* When a member is lost the job is to go on from a verified state. Once, before a strategy runs. */
void task_verify_losses(struct task *task);

/* Ends the session. No other function may be running. NULL is allowed. */
void task_close(struct task *task);

/* Waits for this task's first assignment: the plan of a generation, or (*ret_warm) the order to
 * prepare alone, because the job is under way. */
cadre_status task_await_assignment(struct task *task, bool *ret_warm, struct cadre_error *error);

/* While warm: the stream's position when this task came; false: not known. */
bool task_warm_stream(struct task *task, uint32_t stream, struct stream_position *ret_position);
/* While warm: the tasks of the job when this task came. */
uint32_t task_warm_tasks(struct task *task);

/* A warm task's program has come to its first step, of `stream`. A plan will follow. */
void task_join(struct task *task, uint32_t stream);

/* After task_join: waits for the plan; false: it is there, or will not come (task_await_plan
 * returns why). True: the streams have moved on meanwhile, to the positions of task_warm_stream. */
bool task_await_streams(struct task *task);

/* Waits for the plan of the next generation; on success the roster is the caller's to clear. An
 * error is final. */
cadre_status task_await_plan(
    struct task *task, struct task_roster *ret_roster, struct cadre_error *error);

/* A mesh of the generation that the core's abort actions go to from now on. One whose generation
 * was aborted meanwhile is aborted at once, also when the plan that followed has come already. */
void task_attach_mesh(struct task *task, struct mesh *mesh);
/* They do not go to it any more. */
void task_detach_mesh(struct task *task, struct mesh *mesh);

/* The mesh of `generation` is formed and the state is complete: true when the task is at the plan's
 * first position from now on, and runs; `cursor` and `consumption` are those of the last step.
 * False: it was frozen meanwhile, and its position is unchanged. */
bool task_synced(struct task *task, struct generation generation, const struct cursor *cursor,
    const struct consumption *consumption);

/* The mesh of `generation` did not form, or the state did not come. */
void task_sync_failed(struct task *task, struct generation generation, const char *text);

/* The program begins the step at its position, of the run `cursor`, whose input is at hand for all
 * steps before `position`; `consumption`: of the cursor's epoch so far. */
void task_ready(struct task *task, const struct cursor *cursor,
    const struct consumption *consumption, uint64_t position);

/* The program found the end of an epoch whose length was not known: it has so many steps. */
void task_end_of_data(struct task *task, uint32_t stream, uint64_t epoch, uint64_t steps);

/* What the coordinator receives of the step at the task's position. */
void task_get_reported(
    struct task *task, struct cursor *ret_cursor, struct consumption *ret_consumption);

/* Waits until a replica may enter the first collective of step `position` (protocol, rule 1). Any
 * thread. ABORTED: this generation ends before it; CANCELLED, UNAVAILABLE: final. */
cadre_status task_admit(struct task *task, uint64_t position, struct cadre_error *error);

/* Whether the variables of step `position`, which was admitted, may be written (protocol, rule 10);
 * ABORTED when the task was frozen meanwhile. After a success the caller calls task_applied. */
cadre_status task_apply(struct task *task, uint64_t position, struct cadre_error *error);
/* The variables of step `position` are written; `consumption`: of its epoch, with this step. */
void task_applied(struct task *task, uint64_t position, const struct consumption *consumption);

/* A collective of `generation` failed because a peer was lost: the task freezes, and reports it to
 * the coordinator. Nothing when a newer generation is planned already. */
void task_peer_error(struct task *task, struct generation generation, const char *text);

/* The program itself failed: final for the job. */
void task_failed(struct task *task, const struct cadre_error *error);

/* A part of a checkpoint is durable. */
void task_part(struct task *task, const struct task_part *part);

/* The newest published checkpoint that this task has received, POSITION_NONE: none. Any thread. */
uint64_t task_published(struct task *task);

/* Waits until a checkpoint of `position` or a newer one is published. ABORTED when the generation
 * ends before that; else final. `last`: tasks that are done wait for this task meanwhile, and the
 * coordinator receives that it is not idle. */
cadre_status task_await_published(
    struct task *task, uint64_t position, bool last, struct cadre_error *error);

/* A dataset was distributed; kept, and sent again on each connection. */
cadre_status task_stream(
    struct task *task, const struct task_stream *stream, struct cadre_error *error);

/* A thread has waited in a collective for the task of `slot` for so long. Any thread. */
void task_stall(struct task *task, uint32_t slot, uint64_t waited_us);

/* Replicas of this task have waited for one of their own for so long. Any thread. */
void task_hang(struct task *task, const struct task_hang *hang, uint64_t waited_us);

/* The task has to leave its machine, or its program requests a save: the job saves at one step, and
 * `stops` there. Any thread. */
void task_preempt(struct task *task, bool stops);

enum task_pause_point {
    TASK_CONTINUES = 0,
    TASK_PAUSES, /* before the step that was begun; not reported yet: task_admit returns ABORTED */
    TASK_STOPS,  /* here; not reported yet */
    TASK_STOPPED
};
/* The program begins a step: all that it does between two is done. Returns whether its job stops
 * here, or pauses because a task joins or leaves. Where it has stopped the state is to be saved,
 * and bye follows; where it pauses, another generation. */
enum task_pause_point task_pause_point(struct task *task);
/* Waits until the step at `position`, which the program has begun, is released: *ret_at is
 * TASK_CONTINUES; or until its job pauses there (unless `goes_on`: the pause is known to be lifted)
 * or stops. ABORTED when the generation ends before that; else final. */
cadre_status task_await_begun(struct task *task, uint64_t position, bool goes_on,
    enum task_pause_point *ret_at, struct cadre_error *error);
/* Waits until its job stops at this position, because another task has that order already. ABORTED
 * when the generation ends before that; else final. */
cadre_status task_await_stop(struct task *task, struct cadre_error *error);
/* Reports the pause or stop of task_pause_point, with the digest of the state (0: not known),
 * unless the job goes on otherwise meanwhile. */
void task_report_paused(struct task *task, uint64_t digest);

/* Before this step the chief is to save the state; POSITION_NONE: none is requested. */
uint64_t task_checkpoint_at(struct task *task);

/* Whether it is frozen in order, before the step at its position, or about to be: no task is in a
 * collective, and the mesh stays open until the next plan (protocol, rule 17). */
bool task_halted(struct task *task);

/* --- task_values.c: what the program reported, by step --- */

/* A step that the caller does not have: how often the name was reported that was reported most. */
#define STEP_COUNTED UINT64_MAX

/* Keeps the value until the coordinator has stored it; the chief sends it, with others, within
 * half a second. `numbered`: `step` is the program's own number, or STEP_COUNTED; else it is the
 * task's position. False: no memory. */
bool task_report_value(
    struct task *task, const char *name, uint64_t step, bool numbered, double value);
/* Sends what is there, and waits until it is stored, for so long at most. */
void task_flush_values(struct task *task, uint64_t timeout_us);

/* --- for people --- */

/* Progress for people; dropped when there is no connection. */
void task_progress(struct task *task, const struct progress *progress);
/* How the files are shared out, for people; dropped when there is no connection. */
void task_shards(struct task *task, const struct shards_report *shards);

/* The replicas of `generation` compared their states and found them equal: nothing when that
 * generation is over already. */
void task_verified(
    struct task *task, struct generation generation, const struct verified *verified);
/* The replicas of `generation` found their states different: the task freezes and reports it;
 * strategy_regroup waits for what follows. Nothing when that generation is over already. */
void task_diverged(struct task *task, struct generation generation,
    const struct divergence *divergence, const char *text);

/* Reports that the program is done in `generation`, with the digest of its state (0: not known):
 * false when another one is planned already, in which it may be the chief, and has to save first.
 */
bool task_finish(struct task *task, struct generation generation, uint64_t digest);
/* After task_finish: waits for permission to exit (bye). *ret_void: the task was superseded, and
 * its process must end without doing anything more (protocol, rule 16); the error says why. */
cadre_status task_await_goodbye(struct task *task, bool *ret_void, struct cadre_error *error);

/* Whether permission to exit was given. */
bool task_dismissed(struct task *task);

/* Steps that are applied. Any thread. */
uint64_t task_position(struct task *task);

/* --- generation_end.c: the end of a task that goes on in no other generation --- */

/* Waits until this task's generation ends other than in order, and returns why; or until *stop is
 * set by task_cancel_await, then CADRE_OK. Any thread. */
cadre_status task_await_generation_end(
    struct task *task, const bool *stop, struct cadre_error *error);

/* Sets *stop and wakes the thread that waits with it. */
void task_cancel_await(struct task *task, bool *stop);

#endif
