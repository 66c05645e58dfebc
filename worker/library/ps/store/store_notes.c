/* SPDX-License-Identifier: Apache-2.0
 * Texts by name. A text that replaces another one reuses the memory of the one before that, where
 * it has room: the current text stays whole until the new one is. */
#include <string.h>

#include "worker/library/ps/store/store_internal.h"

static struct image_note *store_notes_find(
    const struct store *store, const char *name, image_atomic **ret_link)
{
    image_atomic *link = &store->head->notes;
    for (;;) {
        uint64_t at = atomic_load_explicit(link, memory_order_acquire);
        if (at == 0) {
            *ret_link = link;
            return NULL;
        }
        struct image_note *note = store_at(store, at);
        if (strcmp(note->name, name) == 0) {
            return note;
        }
        link = &note->next;
    }
}

static void write_text(struct image_text *text, const void *bytes, size_t count)
{
    text->bytes = count;
    if (count != 0) {
        memcpy(text->text, bytes, count);
    }
    text->sum = image_checksum(count, bytes, count);
    store_order_point();
}

static cadre_status new_text(struct store *store, const char *name, size_t count, uint64_t *ret_at,
    struct cadre_error *error)
{
    CADRE_TRY(store_alloc(
        store, sizeof(struct image_text) + count, ret_at, error, "the description of `%s`", name));
    struct image_text *text = store_at(store, *ret_at);
    text->room = count;
    return CADRE_OK;
}

static cadre_status store_notes_append(struct store *store, image_atomic *link, const char *name,
    const void *bytes, size_t count, struct cadre_error *error)
{
    uint64_t text_at = 0;
    uint64_t at = 0;
    CADRE_TRY(new_text(store, name, count, &text_at, error));
    CADRE_TRY(store_alloc(store, sizeof(struct image_note), &at, error, "the name `%s`", name));
    write_text(store_at(store, text_at), bytes, count);
    struct image_note *note = store_at(store, at);
    memcpy(note->name, name, strlen(name));
    note->sum = image_checksum(at, note->name, sizeof note->name);
    atomic_store(&note->text, text_at);
    store_order_point();
    atomic_store_explicit(link, at, memory_order_release);
    return CADRE_OK;
}

static cadre_status store_notes_replace(struct store *store, struct image_note *note,
    const void *bytes, size_t count, struct cadre_error *error)
{
    uint64_t old = atomic_load(&note->text);
    uint64_t at = atomic_load(&note->spare);
    if (at == 0 || ((struct image_text *)store_at(store, at))->room < count) {
        CADRE_TRY(new_text(store, note->name, count, &at, error));
    }
    atomic_store(&note->spare, 0);
    store_order_point();
    write_text(store_at(store, at), bytes, count);
    atomic_store_explicit(&note->text, at, memory_order_release);
    store_order_point();
    atomic_store_explicit(&note->spare, old, memory_order_release);
    return CADRE_OK;
}

cadre_status store_note(struct store *store, const char *name, const void *bytes, size_t count,
    struct cadre_error *error)
{
    size_t length = strlen(name);
    if (length == 0 || length >= STORE_NAME_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a note's name has 1 to %zu bytes, and this one %zu", (size_t)STORE_NAME_BYTES - 1,
            length);
    }
    pthread_mutex_lock(&store->creation);
    image_atomic *link = NULL;
    struct image_note *note = store_notes_find(store, name, &link);
    cadre_status status = note == NULL ? store_notes_append(store, link, name, bytes, count, error)
                                       : store_notes_replace(store, note, bytes, count, error);
    pthread_mutex_unlock(&store->creation);
    return status;
}

const void *store_note_find(const struct store *store, const char *name, size_t *ret_count)
{
    image_atomic *link = NULL;
    const struct image_note *note = store_notes_find(store, name, &link);
    if (note == NULL) {
        *ret_count = 0;
        return NULL;
    }
    const struct image_text *text =
        store_at(store, atomic_load_explicit(&note->text, memory_order_acquire));
    *ret_count = (size_t)text->bytes;
    return text->text;
}

const char *store_note_at(const struct store *store, uint32_t i)
{
    uint64_t at = atomic_load_explicit(&store->head->notes, memory_order_acquire);
    for (; at != 0 && i != 0; i--) {
        at = atomic_load_explicit(
            &((struct image_note *)store_at(store, at))->next, memory_order_acquire);
    }
    return at == 0 ? NULL : ((struct image_note *)store_at(store, at))->name;
}
