/* SPDX-License-Identifier: Apache-2.0
 * This process as a member of its job: the shell of worker/core/task_core. One lock guards the
 * core; the thread of the session and the thread of the program both step it. What the core wants
 * is carried out at once: messages go to the session, the mesh is aborted, waiting threads are
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
    uint8_t key[MESH_KEY_BYTES];
};

void task_roster_clear(struct task_roster *roster);

struct task_identity {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t replicas;
    const char *mesh_address;    /* copied; of a crew's chief: where the others dial it */
    struct directory *directory; /* of a crew's chief: hears of the members, and of an end without
                                  * permission; borrowed until task_close. NULL: of no crew */
};

struct task;

/* Says hello through the session, which is taken over, also on error. */
cadre_status task_open(struct session *session, const struct task_identity *identity,
    struct task **ret_task, struct cadre_error *error);

/* When a member is lost the job is to go on from what is verified. Once, before a strategy runs. */
void task_verify_losses(struct task *task);

/* Ends the session. No other function may be running. NULL is allowed. */
void task_close(struct task *task);

/* Waits until the coordinator says what this task is to do first: a plan is there, or (*ret_warm)
 * the job is under way and it prepares alone. */
cadre_status task_await_assignment(struct task *task, bool *ret_warm, struct cadre_error *error);

/* While warm: where a stream stood when this task came; false: not known. And the tasks of the job
 * then. */
bool task_warm_stream(struct task *task, uint32_t stream, struct stream_position *ret_position);
uint32_t task_warm_tasks(struct task *task);

/* A warm task's program has come to its first step, of `stream`. A plan will follow. */
void task_join(struct task *task, uint32_t stream);

/* After task_join: waits for the plan; false: it is there, or there is no hope for it
 * (task_await_plan tells). True: the streams have moved on meanwhile, as task_warm_stream says. */
bool task_await_streams(struct task *task);

/* Waits for the plan of the next generation; on success the roster is the caller's to clear. An
 * error is final. */
cadre_status task_await_plan(
    struct task *task, struct task_roster *ret_roster, struct cadre_error *error);

/* The mesh that the core's wishes to abort go to; NULL to detach it. One that was to be aborted
 * meanwhile is aborted at once, also when the plan that followed has come already. */
void task_attach_mesh(struct task *task, struct mesh *mesh);

/* The mesh of `generation` is formed and what the state lacked has come: true when the task stands
 * at the plan's first position from now on, and runs; `cursor` and `feed` are those of the last
 * step. False: it was frozen meanwhile, and stands where it stood. */
bool task_synced(struct task *task, struct generation generation, const struct cursor *cursor,
    const struct consumption *consumption);

/* The mesh of `generation` did not form, or the state did not come. */
void task_sync_failed(struct task *task, struct generation generation, const char *text);

/* The program begins the step where it stands, of the run `cursor`, whose input can be had below
 * `position`; `feed`: of the cursor's epoch so far. */
void task_ready(struct task *task, const struct cursor *cursor,
    const struct consumption *consumption, uint64_t position);

/* The program found the end of an epoch whose length was not known: it has so many steps. */
void task_end_of_data(struct task *task, uint32_t stream, uint64_t epoch, uint64_t steps);

/* What the coordinator is told of the step where the task stands. */
void task_get_reported(
    struct task *task, struct cursor *ret_cursor, struct consumption *ret_consumption);

/* Waits until a replica may enter the first collective of step `position`. Any thread. ABORTED:
 * this generation ends before it; CANCELLED, UNAVAILABLE: final. */
cadre_status task_admit(struct task *task, uint64_t position, struct cadre_error *error);

/* Asks to write the variables of step `position`, which was admitted; ABORTED when the task was
 * frozen meanwhile. task_applied follows a success. */
cadre_status task_apply(struct task *task, uint64_t position, struct cadre_error *error);
void task_applied(struct task *task, uint64_t position, const struct consumption *consumption);

/* A collective of `generation` failed for want of a peer: the task freezes, and the coordinator
 * hears of it. Nothing when a newer generation is planned already. */
void task_peer_error(struct task *task, struct generation generation, const char *text);

/* The program itself failed: final for the job. */
void task_failed(struct task *task, const struct cadre_error *error);

/* A part of a checkpoint is durable. */
void task_part(struct task *task, const struct task_part *part);

/* The newest published checkpoint that this task heard of, POSITION_NONE: none. Any thread. */
uint64_t task_published(struct task *task);

/* Waits until a checkpoint of `position` or a later one is published. ABORTED when the generation
 * ends before that; else final. `last`: those that are done wait for this task meanwhile, and the
 * coordinator hears that it is not idle. */
cadre_status task_await_published(
    struct task *task, uint64_t position, bool last, struct cadre_error *error);

/* A dataset was distributed; kept, to be said again on each connection. */
cadre_status task_stream(
    struct task *task, const struct task_stream *stream, struct cadre_error *error);

/* A thread has waited in a collective for the task of rank `rank` for so long. Any thread. */
void task_stall(struct task *task, uint32_t slot, uint64_t waited_us);

/* Replicas of this task have waited for one of their own for so long. Any thread. */
void task_hang(struct task *task, const struct task_hang *hang, uint64_t waited_us);

/* The task has to leave its machine, or its program wants that: the job saves at one step, and
 * `stops` there. Any thread. */
void task_preempt(struct task *task, bool stops);

/* The program begins a step: all that it does between two is done. Whether its job stops here, or
 * stands still for who joins or leaves. Then task_report_paused says that it does, with the digest
 * of its state (0: not known), unless the job goes on otherwise meanwhile. Where it has stopped the
 * state is to be saved, and bye follows; where it stands still, another generation. */
enum task_pause_point {
    TASK_CONTINUES = 0,
    TASK_PAUSES, /* before the step that was begun, and nobody was told: task_admit says ABORTED */
    TASK_STOPS,  /* here, and nobody was told */
    TASK_STOPPED
};
enum task_pause_point task_pause_point(struct task *task);
void task_report_paused(struct task *task, uint64_t digest);

/* Before this step the chief is to save the state; POSITION_NONE: nobody asks. */
uint64_t task_checkpoint_at(struct task *task);

/* Whether it is frozen in order, before the step where it stands, or about to be: nobody is in the
 * mesh, and it stays open until the next plan. */
bool task_halted(struct task *task);

/* Shown to people; dropped when there is no connection. */
void task_progress(struct task *task, const struct progress *progress);
void task_shards(struct task *task, const struct shards_report *shards);

/* What the replicas of `generation` found when they compared their states: nothing when that is
 * over already. Found different, the task freezes and says so; strategy_regroup waits for what
 * comes. */
void task_verified(
    struct task *task, struct generation generation, const struct verified *verified);
void task_diverged(struct task *task, struct generation generation,
    const struct divergence *divergence, const char *text);

/* Reports that the program is done in `generation`, with the digest of its state (0: not known):
 * false when another one is planned already, in which it may be the chief, and has to save first.
 * task_await_goodbye then waits for permission to go. *ret_void: the task was replaced, its process
 * must end without doing anything more; the error says why. */
bool task_finish(struct task *task, struct generation generation, uint64_t digest);
cadre_status task_await_goodbye(struct task *task, bool *ret_void, struct cadre_error *error);

/* Whether permission to go was given. */
bool task_dismissed(struct task *task);

/* Steps that are applied. Any thread. */
uint64_t task_position(struct task *task);

#endif
