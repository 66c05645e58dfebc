/* SPDX-License-Identifier: Apache-2.0
 * The memory of all objects, inside this folder: which blocks are where. It is one range of the
 * budget's size, of which each slot of the clock is the place of one block; pages are used from its
 * start on, and stay. A block in memory is found without a lock. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_OBJECT_MEMORY_H
#define CADRE_WORKER_INPUT_OBJECTS_OBJECT_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/storage/storage.h"
#include "worker/library/input/objects/disk_cache.h"
#include "worker/library/input/objects/work_queue.h"

/* The word of a block: its state, whether it was used, whether it was seen on the disk, and in
 * steps of BLOCK_PIN how many threads look at it. */
enum block_state { BLOCK_EMPTY = 0, BLOCK_FILLING = 1, BLOCK_READY = 2, BLOCK_STATES = 3 };
#define BLOCK_USED    ((uint32_t)4)
#define BLOCK_ON_DISK ((uint32_t)8)
#define BLOCK_PIN     ((uint32_t)16)

struct object_block {
    _Atomic uint32_t word;
    _Atomic uint32_t slot; /* of the clock, unless it is empty */
    disk_checked checked;
};

/* Blocks of one object that are asked for at once. */
struct fetch {
    struct work work;
    struct object *object;
    uint64_t first;
    uint64_t count;
    const void *reader; /* who reads ahead; NULL: no one does */
    struct fetch *next; /* of the same object */
};

/* A thread that waits for a block; on its stack. */
struct block_waiter {
    uint64_t number;
    cadre_status status; /* of fetching it */
    struct cadre_error *error;
    struct block_waiter *next;
};

struct object {
    char *path;
    struct storage_object *storage;
    struct disk_cache_key disk;
    uint64_t bytes;
    uint64_t block_count;
    struct object_block *blocks;
    atomic_bool looked; /* which blocks are on the disk already */
    /* Under the lock. */
    uint32_t references; /* of the table, of those who opened it, of fetches */
    uint32_t users;      /* who opened it */
    bool in_table;
    uint64_t expected_us; /* it was looked up at this time, and not opened since; 0: not so */
    uint64_t idle_since;  /* serial number, while it has no users */
    struct fetch *fetches;
    struct block_waiter *waiters;
    struct object *next; /* in the table */
};

/* Guards all objects. */
extern pthread_mutex_t object_lock;
/* Broadcast when a fetch or a lookup has ended. */
extern pthread_cond_t object_changed;

/* Reads the budget from the environment, once. */
cadre_status object_memory_prepare(struct cadre_error *error);

/* For tests, while no object is open: the budget from now on, in bytes; 0: what the environment
 * says. */
void object_memory_set_limit(uint64_t bytes);

/* Blocks that the budget has room for, and that are held now. Any thread. */
uint64_t object_memory_limit(void);
uint64_t object_memory_held(void);

/* Where the block's bytes are: of one that is being filled, or is ready and pinned. */
char *object_block_bytes(const struct object_block *block);

/* Takes the looked-up object over, with its storage; NULL: no memory, and nothing is taken. One
 * reference, the caller's. */
struct object *object_new(const char *path, struct storage_object *storage);

/* For tests: what no one has open is not kept. */
void object_table_clear(void);

/* --- under the lock --- */

/* Takes room for an empty block, which is being filled from then on. False: there is none. */
bool object_block_claim(struct object *object, uint64_t number);
/* The block that was being filled is ready, or empty again. */
void object_block_filled(struct object *object, uint64_t number, bool ready);
/* Frees it with the last one. */
void object_unreference(struct object *object);

#endif
