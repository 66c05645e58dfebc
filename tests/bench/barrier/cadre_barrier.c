/* SPDX-License-Identifier: Apache-2.0
 * A task that does nothing but wait for releases: arrive, wait for the release, apply, arrive
 * again. It uses the production task core, the runtime's connection to the daemon and its
 * mailboxes, with a window of one step, so that every step needs a release of its own and a round
 * is the whole way: task -> daemon -> coordinator -> committed record -> daemon -> task. Started by
 * a worker daemon: cadre_barrier ROUNDS FILE */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/bench/barrier/times.h"
#include "worker/core/task_core.h"
#include "worker/library/runtime/task/session.h"
#include "worker/library/runtime/task/socket_mailbox.h"

struct bench_task {
    int fd;
    int set; /* what it waits in */
    struct socket_mailbox mailbox;
    struct task_core core;
    struct frame_reader reader;
    struct wire_arena *arena;
    struct wire_buffer frame;
    bool planned;
    bool over;
};

static void fail(const char *doing, const char *why)
{
    fprintf(stderr, "cadre_barrier: %s: %s\n", doing, why);
    exit(1);
}

static void write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno != EINTR) {
            fail("write", strerror(errno));
        }
        bytes += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
}

static void step(struct bench_task *task, const struct task_event *event)
{
    struct task_actions out;
    struct cadre_error error;
    task_core_step(&task->core, event, &out);
    wire_buffer_clear(&task->frame);
    for (size_t i = 0; i < out.count; i++) {
        switch (out.items[i].type) {
        case TASK_ACTION_SEND:
            if (socket_mailbox_send(&task->mailbox, &out.items[i].up, &task->frame, &error) !=
                CADRE_OK) {
                fail("pack", error.text);
            }
            break;
        case TASK_ACTION_FORM:
            task->planned = true;
            break;
        case TASK_ACTION_EXIT_OK:
            task->over = true;
            break;
        case TASK_ACTION_EXIT_VOID:
        case TASK_ACTION_ABORT_MESH:
            fail("ordered to end", out.items[i].text);
            break;
        case TASK_ACTION_CHANGED:
        case TASK_ACTION_WARM:
            break;
        }
    }
    write_all(task->fd, task->frame.bytes, task->frame.size);
}

static void handle(struct bench_task *task, const uint8_t *payload, size_t size)
{
    struct cadre_error error;
    struct task_down down;
    wire_arena_reset(task->arena);
    if (wire_unpack_task_down(payload, size, task->arena, &down, &error) != CADRE_OK) {
        fail("unpack", error.text);
    }
    step(task, &(struct task_event){.type = TASK_EVENT_DOWN, .down = &down});
}

static void handle_mailbox(struct bench_task *task)
{
    struct cadre_error error;
    struct task_down down = {.type = TASK_DOWN_RELEASE};
    cadre_status status;
    while ((status = socket_mailbox_next(&task->mailbox, &down.release, &error)) == CADRE_OK) {
        step(task, &(struct task_event){.type = TASK_EVENT_DOWN, .down = &down});
    }
    if (status != CADRE_PENDING) {
        fail("mailbox", error.text);
    }
}

static void read_frames(struct bench_task *task)
{
    struct cadre_error error;
    uint8_t *room = frame_reader_room(&task->reader, 4096);
    ssize_t got = room != NULL ? read(task->fd, room, 4096) : -1;
    if (got <= 0) {
        fail("read", got == 0 ? "the daemon closed the socket" : strerror(errno));
    }
    frame_reader_commit(&task->reader, (size_t)got);
    const uint8_t *payload;
    size_t size;
    while (frame_reader_next(&task->reader, &payload, &size, &error) == CADRE_OK) {
        handle_mailbox(task);
        handle(task, payload, size);
        task->mailbox.frames_handled++;
    }
}

/* Waits for messages, as the runtime does, and handles every one that is whole. */
static void receive(struct bench_task *task)
{
    struct epoll_event ready[2];
    int count = epoll_wait(task->set, ready, 2, -1);
    if (count < 0 && errno != EINTR) {
        fail("epoll_wait", strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        if (ready[i].data.fd == task->fd) {
            read_frames(task);
        }
    }
    handle_mailbox(task);
}

static void watch(const struct bench_task *task, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (fd >= 0 && epoll_ctl(task->set, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("epoll_ctl", strerror(errno));
    }
}

static uint64_t variable(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL) {
        fail(name, "not set: this program is started by a worker daemon");
    }
    return strtoull(text, NULL, 10);
}

static void open_task(struct bench_task *task)
{
    struct cadre_error error;
    variable("CADRE_SLOT");
    task->set = epoll_create1(EPOLL_CLOEXEC);
    task->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (task->set < 0 || task->arena == NULL) {
        fail("open", "no descriptor or memory");
    }
    if (socket_connection_open(getenv("CADRE_SOCKET"), -1,
            clock_monotonic_us() + 10 * CADRE_US_PER_S, &task->fd, &task->mailbox,
            &error) != CADRE_OK) {
        fail("connect", error.text);
    }
    watch(task, task->fd, EPOLLIN);
    watch(task, task->mailbox.released_fd, EPOLLIN | EPOLLET);
    task_core_init(&task->core, (uint32_t)variable("CADRE_SLOT"), variable("CADRE_INCARNATION"), 1,
        (uint32_t)getpid(), "127.0.0.1:1");
    task->core.window_steps =
        1; /* STALLED is never sent, so it stays: no step is requested ahead */
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fail("usage", "cadre_barrier ROUNDS FILE");
    }
    struct bench_task task = {0};
    uint32_t rounds = (uint32_t)strtoul(argv[1], NULL, 10);
    open_task(&task);
    struct times times = times_open(
        argv[2], (uint32_t)variable("CADRE_TASKS"), rounds, (uint32_t)variable("CADRE_SLOT"));
    step(&task, &(struct task_event){.type = TASK_EVENT_CONNECTED});
    while (!task.planned) {
        receive(&task);
    }
    step(&task, &(struct task_event){.type = TASK_EVENT_SYNCED});
    struct cursor cursor = {.stream = 1, .steps = rounds};
    struct task_event next = {.type = TASK_EVENT_READY, .position = rounds, .cursor = cursor};
    for (uint32_t round = 0; round < rounds; round++) {
        times.stamps[2 * round] = times_now();
        step(&task, &next); /* sends that it arrived, in the same message that step - 1 is
                             * applied */
        while (!task_core_may_enter(&task.core, round)) {
            receive(&task);
        }
        times.stamps[2 * round + 1] = times_now();
        step(&task, &(struct task_event){.type = TASK_EVENT_APPLY, .position = round});
        next = (struct task_event){.type = TASK_EVENT_APPLIED, .position = round};
    }
    step(&task, &next);
    step(&task, &(struct task_event){.type = TASK_EVENT_FINISH});
    while (!task.over) {
        receive(&task);
    }
    close(task.fd);
    close(task.set);
    socket_mailbox_close(&task.mailbox);
    frame_reader_free(&task.reader);
    wire_buffer_free(&task.frame);
    wire_arena_free(task.arena);
    return 0;
}
