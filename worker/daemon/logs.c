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
#include "worker/daemon/daemon.h"

#define CHUNK_BYTES  ((size_t)32 * 1024)
#define WINDOW_BYTES ((uint64_t)512 * 1024) /* sent and not acknowledged */

static void append(struct task_files *task, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = pwrite(task->log_fd, bytes, size, (off_t)task->log_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            log_event(LOG_LEVEL_ERROR, "logs", "a task's output is lost",
                LOG_U64("job", task->ref.job.n), LOG_STR("reason", strerror(errno)));
            return;
        }
        task->log_bytes += (uint64_t)written;
        bytes += written;
        size -= (size_t)written;
    }
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
    task->log_cut = task->log_bytes > task->daemon->options.log_limit_bytes;
    return CADRE_OK;
}

void logs_write(struct task_files *task, const uint8_t *bytes, size_t size)
{
    uint64_t limit = task->daemon->options.log_limit_bytes;
    if (task->log_cut || task->log_fd < 0) {
        return;
    }
    if (limit - task->log_bytes < size) {
        append(task, bytes, (size_t)(limit - task->log_bytes));
        char line[128];
        int length = snprintf(line, sizeof line,
            "\n[cadre: output over %llu bytes is dropped: see --log-limit]\n",
            (unsigned long long)limit);
        append(task, (const uint8_t *)line, (size_t)length);
        task->log_cut = true;
    } else {
        append(task, bytes, size);
    }
    logs_ship(task);
}

void logs_ship(struct task_files *task)
{
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    while (task->daemon->linked && task->log_sent < task->log_bytes &&
           task->log_sent - task->log_acked < WINDOW_BYTES) {
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
    if (offset < task->log_acked) {
        task->log_sent = offset; /* the coordinator lost some: from there again */
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
