/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/task.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/core/task_core.h"

/* Who lost a peer waits so long for the coordinator to say which one and why: a better message than
 * "connection reset". */
#define CAUSE_WAIT_US (2 * CADRE_US_PER_S)

struct task {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task_core core;
    struct task_actions actions; /* of the step at hand */
    struct session *session;
    struct mesh *mesh;
    bool abort_mesh; /* asked for in this generation */
    struct task_roster roster;
    bool roster_due; /* a plan came that nobody took yet */
    bool void_exit;
    char exit_text[LIMIT_TEXT_BYTES];
    char abort_text[LIMIT_TEXT_BYTES]; /* what the mesh was aborted for */
    char cause_text[LIMIT_TEXT_BYTES]; /* what the coordinator said about it */
    bool lost;
    struct cadre_error lost_error;
};

void task_roster_clear(struct task_roster *roster)
{
    free(roster->members);
    *roster = (struct task_roster){0};
}

static void keep_text(char text[LIMIT_TEXT_BYTES], const char *from)
{
    snprintf(text, LIMIT_TEXT_BYTES, "%s", from == NULL ? "" : from);
}

/* Out of memory leaves member_count 0, which task_await_plan reports. */
static void keep_roster(struct task *task, const struct task_plan *plan)
{
    task_roster_clear(&task->roster);
    struct task_roster *roster = &task->roster;
    roster->generation = plan->generation;
    roster->resume = plan->resume;
    memcpy(roster->key, plan->key, sizeof roster->key);
    roster->members = calloc(plan->roster_count, sizeof *roster->members);
    if (roster->members != NULL) {
        roster->member_count = (uint32_t)plan->roster_count;
        for (uint32_t i = 0; i < roster->member_count; i++) {
            const struct roster_entry *entry = &plan->roster[i];
            snprintf(roster->members[i].address, sizeof roster->members[i].address, "%s",
                entry->mesh_address);
            roster->members[i].replicas = entry->replicas;
            if (entry->slot == task->core.slot && entry->incarnation == task->core.incarnation) {
                roster->rank = i;
            }
        }
    }
    task->roster_due = true;
    task->abort_mesh = false;
    task->abort_text[0] = '\0';
    task->cause_text[0] = '\0';
}

static void carry_out(
    struct task *task, const struct task_action *action, const struct task_event *event)
{
    switch (action->type) {
    case TASK_ACTION_SEND:
        task->session->ops->send(task->session, &action->up);
        break;
    case TASK_ACTION_FORM:
        keep_roster(task, &event->down->plan);
        break;
    case TASK_ACTION_ABORT_MESH:
        task->abort_mesh = true;
        keep_text(task->abort_text, action->text);
        if (task->mesh != NULL) {
            task->mesh->ops->abort(task->mesh, task->abort_text);
        }
        break;
    case TASK_ACTION_CHANGED:
    case TASK_ACTION_EXIT_OK:
        break;
    case TASK_ACTION_EXIT_VOID:
        task->void_exit = true;
        keep_text(task->exit_text, action->text);
        break;
    }
}

/* Under the lock. What a session answers at once is an event of its own, after this one. */
static void step(struct task *task, const struct task_event *event)
{
    struct task_down down;
    struct task_event answer = {.type = TASK_EVENT_DOWN, .down = &down};
    do {
        task_core_step(&task->core, event, &task->actions);
        for (size_t i = 0; i < task->actions.count; i++) {
            carry_out(task, &task->actions.items[i], event);
        }
        const char *broken = task_core_invariant(&task->core);
        if (broken != NULL) {
            cadre_panic(broken, __FILE__, __LINE__);
        }
        event = &answer;
    } while (task->session->ops->take(task->session, &down));
    pthread_cond_broadcast(&task->changed);
}

static void locked_step(struct task *task, const struct task_event *event)
{
    pthread_mutex_lock(&task->lock);
    step(task, event);
    pthread_mutex_unlock(&task->lock);
}

/* --- events of the session's thread --- */

static void on_connected(void *user)
{
    locked_step(user, &(struct task_event){.type = TASK_EVENT_CONNECTED});
}

static void on_disconnected(void *user)
{
    locked_step(user, &(struct task_event){.type = TASK_EVENT_DISCONNECTED});
}

static void on_down(const struct task_down *down, void *user)
{
    struct task *task = user;
    pthread_mutex_lock(&task->lock);
    if (down->type == TASK_DOWN_ABORT &&
        generation_equal(down->generation, task->core.generation)) {
        keep_text(task->cause_text, down->reason);
    }
    step(task, &(struct task_event){.type = TASK_EVENT_DOWN, .down = down});
    pthread_mutex_unlock(&task->lock);
}

static void on_lost(const struct cadre_error *error, void *user)
{
    struct task *task = user;
    pthread_mutex_lock(&task->lock);
    task->lost = true;
    task->lost_error = *error;
    task->abort_mesh = true;
    keep_text(task->abort_text, error->text);
    if (task->mesh != NULL) {
        task->mesh->ops->abort(task->mesh, task->abort_text);
    }
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
}

/* --- lifetime --- */

static void init_locks(struct task *task)
{
    pthread_mutex_init(&task->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&task->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

cadre_status task_open(struct session *session, const struct task_identity *identity,
    struct task **ret_task, struct cadre_error *error)
{
    *ret_task = NULL;
    struct task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        session->ops->close(session);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task");
    }
    init_locks(task);
    task->session = session;
    task_core_init(&task->core, identity->slot, identity->incarnation, identity->replicas,
        (uint32_t)getpid(), identity->mesh_address);
    struct session_events events = {.connected = on_connected,
        .disconnected = on_disconnected,
        .down = on_down,
        .lost = on_lost,
        .user = task};
    /* Hello first: the session's thread may find the connection gone at once, and say so. */
    on_connected(task);
    cadre_status status = session->ops->start(session, &events, error);
    if (status != CADRE_OK) {
        task_close(task);
        return status;
    }
    *ret_task = task;
    return CADRE_OK;
}

void task_close(struct task *task)
{
    if (task != NULL) {
        task->session->ops->close(task->session);
        task_roster_clear(&task->roster);
        pthread_cond_destroy(&task->changed);
        pthread_mutex_destroy(&task->lock);
        free(task);
    }
}

/* --- waiting --- */

/* CADRE_PENDING while there is hope. Under the lock. */
static cadre_status hopeless(const struct task *task, struct cadre_error *error)
{
    if (task->lost) {
        return cadre_error_set(error, task->lost_error.code, "%s", task->lost_error.text);
    }
    if (task->void_exit) {
        return cadre_error_set(
            error, CADRE_ABORTED, "this task was ended by the coordinator: %s", task->exit_text);
    }
    if (task->core.phase == TASK_EXIT) {
        return cadre_error_set(
            error, CADRE_CANCELLED, "the job was stopped; nothing is left to do for this task");
    }
    if (task->abort_mesh) {
        const char *text = task->cause_text[0] != '\0' ? task->cause_text : task->abort_text;
        return cadre_error_set(error, CADRE_ABORTED, "%s",
            text[0] != '\0' ? text : "the coordinator stopped this generation of the job");
    }
    return CADRE_PENDING;
}

cadre_status task_await_plan(
    struct task *task, struct task_roster *ret_roster, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    cadre_status status = CADRE_PENDING;
    while (!task->roster_due && (status = hopeless(task, error)) == CADRE_PENDING) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    if (task->roster_due) {
        *ret_roster = task->roster;
        task->roster = (struct task_roster){0};
        task->roster_due = false;
        status = ret_roster->member_count > 0 ? CADRE_OK
                                              : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                                    "no memory for the job's roster");
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

cadre_status task_admit(struct task *task, uint64_t position, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    bool told = false;
    pthread_mutex_lock(&task->lock);
    while (!task_core_may_enter(&task->core, position)) {
        status = hopeless(task, error);
        if (status != CADRE_PENDING) {
            break;
        }
        if (!told) {
            told = true;
            step(task, &(struct task_event){.type = TASK_EVENT_STALLED, .position = position});
            continue;
        }
        pthread_cond_wait(&task->changed, &task->lock);
    }
    if (status == CADRE_PENDING) {
        status = CADRE_OK;
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

void task_finish(struct task *task)
{
    locked_step(task, &(struct task_event){.type = TASK_EVENT_FINISH});
}

cadre_status task_await_bye(struct task *task, bool *ret_void, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    cadre_status status = CADRE_PENDING;
    while ((status = hopeless(task, error)) == CADRE_PENDING) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    *ret_void = task->void_exit;
    if (task->core.phase == TASK_EXIT && !task->void_exit) {
        status = CADRE_OK; /* also when the daemon went away right after */
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

void task_fail(struct task *task, struct cadre_error *error)
{
    uint64_t end_us = clock_monotonic_us() + CAUSE_WAIT_US;
    struct timespec end = {.tv_sec = (time_t)(end_us / CADRE_US_PER_S),
        .tv_nsec = (long)(end_us % CADRE_US_PER_S) * 1000};
    pthread_mutex_lock(&task->lock);
    step(task, &(struct task_event){.type = TASK_EVENT_PEER_ERROR, .text = error->text});
    bool peers = error->code == CADRE_ABORTED || error->code == CADRE_UNAVAILABLE;
    int errnum = 0;
    while (peers && errnum == 0 && task->cause_text[0] == '\0' && !task->lost &&
           task->core.phase != TASK_EXIT) {
        errnum = pthread_cond_timedwait(&task->changed, &task->lock, &end);
    }
    if (peers && task->cause_text[0] != '\0') {
        cadre_error_set(error, error->code, "%s", task->cause_text);
    }
    pthread_mutex_unlock(&task->lock);
}

cadre_status task_check(struct task *task, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    cadre_status status = hopeless(task, error);
    pthread_mutex_unlock(&task->lock);
    return status == CADRE_PENDING ? CADRE_OK : status;
}

/* --- what the program does --- */

void task_attach_mesh(struct task *task, struct mesh *mesh)
{
    pthread_mutex_lock(&task->lock);
    task->mesh = mesh;
    if (mesh != NULL && task->abort_mesh) {
        mesh->ops->abort(mesh, task->abort_text);
    }
    pthread_mutex_unlock(&task->lock);
}

void task_synced(struct task *task)
{
    locked_step(task, &(struct task_event){.type = TASK_EVENT_SYNCED});
}

void task_sync_failed(struct task *task, const char *text)
{
    locked_step(task, &(struct task_event){.type = TASK_EVENT_SYNC_FAILED, .text = text});
}

void task_ready(struct task *task, const struct cursor *cursor, uint64_t position)
{
    locked_step(task,
        &(struct task_event){.type = TASK_EVENT_READY, .position = position, .cursor = *cursor});
}

cadre_status task_apply(struct task *task, uint64_t position, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    step(task, &(struct task_event){.type = TASK_EVENT_APPLY, .position = position});
    cadre_status status = CADRE_OK;
    if (!task->core.applying) {
        status = hopeless(task, error);
        if (status == CADRE_PENDING) {
            status = cadre_error_set(error, CADRE_ABORTED,
                "step %llu was stopped before its variables were written",
                (unsigned long long)position);
        }
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

void task_applied(struct task *task, uint64_t position, const uint64_t digest[2])
{
    locked_step(task,
        &(struct task_event){
            .type = TASK_EVENT_APPLIED, .position = position, .digest = {digest[0], digest[1]}});
}

void task_part(struct task *task, const struct task_part *part)
{
    locked_step(task, &(struct task_event){.type = TASK_EVENT_PART, .part = part});
}

void task_progress(struct task *task, const struct progress *progress)
{
    struct task_up up = {.type = TASK_UP_PROGRESS, .progress = *progress};
    pthread_mutex_lock(&task->lock);
    if (task->core.connected && task->core.phase != TASK_EXIT) {
        task->session->ops->send(task->session, &up);
    }
    pthread_mutex_unlock(&task->lock);
}

uint64_t task_position(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    uint64_t position = task->core.position;
    pthread_mutex_unlock(&task->lock);
    return position;
}
