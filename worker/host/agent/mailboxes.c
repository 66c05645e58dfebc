/* SPDX-License-Identifier: Apache-2.0
 * The mailboxes of a job's tasks here (common/wire/mailbox.h): made with the first connection of
 * one of its tasks, closed with the last. Each job has memory and descriptors of its own, because
 * tasks trust those of their job and no others. What tasks write is read like frames: it may be
 * anything. No task can shrink the memory, which would end this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/host/agent/agent_state.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

struct job_mailboxes {
    struct job_mailboxes *next;
    struct agent *agent;
    const struct mailboxes_callbacks *callbacks;
    struct job_id job;
    uint32_t count;                       /* of the arrivals' mailboxes */
    uint32_t taken;                       /* of them */
    struct task_connection **connections; /* by index; NULL: the mailbox is free */
    struct mailbox *arrivals;
    int memory;  /* of them */
    int arrived; /* eventfds */
    int released;
    uv_poll_t poll; /* of `arrived` */
    bool due;       /* releases were written since the programs were woken */
};

/* A memory file that is mapped here; -1: there is no room for it. */
static int new_memory(size_t bytes, int seals, void **ret_mapped)
{
    int fd = memfd_create("cadre-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create("cadre-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    void *mapped = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) {
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (mapped == MAP_FAILED ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | seals) != 0) {
        if (mapped != MAP_FAILED) {
            munmap(mapped, bytes);
        }
        cadre_cleanup_fd(&fd);
        return -1;
    }
    *ret_mapped = mapped;
    return fd;
}

static void free_mailboxes(struct job_mailboxes *mailboxes)
{
    if (mailboxes->arrivals != NULL) {
        munmap(mailboxes->arrivals, mailboxes->count * sizeof *mailboxes->arrivals);
    }
    cadre_cleanup_fd(&mailboxes->memory);
    cadre_cleanup_fd(&mailboxes->arrived);
    cadre_cleanup_fd(&mailboxes->released);
    free(mailboxes->connections);
    free(mailboxes);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct job_mailboxes *mailboxes = handle->data;
    struct agent *agent = mailboxes->agent;
    void (*closed)(struct agent *) = mailboxes->callbacks->closed;
    free_mailboxes(mailboxes);
    closed(agent);
}

/* The last of the tasks that were to arrive is there, or one has more to report. */
static void on_arrived(uv_poll_t *poll, int status, int events)
{
    struct job_mailboxes *mailboxes = poll->data;
    eventfd_t count;
    (void)status;
    (void)events;
    (void)eventfd_read(mailboxes->arrived, &count);
    for (uint32_t i = 0; i < mailboxes->count; i++) {
        struct task_connection *connection = mailboxes->connections[i];
        if (connection != NULL && connection->task->connection == connection) {
            mailboxes->callbacks->take(connection);
        }
    }
}

/* NULL: there is no room for them. */
static struct job_mailboxes *new_mailboxes(
    struct agent *agent, struct job_id job, const struct mailboxes_callbacks *callbacks)
{
    struct job_mailboxes *mailboxes = calloc(1, sizeof *mailboxes);
    if (mailboxes == NULL) {
        return NULL;
    }
    void *arrivals = NULL;
    *mailboxes = (struct job_mailboxes){.agent = agent,
        .callbacks = callbacks,
        .job = job,
        .count = AGENT_ENTRIES(agent->setup.core.slots),
        .arrived = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .released = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    mailboxes->connections = calloc(mailboxes->count, sizeof(struct task_connection *));
    mailboxes->memory = new_memory(mailboxes->count * sizeof(struct mailbox), 0, &arrivals);
    mailboxes->arrivals = arrivals;
    if (mailboxes->connections == NULL || mailboxes->memory < 0 || mailboxes->arrived < 0 ||
        mailboxes->released < 0 ||
        uv_poll_init(agent->loop, &mailboxes->poll, mailboxes->arrived) != 0) {
        free_mailboxes(mailboxes);
        return NULL;
    }
    agent->handles++;
    mailboxes->poll.data = mailboxes;
    uv_poll_start(&mailboxes->poll, UV_READABLE, on_arrived);
    mailboxes->next = agent->mailboxes;
    agent->mailboxes = mailboxes;
    return mailboxes;
}

static void close_mailboxes(struct job_mailboxes *mailboxes)
{
    struct job_mailboxes **at = &mailboxes->agent->mailboxes;
    while (*at != mailboxes) {
        at = &(*at)->next;
    }
    *at = mailboxes->next;
    uv_close((uv_handle_t *)&mailboxes->poll, on_poll_closed);
}

static struct job_mailboxes *mailboxes_of(
    struct agent *agent, struct job_id job, const struct mailboxes_callbacks *callbacks)
{
    struct job_mailboxes *mailboxes = agent->mailboxes;
    while (mailboxes != NULL && mailboxes->job.n != job.n) {
        mailboxes = mailboxes->next;
    }
    return mailboxes != NULL ? mailboxes : new_mailboxes(agent, job, callbacks);
}

/* The memory that only this program gets; *ret_fd is the caller's. */
static bool give_mailbox(
    struct task_connection *connection, struct job_mailboxes *mailboxes, int *ret_fd)
{
    uint32_t index = 0;
    while (index < mailboxes->count && mailboxes->connections[index] != NULL) {
        index++;
    }
    void *mapped = NULL;
    *ret_fd = index < mailboxes->count
                  ? new_memory(sizeof(struct mailbox_of_task), F_SEAL_FUTURE_WRITE, &mapped)
                  : -1;
    if (*ret_fd < 0) {
        return false;
    }
    connection->releases = mapped;
    connection->releases->index = index;
    connection->releases->count = mailboxes->count;
    connection->mailboxes = mailboxes;
    connection->mailbox = index;
    mailboxes->connections[index] = connection;
    mailboxes->taken++;
    memset(&mailboxes->arrivals[index], 0, sizeof mailboxes->arrivals[index]);
    return true;
}

static bool send_descriptors(struct task_connection *connection, const int fds[MAILBOX_DESCRIPTORS])
{
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MAILBOX_DESCRIPTORS * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec piece = {.iov_base = preamble, .iov_len = sizeof preamble};
    struct msghdr message = {.msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(MAILBOX_DESCRIPTORS * sizeof(int));
    memcpy(CMSG_DATA(header), fds, MAILBOX_DESCRIPTORS * sizeof(int));
    frame_preamble_write(preamble);
    uv_os_fd_t fd;
    /* It is the first on the connection: there is room for all of it or an error. */
    return uv_fileno((const uv_handle_t *)&connection->pipe, &fd) == 0 &&
           sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof preamble;
}

bool mailboxes_greet(
    struct task_connection *connection, const struct mailboxes_callbacks *callbacks)
{
    struct job_mailboxes *mailboxes =
        mailboxes_of(connection->task->agent, connection->task->ref.job, callbacks);
    if (mailboxes == NULL) {
        return false;
    }
    CADRE_CLOSE_AT_EXIT int own = -1;
    bool given = give_mailbox(connection, mailboxes, &own);
    if (!given && mailboxes->taken == 0) {
        close_mailboxes(mailboxes);
        return false;
    }
    const int fds[MAILBOX_DESCRIPTORS] = {[MAILBOX_OF_TASK] = own,
        [MAILBOX_ARRIVALS] = mailboxes->memory,
        [MAILBOX_ARRIVED] = mailboxes->arrived,
        [MAILBOX_RELEASED] = mailboxes->released};
    if (given && !send_descriptors(connection, fds)) {
        mailboxes_leave(connection);
        given = false;
    }
    return given;
}

void mailboxes_leave(struct task_connection *connection)
{
    struct job_mailboxes *mailboxes = connection->mailboxes;
    if (mailboxes == NULL) {
        return;
    }
    CADRE_ASSERT(mailboxes->connections[connection->mailbox] == connection);
    CADRE_ASSERT(mailboxes->taken > 0);
    mailboxes->connections[connection->mailbox] = NULL;
    memset(&mailboxes->arrivals[connection->mailbox], 0, sizeof(struct mailbox));
    munmap(connection->releases, sizeof *connection->releases);
    connection->mailboxes = NULL;
    connection->releases = NULL;
    mailboxes->taken--;
    if (mailboxes->taken == 0) {
        close_mailboxes(mailboxes);
    } else {
        (void)eventfd_write(mailboxes->arrived, 1); /* as that program, had it come to it */
    }
}

enum mailbox_read mailboxes_next(struct task_connection *connection, struct task_arrive *ret_arrive)
{
    const struct job_mailboxes *mailboxes = connection->mailboxes;
    if (mailboxes == NULL) {
        return MAILBOX_EMPTY;
    }
    enum mailbox_read read = mailbox_read_arrival(&mailboxes->arrivals[connection->mailbox],
        &connection->arrival_seen, connection->frames_handled, ret_arrive);
    if (read == MAILBOX_CHANGED) {
        (void)eventfd_write(mailboxes->arrived, 1); /* in the next turn of the loop */
    }
    return read;
}

bool mailboxes_release(struct task_connection *connection, const struct task_release *release)
{
    struct job_mailboxes *mailboxes = connection->mailboxes;
    if (mailboxes == NULL || atomic_load(&mailboxes->arrivals[connection->mailbox].used) == 0) {
        return false;
    }
    mailbox_write_release(&connection->releases->releases, connection->frames_sent, release);
    mailboxes->due = true;
    return true;
}

void mailboxes_wake(struct agent *agent)
{
    for (struct job_mailboxes *at = agent->mailboxes; at != NULL; at = at->next) {
        if (at->due) {
            at->due = false;
            (void)eventfd_write(at->released, 1);
        }
    }
}
