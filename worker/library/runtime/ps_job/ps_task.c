/* SPDX-License-Identifier: Apache-2.0
 * See ps_task.h. Its functions run in the session's thread; called by ps_job.c. */
#include "worker/library/runtime/ps_job/ps_task.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/task/reported_values.h"
#include "worker/library/runtime/task/trace_sender.h"

struct ps_task {
    struct session *session;
    struct directory *directory;
    char address[LIMIT_ADDRESS_BYTES];
    pthread_mutex_t lock; /* one message is sent at a time */
    pthread_cond_t changed;
    bool connected;
    bool dismissed;               /* nothing that it sends counts any more */
    struct generation generation; /* of the last list of members; number 0: none came */
    struct cadre_error failed;    /* sent again after each hello */
    struct reported_values values;
    struct trace_sender trace;
    uint64_t step; /* of the closures that it runs */
};

/* --- messages to the coordinator, under the lock --- */

static void send_failed(struct ps_task *ps_task)
{
    CADRE_ASSERT(ps_task->failed.code != CADRE_OK);
    struct task_up up = {.type = TASK_UP_REPORT,
        .report = {.generation = ps_task->generation,
            .reason = REPORT_FAILED,
            .code = ps_task->failed.code,
            .text = ps_task->failed.text}};
    ps_task->session->ops->send(ps_task->session, &up);
}

static void send_hello_message(struct ps_task *ps_task)
{
    struct task_up up = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = CADRE_VERSION,
            .pid = (uint32_t)getpid(),
            .replicas = 1,
            .mesh_address = ps_task->address}};
    ps_task->connected = true;
    ps_task->session->ops->send(ps_task->session, &up);
    if (ps_task->failed.code != CADRE_OK) {
        send_failed(ps_task);
    }
}

/* Nothing while the answer to the message before is awaited. */
static void ps_task_send_values(struct ps_task *ps_task)
{
    struct reported_value items[LIMIT_REPORTED_VALUES];
    const char *names[LIMIT_METRICS];
    struct task_up up = {.type = TASK_UP_VALUES};
    if (ps_task->connected && !ps_task->dismissed &&
        reported_values_next(&ps_task->values, clock_monotonic_us(), items, names, &up.values)) {
        ps_task->session->ops->send(ps_task->session, &up);
    }
}

/* --- events of the session's thread --- */

static void on_connected(void *user)
{
    struct ps_task *ps_task = user;
    pthread_mutex_lock(&ps_task->lock);
    send_hello_message(ps_task);
    reported_values_again(&ps_task->values);
    ps_task_send_values(ps_task);
    pthread_mutex_unlock(&ps_task->lock);
}

static void on_disconnected(void *user)
{
    struct ps_task *ps_task = user;
    pthread_mutex_lock(&ps_task->lock);
    ps_task->connected = false;
    pthread_cond_broadcast(&ps_task->changed);
    pthread_mutex_unlock(&ps_task->lock);
}

static void ps_task_end(struct ps_task *ps_task, cadre_status code, const char *text)
{
    struct cadre_error why;
    cadre_error_set(&why, code, "%s", text);
    directory_end(ps_task->directory, &why);
}

static void ps_task_dismiss(struct ps_task *ps_task, cadre_status code, const char *text)
{
    pthread_mutex_lock(&ps_task->lock);
    ps_task->dismissed = true;
    pthread_cond_broadcast(&ps_task->changed);
    pthread_mutex_unlock(&ps_task->lock);
    ps_task_end(ps_task, code, text);
}

static void take_kept(struct ps_task *ps_task, uint64_t end)
{
    pthread_mutex_lock(&ps_task->lock);
    reported_values_stored(&ps_task->values, end);
    ps_task_send_values(ps_task);
    pthread_cond_broadcast(&ps_task->changed);
    pthread_mutex_unlock(&ps_task->lock);
}

static void take_members(struct ps_task *ps_task, const struct task_members *members)
{
    pthread_mutex_lock(&ps_task->lock);
    if (members->generation.number > ps_task->values.generation.number) {
        reported_values_begin(&ps_task->values, members->generation, LIMIT_POSITION, true);
        ps_task_send_values(ps_task);
    }
    if (members->generation.number >= ps_task->generation.number) {
        ps_task->generation = members->generation;
    }
    pthread_mutex_unlock(&ps_task->lock);
    directory_update(ps_task->directory, members);
}

static struct trace_owner trace_owner_of(const struct ps_task *ps_task)
{
    return (struct trace_owner){
        .session = ps_task->session, .sends = ps_task->connected, .position = ps_task->step};
}

/* Only a worker knows in which step it is. */
static void take_trace(struct ps_task *ps_task, const struct trace_order *order)
{
    const struct directory_self *self = directory_self(ps_task->directory);
    if (ps_job_role(&self->ps_job, self->slot) != ROLE_WORKER) {
        return;
    }
    pthread_mutex_lock(&ps_task->lock);
    const struct trace_owner owner = trace_owner_of(ps_task);
    trace_sender_order(&ps_task->trace, &owner, order);
    pthread_mutex_unlock(&ps_task->lock);
}

static void end_trace(struct ps_task *ps_task)
{
    pthread_mutex_lock(&ps_task->lock);
    const struct trace_owner owner = trace_owner_of(ps_task);
    trace_sender_end(&ps_task->trace, &owner);
    pthread_mutex_unlock(&ps_task->lock);
}

/* Values that the coordinator did not answer, because it was away or had no room, are sent again.
 */
static bool on_tick(void *user)
{
    struct ps_task *ps_task = user;
    pthread_mutex_lock(&ps_task->lock);
    if (reported_values_are_overdue(&ps_task->values, clock_monotonic_us())) {
        reported_values_again(&ps_task->values);
    }
    ps_task_send_values(ps_task);
    const struct trace_owner owner = trace_owner_of(ps_task);
    trace_sender_tick(&ps_task->trace, &owner);
    bool soon = ps_task->trace.active;
    pthread_mutex_unlock(&ps_task->lock);
    return soon;
}

static void on_down(const struct task_down *down, void *user)
{
    struct ps_task *ps_task = user;
    switch (down->type) {
    case TASK_DOWN_MEMBERS:
        take_members(ps_task, &down->members);
        break;
    case TASK_DOWN_GOODBYE:
        end_trace(ps_task);
        ps_task_end(ps_task, CADRE_CANCELLED, "the job is over: its chief is done");
        break;
    case TASK_DOWN_RESET:
        ps_task_dismiss(ps_task, CADRE_ABORTED,
            "this task was ended by the coordinator: another one takes "
            "its place");
        break;
    case TASK_DOWN_SUPERSEDED:
        ps_task_dismiss(ps_task, CADRE_ABORTED,
            "this task was ended by the coordinator: the job goes on or has ended without it");
        break;
    case TASK_DOWN_REFUSED:
        ps_task_dismiss(ps_task,
            down->refused.code == CADRE_OK ? CADRE_INTERNAL : down->refused.code,
            down->refused.text);
        break;
    case TASK_DOWN_VALUES_KEPT:
        take_kept(ps_task, down->values_kept);
        break;
    case TASK_DOWN_TRACE:
        take_trace(ps_task, &down->trace);
        break;
    case TASK_DOWN_PLAN:
    case TASK_DOWN_RELEASE:
    case TASK_DOWN_ABORT:
    case TASK_DOWN_WARM:
        break; /* the ledger's messages are for tasks with ranks */
    }
}

static void on_lost(const struct cadre_error *error, void *user)
{
    struct ps_task *ps_task = user;
    ps_task_dismiss(ps_task, error->code, error->text);
}

/* --- lifetime --- */

cadre_status ps_task_open(
    const struct ps_task_options *options, struct ps_task **ret_ps_task, struct cadre_error *error)
{
    CADRE_ASSERT(options->session != NULL);
    CADRE_ASSERT(options->directory != NULL);
    struct session *session = options->session;
    struct ps_task *ps_task = calloc(1, sizeof *ps_task);
    *ret_ps_task = NULL;
    if (ps_task == NULL) {
        session->ops->close(session);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task");
    }
    pthread_mutex_init(&ps_task->lock, NULL);
    pthread_cond_init(&ps_task->changed, NULL);
    ps_task->session = session;
    ps_task->directory = options->directory;
    snprintf(ps_task->address, sizeof ps_task->address, "%s", options->address);
    const struct session_events events = {.connected = on_connected,
        .disconnected = on_disconnected,
        .down = on_down,
        .lost = on_lost,
        .tick = on_tick,
        .user = ps_task};
    on_connected(ps_task); /* before the session's thread may report a lost connection */
    cadre_status status = session->ops->start(session, &events, error);
    if (status != CADRE_OK) {
        ps_task_close(ps_task);
        return status;
    }
    *ret_ps_task = ps_task;
    return CADRE_OK;
}

void ps_task_failed(struct ps_task *ps_task, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    pthread_mutex_lock(&ps_task->lock);
    if (ps_task->failed.code == CADRE_OK) {
        ps_task->failed = *error;
        if (ps_task->connected) {
            send_failed(ps_task);
        }
    }
    pthread_mutex_unlock(&ps_task->lock);
}

void ps_task_progress(struct ps_task *ps_task, const struct progress *progress)
{
    pthread_mutex_lock(&ps_task->lock);
    if (ps_task->connected) {
        ps_task->session->ops->send(
            ps_task->session, &(struct task_up){.type = TASK_UP_PROGRESS, .progress = *progress});
    }
    pthread_mutex_unlock(&ps_task->lock);
}

bool ps_task_value(struct ps_task *ps_task, const char *name, uint64_t step, double value)
{
    pthread_mutex_lock(&ps_task->lock);
    bool added = reported_values_add(&ps_task->values, name, step, false, value);
    ps_task_send_values(ps_task);
    pthread_mutex_unlock(&ps_task->lock);
    return added;
}

void ps_task_flush_values(struct ps_task *ps_task, uint64_t timeout_us)
{
    uint64_t end_us = clock_monotonic_us() + timeout_us;
    pthread_mutex_lock(&ps_task->lock);
    while (reported_values_are_left(&ps_task->values) && ps_task->connected &&
           !ps_task->dismissed && clock_monotonic_us() < end_us) {
        thread_wait_until(&ps_task->changed, &ps_task->lock, end_us);
    }
    pthread_mutex_unlock(&ps_task->lock);
}

uint64_t ps_task_generation(struct ps_task *ps_task)
{
    pthread_mutex_lock(&ps_task->lock);
    uint64_t number = ps_task->generation.number;
    pthread_mutex_unlock(&ps_task->lock);
    return number;
}

void ps_task_backed(struct ps_task *ps_task, const struct task_backed *backed)
{
    pthread_mutex_lock(&ps_task->lock);
    if (ps_task->connected) {
        ps_task->session->ops->send(
            ps_task->session, &(struct task_up){.type = TASK_UP_BACKED, .backed = *backed});
    }
    pthread_mutex_unlock(&ps_task->lock);
}

void ps_task_step(struct ps_task *ps_task, uint64_t step)
{
    if (ps_task == NULL) {
        return; /* by hand it is a thread of the chief's process */
    }
    pthread_mutex_lock(&ps_task->lock);
    ps_task->step = step;
    if (trace_sender_follows()) {
        trace_sender_follow(&ps_task->trace, step);
    }
    pthread_mutex_unlock(&ps_task->lock);
}

void ps_task_close(struct ps_task *ps_task)
{
    if (ps_task != NULL) {
        ps_task->session->ops->close(ps_task->session);
        reported_values_free(&ps_task->values);
        pthread_cond_destroy(&ps_task->changed);
        pthread_mutex_destroy(&ps_task->lock);
        free(ps_task);
    }
}
