/* SPDX-License-Identifier: Apache-2.0
 * An event file: the memory of what is appended, and the thread that writes it. event_log.c calls
 * it. */
#include "worker/library/runtime/event_file/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "common/wire/wire.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/api/show.h"

#define GATHER_US    (CADRE_US_PER_S / 4) /* from the first frame to the write of all */
#define RETRY_US     (2 * CADRE_US_PER_S) /* after a failure */
#define FLUSH_US     CADRE_US_PER_S
#define MUCH_BYTES   ((size_t)1 << 20) /* is written at once */
#define NAMES_TRIED  16                /* others make files meanwhile */
#define MEMORY_BYTES ((size_t)64 << 10)

struct event_file {
    struct event_target target;
    uint64_t generation;
    uint64_t size; /* the appending thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* over what follows, up to the thread's own */
    pthread_cond_t changed;
    struct wire_buffer appended;
    uint64_t dropped; /* frames, by calls that appended them */
    uint64_t flush_wanted;
    uint64_t flush_done;
    size_t unwritten; /* bytes that the thread has */
    bool closing;
    /* The thread's own: */
    struct wire_buffer taken;
    size_t written; /* of those */
    int fd;         /* -1: not made yet */
    bool warned;
    char path[EVENT_PATH_BYTES];
};

/* --- in the thread --- */

static cadre_status make_file(struct event_file *file, struct cadre_error *error)
{
    CADRE_TRY(folder_make(file->target.folder, 0777, error));
    for (int tried = 0; tried < NAMES_TRIED; tried++) {
        uint64_t newest = event_target_newest(&file->target);
        event_target_path(&file->target, file->generation, newest, file->path);
        errno = EIO;
        file->fd = fault_point("event.open")
                       ? -1
                       : open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0 || errno != EEXIST) {
            break;
        }
    }
    return file->fd >= 0 ? CADRE_OK : cadre_error_errno(error, errno, "cannot make %s", file->path);
}

/* Writes what is taken; after an error the rest stays, and goes on where this one ended. */
static cadre_status write_taken(struct event_file *file, struct cadre_error *error)
{
    if (file->fd < 0) {
        CADRE_TRY(make_file(file, error));
    }
    while (file->written < file->taken.size) {
        errno = ENOSPC;
        ssize_t count = fault_point("event.write")
                            ? -1
                            : write(file->fd, file->taken.bytes + file->written,
                                  file->taken.size - file->written);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return cadre_error_errno(error, errno, "cannot write %s", file->path);
        }
        file->written += (size_t)count;
    }
    wire_buffer_clear(&file->taken);
    file->written = 0;
    return CADRE_OK;
}

static void warn_once(struct event_file *file, const struct cadre_error *error)
{
    if (!file->warned) {
        file->warned = true;
        show_warning("TensorBoard's event file is incomplete until there is room: %s; the training "
                     "goes on, and CADRE_EVENTS=off turns the file off",
            error->text);
    }
}

/* Under the lock: until `until_us`, so many bytes, or a call of event_file_flush or _close. */
static void await_call(struct event_file *file, uint64_t until_us, size_t bytes)
{
    while (!file->closing && file->flush_done == file->flush_wanted &&
           file->appended.size < bytes && clock_monotonic_us() < until_us) {
        thread_wait_until(&file->changed, &file->lock, until_us);
    }
}

/* Under the lock, which it leaves meanwhile. What was taken before comes first. */
static bool event_file_turn(struct event_file *file)
{
    struct cadre_error error;
    cadre_status status = CADRE_OK;
    uint64_t flush = file->flush_wanted;
    for (int round = 0; round < 2 && status == CADRE_OK; round++) {
        if (file->taken.size == 0) {
            struct wire_buffer empty = file->taken;
            file->taken = file->appended;
            file->appended = empty;
        }
        file->unwritten = file->taken.size;
        if (file->taken.size > 0) {
            pthread_mutex_unlock(&file->lock);
            status = write_taken(file, &error);
            pthread_mutex_lock(&file->lock);
        }
    }
    file->unwritten = file->taken.size;
    file->flush_done = flush;
    pthread_cond_broadcast(&file->changed);
    if (status != CADRE_OK) {
        pthread_mutex_unlock(&file->lock);
        warn_once(file, &error);
        pthread_mutex_lock(&file->lock);
    }
    return status == CADRE_OK;
}

static void *event_file_write_on(void *user)
{
    struct event_file *file = user;
    crash_thread("events", 0);
    pthread_mutex_lock(&file->lock);
    for (;;) {
        while (!file->closing && file->flush_done == file->flush_wanted &&
               file->appended.size + file->unwritten == 0) {
            pthread_cond_wait(&file->changed, &file->lock);
        }
        await_call(file, clock_monotonic_us() + GATHER_US, MUCH_BYTES);
        bool last = file->closing;
        bool good = event_file_turn(file);
        if (last) {
            break;
        }
        if (!good) {
            await_call(file, clock_monotonic_us() + RETRY_US, SIZE_MAX);
        }
    }
    pthread_mutex_unlock(&file->lock);
    return NULL;
}

/* --- in the program's threads --- */

static int start_thread(struct event_file *file)
{
    return fault_point("event.thread") ? EAGAIN
                                       : thread_start(&file->thread, event_file_write_on, file);
}

static void event_file_free(struct event_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    wire_buffer_free(&file->appended);
    wire_buffer_free(&file->taken);
    pthread_cond_destroy(&file->changed);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

cadre_status event_file_open(const struct event_target *target, uint64_t generation,
    struct event_file **ret_file, struct cadre_error *error)
{
    struct event_file *file = fault_point("event.memory") ? NULL : calloc(1, sizeof *file);
    *ret_file = NULL;
    if (file == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an event file");
    }
    file->target = *target;
    file->generation = generation;
    file->fd = -1;
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->changed, NULL);
    int errnum = start_thread(file);
    if (errnum != 0) {
        event_file_free(file);
        return cadre_error_errno(error, errnum, "cannot start the writer of event files");
    }
    *ret_file = file;
    return CADRE_OK;
}

void event_file_append(struct event_file *file, const void *frames, size_t size)
{
    pthread_mutex_lock(&file->lock);
    size_t before = file->appended.size;
    size_t room = file->appended.size + file->unwritten;
    bool fits = room <= EVENT_FILE_KEPT_BYTES && size <= EVENT_FILE_KEPT_BYTES - room;
    if (fits &&
        (file->appended.capacity > 0 || wire_buffer_reserve(&file->appended, MEMORY_BYTES)) &&
        wire_buffer_reserve(&file->appended, size)) {
        memcpy(file->appended.bytes + file->appended.size, frames, size);
        file->appended.size += size;
        file->size += size;
    } else {
        file->dropped++;
    }
    bool much = before < MUCH_BYTES && file->appended.size >= MUCH_BYTES;
    if (before == 0 || much) {
        pthread_cond_broadcast(&file->changed);
    }
    pthread_mutex_unlock(&file->lock);
}

uint64_t event_file_size(const struct event_file *file)
{
    return file->size;
}

void event_file_flush(struct event_file *file)
{
    uint64_t until_us = clock_monotonic_us() + FLUSH_US;
    pthread_mutex_lock(&file->lock);
    uint64_t ticket = ++file->flush_wanted;
    int late = 0;
    pthread_cond_broadcast(&file->changed);
    while (file->flush_done < ticket && late == 0) {
        late = thread_wait_until(&file->changed, &file->lock, until_us);
    }
    pthread_mutex_unlock(&file->lock);
}

void event_file_close(struct event_file *file)
{
    if (file == NULL) {
        return;
    }
    pthread_mutex_lock(&file->lock);
    file->closing = true;
    pthread_cond_broadcast(&file->changed);
    pthread_mutex_unlock(&file->lock);
    pthread_join(file->thread, NULL);
    if (file->dropped > 0 || file->taken.size > 0) {
        show_warning("TensorBoard's event file in %s lacks values: its disk was full or too slow "
                     "(%" PRIu64 " values were dropped, %zu bytes were not written)",
            file->target.folder, file->dropped, file->taken.size - file->written);
    }
    event_file_free(file);
}
