/* SPDX-License-Identifier: Apache-2.0
 * See object_memory.h. */
#include "worker/library/input/objects/object_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/machine_memory.h"
#include "worker/library/input/objects/block_clock.h"
#include "worker/library/input/objects/object.h"

#define VARIABLE      "CADRE_OBJECT_MEMORY_MIB"
#define MIB           ((uint64_t)1 << 20)
#define DEFAULT_BYTES ((uint64_t)1 << 30) /* at most, */
#define DEFAULT_PART  16                  /* and of the machine's memory */
#define LIMIT_MIB_MAX ((uint64_t)1 << 20)
#define LIMIT_MIB_MIN 8

pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t object_changed = PTHREAD_COND_INITIALIZER;

static struct block_clock block_clock; /* under the lock, as is all of this */
static bool prepared;
static char *pool; /* a place of OBJECT_BLOCK_BYTES for each slot */
static size_t pool_bytes;
static _Atomic uint64_t blocks_limit;
static _Atomic uint64_t blocks_held;

static cadre_status read_variable(uint64_t *ret_bytes, struct cadre_error *error)
{
    const char *text = getenv(VARIABLE);
    if (text == NULL || text[0] == '\0') {
        uint64_t machine = machine_memory() / DEFAULT_PART;
        *ret_bytes = machine < DEFAULT_BYTES ? machine : DEFAULT_BYTES;
        return CADRE_OK;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long mib = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9' || mib < LIMIT_MIB_MIN ||
        mib > LIMIT_MIB_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            VARIABLE " is \"%s\"; give the mebibytes that objects may take in memory, %d to %llu",
            text, LIMIT_MIB_MIN, (unsigned long long)LIMIT_MIB_MAX);
    }
    *ret_bytes = mib * MIB;
    return CADRE_OK;
}

static void free_pool(void)
{
    if (pool != NULL) {
        munmap(pool, pool_bytes);
    }
    pool = NULL;
}

/* Address space; its pages come as they are used. */
static cadre_status make_pool(uint64_t bytes, struct cadre_error *error)
{
    free_pool();
    void *memory = fault_point("input.object-map")
                       ? MAP_FAILED
                       : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no address space for the %llu MiB that objects may take in memory; set " VARIABLE
            " to less",
            (unsigned long long)(bytes / MIB));
    }
    (void)madvise(memory, (size_t)bytes, MADV_HUGEPAGE); /* fewer faults; also right without */
    pool = memory;
    pool_bytes = (size_t)bytes;
    return CADRE_OK;
}

static cadre_status set_up_clock(uint64_t bytes, struct cadre_error *error)
{
    uint64_t count = bytes / OBJECT_BLOCK_BYTES;
    struct block_slot *slots =
        fault_point("input.object") ? NULL : calloc((size_t)count + 1, sizeof slots[0]);
    if (slots == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of blocks of objects");
    }
    cadre_status status = make_pool(count * OBJECT_BLOCK_BYTES, error);
    if (status != CADRE_OK) {
        free(slots);
        return status;
    }
    free(block_clock.slots);
    block_clock_init(&block_clock, slots, (uint32_t)count);
    atomic_store(&blocks_limit, count);
    prepared = true;
    return CADRE_OK;
}

cadre_status object_memory_prepare(struct cadre_error *error)
{
    uint64_t bytes = 0;
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&object_lock);
    if (!prepared) {
        status = read_variable(&bytes, error);
        status = status == CADRE_OK ? set_up_clock(bytes, error) : status;
    }
    pthread_mutex_unlock(&object_lock);
    return status;
}

void object_memory_set_limit(uint64_t bytes)
{
    pthread_mutex_lock(&object_lock);
    CADRE_ASSERT(block_clock.used == 0);
    prepared = false;
    if (bytes > 0) {
        (void)set_up_clock(bytes, NULL);
    }
    pthread_mutex_unlock(&object_lock);
}

uint64_t object_memory_limit(void)
{
    return atomic_load_explicit(&blocks_limit, memory_order_relaxed);
}

uint64_t object_memory_held(void)
{
    return atomic_load_explicit(&blocks_held, memory_order_relaxed);
}

struct object *object_new(const char *path, struct storage_object *storage)
{
    uint64_t bytes = storage_info_of(storage)->bytes;
    uint64_t blocks = bytes / OBJECT_BLOCK_BYTES + (bytes % OBJECT_BLOCK_BYTES != 0);
    struct object *object = fault_point("input.object") ? NULL : calloc(1, sizeof *object);
    if (object == NULL) {
        return NULL;
    }
    object->path = strdup(path);
    object->blocks = calloc((size_t)blocks + 1, sizeof object->blocks[0]);
    if (object->path == NULL || object->blocks == NULL) {
        free(object->path);
        free(object->blocks);
        free(object);
        return NULL;
    }
    object->storage = storage;
    object->bytes = bytes;
    object->block_count = blocks;
    object->references = 1;
    disk_cache_key_make(path, storage_info_of(storage)->version, bytes, &object->disk);
    return object;
}

char *object_block_bytes(const struct object_block *block)
{
    return pool +
           (size_t)atomic_load_explicit(&block->slot, memory_order_relaxed) * OBJECT_BLOCK_BYTES;
}

static enum block_answer evict_block(void *owner, uint64_t number)
{
    struct object *object = owner;
    struct object_block *block = &object->blocks[number];
    uint32_t word = atomic_load_explicit(&block->word, memory_order_relaxed);
    if ((word & BLOCK_STATES) != BLOCK_READY || word >= BLOCK_PIN) {
        return BLOCK_BUSY;
    }
    if ((word & BLOCK_USED) != 0) {
        atomic_fetch_and_explicit(&block->word, ~BLOCK_USED, memory_order_relaxed);
        return BLOCK_SPARED;
    }
    if (!atomic_compare_exchange_strong_explicit(&block->word, &word,
            word - BLOCK_READY + BLOCK_EMPTY, memory_order_acq_rel, memory_order_relaxed)) {
        return BLOCK_BUSY;
    }
    atomic_fetch_sub_explicit(&blocks_held, 1, memory_order_relaxed);
    return BLOCK_EVICTED;
}

bool object_block_claim(struct object *object, uint64_t number)
{
    struct object_block *block = &object->blocks[number];
    CADRE_ASSERT((atomic_load(&block->word) & BLOCK_STATES) == BLOCK_EMPTY);
    uint32_t slot = block_clock_take(&block_clock, object, number, evict_block);
    if (slot == BLOCK_CLOCK_NONE) {
        return false;
    }
    atomic_store_explicit(&block->slot, slot, memory_order_relaxed);
    atomic_fetch_add_explicit(&block->word, BLOCK_FILLING - BLOCK_EMPTY, memory_order_relaxed);
    atomic_fetch_add_explicit(&blocks_held, 1, memory_order_relaxed);
    return true;
}

void object_block_filled(struct object *object, uint64_t number, bool ready)
{
    struct object_block *block = &object->blocks[number];
    CADRE_ASSERT((atomic_load(&block->word) & BLOCK_STATES) == BLOCK_FILLING);
    if (ready) {
        /* Spared once before it was looked at. */
        atomic_fetch_or_explicit(&block->word, BLOCK_USED, memory_order_relaxed);
        atomic_fetch_add_explicit(&block->word, BLOCK_READY - BLOCK_FILLING, memory_order_release);
        return;
    }
    block_clock_give(&block_clock, block->slot);
    atomic_fetch_sub_explicit(&block->word, BLOCK_FILLING - BLOCK_EMPTY, memory_order_relaxed);
    atomic_fetch_sub_explicit(&blocks_held, 1, memory_order_relaxed);
}

void object_unreference(struct object *object)
{
    CADRE_ASSERT(object->references > 0);
    if (--object->references > 0) {
        return;
    }
    CADRE_ASSERT(!object->in_table && object->users == 0 && object->fetches == NULL);
    for (uint64_t i = 0; i < object->block_count; i++) {
        if ((atomic_load_explicit(&object->blocks[i].word, memory_order_acquire) & BLOCK_STATES) ==
            BLOCK_READY) {
            block_clock_give(&block_clock, object->blocks[i].slot);
            atomic_fetch_sub_explicit(&blocks_held, 1, memory_order_relaxed);
        }
    }
    storage_close(object->storage);
    free(object->blocks);
    free(object->path);
    free(object);
}
