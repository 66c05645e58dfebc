/* SPDX-License-Identifier: Apache-2.0
 * What tasks write: one file for each slot, in which the incarnations follow one another. Beside it
 * "<slot>.base" holds the newest of them and where it begins. Beyond the limit the middle of the
 * file is let go (log_gap.h): offsets stay what they were. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "coordinator/daemon/disk.h"
#include "coordinator/daemon/log_gap.h"
#include "coordinator/daemon/storage.h"

#define BASE_TEXT_BYTES 64

static uint64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static int open_log(const char *path)
{
    if (fault_point("logs.open")) {
        errno = EIO;
        return -1;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 || errno != ENOENT) {
        return fd;
    }
    CADRE_FREE_AT_EXIT char *parent = strdup(path);
    if (parent == NULL || folder_make(dirname(parent), 0700, NULL) != CADRE_OK) {
        return -1;
    }
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* False: nothing was written of this slot, or nobody knows by whom. */
static bool read_base(const char *path, uint64_t *ret_incarnation, uint64_t *ret_base)
{
    char text[BASE_TEXT_BYTES] = {0};
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    return got > 0 && sscanf(text, "%" SCNu64 " %" SCNu64, ret_incarnation, ret_base) == 2;
}

/* Whole or not there, whenever this process ends; a machine that loses its power may lose it. */
static bool write_base(const char *path, uint64_t incarnation, uint64_t base)
{
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    char text[BASE_TEXT_BYTES];
    int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", incarnation, base);
    if (asprintf(&temporary, "%s.new", path) < 0) {
        temporary = NULL;
        return false;
    }
    CADRE_CLOSE_AT_EXIT int fd = open_log(temporary);
    if (fd < 0 || ftruncate(fd, 0) != 0 || write(fd, text, (size_t)length) != length) {
        return false;
    }
    if (fault_point("logs.rename")) {
        errno = EIO;
        return false;
    }
    return rename(temporary, path) == 0;
}

enum writer { WRITER_NEWEST, WRITER_OLD, WRITER_UNKNOWN };

/* Where the incarnation's output begins. OLD: a newer one writes now. UNKNOWN: it cannot be kept
 * who writes. */
static enum writer find_base(
    const char *log, uint64_t size, uint64_t incarnation, uint64_t *ret_base)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    uint64_t newest = 0;
    *ret_base = size;
    if (asprintf(&path, "%s.base", log) < 0) {
        path = NULL;
        return WRITER_UNKNOWN;
    }
    uint64_t base = 0;
    bool known = read_base(path, &newest, &base) && base <= size;
    if (known && newest >= incarnation) {
        *ret_base = base;
        return newest == incarnation ? WRITER_NEWEST : WRITER_OLD;
    }
    return write_base(path, incarnation, size) ? WRITER_NEWEST : WRITER_UNKNOWN;
}

static void note_lost(const struct agent_log *chunk, const char *path)
{
    struct cadre_error error = {0};
    cadre_error_errno(&error, errno, "cannot write the log %s", path);
    log_event(LOG_LEVEL_ERROR, "logs", "a task's output is lost", LOG_U64("job", chunk->task.job.n),
        LOG_STR("reason", error.text));
}

/* False: the log is full, and its middle cannot be let go. */
static bool make_room(
    struct daemon *daemon, const struct agent_log *chunk, const char *path, int fd, uint64_t size)
{
    uint64_t freed = 0;
    uint64_t limit = daemon->options.log_limit_bytes;
    if (size < limit) { /* most logs have no gap, and no file of one to look for */
        return true;
    }
    struct log_gap gap = log_gap_read(path);
    if (size - log_gap_bytes(&gap) < limit) {
        return true;
    }
    if (fd < 0 || !log_gap_widen(path, fd, size, limit, &freed)) {
        return false;
    }
    storage_log(daemon->storage, chunk->task.job, -(int64_t)freed);
    return true;
}

/* Appends what is fresh; the new size. *ret_again: not all of it, for the disk is full: the rest is
 * to come again. */
static uint64_t write_fresh(struct daemon *daemon, const struct agent_log *chunk, const char *path,
    int fd, uint64_t size, size_t known, bool *ret_again)
{
    size_t fresh = chunk->size_bytes - known;
    bool refused = fault_point("logs.write");
    errno = refused ? EIO : errno;
    ssize_t written =
        fd >= 0 && !refused ? pwrite(fd, chunk->bytes + known, fresh, (off_t)size) : -1;
    *ret_again = written < 0 ? disk_is_full(errno) : (size_t)written < fresh;
    if (written < 0) {
        if (!*ret_again) {
            note_lost(chunk, path);
        }
        return size;
    }
    uint64_t now = size + (uint64_t)written;
    storage_log(daemon->storage, chunk->task.job, (int64_t)written);
    uint64_t limit = daemon->options.log_limit_bytes;
    if (!make_room(daemon, chunk, path, fd, now) && size < limit && now > limit &&
        ftruncate(fd, (off_t)limit) == 0) {
        storage_log(daemon->storage, chunk->task.job, -(int64_t)(now - limit));
        now = limit;
    }
    logs_changed(daemon, chunk->task.job);
    return now;
}

uint64_t logs_append(struct daemon *daemon, const struct agent_log *chunk, uint64_t *ret_total)
{
    uint64_t end = chunk->offset + chunk->size_bytes;
    uint64_t base = 0;
    CADRE_FREE_AT_EXIT char *path = path_of_log(daemon, chunk->task.job, chunk->task.slot);
    if (path == NULL) {
        return chunk->offset; /* it comes again */
    }
    uint64_t size = size_of(path);
    *ret_total = size;
    bool room = disk_check(daemon, chunk->size_bytes, NULL) == CADRE_OK;
    errno = 0;
    enum writer writer = find_base(path, size, chunk->task.incarnation, &base);
    if (writer == WRITER_UNKNOWN) {
        if (disk_is_full(errno)) {
            return 0; /* nothing of this one is here yet */
        }
        note_lost(chunk, path);
        return end;
    }
    if (writer == WRITER_OLD) {
        return end;
    }
    if (base + end <= size || !room) {
        return size - base; /* known already, or no room */
    }
    CADRE_CLOSE_AT_EXIT int fd = open_log(path);
    if (size > 0 && !make_room(daemon, chunk, path, fd, size)) {
        return end; /* what is beyond the limit is lost */
    }
    if (base + chunk->offset > size) {
        return size - base; /* a gap: send it again from here */
    }
    size_t known = (size_t)(size - base - chunk->offset);
    bool again = false;
    *ret_total = write_fresh(daemon, chunk, path, fd, size, known, &again);
    return again ? *ret_total - base : end;
}
