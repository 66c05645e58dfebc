/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/logs/log_read.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log_marks.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_begin.h"
#include "coordinator/daemon/logs/log_copies.h"
#include "coordinator/daemon/base/disk.h"

/* How many of the `got` bytes at the offset are text. The middle may be removed while it is read:
 * the gap file is read after the bytes, and is written before the hole is made (log_hole.c). An
 * offset in the gap moves to its end. */
static size_t size_kept(uint64_t *offset, size_t got, const char *path)
{
    const struct log_hole hole = log_hole_read(path);
    if (*offset >= hole.from && *offset < hole.to) {
        *offset = hole.to;
        return 0;
    }
    bool into = log_hole_bytes(&hole) > 0 && *offset < hole.from && hole.from - *offset < got;
    return into ? (size_t)(hole.from - *offset) : got;
}

/* A piece of the bytes that were read to read->size; without bytes only what is skipped counts. */
static void add_piece(struct log_read *read, struct log_piece piece)
{
    read->pieces[read->piece_count++] = piece;
}

/* Adds the `size` bytes at the offset, of which the marks from `first` on are, as pieces of the
 * stream that is asked for. Returns the offset up to which there was room for them. */
static uint64_t add_pieces(
    struct log_read *read, uint32_t slot, uint64_t offset, uint64_t end, size_t first)
{
    struct log_piece piece = {.slot = slot, .offset = offset, .at = read->size};
    for (size_t i = first; i < read->mark_count; i++) {
        const struct log_mark *mark = &read->marks[i];
        uint64_t mark_end = i + 1 < read->mark_count ? read->marks[i + 1].offset : end;
        size_t size = (size_t)(mark_end - mark->offset);
        bool wanted = log_begin_wants(read->request, mark);
        if (!wanted && piece.size > 0) {
            add_piece(read, piece);
            piece = (struct log_piece){.slot = slot};
            if (read->piece_count == LOG_READ_PIECES) {
                return mark->offset;
            }
        }
        if (wanted && piece.size == 0) {
            piece.offset = mark->offset;
            piece.at = read->size + (size_t)(mark->offset - offset);
            piece.marks = mark;
            piece.mark_count = 0;
        }
        piece.size += wanted ? size : 0;
        piece.mark_count += wanted ? 1 : 0;
        piece.skipped_bytes += wanted ? 0 : size;
        piece.offset = wanted ? piece.offset : mark_end;
    }
    if (piece.size > 0 || piece.skipped_bytes > 0) {
        add_piece(read, piece);
    }
    return end;
}

/* False: not to the end, because there is no more room. */
static bool read_pieces(
    struct log_read *read, uint32_t slot, const struct log_source *source, const char *path)
{
    uint64_t *offset = &read->offsets[slot];
    while (source->fd >= 0) {
        size_t room = LOG_READ_BYTES - read->size;
        size_t want = room < LOG_READ_PIECE_BYTES ? room : LOG_READ_PIECE_BYTES;
        size_t marks = LOG_READ_MARKS - read->mark_count;
        marks = marks < LIMIT_LOG_MARKS ? marks : LIMIT_LOG_MARKS;
        if (want == 0 || read->piece_count == LOG_READ_PIECES || marks < 2) {
            return false;
        }
        ssize_t got = pread(source->fd, read->bytes + read->size, want, (off_t)*offset);
        if (got <= 0) {
            break;
        }
        size_t kept = size_kept(offset, (size_t)got, path);
        if (kept > 0) {
            uint64_t end = *offset + kept;
            size_t first = read->mark_count;
            read->mark_count +=
                log_marks_read(source->marks_fd, *offset, end, read->marks + first, marks, &end);
            uint64_t done = add_pieces(read, slot, *offset, end, first);
            read->size += (size_t)(done - *offset);
            *offset = done;
        }
    }
    return true;
}

static bool read_file(struct log_read *read, uint32_t slot, const char *path)
{
    CADRE_FREE_AT_EXIT char *marks_path = path != NULL ? log_marks_path(path) : NULL;
    CADRE_CLOSE_AT_EXIT int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    CADRE_CLOSE_AT_EXIT int marks_fd =
        marks_path != NULL ? open(marks_path, O_RDONLY | O_CLOEXEC) : -1;
    struct log_source source = {.fd = fd, .marks_fd = marks_fd};
    if (read->offsets[slot] == LOG_READ_BEGIN) {
        source.hole = fd >= 0 ? log_hole_read(path) : source.hole;
        read->offsets[slot] = log_begin(&source, read->request);
    }
    return read_pieces(read, slot, &source, path);
}

/* The file of the slot's log, and with an object store its copy, which is in use until
 * release_log().
 */
struct used_log {
    char *path;
    struct log_copy *copy;
};

static void release_log(const struct daemon *daemon, struct used_log *log)
{
    if (log->copy != NULL) {
        log_copies_done(daemon->log_copies, log->copy);
    }
    free(log->path);
}

static cadre_status use_log(const struct daemon *daemon, struct job_id job, uint32_t slot,
    struct used_log *ret_log, struct cadre_error *error)
{
    *ret_log = (struct used_log){.path = path_of_log(daemon, job, slot)};
    if (daemon->log_copies == NULL || ret_log->path == NULL) {
        return CADRE_OK;
    }
    ret_log->copy = log_copies_use(daemon->log_copies, job, slot, ret_log->path);
    if (ret_log->copy == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory to read a log");
    }
    return log_copy_fill(ret_log->copy, error);
}

static bool read_slot(struct log_read *read, uint32_t slot)
{
    struct used_log log;
    bool whole = use_log(read->daemon, read->job, slot, &log, &read->error) == CADRE_OK &&
                 read_file(read, slot, log.path);
    release_log(read->daemon, &log);
    return whole;
}

void log_read(struct log_read *read)
{
    read->error = (struct cadre_error){0};
    while (read->slots_done < read->slot_count && read_slot(read, read->slots[read->slots_done])) {
        read->slots_done++;
    }
}

cadre_status log_read_size(const struct daemon *daemon, struct job_id job, uint32_t slot,
    uint64_t *ret_bytes, struct cadre_error *error)
{
    struct used_log log;
    struct stat facts;
    cadre_status status = use_log(daemon, job, slot, &log, error);
    *ret_bytes = status == CADRE_OK && log.path != NULL && stat(log.path, &facts) == 0
                     ? (uint64_t)facts.st_size
                     : 0;
    release_log(daemon, &log);
    return status;
}
