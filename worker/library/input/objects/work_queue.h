/* SPDX-License-Identifier: Apache-2.0
 * Work that waits for one of the process's threads which fetch objects: what is waited for first,
 * then what is read ahead, each in the order in which it was asked for. The threads start as they
 * are of use, and wait for work from then on; they do not keep the process from ending. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_WORK_QUEUE_H
#define CADRE_WORKER_INPUT_OBJECTS_WORK_QUEUE_H

#include <stdbool.h>

/* As many as a storage client has connections. */
#define WORK_THREADS_MAX 32

enum work_rank { WORK_WAITED_FOR, WORK_AHEAD, WORK_RANKS };

/* The first member of what is to be done. */
struct work {
    void (*run)(struct work *work); /* by any thread; frees it */
    enum work_rank rank;
    bool queued;
    struct work *before;
    struct work *behind;
};

/* `run` of it is called once, unless it is removed before. False: it is not queued, because there
 * is no thread and none can be had. Any thread. */
bool work_queue_add(struct work *work, enum work_rank rank);

/* False: it is running, or ran. */
bool work_queue_remove(struct work *work);

#endif
