/* SPDX-License-Identifier: Apache-2.0 */
#include "ps_job_daemon.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "common/wire/frame.h"
#include "worker/library/runtime/task/session.h"

#define READ_BYTES 65536

/* The place of one task. */
struct seat {
    int listen_fd;
    int fd; /* -1: no task is connected */
    struct frame_reader reader;
    bool here;
    uint32_t attempts;
    char address[LIMIT_ADDRESS_BYTES];
};

struct ps_job_daemon {
    struct ps_job ps_job;
    uint32_t tasks;
    struct seat seats[PS_JOB_DAEMON_TASKS_MAX];
    int stop_fd;
    pthread_t thread;
    struct session *coordinator; /* of the chief */
    struct wire_arena *arena;
    bool over;            /* the chief was permitted to exit */
    pthread_mutex_t lock; /* over what the test asks for */
    double metric;
    unsigned metrics;
    char failure[LIMIT_TEXT_BYTES];
};

static void send_down(struct seat *seat, const struct task_down *down)
{
    struct wire_buffer buffer = {0};
    struct cadre_error error;
    CADRE_ASSERT(frame_pack_task_down(down, &buffer, &error) == CADRE_OK);
    ssize_t sent = seat->fd < 0 ? 0 : send(seat->fd, buffer.bytes, buffer.size, MSG_NOSIGNAL);
    (void)sent; /* a program that is gone is the test's business */
    wire_buffer_free(&buffer);
}

uint64_t ps_job_daemon_incarnation(const struct ps_job_daemon *daemon, uint32_t slot)
{
    return slot == 0 ? daemon->coordinator->incarnation : 10 + slot;
}

static void send_members_down(struct ps_job_daemon *daemon)
{
    struct task_member members[PS_JOB_DAEMON_TASKS_MAX];
    struct task_down down = {.type = TASK_DOWN_MEMBERS,
        .members = {.generation = {.number = 1, .nonce = 2},
            .members = members,
            .member_count = daemon->tasks}};
    memset(down.members.key, 3, sizeof down.members.key);
    for (uint32_t slot = 0; slot < daemon->tasks; slot++) {
        const struct seat *seat = &daemon->seats[slot];
        members[slot] = (struct task_member){.slot = slot,
            .incarnation = ps_job_daemon_incarnation(daemon, slot),
            .attempts = seat->attempts,
            .here = seat->here,
            .address = seat->here ? seat->address : ""};
    }
    for (uint32_t slot = 0; slot < daemon->tasks; slot++) {
        if (daemon->seats[slot].here) {
            send_down(&daemon->seats[slot], &down);
        }
    }
}

/* Servers exit when there is no client left. */
static void send_goodbye(struct ps_job_daemon *daemon)
{
    const struct task_down goodbye = {
        .type = TASK_DOWN_GOODBYE, .generation = {.number = 1, .nonce = 2}};
    bool asked = false;
    for (uint32_t slot = 1; slot < daemon->tasks; slot++) {
        struct seat *seat = &daemon->seats[slot];
        if (ps_job_role(&daemon->ps_job, slot) != ROLE_SERVER && seat->here) {
            send_down(seat, &goodbye);
            asked = true;
        }
    }
    for (uint32_t slot = 1; !asked && slot < daemon->tasks; slot++) {
        send_down(&daemon->seats[slot], &goodbye);
    }
}

static void answer_chief(struct ps_job_daemon *daemon)
{
    struct task_down down;
    while (daemon->coordinator->ops->take(daemon->coordinator, &down)) {
        send_down(&daemon->seats[0], &down);
        daemon->over = daemon->over || down.type == TASK_DOWN_GOODBYE;
    }
    if (daemon->over) {
        send_goodbye(daemon);
    }
}

static void take(struct ps_job_daemon *daemon, uint32_t slot, const struct task_up *up)
{
    struct seat *seat = &daemon->seats[slot];
    pthread_mutex_lock(&daemon->lock);
    if (slot > 0 && up->type == TASK_UP_PROGRESS) {
        daemon->metric = up->progress.metrics[0].value;
        daemon->metrics++;
    } else if (slot > 0 && up->type == TASK_UP_REPORT) {
        snprintf(daemon->failure, sizeof daemon->failure, "%s", up->report.text);
    }
    pthread_mutex_unlock(&daemon->lock);
    if (slot == 0) {
        daemon->coordinator->ops->send(daemon->coordinator, up);
        answer_chief(daemon);
    }
    if (up->type == TASK_UP_HELLO) {
        seat->here = true;
        seat->attempts++;
        snprintf(seat->address, sizeof seat->address, "%s", up->hello.mesh_address);
        send_members_down(daemon);
        if (daemon->over) {
            send_goodbye(daemon); /* it comes late, perhaps when all others are gone */
        }
    }
}

static void leave(struct ps_job_daemon *daemon, struct seat *seat)
{
    close(seat->fd);
    seat->fd = -1;
    frame_reader_free(&seat->reader);
    seat->reader = (struct frame_reader){0};
    seat->here = false;
    if (daemon->over) {
        send_goodbye(daemon);
    } else {
        send_members_down(daemon);
    }
}

static void receive(struct ps_job_daemon *daemon, uint32_t slot)
{
    struct seat *seat = &daemon->seats[slot];
    ssize_t size = recv(seat->fd, frame_reader_room(&seat->reader, READ_BYTES), READ_BYTES, 0);
    if (size <= 0) {
        leave(daemon, seat);
        return;
    }
    frame_reader_commit(&seat->reader, (size_t)size);
    const uint8_t *payload;
    size_t bytes;
    struct cadre_error error;
    while (frame_reader_next(&seat->reader, &payload, &bytes, &error) == CADRE_OK) {
        struct task_up up;
        wire_arena_reset(daemon->arena);
        CADRE_ASSERT(wire_unpack_task_up(payload, bytes, daemon->arena, &up, &error) == CADRE_OK);
        take(daemon, slot, &up);
    }
}

static void welcome(struct seat *seat)
{
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    seat->fd = accept4(seat->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CADRE_ASSERT(seat->fd >= 0);
    CADRE_ASSERT(recv(seat->fd, preamble, sizeof preamble, MSG_WAITALL) == sizeof preamble);
    frame_preamble_write(preamble);
    CADRE_ASSERT(send(seat->fd, preamble, sizeof preamble, MSG_NOSIGNAL) == sizeof preamble);
}

static void *run(void *user)
{
    struct ps_job_daemon *daemon = user;
    for (;;) {
        struct pollfd waited[PS_JOB_DAEMON_TASKS_MAX + 1];
        for (uint32_t slot = 0; slot < daemon->tasks; slot++) {
            const struct seat *seat = &daemon->seats[slot];
            waited[slot] =
                (struct pollfd){.fd = seat->fd < 0 ? seat->listen_fd : seat->fd, .events = POLLIN};
        }
        waited[daemon->tasks] = (struct pollfd){.fd = daemon->stop_fd, .events = POLLIN};
        poll(waited, daemon->tasks + 1, -1);
        if (waited[daemon->tasks].revents != 0) {
            return NULL;
        }
        for (uint32_t slot = 0; slot < daemon->tasks; slot++) {
            if (waited[slot].revents != 0 && daemon->seats[slot].fd < 0) {
                welcome(&daemon->seats[slot]);
            } else if (waited[slot].revents != 0) {
                receive(daemon, slot);
            }
        }
    }
}

static int listen_at(const char *folder, uint32_t slot)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/%u", folder, slot);
    CADRE_ASSERT(length > 0 && (size_t)length < sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CADRE_ASSERT(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CADRE_ASSERT(listen(fd, 8) == 0);
    return fd;
}

struct ps_job_daemon *ps_job_daemon_open(const struct ps_job *ps_job, const char *folder)
{
    struct ps_job_daemon *daemon = calloc(1, sizeof *daemon);
    CADRE_ASSERT(daemon != NULL && ps_job_task_count(ps_job) <= PS_JOB_DAEMON_TASKS_MAX);
    daemon->ps_job = *ps_job;
    daemon->tasks = (uint32_t)ps_job_task_count(ps_job);
    daemon->stop_fd = eventfd(0, EFD_CLOEXEC);
    daemon->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    pthread_mutex_init(&daemon->lock, NULL);
    CADRE_ASSERT(session_local_open(0, &daemon->coordinator, NULL) == CADRE_OK);
    for (uint32_t slot = 0; slot < daemon->tasks; slot++) {
        daemon->seats[slot] = (struct seat){.listen_fd = listen_at(folder, slot), .fd = -1};
    }
    CADRE_ASSERT(pthread_create(&daemon->thread, NULL, run, daemon) == 0);
    return daemon;
}

void ps_job_daemon_close(struct ps_job_daemon *daemon)
{
    uint64_t one = 1;
    CADRE_ASSERT(write(daemon->stop_fd, &one, sizeof one) == (ssize_t)sizeof one);
    pthread_join(daemon->thread, NULL);
    for (uint32_t slot = 0; slot < daemon->tasks; slot++) {
        struct seat *seat = &daemon->seats[slot];
        close(seat->listen_fd);
        if (seat->fd >= 0) {
            close(seat->fd);
        }
        frame_reader_free(&seat->reader);
    }
    close(daemon->stop_fd);
    daemon->coordinator->ops->close(daemon->coordinator);
    wire_arena_free(daemon->arena);
    pthread_mutex_destroy(&daemon->lock);
    free(daemon);
}

double ps_job_daemon_metric(struct ps_job_daemon *daemon, unsigned *ret_count)
{
    pthread_mutex_lock(&daemon->lock);
    double metric = daemon->metric;
    *ret_count = daemon->metrics;
    pthread_mutex_unlock(&daemon->lock);
    return metric;
}

void ps_job_daemon_failure(struct ps_job_daemon *daemon, char ret_text[LIMIT_TEXT_BYTES])
{
    pthread_mutex_lock(&daemon->lock);
    memcpy(ret_text, daemon->failure, LIMIT_TEXT_BYTES);
    pthread_mutex_unlock(&daemon->lock);
}
