/* SPDX-License-Identifier: Apache-2.0
 * The elements of a cache in memory. What is read by index is kept at its place; each iteration in
 * order has a list of its own, and the first that is complete becomes the store. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "worker/library/input/cache/cache_store.h"
#include "worker/library/input/node/available_memory.h"
#include "worker/library/input/node/element_stack.h"

#define CHECK_BYTES    (64 << 20) /* the machine's memory is looked at after so many more */
#define OVERHEAD_BYTES 256        /* of a tensor, about */

/* One element: `count` tensors, then `id_count` ids. */
struct kept {
    uint32_t count;
    size_t id_count;
    union {
        cadre_tensor *tensor;
        uint64_t id;
    } items[];
};

/* Elements by number; those that are not there are NULL. */
struct kept_list {
    struct kept **kept;
    uint64_t count; /* places */
    uint64_t capacity;
    uint64_t filled;
    uint64_t bytes;
    uint64_t bytes_checked;
};

struct memory_store {
    struct cache_store base;
    pthread_mutex_t lock;
    struct kept_list list;
    bool complete;
};

struct cache_writer {
    struct memory_store *store;
    struct kept_list list;
};

static void kept_free(struct kept *kept)
{
    for (uint32_t i = 0; kept != NULL && i < kept->count; i++) {
        cadre_tensor_release(kept->items[i].tensor);
    }
    free(kept);
}

static void list_clear(struct kept_list *list)
{
    for (uint64_t i = 0; i < list->count; i++) {
        kept_free(list->kept[i]);
    }
    free(list->kept);
    *list = (struct kept_list){0};
}

static cadre_status no_memory(const struct kept_list *list, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "cache: %" PRIu64 " elements of %" PRIu64
        " bytes fill this machine's memory; give a path, so that files hold them, or cache less",
        list->filled, list->bytes);
}

/* Places 0 to count - 1. */
static cadre_status list_grow(struct kept_list *list, uint64_t count, struct cadre_error *error)
{
    if (count > list->capacity) {
        uint64_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        capacity = capacity < count ? count : capacity;
        struct kept **kept = fault_point("cache.memory") || capacity > SIZE_MAX / sizeof kept[0]
                                 ? NULL
                                 : realloc(list->kept, (size_t)capacity * sizeof kept[0]);
        if (kept == NULL) {
            return no_memory(list, error);
        }
        list->kept = kept;
        list->capacity = capacity;
    }
    if (count > list->count) {
        memset(list->kept + list->count, 0, (size_t)(count - list->count) * sizeof list->kept[0]);
        list->count = count;
    }
    return CADRE_OK;
}

/* Keeps an element at a place that is there and empty. */
static cadre_status list_put(struct kept_list *list, uint64_t index, const cadre_element *element,
    const struct id_list *ids, struct cadre_error *error)
{
    struct kept *kept = NULL;
    size_t items = element->count + ids->count;
    uint64_t bytes = sizeof *kept + items * sizeof kept->items[0] + element_memory_bytes(element) +
                     element->count * OVERHEAD_BYTES;
    if (list->bytes + bytes - list->bytes_checked > CHECK_BYTES || list->filled == 0) {
        if (available_memory_is_low()) {
            return no_memory(list, error);
        }
        list->bytes_checked = list->bytes;
    }
    kept =
        fault_point("cache.memory") ? NULL : malloc(sizeof *kept + items * sizeof kept->items[0]);
    if (kept == NULL) {
        return no_memory(list, error);
    }
    kept->count = element->count;
    kept->id_count = ids->count;
    for (uint32_t i = 0; i < element->count; i++) {
        kept->items[i].tensor = cadre_tensor_retain(element->tensors[i]);
    }
    for (size_t i = 0; i < ids->count; i++) {
        kept->items[element->count + i].id = ids->ids[i];
    }
    list->kept[index] = kept;
    list->filled++;
    list->bytes += bytes;
    return CADRE_OK;
}

/* --- the table --- */

static void memory_destroy(struct cache_store *base)
{
    struct memory_store *store = (struct memory_store *)base;
    list_clear(&store->list);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static cadre_status memory_look(
    struct cache_store *base, bool *ret_complete, uint64_t *ret_count, struct cadre_error *error)
{
    struct memory_store *store = (struct memory_store *)base;
    (void)error;
    pthread_mutex_lock(&store->lock);
    *ret_complete = store->complete;
    *ret_count = store->complete ? store->list.count : 0;
    pthread_mutex_unlock(&store->lock);
    return CADRE_OK;
}

static cadre_status memory_find(struct cache_store *base, uint64_t index, bool *ret_found,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct memory_store *store = (struct memory_store *)base;
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&store->lock);
    const struct kept *kept = index < store->list.count ? store->list.kept[index] : NULL;
    *ret_found = kept != NULL;
    for (size_t i = 0; kept != NULL && status == CADRE_OK && i < kept->id_count; i++) {
        status = id_list_add(ids, kept->items[kept->count + i].id, error);
    }
    for (uint32_t i = 0; kept != NULL && status == CADRE_OK && i < kept->count; i++) {
        ret_element->tensors[i] = cadre_tensor_retain(kept->items[i].tensor);
        ret_element->count = i + 1;
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

static cadre_status memory_put(struct cache_store *base, uint64_t index, uint64_t count,
    const cadre_element *element, const struct id_list *ids, struct cadre_error *error)
{
    struct memory_store *store = (struct memory_store *)base;
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&store->lock);
    if (!store->complete) {
        status = list_grow(&store->list, count, error);
        if (status == CADRE_OK && store->list.kept[index] == NULL) {
            status = list_put(&store->list, index, element, ids, error);
        }
        store->complete = status == CADRE_OK && store->list.filled == count;
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

static cadre_status memory_begin(
    struct cache_store *base, struct cache_writer **ret_writer, struct cadre_error *error)
{
    struct memory_store *store = (struct memory_store *)base;
    bool complete = false;
    uint64_t count = 0;
    *ret_writer = NULL;
    CADRE_TRY(memory_look(base, &complete, &count, error));
    if (complete) {
        return CADRE_OK;
    }
    *ret_writer = calloc(1, sizeof **ret_writer);
    if (*ret_writer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "cache: no memory for a list");
    }
    (*ret_writer)->store = store;
    return CADRE_OK;
}

static cadre_status memory_add(struct cache_writer *writer, const cadre_element *element,
    const struct id_list *ids, struct cadre_error *error)
{
    uint64_t index = writer->list.count;
    CADRE_TRY(list_grow(&writer->list, index + 1, error));
    return list_put(&writer->list, index, element, ids, error);
}

/* The first complete list stays. */
static cadre_status memory_commit(struct cache_writer *writer, struct cadre_error *error)
{
    struct memory_store *store = writer->store;
    (void)error;
    pthread_mutex_lock(&store->lock);
    if (!store->complete) {
        const struct kept_list before = store->list;
        store->list = writer->list;
        store->complete = true;
        writer->list = before;
    }
    pthread_mutex_unlock(&store->lock);
    list_clear(&writer->list);
    free(writer);
    return CADRE_OK;
}

static void memory_abandon(struct cache_writer *writer)
{
    list_clear(&writer->list);
    free(writer);
}

static const struct cache_store_ops memory_ops = {
    .destroy = memory_destroy,
    .look = memory_look,
    .find = memory_find,
    .put = memory_put,
    .begin = memory_begin,
    .add = memory_add,
    .commit = memory_commit,
    .abandon = memory_abandon,
};

struct cache_store *cache_memory_new(void)
{
    struct memory_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return NULL;
    }
    store->base.ops = &memory_ops;
    pthread_mutex_init(&store->lock, NULL);
    return &store->base;
}
