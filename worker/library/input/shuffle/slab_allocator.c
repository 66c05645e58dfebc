/* SPDX-License-Identifier: Apache-2.0
 * See slab_allocator.h. */
#include "worker/library/input/shuffle/slab_allocator.h"

#include "worker/library/device/tensor_memory.h"

#define SLAB_BYTES_MIN ((size_t)16 << 10)
#define SLAB_BYTES_MAX ((size_t)1 << 20)

struct allocator_slab {
    struct allocator_slab *next;
    size_t bytes; /* with this header */
};

_Static_assert(
    sizeof(struct allocator_slab) % SLAB_SIZE_CLASS_BYTES == 0, "what follows is aligned");

/* A slab twice as large as the one before. */
static struct allocator_slab *add_slab(struct slab_allocator *memory)
{
    size_t bytes = memory->slabs == NULL                   ? SLAB_BYTES_MIN
                   : memory->slabs->bytes < SLAB_BYTES_MAX ? 2 * memory->slabs->bytes
                                                           : SLAB_BYTES_MAX;
    struct allocator_slab *slab = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
    if (slab != NULL) {
        *slab = (struct allocator_slab){.next = memory->slabs, .bytes = bytes};
        memory->slabs = slab;
        memory->used = sizeof *slab;
    }
    return slab;
}

void *slab_alloc_new(struct slab_allocator *memory, size_t bytes)
{
    if (bytes > SLAB_ALLOC_BYTES_MAX) {
        return tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
    }
    size_t steps = bytes == 0 ? 1 : (bytes + SLAB_SIZE_CLASS_BYTES - 1) / SLAB_SIZE_CLASS_BYTES;
    struct allocator_slab *slab = memory->slabs;
    if (slab == NULL || slab->bytes - memory->used < steps * SLAB_SIZE_CLASS_BYTES) {
        slab = add_slab(memory);
    }
    if (slab == NULL) {
        return NULL;
    }
    char *cut = (char *)slab + memory->used;
    memory->used += steps * SLAB_SIZE_CLASS_BYTES;
    return cut;
}

void slab_free_large(void *given, size_t bytes)
{
    tensor_memory_give(TENSOR_MEMORY_HOST, given, bytes);
}

void slab_allocator_clear(struct slab_allocator *memory)
{
    while (memory->slabs != NULL) {
        struct allocator_slab *slab = memory->slabs;
        memory->slabs = slab->next;
        tensor_memory_give(TENSOR_MEMORY_HOST, slab, slab->bytes);
    }
    *memory = (struct slab_allocator){0};
}
