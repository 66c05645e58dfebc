/* SPDX-License-Identifier: Apache-2.0
 * How far the reading of a checkpoint is, for people, when it takes long: a program by hand draws
 * it, a task of a job reports it to the coordinator. */
#ifndef CADRE_RUNTIME_CHECKPOINT_READING_H
#define CADRE_RUNTIME_CHECKPOINT_READING_H

#include <stdbool.h>
#include <stdint.h>

struct task;

/* Zeroed: nothing is shown. */
struct reading {
    struct task *task; /* that reports; NULL: nothing is shown */
    bool by_hand;      /* it draws */
    uint64_t whole_bytes;
    uint64_t done_bytes;
    uint64_t spent_us; /* in the calls that read: the program does other things in between */
    uint64_t shown_us; /* when, of the monotonic clock; 0: not yet */
};

/* So many bytes more were read, in this time. */
void reading_add(struct reading *reading, uint64_t bytes, uint64_t spent_us);
/* Nothing more is read. */
void reading_end(struct reading *reading);

#endif
