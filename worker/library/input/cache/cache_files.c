/* SPDX-License-Identifier: Apache-2.0
 * The elements of a cache in files that begin with a path:
 *
 *     PATH.data          a magic and a stamp, then the elements and their ids as iterator_state.h
 * writes them PATH.index         where each of them lies; the mark that the cache is complete
 *     PATH.data.partial  what is being written
 *     PATH.lock          held by the process that writes; empty but for its number, and left behind
 *
 * A process that finds the lock held reads its input and stores nothing. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/cache/cache_output.h"
#include "worker/library/input/cache/cache_store.h"

#define FINDS_PER_CHECK 4096 /* while another process writes */

enum filling {
    FILLING_NOT,
    FILLING_IN_ORDER,
    FILLING_BY_INDEX,
    FILLING_FAILED /* by index: not begun again, but an iterator may still be reading */
};

struct files_store {
    struct cache_store base;
    cadre_dataset *input; /* borrowed */
    char *data_path;
    char *index_path;
    char *partial_path;
    char *lock_path;
    pthread_mutex_t lock;
    bool has_pipeline;
    struct sha256 pipeline;
    atomic_bool complete;     /* set once; `index` and `fd` never change then */
    struct cache_index index; /* of what is complete, or is being filled by index */
    int fd;                   /* of its data; -1: none */
    enum filling filling;
    uint64_t filled; /* by index */
    uint64_t finds;
    uint64_t tries;
    int lock_fd; /* -1: not held */
    struct cache_output output;
};

struct cache_writer {
    struct files_store *store;
    struct cache_index index;
    uint64_t capacity;
};

/* --- writing; all with the lock held --- */

static void release_lock_file(struct files_store *store)
{
    if (store->lock_fd >= 0) {
        close(store->lock_fd);
        store->lock_fd = -1;
    }
}

/* What is being written is not to be. What was written by index may be being read. */
static void stop_filling(struct files_store *store)
{
    if (store->filling == FILLING_BY_INDEX) {
        store->filling = FILLING_FAILED;
    } else {
        if (store->output.fd >= 0) {
            close(store->output.fd);
        }
        store->filling = FILLING_NOT;
    }
    cache_output_end(&store->output);
    release_lock_file(store);
}

/* This process has the lock file: an old cache that does not fit goes, a new one begins. */
static cadre_status start_data(
    struct files_store *store, uint64_t *ret_stamp, struct cadre_error *error)
{
    if (unlink(store->index_path) != 0 && errno != ENOENT) {
        return cadre_error_errno(
            error, errno, "cannot remove %s, which does not fit", store->index_path);
    }
    return cache_output_open(&store->output, store->partial_path, ret_stamp, error);
}

/* Whole and safe on the disk, under its own name; then the index, which makes it count. */
static cadre_status cache_files_publish(
    struct files_store *store, struct cache_index *index, struct cadre_error *error)
{
    CADRE_TRY(cache_output_publish(&store->output, store->data_path, error));
    index->data_bytes = store->output.written;
    index->pipeline = store->pipeline;
    cadre_status status = cache_index_write(store->index_path, index, error);
    if (status != CADRE_OK) {
        (void)unlink(store->index_path); /* it may be there, and not be safe on the disk */
        (void)unlink(store->data_path);
    }
    return status;
}

static cadre_status cache_files_finish(
    struct files_store *store, struct cache_index *index, struct cadre_error *error)
{
    cadre_status status = cache_files_publish(store, index, error);
    if (status != CADRE_OK) {
        stop_filling(store);
        return cadre_error_wrap(error, status, "cache");
    }
    if (index != &store->index) { /* else others may be reading by it */
        store->fd = store->output.fd;
        cache_index_clear(&store->index);
        store->index = *index;
        *index = (struct cache_index){0};
    }
    cache_output_end(&store->output);
    release_lock_file(store);
    store->filling = FILLING_NOT;
    atomic_store_explicit(&store->complete, true, memory_order_release);
    return CADRE_OK;
}

/* --- finding what is there --- */

static cadre_status cache_files_lost(struct files_store *store, struct cadre_error *error)
{
    char before[CADRE_ERROR_TEXT_BYTES];
    snprintf(before, sizeof before, "%s", error->text);
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "cache: %s; remove %s and %s, and they are made again", before, store->index_path,
        store->data_path);
}

static bool cache_files_fits(const struct files_store *store, const struct cache_index *index)
{
    int64_t cardinality = dataset_cardinality(store->input);
    return sha256_equal(&store->pipeline, &index->pipeline) &&
           (cardinality < 0 || (uint64_t)cardinality == index->count);
}

/* Opens the data that an index names. DATA_LOSS: it is not that. */
static cadre_status open_data(struct files_store *store, const struct cache_index *index,
    int *ret_fd, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t size = 0;
    char expected[CACHE_HEADER_BYTES];
    char found[CACHE_HEADER_BYTES];
    cadre_status status = file_open_regular(store->data_path, &fd, &size, error);
    if (status != CADRE_OK) {
        return status == CADRE_NOT_FOUND
                   ? cadre_error_set(error, CADRE_DATA_LOSS, "%s is missing", store->data_path)
                   : status;
    }
    if (size != index->data_bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s has %" PRIu64 " bytes and should have %" PRIu64, store->data_path, size,
            index->data_bytes);
    }
    cache_header_make(index->stamp, expected);
    if (pread(fd, found, sizeof found, 0) != (ssize_t)sizeof found ||
        memcmp(found, expected, sizeof found) != 0) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "%s is not the data of its index", store->data_path);
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

/* With the lock held: takes the files that are there, if they are whole and fit. */
static cadre_status look_locked(struct files_store *store, struct cadre_error *error)
{
    struct cache_index index = {0};
    int fd = -1;
    if (atomic_load(&store->complete) || store->filling != FILLING_NOT) {
        return CADRE_OK;
    }
    if (!store->has_pipeline) {
        CADRE_TRY(cache_index_pipeline(store->input, &store->pipeline, error));
        store->has_pipeline = true;
    }
    cadre_status status = cache_index_read(store->index_path, &index, error);
    if (status == CADRE_NOT_FOUND) {
        return CADRE_OK;
    }
    if (status == CADRE_OK && !cache_files_fits(store, &index)) {
        cache_index_clear(&index);
        return CADRE_OK;
    }
    status = status == CADRE_OK ? open_data(store, &index, &fd, error) : status;
    if (status != CADRE_OK) {
        cache_index_clear(&index);
        return status == CADRE_DATA_LOSS ? cache_files_lost(store, error)
                                         : cadre_error_wrap(error, status, "cache");
    }
    cache_index_clear(&store->index);
    store->index = index;
    store->fd = fd;
    atomic_store_explicit(&store->complete, true, memory_order_release);
    return CADRE_OK;
}

static cadre_status files_look(
    struct cache_store *base, bool *ret_complete, uint64_t *ret_count, struct cadre_error *error)
{
    struct files_store *store = (struct files_store *)base;
    pthread_mutex_lock(&store->lock);
    cadre_status status = look_locked(store, error);
    *ret_complete = atomic_load(&store->complete);
    *ret_count = *ret_complete ? store->index.count : 0;
    pthread_mutex_unlock(&store->lock);
    return status;
}

/* --- reading --- */

static cadre_status read_bytes(struct files_store *store, const struct cache_entry *entry,
    char *bytes, struct cadre_error *error)
{
    size_t done = 0;
    while (done < entry->bytes) {
        ssize_t got = fault_point("cache.read")
                          ? -1
                          : pread(store->fd, bytes + done, entry->bytes - done,
                                (off_t)(entry->offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return cadre_error_errno(error, errno, "cache: cannot read %s", store->data_path);
        }
        if (got == 0) {
            cadre_error_set(error, CADRE_DATA_LOSS, "%s is cut short at byte %" PRIu64,
                store->data_path, entry->offset + done);
            return cache_files_lost(store, error);
        }
        done += (size_t)got;
    }
    return CADRE_OK;
}

static cadre_status read_element(struct files_store *store, const struct cache_entry *entry,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct id_list own = {0};
    CADRE_FREE_AT_EXIT char *bytes = malloc((size_t)entry->bytes + 1);
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "cache: no memory for an element of %" PRIu64 " bytes", entry->bytes);
    }
    CADRE_TRY(read_bytes(store, entry, bytes, error));
    if (crc32c(0, bytes, (size_t)entry->bytes) != entry->checksum) {
        cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is damaged between the bytes %" PRIu64 " and %" PRIu64, store->data_path,
            entry->offset, entry->offset + entry->bytes);
        return cache_files_lost(store, error);
    }
    struct iterator_state_reader reader = {
        .bytes = (const uint8_t *)bytes, .count = (size_t)entry->bytes};
    cadre_status status = iterator_state_read_element(&reader, ret_element, error);
    status = status == CADRE_OK ? iterator_state_read_ids(&reader, &own, error) : status;
    status = status == CADRE_OK ? id_list_add_range(ids, &own, 0, own.count, error) : status;
    id_list_clear(&own);
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status == CADRE_INVALID_ARGUMENT ? cache_files_lost(store, error) : status;
}

/* With the lock held: the entry of an element that this process has written by index. */
static cadre_status find_written(struct files_store *store, uint64_t index,
    struct cache_entry *ret_entry, struct cadre_error *error)
{
    if (store->filling == FILLING_FAILED) {
        return CADRE_OK;
    }
    if (store->filling != FILLING_BY_INDEX) {
        /* Another process may have finished meanwhile. */
        return store->finds++ % FINDS_PER_CHECK == 0 ? look_locked(store, error) : CADRE_OK;
    }
    if (index < store->index.count) {
        *ret_entry = store->index.entries[index];
    }
    if (ret_entry->bytes == 0 || ret_entry->offset + ret_entry->bytes <= store->output.written) {
        return CADRE_OK;
    }
    cadre_status status = cache_output_flush(&store->output, error);
    if (status != CADRE_OK) {
        stop_filling(store);
        return cadre_error_wrap(error, status, "cache");
    }
    return CADRE_OK;
}

static cadre_status files_find(struct cache_store *base, uint64_t index, bool *ret_found,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct files_store *store = (struct files_store *)base;
    struct cache_entry entry = {0};
    *ret_found = false;
    if (!atomic_load_explicit(&store->complete, memory_order_acquire)) {
        pthread_mutex_lock(&store->lock);
        cadre_status status =
            atomic_load(&store->complete) ? CADRE_OK : find_written(store, index, &entry, error);
        pthread_mutex_unlock(&store->lock);
        CADRE_TRY(status);
    }
    if (atomic_load_explicit(&store->complete, memory_order_acquire) &&
        index < store->index.count) {
        entry = store->index.entries[index];
    }
    if (entry.bytes == 0) {
        return CADRE_OK;
    }
    *ret_found = true;
    return read_element(store, &entry, ret_element, ids, error);
}

/* --- filling --- */

/* With the lock held: *ret_begun when this process alone may write. */
static cadre_status begin_locked(struct files_store *store, enum filling filling,
    uint64_t *ret_stamp, bool *ret_begun, struct cadre_error *error)
{
    *ret_begun = false;
    if (atomic_load(&store->complete) || store->filling != FILLING_NOT) {
        return CADRE_OK;
    }
    cadre_status status = lock_file_acquire(store->lock_path, &store->lock_fd, error);
    if (status == CADRE_FAILED_PRECONDITION) {
        return CADRE_OK; /* another process writes */
    }
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "cache");
    }
    status = look_locked(store, error); /* it may have been finished right before */
    if (status == CADRE_OK && !atomic_load(&store->complete)) {
        status = start_data(store, ret_stamp, error);
        status = status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "cache");
        *ret_begun = status == CADRE_OK;
    }
    if (*ret_begun) {
        store->filling = filling;
    } else {
        release_lock_file(store);
    }
    return status;
}

/* With the lock held. */
static cadre_status begin_by_index(
    struct files_store *store, uint64_t count, struct cadre_error *error)
{
    bool begun = false;
    uint64_t stamp = 0;
    CADRE_TRY(begin_locked(store, FILLING_BY_INDEX, &stamp, &begun, error));
    if (!begun) {
        return CADRE_OK;
    }
    cache_index_clear(&store->index);
    store->index.entries = calloc((size_t)count + 1, sizeof store->index.entries[0]);
    if (store->index.entries == NULL) {
        store->filling = FILLING_IN_ORDER; /* nothing can be read of it */
        stop_filling(store);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "cache: no memory for the positions of %" PRIu64 " elements", count);
    }
    store->index.stamp = stamp;
    store->index.count = count;
    store->filled = 0;
    store->fd = store->output.fd;
    return CADRE_OK;
}

static cadre_status put_locked(struct files_store *store, uint64_t index, uint64_t count,
    const cadre_element *element, const struct id_list *ids, struct cadre_error *error)
{
    /* Where another process had the lock, it is not asked for at each element. */
    if (store->filling == FILLING_NOT && store->tries++ % FINDS_PER_CHECK == 0) {
        CADRE_TRY(begin_by_index(store, count, error));
    }
    if (store->filling != FILLING_BY_INDEX || store->index.entries[index].bytes > 0) {
        return CADRE_OK;
    }
    struct cache_entry entry = {0};
    cadre_status status = cache_output_add(&store->output, element, ids, &entry, error);
    if (status != CADRE_OK) {
        stop_filling(store);
        return cadre_error_wrap(error, status, "cache");
    }
    store->index.entries[index] = entry;
    store->filled++;
    return store->filled == count ? cache_files_finish(store, &store->index, error) : CADRE_OK;
}

static cadre_status files_put(struct cache_store *base, uint64_t index, uint64_t count,
    const cadre_element *element, const struct id_list *ids, struct cadre_error *error)
{
    struct files_store *store = (struct files_store *)base;
    cadre_status status = CADRE_OK;
    if (atomic_load_explicit(&store->complete, memory_order_acquire)) {
        return CADRE_OK;
    }
    pthread_mutex_lock(&store->lock);
    if (!atomic_load(&store->complete)) {
        status = put_locked(store, index, count, element, ids, error);
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

static cadre_status files_begin(
    struct cache_store *base, struct cache_writer **ret_writer, struct cadre_error *error)
{
    struct files_store *store = (struct files_store *)base;
    bool begun = false;
    *ret_writer = NULL;
    struct cache_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "cache: no memory for a writer");
    }
    writer->store = store;
    pthread_mutex_lock(&store->lock);
    cadre_status status =
        begin_locked(store, FILLING_IN_ORDER, &writer->index.stamp, &begun, error);
    pthread_mutex_unlock(&store->lock);
    if (begun) {
        *ret_writer = writer;
    } else {
        free(writer);
    }
    return status;
}

static cadre_status files_add(struct cache_writer *writer, const cadre_element *element,
    const struct id_list *ids, struct cadre_error *error)
{
    struct cache_index *index = &writer->index;
    if (index->count == writer->capacity) {
        uint64_t capacity = writer->capacity == 0 ? 1024 : 2 * writer->capacity;
        struct cache_entry *entries = realloc(index->entries, (size_t)capacity * sizeof entries[0]);
        if (entries == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "cache: no memory for the positions of %" PRIu64 " elements", capacity);
        }
        index->entries = entries;
        writer->capacity = capacity;
    }
    pthread_mutex_lock(&writer->store->lock);
    cadre_status status = cache_output_add(
        &writer->store->output, element, ids, &index->entries[index->count], error);
    status = status == CADRE_OK ? CADRE_OK : cadre_error_wrap(error, status, "cache");
    pthread_mutex_unlock(&writer->store->lock);
    index->count += status == CADRE_OK;
    return status;
}

static void writer_free(struct cache_writer *writer)
{
    cache_index_clear(&writer->index);
    free(writer);
}

static cadre_status files_commit(struct cache_writer *writer, struct cadre_error *error)
{
    pthread_mutex_lock(&writer->store->lock);
    cadre_status status = cache_files_finish(writer->store, &writer->index, error);
    pthread_mutex_unlock(&writer->store->lock);
    writer_free(writer);
    return status;
}

static void files_abandon(struct cache_writer *writer)
{
    pthread_mutex_lock(&writer->store->lock);
    stop_filling(writer->store);
    pthread_mutex_unlock(&writer->store->lock);
    writer_free(writer);
}

static void files_destroy(struct cache_store *base)
{
    struct files_store *store = (struct files_store *)base;
    if (store->filling == FILLING_BY_INDEX) {
        stop_filling(store); /* some is missing, so it is of no use to others */
    }
    if (store->fd >= 0) {
        close(store->fd);
    }
    cache_index_clear(&store->index);
    pthread_mutex_destroy(&store->lock);
    free(store->data_path);
    free(store->index_path);
    free(store->partial_path);
    free(store->lock_path);
    free(store);
}

static const struct cache_store_ops files_ops = {
    .destroy = files_destroy,
    .look = files_look,
    .find = files_find,
    .put = files_put,
    .begin = files_begin,
    .add = files_add,
    .commit = files_commit,
    .abandon = files_abandon,
};

static char *cache_files_join(const char *path, const char *suffix)
{
    size_t bytes = strlen(path) + strlen(suffix) + 1;
    char *joined = malloc(bytes);
    if (joined != NULL) {
        snprintf(joined, bytes, "%s%s", path, suffix);
    }
    return joined;
}

struct cache_store *cache_files_new(const char *path, cadre_dataset *input)
{
    struct files_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return NULL;
    }
    store->base.ops = &files_ops;
    store->input = input;
    store->fd = -1;
    store->lock_fd = -1;
    store->output.fd = -1;
    pthread_mutex_init(&store->lock, NULL);
    store->data_path = cache_files_join(path, ".data");
    store->index_path = cache_files_join(path, ".index");
    store->partial_path = cache_files_join(path, ".data.partial");
    store->lock_path = cache_files_join(path, ".lock");
    if (store->data_path == NULL || store->index_path == NULL || store->partial_path == NULL ||
        store->lock_path == NULL) {
        files_destroy(&store->base);
        return NULL;
    }
    return &store->base;
}
