/* SPDX-License-Identifier: Apache-2.0
 * See block_cache.h. The memory of a whole file is claimed at once, as address space; blocks of it
 * are filled when something in them is looked for. */
#include "worker/library/input/files/block_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/pure/assert.h"
#include "worker/library/device/machine_memory.h"

#define BLOCK_BYTES ((size_t)256 << 10)

/* Kept once this part of the file was read in pieces, and so many bytes. */
#define WORTH_PART  32
#define WORTH_BYTES ((uint64_t)64 << 10)

enum block_state { BLOCK_EMPTY = 0, BLOCK_FILLING, BLOCK_READY };

enum { DECIDED_NOT_YET = 0, DECIDED_YES, DECIDED_NO };

struct block_cache {
    size_t bytes;
    _Atomic uint64_t pieces; /* bytes that were asked for */
    atomic_int decided;
    atomic_flag deciding;
    char *memory;         /* `bytes` bytes, once decided for */
    atomic_uchar *states; /* of each block */
};

static _Atomic uint64_t kept_bytes;
static _Atomic uint64_t kept_limit; /* 0: not found out */

void block_cache_set_limit(uint64_t bytes)
{
    atomic_store(&kept_limit, bytes == 0 ? 1 : bytes);
}

uint64_t block_cache_bytes(void)
{
    return atomic_load(&kept_bytes);
}

struct block_cache *block_cache_new(int64_t bytes)
{
    struct block_cache *blocks = calloc(1, sizeof *blocks);
    if (blocks != NULL) {
        blocks->bytes = (size_t)bytes;
        atomic_flag_clear(&blocks->deciding);
    }
    return blocks;
}

void block_cache_free(struct block_cache *blocks)
{
    if (blocks != NULL && blocks->memory != NULL) {
        munmap(blocks->memory, blocks->bytes);
        free(blocks->states);
        atomic_fetch_sub(&kept_bytes, blocks->bytes);
    }
    free(blocks);
}

/* Takes the whole file's bytes out of what all may keep. */
static bool block_cache_claim(uint64_t bytes)
{
    uint64_t limit = atomic_load(&kept_limit);
    if (limit == 0) {
        limit = machine_memory() / 16;
        atomic_store(&kept_limit, limit);
    }
    uint64_t kept = atomic_load(&kept_bytes);
    do {
        if (kept > limit || bytes > limit - kept) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&kept_bytes, &kept, kept + bytes));
    return true;
}

static bool set_up(struct block_cache *blocks)
{
    size_t count = (blocks->bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
    if (!block_cache_claim(blocks->bytes)) {
        return false;
    }
    atomic_uchar *states = calloc(count, sizeof states[0]);
    void *memory = mmap(NULL, blocks->bytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (states == NULL || memory == MAP_FAILED) {
        free(states);
        if (memory != MAP_FAILED) {
            munmap(memory, blocks->bytes);
        }
        atomic_fetch_sub(&kept_bytes, blocks->bytes);
        return false;
    }
    /* Fewer pages to look up; where there are no huge ones, small ones serve. */
    (void)madvise(memory, blocks->bytes, MADV_HUGEPAGE);
    blocks->states = states;
    blocks->memory = memory;
    return true;
}

/* Whether the file is kept; decides it when enough was read in pieces. */
static bool block_cache_decide(struct block_cache *blocks, size_t bytes)
{
    uint64_t pieces = atomic_fetch_add_explicit(&blocks->pieces, bytes, memory_order_relaxed);
    if (pieces < WORTH_BYTES || pieces < blocks->bytes / WORTH_PART ||
        atomic_flag_test_and_set(&blocks->deciding)) {
        return false;
    }
    bool kept = set_up(blocks);
    atomic_store_explicit(&blocks->decided, kept ? DECIDED_YES : DECIDED_NO, memory_order_release);
    return kept;
}

/* Whether block `number` can be looked at; reads it if no thread has read it yet. */
static bool block_ready(struct block_cache *blocks, const struct input_file *file, size_t number)
{
    unsigned char state = atomic_load_explicit(&blocks->states[number], memory_order_acquire);
    if (state != BLOCK_EMPTY) {
        return state == BLOCK_READY;
    }
    if (!atomic_compare_exchange_strong(&blocks->states[number], &state, BLOCK_FILLING)) {
        return state == BLOCK_READY;
    }
    size_t offset = number * BLOCK_BYTES;
    size_t bytes = blocks->bytes - offset < BLOCK_BYTES ? blocks->bytes - offset : BLOCK_BYTES;
    struct cadre_error unsaid = {0}; /* who reads the bytes meets it again, and says so */
    bool filled =
        input_file_read(file, (int64_t)offset, blocks->memory + offset, bytes, &unsaid) == CADRE_OK;
    atomic_store_explicit(
        &blocks->states[number], filled ? BLOCK_READY : BLOCK_EMPTY, memory_order_release);
    return filled;
}

const char *block_cache_find(
    struct block_cache *blocks, const struct input_file *file, int64_t offset, size_t bytes)
{
    if (blocks == NULL || bytes == 0) {
        return NULL;
    }
    int decided = atomic_load_explicit(&blocks->decided, memory_order_acquire);
    if (decided == DECIDED_NO ||
        (decided == DECIDED_NOT_YET && !block_cache_decide(blocks, bytes))) {
        return NULL;
    }
    CADRE_ASSERT(offset >= 0);
    if ((uint64_t)offset > blocks->bytes || bytes > blocks->bytes - (uint64_t)offset) {
        return NULL; /* behind the end as it was: reading says what is wrong */
    }
    size_t last = ((size_t)offset + bytes - 1) / BLOCK_BYTES;
    for (size_t number = (size_t)offset / BLOCK_BYTES; number <= last; number++) {
        if (!block_ready(blocks, file, number)) {
            return NULL;
        }
    }
    return blocks->memory + offset;
}
