/* SPDX-License-Identifier: Apache-2.0
 * A window of pieces from the one on that the caller reads; piece p is in slot p % PIECES. Threads
 * fill slots; only the caller moves the window. It grows while the caller goes on, and begins again
 * with one piece where it jumps. common/checkpoint and the worker's library call it. */
#include "common/storage/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "common/pure/object_path.h"

#define PIECE_BYTES ((size_t)4 << 20)
#define PIECES      8

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_READY };

struct slot {
    enum slot_state state;
    uint64_t piece;             /* unless it is free */
    char *bytes;                /* PIECE_BYTES; NULL: not used yet */
    struct cadre_error failure; /* of the piece; code OK: it is there */
};

struct storage_ahead {
    const struct storage_object *object;
    uint64_t bytes; /* of the object */
    struct slot slots[PIECES];
    uint64_t first;  /* piece of the window */
    uint64_t window; /* pieces of it, 1 to PIECES */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t readers[PIECES];
    unsigned reader_count; /* 0: pieces are read by the caller */
    bool begun;
    bool closing;
};

/* ---- threads ---- */

/* The first piece of the window that is neither there nor on its way. NULL: none. Under the lock.
 */
static struct slot *take_piece(struct storage_ahead *ahead)
{
    for (uint64_t piece = ahead->first; piece < ahead->first + ahead->window; piece++) {
        struct slot *slot = &ahead->slots[piece % PIECES];
        bool is_there = slot->state == SLOT_READY && slot->piece == piece;
        if (piece * PIECE_BYTES < ahead->bytes && slot->state != SLOT_BUSY && !is_there) {
            slot->piece = piece;
            slot->state = SLOT_BUSY;
            return slot;
        }
    }
    return NULL;
}

/* On large pages where there are some: a page fault for each 4 KiB costs as much as their copy. */
static char *piece_memory(void)
{
    char *memory = aligned_alloc(HUGE_PAGE_BYTES, PIECE_BYTES);
    if (memory != NULL) {
        (void)madvise(memory, PIECE_BYTES, MADV_HUGEPAGE);
    }
    return memory;
}

static cadre_status fill(
    const struct storage_ahead *ahead, struct slot *slot, struct cadre_error *error)
{
    uint64_t offset = slot->piece * PIECE_BYTES;
    uint64_t left = ahead->bytes - offset;
    if (slot->bytes == NULL) {
        slot->bytes = piece_memory();
    }
    if (slot->bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to read %.*s ahead: a piece has %zu bytes",
            (int)object_url_shown(storage_path_of(ahead->object)), storage_path_of(ahead->object),
            PIECE_BYTES);
    }
    return storage_read(
        ahead->object, offset, slot->bytes, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, error);
}

static void *read_pieces(void *user)
{
    struct storage_ahead *ahead = user;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->closing) {
        struct slot *slot = take_piece(ahead);
        if (slot == NULL) {
            pthread_cond_wait(&ahead->changed, &ahead->lock);
            continue;
        }
        struct cadre_error failure = {0};
        pthread_mutex_unlock(&ahead->lock);
        (void)fill(ahead, slot, &failure);
        pthread_mutex_lock(&ahead->lock);
        slot->failure = failure;
        slot->state = SLOT_READY;
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* No thread that starts is no failure: then the caller reads. */
static void begin(struct storage_ahead *ahead)
{
    uint64_t count = (ahead->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    bool ahead_of = count > 1 && storage_is_object(storage_path_of(ahead->object));
    int errnum = 0;
    ahead->begun = true;
    while (ahead_of && ahead->reader_count < PIECES && ahead->reader_count < count && errnum == 0) {
        errnum = thread_start(&ahead->readers[ahead->reader_count], read_pieces, ahead);
        ahead->reader_count += errnum == 0 ? 1 : 0;
    }
}

/* ---- the interface ---- */

cadre_status storage_ahead_open(const struct storage_object *object,
    struct storage_ahead **ret_ahead, struct cadre_error *error)
{
    struct storage_ahead *ahead = calloc(1, sizeof *ahead);
    *ret_ahead = ahead;
    if (ahead == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read %.*s",
            (int)object_url_shown(storage_path_of(object)), storage_path_of(object));
    }
    ahead->object = object;
    ahead->bytes = storage_info_of(object)->bytes;
    ahead->window = 1;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    return CADRE_OK;
}

/* Under the lock. */
static void move_window(struct storage_ahead *ahead, uint64_t piece)
{
    bool goes_on = piece > ahead->first && piece <= ahead->first + ahead->window;
    uint64_t grown = ahead->window * 2 < PIECES ? ahead->window * 2 : PIECES;
    ahead->window = goes_on ? grown : 1;
    ahead->first = piece;
    pthread_cond_broadcast(&ahead->changed);
}

/* Waits for the piece, which is the first of the window then. It is the caller's until the window
 * moves. */
static cadre_status await_piece(
    struct storage_ahead *ahead, uint64_t piece, const char **ret_bytes, struct cadre_error *error)
{
    struct slot *slot = &ahead->slots[piece % PIECES];
    pthread_mutex_lock(&ahead->lock);
    if (ahead->first != piece) {
        move_window(ahead, piece);
    }
    while (slot->state != SLOT_READY || slot->piece != piece) {
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    pthread_mutex_unlock(&ahead->lock);
    *ret_bytes = slot->bytes;
    if (slot->failure.code != CADRE_OK) {
        *error = slot->failure;
    }
    return slot->failure.code;
}

cadre_status storage_ahead_read(
    struct storage_ahead *ahead, uint64_t offset, void *to, size_t bytes, struct cadre_error *error)
{
    char *into = to;
    if (!ahead->begun) {
        begin(ahead);
    }
    if (ahead->reader_count == 0 || offset > ahead->bytes || bytes > ahead->bytes - offset) {
        return storage_read(ahead->object, offset, to, bytes, error);
    }
    while (bytes > 0) {
        const char *from = NULL;
        size_t inside = (size_t)(offset % PIECE_BYTES);
        size_t count = bytes < PIECE_BYTES - inside ? bytes : PIECE_BYTES - inside;
        CADRE_TRY(await_piece(ahead, offset / PIECE_BYTES, &from, error));
        CADRE_ASSERT(from != NULL);
        memcpy(into, from + inside, count);
        into += count;
        offset += count;
        bytes -= count;
    }
    return CADRE_OK;
}

void storage_ahead_close(struct storage_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    pthread_mutex_lock(&ahead->lock);
    ahead->closing = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    for (unsigned i = 0; i < ahead->reader_count; i++) {
        pthread_join(ahead->readers[i], NULL);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        free(ahead->slots[i].bytes);
    }
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}
