/* SPDX-License-Identifier: Apache-2.0
 * Frames between the chief and a worker over a link: the arguments of each kind, and closures'
 * arguments and outputs as bytes.
 *
 *     item = tag u32, dtype u32, rank u32, 0 u32, bytes u64, dims i64[rank], bytes, up to 8 zeros
 *            a string tensor's bytes are its sizes (u64 each), then the strings; a per-worker
 *            object has its number for `bytes`, and nothing behind it
 *
 * Little-endian. Everything that is received is bounded and checked. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_WIRE_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "worker/library/ps/link/link.h"

/* The limit for one frame: the arguments of a closure together, or its outputs. */
#define CLOSURE_BYTES_MAX (UINT64_C(1) << 30)

enum closure_frame {
    /* chief: id is the closure's number; args: the done watermark, count of arguments, bytes of the
     * function's name, the step in which it was scheduled; then the name, padded to 8, and the
     * arguments */
    CLOSURE_START = 1,
    /* worker: id is the number; args: count of outputs, microseconds that it ran; then the outputs,
     * or (code) the message */
    CLOSURE_RESULT,
    /* chief: id is the object's number; args: enum registration_kind; then the name */
    CLOSURE_MAKE,
    CLOSURE_CANCEL, /* chief: args: all closures up to this number are cancelled */
    CLOSURE_GOODBYE /* chief: it is done */
};

struct wire_reader {
    const uint8_t *at;
    size_t left;
};

/* One item: a tensor, or (tensor NULL) the number of a per-worker object. */
struct wire_item {
    cadre_tensor *tensor; /* the reader's, one reference */
    uint64_t object;
};

static inline size_t wire_padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* SIZE_MAX: more than CLOSURE_BYTES_MAX. */
size_t wire_item_bytes(const struct wire_item *item);
/* Writes so many bytes; returns where they end. */
uint8_t *wire_item_write(const struct wire_item *item, uint8_t *at);
/* INTERNAL: it is no item. */
cadre_status wire_item_read(
    struct wire_reader *reader, struct wire_item *ret_item, struct cadre_error *error);

#endif
