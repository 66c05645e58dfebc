/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/logs/log_copy_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log_marks.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_base.h"

#define MARKS_STEP 1024

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a log");
}

static cadre_status cannot_write(const char *path, struct cadre_error *error)
{
    return cadre_error_errno(error, errno, "the coordinator cannot write its copy %s", path);
}

/* ---- segments ---- */

bool log_segments_add(struct log_segments *segments, const struct log_segment *segment)
{
    if (segments->count == segments->capacity) {
        size_t capacity = segments->capacity > 0 ? 2 * segments->capacity : 16;
        struct log_segment *grown = realloc(segments->items, capacity * sizeof *grown);
        if (grown == NULL) {
            segments->short_of_memory = true;
            return false;
        }
        segments->items = grown;
        segments->capacity = capacity;
    }
    segments->items[segments->count++] = *segment;
    return true;
}

void log_segments_cut(struct log_segments *segments, uint64_t from)
{
    while (segments->count > 0 && segments->items[segments->count - 1].from >= from) {
        segments->count--;
    }
    if (segments->count > 0 && segments->items[segments->count - 1].to > from) {
        segments->items[segments->count - 1].to = from;
    }
}

uint64_t log_segments_size(const struct log_segments *segments)
{
    return segments->count > 0 ? segments->items[segments->count - 1].to : 0;
}

/* ---- the files ---- */

void log_copy_files_remove(const char *path)
{
    static const char *const tails[] = {"", ".base", ".gap", ".marks"};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        CADRE_FREE_AT_EXIT char *file = NULL;
        if (asprintf(&file, "%s%s", path, tails[i]) < 0) {
            file = NULL;
        } else {
            (void)unlink(file);
        }
    }
}

cadre_status log_copy_files_begin(
    const char *path, const struct log_segments *segments, struct cadre_error *error)
{
    struct log_hole hole;
    log_copy_files_remove(path);
    if (segments->count == 0) {
        return CADRE_OK;
    }
    const struct log_segment *last = &segments->items[segments->count - 1];
    CADRE_CLOSE_AT_EXIT int fd = log_base_open_file(path);
    if (fd < 0 || ftruncate(fd, (off_t)last->to) != 0 ||
        !log_base_write(path, last->incarnation, last->base)) {
        return cannot_write(path, error);
    }
    log_segments_hole(segments->items, segments->count, &hole.from, &hole.to);
    return log_hole_bytes(&hole) == 0 || log_hole_write(path, &hole) ? CADRE_OK
                                                                     : cannot_write(path, error);
}

cadre_status log_copy_files_open(
    const char *path, struct log_copy_filling *ret_filling, struct cadre_error *error)
{
    *ret_filling = (struct log_copy_filling){.path = path, .fd = -1, .marks_fd = -1};
    if (asprintf(&ret_filling->file, "%s.filling", path) < 0) {
        ret_filling->file = NULL;
        return no_memory(error);
    }
    ret_filling->marks = log_marks_path(ret_filling->file);
    if (ret_filling->marks == NULL) {
        return no_memory(error);
    }
    ret_filling->fd = log_base_open_file(ret_filling->file);
    ret_filling->marks_fd = log_base_open_file(ret_filling->marks);
    if (ret_filling->fd < 0 || ret_filling->marks_fd < 0 || ftruncate(ret_filling->fd, 0) != 0 ||
        ftruncate(ret_filling->marks_fd, 0) != 0) {
        return cannot_write(ret_filling->file, error);
    }
    return CADRE_OK;
}

/* The marks of the bytes that count, of which the first is at their begin. */
static void cut_marks(const struct log_segment *segment, struct log_mark **marks, size_t *count)
{
    while (*count > 1 && (*marks)[1].offset <= segment->from) {
        (*marks)++;
        (*count)--;
    }
    if (*count > 0 && (*marks)[0].offset < segment->from) {
        (*marks)[0].offset = segment->from;
    }
    while (*count > 0 && (*marks)[*count - 1].offset >= segment->to) {
        (*count)--;
    }
}

cadre_status log_copy_files_add(struct log_copy_filling *filling, const struct log_segment *segment,
    const uint8_t *bytes, struct log_mark *marks, size_t mark_count, struct cadre_error *error)
{
    size_t size = (size_t)(segment->to - segment->from);
    size_t skip = (size_t)(segment->from - segment->begin);
    cut_marks(segment, &marks, &mark_count);
    errno = ENOSPC;
    bool good = pwrite(filling->fd, bytes + skip, size, (off_t)segment->from) == (ssize_t)size &&
                log_marks_append(filling->marks_fd, segment->from, marks, mark_count);
    return good ? CADRE_OK : cannot_write(filling->file, error);
}

cadre_status log_copy_files_close(
    struct log_copy_filling *filling, uint64_t size, cadre_status status, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *marks = log_marks_path(filling->path);
    if (status == CADRE_OK && marks == NULL) {
        status = no_memory(error);
    }
    if (status == CADRE_OK &&
        (ftruncate(filling->fd, (off_t)size) != 0 || rename(filling->marks, marks) != 0 ||
            rename(filling->file, filling->path) != 0)) {
        status = cannot_write(filling->path, error);
    }
    if (filling->fd >= 0) {
        close(filling->fd);
    }
    if (filling->marks_fd >= 0) {
        close(filling->marks_fd);
    }
    if (status != CADRE_OK && filling->file != NULL) {
        (void)unlink(filling->file);
    }
    if (status != CADRE_OK && filling->marks != NULL) {
        (void)unlink(filling->marks);
    }
    free(filling->file);
    free(filling->marks);
    return status;
}

/* ---- reading them ---- */

static cadre_status read_marks(int fd, uint64_t begin, uint64_t end, struct log_mark **ret_marks,
    size_t *ret_count, struct cadre_error *error)
{
    size_t capacity = 0;
    for (uint64_t at = begin; at < end;) {
        capacity += MARKS_STEP;
        struct log_mark *grown = realloc(*ret_marks, capacity * sizeof *grown);
        if (grown == NULL) {
            return no_memory(error);
        }
        *ret_marks = grown;
        *ret_count += log_marks_read(fd, at, end, grown + *ret_count, MARKS_STEP, &at);
    }
    return CADRE_OK;
}

cadre_status log_copy_files_read(const char *path, uint64_t begin, uint64_t end,
    uint8_t **ret_bytes, struct log_mark **ret_marks, size_t *ret_count, struct cadre_error *error)
{
    size_t size = (size_t)(end - begin);
    CADRE_FREE_AT_EXIT char *marks_path = log_marks_path(path);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    CADRE_CLOSE_AT_EXIT int marks_fd =
        marks_path != NULL ? open(marks_path, O_RDONLY | O_CLOEXEC) : -1;
    *ret_bytes = malloc(size);
    if (*ret_bytes == NULL) {
        return no_memory(error);
    }
    errno = ENODATA;
    if (fd < 0 || pread(fd, *ret_bytes, size, (off_t)begin) != (ssize_t)size) {
        return cadre_error_errno(error, errno, "cannot read %s", path);
    }
    return read_marks(marks_fd, begin, end, ret_marks, ret_count, error);
}
