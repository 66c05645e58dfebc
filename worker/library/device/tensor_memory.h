/* SPDX-License-Identifier: Apache-2.0
 * Memory for tensors, kept for reuse when it is freed: reading in the steady state allocates
 * nothing from the system. Sizes are rounded up to classes: from 512 bytes on by a quarter at most,
 * above 64 KiB by an eighth. A thread has a magazine of small blocks of its own; behind the
 * magazines there is one depot per kind of memory, through which blocks also return to the thread
 * that makes tensors from the one that releases them.
 *
 * Memory has kinds. The processor can read and write all of them: the difference is where a block
 * comes from. Under AddressSanitizer nothing is kept unless tensor_memory_limit sets it, and kept
 * blocks are poisoned. */
#ifndef CADRE_WORKER_DEVICE_TENSOR_MEMORY_H
#define CADRE_WORKER_DEVICE_TENSOR_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum tensor_memory_kind {
    TENSOR_MEMORY_HOST = 0, /* always there */
    TENSOR_MEMORY_PINNED,   /* that a device copies from by itself; a device plugin registers it */
    TENSOR_MEMORY_SHARED,   /* that tasks of this host map: worker/library/arena, opened at the
                             * first use */
    TENSOR_MEMORY_KINDS
};

/* The most bytes that are kept of one kind, unless set otherwise: this, or a sixteenth of the
 * machine's memory if that is less. */
#define TENSOR_MEMORY_LIMIT_DEFAULT ((uint64_t)1 << 30)

/* The most bytes that the magazines of one thread keep, of one kind, besides. */
#define TENSOR_MEMORY_MAGAZINE_BYTES ((size_t)1 << 20)

/* There is no block larger than this. */
#define TENSOR_MEMORY_BYTES_MAX ((size_t)1 << 40)

/* The functions behind a kind of memory. Any thread calls these, several at once. */
struct tensor_memory_ops {
    const char *name; /* for messages */
    /* `bytes` > 0 bytes, aligned to CADRE_TENSOR_ALIGN and not set; NULL: there are none. */
    void *(*get)(size_t bytes);
    /* Frees what `get` returned for `bytes`. */
    void (*give)(void *memory, size_t bytes);
};

/* Makes a kind usable, for the rest of the process; `ops` is kept. Before the first tensor of that
 * kind. ALREADY_EXISTS: it has other ones. */
cadre_status tensor_memory_register(
    enum tensor_memory_kind kind, const struct tensor_memory_ops *ops, struct cadre_error *error);

/* Sets the kind of memory of tensors that the calling thread makes from now on (tensor_create_kind
 * aside): for the thread that reads batches for a device. Returns the one before. A kind that was
 * not registered, or that this process cannot have, means the host's. */
enum tensor_memory_kind tensor_memory_prefer(enum tensor_memory_kind kind);
/* That kind. */
enum tensor_memory_kind tensor_memory_preferred(void);

/* At least `bytes` bytes, aligned to CADRE_TENSOR_ALIGN and not set. NULL: there are none, the kind
 * was not registered, or this process cannot have it. When the system has none, kept blocks are
 * freed first. */
void *tensor_memory_get(enum tensor_memory_kind kind, size_t bytes);

/* Frees what tensor_memory_get returned for the same kind and `bytes`. */
void tensor_memory_give(enum tensor_memory_kind kind, void *memory, size_t bytes);

/* Sets the most bytes that the depot of a kind keeps, and frees the excess. 0: nothing is kept,
 * also not by threads. */
void tensor_memory_limit(enum tensor_memory_kind kind, uint64_t bytes);

/* Frees memory to the system until the depot keeps at most `bytes`; the blocks of the calling
 * thread's magazine come first, other threads' magazines are not touched. */
void tensor_memory_trim(enum tensor_memory_kind kind, uint64_t bytes);

struct tensor_memory_counts {
    uint64_t gets;  /* blocks allocated from the system since the process began */
    uint64_t gives; /* blocks freed to it */
    uint64_t kept;  /* bytes in the depot now */
};

/* The counts of one kind, of all threads. */
struct tensor_memory_counts tensor_memory_counts(enum tensor_memory_kind kind);

#endif
