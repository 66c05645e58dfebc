/* SPDX-License-Identifier: Apache-2.0
 * A mailbox: memory that a worker daemon shares with the tasks of a job, and that holds the newest
 * message of one direction. A task writes its arrivals there, its daemon the releases, because all
 * tasks send these at once, each step: a frame costs both sides a system call, and the daemon one
 * wake-up a task. A message is an array of numbers, which are checked as those of a frame are.
 *
 * The order of messages is that of the frames: a message in a mailbox states how many frames the
 * same side sent before it, and the reader takes it when it has handled exactly so many. A message
 * that was not taken yet is lost when the next one is written: only messages of which the newest
 * counts are written here.
 *
 * One thread writes and one reads, in two processes. A writer that is stopped in the middle, killed
 * or hostile delays and crashes no reader: the message before stays whole, and the reader bounds
 * its tries. The version is that of the frames, which both sides have checked before. */
#ifndef CADRE_WIRE_MAILBOX_H
#define CADRE_WIRE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/task_message.h"

/* Of the longest message, an arrival. */
#define MAILBOX_NUMBERS 23

struct mailbox_message {
    _Atomic uint64_t frames; /* that its writer sent before it */
    _Atomic uint64_t numbers[MAILBOX_NUMBERS];
};

/* How far the writer of arrivals has come, for the other tasks of its job here. They may trust it
 * as they trust each other: who states too little delays the job, who states too much wakes the
 * daemon in vain. */
struct mailbox_marks {
    uint64_t generation; /* its number; 0: none */
    uint64_t up_to;
    uint64_t applied;
    uint64_t begin; /* of the run */
};

/* All zeros: no message. Each is in cache lines of its own. */
struct mailbox {
    _Atomic uint64_t serial; /* of the newest message, from 1: messages[serial % 2] */
    _Atomic uint64_t used; /* the task has mapped it: what fits is written, and no frame is sent */
    _Atomic uint64_t generation, up_to, applied, begin; /* struct mailbox_marks */
    _Atomic uint64_t reserved[2];
    struct mailbox_message messages[2];
};

_Static_assert(sizeof(struct mailbox) == 448, "whole cache lines, the same in each build");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would be in one of the processes only");

/* The memory that only one task gets, and cannot write to. */
struct mailbox_of_task {
    uint64_t index; /* of its own mailbox among those of the arrivals */
    uint64_t count; /* of them */
    uint64_t reserved[6];
    struct mailbox releases;
};

/* The descriptors that a daemon sends with its preamble (SCM_RIGHTS), in this order. */
enum mailbox_descriptor {
    MAILBOX_OF_TASK,  /* memory with a struct mailbox_of_task; cannot be mapped for writing */
    MAILBOX_ARRIVALS, /* memory of the job's tasks here: `count` of struct mailbox; no size changes
                       */
    MAILBOX_ARRIVED,  /* an eventfd that wakes the daemon when it is written */
    MAILBOX_RELEASED, /* an eventfd that is written, and never read: edges wake all tasks at once */
    MAILBOX_DESCRIPTORS
};

/* Replaces the message. */
void mailbox_write(
    struct mailbox *mailbox, uint64_t frames, const uint64_t numbers[MAILBOX_NUMBERS]);

enum mailbox_read {
    MAILBOX_EMPTY, /* nothing new; or it is to be taken when more frames have been handled */
    MAILBOX_MESSAGE,
    MAILBOX_CHANGED, /* it was written again and again meanwhile: try again soon */
    MAILBOX_WRONG    /* a number is out of its range */
};

/* Copies the message when it is not the one of *seen (0 at first) and its writer sent `frames`
 * frames before it; *seen is then its number. One that stands before frames which were handled is
 * passed over. */
enum mailbox_read mailbox_read(const struct mailbox *mailbox, uint64_t *seen, uint64_t frames,
    uint64_t numbers[MAILBOX_NUMBERS]);

/* --- mailbox_messages.c: what the numbers are --- */

void mailbox_write_arrival(
    struct mailbox *mailbox, uint64_t frames, const struct task_arrive *arrive);
/* As mailbox_read(). */
enum mailbox_read mailbox_read_arrival(
    const struct mailbox *mailbox, uint64_t *seen, uint64_t frames, struct task_arrive *ret_arrive);

void mailbox_write_release(
    struct mailbox *mailbox, uint64_t frames, const struct task_release *release);
/* As mailbox_read(). */
enum mailbox_read mailbox_read_release(const struct mailbox *mailbox, uint64_t *seen,
    uint64_t frames, struct task_release *ret_release);

/* --- how far the tasks have come --- */

/* After the message itself was written or sent. */
void mailbox_set_marks(struct mailbox *mailbox, const struct mailbox_marks *marks);

/* Whether the daemon has anything to do for an arrival of the task `own`, whose marks are set and
 * were `before`: not while another one of its generation is not beyond where this one was, because
 * then the least of each mark has not changed. Of tasks that come at the same time at least the
 * last one gets true. Costs a cache line for each task that has come already, up to the first that
 * has not. */
bool mailbox_is_last(const struct mailbox *mailboxes, uint32_t count, uint32_t own,
    const struct mailbox_marks *before);

#endif
