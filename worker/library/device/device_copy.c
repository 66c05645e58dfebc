/* SPDX-License-Identifier: Apache-2.0
 * Copies that are waited for. A device can copy by itself only from and to page-locked memory;
 * other memory of the host goes through two page-locked pieces, one of which the device copies
 * while the processor copies the other. */
#include <string.h>

#include "worker/library/device/device.h"
#include "worker/library/device/device_open.h"
#include "worker/library/device/tensor_memory.h"

#define PIECE_BYTES ((size_t)4 << 20)
#define PIECES      2

/* A copy between a device and memory of the host. */
struct staged {
    struct device *device;
    void *stream;
    char *on_device;
    char *on_host;
    bool to_device;
    size_t piece_bytes;
    char *pieces[PIECES];
    void *events[PIECES];  /* of the last copy that uses the piece */
    size_t filled[PIECES]; /* bytes that are being copied into the piece; of copies to the host */
    size_t at[PIECES];     /* where they belong */
};

/* Waits for the piece, and copies to the host's memory what came in it. */
static cadre_status device_copy_finish_piece(
    struct staged *staged, size_t piece, struct cadre_error *error)
{
    CADRE_TRY(device_wait_event(staged->device, staged->events[piece], 0, NULL, NULL, error));
    if (!staged->to_device && staged->filled[piece] > 0) {
        memcpy(staged->on_host + staged->at[piece], staged->pieces[piece], staged->filled[piece]);
    }
    staged->filled[piece] = 0;
    return CADRE_OK;
}

static cadre_status copy_pieces(struct staged *staged, size_t bytes, struct cadre_error *error)
{
    const struct device_ops *ops = staged->device->ops;
    size_t turn = 0;
    for (size_t at = 0; at < bytes; turn++) {
        size_t piece = turn % PIECES;
        size_t part = bytes - at < staged->piece_bytes ? bytes - at : staged->piece_bytes;
        if (turn >= PIECES) {
            CADRE_TRY(device_copy_finish_piece(staged, piece, error));
        }
        char *pinned = staged->pieces[piece];
        if (staged->to_device) {
            memcpy(pinned, staged->on_host + at, part);
            CADRE_TRY(ops->copy(staged->on_device + at, pinned, part, staged->stream, error));
        } else {
            CADRE_TRY(ops->copy(pinned, staged->on_device + at, part, staged->stream, error));
        }
        CADRE_TRY(ops->event_record(staged->events[piece], staged->stream, error));
        staged->filled[piece] = part;
        staged->at[piece] = at;
        at += part;
    }
    for (size_t i = turn < PIECES ? 0 : turn - PIECES; i < turn; i++) {
        CADRE_TRY(device_copy_finish_piece(staged, i % PIECES, error));
    }
    return CADRE_OK;
}

static cadre_status copy_staged(struct staged *staged, size_t bytes, struct cadre_error *error)
{
    struct device *device = staged->device;
    cadre_status status = CADRE_OK;
    staged->piece_bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    for (size_t i = 0; i < PIECES && status == CADRE_OK; i++) {
        staged->pieces[i] = tensor_memory_get(TENSOR_MEMORY_PINNED, staged->piece_bytes);
        status = device_event_take(device, &staged->events[i], error);
    }
    if (status == CADRE_OK && staged->pieces[0] != NULL && staged->pieces[1] != NULL) {
        status = copy_pieces(staged, bytes, error);
        if (status != CADRE_OK) { /* before the pieces are freed */
            (void)device_wait_stream(device, staged->stream, 0, NULL, NULL, NULL);
        }
    } else if (status == CADRE_OK) { /* no page-locked memory: the driver copies, and waits */
        void *to = staged->to_device ? staged->on_device : staged->on_host;
        const void *from = staged->to_device ? staged->on_host : staged->on_device;
        status = device->ops->copy(to, from, bytes, staged->stream, error);
        if (status == CADRE_OK) {
            status = device_wait_stream(device, staged->stream, 0, NULL, NULL, error);
        }
    }
    for (size_t i = 0; i < PIECES; i++) {
        if (staged->pieces[i] != NULL) {
            tensor_memory_give(TENSOR_MEMORY_PINNED, staged->pieces[i], staged->piece_bytes);
        }
        device_event_give(device, staged->events[i]);
    }
    return status;
}

cadre_status device_copy(void *to, struct device *to_on, const void *from, struct device *from_on,
    size_t bytes, struct cadre_error *error)
{
    if (to_on == NULL && from_on == NULL) {
        memmove(to, from, bytes);
        return CADRE_OK;
    }
    if (bytes == 0) {
        return CADRE_OK;
    }
    if (to_on != NULL && from_on != NULL) {
        if (to_on != from_on) {
            CADRE_TRY(device_order(from_on, from_on->compute, to_on->compute, error));
        }
        CADRE_TRY(to_on->ops->copy(to, from, bytes, to_on->compute, error));
        return device_wait_stream(to_on, to_on->compute, 0, NULL, NULL, error);
    }
    struct device *device = to_on != NULL ? to_on : from_on;
    struct staged staged = {.device = device,
        .stream = device->compute,
        .to_device = to_on != NULL,
        .on_device = (char *)(uintptr_t)(to_on != NULL ? to : from),
        .on_host = (char *)(uintptr_t)(to_on != NULL ? from : to)};
    return copy_staged(&staged, bytes, error);
}

cadre_status device_copy_enqueue(struct device *device, void *stream, void *to, const void *from,
    size_t bytes, struct cadre_error *error)
{
    const int64_t dims[] = {(int64_t)bytes};
    cadre_tensor *between = NULL;
    if (bytes == 0) {
        return CADRE_OK;
    }
    if (bytes > DEVICE_COPY_ENQUEUE_MAX ||
        tensor_create_kind(TENSOR_MEMORY_PINNED, CADRE_U8, 1, dims, &between, NULL) != CADRE_OK) {
        CADRE_TRY(device_order(device, stream, device->compute, error));
        return device_copy(to, device, from, NULL, bytes, error);
    }
    memcpy(cadre_tensor_data(between), from, bytes);
    cadre_status status =
        device->ops->copy(to, cadre_tensor_const_data(between), bytes, stream, error);
    if (status == CADRE_OK) {
        status = device_lend(device, stream, between, error);
        if (status != CADRE_OK) {
            (void)device_wait_stream(device, stream, 0, NULL, NULL, NULL);
        }
    }
    cadre_tensor_release(between);
    return status;
}
