/* SPDX-License-Identifier: Apache-2.0
 * See caching_scope.h. Called by cadre_variable_read and by the public functions here. */
#include "worker/library/runtime/variables/caching_scope.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy.h"

struct cached {
    const cadre_variable *variable;
    bool in_step; /* read while a step ran, which may be undone */
    void *value;  /* owned; or a reference of a tensor of strings */
    struct cached *next;
};

struct caching_scope {
    bool entered;
    struct cached *first;
};

/* The process's, under the lock; and that of the replica whose function this thread runs. */
static struct caching_scope process_scope;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct caching_scope replica_scope;

static void caching_scope_drop(struct cached *cached)
{
    CADRE_ASSERT(cached->value != NULL);
    if (cached->variable->dtype == CADRE_STRING) {
        cadre_tensor_release(cached->value);
    } else {
        free(cached->value);
    }
    free(cached);
}

static void caching_scope_clear(struct caching_scope *scope)
{
    while (scope->first != NULL) {
        struct cached *first = scope->first;
        scope->first = first->next;
        caching_scope_drop(first);
    }
    scope->entered = false;
}

static void remove_some(
    struct caching_scope *scope, const cadre_variable *variable, const cadre_strategy *strategy)
{
    struct cached **at = &scope->first;
    while (*at != NULL) {
        struct cached *cached = *at;
        if (cached->variable == variable ||
            (cached->in_step && cached->variable->strategy == strategy)) {
            *at = cached->next;
            caching_scope_drop(cached);
        } else {
            at = &cached->next;
        }
    }
}

/* --- reading --- */

static struct cached *read_first(const cadre_variable *variable)
{
    CADRE_ASSERT(variable->kind == CADRE_VARIABLE_AGGREGATING);
    struct cached *cached = calloc(1, sizeof *cached);
    if (cached == NULL) {
        return NULL;
    }
    cached->variable = variable;
    cached->in_step = atomic_load(&variable->strategy->step.running);
    if (variable->dtype == CADRE_STRING) {
        cached->value = cadre_tensor_retain(variable->strings);
    } else {
        cached->value = malloc(variable->bytes + 1);
    }
    if (cached->value == NULL) {
        free(cached);
        return NULL;
    }
    if (variable->dtype != CADRE_STRING) {
        memcpy(cached->value, variable->components[0].value, variable->bytes);
    }
    return cached;
}

static const void *read_in(struct caching_scope *scope, const cadre_variable *variable)
{
    struct cached *cached = scope->first;
    while (cached != NULL && cached->variable != variable) {
        cached = cached->next;
    }
    if (cached == NULL) {
        cached = read_first(variable);
        if (cached == NULL) {
            return NULL;
        }
        cached->next = scope->first;
        scope->first = cached;
    }
    return variable->dtype == CADRE_STRING ? cadre_tensor_const_data(cached->value) : cached->value;
}

const void *caching_scope_read(const cadre_variable *variable)
{
    if (replica_scope.entered) {
        return read_in(&replica_scope, variable);
    }
    pthread_mutex_lock(&lock);
    const void *value = process_scope.entered ? read_in(&process_scope, variable) : NULL;
    pthread_mutex_unlock(&lock);
    return value;
}

/* --- the end of a scope --- */

void caching_scope_end(void)
{
    caching_scope_clear(&replica_scope);
}

void caching_scope_forget_step(const cadre_strategy *strategy)
{
    pthread_mutex_lock(&lock);
    remove_some(&process_scope, NULL, strategy);
    pthread_mutex_unlock(&lock);
}

void caching_scope_forget(const cadre_variable *variable)
{
    pthread_mutex_lock(&lock);
    remove_some(&process_scope, variable, NULL);
    pthread_mutex_unlock(&lock);
}

/* --- public --- */

cadre_status cadre_caching_scope_enter(void)
{
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&lock);
    if (replica_scope.entered || process_scope.entered) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "cadre_caching_scope_enter was called inside a caching scope, and they do not nest; "
            "leave that one first");
    } else if (context_replica() != NULL) {
        replica_scope.entered = true;
    } else {
        process_scope.entered = true;
    }
    pthread_mutex_unlock(&lock);
    return api_return(status, &error);
}

cadre_status cadre_caching_scope_leave(void)
{
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    struct caching_scope *scope = context_replica() != NULL ? &replica_scope : &process_scope;
    pthread_mutex_lock(&lock);
    if (scope->entered) {
        caching_scope_clear(scope);
    } else {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_caching_scope_leave was called outside of a caching scope that was entered in "
            "the same context; enter one first");
    }
    pthread_mutex_unlock(&lock);
    return api_return(status, &error);
}
