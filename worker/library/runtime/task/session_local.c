/* SPDX-License-Identifier: Apache-2.0
 * The session of a program that is the whole job: a core with one worker, this process. Its virtual
 * time does not move, so no lease runs out. program/ opens it without a daemon and a cluster. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/task/embedded_core.h"
#include "worker/library/runtime/task/session.h"

#define ANSWERS_MAX 16

struct session_local {
    struct session base;
    struct embedded_core *inside;
    struct task_down answers[ANSWERS_MAX]; /* a ring of the core's messages to the task */
    size_t first;
    size_t count;
    cadre_status code; /* of the job's failure */
    char text[LIMIT_TEXT_BYTES];
};

static struct session_local *local_of(struct session *session)
{
    return (struct session_local *)session;
}

static const char *name_of(uint32_t worker_index, void *user)
{
    (void)worker_index;
    (void)user;
    return "local";
}

static void on_placed(uint32_t worker_index, uint32_t slot, uint64_t incarnation, void *user)
{
    CADRE_ASSERT(worker_index == 0); /* the program is the whole job */
    struct session_local *local = user;
    (void)worker_index;
    local->base.slot = slot;
    local->base.incarnation = incarnation;
}

static void on_down(uint32_t worker_index, const struct task_down *down, void *user)
{
    struct session_local *local = user;
    (void)worker_index;
    CADRE_ASSERT(local->count < ANSWERS_MAX);
    local->answers[(local->first + local->count++) % ANSWERS_MAX] = *down;
}

static void on_fails(cadre_status code, const char *text, void *user)
{
    CADRE_ASSERT(code != CADRE_OK);
    struct session_local *local = user;
    local->code = code;
    snprintf(local->text, sizeof local->text, "%s", text);
}

/* The process is not killed for that: the task receives that nothing more will come. */
static void on_stop(uint32_t worker_index, void *user)
{
    struct session_local *local = user;
    bool fails = local->code != CADRE_OK;
    on_down(worker_index,
        &(struct task_down){.type = TASK_DOWN_REFUSED,
            .refused = {.code = fails ? local->code : CADRE_ABORTED,
                .text = fails ? local->text : "the job was ended"}},
        user);
}

static cadre_status local_start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    (void)session;
    (void)events;
    (void)error;
    return CADRE_OK;
}

static void local_send(struct session *session, const struct task_up *up)
{
    embedded_core_receive(local_of(session)->inside, 0, up, 0);
}

static bool local_take(struct session *session, struct task_down *ret_down)
{
    struct session_local *local = local_of(session);
    if (local->count == 0) {
        return false;
    }
    *ret_down = local->answers[local->first];
    local->first = (local->first + 1) % ANSWERS_MAX;
    local->count--;
    return true;
}

static void local_close(struct session *session)
{
    if (session != NULL) {
        embedded_core_close(local_of(session)->inside);
        free(session);
    }
}

static const struct session_ops local_ops = {
    .name = "local",
    .start = local_start,
    .send = local_send,
    .take = local_take,
    .close = local_close,
};

cadre_status session_local_open(
    uint64_t restored, struct session **ret_session, struct cadre_error *error)
{
    struct embedded_core_options options = {.tasks = 1,
        .name = name_of,
        .restored = restored,
        .lease_us = CADRE_US_PER_S,
        .wait_us = CADRE_US_PER_S};
    struct session_local *local = calloc(1, sizeof *local);
    *ret_session = NULL;
    if (local == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the coordinator inside the program");
    }
    struct embedded_core_events events = {
        .placed = on_placed, .down = on_down, .stop = on_stop, .fails = on_fails, .user = local};
    local->base.ops = &local_ops;
    cadre_status status = embedded_core_open(&options, &events, &local->inside, error);
    if (status == CADRE_OK) {
        embedded_core_connect(local->inside, 0, 0);
        embedded_core_start(local->inside, 0);
        if (local->base.incarnation == 0) {
            status = cadre_error_set(
                error, CADRE_INTERNAL, "the coordinator inside the program did not place its job");
        }
    }
    if (status != CADRE_OK) {
        local_close(&local->base);
        return status;
    }
    *ret_session = &local->base;
    return CADRE_OK;
}
