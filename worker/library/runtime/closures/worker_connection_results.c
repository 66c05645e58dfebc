/* SPDX-License-Identifier: Apache-2.0
 * Results that a worker sends to the chief, of the closures that it has. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/closures/worker_connection.h"

static cadre_status read_outputs(struct worker_connection *worker_connection,
    const struct frame *frame, const uint8_t *bytes, cadre_tensor ***ret_outputs,
    struct cadre_error *error)
{
    struct wire_reader reader = {.at = bytes, .left = (size_t)frame->bytes};
    uint64_t count = frame->args[0];
    cadre_status status = CADRE_OK;
    *ret_outputs = NULL;
    if (count > CADRE_OUTPUTS_MAX) {
        return cadre_error_set(error, CADRE_INTERNAL, "%s sent %llu outputs of one closure",
            link_peer_name(worker_connection->link), (unsigned long long)count);
    }
    cadre_tensor **outputs = calloc((size_t)count + 1, sizeof(cadre_tensor *));
    if (outputs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the outputs of a closure");
    }
    for (uint64_t i = 0; status == CADRE_OK && i < count; i++) {
        struct wire_item item;
        status = wire_item_read(&reader, &item, error);
        outputs[i] = item.tensor;
        if (status == CADRE_OK && item.tensor == NULL) {
            status = cadre_error_set(error, CADRE_INTERNAL, "%s sent an output that is no tensor",
                link_peer_name(worker_connection->link));
        }
    }
    if (status == CADRE_OK) {
        *ret_outputs = outputs;
        return CADRE_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        cadre_tensor_release(outputs[i]);
    }
    free(outputs);
    return status;
}

/* One of the closures that it has; NULL: none has this number. */
static cadre_remote_value *take_running(
    struct worker_connection *worker_connection, uint64_t number)
{
    CADRE_ASSERT(worker_connection->running_count <= CLOSURES_AHEAD);
    for (uint32_t i = 0; i < worker_connection->running_count; i++) {
        cadre_remote_value *value = worker_connection->running[i];
        if (value->number == number) {
            worker_connection->running_count--;
            memmove(&worker_connection->running[i], &worker_connection->running[i + 1],
                (worker_connection->running_count - i) * sizeof value);
            return value;
        }
    }
    return NULL;
}

bool worker_connection_end_closure(struct worker_connection *worker_connection,
    const struct frame *frame, cadre_status status, cadre_tensor **outputs,
    const struct cadre_error *error)
{
    struct scheduler *scheduler = worker_connection->scheduler;
    pthread_mutex_lock(&scheduler->lock);
    cadre_remote_value *value = take_running(worker_connection, frame->id);
    if (value != NULL) {
        uint64_t took_us = frame->args[1];
        worker_connection->took_us =
            worker_connection->took_us == UINT64_MAX
                ? took_us
                : worker_connection->took_us - worker_connection->took_us / 4 + took_us / 4;
    }
    if (value != NULL && status == CADRE_OK) {
        scheduler_succeeded(scheduler, value, outputs, (uint32_t)frame->args[0]);
    } else if (value != NULL) {
        scheduler_failed(scheduler, value, error);
    }
    pthread_mutex_unlock(&scheduler->lock);
    return value != NULL;
}

static cadre_status take_result(struct worker_connection *worker_connection,
    const struct frame *frame, struct cadre_error *error)
{
    cadre_tensor **outputs = NULL;
    struct cadre_error failure = {0};
    uint8_t *bytes = frame->bytes > CLOSURE_BYTES_MAX ? NULL : malloc((size_t)frame->bytes + 1);
    if (bytes == NULL) { /* a second run would give as many bytes */
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %llu bytes of %s",
            (unsigned long long)frame->bytes, link_peer_name(worker_connection->link));
        (void)worker_connection_end_closure(worker_connection, frame, error->code, NULL, error);
        return error->code;
    }
    cadre_status status =
        link_receive_bytes(worker_connection->link, bytes, (size_t)frame->bytes, error);
    if (status != CADRE_OK) {
        free(bytes);
        return status;
    }
    if (frame->code == CADRE_OK) {
        status = read_outputs(worker_connection, frame, bytes, &outputs, &failure);
    } else {
        size_t shown =
            frame->bytes < sizeof failure.text ? (size_t)frame->bytes : sizeof failure.text - 1;
        status = cadre_error_set(&failure, argument_status((cadre_status)frame->code), "%.*s",
            (int)shown, (const char *)bytes);
    }
    free(bytes);
    if (!worker_connection_end_closure(worker_connection, frame, status, outputs, &failure)) {
        for (uint64_t i = 0; outputs != NULL && i < frame->args[0]; i++) {
            cadre_tensor_release(outputs[i]);
        }
        free(outputs);
        return cadre_error_set(error, CADRE_INTERNAL,
            "%s sent a result of a closure that it does not have",
            link_peer_name(worker_connection->link));
    }
    return CADRE_OK;
}

cadre_status worker_connection_receive(
    struct worker_connection *worker_connection, struct cadre_error *error)
{
    struct frame frame;
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        status = link_receive(worker_connection->link, 0, &frame, error);
        if (status == CADRE_OK && frame.kind != CLOSURE_RESULT) {
            status = cadre_error_set(error, CADRE_INTERNAL, "%s sent a frame of kind %u",
                link_peer_name(worker_connection->link), frame.kind);
        } else if (status == CADRE_OK) {
            status = take_result(worker_connection, &frame, error);
        }
    }
    return status == CADRE_DEADLINE_EXCEEDED ? CADRE_OK : status;
}
