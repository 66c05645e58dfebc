/* SPDX-License-Identifier: Apache-2.0
 * See slot_memory.h. */
#include "worker/library/input/slot_memory.h"

#include "worker/library/device/tensor_memory.h"

#define SLAB_BYTES_MIN ((size_t)16 << 10)
#define SLAB_BYTES_MAX ((size_t)1 << 20)

struct slot_slab {
    struct slot_slab *next;
    size_t bytes; /* with this header */
};

_Static_assert(sizeof(struct slot_slab) % SLOT_MEMORY_STEP == 0, "what follows is aligned");

/* A slab twice as large as the one before. */
static struct slot_slab *add_slab(struct slot_memory *memory)
{
    size_t bytes = memory->slabs == NULL                   ? SLAB_BYTES_MIN
                   : memory->slabs->bytes < SLAB_BYTES_MAX ? 2 * memory->slabs->bytes
                                                           : SLAB_BYTES_MAX;
    struct slot_slab *slab = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
    if (slab != NULL) {
        *slab = (struct slot_slab){.next = memory->slabs, .bytes = bytes};
        memory->slabs = slab;
        memory->used = sizeof *slab;
    }
    return slab;
}

void *slot_memory_get_new(struct slot_memory *memory, size_t bytes)
{
    if (bytes > SLOT_MEMORY_PACKED_BYTES) {
        return tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
    }
    size_t steps = bytes == 0 ? 1 : (bytes + SLOT_MEMORY_STEP - 1) / SLOT_MEMORY_STEP;
    struct slot_slab *slab = memory->slabs;
    if (slab == NULL || slab->bytes - memory->used < steps * SLOT_MEMORY_STEP) {
        slab = add_slab(memory);
    }
    if (slab == NULL) {
        return NULL;
    }
    char *cut = (char *)slab + memory->used;
    memory->used += steps * SLOT_MEMORY_STEP;
    return cut;
}

void slot_memory_give_large(void *given, size_t bytes)
{
    tensor_memory_give(TENSOR_MEMORY_HOST, given, bytes);
}

void slot_memory_clear(struct slot_memory *memory)
{
    while (memory->slabs != NULL) {
        struct slot_slab *slab = memory->slabs;
        memory->slabs = slab->next;
        tensor_memory_give(TENSOR_MEMORY_HOST, slab, slab->bytes);
    }
    *memory = (struct slot_memory){0};
}
