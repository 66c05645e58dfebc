/* SPDX-License-Identifier: Apache-2.0
 * Texts by name. A text that replaces another one takes the place of the one before that, where it
 * has room: what was noted last stays whole until the new one is. */
#include <string.h>

#include "worker/library/ps/store_parts.h"

static struct kept_note *find(const struct store *store, const char *name, kept_word **ret_link)
{
    kept_word *link = &store->head->notes;
    for (;;) {
        uint64_t at = atomic_load_explicit(link, memory_order_acquire);
        if (at == 0) {
            *ret_link = link;
            return NULL;
        }
        struct kept_note *note = store_at(store, at);
        if (strcmp(note->name, name) == 0) {
            return note;
        }
        link = &note->next;
    }
}

static void write_text(struct kept_text *text, const void *bytes, size_t count)
{
    text->bytes = count;
    if (count != 0) {
        memcpy(text->text, bytes, count);
    }
    text->sum = kept_sum(count, bytes, count);
    store_point();
}

static cadre_status new_text(struct store *store, const char *name, size_t count, uint64_t *ret_at,
    struct cadre_error *error)
{
    CADRE_TRY(store_allot(
        store, sizeof(struct kept_text) + count, ret_at, error, "the description of `%s`", name));
    struct kept_text *text = store_at(store, *ret_at);
    text->room = count;
    return CADRE_OK;
}

static cadre_status append(struct store *store, kept_word *link, const char *name,
    const void *bytes, size_t count, struct cadre_error *error)
{
    uint64_t text_at = 0;
    uint64_t at = 0;
    CADRE_TRY(new_text(store, name, count, &text_at, error));
    CADRE_TRY(store_allot(store, sizeof(struct kept_note), &at, error, "the name `%s`", name));
    write_text(store_at(store, text_at), bytes, count);
    struct kept_note *note = store_at(store, at);
    memcpy(note->name, name, strlen(name));
    note->sum = kept_sum(at, note->name, sizeof note->name);
    atomic_store(&note->text, text_at);
    store_point();
    atomic_store_explicit(link, at, memory_order_release);
    return CADRE_OK;
}

static cadre_status replace(struct store *store, struct kept_note *note, const void *bytes,
    size_t count, struct cadre_error *error)
{
    uint64_t old = atomic_load(&note->text);
    uint64_t at = atomic_load(&note->spare);
    if (at == 0 || ((struct kept_text *)store_at(store, at))->room < count) {
        CADRE_TRY(new_text(store, note->name, count, &at, error));
    }
    atomic_store(&note->spare, 0);
    store_point();
    write_text(store_at(store, at), bytes, count);
    atomic_store_explicit(&note->text, at, memory_order_release);
    store_point();
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
    kept_word *link = NULL;
    struct kept_note *note = find(store, name, &link);
    cadre_status status = note == NULL ? append(store, link, name, bytes, count, error)
                                       : replace(store, note, bytes, count, error);
    pthread_mutex_unlock(&store->creation);
    return status;
}

const void *store_noted(const struct store *store, const char *name, size_t *ret_count)
{
    kept_word *link = NULL;
    const struct kept_note *note = find(store, name, &link);
    if (note == NULL) {
        *ret_count = 0;
        return NULL;
    }
    const struct kept_text *text =
        store_at(store, atomic_load_explicit(&note->text, memory_order_acquire));
    *ret_count = (size_t)text->bytes;
    return text->text;
}

const char *store_noted_at(const struct store *store, uint32_t i)
{
    uint64_t at = atomic_load_explicit(&store->head->notes, memory_order_acquire);
    for (; at != 0 && i != 0; i--) {
        at = atomic_load_explicit(
            &((struct kept_note *)store_at(store, at))->next, memory_order_acquire);
    }
    return at == 0 ? NULL : ((struct kept_note *)store_at(store, at))->name;
}
