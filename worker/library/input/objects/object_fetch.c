/* SPDX-License-Identifier: Apache-2.0
 * See object_fetch.h. */
#include "worker/library/input/objects/object_fetch.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/pure/object_path.h"
#include "worker/library/input/objects/disk_cache_space.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_neighbours.h"

static enum block_state state_of(const struct object *object, uint64_t number)
{
    return atomic_load_explicit(&object->blocks[number].word, memory_order_relaxed) & BLOCK_STATES;
}

/* A block in the system's own cache takes some tens of microseconds. */
#define DISK_SLOW_US  UINT64_C(1000)
#define DISK_PAUSE_US CADRE_US_PER_S

static atomic_uint_fast64_t disk_slow_until_us; /* 0: it is not slow */

void object_fetch_waited(uint64_t us)
{
    if (us > DISK_SLOW_US || fault_point("input.disk-slow")) {
        atomic_store_explicit(
            &disk_slow_until_us, clock_monotonic_us() + DISK_PAUSE_US, memory_order_relaxed);
    }
}

static bool disk_is_slow(void)
{
    uint64_t until_us = atomic_load_explicit(&disk_slow_until_us, memory_order_relaxed);
    if (until_us == 0 || clock_monotonic_us() < until_us) {
        return until_us != 0;
    }
    atomic_store_explicit(&disk_slow_until_us, 0, memory_order_relaxed);
    return false;
}

bool object_fetch_stays_on_disk(const struct object *object, uint64_t number)
{
    uint32_t word = atomic_load_explicit(&object->blocks[number].word, memory_order_relaxed);
    return (word & BLOCK_ON_DISK) != 0 && (word & BLOCK_STATES) == BLOCK_EMPTY &&
           object_memory_held() >= object_memory_limit() && !disk_is_slow();
}

/* What was read ahead and failed is an error of those who wait for it, and of no one else. */
static void object_fetch_notify(struct object *object, uint64_t first, uint64_t count,
    cadre_status status, const struct cadre_error *failure)
{
    for (struct block_waiter *waiter = object->waiters; waiter != NULL; waiter = waiter->next) {
        if (status != CADRE_OK && waiter->number - first < count) {
            waiter->status = status;
            if (waiter->error != NULL) {
                *waiter->error = *failure;
            }
        }
    }
    pthread_cond_broadcast(&object_changed);
}

/* OUT_OF_RANGE would be the end of the data for those who read records. */
static cadre_status explain(
    const struct object *object, cadre_status status, struct cadre_error *error)
{
    return status != CADRE_OUT_OF_RANGE ? status
                                        : cadre_error_wrap(error, CADRE_DATA_LOSS,
                                              "%.*s is shorter than it was when it was opened",
                                              (int)object_url_shown(object->path), object->path);
}

cadre_status object_fetch_bytes(
    const struct object *object, uint64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    return explain(object, storage_read(object->storage, offset, to, bytes, error), error);
}

static size_t bytes_of(const struct object *object, uint64_t first, uint64_t count)
{
    uint64_t left = object->bytes - first * OBJECT_BLOCK_BYTES;
    uint64_t bytes = count * OBJECT_BLOCK_BYTES;
    return (size_t)(bytes < left ? bytes : left);
}

static void mark_on_disk(const struct object *object, uint64_t number)
{
    atomic_fetch_or_explicit(&object->blocks[number].word, BLOCK_ON_DISK, memory_order_relaxed);
}

static void note_on_disk(void *user, uint64_t number)
{
    const struct object *object = user;
    if (number < object->block_count) {
        mark_on_disk(object, number);
    }
}

void object_fetch_look(struct object *object)
{
    if (!atomic_exchange(&object->looked, true)) {
        disk_cache_list(&object->disk, note_on_disk, object);
    }
}

/* From the store, or from the task that asks it for them; and to the disk, where what is another
 * task's has its place only while there is much room. */
static cadre_status object_fetch_run_of(
    const struct object *object, uint64_t first, uint64_t count, struct cadre_error *error)
{
    uint64_t offset = first * OBJECT_BLOCK_BYTES;
    void *places[AHEAD_RUN_MAX];
    CADRE_ASSERT(count > 0 && count <= AHEAD_RUN_MAX);
    for (uint64_t i = 0; i < count; i++) {
        places[i] = object_block_bytes(&object->blocks[first + i]);
    }
    size_t bytes = bytes_of(object, first, count);
    bool copied = object_neighbours_read(object, offset, places, bytes);
    if (!copied) {
        CADRE_TRY(explain(object,
            storage_read_pieces(object->storage, offset, places, OBJECT_BLOCK_BYTES, bytes, error),
            error));
    }
    for (uint64_t i = 0; i < count && (!copied || disk_cache_space_is_wide()); i++) {
        if (disk_cache_write(&object->disk, first + i, places[i], bytes_of(object, first + i, 1))) {
            mark_on_disk(object, first + i);
        }
    }
    return CADRE_OK;
}

static cadre_status object_fetch_remote(
    const struct object *object, uint64_t first, uint64_t count, struct cadre_error *error)
{
    for (uint64_t end = first + count; first < end;) {
        uint64_t run = object_neighbours_run(first, end - first);
        CADRE_TRY(object_fetch_run_of(object, first, run, error));
        first += run;
    }
    return CADRE_OK;
}

/* What is on the disk comes from there, the runs between from the store. */
static cadre_status object_fetch_blocks(
    const struct object *object, uint64_t first, uint64_t count, struct cadre_error *error)
{
    uint64_t missing = 0; /* before block i */
    for (uint64_t i = 0; i < count; i++) {
        char *to = object_block_bytes(&object->blocks[first + i]);
        if (disk_cache_read(&object->disk, first + i, to, bytes_of(object, first + i, 1),
                &object->blocks[first + i].checked)) {
            CADRE_TRY(object_fetch_remote(object, first + i - missing, missing, error));
            missing = 0;
            mark_on_disk(object, first + i);
        } else {
            missing++;
        }
    }
    return object_fetch_remote(object, first + count - missing, missing, error);
}

/* Reads blocks that are being filled; without the lock meanwhile. */
static cadre_status object_fetch_run(
    struct object *object, uint64_t first, uint64_t count, struct cadre_error *error)
{
    struct cadre_error failure = {0};
    pthread_mutex_unlock(&object_lock);
    cadre_status status = object_fetch_blocks(object, first, count, &failure);
    pthread_mutex_lock(&object_lock);
    for (uint64_t i = 0; i < count; i++) {
        object_block_filled(object, first + i, status == CADRE_OK);
    }
    object_fetch_notify(object, first, count, status, &failure);
    if (status != CADRE_OK && error != NULL) {
        *error = failure;
    }
    return status;
}

static void object_fetch_forget(struct fetch *fetch)
{
    struct object *object = fetch->object;
    struct fetch **link = &object->fetches;
    while (*link != fetch) {
        link = &(*link)->next;
    }
    *link = fetch->next;
    free(fetch);
    object_unreference(object);
}

/* A thread of the queue runs it. */
static void object_fetch_work(struct work *work)
{
    struct fetch *fetch = (struct fetch *)work;
    pthread_mutex_lock(&object_lock);
    (void)object_fetch_run(fetch->object, fetch->first, fetch->count, NULL);
    object_fetch_forget(fetch);
    pthread_mutex_unlock(&object_lock);
}

/* The blocks are empty again, and those who wait for them read them themselves. */
static void object_fetch_undo(struct fetch *fetch)
{
    for (uint64_t i = 0; i < fetch->count; i++) {
        object_block_filled(fetch->object, fetch->first + i, false);
    }
    object_fetch_forget(fetch);
    pthread_cond_broadcast(&object_changed);
}

/* Claims empty blocks from `first` on; *ret_full: there is no room for another one. */
static uint64_t claim_run(struct object *object, uint64_t first, uint64_t count, bool *ret_full)
{
    uint64_t claimed = 0;
    count = object_neighbours_run(first, count < AHEAD_RUN_MAX ? count : AHEAD_RUN_MAX);
    while (claimed < count && state_of(object, first + claimed) == BLOCK_EMPTY) {
        if (!object_block_claim(object, first + claimed)) {
            *ret_full = true;
            break;
        }
        claimed++;
    }
    return claimed;
}

uint64_t object_fetch_ask(
    struct object *object, uint64_t first, uint64_t count, enum work_rank rank, const void *reader)
{
    uint64_t done = 0;
    bool full = false;
    CADRE_ASSERT(first + count <= object->block_count);
    while (done < count && !full) {
        if (state_of(object, first + done) != BLOCK_EMPTY ||
            object_fetch_stays_on_disk(object, first + done)) {
            done++;
            continue;
        }
        struct fetch *fetch = fault_point("input.object") ? NULL : calloc(1, sizeof *fetch);
        uint64_t claimed = fetch == NULL ? 0 : claim_run(object, first + done, count - done, &full);
        if (claimed == 0) {
            free(fetch);
            break;
        }
        *fetch = (struct fetch){.work = {.run = object_fetch_work},
            .object = object,
            .first = first + done,
            .count = claimed,
            .reader = reader,
            .next = object->fetches};
        object->fetches = fetch;
        object->references++;
        if (!work_queue_add(&fetch->work, rank)) {
            object_fetch_undo(fetch);
            break;
        }
        done += claimed;
    }
    return done;
}

void object_fetch_cancel(struct object *object, const void *reader)
{
    struct fetch *next = NULL;
    for (struct fetch *fetch = object->fetches; fetch != NULL; fetch = next) {
        next = fetch->next;
        if (fetch->reader == reader && work_queue_remove(&fetch->work)) {
            object_fetch_undo(fetch);
        }
    }
}

static struct fetch *find_fetch(struct object *object, uint64_t number)
{
    struct fetch *fetch = object->fetches;
    while (fetch != NULL && number - fetch->first >= fetch->count) {
        fetch = fetch->next;
    }
    return fetch;
}

cadre_status object_fetch_wait(struct object *object, uint64_t number, struct cadre_error *error)
{
    struct fetch *fetch = find_fetch(object, number);
    if (fetch != NULL && work_queue_remove(&fetch->work)) {
        cadre_status status = object_fetch_run(object, fetch->first, fetch->count, error);
        object_fetch_forget(fetch);
        return status;
    }
    struct block_waiter waiter = {.number = number, .error = error, .next = object->waiters};
    object->waiters = &waiter;
    while (waiter.status == CADRE_OK && state_of(object, number) == BLOCK_FILLING) {
        pthread_cond_wait(&object_changed, &object_lock);
    }
    struct block_waiter **link = &object->waiters;
    while (*link != &waiter) {
        link = &(*link)->next;
    }
    *link = waiter.next;
    return waiter.status;
}

cadre_status object_fetch_block(struct object *object, uint64_t number, struct cadre_error *error)
{
    return object_fetch_run(object, number, 1, error);
}
