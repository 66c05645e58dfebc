/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/crew/attendant.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/pure/assert.h"

struct attendant {
    struct session *session;
    struct directory *directory;
    char address[LIMIT_ADDRESS_BYTES];
    pthread_mutex_t lock; /* what is sent is sent one after the other */
    bool connected;
    struct generation generation; /* as the members were told last; number 0: never */
    struct cadre_error failed;    /* said again after each hello */
};

/* --- what it says, under the lock --- */

static void say_failed(struct attendant *attendant)
{
    CADRE_ASSERT(attendant->failed.code != CADRE_OK);
    struct task_up up = {.type = TASK_UP_REPORT,
        .report = {.generation = attendant->generation,
            .reason = REPORT_FAILED,
            .code = attendant->failed.code,
            .text = attendant->failed.text}};
    attendant->session->ops->send(attendant->session, &up);
}

static void say_hello(struct attendant *attendant)
{
    struct task_up up = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = CADRE_VERSION,
            .pid = (uint32_t)getpid(),
            .replicas = 1,
            .mesh_address = attendant->address}};
    attendant->connected = true;
    attendant->session->ops->send(attendant->session, &up);
    if (attendant->failed.code != CADRE_OK) {
        say_failed(attendant);
    }
}

/* --- events of the session's thread --- */

static void on_connected(void *user)
{
    struct attendant *attendant = user;
    pthread_mutex_lock(&attendant->lock);
    say_hello(attendant);
    pthread_mutex_unlock(&attendant->lock);
}

static void on_disconnected(void *user)
{
    struct attendant *attendant = user;
    pthread_mutex_lock(&attendant->lock);
    attendant->connected = false;
    pthread_mutex_unlock(&attendant->lock);
}

static void end(struct attendant *attendant, cadre_status code, const char *text)
{
    struct cadre_error why;
    cadre_error_set(&why, code, "%s", text);
    directory_end(attendant->directory, &why);
}

static void take_members(struct attendant *attendant, const struct task_members *members)
{
    pthread_mutex_lock(&attendant->lock);
    if (members->generation.number >= attendant->generation.number) {
        attendant->generation = members->generation;
    }
    pthread_mutex_unlock(&attendant->lock);
    directory_update(attendant->directory, members);
}

static void on_down(const struct task_down *down, void *user)
{
    struct attendant *attendant = user;
    switch (down->type) {
    case TASK_DOWN_MEMBERS:
        take_members(attendant, &down->members);
        break;
    case TASK_DOWN_BYE:
        end(attendant, CADRE_CANCELLED, "the job is over: its chief is done");
        break;
    case TASK_DOWN_RESET:
        end(attendant, CADRE_ABORTED,
            "this task was ended by the coordinator: another one takes "
            "its place");
        break;
    case TASK_DOWN_SUPERSEDED:
        end(attendant, CADRE_ABORTED,
            "this task was ended by the coordinator: the job goes on or has ended without it");
        break;
    case TASK_DOWN_REFUSED:
        end(attendant, down->refused.code == CADRE_OK ? CADRE_INTERNAL : down->refused.code,
            down->refused.text);
        break;
    case TASK_DOWN_PLAN:
    case TASK_DOWN_RELEASE:
    case TASK_DOWN_ABORT:
    case TASK_DOWN_WARM:
        break; /* of the ledger, in which it has no part */
    }
}

static void on_lost(const struct cadre_error *error, void *user)
{
    struct attendant *attendant = user;
    directory_end(attendant->directory, error);
}

/* --- lifetime --- */

cadre_status attendant_open(const struct attendant_options *options,
    struct attendant **ret_attendant, struct cadre_error *error)
{
    CADRE_ASSERT(options->session != NULL);
    CADRE_ASSERT(options->directory != NULL);
    struct session *session = options->session;
    struct attendant *attendant = calloc(1, sizeof *attendant);
    *ret_attendant = NULL;
    if (attendant == NULL) {
        session->ops->close(session);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task");
    }
    pthread_mutex_init(&attendant->lock, NULL);
    attendant->session = session;
    attendant->directory = options->directory;
    snprintf(attendant->address, sizeof attendant->address, "%s", options->address);
    const struct session_events events = {.connected = on_connected,
        .disconnected = on_disconnected,
        .down = on_down,
        .lost = on_lost,
        .user = attendant};
    on_connected(attendant); /* before the thread may find the connection gone */
    cadre_status status = session->ops->start(session, &events, error);
    if (status != CADRE_OK) {
        attendant_close(attendant);
        return status;
    }
    *ret_attendant = attendant;
    return CADRE_OK;
}

void attendant_failed(struct attendant *attendant, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    pthread_mutex_lock(&attendant->lock);
    if (attendant->failed.code == CADRE_OK) {
        attendant->failed = *error;
        if (attendant->connected) {
            say_failed(attendant);
        }
    }
    pthread_mutex_unlock(&attendant->lock);
}

void attendant_progress(struct attendant *attendant, const struct progress *progress)
{
    pthread_mutex_lock(&attendant->lock);
    if (attendant->connected) {
        attendant->session->ops->send(
            attendant->session, &(struct task_up){.type = TASK_UP_PROGRESS, .progress = *progress});
    }
    pthread_mutex_unlock(&attendant->lock);
}

void attendant_backed(struct attendant *attendant, const struct task_backed *backed)
{
    pthread_mutex_lock(&attendant->lock);
    if (attendant->connected) {
        attendant->session->ops->send(
            attendant->session, &(struct task_up){.type = TASK_UP_BACKED, .backed = *backed});
    }
    pthread_mutex_unlock(&attendant->lock);
}

void attendant_close(struct attendant *attendant)
{
    if (attendant != NULL) {
        attendant->session->ops->close(attendant->session);
        pthread_mutex_destroy(&attendant->lock);
        free(attendant);
    }
}
