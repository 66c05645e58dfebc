/* SPDX-License-Identifier: Apache-2.0
 * What a task writes is kept in a file first and shipped from there by offset, so that a
 * coordinator that is away or a stream that breaks costs nothing, and a task never waits for the
 * network. Threads write and read the file (log_file.h). What was read of a task's pipes is
 * written before more is: a disk that is behind holds up the task alone. */
#include <stdlib.h>
#include <string.h>

#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/later.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/logs.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"

#define CHUNK_BYTES  ((size_t)32 * 1024)
#define READ_BYTES   (4 * CHUNK_BYTES)      /* by one turn of a thread */
#define WINDOW_BYTES ((uint64_t)512 * 1024) /* sent and not acknowledged */

cadre_status logs_reopen(struct task_files *task, struct cadre_error *error)
{
    return log_file_open(&task->log, task->folder, error);
}

static uint64_t window(const struct task_files *task)
{
    return task->log_probes ? 1 : WINDOW_BYTES;
}

/* If there is something. */
static bool may_send(const struct task_files *task)
{
    return task->daemon->linked && !task->log_waits &&
           task->log_sent - task->log_acked < window(task) && task->log_flying < LOG_FLYING_MAX;
}

/* ---- turns of a thread ---- */

static void send_read(struct task_files *task)
{
    const struct log_turn *turn = &task->log_turn;
    while (may_send(task) && task->log_sent >= turn->read_at &&
           task->log_sent - turn->read_at < turn->got) {
        size_t from = (size_t)(task->log_sent - turn->read_at);
        size_t size = turn->got - from < CHUNK_BYTES ? turn->got - from : CHUNK_BYTES;
        struct agent_up up = {.type = AGENT_UP_LOG,
            .log = {.task = task->ref,
                .offset = task->log_sent,
                .bytes = turn->read + from,
                .size_bytes = size}};
        task->log_sent += size;
        task->log_ends[(task->log_first + task->log_flying) % LOG_FLYING_MAX] = task->log_sent;
        task->log_flying++;
        task->daemon->counts.log_sent_bytes += size;
        link_send(task->daemon, &up);
    }
}

static void tell(const struct task_files *task)
{
    const struct log_turn *turn = &task->log_turn;
    if (turn->told_lost > 0) {
        log_event(LOG_LEVEL_WARNING, "logs", "a task's output is kept again",
            LOG_U64("job", task->ref.job.n), LOG_U64("lost_bytes", turn->told_lost));
    }
    if (turn->lost_errno != 0) {
        log_event(LOG_LEVEL_ERROR, "logs", "a task's output is lost",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", strerror(turn->lost_errno)));
    }
}

static void in_thread(void *user)
{
    struct task_files *task = user;
    log_file_turn(&task->log_turn);
}

static void next_turn(struct task_files *task);

static void hold(struct task_files *task, bool held)
{
    if (task->log_held != held) {
        task->log_held = held;
        agent_hold_output(task->daemon->agent, task->ref, held);
    }
}

static void after_turn(void *user)
{
    struct task_files *task = user;
    struct daemon *daemon = task->daemon;
    struct log_turn *turn = &task->log_turn;
    task->log = turn->file;
    daemon->counts.log_dropped_bytes += turn->dropped_bytes;
    tell(task);
    if (!task->forgotten) {
        send_read(task);
    }
    free(turn->bytes);
    free(turn->read);
    *turn = (struct log_turn){0};
    if (task->forgotten) {
        removal_start(task);
    } else {
        next_turn(task);
        if (task->log_came_bytes + turn->size == 0 && daemon->leaves == NULL) {
            hold(task, false);
        }
        if (task->collecting) {
            outputs_resume(task);
        }
    }
    if (daemon->leaves != NULL) {
        daemon->leaves(daemon);
    }
}

/* What came is written, then as much is read as may be sent. */
static void next_turn(struct task_files *task)
{
    struct log_turn *turn = &task->log_turn;
    bool sends = may_send(task);
    bool writes = task->log_came_bytes + task->log_missed > 0 || task->log_tells;
    if (task->log_work.runs || (!writes && !(sends && task->log_sent < task->log.bytes))) {
        return;
    }
    uint64_t fits = sends ? window(task) - (task->log_sent - task->log_acked) : 0;
    size_t wanted = fits < READ_BYTES ? (size_t)fits : READ_BYTES;
    wanted = sends && wanted < CHUNK_BYTES ? CHUNK_BYTES : wanted;
    *turn = (struct log_turn){.file = task->log,
        .limit_bytes = task->daemon->options.log_limit_bytes,
        .acked = task->log_acked,
        .bytes = task->log_came,
        .size = task->log_came_bytes,
        .missed = task->log_missed,
        .read_at = task->log_sent,
        .read = wanted > 0 ? malloc(wanted) : NULL, /* NULL: the next acknowledgement tries again */
        .read_max = wanted};
    task->log_came = NULL;
    task->log_came_bytes = 0;
    task->log_missed = 0;
    task->log_tells = false;
    if (!writes && turn->read == NULL) {
        return;
    }
    file_work_start(&task->log_work, &task->daemon->works, in_thread, after_turn, task);
}

void logs_write(struct task_files *task, const uint8_t *bytes, size_t size)
{
    if (task->log.fd < 0) {
        return;
    }
    task->daemon->counts.log_read_bytes += size;
    uint8_t *came =
        task->log_missed == 0 ? realloc(task->log_came, task->log_came_bytes + size) : NULL;
    if (came != NULL) {
        memcpy(came + task->log_came_bytes, bytes, size);
        task->log_came = came;
        task->log_came_bytes += size;
    } else {
        task->log_missed += size;
    }
    hold(task, true);
    next_turn(task);
}

bool logs_hold_all(struct daemon *daemon)
{
    bool written = true;
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        hold(task, true);
        written = written && task->log_came_bytes + task->log_missed == 0 &&
                  task->log_turn.size + task->log_turn.missed == 0;
    }
    return written;
}

/* ---- what the coordinator has ---- */

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
    task->log_acked -= task->log_acked > task->log.gone ? 1 : 0;
    task->log_flying = 0; /* nobody answers what the old stream swallowed: it goes again, too */
    task->log_waits = false;
    go_on_at(task, task->log_acked);
    logs_ship(task);
}

void logs_ship(struct task_files *task)
{
    next_turn(task);
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
    if (offset > task->log.bytes) {
        return; /* of another life of this task */
    }
    if (offset >= end) {
        taken(task, offset, stale);
    } else if (!stale) { /* else it was sent once more since */
        refused(task, offset);
    }
    task->log_tells = task->log.dropped > 0; /* something may fit again */
    logs_ship(task);
    if (task->collecting) {
        outputs_resume(task);
    }
}
