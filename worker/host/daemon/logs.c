/* SPDX-License-Identifier: Apache-2.0
 * What a task writes is kept in a file first and sent from there by offset, so that nothing is
 * lost while the coordinator is away or a stream breaks, and a task never waits for the network.
 * Threads write and read the file (log_file.h). What was read of a task's pipes is written
 * before more is read: a slow disk delays that task alone. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/log_pause.h"
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

static uint64_t daemon_logs_window(const struct task_files *task)
{
    return task->log_probes ? 1 : WINDOW_BYTES;
}

/* True when there is something to send and room in the window. */
static bool may_send(const struct task_files *task)
{
    return task->daemon->linked && !task->log_waits &&
           task->log_sent - task->log_acked < daemon_logs_window(task) &&
           task->log_in_flight < LOG_IN_FLIGHT_MAX;
}

/* A whole chunk, and the end of what a task wrote, wait for nothing. */
static bool is_due(const struct task_files *task, uint64_t now_us)
{
    return task->collecting || now_us >= task->log_due_us ||
           task->log.bytes + task->log_incoming_bytes - task->log_sent >= CHUNK_BYTES;
}

/* ---- turns of a thread ---- */

/* The marks of the bytes from `from` to `to`, the first one at `from`; *mark is the index of the
 * one that applies there, and then at `to`. */
static size_t marks_between(struct log_io *io, uint64_t from, uint64_t to, size_t *mark)
{
    size_t first = *mark;
    size_t next = first + 1;
    io->read_marks[first].offset = from;
    while (next < io->read_mark_count && io->read_marks[next].offset < to) {
        next++;
    }
    bool begins = next < io->read_mark_count && io->read_marks[next].offset == to;
    *mark = begins ? next : next - 1;
    return next - first;
}

static void send_read(struct task_files *task)
{
    struct log_io *io = &task->log_io;
    uint64_t before = task->log_sent;
    size_t mark = 0;
    while (
        may_send(task) && task->log_sent >= io->read_at && task->log_sent - io->read_at < io->got) {
        size_t from = (size_t)(task->log_sent - io->read_at);
        size_t size = io->got - from < CHUNK_BYTES ? io->got - from : CHUNK_BYTES;
        const struct log_mark *marks = &io->read_marks[mark];
        struct agent_up up = {.type = AGENT_UP_LOG,
            .log = {.task = task->ref,
                .offset = task->log_sent,
                .bytes = io->read + from,
                .size_bytes = size,
                .marks = marks,
                .mark_count = marks_between(io, task->log_sent, task->log_sent + size, &mark)}};
        task->log_sent += size;
        task->log_ends[(task->log_first + task->log_in_flight) % LOG_IN_FLIGHT_MAX] =
            task->log_sent;
        task->log_in_flight++;
        task->daemon->counts.log_sent_bytes += size;
        link_send(task->daemon, &up);
    }
    if (task->log_sent > before) {
        task->log_due_us = clock_monotonic_us() + task->daemon->log_pause_us;
    }
}

static void resume_if_room(const struct task_files *task)
{
    const struct log_io *io = &task->log_io;
    if (io->logged_lost > 0) {
        log_event(LOG_LEVEL_WARNING, "logs", "a task's output is kept again",
            LOG_U64("job", task->ref.job.n), LOG_U64("lost_bytes", io->logged_lost));
    }
    if (io->lost_errno != 0) {
        log_event(LOG_LEVEL_ERROR, "logs", "a task's output is lost",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", strerror(io->lost_errno)));
    }
}

static void in_thread(void *user)
{
    struct task_files *task = user;
    log_file_do_io(&task->log_io);
}

static void next_io(struct task_files *task);

static void set_paused(struct task_files *task, bool held)
{
    if (task->log_paused != held) {
        task->log_paused = held;
        agent_set_output_paused(task->daemon->agent, task->ref, held);
    }
}

static void after_io(void *user)
{
    struct task_files *task = user;
    struct daemon *daemon = task->daemon;
    struct log_io *io = &task->log_io;
    task->log = io->file;
    daemon->counts.log_dropped_bytes += io->dropped_bytes;
    resume_if_room(task);
    if (!task->forgotten) {
        send_read(task);
    }
    free(io->bytes);
    free(io->marks);
    free(io->read);
    free(io->read_marks);
    *io = (struct log_io){0};
    if (task->forgotten) {
        removal_start(task);
    } else {
        next_io(task);
        if (task->log_incoming_bytes + io->size == 0 && daemon->exit_now == NULL) {
            set_paused(task, false);
        }
        if (task->collecting) {
            outputs_resume(task);
        }
    }
    if (daemon->exit_now != NULL) {
        daemon->exit_now(daemon);
    }
}

/* Whether something may be sent now; else, if it may in a while, the timer is set. */
static bool sends_now(struct task_files *task)
{
    uint64_t now_us = clock_monotonic_us();
    bool may = may_send(task);
    bool due = is_due(task, now_us);
    if (may && !due && task->log.bytes + task->log_incoming_bytes > task->log_sent) {
        log_pause_arm(task->daemon, task->log_due_us - now_us);
    }
    return may && due;
}

/* Writes what came, then reads as much as may be sent. */
static void next_io(struct task_files *task)
{
    struct log_io *io = &task->log_io;
    bool sends = sends_now(task);
    bool writes = task->log_incoming_bytes + task->log_missed > 0 || task->log_reports_dropped;
    if (task->log_work.running || (!writes && !(sends && task->log_sent < task->log.bytes))) {
        return;
    }
    uint64_t fits = sends ? daemon_logs_window(task) - (task->log_sent - task->log_acked) : 0;
    size_t wanted = fits < READ_BYTES ? (size_t)fits : READ_BYTES;
    wanted = sends && wanted < CHUNK_BYTES ? CHUNK_BYTES : wanted;
    *io = (struct log_io){.file = task->log,
        .limit_bytes = task->daemon->options.log_limit_bytes,
        .acked = task->log_acked,
        .bytes = task->log_incoming,
        .size = task->log_incoming_bytes,
        .marks = task->log_incoming_marks,
        .mark_count = task->log_incoming_mark_count,
        .missed = task->log_missed,
        .read_at = task->log_sent,
        .read = wanted > 0 ? malloc(wanted) : NULL, /* NULL: the next acknowledgement tries again */
        .read_max = wanted};
    io->read_marks = io->read != NULL ? malloc(LOG_FILE_MARKS * sizeof *io->read_marks) : NULL;
    if (io->read_marks == NULL) {
        free(io->read);
        io->read = NULL;
    }
    task->log_incoming_marks = NULL;
    task->log_incoming_mark_count = 0;
    task->log_incoming = NULL;
    task->log_incoming_bytes = 0;
    task->log_missed = 0;
    task->log_reports_dropped = false;
    if (!writes && io->read == NULL) {
        return;
    }
    file_work_start(&task->log_work, &task->daemon->file_pool, in_thread, after_io, task);
}

/* Whole milliseconds, so that a task which writes often has a mark for each of them at most. */
static uint64_t time_received(void)
{
    uint64_t now_us = clock_wall_us();
    return now_us - now_us % CADRE_US_PER_MS;
}

/* The next incoming bytes are of the stream. Without memory it is not recorded. */
static void add_mark(struct task_files *task, enum log_stream stream)
{
    struct log_mark *marks = realloc(task->log_incoming_marks,
        (task->log_incoming_mark_count + 1) * sizeof *task->log_incoming_marks);
    if (marks != NULL) {
        marks[task->log_incoming_mark_count++] = (struct log_mark){
            .offset = task->log_incoming_bytes, .stream = stream, .received_us = time_received()};
        task->log_incoming_marks = marks;
    }
}

void logs_write(struct task_files *task, enum log_stream stream, const uint8_t *bytes, size_t size)
{
    if (task->log.fd < 0) {
        return;
    }
    task->daemon->counts.log_read_bytes += size;
    uint8_t *came =
        task->log_missed == 0 ? realloc(task->log_incoming, task->log_incoming_bytes + size) : NULL;
    if (came != NULL) {
        memcpy(came + task->log_incoming_bytes, bytes, size);
        task->log_incoming = came;
        add_mark(task, stream);
        task->log_incoming_bytes += size;
    } else {
        task->log_missed += size;
    }
    set_paused(task, true);
    next_io(task);
}

bool logs_pause_all(struct daemon *daemon)
{
    bool written = true;
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        set_paused(task, true);
        written = written && task->log_incoming_bytes + task->log_missed == 0 &&
                  task->log_io.size + task->log_io.missed == 0;
    }
    return written;
}

/* ---- what the coordinator has ---- */

/* Sends from `offset` next; the answers that are still to come are of what was sent before. */
static void ship_from(struct task_files *task, uint64_t offset)
{
    task->log_sent = offset;
    task->log_stale = task->log_in_flight;
}

void logs_linked(struct task_files *task)
{
    /* The last byte is sent again, so that a coordinator whose disk lost the end of the log
     * answers with its own offset. */
    task->log_acked -= task->log_acked > task->log.gone ? 1 : 0;
    task->log_due_us = 0;
    task->log_in_flight = 0; /* the old stream's chunks are not answered any more: they are sent
                              * again */
    task->log_waits = false;
    ship_from(task, task->log_acked);
    logs_ship(task);
}

void logs_ship(struct task_files *task)
{
    next_io(task);
}

void logs_ship_all(struct daemon *daemon)
{
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        next_io(task);
    }
}

void logs_ship_rest(struct task_files *task)
{
    task->log_due_us = 0;
    next_io(task);
}

/* The coordinator lost some, or has no room: sends from that offset again, after a while. */
static void daemon_logs_refused(struct task_files *task, uint64_t offset)
{
    task->log_acked = offset;
    ship_from(task, offset);
    task->log_waits = true;
    task->log_probes = true;
    retry_arm(task->daemon);
}

static void on_acked_chunk(struct task_files *task, uint64_t offset, bool stale)
{
    task->log_probes = task->log_probes && stale;
    if (offset > task->log_acked) {
        task->log_acked = offset;
    }
    if (offset > task->log_sent) { /* an earlier incarnation of this daemon sent it */
        task->log_sent = offset;
    }
}

void logs_acked(struct task_files *task, uint64_t offset)
{
    if (task->log_in_flight == 0) {
        return; /* no chunk is under way */
    }
    uint64_t end = task->log_ends[task->log_first];
    bool stale = task->log_stale > 0;
    task->log_first = (task->log_first + 1) % LOG_IN_FLIGHT_MAX;
    task->log_in_flight--;
    task->log_stale -= stale ? 1 : 0;
    if (offset > task->log.bytes) {
        return; /* rule 12: an answer for another incarnation of this task */
    }
    if (offset >= end) {
        on_acked_chunk(task, offset, stale);
    } else if (!stale) { /* else it was sent once more since */
        daemon_logs_refused(task, offset);
    }
    task->log_reports_dropped = task->log.dropped > 0; /* the report may fit now */
    logs_ship(task);
    if (task->collecting) {
        outputs_resume(task);
    }
}
