/* SPDX-License-Identifier: Apache-2.0
 * A task's side of its mailboxes (common/wire/mailbox.h): which messages are sent in memory that is
 * shared with the daemon, and which as frames. Without such memory (a daemon that sends none, a
 * sandbox that maps none) all are frames. The owner serializes the calls. */
#ifndef CADRE_RUNTIME_SOCKET_MAILBOX_H
#define CADRE_RUNTIME_SOCKET_MAILBOX_H

#include "common/base/error.h"
#include "common/wire/frame.h"
#include "common/wire/mailbox.h"

/* Of one connection. {.arrived_fd = -1, .released_fd = -1}: there is no memory. */
struct socket_mailbox {
    struct mailbox *arrivals; /* of all tasks of the job on this host; NULL: no memory */
    uint32_t count;
    uint32_t own; /* index among them */
    const struct mailbox_of_task *releases;
    int arrived_fd;
    int released_fd; /* readable since ever: its edges report that releases were written */

    uint64_t frames_sent;
    uint64_t frames_handled;
    uint64_t release_seen; /* serial of the newest that was taken */
    struct mailbox_marks marks;
    bool has_arrived; /* on this connection: */
    struct task_arrive last;
    bool unframed; /* `last` is in the mailbox, and in no frame */
};

/* Takes the descriptors over, also when nothing comes of it; those that are missing are -1. */
void socket_mailbox_open(struct socket_mailbox *mailbox, const int fds[MAILBOX_DESCRIPTORS]);
/* It is as without memory afterwards. */
void socket_mailbox_close(struct socket_mailbox *mailbox);

/* Sends a message: appends frames to `unsent`, or writes the mailbox. An arrival goes into the
 * mailbox when it differs from the one before in watermarks and sums only: then the newest is
 * enough. Before any other message it follows as a frame, because its order counts then. An error
 * is that of packing. */
cadre_status socket_mailbox_send(struct socket_mailbox *mailbox, const struct task_up *up,
    struct wire_buffer *unsent, struct cadre_error *error);

/* The next release; PENDING: none is due. INVALID_ARGUMENT: the daemon broke the protocol. To be
 * called before each frame is handled and, as long as it gives one, after an edge of released_fd.
 */
cadre_status socket_mailbox_next(
    struct socket_mailbox *mailbox, struct task_release *ret_release, struct cadre_error *error);

#endif
