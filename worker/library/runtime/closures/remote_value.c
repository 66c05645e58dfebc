/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/closures/remote_value.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/closures/per_worker.h"

/* One lock for all, because values outlive schedulers, and only the program's thread waits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

cadre_status remote_value_new(const struct registration *function,
    const cadre_closure_argument *arguments, uint32_t argument_count,
    cadre_remote_value **ret_value, struct cadre_error *error)
{
    CADRE_ASSERT(function->kind == REGISTERED_FUNCTION);
    CADRE_ASSERT(argument_count <= CADRE_CLOSURE_ARGUMENTS_MAX);
    cadre_remote_value *value = calloc(1, sizeof *value);
    struct wire_item *items = calloc(argument_count + 1, sizeof *items);
    if (value == NULL || items == NULL) {
        free(value);
        free(items);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a closure of `%s`", function->name);
    }
    for (uint32_t i = 0; i < argument_count; i++) {
        items[i].tensor = cadre_tensor_retain(arguments[i].tensor);
        items[i].object = arguments[i].per_worker == NULL ? 0 : arguments[i].per_worker->number;
    }
    atomic_init(&value->references, 1);
    value->closure.tag = CLOSURE_ANY;
    value->function = function;
    value->arguments = items;
    value->argument_count = argument_count;
    *ret_value = value;
    return CADRE_OK;
}

static void drop_arguments(cadre_remote_value *value)
{
    for (uint32_t i = 0; value->arguments != NULL && i < value->argument_count; i++) {
        cadre_tensor_release(value->arguments[i].tensor);
    }
    free(value->arguments);
    value->arguments = NULL;
}

void remote_value_retain(cadre_remote_value *value)
{
    CADRE_ASSERT(atomic_load_explicit(&value->references, memory_order_relaxed) > 0);
    atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
}

void remote_value_release(cadre_remote_value *value)
{
    if (value == NULL ||
        atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    CADRE_ASSERT(value->waiting == 0); /* a waiting thread has a reference */
    drop_arguments(value);
    for (uint32_t i = 0; i < value->output_count; i++) {
        cadre_tensor_release(value->outputs[i]);
    }
    free(value->outputs);
    free(value->text);
    free(value);
}

static void remote_value_finish(cadre_remote_value *value)
{
    CADRE_ASSERT(!atomic_load(&value->ready));
    drop_arguments(value);
    pthread_mutex_lock(&lock);
    atomic_store(&value->ready, true);
    if (value->waiting > 0) {
        pthread_cond_broadcast(&ready);
    }
    pthread_mutex_unlock(&lock);
}

void remote_value_succeed(cadre_remote_value *value, cadre_tensor **outputs, uint32_t output_count)
{
    CADRE_ASSERT(value->outputs == NULL);
    CADRE_ASSERT(output_count <= CADRE_OUTPUTS_MAX);
    value->outputs = outputs;
    value->output_count = output_count;
    remote_value_finish(value);
}

void remote_value_fail(cadre_remote_value *value, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    value->code = error->code;
    value->text = strdup(error->text);
    remote_value_finish(value);
}

cadre_status remote_value_error(const cadre_remote_value *value, struct cadre_error *error)
{
    CADRE_ASSERT(value->code != CADRE_OK);
    return cadre_error_set(error, value->code, "%s",
        value->text != NULL ? value->text : "a closure failed, and there was no memory to say why");
}

bool remote_value_wait(cadre_remote_value *value)
{
    uint64_t until_us = clock_monotonic_us() + CADRE_US_PER_S;
    int late = 0;
    pthread_mutex_lock(&lock);
    value->waiting++;
    while (!atomic_load(&value->ready) && late == 0) {
        late = thread_wait_until(&ready, &lock, until_us);
    }
    value->waiting--;
    pthread_mutex_unlock(&lock);
    return atomic_load(&value->ready);
}
