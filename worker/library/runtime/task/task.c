/* SPDX-License-Identifier: Apache-2.0
 * The shell of a task: owns the core, its lock and its session, and carries out the core's
 * actions. The strategy's thread, replica threads and the session's thread call it. */
#include "worker/library/runtime/task/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/model/roster_tree.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/task/task_state.h"

void task_roster_clear(struct task_roster *roster)
{
    free(roster->members);
    free(roster->slots);
    *roster = (struct task_roster){0};
}

static void keep_text(char text[LIMIT_TEXT_BYTES], const char *from)
{
    snprintf(text, LIMIT_TEXT_BYTES, "%s", from == NULL ? "" : from);
}

/* Ends the waits for other tasks of the ps job, which will not come. */
static void end_directory(struct task *task, cadre_status code, const char *text)
{
    struct cadre_error why;
    cadre_error_set(&why, code, "%s", text);
    if (task->directory != NULL) {
        directory_end(task->directory, &why);
    }
}

static void abort_meshes(struct task *task, const char *reason)
{
    for (struct mesh *mesh = task->meshes; mesh != NULL; mesh = mesh->next) {
        mesh->ops->abort(mesh, reason);
    }
}

/* Out of memory leaves member_count 0, which task_await_plan reports. */
static void keep_roster(struct task *task, const struct task_plan *plan)
{
    task_roster_clear(&task->roster);
    struct task_roster *roster = &task->roster;
    roster->generation = plan->generation;
    roster->resume = plan->resume;
    roster->source = plan->source;
    memcpy(roster->key, plan->key, sizeof roster->key);
    roster->part = plan->members > 0;
    roster->members = calloc(plan_member_count(plan), sizeof *roster->members);
    roster->slots = calloc(plan_member_count(plan), sizeof *roster->slots);
    if (roster->members != NULL && roster->slots != NULL) {
        roster->member_count = plan_member_count(plan);
        for (size_t i = 0; i < plan->roster_count; i++) {
            const struct roster_entry *entry = &plan->roster[i];
            uint32_t rank = plan_rank(plan, i);
            snprintf(roster->members[rank].address, sizeof roster->members[rank].address, "%s",
                entry->mesh_address);
            roster->members[rank].replicas = entry->replicas;
            roster->slots[rank] = entry->slot;
            if (entry->slot == task->core.slot && entry->incarnation == task->core.incarnation) {
                roster->rank = rank;
            }
        }
    }
    reported_values_begin(&task->values, plan->generation, plan->resume,
        roster->member_count > 0 && roster->rank == 0);
    task->roster_due = true;
    /* A task that is done may be in one still, with a task that is not in the plan. */
    abort_meshes(task, "the job goes on in another generation");
    task->abort_mesh = false;
    task->abort_text[0] = '\0';
    task->cause_text[0] = '\0';
}

static void keep_warm(struct task *task, const struct task_warm *warm)
{
    task->warm_news = task->warm;
    task->warm = true;
    task->warm_tasks = warm->tasks;
    task->warm_stream_count =
        warm->stream_count < LIMIT_STREAMS ? warm->stream_count : LIMIT_STREAMS;
    CADRE_ASSERT(task->warm_stream_count <= LIMIT_STREAMS);
    for (size_t i = 0; i < task->warm_stream_count; i++) {
        task->warm_streams[i] = warm->streams[i];
    }
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
        abort_meshes(task, task->abort_text);
        break;
    case TASK_ACTION_WARM:
        keep_warm(task, &event->down->warm);
        break;
    case TASK_ACTION_CHANGED:
    case TASK_ACTION_EXIT_OK:
        break;
    case TASK_ACTION_EXIT_VOID:
        task->void_exit = true;
        keep_text(task->exit_text, action->text);
        end_directory(task, CADRE_ABORTED, task->exit_text);
        break;
    }
}

/* Under the lock. An answer that a session has at once is an event of its own, after this one. */
void task_step(struct task *task, const struct task_event *event)
{
    CADRE_ASSERT(task->session != NULL); /* task_close closes it last */
    struct task_down down;
    struct task_event answer = {.type = TASK_EVENT_DOWN, .down = &down};
    uint64_t now_us = clock_monotonic_us(); /* of the answers too, which come at once */
    do {
        struct task_event timed = *event;
        timed.now_us = now_us;
        task_core_step(&task->core, &timed, &task->actions);
        for (size_t i = 0; i < task->actions.count; i++) {
            carry_out(task, &task->actions.items[i], event);
        }
        const char *broken = task_core_invariant(&task->core);
        if (broken != NULL) {
            cadre_panic(broken, __FILE__, __LINE__);
        }
        event = &answer;
    } while (task->session->ops->take(task->session, &down));
    if (task->trace.active) {
        task_trace_follow(task);
    }
    pthread_cond_broadcast(&task->changed);
}

static void locked_step(struct task *task, const struct task_event *event)
{
    pthread_mutex_lock(&task->lock);
    task_step(task, event);
    pthread_mutex_unlock(&task->lock);
}

/* --- events of the session's thread --- */

static void send_streams(struct task *task)
{
    for (size_t i = 0; i < task->stream_count; i++) {
        task_step(task,
            &(struct task_event){.type = TASK_EVENT_STREAM, .stream = &task->streams[i].stream});
    }
}

static void on_connected(void *user)
{
    struct task *task = user;
    pthread_mutex_lock(&task->lock);
    task_step(task, &(struct task_event){.type = TASK_EVENT_CONNECTED});
    send_streams(task);
    reported_values_again(&task->values);
    task_send_values(task, true);
    pthread_mutex_unlock(&task->lock);
}

static void on_disconnected(void *user)
{
    locked_step(user, &(struct task_event){.type = TASK_EVENT_DISCONNECTED});
}

static void on_down(const struct task_down *down, void *user)
{
    struct task *task = user;
    if (down->type == TASK_DOWN_MEMBERS && task->directory != NULL) {
        directory_update(task->directory, &down->members);
        return;
    }
    pthread_mutex_lock(&task->lock);
    if (down->type == TASK_DOWN_VALUES_KEPT) {
        reported_values_stored(&task->values, down->values_kept);
        task_send_values(task, false);
    }
    if (down->type == TASK_DOWN_TRACE) {
        task_trace_order(task, &down->trace);
    }
    if (down->type == TASK_DOWN_ABORT &&
        generation_equal(down->generation, task->core.generation)) {
        keep_text(task->cause_text, down->reason);
    }
    task_step(task, &(struct task_event){.type = TASK_EVENT_DOWN, .down = down});
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
    end_directory(task, error->code, error->text);
    abort_meshes(task, task->abort_text);
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
}

static bool on_tick(void *user)
{
    struct task *task = user;
    pthread_mutex_lock(&task->lock);
    uint64_t now_us = clock_monotonic_us();
    bool whole = !task->trace.active || now_us - task->ticked_us >= CADRE_US_PER_S;
    if (whole) {
        task->ticked_us = now_us;
        task_step(task, &(struct task_event){.type = TASK_EVENT_TICK});
        task_tick_values(task);
    }
    task_trace_tick(task);
    bool soon = task->trace.active;
    pthread_mutex_unlock(&task->lock);
    return soon;
}

/* --- lifetime --- */

static void init_locks(struct task *task)
{
    pthread_mutex_init(&task->lock, NULL);
    pthread_cond_init(&task->changed, NULL);
}

cadre_status task_open(struct session *session, const struct task_identity *identity,
    struct task **ret_task, struct cadre_error *error)
{
    CADRE_ASSERT(session != NULL);
    CADRE_ASSERT(identity->replicas > 0);
    CADRE_ASSERT(identity->mesh_address != NULL);
    *ret_task = NULL;
    struct task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        session->ops->close(session);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task");
    }
    init_locks(task);
    task->session = session;
    task->directory = identity->directory;
    task_core_init(&task->core, identity->slot, identity->incarnation, identity->replicas,
        (uint32_t)getpid(), identity->mesh_address);
    task->core.plain = identity->plain;
    struct session_events events = {.connected = on_connected,
        .disconnected = on_disconnected,
        .down = on_down,
        .lost = on_lost,
        .tick = on_tick,
        .user = task};
    /* Hello first: the session's thread may find the connection lost at once, and report it. */
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
        CADRE_ASSERT(task->meshes == NULL); /* their owners have detached them */
        task_flush_values(task, 0);
        task->session->ops->close(task->session);
        task_roster_clear(&task->roster);
        free(task->streams);
        reported_values_free(&task->values);
        pthread_cond_destroy(&task->changed);
        pthread_mutex_destroy(&task->lock);
        free(task);
    }
}

/* --- calls of the program --- */

void task_attach_mesh(struct task *task, struct mesh *mesh)
{
    pthread_mutex_lock(&task->lock);
    CADRE_ASSERT(mesh->next == NULL);
    mesh->next = task->meshes;
    task->meshes = mesh;
    if (task->abort_mesh) {
        mesh->ops->abort(mesh, task->abort_text);
    } else if (task->roster_due) {
        mesh->ops->abort(mesh, "a newer generation is planned already");
    }
    pthread_mutex_unlock(&task->lock);
}

void task_detach_mesh(struct task *task, struct mesh *mesh)
{
    pthread_mutex_lock(&task->lock);
    struct mesh **at = &task->meshes;
    while (*at != mesh) {
        CADRE_ASSERT(*at != NULL); /* it is attached */
        at = &(*at)->next;
    }
    *at = mesh->next;
    mesh->next = NULL;
    pthread_mutex_unlock(&task->lock);
}

bool task_synced(struct task *task, struct generation generation, const struct cursor *cursor,
    const struct consumption *consumption)
{
    pthread_mutex_lock(&task->lock);
    bool due = task->core.phase == TASK_SYNC && generation_equal(task->core.generation, generation);
    if (due) {
        task_step(
            task, &(struct task_event){
                      .type = TASK_EVENT_SYNCED, .cursor = *cursor, .consumption = *consumption});
    }
    pthread_mutex_unlock(&task->lock);
    return due;
}

/* A fault of a generation that is over is not reported for the next one. */
static void fault_of(
    struct task *task, struct generation generation, enum task_event_type type, const char *text)
{
    CADRE_ASSERT(type == TASK_EVENT_SYNC_FAILED || type == TASK_EVENT_PEER_ERROR);
    pthread_mutex_lock(&task->lock);
    if (generation_equal(task->core.generation, generation)) {
        task_step(task, &(struct task_event){.type = type, .text = text});
    }
    pthread_mutex_unlock(&task->lock);
}

void task_sync_failed(struct task *task, struct generation generation, const char *text)
{
    fault_of(task, generation, TASK_EVENT_SYNC_FAILED, text);
}

void task_peer_error(struct task *task, struct generation generation, const char *text)
{
    fault_of(task, generation, TASK_EVENT_PEER_ERROR, text);
}

void task_failed(struct task *task, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    pthread_mutex_lock(&task->lock);
    task_trace_end(task);
    task_step(task,
        &(struct task_event){.type = TASK_EVENT_FAILED, .code = error->code, .text = error->text});
    pthread_mutex_unlock(&task->lock);
}

void task_ready(struct task *task, const struct cursor *cursor,
    const struct consumption *consumption, uint64_t position)
{
    locked_step(task, &(struct task_event){.type = TASK_EVENT_READY,
                          .position = position,
                          .cursor = *cursor,
                          .consumption = *consumption});
}

void task_end_of_data(struct task *task, uint32_t stream, uint64_t epoch, uint64_t steps)
{
    locked_step(task, &(struct task_event){.type = TASK_EVENT_END,
                          .cursor = {.stream = stream, .epoch = epoch, .steps = steps}});
}

void task_applied(struct task *task, uint64_t position, const struct consumption *consumption)
{
    CADRE_ASSERT(consumption != NULL);
    locked_step(
        task, &(struct task_event){
                  .type = TASK_EVENT_APPLIED, .position = position, .consumption = *consumption});
}

void task_part(struct task *task, const struct task_part *part)
{
    task_flush_values(task, 0); /* the steps that it makes durable */
    locked_step(task, &(struct task_event){.type = TASK_EVENT_PART, .part = part});
}

void task_preempt(struct task *task, bool stops)
{
    const struct task_preempt notice = {.stops = stops};
    locked_step(task, &(struct task_event){.type = TASK_EVENT_PREEMPT, .preempt = &notice});
}

void task_verified(struct task *task, struct generation generation, const struct verified *verified)
{
    CADRE_ASSERT(verified->digest != 0);
    pthread_mutex_lock(&task->lock);
    if (generation_equal(task->core.generation, generation)) {
        task_step(task, &(struct task_event){.type = TASK_EVENT_VERIFIED, .verified = *verified});
    }
    pthread_mutex_unlock(&task->lock);
}

void task_diverged(struct task *task, struct generation generation,
    const struct divergence *divergence, const char *text)
{
    pthread_mutex_lock(&task->lock);
    if (generation_equal(task->core.generation, generation)) {
        task_step(task, &(struct task_event){
                            .type = TASK_EVENT_DIVERGED, .divergence = divergence, .text = text});
    }
    pthread_mutex_unlock(&task->lock);
}

void task_verify_losses(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    task->core.verifies_losses = true;
    pthread_mutex_unlock(&task->lock);
}

bool task_finish(struct task *task, struct generation generation, uint64_t digest)
{
    pthread_mutex_lock(&task->lock);
    bool due = generation_equal(task->core.generation, generation);
    if (due) {
        task_trace_end(task);
        task_step(task, &(struct task_event){.type = TASK_EVENT_FINISH, .digest = digest});
    }
    pthread_mutex_unlock(&task->lock);
    return due;
}

cadre_status task_stream(
    struct task *task, const struct task_stream *stream, struct cadre_error *error)
{
    CADRE_ASSERT(stream->name != NULL);
    CADRE_ASSERT(strlen(stream->name) < LIMIT_NAME_BYTES);
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&task->lock);
    struct announced_stream *grown =
        realloc(task->streams, (task->stream_count + 1) * sizeof task->streams[0]);
    if (grown == NULL) {
        status = cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for one more distributed dataset");
    } else {
        task->streams = grown;
        grown[task->stream_count] = (struct announced_stream){.stream = *stream};
        snprintf(grown[task->stream_count].name, LIMIT_NAME_BYTES, "%s", stream->name);
        task->stream_count++;
        for (size_t i = 0; i < task->stream_count; i++) {
            grown[i].stream.name = grown[i].name; /* realloc may have moved them */
        }
        task_step(task, &(struct task_event){.type = TASK_EVENT_STREAM,
                            .stream = &grown[task->stream_count - 1].stream});
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

static void send_to_people(struct task *task, const struct task_up *up)
{
    pthread_mutex_lock(&task->lock);
    if (task->core.connected && task->core.phase != TASK_EXIT) {
        task->session->ops->send(task->session, up);
    }
    pthread_mutex_unlock(&task->lock);
}

void task_progress(struct task *task, const struct progress *progress)
{
    send_to_people(task, &(struct task_up){.type = TASK_UP_PROGRESS, .progress = *progress});
}

void task_shards(struct task *task, const struct shards_report *shards)
{
    send_to_people(task, &(struct task_up){.type = TASK_UP_SHARDS, .shards = *shards});
}
