/* SPDX-License-Identifier: Apache-2.0
 * Magazines over a depot; see tensor_memory.h. Tensors of all files in this folder get their memory
 * here. Kept blocks are chained through their first word. One lock per kind guards its depot; the
 * system is never called with it held. */
#include "worker/library/device/tensor_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/tensor.h"
#include "common/base/fault.h"
#include "common/base/poison.h"
#include "common/pure/assert.h"
#include "worker/library/arena/arena.h"
#include "worker/library/device/machine_memory.h"

#define LIMIT_UNKNOWN UINT64_MAX
#ifdef POISONS
#define LIMIT_AT_START 0
#else
#define LIMIT_AT_START LIMIT_UNKNOWN
#endif

/* Classes of 128, 192, ... 512 bytes, then 640, 768, 896, 1024, 1280, ... 64 Ki, 72 Ki, 80 Ki, ...
 * up to 2^40: four per doubling, and eight where rounding up costs much. */
#define BYTES_MIN      ((size_t)128)
#define EVEN_STEP      ((size_t)64)
#define EVEN_BYTES_MAX ((size_t)512)
#define EVEN_CLASSES   7
#define EVEN_LOG       9
#define FINE_LOG       16
#define BYTES_MAX_LOG  40
_Static_assert(TENSOR_MEMORY_BYTES_MAX == (size_t)1 << BYTES_MAX_LOG, "every size has a class");

/* Blocks of up to 64 KiB go through magazines: the classes before this one. */
#define MAGAZINE_CLASSES (EVEN_CLASSES + (FINE_LOG - EVEN_LOG) * 4)
#define CLASS_COUNT      (MAGAZINE_CLASSES + (BYTES_MAX_LOG - FINE_LOG) * 8)
#define MAGAZINE_BLOCKS  64 /* of one class */

struct block {
    struct block *next;
};

struct chain {
    struct block *first;
    uint64_t count;
};

struct depot {
    pthread_mutex_t lock;
    const struct tensor_memory_ops *_Atomic ops;
    _Atomic uint64_t limit;
    _Atomic uint64_t gets;
    _Atomic uint64_t gives;
    uint64_t kept;
    uint64_t clock; /* counts calls of get and give */
    struct chain chains[CLASS_COUNT];
    uint64_t used[CLASS_COUNT]; /* the clock when the class was last taken from */
};

struct magazine {
    size_t bytes;
    struct chain chains[MAGAZINE_CLASSES];
};

/* A thread's magazines; made when it first frees a small block. */
struct thread_memory {
    struct magazine magazines[TENSOR_MEMORY_KINDS];
};

/* Aligned by hand, with the pointer to free before the block. A hole that glibc's aligned_alloc
 * left when it was freed is too small for the same request again (before 2.38), and the heap grows
 * with each epoch that frees memory and allocates it again. */
static void *host_get(size_t bytes)
{
    char *given = malloc(bytes + CADRE_TENSOR_ALIGN);
    if (given == NULL) {
        return NULL;
    }
    char *block = given + CADRE_TENSOR_ALIGN - (uintptr_t)given % CADRE_TENSOR_ALIGN;
    memcpy(block - sizeof given, &given, sizeof given);
    return block;
}

static void host_give(void *memory, size_t bytes)
{
    char *given = NULL;
    (void)bytes;
    memcpy(&given, (char *)memory - sizeof given, sizeof given);
    free(given);
}

static const struct tensor_memory_ops host_ops = {
    .name = "host", .get = host_get, .give = host_give};

static void *shared_get(size_t bytes);

static const struct tensor_memory_ops shared_ops = {
    .name = "shared", .get = shared_get, .give = arena_give};

static struct depot depots[TENSOR_MEMORY_KINDS] = {
    [TENSOR_MEMORY_HOST] = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .limit = LIMIT_AT_START,
        .ops = &host_ops},
    [TENSOR_MEMORY_PINNED] = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = LIMIT_AT_START},
    [TENSOR_MEMORY_SHARED] = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .limit = LIMIT_AT_START,
        .ops = &shared_ops},
};

static _Thread_local struct thread_memory *own;
static _Thread_local bool own_ended; /* the thread is ending, and has no magazines any more */
static _Thread_local enum tensor_memory_kind preferred;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

/* --- classes --- */

/* The class for `bytes`, at most TENSOR_MEMORY_BYTES_MAX; *ret_size is the size of its blocks. */
static uint32_t class_of(size_t bytes, size_t *ret_size)
{
    bytes = bytes < BYTES_MIN ? BYTES_MIN : bytes;
    if (bytes <= EVEN_BYTES_MAX) {
        size_t steps = (bytes + EVEN_STEP - 1) / EVEN_STEP;
        *ret_size = steps * EVEN_STEP;
        return (uint32_t)(steps - BYTES_MIN / EVEN_STEP);
    }
    uint32_t log = 63 - (uint32_t)__builtin_clzll(bytes - 1);
    if (log >= FINE_LOG) {
        size_t eighth = (bytes - 1) >> (log - 3); /* 8 to 15 */
        *ret_size = (eighth + 1) << (log - 3);
        return MAGAZINE_CLASSES + (log - FINE_LOG) * 8 + (uint32_t)eighth - 8;
    }
    size_t quarter = (bytes - 1) >> (log - 2); /* 4 to 7 */
    *ret_size = (quarter + 1) << (log - 2);
    return EVEN_CLASSES + (log - EVEN_LOG) * 4 + (uint32_t)quarter - 4;
}

/* Bytes of the blocks of a class: the inverse. */
static size_t class_bytes(uint32_t class)
{
    if (class < EVEN_CLASSES) {
        return BYTES_MIN + class * EVEN_STEP;
    }
    if (class >= MAGAZINE_CLASSES) {
        uint32_t fine = class - MAGAZINE_CLASSES;
        return ((size_t)fine % 8 + 9) << (fine / 8 + FINE_LOG - 3);
    }
    uint32_t above = class - EVEN_CLASSES;
    return ((size_t)above % 4 + 5) << (above / 4 + EVEN_LOG - 2);
}

/* --- chains --- */

static void chain_push(struct chain *chain, struct block *block, size_t bytes)
{
    block->next = chain->first;
    chain->first = block;
    chain->count++;
    POISON(block, bytes);
}

static struct block *chain_pop(struct chain *chain, size_t bytes)
{
    struct block *block = chain->first;
    if (block != NULL) {
        UNPOISON(block, bytes);
        chain->first = block->next;
        chain->count--;
    }
    return block;
}

static void chain_move(struct chain *from, struct chain *to, uint64_t count, size_t bytes)
{
    for (; count > 0 && from->first != NULL; count--) {
        chain_push(to, chain_pop(from, bytes), bytes);
    }
}

static void give_to_system(struct depot *depot, struct chain *chain, size_t bytes)
{
    const struct tensor_memory_ops *ops = atomic_load(&depot->ops);
    for (struct block *block; (block = chain_pop(chain, bytes)) != NULL;) {
        atomic_fetch_add_explicit(&depot->gives, 1, memory_order_relaxed);
        ops->give(block, bytes);
    }
}

/* --- the depot --- */

static uint64_t limit_of(struct depot *depot)
{
    uint64_t limit = atomic_load_explicit(&depot->limit, memory_order_relaxed);
    if (limit == LIMIT_UNKNOWN) {
        uint64_t memory = machine_memory();
        uint64_t found =
            memory / 16 < TENSOR_MEMORY_LIMIT_DEFAULT ? memory / 16 : TENSOR_MEMORY_LIMIT_DEFAULT;
        /* A limit that was set meanwhile counts. */
        limit = atomic_compare_exchange_strong(&depot->limit, &limit, found) ? found : limit;
    }
    return limit;
}

/* With the lock held: the class that holds blocks and was not used for the longest. */
static uint32_t stalest_class(const struct depot *depot)
{
    uint32_t stalest = CLASS_COUNT;
    for (uint32_t class = 0; class < CLASS_COUNT; class ++) {
        if (depot->chains[class].count > 0 &&
            (stalest == CLASS_COUNT || depot->used[class] < depot->used[stalest])) {
            stalest = class;
        }
    }
    return stalest;
}

/* Frees blocks to the system until at most `most` bytes are kept. */
static void depot_trim(struct depot *depot, uint64_t most)
{
    for (;;) {
        struct chain dropped = {0};
        size_t bytes = 0;
        pthread_mutex_lock(&depot->lock);
        if (depot->kept > most) {
            uint32_t class = stalest_class(depot);
            CADRE_ASSERT(class < CLASS_COUNT);
            bytes = class_bytes(class);
            chain_move(
                &depot->chains[class], &dropped, (depot->kept - most + bytes - 1) / bytes, bytes);
            depot->kept -= dropped.count * bytes;
        }
        pthread_mutex_unlock(&depot->lock);
        if (dropped.count == 0) {
            return;
        }
        give_to_system(depot, &dropped, bytes);
    }
}

static void depot_put(struct depot *depot, uint32_t class, struct chain *chain, size_t bytes)
{
    uint64_t limit = limit_of(depot);
    if (bytes > limit) {
        give_to_system(depot, chain, bytes);
        return;
    }
    pthread_mutex_lock(&depot->lock);
    depot->kept += chain->count * bytes;
    chain_move(chain, &depot->chains[class], chain->count, bytes);
    bool over = depot->kept > limit;
    pthread_mutex_unlock(&depot->lock);
    if (over) {
        depot_trim(depot, limit);
    }
}

/* Moves up to `count` blocks to `chain`. */
static void depot_take(
    struct depot *depot, uint32_t class, uint64_t count, struct chain *chain, size_t bytes)
{
    pthread_mutex_lock(&depot->lock);
    depot->used[class] = ++depot->clock;
    uint64_t before = chain->count;
    chain_move(&depot->chains[class], chain, count, bytes);
    depot->kept -= (chain->count - before) * bytes;
    pthread_mutex_unlock(&depot->lock);
}

/* --- magazines --- */

static void magazine_flush(struct magazine *magazine, struct depot *depot)
{
    for (uint32_t class = 0; class < MAGAZINE_CLASSES; class ++) {
        if (magazine->chains[class].count > 0) {
            depot_put(depot, class, &magazine->chains[class], class_bytes(class));
        }
    }
    magazine->bytes = 0;
}

static void thread_ends(void *memory)
{
    struct thread_memory *ending = memory;
    own = NULL;
    own_ended = true;
    for (int kind = 0; kind < TENSOR_MEMORY_KINDS; kind++) {
        magazine_flush(&ending->magazines[kind], &depots[kind]);
    }
    free(ending);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_ends) == 0;
}

/* NULL where the thread has none, and can have none. */
static struct magazine *own_magazine(enum tensor_memory_kind kind, bool make)
{
    if (own == NULL && make && !own_ended) {
        pthread_once(&key_once, make_key);
        struct thread_memory *made = key_made ? calloc(1, sizeof *made) : NULL;
        if (made != NULL && pthread_setspecific(key, made) == 0) {
            own = made;
        } else {
            free(made);
        }
    }
    return own == NULL ? NULL : &own->magazines[kind];
}

/* How many blocks of a class a magazine holds. */
static uint64_t magazine_blocks(size_t bytes)
{
    size_t fit = TENSOR_MEMORY_MAGAZINE_BYTES / 8 / bytes;
    return fit < MAGAZINE_BLOCKS ? fit : MAGAZINE_BLOCKS;
}

static struct block *kept_block(
    struct depot *depot, enum tensor_memory_kind kind, uint32_t class, size_t bytes)
{
    struct magazine *magazine = class < MAGAZINE_CLASSES ? own_magazine(kind, true) : NULL;
    struct chain single = {0};
    if (magazine == NULL) {
        depot_take(depot, class, 1, &single, bytes);
        return chain_pop(&single, bytes);
    }
    struct chain *chain = &magazine->chains[class];
    if (chain->count == 0) {
        depot_take(depot, class, magazine_blocks(bytes) / 2, chain, bytes);
        magazine->bytes += chain->count * bytes;
    }
    struct block *block = chain_pop(chain, bytes);
    magazine->bytes -= block != NULL ? bytes : 0;
    return block;
}

static void keep_block(struct depot *depot, enum tensor_memory_kind kind, uint32_t class,
    struct block *block, size_t bytes)
{
    struct magazine *magazine = class < MAGAZINE_CLASSES ? own_magazine(kind, true) : NULL;
    struct chain single = {0};
    if (magazine == NULL) {
        chain_push(&single, block, bytes);
        depot_put(depot, class, &single, bytes);
        return;
    }
    struct chain *chain = &magazine->chains[class];
    chain_push(chain, block, bytes);
    magazine->bytes += bytes;
    if (chain->count > magazine_blocks(bytes)) {
        /* The half that was used last stays. */
        struct chain recent = {0};
        chain_move(chain, &recent, chain->count / 2, bytes);
        magazine->bytes -= chain->count * bytes;
        depot_put(depot, class, chain, bytes);
        *chain = recent;
    } else if (magazine->bytes > TENSOR_MEMORY_MAGAZINE_BYTES) {
        magazine_flush(magazine, depot);
    }
}

/* --- shared memory --- */

/* A forked child does not have the kept blocks of it. */
static void tensor_memory_forked(void)
{
    struct depot *depot = &depots[TENSOR_MEMORY_SHARED];
    pthread_mutex_init(&depot->lock, NULL);
    memset(depot->chains, 0, sizeof depot->chains);
    depot->kept = 0;
    if (own != NULL) {
        own->magazines[TENSOR_MEMORY_SHARED] = (struct magazine){.bytes = 0};
    }
}

static pthread_once_t forked_once = PTHREAD_ONCE_INIT;

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, tensor_memory_forked);
}

static bool shared_open(void)
{
    pthread_once(&forked_once, watch_forks);
    return arena_open(NULL) == CADRE_OK;
}

static void *shared_get(size_t bytes)
{
    return shared_open() ? arena_get(bytes) : NULL;
}

/* --- the functions of tensor_memory.h --- */

cadre_status tensor_memory_register(
    enum tensor_memory_kind kind, const struct tensor_memory_ops *ops, struct cadre_error *error)
{
    CADRE_ASSERT(kind < TENSOR_MEMORY_KINDS && ops != NULL);
    const struct tensor_memory_ops *before = NULL;
    if (!atomic_compare_exchange_strong(&depots[kind].ops, &before, ops) && before != ops) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "memory '%s' cannot be registered as kind %d of tensor memory, which is '%s' already",
            ops->name, (int)kind, before->name);
    }
    return CADRE_OK;
}

enum tensor_memory_kind tensor_memory_prefer(enum tensor_memory_kind kind)
{
    CADRE_ASSERT(kind < TENSOR_MEMORY_KINDS);
    enum tensor_memory_kind before = preferred;
    bool usable =
        kind == TENSOR_MEMORY_SHARED ? shared_open() : atomic_load(&depots[kind].ops) != NULL;
    preferred = usable ? kind : TENSOR_MEMORY_HOST;
    return before;
}

enum tensor_memory_kind tensor_memory_preferred(void)
{
    return preferred;
}

void *tensor_memory_get(enum tensor_memory_kind kind, size_t bytes)
{
    CADRE_ASSERT(kind < TENSOR_MEMORY_KINDS);
    struct depot *depot = &depots[kind];
    const struct tensor_memory_ops *ops = atomic_load_explicit(&depot->ops, memory_order_acquire);
    if (fault_point("tensor.memory") || ops == NULL || bytes > TENSOR_MEMORY_BYTES_MAX) {
        return NULL;
    }
    size_t size = 0;
    uint32_t class = class_of(bytes, &size);
    if (limit_of(depot) > 0) {
        struct block *block = kept_block(depot, kind, class, size);
        if (block != NULL) {
            return block;
        }
    }
    void *memory = ops->get(size);
    if (memory == NULL) {
        tensor_memory_trim(kind, 0);
        memory = ops->get(size);
    }
    if (memory != NULL) {
        atomic_fetch_add_explicit(&depot->gets, 1, memory_order_relaxed);
    }
    return memory;
}

void tensor_memory_give(enum tensor_memory_kind kind, void *memory, size_t bytes)
{
    struct depot *depot = &depots[kind];
    size_t size = 0;
    uint32_t class = class_of(bytes, &size);
    if (limit_of(depot) > 0) {
        keep_block(depot, kind, class, memory, size);
        return;
    }
    atomic_fetch_add_explicit(&depot->gives, 1, memory_order_relaxed);
    atomic_load_explicit(&depot->ops, memory_order_acquire)->give(memory, size);
}

void tensor_memory_limit(enum tensor_memory_kind kind, uint64_t bytes)
{
    atomic_store(&depots[kind].limit, bytes == LIMIT_UNKNOWN ? bytes - 1 : bytes);
    struct magazine *magazine = bytes == 0 ? own_magazine(kind, false) : NULL;
    if (magazine != NULL) {
        magazine_flush(magazine, &depots[kind]);
    }
    depot_trim(&depots[kind], bytes);
}

void tensor_memory_trim(enum tensor_memory_kind kind, uint64_t bytes)
{
    struct magazine *magazine = own_magazine(kind, false);
    if (magazine != NULL) {
        magazine_flush(magazine, &depots[kind]);
    }
    depot_trim(&depots[kind], bytes);
}

struct tensor_memory_counts tensor_memory_counts(enum tensor_memory_kind kind)
{
    struct depot *depot = &depots[kind];
    pthread_mutex_lock(&depot->lock);
    uint64_t kept = depot->kept;
    pthread_mutex_unlock(&depot->lock);
    return (struct tensor_memory_counts){
        .gets = atomic_load(&depot->gets), .gives = atomic_load(&depot->gives), .kept = kept};
}
