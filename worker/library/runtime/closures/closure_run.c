/* SPDX-License-Identifier: Apache-2.0
 * One closure on its worker: from the bytes of its arguments to those of its outputs. Called by
 * closure_worker.c. */
#include "worker/library/runtime/closures/closure_run.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/input/node/user_call.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/closure_wire.h"
#include "worker/library/runtime/ps_job/ps_task.h"
#include "worker/library/trace/trace.h"

/* --- arguments --- */

static cadre_status read_name(const struct message *start, struct wire_reader *ret_reader,
    char name[LIMIT_NAME_BYTES], struct cadre_error *error)
{
    uint64_t length = start->frame.args[2];
    if (length == 0 || length >= LIMIT_NAME_BYTES || wire_padded(length) > start->frame.bytes) {
        return cadre_error_set(
            error, CADRE_INTERNAL, "the chief sent a closure without a function's name");
    }
    memcpy(name, start->bytes, length);
    name[length] = '\0';
    *ret_reader = (struct wire_reader){.at = start->bytes + wire_padded(length),
        .left = (size_t)start->frame.bytes - wire_padded(length)};
    return CADRE_OK;
}

/* The dataset or resource was to be made before; the error has why it was not. */
static cadre_status check_object(const struct worker_object *object, uint32_t argument,
    const char *name, uint32_t worker, struct cadre_error *error)
{
    if (object == NULL) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "argument %u of `%s` is a dataset or resource that the chief did not send to worker %u",
            argument, name, worker);
    }
    if (object->failed.code == CADRE_OK) {
        return CADRE_OK;
    }
    return cadre_error_set(error, object->failed.code,
        "argument %u of `%s` is the %s `%s`, which worker %u could not make: %s", argument, name,
        registration_kind_name(object->kind), object->name, worker, object->failed.text);
}

static cadre_status read_arguments(cadre_closure *closure, const char *name, uint64_t count,
    const struct worker_objects *objects, struct wire_reader *reader, struct cadre_error *error)
{
    if (count > CADRE_CLOSURE_ARGUMENTS_MAX) {
        return cadre_error_set(error, CADRE_INTERNAL, "the chief sent `%s` %llu arguments", name,
            (unsigned long long)count);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wire_item item;
        struct closure_argument *argument = &closure->arguments[i];
        CADRE_TRY(wire_item_read(reader, &item, error));
        closure->argument_count = i + 1;
        argument->tensor = item.tensor;
        if (item.tensor == NULL) {
            argument->object = worker_objects_find(objects, item.object);
            CADRE_TRY(check_object(argument->object, i, name, closure->worker, error));
        }
    }
    return CADRE_OK;
}

/* --- outputs --- */

static cadre_status count_outputs(cadre_tensor *const outputs[], const char *name, uint32_t worker,
    uint32_t *ret_count, size_t *ret_bytes, struct cadre_error *error)
{
    uint32_t count = 0;
    size_t bytes = 0;
    while (count < CADRE_OUTPUTS_MAX && outputs[count] != NULL) {
        CADRE_TRY(tensor_require_host(outputs[count], name, error));
        struct wire_item item = {.tensor = outputs[count++]};
        size_t more = wire_item_bytes(&item);
        if (more > CLOSURE_BYTES_MAX - bytes) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "`%s` on worker %u made outputs of more than 1 GiB together; keep what is large in "
                "parameters",
                name, worker);
        }
        bytes += more;
    }
    for (uint32_t i = count; i < CADRE_OUTPUTS_MAX; i++) {
        if (outputs[i] != NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "`%s` on worker %u made output %u and left output %u empty; leave no gaps", name,
                worker, i, count);
        }
    }
    *ret_count = count;
    *ret_bytes = bytes;
    return CADRE_OK;
}

static cadre_status write_outputs(cadre_tensor *const outputs[], const char *name, uint32_t worker,
    struct frame *result, uint8_t **ret_bytes, struct cadre_error *error)
{
    uint32_t count = 0;
    size_t bytes = 0;
    CADRE_TRY(count_outputs(outputs, name, worker, &count, &bytes, error));
    uint8_t *at = *ret_bytes = malloc(bytes + 1);
    if (at == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the outputs of `%s` on worker %u", name, worker);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_item item = {.tensor = outputs[i]};
        at = wire_item_write(&item, at);
    }
    CADRE_ASSERT(at == *ret_bytes + bytes);
    result->args[0] = count;
    result->bytes = bytes;
    return CADRE_OK;
}

/* --- the call --- */

static cadre_status closure_run_call(struct worker_strategy *worker, cadre_closure *closure,
    const struct registration *function, cadre_tensor *outputs[], struct cadre_error *error)
{
    user_call_begin();
    worker_strategy_enter(worker, closure);
    struct trace_mark mark = trace_begin();
    cadre_status status = argument_status(function->function(closure, outputs, function->user));
    trace_end(mark, TRACE_FUNCTION, 0);
    worker_strategy_leave(worker);
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    const char *message = cadre_error_message();
    if (message[0] == '\0') {
        return cadre_error_set(error, status,
            "`%s` on worker %u returned %s and left no message; say why with cadre_fail",
            function->name, closure->worker, cadre_status_name(status));
    }
    return cadre_error_set(
        error, status, "`%s` on worker %u: %s", function->name, closure->worker, message);
}

static cadre_status closure_run_perform(struct worker_strategy *worker, cadre_closure *closure,
    const struct message *start, const struct worker_objects *objects, struct frame *result,
    uint8_t **ret_bytes, struct cadre_error *error)
{
    char name[LIMIT_NAME_BYTES];
    struct wire_reader reader;
    const struct registration *function = NULL;
    cadre_tensor *outputs[CADRE_OUTPUTS_MAX] = {NULL};
    CADRE_TRY(read_name(start, &reader, name, error));
    if (cadre_closure_cancelled(closure)) {
        return cadre_error_set(error, CADRE_CANCELLED,
            "closure %llu (`%s`) was cancelled before it ran, because another one had failed",
            (unsigned long long)closure->number, name);
    }
    if (closure_registry_find(REGISTERED_FUNCTION, name, &function, error) != CADRE_OK) {
        return cadre_error_wrap(error, error->code, "worker %u", closure->worker);
    }
    CADRE_TRY(read_arguments(closure, name, start->frame.args[1], objects, &reader, error));
    uint64_t began = clock_monotonic_us();
    cadre_status status = closure_run_call(worker, closure, function, outputs, error);
    result->args[1] = clock_monotonic_us() - began;
    if (status == CADRE_OK) {
        status = write_outputs(outputs, name, closure->worker, result, ret_bytes, error);
    }
    for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
        cadre_tensor_release(outputs[i]);
    }
    return status;
}

cadre_status closure_run(struct worker_strategy *worker, struct closure_inbox *inbox,
    const struct worker_objects *objects, const struct message *start, struct cadre_error *error)
{
    CADRE_ASSERT(closure_current() == NULL);
    struct frame result = {.kind = CLOSURE_RESULT, .id = start->frame.id};
    struct cadre_error failure = {0};
    uint8_t *bytes = NULL;
    cadre_closure closure = {
        .number = start->frame.id, .worker = worker->ps_job->index, .cancelled = &inbox->cancelled};
    ps_job_raise_watermark(start->frame.args[0]);
    ps_task_step(worker->ps_job->ps_task, start->frame.args[3]);
    result.code =
        (uint32_t)closure_run_perform(worker, &closure, start, objects, &result, &bytes, &failure);
    for (uint32_t i = 0; i < closure.argument_count; i++) {
        cadre_tensor_release(closure.arguments[i].tensor);
    }
    struct iovec piece = {.iov_base = bytes, .iov_len = (size_t)result.bytes};
    if (result.code != CADRE_OK) {
        piece = (struct iovec){.iov_base = failure.text, .iov_len = strlen(failure.text)};
        result.bytes = piece.iov_len;
    }
    cadre_status status = link_send(inbox->link, &result, &piece, 1, error);
    free(bytes);
    return status;
}
