/* SPDX-License-Identifier: Apache-2.0
 * What a task writes is kept in a file first and shipped from there by offset, so that a
 * coordinator that is away or a stream that breaks costs nothing, and a task never waits for the
 * network. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void logs_write(struct task_files *task, const uint8_t *bytes, size_t size)
{
    uint64_t limit = task->daemon->options.log_limit_bytes;
    if (task->log_cut || task->log_fd < 0) {
        return;
    }
    if (task->log_bytes > limit || limit - task->log_bytes < size) {
        keep(task, bytes, limit > task->log_bytes ? (size_t)(limit - task->log_bytes) : 0);
        char line[128];
        int length = snprintf(line, sizeof line,
            "\n[cadre: output over %llu bytes is dropped: see --log-limit]\n",
            (unsigned long long)limit);
        (void)append(task, (const uint8_t *)line, (size_t)length);
        task->log_cut = true;
    } else {
        keep(task, bytes, size);
    }
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
    logs_ship(task);
    if (task->collecting) {
        outputs_resume(task);
    }
}
