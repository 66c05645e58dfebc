/* SPDX-License-Identifier: Apache-2.0
 * Memory for tensors, kept for reuse when it is given back: reading in the steady state asks the
 * system for nothing. Sizes are rounded up to classes: from 512 bytes on by a quarter at most,
 * above 64 KiB by an eighth. A thread has a magazine of small blocks of its own; behind the
 * magazines stands one depot per kind of memory, through which blocks also come back to the thread
 * that makes tensors from the one that releases them.
 *
 * Memory comes in kinds. All of them the processor can read and write: what differs is where a
 * block comes from. Under AddressSanitizer nothing is kept unless tensor_memory_limit says so, and
 * what is kept is poisoned. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_MEMORY_H
#define CADRE_WORKER_DEVICE_TENSOR_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum tensor_memory_kind {
    TENSOR_MEMORY_HOST = 0, /* always there */
    TENSOR_MEMORY_PINNED,   /* that a device copies from by itself; a device plugin registers it */
    TENSOR_MEMORY_SHARED,   /* that tasks of this host map: worker/library/arena, opened when first
                               asked */
    TENSOR_MEMORY_KINDS
};

/* What is kept of one kind at most, unless set otherwise: this, or a sixteenth of the machine's
 * memory if that is less. */
#define TENSOR_MEMORY_LIMIT_DEFAULT ((uint64_t)1 << 30)

/* What the magazines of one thread keep at most, of one kind, besides. */
#define TENSOR_MEMORY_MAGAZINE_BYTES ((size_t)1 << 20)

/* There is no block larger than this. */
#define TENSOR_MEMORY_BYTES_MAX ((size_t)1 << 40)

/* Where blocks of a kind come from. Any thread calls these, several at once. */
struct tensor_memory_ops {
    const char *name; /* for messages */
    /* `bytes` > 0 bytes, aligned to CADRE_TENSOR_ALIGN and not set; NULL: there are none. */
    void *(*get)(size_t bytes);
    /* Takes back what `get` gave for `bytes`. */
    void (*give)(void *memory, size_t bytes);
};

/* Makes a kind usable, for the rest of the process; `ops` is kept. Before the first tensor of that
 * kind. ALREADY_EXISTS: it has other ones. */
cadre_status tensor_memory_register(
    enum tensor_memory_kind kind, const struct tensor_memory_ops *ops, struct cadre_error *error);

/* The kind that tensors of the calling thread get from now on (tensor_create_kind aside): for the
 * thread that reads batches for a device. Returns the one before. A kind that nobody registered, or
 * that this process cannot have, means the host's. */
enum tensor_memory_kind tensor_memory_prefer(enum tensor_memory_kind kind);
enum tensor_memory_kind tensor_memory_preferred(void);

/* At least `bytes` bytes, aligned to CADRE_TENSOR_ALIGN and not set. NULL: there are none, nobody
 * registered the kind, or this process cannot have it. When the system has none, what is kept is
 * given back first. */
void *tensor_memory_get(enum tensor_memory_kind kind, size_t bytes);

/* Gives back what tensor_memory_get gave for the same kind and `bytes`. */
void tensor_memory_give(enum tensor_memory_kind kind, void *memory, size_t bytes);

/* Sets how many bytes the depot of a kind keeps at most, and gives back what is more. 0: nothing is
 * kept, also not by threads. */
void tensor_memory_limit(enum tensor_memory_kind kind, uint64_t bytes);

/* Gives memory back to the system until the depot keeps at most `bytes`; what the calling thread's
 * magazine holds comes first, other threads' magazines are left alone. */
void tensor_memory_trim(enum tensor_memory_kind kind, uint64_t bytes);

struct tensor_memory_counts {
    uint64_t gets;  /* blocks asked of the system since the process began */
    uint64_t gives; /* blocks given back to it */
    uint64_t kept;  /* bytes in the depot now */
};

struct tensor_memory_counts tensor_memory_counts(enum tensor_memory_kind kind);

#endif
