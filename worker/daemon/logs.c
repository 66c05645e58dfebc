/* SPDX-License-Identifier: Apache-2.0
 * What a task writes is kept in a file first and shipped from there by offset, so that a
 * coordinator that is away or a stream that breaks costs nothing, and a task never waits for the
 * network. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "worker/daemon/daemon.h"

#define CHUNK_BYTES  ((size_t)32 * 1024)
#define WINDOW_BYTES ((uint64_t)512 * 1024) /* sent and not acknowledged */

/* Holes begin and end at blocks of the disk, so that logs_reopen() finds where they end. */
#define HOLE_BYTES ((uint64_t)4096)

/* How much of it was written. */
static size_t append(struct task_files *task, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        if (fault_point("logs.write")) {
            errno = ENOSPC;
            break;
        }
        ssize_t written = pwrite(task->log_fd, bytes + done, size - done, (off_t)task->log_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            break;
        }
        task->log_bytes += (uint64_t)written;
        done += (size_t)written;
    }
    return done;
}

static void note_lost(struct task_files *task, size_t lost)
{
    if (lost > 0 && task->log_lost == 0) {
        log_event(LOG_LEVEL_ERROR, "logs", "a task's output is lost",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", strerror(errno)));
    }
    task->log_lost += lost;
}

/* A line of ours: whole or not at all. False: there is no room for it. */
static bool append_line(struct task_files *task, const char *line)
{
    uint64_t begin = task->log_bytes;
    size_t length = strlen(line);
    if (append(task, (const uint8_t *)line, length) < length) {
        task->log_bytes = begin; /* half of it says nothing */
        return false;
    }
    return true;
}

/* Says in the log itself how much of it is missing here. False: there is no room for that either.
 */
static bool tell_lost(struct task_files *task)
{
    char line[160];
    if (task->log_lost == 0) {
        return true;
    }
    snprintf(line, sizeof line,
        "\n[cadre: %llu bytes of output are lost here: the worker could not write them]\n",
        (unsigned long long)task->log_lost);
    if (!append_line(task, line)) {
        return false;
    }
    log_event(LOG_LEVEL_WARNING, "logs", "a task's output is kept again",
        LOG_U64("job", task->ref.job.n), LOG_U64("lost_bytes", task->log_lost));
    task->log_lost = 0;
    return true;
}

static void keep(struct task_files *task, const uint8_t *bytes, size_t size)
{
    size_t done = tell_lost(task) ? append(task, bytes, size) : 0;
    note_lost(task, size - done);
}

/* The coordinator says itself how much of it it has. */
cadre_status logs_reopen(struct task_files *task, struct cadre_error *error)
{
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/log", task->folder);
    task->log_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (task->log_fd < 0 || fstat(task->log_fd, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot open %s", path);
    }
    task->log_bytes = (uint64_t)status.st_size;
    off_t first = lseek(task->log_fd, 0, SEEK_DATA); /* let_go() made a hole of what was before */
    task->log_gone = first > 0 ? (uint64_t)first : 0;
    return CADRE_OK;
}

/* What the coordinator has is let go, but for half of the limit: it may ask for a lost end again.
 * Offsets stay what they are. */
static void let_go(struct task_files *task)
{
    uint64_t half = task->daemon->options.log_limit_bytes / 2;
    half = half >= 2 * HOLE_BYTES ? half : 0; /* a small one would hardly ever have room again */
    uint64_t to = task->log_bytes > half ? task->log_bytes - half : 0;
    to = to < task->log_acked ? to : task->log_acked;
    to -= to % HOLE_BYTES;
    if (to > task->log_gone && fallocate(task->log_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   (off_t)task->log_gone, (off_t)(to - task->log_gone)) == 0) {
        task->log_gone = to;
    }
}

/* Bytes that still fit. */
static uint64_t room(struct task_files *task)
{
    uint64_t limit = task->daemon->options.log_limit_bytes;
    if (task->log_bytes - task->log_gone >= limit - limit / 4) {
        let_go(task);
    }
    uint64_t kept = task->log_bytes - task->log_gone;
    return kept < limit ? limit - kept : 0;
}

/* Says how much was dropped, once something fits again. */
static void tell_dropped(struct task_files *task)
{
    char line[160];
    snprintf(line, sizeof line,
        "\n[cadre: %llu bytes of output were dropped here: the coordinator did not take them in "
        "time, see cadre-worker --log-limit]\n",
        (unsigned long long)task->log_dropped);
    if (room(task) >= 2 * sizeof line && tell_lost(task) && append_line(task, line)) {
        task->log_dropped = 0;
    }
}

void logs_write(struct task_files *task, const uint8_t *bytes, size_t size)
{
    struct daemon *daemon = task->daemon;
    if (task->log_fd < 0) {
        return;
    }
    daemon->counts.log_read_bytes += size;
    if (task->log_dropped > 0) {
        tell_dropped(task);
    }
    uint64_t fits = task->log_dropped > 0 ? 0 : room(task);
    size_t taken = fits < size ? (size_t)fits : size;
    keep(task, bytes, taken);
    task->log_dropped += size - taken;
    daemon->counts.log_dropped_bytes += size - taken;
    logs_ship(task);
}

/* What goes next is at `offset`; the answers that are still to come are of what went before. */
static void go_on_at(struct task_files *task, uint64_t offset)
{
    task->log_sent = offset;
    task->log_stale = task->log_flying;
}

void logs_linked(struct task_files *task)
{
    /* The last byte goes again, so that a coordinator whose disk lost the end of the log says so.
     */
    task->log_acked -= task->log_acked > task->log_gone ? 1 : 0;
    task->log_flying = 0; /* nobody answers what the old stream swallowed: it goes again, too */
    task->log_waits = false;
    go_on_at(task, task->log_acked);
    logs_ship(task);
}

static bool may_send(const struct task_files *task)
{
    uint64_t window = task->log_probes ? 1 : WINDOW_BYTES;
    return task->daemon->linked && !task->log_waits && task->log_sent < task->log_bytes &&
           task->log_sent - task->log_acked < window && task->log_flying < LOG_FLYING_MAX;
}

/* Reads what is sent next. What is not kept any more, and the coordinator has lost, too, is made of
 * lines that say so: offsets stay what they are. */
static size_t read_next(const struct task_files *task, uint8_t bytes[CHUNK_BYTES])
{
    static const char line[] = "[cadre: here 64 bytes were lost: with the coordinator's disk..]\n";
    uint64_t at = task->log_sent;
    uint64_t end = at < task->log_gone ? task->log_gone : task->log_bytes;
    size_t size = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
    if (at >= task->log_gone) {
        ssize_t got = pread(task->log_fd, bytes, size, (off_t)at);
        return got > 0 ? (size_t)got : 0;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)line[(at + i) % (sizeof line - 1)];
    }
    return size;
}

void logs_ship(struct task_files *task)
{
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    while (may_send(task)) {
        if (bytes == NULL && (bytes = malloc(CHUNK_BYTES)) == NULL) {
            return; /* the next acknowledgement or output tries again */
        }
        size_t got = read_next(task, bytes);
        if (got == 0) {
            return;
        }
        struct agent_up up = {.type = AGENT_UP_LOG,
            .log = {
                .task = task->ref, .offset = task->log_sent, .bytes = bytes, .size_bytes = got}};
        task->log_sent += got;
        task->log_ends[(task->log_first + task->log_flying) % LOG_FLYING_MAX] = task->log_sent;
        task->log_flying++;
        task->daemon->counts.log_sent_bytes += got;
        link_send(task->daemon, &up);
    }
}

/* The coordinator lost some, or has no room: from there again, after a while. */
static void refused(struct task_files *task, uint64_t offset)
{
    task->log_acked = offset;
    go_on_at(task, offset);
    task->log_waits = true;
    task->log_probes = true;
    later_arm(task->daemon);
}

static void taken(struct task_files *task, uint64_t offset, bool stale)
{
    task->log_probes = task->log_probes && stale;
    if (offset > task->log_acked) {
        task->log_acked = offset;
    }
    if (offset > task->log_sent) { /* an earlier life of this daemon sent it */
        task->log_sent = offset;
    }
}

void logs_acked(struct task_files *task, uint64_t offset)
{
    if (task->log_flying == 0) {
        return; /* of nothing that was sent */
    }
    uint64_t end = task->log_ends[task->log_first];
    bool stale = task->log_stale > 0;
    task->log_first = (task->log_first + 1) % LOG_FLYING_MAX;
    task->log_flying--;
    task->log_stale -= stale ? 1 : 0;
    if (offset > task->log_bytes) {
        return; /* of another life of this task */
    }
    if (offset >= end) {
        taken(task, offset, stale);
    } else if (!stale) { /* else it was sent once more since */
        refused(task, offset);
    }
    if (task->log_dropped > 0) {
        tell_dropped(task);
    }
    logs_ship(task);
    if (task->collecting) {
        outputs_resume(task);
    }
}
