/* SPDX-License-Identifier: Apache-2.0
 * Which logs have files here, and their segments; log_copy_files.c makes the files. */
#include "coordinator/daemon/logs/log_copies.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "coordinator/daemon/logs/log_copy_files.h"
#include "coordinator/daemon/logs/log_head.h"
#include "coordinator/daemon/objects/object_names.h"

#define BUCKETS 256

#define FETCHED_AT_ONCE ((size_t)8)

struct log_copy {
    struct log_copy *next; /* in its bucket */
    struct log_copies *copies;
    struct job_id job;
    uint32_t slot;
    char *path;
    /* With the mutex of all: */
    unsigned uses;
    bool forgotten;
    uint64_t used_us;
    uint64_t counted_bytes;
    pthread_mutex_t mutex; /* of what follows, and of the files while they are written */
    bool is_listed;
    bool is_filled;
    bool is_again;       /* it was listed again, because an object had gone since */
    uint64_t local_from; /* from here on the file has the bytes */
    struct log_segments segments;
};

struct log_copies {
    struct objects *objects;
    const struct leading *leading;
    uint64_t term;
    uint64_t limit_bytes;
    pthread_mutex_t mutex; /* of what follows */
    struct log_copy *buckets[BUCKETS];
    uint64_t bytes;
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a log");
}

cadre_status log_copies_open(struct objects *objects, const struct leading *leading, uint64_t term,
    uint64_t limit_bytes, struct log_copies **ret_copies, struct cadre_error *error)
{
    struct log_copies *copies = calloc(1, sizeof *copies);
    if (copies == NULL) {
        return no_memory(error);
    }
    copies->objects = objects;
    copies->leading = leading;
    copies->term = term;
    copies->limit_bytes = limit_bytes;
    pthread_mutex_init(&copies->mutex, NULL);
    *ret_copies = copies;
    return CADRE_OK;
}

static void free_copy(struct log_copy *copy)
{
    pthread_mutex_destroy(&copy->mutex);
    free(copy->segments.items);
    free(copy->path);
    free(copy);
}

void log_copies_close(struct log_copies *copies)
{
    for (size_t i = 0; copies != NULL && i < BUCKETS; i++) {
        while (copies->buckets[i] != NULL) {
            struct log_copy *copy = copies->buckets[i];
            copies->buckets[i] = copy->next;
            CADRE_ASSERT(copy->uses == 0);
            free_copy(copy);
        }
    }
    if (copies != NULL) {
        pthread_mutex_destroy(&copies->mutex);
        free(copies);
    }
}

/* ---- which there are; with the mutex of all ---- */

static struct log_copy **bucket_of(struct log_copies *copies, struct job_id job, uint32_t slot)
{
    return &copies->buckets[prng_mix(prng_mix(job.n) + slot) % BUCKETS];
}

static struct log_copy *find_copy(struct log_copies *copies, struct job_id job, uint32_t slot)
{
    struct log_copy *copy = *bucket_of(copies, job, slot);
    while (copy != NULL && (copy->job.n != job.n || copy->slot != slot || copy->forgotten)) {
        copy = copy->next;
    }
    return copy;
}

static struct log_copy *make_copy(
    struct log_copies *copies, struct job_id job, uint32_t slot, const char *path)
{
    struct log_copy **bucket = bucket_of(copies, job, slot);
    struct log_copy *copy = calloc(1, sizeof *copy);
    char *own = strdup(path);
    if (copy == NULL || own == NULL) {
        free(copy);
        free(own);
        return NULL;
    }
    *copy =
        (struct log_copy){.next = *bucket, .copies = copies, .job = job, .slot = slot, .path = own};
    pthread_mutex_init(&copy->mutex, NULL);
    *bucket = copy;
    return copy;
}

static void remove_copy(struct log_copies *copies, struct log_copy *copy)
{
    struct log_copy **at = bucket_of(copies, copy->job, copy->slot);
    while (*at != copy) {
        at = &(*at)->next;
    }
    *at = copy->next;
    copies->bytes -= copy->counted_bytes;
    free_copy(copy);
}

static struct log_copy *find_oldest(struct log_copies *copies)
{
    struct log_copy *oldest = NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct log_copy *copy = copies->buckets[i]; copy != NULL; copy = copy->next) {
            if (copy->uses == 0 && (oldest == NULL || copy->used_us < oldest->used_us)) {
                oldest = copy;
            }
        }
    }
    return oldest;
}

struct log_copy *log_copies_use(
    struct log_copies *copies, struct job_id job, uint32_t slot, const char *path)
{
    pthread_mutex_lock(&copies->mutex);
    struct log_copy *copy = find_copy(copies, job, slot);
    copy = copy != NULL ? copy : make_copy(copies, job, slot, path);
    if (copy != NULL) {
        copy->uses++;
    }
    pthread_mutex_unlock(&copies->mutex);
    return copy;
}

void log_copies_done(struct log_copies *copies, struct log_copy *copy)
{
    if (copy == NULL) {
        return;
    }
    pthread_mutex_lock(&copies->mutex);
    copy->used_us = clock_monotonic_us();
    if (--copy->uses == 0 && copy->forgotten) {
        remove_copy(copies, copy);
    }
    struct log_copy *oldest = NULL;
    while (copies->bytes > copies->limit_bytes && (oldest = find_oldest(copies)) != NULL) {
        log_copy_files_remove(oldest->path);
        remove_copy(copies, oldest);
    }
    pthread_mutex_unlock(&copies->mutex);
}

void log_copies_forget(struct log_copies *copies, struct job_id job)
{
    if (copies == NULL) {
        return;
    }
    pthread_mutex_lock(&copies->mutex);
    for (size_t i = 0; i < BUCKETS; i++) {
        struct log_copy *next = NULL;
        for (struct log_copy *copy = copies->buckets[i]; copy != NULL; copy = next) {
            next = copy->next;
            copy->forgotten = copy->forgotten || copy->job.n == job.n;
            if (copy->forgotten && copy->uses == 0) {
                remove_copy(copies, copy);
            }
        }
    }
    pthread_mutex_unlock(&copies->mutex);
}

static void count_bytes(struct log_copy *copy)
{
    struct log_copies *copies = copy->copies;
    pthread_mutex_lock(&copies->mutex);
    copies->bytes -= copy->counted_bytes;
    copy->counted_bytes = log_segments_size(&copy->segments);
    copies->bytes += copy->counted_bytes;
    pthread_mutex_unlock(&copies->mutex);
}

/* ---- one; with its mutex ---- */

static char *path_of_segment(const struct log_copy *copy, const struct log_segment *segment)
{
    char name[LOG_SEGMENT_NAME_BYTES];
    log_segment_name(segment, name);
    return object_name_of_log(copy->copies->objects, copy->job, copy->slot, name);
}

/* No segments: there is none, or it cannot be read, and the list says which there are. */
static cadre_status read_head(
    const struct log_copy *copy, struct log_head *ret_head, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path =
        object_name_of_log_head(copy->copies->objects, copy->job, copy->slot);
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct cadre_error why = {0};
    size_t size = 0;
    *ret_head = (struct log_head){0};
    cadre_status status =
        objects_get(copy->copies->objects, path, LOG_HEAD_BYTES_MAX, &text, &size, &why);
    if (status == CADRE_OK && !log_head_unpack(text, ret_head)) {
        *ret_head = (struct log_head){0};
        log_event(LOG_LEVEL_WARNING, "logs",
            "what says which parts of a task's output are the newest is damaged: they are listed",
            LOG_U64("job", copy->job.n), LOG_U64("slot", copy->slot));
    }
    if (status != CADRE_OK && status != CADRE_NOT_FOUND) {
        *error = why;
        return status;
    }
    return CADRE_OK;
}

struct segment_listing {
    struct log_copy *copy;
    struct log_head head;
};

static bool add_listed(void *user, const struct storage_entry *entry)
{
    struct segment_listing *listing = user;
    struct log_segment segment;
    const char *slash = strrchr(entry->path, '/');
    if (entry->is_folder || slash == NULL || !log_segment_parse(slash + 1, &segment) ||
        !log_head_lets(&listing->head, &segment)) {
        return true;
    }
    return log_segments_add(&listing->copy->segments, &segment);
}

static cadre_status list_segments(struct log_copy *copy, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder =
        object_name_of_log(copy->copies->objects, copy->job, copy->slot, NULL);
    struct segment_listing listing = {.copy = copy};
    CADRE_TRY(read_head(copy, &listing.head, error));
    copy->segments.count = 0;
    copy->segments.short_of_memory = false;
    CADRE_TRY(objects_list(copy->copies->objects, folder, true, add_listed, &listing, error));
    for (size_t i = 0; i < listing.head.count; i++) {
        (void)log_segments_add(&copy->segments, &listing.head.segments[i]);
    }
    if (copy->segments.short_of_memory) {
        return no_memory(error);
    }
    copy->segments.count = log_segments_arrange(copy->segments.items, copy->segments.count);
    CADRE_TRY(log_copy_files_begin(copy->path, &copy->segments, error));
    copy->local_from = log_segments_size(&copy->segments);
    copy->is_filled = copy->segments.count == 0;
    copy->is_listed = true;
    count_bytes(copy);
    return CADRE_OK;
}

/* An object that is being fetched, by a thread of its own or not. */
struct fetched {
    const struct log_copy *copy;
    const struct log_segment *segment;
    pthread_t thread;
    bool has_thread;
    cadre_status status;
    char *object;
    size_t size;
    struct cadre_error error;
};

static void *fetch(void *argument)
{
    struct fetched *fetched = argument;
    CADRE_FREE_AT_EXIT char *path = path_of_segment(fetched->copy, fetched->segment);
    fetched->status = objects_get(fetched->copy->copies->objects, path,
        LOG_SEGMENT_OBJECT_BYTES_MAX, &fetched->object, &fetched->size, &fetched->error);
    return NULL;
}

/* One whose object is damaged or missing leaves its bytes out; others are tried all the same. */
static cadre_status add_fetched(
    struct log_copy_filling *filling, struct fetched *fetched, struct cadre_error *error)
{
    const struct log_copy *copy = fetched->copy;
    const struct log_segment *segment = fetched->segment;
    CADRE_FREE_AT_EXIT struct log_mark *marks = NULL;
    const uint8_t *bytes = NULL;
    size_t mark_count = 0;
    cadre_status status = fetched->status;
    if (status == CADRE_OK) {
        status = log_segment_unpack(segment, (const uint8_t *)fetched->object, fetched->size,
            &bytes, &marks, &mark_count, &fetched->error);
    }
    if (status == CADRE_OK) {
        return log_copy_files_add(filling, segment, bytes, marks, mark_count, error);
    }
    bool is_lost = status == CADRE_DATA_LOSS || (status == CADRE_NOT_FOUND && copy->is_again);
    if (!is_lost) {
        *error = fetched->error;
        return status;
    }
    log_event(LOG_LEVEL_ERROR, "logs", "a part of a task's output is lost",
        LOG_U64("job", copy->job.n), LOG_U64("slot", copy->slot),
        LOG_U64("bytes", segment->to - segment->from), LOG_STR("reason", fetched->error.text));
    const struct log_hole hole = log_hole_read(copy->path);
    const struct log_hole lost = {.from = segment->from, .to = segment->to};
    if (log_hole_bytes(&hole) == 0) { /* a log has one hole: what is lost besides reads as zeros */
        (void)log_hole_write(copy->path, &lost);
    }
    return CADRE_OK;
}

/* Some at the same time, because each takes two round trips. */
static cadre_status fill_some(struct log_copy *copy, struct log_copy_filling *filling,
    const struct log_segment *segments, size_t count, struct cadre_error *error)
{
    struct fetched some[FETCHED_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        some[i] = (struct fetched){.copy = copy, .segment = &segments[i]};
        some[i].has_thread = i + 1 < count && thread_start(&some[i].thread, fetch, &some[i]) == 0;
        if (!some[i].has_thread) {
            (void)fetch(&some[i]);
        }
    }
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < count; i++) {
        if (some[i].has_thread) {
            pthread_join(some[i].thread, NULL);
        }
        status = status == CADRE_OK ? add_fetched(filling, &some[i], error) : status;
        free(some[i].object);
    }
    return status;
}

static cadre_status fill_files(struct log_copy *copy, struct cadre_error *error)
{
    const struct log_segments *segments = &copy->segments;
    struct log_copy_filling filling;
    cadre_status status = log_copy_files_open(copy->path, &filling, error);
    for (size_t i = 0; i < segments->count && status == CADRE_OK; i += FETCHED_AT_ONCE) {
        size_t left = segments->count - i;
        size_t count = left < FETCHED_AT_ONCE ? left : FETCHED_AT_ONCE;
        status = fill_some(copy, &filling, segments->items + i, count, error);
    }
    return log_copy_files_close(&filling, log_segments_size(segments), status, error);
}

cadre_status log_copy_fill(struct log_copy *copy, struct cadre_error *error)
{
    pthread_mutex_lock(&copy->mutex);
    cadre_status status = copy->is_listed ? CADRE_OK : list_segments(copy, error);
    for (unsigned i = 0; i < 2 && status == CADRE_OK && !copy->is_filled; i++) {
        copy->is_again = i > 0;
        status = fill_files(copy, error);
        copy->is_filled = status == CADRE_OK;
        if (status == CADRE_NOT_FOUND && i == 0) { /* what was joined since is listed as one */
            *error = (struct cadre_error){0};
            status = list_segments(copy, error);
        }
    }
    pthread_mutex_unlock(&copy->mutex);
    return status;
}

cadre_status log_copy_begin(struct log_copy *copy, struct cadre_error *error)
{
    pthread_mutex_lock(&copy->mutex);
    cadre_status status = copy->is_listed ? CADRE_OK : list_segments(copy, error);
    if (status != CADRE_OK) {
        pthread_mutex_unlock(&copy->mutex);
    }
    return status;
}

/* ---- writing ---- */

/* After the segments, before it is acknowledged or others are removed. */
static cadre_status put_head(
    const struct log_copy *copy, const struct log_segments *segments, struct cadre_error *error)
{
    const struct log_copies *copies = copy->copies;
    struct log_head head;
    char text[LOG_HEAD_BYTES_MAX];
    CADRE_FREE_AT_EXIT char *path = object_name_of_log_head(copies->objects, copy->job, copy->slot);
    log_head_of(segments->items, segments->count, copies->term, &head);
    if (leading_holds(copies->leading)) {
        CADRE_TRY(objects_put(copies->objects, path, text, log_head_pack(&head, text), error));
    }
    return leading_holds(copies->leading)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_UNAVAILABLE,
                     "this coordinator does not know whether it leads still");
}

static cadre_status put_segment(const struct log_copy *copy, const struct log_segment *segment,
    const uint8_t *bytes, const struct log_mark *marks, size_t mark_count,
    struct cadre_error *error)
{
    size_t size = 0;
    CADRE_FREE_AT_EXIT char *path = path_of_segment(copy, segment);
    CADRE_FREE_AT_EXIT uint8_t *object = log_segment_pack(segment, bytes, marks, mark_count, &size);
    if (object == NULL) {
        return no_memory(error);
    }
    return objects_put(copy->copies->objects, path, object, size, error);
}

cadre_status log_copy_put(struct log_copy *copy, const struct log_segment *segment,
    const uint8_t *bytes, const struct log_mark *marks, size_t mark_count,
    struct cadre_error *error)
{
    struct log_segment own = *segment;
    own.term = copy->copies->term;
    own.from = own.begin;
    own.to = own.end;
    CADRE_TRY(put_segment(copy, &own, bytes, marks, mark_count, error));
    log_segments_cut(&copy->segments, own.from); /* of a turn whose file could not be written */
    if (!log_segments_add(&copy->segments, &own)) {
        copy->is_listed = false; /* it is in the store: the next turn lists it */
        return no_memory(error);
    }
    cadre_status status = put_head(copy, &copy->segments, error);
    if (status != CADRE_OK) {
        log_segments_cut(&copy->segments, own.from); /* it is sent again */
    }
    count_bytes(copy);
    return status;
}

/* The objects of those that are left out of the list. */
static void remove_objects(
    const struct log_copy *copy, const struct log_segment *segments, size_t count)
{
    struct cadre_error error = {0};
    for (size_t i = 0; i < count && leading_holds(copy->copies->leading); i++) {
        CADRE_FREE_AT_EXIT char *path = path_of_segment(copy, &segments[i]);
        (void)objects_remove(copy->copies->objects, path, &error); /* the end of the job does */
    }
}

void log_copy_drop(struct log_copy *copy, const struct log_hole *hole)
{
    struct log_segment *items = copy->segments.items;
    size_t first = 0;
    while (first < copy->segments.count && items[first].from < hole->from) {
        first++;
    }
    size_t end = first;
    while (end < copy->segments.count && items[end].to <= hole->to) {
        end++;
    }
    CADRE_FREE_AT_EXIT struct log_segment *gone =
        end > first ? malloc((end - first) * sizeof *gone) : NULL;
    struct cadre_error error = {0};
    if (gone == NULL) {
        return; /* none, or no memory: they go with the job */
    }
    memcpy(gone, items + first, (end - first) * sizeof *gone);
    memmove(items + first, items + end, (copy->segments.count - end) * sizeof *items);
    copy->segments.count -= end - first;
    if (put_head(copy, &copy->segments, &error) == CADRE_OK) {
        remove_objects(copy, gone, end - first);
    }
}

/* Puts the last `count` ones as one, whose bytes the file has. */
static cadre_status join_last(struct log_copy *copy, size_t count, struct cadre_error *error)
{
    const struct log_segment *items = copy->segments.items + copy->segments.count - count;
    struct log_segment joined = items[0];
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    CADRE_FREE_AT_EXIT struct log_mark *marks = NULL;
    size_t mark_count = 0;
    joined.term = copy->copies->term;
    joined.begin = joined.from;
    joined.end = items[count - 1].to;
    joined.to = joined.end;
    CADRE_TRY(log_copy_files_read(
        copy->path, joined.begin, joined.end, &bytes, &marks, &mark_count, error));
    CADRE_TRY(put_segment(copy, &joined, bytes, marks, mark_count, error));
    CADRE_FREE_AT_EXIT struct log_segment *gone = malloc(count * sizeof *gone);
    if (gone == NULL) {
        return no_memory(error);
    }
    memcpy(gone, items, count * sizeof *gone);
    copy->segments.count -= count;
    copy->segments.items[copy->segments.count++] = joined;
    CADRE_TRY(put_head(copy, &copy->segments, error));
    remove_objects(copy, gone, count); /* a head that could not be put names them, and they stay */
    return CADRE_OK;
}

void log_copy_end(struct log_copy *copy)
{
    struct cadre_error error = {0};
    const struct log_hole hole = log_hole_read(copy->path);
    uint64_t from = copy->is_filled ? 0 : copy->local_from;
    from = log_hole_bytes(&hole) > 0 && hole.to > from ? hole.to : from;
    size_t local = 0;
    while (local < copy->segments.count &&
           copy->segments.items[copy->segments.count - 1 - local].from >= from) {
        local++;
    }
    size_t count = copy->is_listed ? log_segments_to_join(
                                         copy->segments.items + copy->segments.count - local, local)
                                   : 0;
    if (count > 0) {
        (void)join_last(copy, count, &error); /* the next turn tries again */
    }
    pthread_mutex_unlock(&copy->mutex);
}
