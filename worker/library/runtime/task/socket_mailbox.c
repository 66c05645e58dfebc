/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/socket_mailbox.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pure/assert.h"

/* NULL: it cannot be mapped. */
static void *map(int fd, size_t bytes, int protection)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || (size_t)status.st_size < bytes) {
        return NULL;
    }
    void *mapped = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    return mapped != MAP_FAILED ? mapped : NULL;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void socket_mailbox_open(struct socket_mailbox *mailbox, const int fds[MAILBOX_DESCRIPTORS])
{
    int of_task = fds[MAILBOX_OF_TASK];
    int arrivals = fds[MAILBOX_ARRIVALS];
    *mailbox = (struct socket_mailbox){
        .arrived_fd = fds[MAILBOX_ARRIVED], .released_fd = fds[MAILBOX_RELEASED]};
    mailbox->releases = map(of_task, sizeof *mailbox->releases, PROT_READ);
    if (mailbox->releases != NULL &&
        mailbox->releases->count <= AGENT_ENTRIES(LIMIT_SLOTS_PER_WORKER) &&
        mailbox->releases->index < mailbox->releases->count) {
        mailbox->own = (uint32_t)mailbox->releases->index;
        mailbox->count = (uint32_t)mailbox->releases->count;
        mailbox->arrivals =
            map(arrivals, mailbox->count * sizeof *mailbox->arrivals, PROT_READ | PROT_WRITE);
    }
    close_descriptor(&of_task);
    close_descriptor(&arrivals);
    if (mailbox->arrivals == NULL || mailbox->arrived_fd < 0 || mailbox->released_fd < 0) {
        socket_mailbox_close(mailbox);
    } else {
        atomic_store(&mailbox->arrivals[mailbox->own].used, 1);
    }
}

void socket_mailbox_close(struct socket_mailbox *mailbox)
{
    if (mailbox->arrivals != NULL) {
        munmap(mailbox->arrivals, mailbox->count * sizeof *mailbox->arrivals);
    }
    if (mailbox->releases != NULL) {
        munmap((void *)(uintptr_t)mailbox->releases, sizeof *mailbox->releases);
    }
    close_descriptor(&mailbox->arrived_fd);
    close_descriptor(&mailbox->released_fd);
    *mailbox = (struct socket_mailbox){.arrived_fd = -1, .released_fd = -1};
}

static cadre_status send_frame(struct socket_mailbox *mailbox, const struct task_up *up,
    struct wire_buffer *unsent, struct cadre_error *error)
{
    CADRE_TRY(frame_pack_task_up(up, unsent, error));
    mailbox->frames_sent++;
    return CADRE_OK;
}

static bool is_same_run(const struct cursor *a, const struct cursor *b)
{
    return a->stream == b->stream && a->epoch == b->epoch && a->first == b->first &&
           a->begin == b->begin && a->steps == b->steps && a->nested == b->nested;
}

/* Whether the daemon may have `next` only, and not the last one. */
static bool replaces_last(const struct socket_mailbox *mailbox, const struct task_arrive *next)
{
    const struct task_arrive *last = &mailbox->last;
    return mailbox->has_arrived && generation_equal(last->generation, next->generation) &&
           is_same_run(&last->cursor, &next->cursor) && next->up_to >= last->up_to &&
           next->applied >= last->applied && next->wanted >= last->wanted &&
           next->consumption.steps >= last->consumption.steps;
}

/* What the daemon passes on at once, also when others have not arrived. */
static bool has_news(const struct task_arrive *last, const struct task_arrive *next)
{
    return next->wanted > last->wanted ||
           (next->verified.digest != 0 &&
               (last->verified.digest == 0 || next->verified.position > last->verified.position));
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Wakes the daemon when it has to do something for the arrival. What an epoch consumed that was
 * left arrives behind the newest marks, which do not fall for it. */
static void set_marks(struct socket_mailbox *mailbox, const struct task_arrive *next)
{
    struct mailbox_marks before = mailbox->marks;
    bool first = before.generation != next->generation.number;
    if (first) {
        before = (struct mailbox_marks){.generation = next->generation.number};
    }
    mailbox->marks = (struct mailbox_marks){.generation = next->generation.number,
        .up_to = larger(before.up_to, next->up_to),
        .applied = larger(before.applied, next->applied),
        .begin = larger(before.begin, next->cursor.begin)};
    mailbox_set_marks(&mailbox->arrivals[mailbox->own], &mailbox->marks);
    if (first || has_news(&mailbox->last, next) ||
        mailbox_is_last(mailbox->arrivals, mailbox->count, mailbox->own, &before)) {
        (void)eventfd_write(mailbox->arrived_fd, 1);
    }
}

cadre_status socket_mailbox_send(struct socket_mailbox *mailbox, const struct task_up *up,
    struct wire_buffer *unsent, struct cadre_error *error)
{
    bool arrives = up->type == TASK_UP_ARRIVE && mailbox->arrivals != NULL;
    if (arrives && replaces_last(mailbox, &up->arrive)) {
        mailbox_write_arrival(&mailbox->arrivals[mailbox->own], mailbox->frames_sent, &up->arrive);
        mailbox->unframed = true;
    } else {
        if (mailbox->unframed) {
            const struct task_up last = {.type = TASK_UP_ARRIVE, .arrive = mailbox->last};
            mailbox->unframed = false;
            CADRE_TRY(send_frame(mailbox, &last, unsent, error));
        }
        CADRE_TRY(send_frame(mailbox, up, unsent, error));
    }
    if (arrives) {
        set_marks(mailbox, &up->arrive);
        mailbox->has_arrived = true;
        mailbox->last = up->arrive;
    }
    return CADRE_OK;
}

cadre_status socket_mailbox_next(
    struct socket_mailbox *mailbox, struct task_release *ret_release, struct cadre_error *error)
{
    if (mailbox->releases == NULL) {
        return CADRE_PENDING;
    }
    enum mailbox_read read = MAILBOX_CHANGED;
    while (read == MAILBOX_CHANGED) { /* its writer, the daemon, does not write for ever */
        read = mailbox_read_release(&mailbox->releases->releases, &mailbox->release_seen,
            mailbox->frames_handled, ret_release);
    }
    if (read == MAILBOX_WRONG) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a release in the mailbox has a number that is out of its range");
    }
    return read == MAILBOX_MESSAGE ? CADRE_OK : CADRE_PENDING;
}
