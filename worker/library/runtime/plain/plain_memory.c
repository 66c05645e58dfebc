/* SPDX-License-Identifier: Apache-2.0
 * Memory for plain programs, which have an address and nothing else: the description of a block is
 * in front of it. */
#include <stdint.h>

#include "cadre/plain.h"
#include "worker/library/device/tensor_memory.h"
#include "worker/library/runtime/plain/plain.h"

struct block {
    size_t bytes; /* with this header */
    enum tensor_memory_kind kind;
};

_Static_assert(sizeof(struct block) <= CADRE_TENSOR_ALIGN, "a block's head fits before its memory");

void *cadre_plain_alloc(size_t bytes)
{
    struct plain_ranks standing;
    bool peers = plain_get_ranks(&standing) && standing.local_tasks > 1;
    if (bytes > TENSOR_MEMORY_BYTES_MAX - CADRE_TENSOR_ALIGN) {
        return NULL;
    }
    struct block block = {.bytes = bytes + CADRE_TENSOR_ALIGN,
        .kind = peers ? TENSOR_MEMORY_SHARED : TENSOR_MEMORY_HOST};
    struct block *head = tensor_memory_get(block.kind, block.bytes);
    if (head == NULL && peers) { /* not every process is able to share memory */
        block.kind = TENSOR_MEMORY_HOST;
        head = tensor_memory_get(block.kind, block.bytes);
    }
    if (head == NULL) {
        return NULL;
    }
    *head = block;
    return (uint8_t *)head + CADRE_TENSOR_ALIGN;
}

void cadre_plain_free(void *memory)
{
    if (memory != NULL) {
        struct block *head = (struct block *)(void *)((uint8_t *)memory - CADRE_TENSOR_ALIGN);
        const struct block block = *head;
        tensor_memory_give(block.kind, head, block.bytes);
    }
}
