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

/* Says in the log itself how much of it is missing here. False: there is no room for that either.
 */
static bool tell_lost(struct task_files *task)
{
    char line[160];
    uint64_t begin = task->log_bytes;
    if (task->log_lost == 0) {
        return true;
    }
    int length = snprintf(line, sizeof line,
        "\n[cadre: %llu bytes of output are lost here: the worker could not write them]\n",
        (unsigned long long)task->log_lost);
    if (append(task, (const uint8_t *)line, (size_t)length) < (size_t)length) {
        task->log_bytes = begin; /* half of it says nothing */
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
    uint64_t to = task->log_bytes > half ? task->log_bytes - half : 0;
    to = to < task->log_acked ? to : task->log_acked;
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
    int length = snprintf(line, sizeof line,
        "\n[cadre: %llu bytes of output were dropped here: the coordinator did not take them in "
        "time, see cadre-worker --log-limit]\n",
        (unsigned long long)task->log_dropped);
    if (room(task) >= 2 * sizeof line) {
        keep(task, (const uint8_t *)line, (size_t)length);
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

void logs_ship(struct task_files *task)
{
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    uint64_t window = task->log_probes ? 1 : WINDOW_BYTES;
    while (task->daemon->linked && !task->log_waits && task->log_sent < task->log_bytes &&
           task->log_sent - task->log_acked < window) {
        if (bytes == NULL && (bytes = malloc(CHUNK_BYTES)) == NULL) {
            return; /* the next acknowledgement or output tries again */
        }
        ssize_t got = pread(task->log_fd, bytes, CHUNK_BYTES, (off_t)task->log_sent);
        if (got <= 0) {
            return;
        }
        struct agent_up up = {.type = AGENT_UP_LOG,
            .log = {.task = task->ref,
                .offset = task->log_sent,
                .bytes = bytes,
                .size_bytes = (size_t)got}};
        task->log_sent += (uint64_t)got;
        task->daemon->counts.log_sent_bytes += (uint64_t)got;
        link_send(task->daemon, &up);
    }
}

void logs_acked(struct task_files *task, uint64_t offset)
{
    if (offset > task->log_bytes) {
        return; /* of another life of this task */
    }
    if (offset <= task->log_acked && offset < task->log_sent) {
        /* The coordinator lost some, or has no room: from there again, after a while. */
        task->log_sent = offset;
        task->log_waits = true;
        task->log_probes = true;
        later_arm(task->daemon);
    } else {
        task->log_probes = false;
    }
    task->log_acked = offset;
    if (task->log_sent < offset) {
        task->log_sent = offset;
    }
    if (task->log_dropped > 0) {
        tell_dropped(task);
    }
    logs_ship(task);
    if (task->collecting) {
        outputs_resume(task);
    }
}
