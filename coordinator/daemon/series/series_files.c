/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/series/series_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "coordinator/series/records/series_answer.h"

/* A snapshot is written when the file is longer than this and four times as long as the last one.
 */
#define SNAPSHOT_BYTES  ((uint64_t)1024 * 1024)
#define SNAPSHOT_FACTOR 4

/* The longest file that is read; appending ends long before. */
#define FILE_BYTES_MAX ((size_t)64 * 1024 * 1024)

static int open_series(const char *path)
{
    if (fault_point("series.open")) {
        errno = EIO;
        return -1;
    }
    return file_open_made(path);
}

static struct series_look look_of(const struct stat *status)
{
    return (struct series_look){.number = (uint64_t)status->st_ino,
        .bytes = (uint64_t)status->st_size,
        .changed_ns =
            (uint64_t)status->st_mtim.tv_sec * 1000000000 + (uint64_t)status->st_mtim.tv_nsec};
}

static struct series_look look_at(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? look_of(&status) : (struct series_look){0};
}

static bool is_same_look(const struct series_look *a, const struct series_look *b)
{
    return a->number == b->number && a->bytes == b->bytes && a->changed_ns == b->changed_ns;
}

/* ---- reading ---- */

static void take_file(struct series_io *io, const char *bytes, size_t size)
{
    size_t whole = 0;
    const uint8_t *data = (const uint8_t *)bytes;
    enum series_end end = series_records_replay(data, size, io->state, &whole);
    if (end == SERIES_END_DAMAGED) {
        io->lost_bytes = size - whole;
        io->unrecorded_bytes = size - whole;
        (void)series_records_replay(data, whole, io->state, &whole); /* nothing of what follows */
    }
    io->file_bytes = whole;
    io->snapshot_bytes = whole;
}

/* False: there is no memory, or the file cannot be read; state is NULL. */
static bool series_files_load(struct series_io *io)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    struct cadre_error error = {0};
    size_t size = 0;
    io->state = calloc(1, sizeof *io->state);
    if (io->state == NULL || fault_point("series.read")) {
        free(io->state);
        io->state = NULL;
        io->lost_errno = ENOMEM;
        return false;
    }
    io->look = look_at(io->path);
    if (io->look.number == 0) {
        take_file(io, "", 0);
        return true;
    }
    if (file_read(io->path, FILE_BYTES_MAX, &bytes, &size, &error) != CADRE_OK) {
        free(io->state);
        io->state = NULL;
        io->lost_errno = EIO;
        return false;
    }
    take_file(io, bytes, size);
    return true;
}

/* ---- writing ---- */

static bool apply_plans(
    struct series_io *io, const struct series_item *item, struct wire_buffer *buffer)
{
    bool good = true;
    for (size_t i = 0; good && i < item->generation_count; i++) {
        const struct verify_generation *generation = &item->generations[i];
        if (generation->generation.number > item->known) {
            good = series_records_plan(
                io->state, generation->generation.number, generation->resume, buffer);
        }
    }
    return good;
}

static bool apply_items(struct series_io *io, struct wire_buffer *buffer)
{
    bool good = io->file_bytes > 0 || series_records_head(buffer);
    good = good && (io->unrecorded_bytes == 0 ||
                       series_records_lost(io->state, io->unrecorded_bytes, buffer));
    for (struct series_item *item = io->items; good && item != NULL; item = item->next) {
        good = apply_plans(io, item, buffer);
        if (good && item->values != NULL) {
            item->stored =
                item->values->generation.number >= io->state->set.current[item->source].generation;
            good = series_records_values(io->state, item->source, item->values, buffer);
        }
    }
    return good;
}

/* Opens the file and locks it until it is closed. -1: with lost_errno it cannot be opened, without
 * another coordinator writes it, or has written it since it was looked at. */
static int take_lock(struct series_io *io)
{
    int fd = open_series(io->path);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        io->lost_errno = errno;
        return fd; /* -1, as an open file has a status */
    }
    bool locked = file_lock_try(fd);
    struct series_look look = look_at(io->path);
    bool is_new = io->look.number == 0 && look.bytes == 0;
    if (locked && look.number == (uint64_t)status.st_ino &&
        (is_new || is_same_look(&look, &io->look))) {
        return fd;
    }
    close(fd);
    return -1;
}

/* Before it is in the file. False: with lost_errno, or the store is away, which is known. */
static bool put_object(struct series_io *io, bool is_snapshot, const struct wire_buffer *buffer)
{
    struct cadre_error error = {0};
    return series_objects_put(&io->chain, is_snapshot, buffer->bytes, buffer->size, &error) ==
           CADRE_OK;
}

/* Appends behind the last whole record; what is there is cut off. */
static bool series_files_append(struct series_io *io, const struct wire_buffer *buffer)
{
    CADRE_CLOSE_AT_EXIT int fd = take_lock(io);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return false;
    }
    if ((uint64_t)status.st_size != io->file_bytes && ftruncate(fd, (off_t)io->file_bytes) != 0) {
        io->lost_errno = errno;
        return false;
    }
    io->change_bytes -= (int64_t)status.st_size - (int64_t)io->file_bytes;
    if (!put_object(io, false, buffer)) {
        return false;
    }
    errno = 0;
    bool refused = fault_point("series.write");
    ssize_t written = refused ? -1 : pwrite(fd, buffer->bytes, buffer->size, (off_t)io->file_bytes);
    if (written != (ssize_t)buffer->size) {
        io->lost_errno = refused ? EIO : written < 0 ? errno : ENOSPC;
        io->chain.snapshot_due = true; /* the file lacks what was put */
        (void)!ftruncate(fd, (off_t)io->file_bytes);
        return false;
    }
    io->file_bytes += buffer->size;
    io->unrecorded_bytes = 0;
    io->change_bytes += written;
    io->look = fstat(fd, &status) == 0 ? look_of(&status) : (struct series_look){0};
    return true;
}

/* False: the file stays as it is. */
static bool write_snapshot(struct series_io *io, struct wire_buffer *buffer)
{
    struct cadre_error error;
    wire_buffer_clear(buffer);
    CADRE_CLOSE_AT_EXIT int fd = take_lock(io);
    bool good = fd >= 0 && series_records_snapshot(io->state, buffer) &&
                put_object(io, true, buffer) &&
                file_write_atomic(io->path, buffer->bytes, buffer->size, 0600, &error) == CADRE_OK;
    if (good) {
        io->change_bytes += (int64_t)buffer->size - (int64_t)io->file_bytes;
        io->file_bytes = buffer->size;
        io->unrecorded_bytes = 0;
        io->state->outdated = false;
        io->look = look_at(io->path);
    }
    io->chain.snapshot_due = io->chain.snapshot_due || !good;
    io->snapshot_bytes = io->file_bytes;
    return good;
}

static bool has_changed(const struct series_io *io, const struct wire_buffer *buffer)
{
    struct wire_buffer head = {0};
    bool only_head = io->file_bytes == 0 && series_records_head(&head) && buffer->size == head.size;
    wire_buffer_free(&head);
    return buffer->size > 0 && !only_head;
}

/* False: the state is not what the file has. */
static bool write_items(struct series_io *io)
{
    struct wire_buffer buffer = {0};
    bool good = apply_items(io, &buffer);
    io->lost_errno = good ? 0 : ENOMEM;
    bool is_chain = io->chain.objects != NULL;
    bool is_whole = io->state->outdated || (is_chain && io->chain.snapshot_due);
    if (good && is_whole && has_changed(io, &buffer)) {
        good = write_snapshot(io, &buffer);
        io->lost_errno = good || is_chain ? 0 : EIO;
    } else if (good && has_changed(io, &buffer)) {
        good = series_files_append(io, &buffer);
    }
    if (good && io->file_bytes > SNAPSHOT_BYTES &&
        io->file_bytes / SNAPSHOT_FACTOR > io->snapshot_bytes) {
        (void)write_snapshot(io, &buffer); /* the file as it is has the same */
        io->lost_errno = 0;
    }
    wire_buffer_free(&buffer);
    return good;
}

static void answer_queries(struct series_io *io)
{
    for (struct series_item *item = io->items; item != NULL; item = item->next) {
        if (item->values != NULL) {
            continue;
        }
        if (io->state == NULL) {
            cadre_error_errno(&item->error, io->lost_errno, "read the values in %s", io->path);
            continue;
        }
        (void)series_answer(io->state, item->request, item->generations, item->generation_count,
            &item->answer, &item->error);
    }
}

/* The store is away: values are sent again, queries say so. */
static void refuse_items(struct series_io *io, const struct cadre_error *error)
{
    for (struct series_item *item = io->items; item != NULL; item = item->next) {
        item->stored = false;
        item->error = *error;
    }
    io->reread = true;
}

void series_files_do_io(struct series_io *io)
{
    CADRE_ASSERT(io->items != NULL);
    struct cadre_error error = {0};
    if (series_objects_fetch(&io->chain, io->path, &error) != CADRE_OK) {
        refuse_items(io, &error);
        return;
    }
    struct series_look look = look_at(io->path);
    if (io->state != NULL && !is_same_look(&look, &io->look)) {
        free(io->state);
        io->state = NULL;
        io->reread = true;
    }
    bool good = io->state != NULL || series_files_load(io);
    if (good && !write_items(io)) {
        free(io->state);
        io->state = NULL;
        int why = io->lost_errno;
        good = false;
        io->reread = true;
        (void)series_files_load(io); /* for the queries, and the next turn */
        io->lost_errno = why;
    }
    for (struct series_item *item = io->items; item != NULL; item = item->next) {
        item->stored = item->stored && good;
    }
    answer_queries(io);
}
