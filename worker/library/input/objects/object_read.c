/* SPDX-License-Identifier: Apache-2.0
 * Reading objects; see object.h. A block in memory is found by two atomic additions; all else is
 * under the lock. */
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_fetch.h"

#define CACHE_LINE         64
#define PREFETCH_BYTES_MAX 512

/* Who read ahead, of all objects. */
static _Atomic uint32_t readers_ahead;

static uint64_t block_of(uint64_t offset)
{
    return offset / OBJECT_BLOCK_BYTES;
}

/* Copies bytes of one block, if it is ready. */
static bool copy_ready(struct object *object, uint64_t offset, void *to, size_t bytes)
{
    struct object_block *block = &object->blocks[block_of(offset)];
    uint32_t word = atomic_fetch_add_explicit(&block->word, BLOCK_PIN, memory_order_acquire);
    bool ready = (word & BLOCK_STATES) == BLOCK_READY;
    if (ready) {
        memcpy(to, object_block_bytes(block) + offset % OBJECT_BLOCK_BYTES, bytes);
        if ((word & BLOCK_USED) == 0) {
            atomic_fetch_or_explicit(&block->word, BLOCK_USED, memory_order_relaxed);
        }
    }
    atomic_fetch_sub_explicit(&block->word, BLOCK_PIN, memory_order_release);
    return ready;
}

/* Copies bytes of one block from the disk, where that is its place. */
static bool copy_from_disk(struct object *object, uint64_t offset, void *to, size_t bytes)
{
    uint64_t number = block_of(offset);
    if (!object_fetch_stays_on_disk(object, number)) {
        return false;
    }
    uint64_t left = object->bytes - number * OBJECT_BLOCK_BYTES;
    uint64_t begun_us = clock_monotonic_us();
    bool there = disk_cache_read_range(&object->disk, number,
        left < OBJECT_BLOCK_BYTES ? (size_t)left : OBJECT_BLOCK_BYTES,
        (size_t)(offset % OBJECT_BLOCK_BYTES), to, bytes, &object->blocks[number].checked);
    object_fetch_waited(clock_monotonic_us() - begun_us);
    if (!there) {
        atomic_fetch_and_explicit(
            &object->blocks[number].word, ~BLOCK_ON_DISK, memory_order_relaxed);
    }
    return there;
}

/* Copies bytes of one block that was not ready. There is always a way on: where all room is taken
 * they are read past it. */
static cadre_status copy_missing(
    struct object *object, uint64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    uint64_t number = block_of(offset);
    while (!copy_ready(object, offset, to, bytes)) {
        cadre_status status = CADRE_OK;
        bool past = false;
        if (copy_from_disk(object, offset, to, bytes)) {
            return CADRE_OK;
        }
        pthread_mutex_lock(&object_lock);
        uint32_t word = atomic_load_explicit(&object->blocks[number].word, memory_order_relaxed);
        if ((word & BLOCK_STATES) == BLOCK_FILLING) {
            status = object_fetch_wait(object, number, error);
        } else if ((word & BLOCK_STATES) == BLOCK_EMPTY) {
            past = !object_block_claim(object, number);
            status = past ? CADRE_OK : object_fetch_block(object, number, error);
        }
        pthread_mutex_unlock(&object_lock);
        if (past) {
            return object_fetch_bytes(object, offset, to, bytes, error);
        }
        CADRE_TRY(status);
    }
    return CADRE_OK;
}

static bool is_ready(const struct object *object, uint64_t number)
{
    uint32_t word = atomic_load_explicit(&object->blocks[number].word, memory_order_acquire);
    return (word & BLOCK_STATES) == BLOCK_READY;
}

static void object_ask_ranked(
    struct object *object, uint64_t offset, uint64_t bytes, enum work_rank rank)
{
    uint64_t first = block_of(offset);
    uint64_t end = bytes == 0 ? first : block_of(offset + bytes - 1) + 1;
    CADRE_ASSERT(offset + bytes <= object->bytes);
    while (first < end && (is_ready(object, first) || object_fetch_stays_on_disk(object, first))) {
        first++;
    }
    if (first < end) {
        pthread_mutex_lock(&object_lock);
        (void)object_fetch_ask(object, first, end - first, rank, NULL);
        pthread_mutex_unlock(&object_lock);
    }
}

void object_ask(struct object *object, uint64_t offset, uint64_t bytes)
{
    object_ask_ranked(object, offset, bytes, WORK_WAITED_FOR);
}

void object_prefetch(const struct object *object, uint64_t offset, uint64_t bytes)
{
    if (offset < object->bytes && is_ready(object, block_of(offset))) {
        /* It may go meanwhile: these are other bytes then, of memory that is there. */
        const char *bytes_at =
            object_block_bytes(&object->blocks[block_of(offset)]) + offset % OBJECT_BLOCK_BYTES;
        uint64_t end = bytes < PREFETCH_BYTES_MAX ? bytes : PREFETCH_BYTES_MAX;
        for (uint64_t i = 0; i < end; i += CACHE_LINE) {
            __builtin_prefetch(bytes_at + i);
        }
    }
}

cadre_status object_read(
    struct object *object, uint64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    char *at = to;
    CADRE_ASSERT(offset + bytes <= object->bytes);
    if (bytes > OBJECT_BLOCK_BYTES) {
        object_ask(object, offset, bytes); /* the blocks of it at the same time */
    }
    while (bytes > 0) {
        size_t left = OBJECT_BLOCK_BYTES - (size_t)(offset % OBJECT_BLOCK_BYTES);
        size_t count = bytes < left ? bytes : left;
        if (!copy_ready(object, offset, at, count)) {
            CADRE_TRY(copy_missing(object, offset, at, count, error));
        }
        offset += count;
        at += count;
        bytes -= count;
    }
    return CADRE_OK;
}

/* The block that a piece lies in, pinned; NULL: it lies in several, or the block is not ready. */
static struct object_block *pin_piece(const struct object_piece *piece, bool *ret_used)
{
    if (piece->bytes > OBJECT_BLOCK_BYTES - (size_t)(piece->offset % OBJECT_BLOCK_BYTES)) {
        return NULL;
    }
    struct object_block *block = &piece->object->blocks[block_of(piece->offset)];
    uint32_t word = atomic_fetch_add_explicit(&block->word, BLOCK_PIN, memory_order_acquire);
    *ret_used = (word & BLOCK_USED) != 0;
    if ((word & BLOCK_STATES) == BLOCK_READY) {
        return block;
    }
    atomic_fetch_sub_explicit(&block->word, BLOCK_PIN, memory_order_relaxed);
    return NULL;
}

/* All blocks are pinned before the first copy: an atomic addition between two copies would wait
 * until memory has answered the first one. */
cadre_status object_read_pieces(
    const struct object_piece pieces[], size_t count, size_t *ret_done, struct cadre_error *error)
{
    struct object_block *pinned[OBJECT_PIECES_MAX];
    bool used[OBJECT_PIECES_MAX];
    CADRE_ASSERT(count <= OBJECT_PIECES_MAX);
    for (size_t i = 0; i < count; i++) {
        pinned[i] = pin_piece(&pieces[i], &used[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (pinned[i] != NULL) {
            memcpy(pieces[i].to,
                object_block_bytes(pinned[i]) + pieces[i].offset % OBJECT_BLOCK_BYTES,
                pieces[i].bytes);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (pinned[i] != NULL && !used[i]) {
            atomic_fetch_or_explicit(&pinned[i]->word, BLOCK_USED, memory_order_relaxed);
        }
        if (pinned[i] != NULL) {
            atomic_fetch_sub_explicit(&pinned[i]->word, BLOCK_PIN, memory_order_release);
        }
    }
    for (*ret_done = 0; *ret_done < count; ++*ret_done) {
        const struct object_piece *piece = &pieces[*ret_done];
        if (pinned[*ret_done] == NULL) {
            CADRE_TRY(object_read(piece->object, piece->offset, piece->to, piece->bytes, error));
        }
    }
    return CADRE_OK;
}

/* --- in order --- */

/* Blocks that each of those who read ahead may have ahead: half of all room is theirs. */
static uint64_t ahead_limit(void)
{
    uint32_t readers = atomic_load_explicit(&readers_ahead, memory_order_relaxed);
    uint64_t limit = object_memory_limit() / 2 / (readers > 0 ? readers : 1);
    return limit > 0 ? limit : 1;
}

static void ask_ahead(struct object_ahead *ahead, uint64_t wanted)
{
    struct object *object = ahead->object;
    uint64_t limit = ahead_limit();
    struct block_run run = ahead_window_next(&ahead->window, wanted, object->block_count, limit);
    if (run.count == 0) {
        return;
    }
    pthread_mutex_lock(&object_lock);
    while (run.count > 0) {
        struct block_run asked = {.first = run.first};
        asked.count = object_fetch_ask(object, run.first, run.count, WORK_AHEAD, ahead);
        ahead_window_asked(&ahead->window, asked);
        run = asked.count < run.count
                  ? (struct block_run){0}
                  : ahead_window_next(&ahead->window, wanted, object->block_count, limit);
    }
    pthread_mutex_unlock(&object_lock);
}

/* What was passed makes room before all else. */
static void pass_blocks(struct object_ahead *ahead, uint64_t end)
{
    for (; ahead->passed < end; ahead->passed++) {
        atomic_fetch_and_explicit(
            &ahead->object->blocks[ahead->passed].word, ~BLOCK_USED, memory_order_relaxed);
    }
}

cadre_status object_read_on(struct object *object, struct object_ahead *ahead, uint64_t offset,
    void *to, size_t bytes, struct cadre_error *error)
{
    uint64_t first = block_of(offset);
    if (bytes == 0) {
        return CADRE_OK;
    }
    if (ahead->object == NULL) {
        ahead->object = object;
        atomic_fetch_add_explicit(&readers_ahead, 1, memory_order_relaxed);
    }
    if (!ahead_window_move(&ahead->window, first)) {
        pthread_mutex_lock(&object_lock);
        object_fetch_cancel(object, ahead);
        pthread_mutex_unlock(&object_lock);
        ahead->passed = first;
    }
    ask_ahead(ahead, block_of(offset + bytes - 1) + 1 - first);
    CADRE_TRY(object_read(object, offset, to, bytes, error));
    pass_blocks(ahead, block_of(offset + bytes));
    return CADRE_OK;
}

void object_ahead_end(struct object_ahead *ahead)
{
    if (ahead->object != NULL) {
        pthread_mutex_lock(&object_lock);
        object_fetch_cancel(ahead->object, ahead);
        pthread_mutex_unlock(&object_lock);
        atomic_fetch_sub_explicit(&readers_ahead, 1, memory_order_relaxed);
        *ahead = (struct object_ahead){0};
    }
}
