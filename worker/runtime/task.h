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
#include "worker/mesh/mesh.h"
#include "worker/runtime/session.h"

/* A generation as the plan describes it. */
struct task_roster {
    struct generation generation;
    uint64_t resume;
    uint32_t rank;
    uint32_t member_count;
    struct mesh_member *members; /* owned; by rank */
    uint8_t key[MESH_KEY_BYTES];
};

void task_roster_clear(struct task_roster *roster);

struct task_identity {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t replicas;
    const char *mesh_address; /* copied */
};

struct task;

/* Says hello through the session, which is taken over, also on error. */
cadre_status task_open(struct session *session, const struct task_identity *identity,
    struct task **ret_task, struct cadre_error *error);

/* Ends the session. No other function may be running. NULL is allowed. */
void task_close(struct task *task);

/* Waits for the plan of a generation; on success the roster is the caller's to clear. */
cadre_status task_await_plan(
    struct task *task, struct task_roster *ret_roster, struct cadre_error *error);

/* The mesh that the core's wishes to abort go to; NULL to detach it. One that was to be aborted
 * meanwhile is aborted at once. */
void task_attach_mesh(struct task *task, struct mesh *mesh);

/* The mesh is formed and the state stands at the roster's resume; or it could not be had. */
void task_synced(struct task *task);
void task_sync_failed(struct task *task, const char *text);

/* The program begins the step where it stands, of the run `cursor`, whose input can be had below
 * `position`. */
void task_ready(struct task *task, const struct cursor *cursor, uint64_t position);

/* Waits until a replica may enter the first collective of step `position`. Any thread. ABORTED,
 * CANCELLED or UNAVAILABLE say why that will not be. */
cadre_status task_admit(struct task *task, uint64_t position, struct cadre_error *error);

/* Asks to write the variables of step `position`, which was admitted; ABORTED when the task was
 * frozen meanwhile. task_applied follows a success. */
cadre_status task_apply(struct task *task, uint64_t position, struct cadre_error *error);
void task_applied(struct task *task, uint64_t position, const uint64_t digest[2]);

/* A collective or a step failed here with `error`: the task freezes, and the coordinator hears of
 * it. Waits a moment for what it has to say about the cause and puts that into `error`. */
void task_fail(struct task *task, struct cadre_error *error);

/* CADRE_OK unless the task's generation was aborted, the session lost or the task ended. */
cadre_status task_check(struct task *task, struct cadre_error *error);

/* A part of a checkpoint is durable. */
void task_part(struct task *task, const struct task_part *part);

/* Shown to people; dropped when there is no connection. */
void task_progress(struct task *task, const struct progress *progress);

/* Reports that the program is done; task_await_bye then waits for permission to go. *ret_void: the
 * task was replaced, its process must end without doing anything more; the error says why. */
void task_finish(struct task *task);
cadre_status task_await_bye(struct task *task, bool *ret_void, struct cadre_error *error);

/* Steps that are applied. Any thread. */
uint64_t task_position(struct task *task);

#endif
