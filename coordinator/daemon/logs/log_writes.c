/* SPDX-License-Identifier: Apache-2.0
 * Queues the output of tasks for the disk: threads write it (log_files.h), the loop never waits.
 * Chunks for a slot whose file a thread has wait for the next turn, which takes all of them; a
 * chunk is answered when it is written, in the order of arrival. agents.c calls it. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/logs/log_followers.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/logs/log_files.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/contents/quota.h"

/* So much of one worker waits for the disk; beyond that it has to send again. */
#define LINK_BYTES ((size_t)8 * 1024 * 1024)

/* Of a slot whose file a thread works on: it exists only while a turn runs. */
struct log_queue {
    struct log_queue *next; /* in its bucket */
    struct daemon *daemon;
    struct job_id job;
    uint32_t slot;
    bool forgotten; /* the job: its files are removed once more behind the thread */
    struct file_work work;
    struct log_io io; /* the thread's */
    /* Waits for the next turn: */
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    struct log_mark *marks;
    size_t mark_count;
    size_t mark_capacity;
    struct log_extent *running;
    size_t count;
    size_t extent_capacity;
};

static struct log_queue **bucket_of(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    return &daemon->log_queues[prng_mix(prng_mix(job.n) + slot) % LOG_BUCKETS];
}

static struct log_queue *log_writes_find(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    struct log_queue *queue = *bucket_of(daemon, job, slot);
    while (queue != NULL && (queue->job.n != job.n || queue->slot != slot)) {
        queue = queue->next;
    }
    return queue;
}

bool logs_are_unwritten(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    return log_writes_find(daemon, job, slot) != NULL;
}

/* Counts the memory of an extent while it waits. */
static void count_extent(struct daemon *daemon, const struct log_extent *extent, bool waits)
{
    struct agent_link *link = links_find(daemon, extent->link);
    size_t bytes =
        sizeof *extent + log_extent_bytes(extent) + extent->marks * sizeof(struct log_mark);
    if (link != NULL) {
        link->log_bytes = waits ? link->log_bytes + bytes : link->log_bytes - bytes;
    }
}

static void log_writes_answer(struct daemon *daemon, const struct log_extent *extent)
{
    const struct agent_down down = {
        .type = AGENT_DOWN_LOG_ACK, .log_ack = {.task = extent->task, .offset = extent->stored}};
    for (uint64_t i = 0; i < extent->chunks; i++) {
        links_down(daemon, extent->link, &down);
    }
}

/* ---- turns of a thread ---- */

static void in_thread(void *user)
{
    struct log_queue *queue = user;
    log_files_do_io(&queue->io);
}

static void free_io(struct log_io *io)
{
    free(io->bytes);
    free(io->marks);
    free(io->running);
    io->bytes = NULL;
    io->marks = NULL;
    io->running = NULL;
    io->count = 0;
}

static void close_queue(struct log_queue *queue)
{
    struct log_queue **at = bucket_of(queue->daemon, queue->job, queue->slot);
    while (*at != queue) {
        at = &(*at)->next;
    }
    *at = queue->next;
    log_followers_job_changed(queue->daemon, queue->job);
    free(queue->io.path);
    free(queue->bytes);
    free(queue->marks);
    free(queue->running);
    free(queue);
}

static void send_ack(struct log_queue *queue)
{
    struct daemon *daemon = queue->daemon;
    const struct log_io *io = &queue->io;
    for (size_t i = 0; i < io->count; i++) {
        const struct log_extent *extent = &io->running[i];
        if (extent->lost_errno != 0 && !queue->forgotten) {
            struct cadre_error error = {0};
            cadre_error_errno(&error, extent->lost_errno, "cannot write the log %s", io->path);
            log_event(LOG_LEVEL_ERROR, "logs", "a task's output is lost",
                LOG_U64("job", queue->job.n), LOG_STR("reason", error.text));
        }
        if (extent->disposition != LOG_DISCARDED && io->total_bytes > 0) {
            engine_log_bytes(daemon->engine, extent->task, io->total_bytes);
        }
        count_extent(daemon, extent, false);
        log_writes_answer(daemon, extent);
    }
    if (queue->forgotten) {
        paths_remove_job(daemon, queue->job);
        return;
    }
    if (io->change_bytes != 0) {
        quota_log(daemon->quota, queue->job, io->change_bytes);
    }
    if (io->written) {
        log_followers_written(daemon, queue->job, queue->slot);
    }
}

static void start_io(struct log_queue *queue);

static void after_io(void *user)
{
    struct log_queue *queue = user;
    send_ack(queue);
    free_io(&queue->io);
    if (queue->count > 0) {
        start_io(queue);
    } else {
        close_queue(queue);
    }
}

static void start_io(struct log_queue *queue)
{
    struct daemon *daemon = queue->daemon;
    queue->io = (struct log_io){.path = queue->io.path,
        .copies = daemon->log_copies,
        .job = queue->job,
        .slot = queue->slot,
        .limit_bytes = daemon->options.log_limit_bytes,
        .bytes = queue->bytes,
        .marks = queue->marks,
        .running = queue->running,
        .count = queue->count};
    queue->bytes = NULL;
    queue->size = 0;
    queue->capacity = 0;
    queue->marks = NULL;
    queue->mark_count = 0;
    queue->mark_capacity = 0;
    queue->running = NULL;
    queue->count = 0;
    queue->extent_capacity = 0;
    file_work_start(&queue->work, &daemon->write_pool, in_thread, after_io, queue);
}

/* ---- what waits ---- */

/* `more` items than there are now fit; false: there is no memory. */
static bool log_writes_reserve(
    void **items, size_t count, size_t *capacity, size_t more, size_t item_bytes)
{
    if (more <= *capacity - count) {
        return true;
    }
    size_t grown = *capacity + *capacity / 2;
    grown = grown < count + more ? count + more : grown;
    void *moved = realloc(*items, grown * item_bytes);
    if (moved == NULL) {
        return false;
    }
    *items = moved;
    *capacity = grown;
    return true;
}

static bool add_bytes(struct log_queue *queue, const uint8_t *bytes, size_t size)
{
    void *items = queue->bytes;
    bool fits = log_writes_reserve(&items, queue->size, &queue->capacity, size, 1);
    queue->bytes = items;
    if (fits && size > 0) {
        memcpy(queue->bytes + queue->size, bytes, size);
        queue->size += size;
    }
    return fits;
}

/* Of a chunk of an earlier version, which has none, that neither is recorded. */
static bool add_marks(struct log_queue *queue, const struct agent_log *chunk, size_t *ret_count)
{
    const struct log_mark unknown = {.offset = chunk->offset};
    const struct log_mark *marks = chunk->mark_count > 0 ? chunk->marks : &unknown;
    size_t count = chunk->mark_count > 0 ? chunk->mark_count : chunk->size_bytes > 0 ? 1 : 0;
    void *items = queue->marks;
    bool fits =
        log_writes_reserve(&items, queue->mark_count, &queue->mark_capacity, count, sizeof *marks);
    queue->marks = items;
    if (fits) {
        memcpy(queue->marks + queue->mark_count, marks, count * sizeof *marks);
        queue->mark_count += count;
        *ret_count = count;
    }
    return fits;
}

static bool may_follow(const struct log_extent *last, const struct log_extent *extent)
{
    bool same = last->link.n == extent->link.n && last->disposition == extent->disposition &&
                last->task.incarnation == extent->task.incarnation;
    return same && (extent->disposition != LOG_STORED || last->end == extent->offset);
}

/* Joins it with the last one where it follows that. False: there is no memory. */
static bool add_extent(struct log_queue *queue, const struct log_extent *extent)
{
    struct log_extent *last = queue->count > 0 ? &queue->running[queue->count - 1] : NULL;
    if (last != NULL && may_follow(last, extent)) {
        count_extent(queue->daemon, last, false);
        last->end = extent->end > last->end ? extent->end : last->end;
        last->chunks++;
        last->marks += extent->marks;
        count_extent(queue->daemon, last, true);
        return true;
    }
    void *items = queue->running;
    bool fits =
        log_writes_reserve(&items, queue->count, &queue->extent_capacity, 1, sizeof *extent);
    queue->running = items;
    if (fits) {
        queue->running[queue->count++] = *extent;
        count_extent(queue->daemon, extent, true);
    }
    return fits;
}

static bool has_room(struct daemon *daemon, struct link_id link, const struct agent_log *chunk)
{
    size_t bytes = chunk->size_bytes + (chunk->mark_count + 1) * sizeof *chunk->marks;
    const struct agent_link *of = links_find(daemon, link);
    size_t waits = of != NULL ? of->log_bytes : 0;
    return waits + bytes + sizeof(struct log_extent) <= LINK_BYTES &&
           disk_check(daemon, bytes, NULL) == CADRE_OK;
}

static struct log_queue *open_queue(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    struct log_queue *queue = calloc(1, sizeof *queue);
    char *path = path_of_log(daemon, job, slot);
    struct log_queue **bucket = bucket_of(daemon, job, slot);
    if (queue == NULL || path == NULL) {
        free(queue);
        free(path);
        return NULL;
    }
    *queue = (struct log_queue){
        .next = *bucket, .daemon = daemon, .job = job, .slot = slot, .io.path = path};
    *bucket = queue;
    return queue;
}

void logs_append(
    struct daemon *daemon, struct link_id link, const struct agent_log *chunk, bool wanted)
{
    struct log_queue *queue = log_writes_find(daemon, chunk->task.job, chunk->task.slot);
    struct log_extent extent = {.link = link,
        .task = chunk->task,
        .disposition = LOG_DISCARDED,
        .offset = chunk->offset,
        .end = chunk->offset + chunk->size_bytes,
        .chunks = 1};
    extent.stored = extent.end;
    bool idle = queue == NULL;
    if (!wanted && idle) {
        log_writes_answer(daemon, &extent);
        return;
    }
    queue = idle ? open_queue(daemon, chunk->task.job, chunk->task.slot) : queue;
    if (wanted && queue != NULL) {
        bool kept = has_room(daemon, link, chunk) && add_marks(queue, chunk, &extent.marks);
        if (kept && !add_bytes(queue, chunk->bytes, chunk->size_bytes)) {
            queue->mark_count -= extent.marks;
            extent.marks = 0;
            kept = false;
        }
        extent.disposition = kept ? LOG_STORED : LOG_NO_ROOM;
    }
    if (queue == NULL || !add_extent(queue, &extent)) {
        if (queue != NULL) {
            queue->size -= log_extent_bytes(&extent);
            queue->mark_count -= extent.marks;
        }
        links_refuse(daemon, link, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for what a task wrote: join again");
    }
    if (queue != NULL && idle) {
        start_io(queue);
    }
}

/* Drops what waits; its chunks are answered all the same. */
static void drop_waiting(struct log_queue *queue, enum log_disposition disposition)
{
    for (size_t i = 0; i < queue->count; i++) {
        count_extent(queue->daemon, &queue->running[i], false);
        queue->running[i].disposition = disposition;
        queue->running[i].marks = 0;
        count_extent(queue->daemon, &queue->running[i], true);
    }
    free(queue->bytes);
    queue->bytes = NULL;
    queue->size = 0;
    queue->capacity = 0;
    free(queue->marks);
    queue->marks = NULL;
    queue->mark_count = 0;
    queue->mark_capacity = 0;
}

void logs_forget(struct daemon *daemon, struct job_id job)
{
    for (size_t i = 0; i < LOG_BUCKETS; i++) {
        for (struct log_queue *queue = daemon->log_queues[i]; queue != NULL; queue = queue->next) {
            if (queue->job.n == job.n) {
                queue->forgotten = true;
                drop_waiting(queue, LOG_DISCARDED);
            }
        }
    }
}

void logs_close(struct daemon *daemon)
{
    for (size_t i = 0; i < LOG_BUCKETS; i++) {
        for (struct log_queue *queue = daemon->log_queues[i]; queue != NULL; queue = queue->next) {
            drop_waiting(queue, LOG_NO_ROOM);
        }
    }
}
