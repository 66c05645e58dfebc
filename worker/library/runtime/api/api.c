/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/api/api.h"

#include <stdarg.h>
#include <stdio.h>

#include "cadre/program.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"

static _Thread_local cadre_replica *current;
static _Thread_local cadre_strategy *of_current; /* the strategy of the replica entered last */
static _Thread_local struct context_frame *innermost;
static _Thread_local bool worker;

cadre_status api_return(cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        error->code = status;
        cadre_error_publish(error);
    }
    return status;
}

cadre_status cadre_fail(cadre_status status, const char *format, ...)
{
    struct cadre_error error = {.code = argument_status(status)};
    if (error.code == CADRE_OK) {
        return CADRE_OK;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    return cadre_error_publish(&error);
}

cadre_replica *context_replica(void)
{
    return current;
}

void context_replica_enter(cadre_replica *replica, cadre_strategy *strategy)
{
    CADRE_ASSERT(replica != NULL);
    CADRE_ASSERT(strategy != NULL);
    CADRE_ASSERT(current == NULL); /* a replica's function calls no other's */
    CADRE_ASSERT(innermost == NULL);
    current = replica;
    of_current = strategy;
}

void context_replica_leave(void)
{
    CADRE_ASSERT(current != NULL);
    CADRE_ASSERT(innermost == NULL); /* each merge call and update inside was left */
    current = NULL;
    of_current = NULL;
}

static void api_enter(struct context_frame *frame)
{
    CADRE_ASSERT(frame != innermost);
    CADRE_ASSERT(frame->strategy != NULL);
    frame->replica = current;
    frame->outer = innermost;
    current = NULL;
    innermost = frame;
}

static void api_leave(struct context_frame *frame)
{
    CADRE_ASSERT(innermost == frame);
    current = frame->replica;
    innermost = frame->outer;
}

void context_merge_enter(struct context_frame *frame, cadre_strategy *strategy)
{
    *frame = (struct context_frame){.kind = CONTEXT_MERGE, .strategy = strategy};
    api_enter(frame);
}

void context_merge_leave(struct context_frame *frame)
{
    api_leave(frame);
}

void context_update_enter(struct context_frame *frame, cadre_strategy *strategy, uint32_t local)
{
    *frame = (struct context_frame){.kind = CONTEXT_UPDATE, .strategy = strategy, .local = local};
    api_enter(frame);
}

void context_update_leave(struct context_frame *frame)
{
    api_leave(frame);
}

bool context_update(uint32_t *ret_local)
{
    bool inside = current == NULL && innermost != NULL && innermost->kind == CONTEXT_UPDATE;
    if (inside) {
        *ret_local = innermost->local;
    }
    return inside;
}

bool context_merging(void)
{
    const struct context_frame *frame = innermost;
    while (frame != NULL && frame->kind != CONTEXT_MERGE) {
        frame = frame->outer;
    }
    return frame != NULL;
}

void context_set_worker(bool is_worker)
{
    CADRE_ASSERT(current == NULL);
    worker = is_worker;
}

bool context_worker(void)
{
    return worker;
}

cadre_strategy *context_strategy(void)
{
    if (current != NULL) {
        return of_current;
    }
    return innermost == NULL ? NULL : innermost->strategy;
}

cadre_status context_require_cross(const char *function, struct cadre_error *error)
{
    if (current != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside a replica function; call it between steps, in cross-replica "
            "context",
            function);
    }
    return CADRE_OK;
}
